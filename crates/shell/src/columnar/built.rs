//! Parquet and Arrow files, through the crate `columnar`.

use std::sync::Arc;

use ilion_columnar::{FileKind, Opened, RowReader, RowWriter};
use ilion_env::ReadFile;
use ilion_protocol::{ColumnSpec, Rows};
use ilion_types::CqlType;

use super::{FileCell, Kind};

/// Whether the program has these formats.
///
/// # Errors
/// Never.
#[expect(
    clippy::unnecessary_wraps,
    reason = "a program without these formats refuses them"
)]
pub fn check() -> Result<(), String> {
    Ok(())
}

/// Turns pages of a result into the bytes of a file.
pub struct PageWriter(RowWriter);

impl PageWriter {
    /// A file with these columns.
    ///
    /// # Errors
    /// The file cannot have such columns.
    pub fn new(kind: Kind, columns: &[ColumnSpec]) -> Result<Self, String> {
        let kind = match kind {
            Kind::Parquet => FileKind::Parquet,
            Kind::Arrow => FileKind::Arrow,
        };
        let writer = RowWriter::new(kind, &typed(columns));
        writer.map(Self).map_err(|error| error.to_string())
    }

    /// Continues a Parquet file of this size with these columns, behind rows whose footer is this one.
    ///
    /// # Errors
    /// The footer is damaged, or does not fit the size or the columns.
    pub fn resume(columns: &[ColumnSpec], size_bytes: u64, footer: &[u8]) -> Result<Self, String> {
        let writer = RowWriter::resume(&typed(columns), size_bytes, footer);
        writer.map(Self).map_err(|error| error.to_string())
    }

    /// Adds a page; returns the next bytes of the file.
    ///
    /// # Errors
    /// A value is none of its type.
    pub fn page(&mut self, rows: &Rows) -> Result<Vec<u8>, String> {
        let rows: Vec<_> = rows.rows().collect();
        self.0.write(&rows).map_err(|error| error.to_string())
    }

    /// What would complete the file behind the bytes so far; `None` if it cannot be continued there.
    ///
    /// # Errors
    /// The file is larger than its format allows.
    pub fn footer(&self) -> Result<Option<Vec<u8>>, String> {
        self.0.footer().map_err(|error| error.to_string())
    }

    /// The last bytes of the file.
    ///
    /// # Errors
    /// The file is larger than its format allows.
    pub fn finish(self) -> Result<Vec<u8>, String> {
        self.0.finish().map_err(|error| error.to_string())
    }
}

fn typed(columns: &[ColumnSpec]) -> Vec<(&str, &CqlType)> {
    let columns = columns.iter();
    columns.map(|column| (&*column.name, &column.cql_type)).collect()
}

/// The rows of a Parquet file.
pub struct ParquetFile {
    opened: Option<Opened>,
    reader: Option<RowReader>,
}

impl ParquetFile {
    /// Reads the schema of a file.
    ///
    /// # Errors
    /// It is no Parquet file, or it is damaged.
    pub fn open(file: Arc<dyn ReadFile>) -> Result<Self, String> {
        let opened = RowReader::open(file).map_err(|error| error.to_string())?;
        Ok(Self {
            opened: Some(opened),
            reader: None,
        })
    }

    /// The names of the columns. Requires: no rows were read.
    pub fn column_names(&self) -> Vec<String> {
        self.opened.as_ref().map_or_else(Vec::new, Opened::column_names)
    }

    /// Number of rows. Requires: no rows were read.
    pub fn row_count(&self) -> u64 {
        self.opened.as_ref().map_or(0, Opened::row_count)
    }

    /// Begins to read these columns, which are found by name, behind a number of rows.
    ///
    /// # Errors
    /// The file has no such column.
    pub fn begin(&mut self, columns: &[ColumnSpec], skipped_rows: u64) -> Result<(), String> {
        let columns = columns.iter();
        let columns = columns.map(|column| (column.name.to_string(), column.cql_type.clone()));
        if let Some(opened) = self.opened.take() {
            let reader = opened.read(columns.collect(), skipped_rows);
            self.reader = Some(reader.map_err(|error| error.to_string())?);
        }
        Ok(())
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn next_rows(&mut self) -> Result<Option<Vec<Vec<FileCell>>>, String> {
        let Some(reader) = &mut self.reader else {
            return Ok(None);
        };
        let rows = reader.next_rows().map_err(|error| error.to_string())?;
        let told = |row: Vec<ilion_columnar::Cell>| {
            let cells = row.into_iter();
            cells
                .map(|cell| cell.map_err(|wrong| (wrong.text, wrong.problem)))
                .collect()
        };
        Ok(rows.map(|rows| rows.into_iter().map(told).collect()))
    }
}
