//! [`RowWriter`]: pages of rows to the bytes of a file.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{Field, Schema, SchemaRef};
use ilion_types::CqlType;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use crate::Error;
use crate::arrays::array_of;
use crate::arrow_type::{FileKind, arrow_type};

/// Largest row group of a Parquet file: the rows that are in memory at once.
const GROUP_ROWS_MAX: usize = 100_000;
const GROUP_BYTES_MAX: usize = 64 << 20;

/// Turns rows into the bytes of a file.
pub struct RowWriter {
    kind: FileKind,
    columns: Vec<CqlType>,
    schema: SchemaRef,
    encoder: Encoder,
}

enum Encoder {
    Parquet(ArrowWriter<Buffer>),
    Arrow(FileWriter<Buffer>),
}

/// Bytes that the caller has not taken yet.
#[derive(Default)]
struct Buffer(Vec<u8>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl RowWriter {
    /// A file with these columns.
    ///
    /// # Errors
    /// Files of this kind cannot have such columns.
    pub fn new(kind: FileKind, columns: &[(&str, &CqlType)]) -> Result<Self, Error> {
        let fields = columns.iter();
        let fields = fields.map(|(name, cql_type)| Field::new(*name, arrow_type(cql_type, kind), true));
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let encoder = match kind {
            FileKind::Arrow => Encoder::Arrow(FileWriter::try_new(Buffer::default(), &schema)?),
            FileKind::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::SNAPPY)
                    .set_max_row_group_row_count(Some(GROUP_ROWS_MAX))
                    .set_max_row_group_bytes(Some(GROUP_BYTES_MAX))
                    .set_created_by(format!("ilion {}", env!("CARGO_PKG_VERSION")))
                    .build();
                let writer = ArrowWriter::try_new(Buffer::default(), schema.clone(), Some(properties))?;
                Encoder::Parquet(writer)
            }
        };
        Ok(Self {
            kind,
            columns: columns.iter().map(|(_, cql_type)| (*cql_type).clone()).collect(),
            schema,
            encoder,
        })
    }

    /// Adds rows; returns the next bytes of the file, if there are any.
    ///
    /// # Errors
    /// A value is none of its type.
    pub fn write(&mut self, rows: &[Vec<Option<&[u8]>>]) -> Result<Vec<u8>, Error> {
        if !rows.is_empty() && !self.columns.is_empty() {
            let columns = self.columns.iter().enumerate();
            let array = |(index, cql_type): (usize, &CqlType)| {
                let cells: Vec<_> = rows.iter().map(|row| row.get(index).copied().flatten()).collect();
                array_of(cql_type, &cells, self.kind).map_err(|problem| Error::Value {
                    column: self.schema.field(index).name().clone(),
                    problem,
                })
            };
            let arrays = columns.map(array).collect::<Result<_, _>>()?;
            let batch = RecordBatch::try_new(self.schema.clone(), arrays)?;
            match &mut self.encoder {
                Encoder::Parquet(writer) => writer.write(&batch)?,
                Encoder::Arrow(writer) => writer.write(&batch)?,
            }
        }
        Ok(std::mem::take(match &mut self.encoder {
            Encoder::Parquet(writer) => &mut writer.inner_mut().0,
            Encoder::Arrow(writer) => &mut writer.get_mut().0,
        }))
    }

    /// The last bytes of the file.
    ///
    /// # Errors
    /// The file is larger than its format allows.
    pub fn finish(self) -> Result<Vec<u8>, Error> {
        Ok(match self.encoder {
            Encoder::Parquet(writer) => writer.into_inner()?.0,
            Encoder::Arrow(writer) => writer.into_inner()?.0,
        })
    }
}
