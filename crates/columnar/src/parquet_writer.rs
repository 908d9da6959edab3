//! [`ParquetWriter`]: a Parquet file that another writer can continue behind its last row group.

use std::io::{self, Write};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    FileMetaData, ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader, ParquetMetaDataWriter,
    RowGroupMetaData,
};
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::Error;

/// Largest row group, in rows and in bytes before compression. A group ends with a batch, and is in memory until then.
const GROUP_ROWS_MAX: usize = 100_000;
const GROUP_BYTES_MAX: usize = 64 << 20;
/// Behind the metadata: its size, and a magic number.
const FOOTER_END_BYTES: usize = 8;
/// Bytes of padding that are written at once.
const PADDING_BYTES: usize = 1 << 20;

pub(crate) struct ParquetWriter {
    writer: ArrowWriter<Buffer>,
    /// The metadata of the file, but for its row groups.
    file: FileMetaData,
    /// Row groups of an earlier writer.
    earlier: Vec<RowGroupMetaData>,
}

/// Bytes that the caller has not taken yet.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// Bytes of the file that an earlier writer has written: that many are dropped first.
    earlier_bytes: u64,
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let dropped = usize::try_from(self.earlier_bytes).map_or(bytes.len(), |left| left.min(bytes.len()));
        self.earlier_bytes -= dropped as u64;
        self.bytes.extend_from_slice(&bytes[dropped..]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ParquetWriter {
    /// A file with these columns.
    pub fn new(schema: SchemaRef) -> Result<Self, Error> {
        Self::behind(schema, Buffer::default(), Vec::new())
    }

    /// Continues a file of this size, which an earlier writer would have completed with this footer.
    ///
    /// # Errors
    /// The footer is damaged, or is of a file with other columns or of another size.
    pub fn resume(schema: SchemaRef, size_bytes: u64, footer: &[u8]) -> Result<Self, Error> {
        let unfit = |problem: &str| Error::Parquet(ParquetError::General(problem.to_owned()));
        let metadata = footer.get(..footer.len().saturating_sub(FOOTER_END_BYTES));
        // The default keeps only a part of the encoding statistics; the footer of the whole file needs them all.
        let options = ParquetMetaDataOptions::new().with_encoding_stats_as_mask(false);
        let earlier = ParquetMetaDataReader::decode_metadata_with_options(
            metadata.unwrap_or_default(),
            Some(&options),
        )?;
        let chunks = earlier.row_groups().iter().flat_map(RowGroupMetaData::columns);
        let ends = chunks.map(|chunk| {
            let offset = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
            offset.saturating_add(chunk.compressed_size())
        });
        if ends.max() != i64::try_from(size_bytes).ok() {
            return Err(unfit("the footer is of a file of another size"));
        }
        let buffer = Buffer {
            bytes: Vec::new(),
            earlier_bytes: size_bytes,
        };
        let groups = earlier.row_groups().to_vec();
        let mut resumed = Self::behind(schema, buffer, groups)?;
        if earlier.file_metadata().schema() != resumed.file.schema() {
            return Err(unfit("the footer is of a file with other columns"));
        }
        // `ArrowWriter` takes the offset of a row group from the number of bytes that it has written. So it writes zeros in place of the bytes
        // that are there already, and `Buffer` drops them.
        let padding = vec![0; PADDING_BYTES];
        let mut left = size_bytes.saturating_sub(resumed.writer.bytes_written() as u64);
        while left > 0 {
            let count = usize::try_from(left).map_or(PADDING_BYTES, |left| left.min(PADDING_BYTES));
            resumed
                .writer
                .write_all(&padding[..count])
                .map_err(ParquetError::from)?;
            left -= count as u64;
        }
        resumed.writer.sync().map_err(ParquetError::from)?;
        Ok(resumed)
    }

    fn behind(schema: SchemaRef, buffer: Buffer, earlier: Vec<RowGroupMetaData>) -> Result<Self, Error> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(None)
            // An index of pages would stand behind all row groups: a continued file could not have one.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_created_by(format!("ilion {}", env!("CARGO_PKG_VERSION")))
            .build();
        let empty = ArrowWriter::try_new(io::sink(), schema.clone(), Some(properties.clone()))?.close()?;
        Ok(Self {
            writer: ArrowWriter::try_new(buffer, schema, Some(properties))?,
            file: empty.file_metadata().clone(),
            earlier,
        })
    }

    /// Adds rows.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        self.writer.write(batch)?;
        let is_full = self.writer.in_progress_rows() + batch.num_rows() > GROUP_ROWS_MAX
            || self.writer.in_progress_size() > GROUP_BYTES_MAX;
        if is_full { self.end_group() } else { Ok(()) }
    }

    fn end_group(&mut self) -> Result<(), Error> {
        self.writer.flush()?;
        self.writer.sync().map_err(ParquetError::from)?;
        Ok(())
    }

    /// The next bytes of the file.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.writer.inner_mut().bytes)
    }

    /// What would complete the file behind the bytes that were taken; `None` within a row group.
    pub fn footer(&self) -> Result<Option<Vec<u8>>, Error> {
        if self.writer.in_progress_rows() > 0 {
            return Ok(None);
        }
        let groups = self.earlier.iter().chain(self.writer.flushed_row_groups());
        let groups = (0..).zip(groups).map(|(ordinal, group)| {
            let group = group.clone().into_builder();
            group.set_ordinal(ordinal).build()
        });
        let groups: Vec<_> = groups.collect::<Result<_, _>>()?;
        let rows = groups.iter().map(RowGroupMetaData::num_rows).sum();
        let file = FileMetaData::new(
            self.file.version(),
            rows,
            self.file.created_by().map(str::to_owned),
            self.file.key_value_metadata().cloned(),
            self.file.schema_descr_ptr(),
            self.file.column_orders().cloned(),
        );
        let mut footer = Vec::new();
        ParquetMetaDataWriter::new(&mut footer, &ParquetMetaData::new(file, groups)).finish()?;
        Ok(Some(footer))
    }

    /// The last bytes of the file.
    pub fn finish(mut self) -> Result<Vec<u8>, Error> {
        self.end_group()?;
        let mut bytes = self.take();
        bytes.extend(self.footer()?.unwrap_or_default());
        Ok(bytes)
    }
}
