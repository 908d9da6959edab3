//! [`Options`]: the options behind WITH.

use crate::columnar::{self, Kind};
use crate::copy::progress::Terms;
use crate::csv::Dialect;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// CSV.
    Csv,
    /// Parquet or Arrow.
    Columnar(Kind),
}

impl FileFormat {
    /// The format with this name, which is also the ending of its files.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "csv" => Self::Csv,
            "parquet" => Self::Columnar(Kind::Parquet),
            "arrow" => Self::Columnar(Kind::Arrow),
            _ => return None,
        })
    }

    /// The name of the format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Columnar(Kind::Parquet) => "parquet",
            Self::Columnar(Kind::Arrow) => "arrow",
        }
    }

    /// Whether the program has this format.
    ///
    /// # Errors
    /// It was built without.
    pub fn check(self) -> Result<(), String> {
        match self {
            Self::Csv => Ok(()),
            Self::Columnar(_) => columnar::check(),
        }
    }
}

/// The options of a COPY. Compat: names and defaults of cqlsh.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// FORMAT; `None` means that the name of the file decides.
    pub format: Option<FileFormat>,
    /// HEADER: the first line has the names of the columns.
    pub has_header: bool,
    /// DELIMITER, QUOTE, ESCAPE
    pub dialect: Dialect,
    /// NULL: the text of null.
    pub null: String,
    /// PAGESIZE: rows that are read at once.
    pub page_rows: u32,
    /// MAXREQUESTS: requests that are under way at once.
    pub requests_max: usize,
    /// MAXBATCHSIZE: rows that are written with one request.
    pub batch_rows_max: usize,
    /// SKIPROWS
    pub skipped_rows: u64,
    /// MAXROWS
    pub rows_max: Option<u64>,
    /// MAXPARSEERRORS and MAXINSERTERRORS: rows that may fail before the import ends; `None` is no limit.
    pub failures_max: Option<u64>,
    /// ERRFILE
    pub error_file: Option<String>,
    /// RESUME: continues a COPY that was interrupted.
    pub is_resumed: bool,
    /// TTL
    pub ttl_secs: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            format: None,
            has_header: false,
            dialect: Dialect {
                delimiter: b',',
                quote: b'"',
                escape: b'\\',
            },
            null: String::new(),
            page_rows: 1000,
            requests_max: 256,
            // Compat: 20 in cqlsh, whose batches are of one partition. Cassandra warns of unlogged batches of more than ten.
            batch_rows_max: 10,
            skipped_rows: 0,
            rows_max: None,
            failures_max: Some(1000),
            error_file: None,
            is_resumed: false,
            ttl_secs: None,
        }
    }
}

/// Options of cqlsh that set how its processes work. They are refused.
const MEANINGLESS: [&str; 13] = [
    "CHUNKSIZE",
    "CONFIGFILE",
    "INGESTRATE",
    "MAXATTEMPTS",
    "MAXINFLIGHTMESSAGES",
    "MAXOUTPUTSIZE",
    "MAXPENDINGCHUNKS",
    "MINBATCHSIZE",
    "NUMPROCESSES",
    "PAGETIMEOUT",
    "PREPAREDSTATEMENTS",
    "RATEFILE",
    "REPORTFREQUENCY",
];

impl Options {
    /// Sets an option.
    ///
    /// # Errors
    /// There is no such option in this direction, or it has no such value.
    pub fn set(&mut self, name: &str, value: &str, is_import: bool) -> Result<(), String> {
        match (name, is_import) {
            ("FORMAT", _) => {
                let format = FileFormat::named(value);
                self.format =
                    Some(format.ok_or_else(|| format!("FORMAT is csv, parquet or arrow, not '{value}'."))?);
            }
            ("HEADER", _) => self.has_header = parse_bool(name, value)?,
            ("DELIMITER", _) => self.dialect.delimiter = parse_byte(name, value)?,
            ("QUOTE", _) => self.dialect.quote = parse_byte(name, value)?,
            ("ESCAPE", _) => self.dialect.escape = parse_byte(name, value)?,
            ("RESUME", _) => self.is_resumed = parse_bool(name, value)?,
            ("NULL", _) => value.clone_into(&mut self.null),
            ("PAGESIZE", false) => self.page_rows = parse_number(name, value, 1)?,
            ("MAXREQUESTS", true) => {
                self.requests_max = parse_number::<u16>(name, value, 1)?.min(32_767).into()
            }
            ("MAXBATCHSIZE", true) => self.batch_rows_max = parse_number::<u16>(name, value, 1)?.into(),
            ("SKIPROWS", true) => self.skipped_rows = parse_number(name, value, 0)?,
            ("MAXROWS", true) => self.rows_max = parse_limit(name, value)?,
            ("MAXPARSEERRORS" | "MAXINSERTERRORS", true) => self.failures_max = parse_limit(name, value)?,
            ("ERRFILE", true) => self.error_file = Some(value.to_owned()),
            ("TTL", true) => self.ttl_secs = Some(parse_number(name, value, 1)?),
            (name, _) if MEANINGLESS.contains(&name) => {
                return Err(format!(
                    "{name} has no meaning here: COPY works in one process, with many requests at once (MAXREQUESTS)."
                ));
            }
            (name, true) => return Err(format!("COPY FROM has no option {name} here.")),
            (name, false) => return Err(format!("COPY TO has no option {name} here.")),
        }
        Ok(())
    }
}

impl Options {
    /// The options that decide how a row becomes a record, and the reverse.
    pub fn terms(&self) -> Terms {
        let character = |byte: u8| char::from(byte).to_string();
        let terms = [
            ("HEADER", self.has_header.to_string()),
            ("DELIMITER", character(self.dialect.delimiter)),
            ("QUOTE", character(self.dialect.quote)),
            ("ESCAPE", character(self.dialect.escape)),
            ("NULL", self.null.clone()),
            ("SKIPROWS", self.skipped_rows.to_string()),
        ];
        terms.map(|(name, value)| (name.to_owned(), value)).into()
    }
}

fn parse_bool(name: &str, value: &str) -> Result<bool, String> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" => Ok(false),
        _ => Err(format!("{name} is true or false, not '{value}'.")),
    }
}

fn parse_byte(name: &str, value: &str) -> Result<u8, String> {
    match value.as_bytes() {
        [byte] => Ok(*byte),
        b"\\t" => Ok(b'\t'),
        _ => Err(format!("{name} is one character of ASCII, not '{value}'.")),
    }
}

fn parse_number<T: std::str::FromStr + PartialOrd>(name: &str, value: &str, least: T) -> Result<T, String> {
    let number = value.parse().ok().filter(|number| *number >= least);
    number.ok_or_else(|| format!("{name} is a number, not '{value}'."))
}

/// Parses a limit; -1 means no limit.
fn parse_limit(name: &str, value: &str) -> Result<Option<u64>, String> {
    match value {
        "-1" => Ok(None),
        _ => parse_number(name, value, 0).map(Some),
    }
}
