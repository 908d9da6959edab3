//! CSV in the dialects of cqlsh. Python's `csv` module, which cqlsh uses, also escapes characters of fields without quotes; the crate
//! `csv` reads such an escape as text.
//!
//! ```text
//! record := field (delimiter field)* '\n'          '\r' before '\n' does not count; empty lines are passed over
//! field  := quoted? plain*
//! quoted := quote (escape any | any but quote | quote quote)* quote      doubled quotes only if the escape is the quote itself
//! plain  := escape any | any but delimiter, escape and '\n'
//! ```

use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;

use ilion_codec::crc32_extend;
use memchr::{memchr, memchr_iter, memchr2};

/// Maximum size of a record: without this limit, a missing quote would make one record of the rest of the file.
const RECORD_BYTES_MAX: usize = 256 << 20;
const BUFFER_BYTES: usize = 256 << 10;

/// The characters with a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// Separates fields.
    pub delimiter: u8,
    /// Encloses fields that need it.
    pub quote: u8,
    /// Takes the meaning from the character after it. If it is the quote, quotes inside of quotes are doubled.
    pub escape: u8,
}

impl Dialect {
    /// The dialect in which most programs write CSV.
    pub const COMMON: Self = Self {
        delimiter: b',',
        quote: b'"',
        escape: b'"',
    };

    /// Fields as a line, with its end.
    pub fn line<'a>(&self, fields: impl Iterator<Item = &'a str> + Clone) -> String {
        // The fields, their separators, two quotes and the end.
        let most = fields.clone().map(|field| field.len() + 1).sum::<usize>() + 2;
        let mut line = String::with_capacity(most);
        for (index, field) in fields.enumerate() {
            if index > 0 {
                line.push(char::from(self.delimiter));
            }
            self.push(field, &mut line);
        }
        // An empty line is no record.
        if line.is_empty() {
            line.extend([char::from(self.quote); 2]);
        }
        line.push('\n');
        line
    }

    fn push(&self, field: &str, line: &mut String) {
        let special = [self.delimiter, self.quote, self.escape, b'\n', b'\r'];
        if !field.bytes().any(|byte| special.contains(&byte)) {
            line.push_str(field);
            return;
        }
        let [quote, escape] = [self.quote, self.escape].map(char::from);
        line.push(quote);
        for character in field.chars() {
            if character == quote || character == escape {
                line.push(escape);
            }
            line.push(character);
        }
        line.push(quote);
    }

    fn doubles_quotes(self) -> bool {
        self.quote == self.escape
    }
}

/// A record of a file.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Its text, as it stands in the file.
    pub source: Vec<u8>,
    /// The line where it begins, from 1.
    pub line: u64,
    /// The fields without quotes and escapes, and what may stand between them.
    text: Vec<u8>,
    /// Where each field is in `text`.
    fields: Vec<Range<usize>>,
}

impl Record {
    /// Its fields.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.fields.iter().map(|field| &self.text[field.clone()])
    }

    fn clear(&mut self, line: u64) {
        self.source.clear();
        self.line = line;
        self.text.clear();
        self.fields.clear();
    }

    /// True for a line without any character.
    fn is_empty_line(&self, quote: u8) -> bool {
        matches!(&self.fields[..], [field] if field.is_empty()) && !self.source.contains(&quote)
    }

    /// Takes a whole line, with its end, that has no quotes and no escapes.
    fn take_line(&mut self, line: &[u8], delimiter: u8) {
        self.source.extend_from_slice(line);
        self.text.extend_from_slice(line);
        let content = line.strip_suffix(b"\n").unwrap_or(line);
        let mut start = 0;
        for end in memchr_iter(delimiter, content).chain([content.len()]) {
            self.fields.push(start..end);
            start = end + 1;
        }
        if let Some(last) = self.fields.last_mut()
            && content[last.clone()].ends_with(b"\r")
        {
            last.end -= 1;
        }
    }
}

/// Reads records.
pub struct Reader<R> {
    input: BufReader<R>,
    dialect: Dialect,
    /// By byte: true for the characters of the dialect and for the end of a line.
    may_have_meaning: [bool; 256],
    place: Place,
}

/// A place between two lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Place {
    /// Bytes before it.
    pub offset: u64,
    /// The number of the line that begins there, from 1.
    pub line: u64,
    /// The CRC-32 of the bytes before it.
    pub crc: u32,
}

impl Place {
    /// The beginning of a text.
    pub const START: Self = Self {
        offset: 0,
        line: 1,
        crc: 0,
    };
}

/// Where in a field the reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    Plain,
    EscapedPlain,
    Quoted,
    EscapedQuoted,
    /// After a quote inside of quotes, which may be the first of two.
    QuoteInQuoted,
}

impl<R: Read> Reader<R> {
    /// A reader of a text from a place on; the input begins there.
    pub fn new(dialect: Dialect, input: R, place: Place) -> Self {
        let mut may_have_meaning = [false; 256];
        for byte in [dialect.delimiter, dialect.quote, dialect.escape, b'\n'] {
            may_have_meaning[usize::from(byte)] = true;
        }
        Self {
            input: BufReader::with_capacity(BUFFER_BYTES, input),
            dialect,
            may_have_meaning,
            place,
        }
    }

    /// The place behind the record that was read last.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Reads the next record, in place of the one that `record` has. Returns false at the end.
    ///
    /// # Errors
    /// The text cannot be read, or a record is too long.
    pub fn next(&mut self, record: &mut Record) -> io::Result<bool> {
        loop {
            record.clear(self.place.line);
            if !self.take_plain_line(record)? {
                self.take_record(record)?;
            }
            if record.source.is_empty() {
                return Ok(false);
            }
            self.place.offset += record.source.len() as u64;
            self.place.crc = crc32_extend(self.place.crc, &record.source);
            if !record.is_empty_line(self.dialect.quote) {
                return Ok(true);
            }
        }
    }

    /// Takes the next record if it is a line without quotes and escapes and is already in memory; else returns false.
    fn take_plain_line(&mut self, record: &mut Record) -> io::Result<bool> {
        let Dialect {
            delimiter,
            quote,
            escape,
        } = self.dialect;
        let buffer = self.input.fill_buf()?;
        let Some(end) = memchr(b'\n', buffer) else {
            return Ok(false);
        };
        let line = &buffer[..=end];
        if memchr2(quote, escape, line).is_some() {
            return Ok(false);
        }
        record.take_line(line, delimiter);
        self.input.consume(end + 1);
        self.place.line += 1;
        Ok(true)
    }

    /// Takes the next record, which may be an empty line.
    fn take_record(&mut self, record: &mut Record) -> io::Result<()> {
        let mut state = State::Start;
        let mut start = 0;
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                break;
            }
            let mut used = 0;
            let mut has_ended = false;
            while let Some(&byte) = buffer.get(used) {
                let ordinary = match state {
                    State::EscapedPlain | State::EscapedQuoted => 0,
                    _ => ordinary_len(&self.may_have_meaning, &buffer[used..]),
                };
                if ordinary > 0 {
                    record.text.extend_from_slice(&buffer[used..used + ordinary]);
                    used += ordinary;
                    if state != State::Quoted {
                        state = State::Plain;
                    }
                    continue;
                }
                used += 1;
                self.place.line += u64::from(byte == b'\n');
                if byte == b'\n' && matches!(state, State::Start | State::Plain | State::QuoteInQuoted) {
                    has_ended = true;
                    break;
                }
                match step(self.dialect, state, byte) {
                    Step::Text(next) => {
                        record.text.push(byte);
                        state = next;
                    }
                    Step::Mark(next) => state = next,
                    Step::FieldEnd => {
                        record.fields.push(start..record.text.len());
                        start = record.text.len();
                        state = State::Start;
                    }
                }
            }
            record.source.extend_from_slice(&buffer[..used]);
            self.input.consume(used);
            if record.source.len() > RECORD_BYTES_MAX {
                let reason = format!(
                    "the record at line {} is too long: is a quote missing?",
                    record.line
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
            }
            if has_ended {
                break;
            }
        }
        if state == State::Plain && record.text[start..].last() == Some(&b'\r') {
            record.text.pop();
        }
        record.fields.push(start..record.text.len());
        Ok(())
    }
}

/// The number of bytes before the next one that can have a meaning.
fn ordinary_len(may_have_meaning: &[bool; 256], bytes: &[u8]) -> usize {
    let next = bytes.iter().position(|byte| may_have_meaning[usize::from(*byte)]);
    next.unwrap_or(bytes.len())
}

/// What a byte of a record does.
enum Step {
    /// It belongs to the field.
    Text(State),
    /// It changes how the next byte is read.
    Mark(State),
    /// It ends the field.
    FieldEnd,
}

/// What a byte does that does not end the record.
fn step(dialect: Dialect, state: State, byte: u8) -> Step {
    let is_escape = byte == dialect.escape && !dialect.doubles_quotes();
    match state {
        State::Start if byte == dialect.quote => Step::Mark(State::Quoted),
        State::Start | State::Plain | State::QuoteInQuoted if byte == dialect.delimiter => Step::FieldEnd,
        State::Start | State::Plain if is_escape => Step::Mark(State::EscapedPlain),
        State::Quoted if is_escape => Step::Mark(State::EscapedQuoted),
        State::Quoted if byte == dialect.quote => Step::Mark(State::QuoteInQuoted),
        State::Quoted | State::EscapedQuoted => Step::Text(State::Quoted),
        State::QuoteInQuoted if byte == dialect.quote && dialect.doubles_quotes() => {
            Step::Text(State::Quoted)
        }
        _ => Step::Text(State::Plain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CQLSH: Dialect = Dialect {
        delimiter: b',',
        quote: b'"',
        escape: b'\\',
    };

    /// The delimiter may also stand at the end of a line.
    const RETURNS: Dialect = Dialect {
        delimiter: b'\r',
        ..CQLSH
    };

    fn records(dialect: Dialect, text: &str) -> Vec<Vec<String>> {
        let mut reader = Reader::new(dialect, text.as_bytes(), Place::START);
        let mut records = Vec::new();
        while let Some(record) = next(&mut reader) {
            let fields = record.fields().map(<[u8]>::to_vec);
            records.push(fields.map(|field| String::from_utf8(field).unwrap()).collect());
        }
        records
    }

    fn next<R: Read>(reader: &mut Reader<R>) -> Option<Record> {
        let mut record = Record::default();
        reader.next(&mut record).unwrap().then_some(record)
    }

    #[test]
    fn what_was_written_is_read_again() {
        let fields = [
            "",
            "plain",
            "a,b",
            "say \"x\"",
            "back\\slash",
            "two\r\nlines",
            "end\\",
            "\\\"",
            "ä",
            "\r",
            "\"",
        ];
        for dialect in [CQLSH, Dialect::COMMON] {
            let line = dialect.line(fields.into_iter());
            assert_eq!(records(dialect, &line), [fields], "{line}");
            for field in fields {
                assert_eq!(
                    records(dialect, &dialect.line([field].into_iter())),
                    [[field]],
                    "{field:?}"
                );
            }
        }
    }

    /// Gives one byte at a time, so that each is taken by itself.
    struct Bytewise<'t>(&'t [u8]);

    impl Read for Bytewise<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else {
                return Ok(0);
            };
            buffer[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }

    fn parts(record: &Record) -> (Vec<&[u8]>, &[u8], u64) {
        (record.fields().collect(), &record.source, record.line)
    }

    /// Byte by byte, no line is taken as a whole.
    #[test]
    fn all_short_texts_are_read_as_they_are_byte_by_byte() {
        const ALPHABET: &[u8] = b"a,\"\\\n\r";
        const LEN: u32 = 6;
        let count = ALPHABET.len().pow(LEN);
        for number in 0..count {
            let places = (0..LEN).map(|place| number / ALPHABET.len().pow(place) % ALPHABET.len());
            let text: Vec<u8> = places.map(|place| ALPHABET[place]).collect();
            for dialect in [CQLSH, Dialect::COMMON, RETURNS] {
                let mut whole = Reader::new(dialect, &text[..], Place::START);
                let mut bytewise = Reader::new(dialect, Bytewise(&text), Place::START);
                loop {
                    let record = next(&mut whole);
                    let of_bytes = next(&mut bytewise);
                    assert_eq!(
                        record.as_ref().map(parts),
                        of_bytes.as_ref().map(parts),
                        "{text:?}"
                    );
                    assert_eq!(whole.place(), bytewise.place(), "{text:?}");
                    if record.is_none() {
                        break;
                    }
                }
            }
        }
    }

    #[test]
    fn fields_of_cqlsh_are_read() {
        assert_eq!(
            records(CQLSH, "q\\\"x,\\\\,a\\,b\n1,\"a\\\"b\"\n"),
            [vec!["q\"x", "\\", "a,b"], vec!["1", "a\"b"]]
        );
    }

    #[test]
    fn ends_of_lines_may_have_returns_and_the_last_may_be_missing() {
        assert_eq!(
            records(Dialect::COMMON, "a,b\r\n\n\r\nc,\"d\"\r\n,"),
            [["a", "b"], ["c", "d"], ["", ""]]
        );
        assert_eq!(records(Dialect::COMMON, ""), [[""; 0]; 0]);
    }

    #[test]
    fn records_know_their_lines_and_their_text() {
        let mut reader = Reader::new(Dialect::COMMON, &b"a\n\"b\nc\"\nd"[..], Place::START);
        let lines: Vec<_> = std::iter::from_fn(|| next(&mut reader))
            .map(|record| (record.line, record.source))
            .collect();
        assert_eq!(
            lines,
            [
                (1, b"a\n".to_vec()),
                (2, b"\"b\nc\"\n".to_vec()),
                (4, b"d".to_vec())
            ]
        );
        assert_eq!(reader.place().offset, 9);
    }

    #[test]
    fn reading_goes_on_at_a_place() {
        let text = &b"a\n\n\"b\nc\"\nd,e\nf"[..];
        let mut whole = Reader::new(Dialect::COMMON, text, Place::START);
        let mut left = 4;
        while next(&mut whole).is_some() {
            let place = whole.place();
            let rest = &text[usize::try_from(place.offset).unwrap()..];
            let mut second = Reader::new(Dialect::COMMON, rest, place);
            left -= 1;
            let records = std::iter::from_fn(|| next(&mut second));
            assert_eq!(records.count(), left);
            assert_eq!(second.place().crc, ilion_codec::crc32(text));
        }
        assert_eq!(left, 0);
    }
}
