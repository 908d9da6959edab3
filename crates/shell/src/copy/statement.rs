//! [`Copy`]: a COPY statement, parsed.

use std::path::PathBuf;

use ilion_cql::{Class, outline};

use crate::columnar::Kind;
use crate::copy::options::{FileFormat, Options};
use crate::paths::expand;
use crate::quotes::unquote;

/// A COPY statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Copy {
    /// `None`: the keyspace of the session.
    pub keyspace: Option<String>,
    /// The table.
    pub table: String,
    /// Empty: all columns.
    pub columns: Vec<String>,
    /// Where rows come from or go to.
    pub end: End,
    /// The options behind WITH.
    pub options: Options,
}

/// The other end of the copy.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// From a file.
    From(PathBuf),
    /// To a file.
    To(PathBuf),
    /// To the output of the shell.
    ToStdout,
}

impl Copy {
    /// The format of the file.
    ///
    /// # Errors
    /// There is no such COPY of files with this format.
    pub fn format(&self) -> Result<FileFormat, String> {
        let path = match &self.end {
            End::From(path) | End::To(path) => path.extension(),
            End::ToStdout => None,
        };
        let of_name = path.and_then(|ending| FileFormat::named(&ending.to_string_lossy()));
        let format = self.options.format.or(of_name).unwrap_or(FileFormat::Csv);
        let FileFormat::Columnar(kind) = format else {
            return Ok(format);
        };
        let problem = match (&self.end, kind) {
            (End::ToStdout, _) => "COPY TO STDOUT writes CSV only.",
            (End::From(_), Kind::Arrow) => "COPY FROM reads CSV and Parquet, not Arrow.",
            _ if self.options.has_header => "HEADER is an option for CSV files.",
            (End::To(_), Kind::Arrow) if self.options.is_resumed => {
                "COPY TO cannot continue an Arrow file: copy again without RESUME."
            }
            _ => return Ok(format),
        };
        Err(problem.to_owned())
    }
}

/// The words of a statement, from the next one on.
struct Words<'a> {
    words: Vec<(Class, &'a str)>,
    at: usize,
}

/// Parses a statement that begins with COPY.
///
/// # Errors
/// The text is no COPY; the error says what is wrong.
pub fn parse(text: &str) -> Result<Copy, String> {
    let is_word = |class| !matches!(class, Class::Space | Class::Comment | Class::Semicolon);
    let pieces = outline(text).filter(|piece| is_word(piece.class));
    let words = pieces.filter_map(|piece| Some((piece.class, text.get(piece.range)?)));
    // The first word is COPY.
    let mut words = Words {
        words: words.collect(),
        at: 1,
    };
    let first = words.name()?;
    let (keyspace, table) = match words.accept(".") {
        true => (Some(first), words.name()?),
        false => (None, first),
    };
    let columns = words.columns()?;
    let is_import = match words.next() {
        Some((_, word)) if word.eq_ignore_ascii_case("from") => true,
        Some((_, word)) if word.eq_ignore_ascii_case("to") => false,
        _ => return Err("COPY needs FROM or TO behind the table.".to_owned()),
    };
    let end = words.end(is_import)?;
    let mut options = Options::default();
    if words.accept("with") {
        loop {
            let (name, value) = words.option()?;
            options.set(&name, &value, is_import)?;
            if !words.accept("and") {
                break;
            }
        }
    }
    match words.next() {
        None => Ok(Copy {
            keyspace,
            table,
            columns,
            end,
            options,
        }),
        Some((_, word)) => Err(format!("Improper copy command (problem at '{word}').")),
    }
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<(Class, &'a str)> {
        let word = self.words.get(self.at).copied();
        self.at += 1;
        word
    }

    /// Passes over a word if it is the next one.
    fn accept(&mut self, wanted: &str) -> bool {
        let found = self
            .words
            .get(self.at)
            .is_some_and(|(_, word)| word.eq_ignore_ascii_case(wanted));
        self.at += usize::from(found);
        found
    }

    fn name(&mut self) -> Result<String, String> {
        match self.next() {
            Some((Class::QuotedName, word)) => Ok(unquote(word)),
            Some((Class::Name | Class::Keyword, word)) => Ok(word.to_lowercase()),
            _ => Err("COPY needs the name of a table.".to_owned()),
        }
    }

    fn columns(&mut self) -> Result<Vec<String>, String> {
        let mut columns = Vec::new();
        if !self.accept("(") {
            return Ok(columns);
        }
        loop {
            columns.push(self.name()?);
            if self.accept(")") {
                return Ok(columns);
            }
            if !self.accept(",") {
                return Err("COPY needs commas between its columns.".to_owned());
            }
        }
    }

    fn end(&mut self, is_import: bool) -> Result<End, String> {
        let path = |word: &str| -> PathBuf { expand(&unquote(word)) };
        match self.next() {
            Some((Class::String, word)) if is_import => Ok(End::From(path(word))),
            Some((Class::String, word)) => Ok(End::To(path(word))),
            Some((_, word)) if !is_import && word.eq_ignore_ascii_case("stdout") => Ok(End::ToStdout),
            Some((_, word)) if is_import && word.eq_ignore_ascii_case("stdin") => {
                Err("COPY FROM STDIN is not built: name a file in single quotes.".to_owned())
            }
            _ => Err("COPY needs the name of a file in single quotes.".to_owned()),
        }
    }

    /// `name = value`; the value is text without its quotes.
    fn option(&mut self) -> Result<(String, String), String> {
        let improper = || "COPY needs options such as HEADER = true behind WITH.".to_owned();
        let (_, name) = self.next().ok_or_else(improper)?;
        if !self.accept("=") {
            return Err(improper());
        }
        let (class, value) = self.next().ok_or_else(improper)?;
        let value = match class {
            Class::String => unquote(value),
            _ => value.to_owned(),
        };
        Ok((name.to_uppercase(), value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_are_read() {
        let copy = parse(
            "COPY ks.\"T\" (a, \"B\") FROM 'x.csv' WITH HEADER = true AND delimiter = '|' AND NULL='-'",
        )
        .unwrap();
        assert_eq!((copy.keyspace.as_deref(), copy.table.as_str()), (Some("ks"), "T"));
        assert_eq!(copy.columns, ["a", "B"]);
        assert_eq!(copy.end, End::From("x.csv".into()));
        assert!(copy.options.has_header);
        assert_eq!(
            (copy.options.dialect.delimiter, copy.options.null.as_str()),
            (b'|', "-")
        );
    }

    #[test]
    fn a_mistake_is_named() {
        for (text, words) in [
            ("COPY", "name of a table"),
            ("COPY t", "FROM or TO"),
            ("COPY t FROM x", "single quotes"),
            ("COPY t FROM STDIN", "not built"),
            ("COPY t TO 'x' WITH", "HEADER = true"),
            (
                "COPY t TO 'x' WITH SKIPROWS = 1",
                "COPY TO has no option SKIPROWS",
            ),
            (
                "COPY t FROM 'x' WITH NUMPROCESSES = 4",
                "NUMPROCESSES has no meaning here",
            ),
            ("COPY t FROM 'x' WITH DELIMITER = 'ab'", "one character"),
            ("COPY t FROM 'x' WITH MAXROWS = many", "MAXROWS is a number"),
            ("COPY t FROM 'x' y", "problem at 'y'"),
        ] {
            let problem = parse(text).unwrap_err();
            assert!(problem.contains(words), "{text}: {problem}");
        }
    }
}
