//! [`Encoder`]: pages of a table as the bytes of a CSV, Parquet or Arrow file.

use ilion_protocol::Rows;

use crate::columnar::{Kind, PageWriter};
use crate::copy::options::{FileFormat, Options};
use crate::copy::{Named, field};

/// Turns pages of rows into the bytes of a file.
pub(super) enum Encoder<'o> {
    /// A CSV file.
    Csv(&'o Options),
    /// A Parquet or Arrow file before its first page, with which the types of its columns come.
    Begun(Start),
    /// A Parquet or Arrow file.
    Columnar(Box<PageWriter>),
}

/// Where a writer begins.
pub(super) enum Start {
    /// At the beginning of a file.
    New(Kind),
    /// In a Parquet file of this size, which this footer would have completed.
    Behind {
        /// Bytes before the place.
        size_bytes: u64,
        /// The footer.
        footer: Vec<u8>,
    },
}

impl<'o> Encoder<'o> {
    /// A new file.
    pub fn new(format: FileFormat, options: &'o Options) -> Self {
        match format {
            FileFormat::Csv => Self::Csv(options),
            FileFormat::Columnar(kind) => Self::Begun(Start::New(kind)),
        }
    }

    /// A file that is continued behind these bytes; `footer` is that of the encoder that has written them.
    pub fn resume(format: FileFormat, options: &'o Options, size_bytes: u64, footer: Vec<u8>) -> Self {
        match format {
            FileFormat::Csv => Self::Csv(options),
            FileFormat::Columnar(_) => Self::Begun(Start::Behind { size_bytes, footer }),
        }
    }

    /// The bytes before the first row.
    pub fn head(&self, named: &Named) -> Vec<u8> {
        match self {
            Self::Csv(options) if options.has_header => {
                let names = named.columns.iter().map(String::as_str);
                options.dialect.line(names).into_bytes()
            }
            _ => Vec::new(),
        }
    }

    /// Adds a page; returns the next bytes of the file.
    ///
    /// # Errors
    /// A value is none of its type; the file cannot have such columns, or cannot be continued.
    pub fn page(&mut self, rows: &Rows) -> Result<Vec<u8>, String> {
        if let Self::Begun(start) = self {
            let columns = rows.metadata.columns.as_deref().unwrap_or_default();
            let writer = match start {
                Start::New(kind) => PageWriter::new(*kind, columns)?,
                Start::Behind { size_bytes, footer } => PageWriter::resume(columns, *size_bytes, footer)?,
            };
            *self = Self::Columnar(Box::new(writer));
        }
        match self {
            Self::Csv(options) => lines_of(rows, options),
            Self::Begun(_) => Ok(Vec::new()),
            Self::Columnar(writer) => writer.page(rows),
        }
    }

    /// What would complete the file behind the bytes so far; `None` if it cannot be continued there.
    ///
    /// # Errors
    /// The file is larger than its format allows.
    pub fn footer(&self) -> Result<Option<Vec<u8>>, String> {
        match self {
            Self::Csv(_) => Ok(Some(Vec::new())),
            Self::Begun(_) => Ok(None),
            Self::Columnar(writer) => writer.footer(),
        }
    }

    /// The last bytes of the file.
    ///
    /// # Errors
    /// The file is larger than its format allows.
    pub fn finish(self) -> Result<Vec<u8>, String> {
        match self {
            Self::Csv(_) | Self::Begun(_) => Ok(Vec::new()),
            Self::Columnar(writer) => writer.finish(),
        }
    }
}

fn lines_of(rows: &Rows, options: &Options) -> Result<Vec<u8>, String> {
    let columns = rows.metadata.columns.as_deref().unwrap_or_default();
    let mut lines = Vec::new();
    for row in rows.rows() {
        let mut fields = Vec::with_capacity(row.len());
        for (cell, column) in row.iter().zip(columns) {
            let field = cell.map_or_else(
                || Ok(options.null.clone()),
                |bytes| field::print(&column.cql_type, bytes),
            );
            fields.push(field.map_err(|error| format!("{}: {error}", column.name))?);
        }
        let line = options.dialect.line(fields.iter().map(String::as_str));
        lines.extend_from_slice(line.as_bytes());
    }
    Ok(lines)
}
