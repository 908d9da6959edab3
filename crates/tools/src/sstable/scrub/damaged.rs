//! Opens a damaged SSTable as far as possible.

use std::io::Write;
use std::sync::Arc;

use anyhow::Context as _;
use ilion_env::Env;
use ilion_sstable::{
    ChunkReader, Component, DataScan, Descriptor, Error, Statistics, StatsMetadata, read_component,
};
use ilion_types::Partitioner;

use crate::sstable::output_schema::OutputSchema;

/// Assumed bytes of a partition, if the number of partitions is unknown.
const PARTITION_BYTES_GUESSED: u64 = 256;

/// An SSTable whose rows can be read.
pub(super) struct Damaged {
    pub(super) descriptor: Descriptor,
    pub(super) statistics: Statistics,
    pub(super) schema: OutputSchema,
    pub(super) partitioner: Partitioner,
    pub(super) data: Arc<ChunkReader>,
    /// Whether checksums protect the rows.
    pub(super) is_protected: bool,
}

impl Damaged {
    pub(super) fn open(env: &dyn Env, descriptor: &Descriptor, out: &mut dyn Write) -> anyhow::Result<Self> {
        let statistics = read_statistics(env, descriptor, out)?;
        let data = Arc::new(open_data(env, descriptor, out)?);
        let mut schema = OutputSchema::of(env, &[(descriptor, &statistics)])?;
        let guessed = data.data_length() / PARTITION_BYTES_GUESSED;
        if schema.options.estimated_partitions == 0 {
            schema.options.estimated_partitions = guessed.max(1);
        }
        Ok(Self {
            is_protected: data.compression().is_some() || env.exists(&descriptor.path(&Component::Crc)),
            partitioner: schema.options.partitioner,
            descriptor: descriptor.clone(),
            statistics,
            schema,
            data,
        })
    }

    pub(super) fn scan(&self) -> anyhow::Result<DataScan> {
        let scan = DataScan::new(
            self.data.clone(),
            &self.statistics.header,
            self.descriptor.version,
            &self.schema.table,
            self.partitioner,
        );
        Ok(scan?)
    }
}

/// Reads Statistics.db; if it is damaged, only its header.
fn read_statistics(
    env: &dyn Env,
    descriptor: &Descriptor,
    out: &mut dyn Write,
) -> anyhow::Result<Statistics> {
    let path = descriptor.path(&Component::Statistics);
    let bytes = read_component(env, descriptor, &Component::Statistics)?;
    let bytes =
        bytes.with_context(|| format!("{} is missing: rows cannot be read without it", path.display()))?;
    let error = match Statistics::decode(&bytes, descriptor.version, &path) {
        Ok(statistics) => return Ok(statistics),
        Err(error) => error,
    };
    let salvaged = Statistics::salvage(&bytes, descriptor.version, &path);
    let (header, validation) = salvaged.context("rows cannot be read without the header in Statistics.db")?;
    writeln!(out, "{descriptor}: {error}; what rows are can still be read")?;
    Ok(Statistics {
        validation,
        cardinality: None,
        stats: StatsMetadata::unknown(),
        header,
    })
}

/// Opens Data.db; if only the checksums are damaged, opens it without them.
fn open_data(env: &dyn Env, descriptor: &Descriptor, out: &mut dyn Write) -> anyhow::Result<ChunkReader> {
    let crc = descriptor.path(&Component::Crc);
    match ChunkReader::open(env, descriptor, None) {
        Ok(data) => Ok(data),
        Err(error @ Error::Corrupt { .. }) if matches!(&error, Error::Corrupt { file, .. } if *file == crc) =>
        {
            writeln!(out, "{descriptor}: {error}; rows are read without checking them")?;
            Ok(ChunkReader::open_unchecked(
                env,
                &descriptor.path(&Component::Data),
                None,
            )?)
        }
        Err(error) => Err(error).context("chunks cannot be found without CompressionInfo.db"),
    }
}
