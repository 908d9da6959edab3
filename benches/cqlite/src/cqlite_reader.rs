//! The file as cqlite-core reads it.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use cqlite_core::schema::{TableSchema, parse_cql_schema};
use cqlite_core::storage::sstable::SSTableReader;
use cqlite_core::{Config, Platform, ScanRow, TableId};
use tokio::runtime::Runtime;

/// Batches of rows between its threads.
const BATCHES: usize = 16;

pub struct Reader {
    runtime: Runtime,
    reader: Arc<SSTableReader>,
    schema: TableSchema,
}

impl Reader {
    pub fn open(data: &Path, schema: &str) -> anyhow::Result<Self> {
        let runtime = Runtime::new()?;
        let config = Config::default();
        let reader = runtime.block_on(async {
            let platform = Arc::new(Platform::new(&config).await?);
            SSTableReader::open(data, &config, platform).await
        })?;
        Ok(Self {
            runtime,
            reader: Arc::new(reader),
            schema: parse_cql_schema(schema)?,
        })
    }

    /// Reads all partitions; gives the number of rows.
    pub fn read(&self) -> anyhow::Result<u64> {
        let table = TableId::new(format!("{}.{}", self.schema.keyspace, self.schema.table));
        let schema = Some(self.schema.clone());
        self.runtime.block_on(async {
            let reader = self.reader.clone();
            let mut batches = reader.scan_stream_batched(table, None, None, schema, BATCHES);
            let mut rows = 0;
            while let Some(batch) = batches.recv().await {
                for (key, row) in &batch? {
                    black_box(key);
                    rows += u64::from(matches!(black_box(row), ScanRow::Row(_)));
                }
            }
            Ok(rows)
        })
    }
}
