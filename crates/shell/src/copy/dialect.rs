//! CSV as the options want it.

use std::io::Read;

use crate::copy::options::Options;

/// A reader of records. Records may be of any length: their number of fields is checked by the caller, who keeps those that do not fit.
pub fn reader<R: Read>(options: &Options, from: R) -> csv::Reader<R> {
    let doubles = options.escape == options.quote;
    csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(options.delimiter)
        .quote(options.quote)
        .double_quote(doubles)
        .escape((!doubles).then_some(options.escape))
        .from_reader(from)
}

/// A record as a line, with the end of the line.
pub fn line<'a>(options: &Options, fields: impl Iterator<Item = &'a str>) -> Result<Vec<u8>, csv::Error> {
    let doubles = options.escape == options.quote;
    let mut writer = csv::WriterBuilder::new()
        .delimiter(options.delimiter)
        .quote(options.quote)
        .double_quote(doubles)
        .escape(options.escape)
        .terminator(csv::Terminator::Any(b'\n'))
        .from_writer(Vec::new());
    for field in fields {
        match doubles {
            true => writer.write_field(field)?,
            // The library escapes quotes only; a field with an escape is quoted, so the reader takes both away.
            false => writer.write_field(with_escapes(field, options.escape).as_ref())?,
        }
    }
    writer.write_record(None::<&[u8]>)?;
    writer.into_inner().map_err(|error| error.into_error().into())
}

fn with_escapes(field: &str, escape: u8) -> std::borrow::Cow<'_, str> {
    let escape = char::from(escape);
    match field.contains(escape) {
        false => field.into(),
        true => field.replace(escape, &format!("{escape}{escape}")).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_again() {
        let fields = [
            "",
            "plain",
            "a,b",
            "say \"x\"",
            "back\\slash",
            "two\nlines",
            "end\\",
            "\\\"",
            "ä",
        ];
        for escape in [b'\\', b'"'] {
            let options = Options {
                escape,
                ..Options::default()
            };
            let line = line(&options, fields.into_iter()).unwrap();
            let mut reader = reader(&options, &line[..]);
            let mut record = csv::StringRecord::new();
            assert!(reader.read_record(&mut record).unwrap());
            assert_eq!(record.iter().collect::<Vec<_>>(), fields);
        }
    }

    #[test]
    fn quotes_are_escaped_as_by_cqlsh() {
        let line = line(&Options::default(), ["a\"b", "c"].into_iter()).unwrap();
        assert_eq!(String::from_utf8(line).unwrap(), "\"a\\\"b\",c\n");
    }
}
