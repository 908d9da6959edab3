//! Ilion: a table with one blob key and one blob value, by prepared statements.

use std::path::Path;

use anyhow::{Context, anyhow};
use ilion::{Database, Settings, Statement};
use ilion_settings::Loaded;

use crate::store::{Memory, Store, Visit};

pub struct IlionStore {
    database: Database,
    settings: Settings,
    insert: Statement,
    select: Statement,
    range: Statement,
}

impl IlionStore {
    pub fn open(directory: &Path, memory: &Memory, partitioner: &str) -> anyhow::Result<Self> {
        let settings = settings(directory, memory, partitioner)?;
        let database = Database::open_with(&settings)?;
        database.execute(
            "CREATE KEYSPACE bench WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            (),
        )?;
        database.execute("CREATE TABLE bench.rows (k blob PRIMARY KEY, v blob)", ())?;
        Ok(Self {
            insert: database.prepare("INSERT INTO bench.rows (k, v) VALUES (?, ?)")?,
            select: database.prepare("SELECT v FROM bench.rows WHERE k = ?")?,
            range: database.prepare("SELECT k, v FROM bench.rows WHERE token(k) >= ? LIMIT ?")?,
            database,
            settings,
        })
    }
}

fn settings(directory: &Path, memory: &Memory, partitioner: &str) -> anyhow::Result<Settings> {
    let mut loaded = Loaded::default();
    loaded.settings.directory = directory.to_path_buf();
    let settings = [
        ("commitlog_sync", "periodic".to_owned()),
        ("memtable_heap_space", format!("{}MiB", memory.memtables_mib)),
        ("file_cache_size", format!("{}MiB", memory.blocks_mib)),
        ("partitioner", partitioner.to_owned()),
    ];
    for (name, value) in settings {
        loaded.set(name, &value, || name.to_owned())?;
    }
    Ok(loaded.settings)
}

impl Store for IlionStore {
    fn name(&self) -> &'static str {
        "Ilion"
    }

    fn put(&self, key: &[u8], value: &[u8]) -> anyhow::Result<()> {
        self.insert.execute_serialized(&[key, value])?;
        Ok(())
    }

    fn get(&self, key: &[u8], visit: Visit<'_>) -> anyhow::Result<()> {
        for row in self.select.execute_serialized(&[key])? {
            let row = row?;
            let value = row.cells().next().flatten().context("the value is null")?;
            visit(key, value);
        }
        Ok(())
    }

    fn range(&self, key: &[u8], limit: u32, visit: Visit<'_>) -> anyhow::Result<()> {
        let token = self.settings.partitioner.token(key).to_bytes();
        for row in self.range.execute_serialized(&[&token, &limit.to_be_bytes()])? {
            let row = row?;
            let cells: Vec<_> = row.cells().flatten().collect();
            let [key, value] = cells[..] else {
                return Err(anyhow!("a cell is null"));
            };
            visit(key, value);
        }
        Ok(())
    }

    fn settle(&self) -> anyhow::Result<()> {
        self.database.flush()?;
        self.database.node().engine().wait_idle();
        Ok(())
    }

    fn files(&self) -> anyhow::Result<u64> {
        let facts = self.database.node().engine().table_facts();
        Ok(facts
            .iter()
            .filter(|table| table.keyspace == "bench")
            .map(|table| table.sstables)
            .sum())
    }
}
