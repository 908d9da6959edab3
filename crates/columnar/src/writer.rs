//! [`RowWriter`]: pages of rows to the bytes of a file.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{Field, Schema, SchemaRef};
use ilion_types::CqlType;

use crate::Error;
use crate::arrays::array_of;
use crate::arrow_type::{FileKind, arrow_type};
use crate::parquet_writer::ParquetWriter;

/// Turns rows into the bytes of a file.
pub struct RowWriter {
    kind: FileKind,
    columns: Vec<CqlType>,
    schema: SchemaRef,
    encoder: Encoder,
}

enum Encoder {
    Parquet(ParquetWriter),
    Arrow(FileWriter<Vec<u8>>),
}

impl RowWriter {
    /// A file with these columns.
    ///
    /// # Errors
    /// Files of this kind cannot have such columns.
    pub fn new(kind: FileKind, columns: &[(&str, &CqlType)]) -> Result<Self, Error> {
        let schema = schema_of(kind, columns);
        let encoder = match kind {
            FileKind::Arrow => Encoder::Arrow(FileWriter::try_new(Vec::new(), &schema)?),
            FileKind::Parquet => Encoder::Parquet(ParquetWriter::new(schema.clone())?),
        };
        Ok(Self::with_encoder(kind, columns, schema, encoder))
    }

    /// Continues a Parquet file of this size with these columns; the footer is what [`Self::footer`] of the earlier writer has returned there.
    ///
    /// # Errors
    /// The footer is damaged, or does not fit the size or the columns.
    pub fn resume(columns: &[(&str, &CqlType)], size_bytes: u64, footer: &[u8]) -> Result<Self, Error> {
        let kind = FileKind::Parquet;
        let schema = schema_of(kind, columns);
        let writer = ParquetWriter::resume(schema.clone(), size_bytes, footer)?;
        Ok(Self::with_encoder(
            kind,
            columns,
            schema,
            Encoder::Parquet(writer),
        ))
    }

    fn with_encoder(
        kind: FileKind,
        columns: &[(&str, &CqlType)],
        schema: SchemaRef,
        encoder: Encoder,
    ) -> Self {
        Self {
            kind,
            columns: columns.iter().map(|(_, cql_type)| (*cql_type).clone()).collect(),
            schema,
            encoder,
        }
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
        Ok(match &mut self.encoder {
            Encoder::Parquet(writer) => writer.take(),
            Encoder::Arrow(writer) => std::mem::take(writer.get_mut()),
        })
    }

    /// What would complete the file behind the bytes so far. [`Self::resume`] can continue the file there. `None` within a row group, and for
    /// Arrow files.
    ///
    /// # Errors
    /// The file is larger than its format allows.
    pub fn footer(&self) -> Result<Option<Vec<u8>>, Error> {
        match &self.encoder {
            Encoder::Parquet(writer) => writer.footer(),
            Encoder::Arrow(_) => Ok(None),
        }
    }

    /// The last bytes of the file.
    ///
    /// # Errors
    /// The file is larger than its format allows.
    pub fn finish(self) -> Result<Vec<u8>, Error> {
        Ok(match self.encoder {
            Encoder::Parquet(writer) => writer.finish()?,
            Encoder::Arrow(writer) => writer.into_inner()?,
        })
    }
}

fn schema_of(kind: FileKind, columns: &[(&str, &CqlType)]) -> SchemaRef {
    let fields = columns.iter();
    let fields = fields.map(|(name, cql_type)| Field::new(*name, arrow_type(cql_type, kind), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
