//! `dump --annotate`: every byte of uncompressed Data.db with its offset, its length and its meaning.
//!
//! It decodes the bytes by the description of the format, independently of the store's reader, so that the two can be compared.
//! A line is `offset  length  bytes  name: value`. No byte is left out, so the ranges of the lines have no gaps.

mod bytes;
mod row;

use std::io::Write;
use std::sync::Arc;

use anyhow::Context as _;
use ilion_env::Env;
use ilion_rows::{DecoratedKey, NO_TIMESTAMP};
use ilion_schema::TableSchema;
use ilion_sstable::row_format::unfiltered_flag::{END_OF_PARTITION, IS_MARKER};
use ilion_sstable::{ChunkReader, DataStream, SerializationHeader, Version};

use super::arguments::DumpArguments;
use super::keys::{parse_key, print_key};
use super::progress::Progress;
use super::source::{Source, descriptors};
use bytes::Named;

const READ_AHEAD_BYTES: u64 = 128 << 10;

pub(super) fn run(env: &Arc<dyn Env>, arguments: &DumpArguments, out: &mut dyn Write) -> anyhow::Result<()> {
    for descriptor in descriptors(env.as_ref(), &arguments.files.files)? {
        let source = Source::open(env, &descriptor)?;
        let data = Arc::new(ChunkReader::open(env.as_ref(), &descriptor, None)?);
        let mut progress = Progress::new("annotate", data.data_length());
        let mut annotator = Annotator {
            bytes: Named::new(DataStream::sequential(data, 0, READ_AHEAD_BYTES), out),
            header: source.sstable.header().clone(),
            table: source.table.clone(),
            version: descriptor.version,
        };
        if arguments.keys.is_empty() {
            while !annotator.bytes.is_at_end() {
                progress.at(annotator.bytes.position());
                annotator.partition()?;
            }
            continue;
        }
        for text in &arguments.keys {
            let key = DecoratedKey::new(source.partitioner, parse_key(&source.table, text)?);
            if let Some(position) = source.sstable.position_of(&key)? {
                annotator.bytes.seek(position);
                annotator.partition()?;
            }
        }
    }
    Ok(())
}

struct Annotator<'o> {
    bytes: Named<'o>,
    header: SerializationHeader,
    table: Arc<TableSchema>,
    version: Version,
}

impl Annotator<'_> {
    fn partition(&mut self) -> anyhow::Result<()> {
        let start = self.bytes.position();
        let length = self.bytes.u16("partition key length")?;
        let table = self.table.clone();
        self.bytes
            .take(usize::from(length), "partition key", |key| print_key(&table, key))?;
        self.partition_deletion()?;
        let mut previous = start;
        if !self.header.statics.is_empty() {
            self.static_row(&mut previous)?;
        }
        let mut previous = start;
        loop {
            let position = self.bytes.position();
            let flags = self.bytes.flags("row flags", row::flag_names)?;
            if flags & END_OF_PARTITION != 0 {
                return Ok(());
            }
            self.bytes.indent();
            if flags & IS_MARKER != 0 {
                self.marker(position, previous)?;
            } else {
                self.row(flags, position, previous)?;
            }
            self.bytes.outdent();
            previous = position;
        }
    }

    fn partition_deletion(&mut self) -> anyhow::Result<()> {
        if self.version.is_oa_or_later() {
            if self.bytes.next()? & 0x80 != 0 {
                self.bytes.take(1, "partition deletion", |_| "none".to_owned())?;
                return Ok(());
            }
            self.bytes.take(8, "partition deletion: marked at", big_endian)?;
            self.bytes.take(4, "partition deletion: local time", big_endian)?;
            return Ok(());
        }
        self.bytes.take(4, "partition deletion: local time", big_endian)?;
        self.bytes
            .take(8, "partition deletion: marked at", |bytes| match integer(bytes) {
                NO_TIMESTAMP => "none".to_owned(),
                micros => micros.to_string(),
            })?;
        Ok(())
    }
}

fn integer(bytes: &[u8]) -> i64 {
    let mut value = [0; 8];
    if let Some(low) = value.len().checked_sub(bytes.len()) {
        value[low..].copy_from_slice(bytes);
    }
    i64::from_be_bytes(value)
}

fn big_endian(bytes: &[u8]) -> String {
    integer(bytes).to_string()
}

/// Context for errors: the position in the file.
fn at(position: u64) -> String {
    format!("reading on from byte {position}")
}

impl Named<'_> {
    fn next(&mut self) -> anyhow::Result<u8> {
        let position = self.position();
        self.peek_byte().with_context(|| at(position))
    }
}
