//! The engine on a disk in memory, which flushes, compacts and restarts between statements.

use std::path::Path;
use std::sync::Arc;

use ilion_engine::{CacheOptions, Engine, EngineOptions, IndexRepair};
use ilion_env::MemEnv;
use ilion_index::Storage;
use ilion_schema::{TableId, is_system_keyspace};

use crate::clock::Clock;
use crate::session::Session;
use crate::store::TestStore;

/// What is left of an engine after it is closed.
pub struct EngineDisk {
    env: MemEnv,
    clock: Arc<Clock>,
    engine: Option<Arc<Engine>>,
    steps: usize,
}

impl EngineDisk {
    pub fn new() -> Self {
        Self {
            env: MemEnv::new(7),
            clock: Arc::new(Clock::new()),
            engine: None,
            steps: 0,
        }
    }

    pub fn open(&mut self) -> Arc<TestStore> {
        let mut options = EngineOptions::below(Path::new("/ilion"));
        options.memtable_shards = 2;
        options.is_compacting = false;
        options.row_cache = CacheOptions::of(1 << 20);
        options.commit_log.segment_bytes = 256 << 10;
        let engine = Arc::new(Engine::open(self.env.shared(), options).unwrap());
        self.engine = Some(engine.clone());
        Arc::new(TestStore::over(engine, self.env.clone(), self.clock.clone()))
    }

    /// Requires: all users of the engine are gone.
    pub fn reopen(&mut self) -> Arc<TestStore> {
        self.engine = None;
        self.open()
    }

    /// Moves the data in a different way at each call.
    pub fn move_data(&mut self, session: &mut Session) {
        self.steps += 1;
        match self.steps % 8 {
            1 | 5 => self.flush(),
            3 => self.compact(),
            7 if !session.has_prepared() => session.reconnect(|| self.reopen()),
            _ => {}
        }
    }

    pub fn flush(&self) {
        for table in self.user_tables() {
            self.engine().flush(table).unwrap();
        }
    }

    /// Bytes that readers got from the disk.
    pub fn bytes_served(&self) -> u64 {
        self.env.served().1
    }

    /// Number of reads that the row cache answered.
    pub fn row_cache_hits(&self) -> u64 {
        let caches = self.engine().facts().caches;
        let rows = caches.iter().find(|facts| facts.name == "rows");
        rows.expect("there is a row cache").hits
    }

    fn compact(&self) {
        self.flush();
        for table in self.user_tables() {
            self.engine().compact(table).unwrap();
        }
    }

    /// Checks that indexes are complete, and that those beside SSTables have no other entries.
    pub fn verify_indexes(&self) {
        let schema = self.engine().schema();
        for table in self.user_tables() {
            let table = schema.table_by_id(table).unwrap();
            for open in self.engine().indexes_of(table.id) {
                let name = &open.index.definition().schema.name;
                let found = self
                    .engine()
                    .verify_index(table, name, IndexRepair::None)
                    .unwrap();
                assert_eq!(found.missing, 0, "{name}: {found:?}");
                if matches!(open.index.storage(), Storage::Attached(_)) {
                    assert_eq!(found.stale, 0, "{name}: {found:?}");
                }
            }
        }
    }

    fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("it was opened")
    }

    fn user_tables(&self) -> Vec<TableId> {
        let schema = self.engine().schema();
        let keyspaces = schema.keyspaces.values();
        keyspaces
            .filter(|keyspace| !is_system_keyspace(&keyspace.name))
            .flat_map(|keyspace| keyspace.tables.values().map(|table| table.id))
            .collect()
    }
}

/// An answer without the parts that differ between runs: timestamps of writes, and UUIDs made of them.
pub fn without_times(answer: &str) -> String {
    let words = answer.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let mut out = String::new();
    let mut is_fraction = false;
    for word in words {
        let is_time = word.starts_with("17000000") && word.len() > 12;
        let is_uuid = word.len() == 37 && word.matches('-').count() == 4;
        let is_millis = is_fraction && word.ends_with("Z'");
        out += if is_time || is_uuid || is_millis {
            "TIME "
        } else {
            word
        };
        is_fraction = word.ends_with('.');
    }
    out
}
