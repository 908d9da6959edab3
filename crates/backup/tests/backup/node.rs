//! A node in a directory, and a destination beside it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_backup::{
    CreateOptions, Created, Directory, Error, Moment, Pace, RestoreOptions, Restored, Result, Shipped,
    Silent, Until, Verified, create, restore_node, ship_log, verify,
};
use ilion_commitlog::Mode;
use ilion_engine::{Engine, EngineOptions};
use ilion_env::{Env, RealEnv};
use ilion_query::{
    Awaited, ClientState, ClusterFacts, EngineStore, ExecuteOptions, Outcome, QueryOptions, QueryProcessor,
};
use ilion_schema::is_system_keyspace;
use tempfile::TempDir;

/// Value by partition and clustering.
pub type Rows = BTreeMap<(i32, i32), String>;

pub struct Node {
    pub env: Arc<dyn Env>,
    running: Option<(QueryProcessor, Arc<Engine>)>,
}

pub fn options_below(root: &Path) -> EngineOptions {
    let mut options = EngineOptions::below(root);
    options.memtable_shards = 2;
    options.is_compacting = false;
    options.compaction_bytes_per_sec = None;
    options.commit_log.segment_bytes = 64 << 10;
    options.commit_log.mode = Mode::Batch;
    options
}

impl Node {
    pub fn open(env: &Arc<dyn Env>, root: &Path) -> Self {
        Self::try_open(env, options_below(root)).unwrap()
    }

    /// With an archive of its log.
    pub fn open_archiving(env: &Arc<dyn Env>, root: &Path) -> Self {
        let mut options = options_below(root);
        options.commit_log.archive_dir = Some(root.join("archive"));
        Self::try_open(env, options).unwrap()
    }

    pub fn try_open(
        env: &Arc<dyn Env>,
        options: EngineOptions,
    ) -> std::result::Result<Self, ilion_engine::Error> {
        let engine = Arc::new(Engine::open(env.clone(), options)?);
        let facts = ClusterFacts {
            name: "Test Cluster".to_owned(),
            snitch: "org.apache.cassandra.locator.SimpleSnitch".to_owned(),
            ranges: vec![("0".to_owned(), vec!["127.0.0.1:7000".to_owned()])],
        };
        let store = Arc::new(EngineStore::new(engine.clone(), facts));
        let processor = QueryProcessor::new(store, QueryOptions::default());
        Ok(Self {
            env: env.clone(),
            running: Some((processor, engine)),
        })
    }

    /// With the table `ks.t`, a view of it and an index.
    pub fn with_table(self) -> Self {
        self.cql(
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        );
        self.cql("CREATE TABLE ks.t (k int, c int, v text, PRIMARY KEY (k, c))");
        self.cql(
            "CREATE MATERIALIZED VIEW ks.by_v AS SELECT * FROM ks.t WHERE v IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL \
             PRIMARY KEY (v, k, c)",
        );
        self.cql("CREATE INDEX by_c ON ks.t (c)");
        self.settle();
        self
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.running.as_ref().unwrap().1
    }

    pub fn settle(&self) {
        self.running.as_ref().unwrap().0.wait_for_views();
        self.engine().wait_idle();
    }

    pub fn close(&mut self) {
        if self.running.is_some() {
            self.settle();
        }
        self.running = None;
    }

    /// Executes a statement, and waits until it is durable.
    pub fn cql(&self, statement: &str) -> Vec<Vec<Option<Vec<u8>>>> {
        self.try_cql(statement)
            .unwrap_or_else(|error| panic!("{statement}: {error}"))
    }

    pub fn try_cql(&self, statement: &str) -> std::result::Result<Vec<Vec<Option<Vec<u8>>>>, String> {
        let (processor, engine) = self.running.as_ref().unwrap();
        let mut client = ClientState::default();
        let executed = processor
            .query(&mut client, statement, &ExecuteOptions::default())
            .map_err(|error| error.to_string())?;
        if let Some(Awaited::Log(position)) = executed.awaited {
            engine
                .wait_durable(position.into())
                .map_err(|error| error.to_string())?;
        }
        Ok(match executed.outcome {
            Outcome::Rows(rows) => rows_in(rows.columns.len(), &rows.cells.into_vec()),
            _ => Vec::new(),
        })
    }

    pub fn put(&self, k: i32, c: i32, v: &str) {
        self.cql(&format!("INSERT INTO ks.t (k, c, v) VALUES ({k}, {c}, '{v}')"));
    }

    pub fn flush(&self) {
        for store in self.engine().tables() {
            let table = store.schema();
            if !is_system_keyspace(&table.keyspace) {
                self.engine().flush(table.id).unwrap();
            }
        }
    }

    /// What `ks.t` has, by scan; checked against the view and the index.
    pub fn rows(&self) -> Rows {
        self.rows_of("ks.t")
    }

    pub fn rows_of(&self, table: &str) -> Rows {
        let int =
            |value: &Option<Vec<u8>>| i32::from_be_bytes(value.as_ref().unwrap()[..].try_into().unwrap());
        let text = |value: &Option<Vec<u8>>| String::from_utf8(value.clone().unwrap()).unwrap();
        let read = |statement: &str| -> Rows {
            let rows = self.cql(statement).into_iter();
            rows.map(|row| ((int(&row[0]), int(&row[1])), text(&row[2])))
                .collect()
        };
        let rows = read(&format!("SELECT k, c, v FROM {table}"));
        if table == "ks.t" {
            self.settle();
            assert_eq!(read("SELECT k, c, v FROM ks.by_v"), rows, "the view");
            for c in 0..4 {
                let mut expected = rows.clone();
                expected.retain(|(_, found), _| *found == c);
                let found = read(&format!("SELECT k, c, v FROM ks.t WHERE c = {c} ALLOW FILTERING"));
                assert_eq!(found, expected, "the index, c = {c}");
            }
        }
        rows
    }

    pub fn moment(&self) -> Result<Moment> {
        Ok(Moment::of("Test Cluster", self.engine().begin_backup()?))
    }

    pub fn create(&self, place: &Directory, name: &str) -> Result<Created> {
        let created = create(&self.env, place, &create_options(&self.env, name), &mut || {
            self.moment()
        });
        self.engine().end_backup()?;
        created
    }

    pub fn ship_log(&self, place: &Directory) -> Result<Shipped> {
        ship_log(
            &self.env,
            place,
            &create_options(&self.env, "unused"),
            &mut || Ok(self.engine().archive_log()?),
        )
    }
}

/// The cells of an answer: `length: i32` (-1 for null) and the bytes.
fn rows_in(columns: usize, mut bytes: &[u8]) -> Vec<Vec<Option<Vec<u8>>>> {
    let mut cells = Vec::new();
    while let Some((len, rest)) = bytes.split_first_chunk::<4>() {
        let len = usize::try_from(i32::from_be_bytes(*len)).ok();
        let (cell, rest) = rest.split_at(len.unwrap_or(0));
        cells.push(len.map(|_| cell.to_vec()));
        bytes = rest;
    }
    cells.chunks(columns).map(<[_]>::to_vec).collect()
}

pub fn create_options(env: &Arc<dyn Env>, name: &str) -> CreateOptions<'static> {
    CreateOptions {
        name: Some(name.to_owned()),
        threads: 2,
        pace: Pace::new(env.clone(), None),
        chunk_bytes: Some(4096),
        prunes_archive: false,
        progress: &Silent,
    }
}

pub fn restore_options(env: &Arc<dyn Env>, until: Until) -> RestoreOptions<'static> {
    RestoreOptions {
        until,
        node: None,
        threads: 2,
        pace: Pace::new(env.clone(), None),
        progress: &Silent,
    }
}

pub fn restore(env: &Arc<dyn Env>, place: &Directory, until: Until, target: &Path) -> Result<Restored> {
    restore_node(env, place, &restore_options(env, until), target)
}

/// The backup of this name.
pub fn of(name: &str) -> Until {
    Until::Backup(Some(name.to_owned()))
}

pub fn verify_all(env: &Arc<dyn Env>, place: &Directory) -> Verified {
    verify(place, &[], 2, &Pace::new(env.clone(), None), &Silent).unwrap()
}

/// What a restored node has; its directory is removed.
pub fn restored_rows(env: &Arc<dyn Env>, place: &Directory, until: Until, target: &Path) -> Result<Rows> {
    restore(env, place, until, target)?;
    let mut node = Node::open(env, target);
    let rows = node.rows();
    // It serves: it takes writes, and has them after a restart.
    node.put(-1, -1, "new");
    node.close();
    let mut node = Node::open(env, target);
    let mut with_new = rows.clone();
    with_new.insert((-1, -1), "new".to_owned());
    assert_eq!(node.rows(), with_new);
    node.close();
    env.remove_dir_all(target).unwrap();
    Ok(rows)
}

/// A real directory for a node, its destination and its restores.
pub struct TestDirectory {
    pub env: Arc<dyn Env>,
    pub root: TempDir,
}

impl TestDirectory {
    pub fn new() -> Self {
        let env: Arc<dyn Env> = RealEnv::new();
        Self {
            env,
            root: TempDir::new().unwrap(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub fn destination(&self) -> Directory {
        Directory::new(self.env.clone(), self.path("backups"))
    }
}

pub fn refused<T: std::fmt::Debug>(result: Result<T>) -> String {
    match result {
        Err(Error::Refused(reason)) => reason,
        other => panic!("expected a refusal, got {other:?}"),
    }
}
