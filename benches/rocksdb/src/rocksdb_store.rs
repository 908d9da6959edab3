//! RocksDB as shipped, with a Bloom filter, LZ4, and as much memory as Ilion has.

use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use rocksdb::{BlockBasedOptions, Cache, DB, DBCompressionType, Options};

use crate::store::{Memory, Store, Visit};

pub struct RocksDbStore {
    db: DB,
}

/// What says that work is left.
const UNDER_WAY: [&str; 4] = [
    "rocksdb.mem-table-flush-pending",
    "rocksdb.num-running-flushes",
    "rocksdb.compaction-pending",
    "rocksdb.num-running-compactions",
];

impl RocksDbStore {
    pub fn open(directory: &Path, memory: &Memory) -> anyhow::Result<Self> {
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(&Cache::new_lru_cache(usize::try_from(memory.blocks_mib << 20)?)?);
        blocks.set_bloom_filter(10.0, false);
        blocks.set_format_version(5);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_error_if_exists(true);
        options.set_block_based_table_factory(&blocks);
        options.set_compression_type(DBCompressionType::Lz4);
        // Four buffers, of which one takes writes while the others are flushed.
        options.set_write_buffer_size(usize::try_from((memory.memtables_mib << 20) / 4)?);
        options.set_max_write_buffer_number(4);
        options.increase_parallelism(2);
        Ok(Self {
            db: DB::open(&options, directory)?,
        })
    }

    fn number(&self, property: &str) -> anyhow::Result<u64> {
        let value = self.db.property_int_value(property)?;
        value.with_context(|| format!("RocksDB has no {property}"))
    }
}

impl Store for RocksDbStore {
    fn name(&self) -> &'static str {
        "RocksDB"
    }

    fn put(&self, key: &[u8], value: &[u8]) -> anyhow::Result<()> {
        Ok(self.db.put(key, value)?)
    }

    fn get(&self, key: &[u8], visit: Visit<'_>) -> anyhow::Result<()> {
        if let Some(value) = self.db.get_pinned(key)? {
            visit(key, &value);
        }
        Ok(())
    }

    fn range(&self, key: &[u8], limit: u32, visit: Visit<'_>) -> anyhow::Result<()> {
        let mut rows = self.db.raw_iterator();
        rows.seek(key);
        for _ in 0..limit {
            let Some((key, value)) = rows.item() else {
                break;
            };
            visit(key, value);
            rows.next();
        }
        Ok(rows.status()?)
    }

    fn settle(&self) -> anyhow::Result<()> {
        self.db.flush()?;
        loop {
            let left: u64 = UNDER_WAY
                .iter()
                .map(|name| self.number(name))
                .sum::<anyhow::Result<u64>>()?;
            if left == 0 {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn files(&self) -> anyhow::Result<u64> {
        Ok(self.db.live_files()?.len() as u64)
    }
}
