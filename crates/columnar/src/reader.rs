//! [`RowReader`]: the rows of a Parquet file.

use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;
use ilion_env::ReadFile;
use ilion_types::CqlType;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use crate::Error;
use crate::cells::{Cell, cells_of};

const BATCH_ROWS: usize = 1024;

/// Reads the rows of a Parquet file. Its columns are found by name.
pub struct RowReader {
    batches: ParquetRecordBatchReader,
    columns: Vec<(String, CqlType)>,
}

/// The names and the number of rows of a Parquet file, before it is read.
pub struct Opened {
    builder: ParquetRecordBatchReaderBuilder<Source>,
}

impl RowReader {
    /// Reads the schema of a file.
    ///
    /// # Errors
    /// It is no Parquet file, or it is damaged.
    pub fn open(file: Arc<dyn ReadFile>) -> Result<Opened, Error> {
        // The types of Arrow that its writer had do not matter: there are fewer types of Parquet.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(Source(file), options)?;
        Ok(Opened { builder })
    }

    /// The next rows, at least one; `None` at the end.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn next_rows(&mut self) -> Result<Option<Vec<Vec<Cell>>>, Error> {
        let Some(batch) = self.batches.next() else {
            return Ok(None);
        };
        let batch = batch?;
        let mut rows: Vec<Vec<Cell>> = Vec::new();
        rows.resize_with(batch.num_rows(), || Vec::with_capacity(self.columns.len()));
        for (name, cql_type) in &self.columns {
            let array = batch
                .column_by_name(name)
                .ok_or_else(|| Error::NoColumn(name.clone()))?;
            for (row, cell) in rows.iter_mut().zip(cells_of(cql_type, array)) {
                row.push(cell);
            }
        }
        Ok(Some(rows))
    }
}

impl Opened {
    /// The names of the columns.
    pub fn column_names(&self) -> Vec<String> {
        let fields = self.builder.schema().fields();
        fields.iter().map(|field| field.name().clone()).collect()
    }

    /// Number of rows.
    pub fn row_count(&self) -> u64 {
        let rows = self.builder.metadata().file_metadata().num_rows();
        u64::try_from(rows).unwrap_or(0)
    }

    /// Reads these columns, as values of these types, behind a number of rows.
    ///
    /// # Errors
    /// The file has no such column.
    pub fn read(self, columns: Vec<(String, CqlType)>, skipped_rows: u64) -> Result<RowReader, Error> {
        let names = self.column_names();
        let place = |(name, _): &(String, CqlType)| {
            let place = names.iter().position(|known| known == name);
            place.ok_or_else(|| Error::NoColumn(name.clone()))
        };
        let places: Vec<usize> = columns.iter().map(place).collect::<Result<_, _>>()?;
        let mask = ProjectionMask::roots(self.builder.parquet_schema(), places);
        let batches = self
            .builder
            .with_projection(mask)
            .with_batch_size(BATCH_ROWS)
            .with_offset(usize::try_from(skipped_rows).unwrap_or(usize::MAX))
            .build()?;
        Ok(RowReader { batches, columns })
    }
}

/// A file, for the library.
struct Source(Arc<dyn ReadFile>);

impl Length for Source {
    fn len(&self) -> u64 {
        self.0.size_bytes()
    }
}

impl ChunkReader for Source {
    type T = Rest;

    fn get_read(&self, start: u64) -> Result<Rest, ParquetError> {
        Ok(Rest {
            file: self.0.clone(),
            offset: start,
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let end = start.checked_add(length as u64);
        if end.is_none_or(|end| end > self.0.size_bytes()) {
            return Err(ParquetError::EOF(format!(
                "the file is damaged: it ends before byte {start} + {length}"
            )));
        }
        let mut bytes = vec![0; length];
        self.0
            .read_exact_at(start, &mut bytes)
            .map_err(|error| ParquetError::External(Box::new(error)))?;
        Ok(bytes.into())
    }
}

/// The rest of a file.
struct Rest {
    file: Arc<dyn ReadFile>,
    offset: u64,
}

impl Read for Rest {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(self.offset, into).map_err(io::Error::other)?;
        self.offset += count as u64;
        Ok(count)
    }
}
