//! The opened parts of the SSTable that is checked.

use std::sync::Arc;

use ilion_env::Env;
use ilion_schema::{ClusteringOrder, TableSchema};
use ilion_types::{KeyOrder, Partitioner};

use crate::{
    ChunkReader, Component, DataScan, Descriptor, Error, Result, Statistics, Version, read_component,
};

/// The partitioner with the order of the table's keys. Keys of hidden tables of indexes are ordered by their values; the class name of
/// their partitioner does not say how.
fn with_order(partitioner: Partitioner, table: &TableSchema) -> Partitioner {
    if partitioner != Partitioner::Local {
        return partitioner;
    }
    let keys: Vec<_> = table.partition_key().collect();
    Partitioner::Ordered(match keys[..] {
        [only] => KeyOrder::of(only.ty.clone(), only.order == ClusteringOrder::Desc),
        _ => KeyOrder::of_composite(keys.iter().map(|key| key.ty.clone()).collect()),
    })
}

/// The parts that are needed to read rows.
pub(crate) struct Opened {
    pub(crate) descriptor: Descriptor,
    pub(crate) statistics: Statistics,
    pub(crate) partitioner: Partitioner,
    pub(crate) table: Arc<TableSchema>,
    pub(crate) data: Arc<ChunkReader>,
}

impl Opened {
    pub(super) fn open(env: &dyn Env, descriptor: &Descriptor) -> Result<Self> {
        let path = descriptor.path(&Component::Statistics);
        let Some(bytes) = read_component(env, descriptor, &Component::Statistics)? else {
            return Err(Error::corrupt(
                &path,
                0,
                "the file, since rows cannot be read without it",
            ));
        };
        let statistics = Statistics::decode(&bytes, descriptor.version, &path)?;
        let partitioner = match &statistics.validation {
            Some(validation) => Partitioner::from_class(&validation.partitioner)
                .map_err(|error| Error::corrupt(&path, 0, error.to_string()))?,
            None => Partitioner::default(),
        };
        let table = statistics.header.to_table("keyspace", "table");
        let table = table.map_err(|error| Error::corrupt(&path, 0, error.to_string()))?;
        Ok(Self {
            partitioner: with_order(partitioner, &table),
            table,
            data: Arc::new(ChunkReader::open(env, descriptor, None)?),
            descriptor: descriptor.clone(),
            statistics,
        })
    }

    pub(super) fn version(&self) -> Version {
        self.descriptor.version
    }

    pub(super) fn scan(&self) -> Result<DataScan> {
        DataScan::new(
            self.data.clone(),
            &self.statistics.header,
            self.version(),
            &self.table,
            self.partitioner,
        )
    }
}
