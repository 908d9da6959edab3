//! The nodes of a test, and statements that are executed at several of them.

use std::path::Path;
use std::sync::Arc;

use ilion_coordinator::testing::{Shape, TestCluster};
use ilion_coordinator::{InProcess, ReadOptions, ReplicaClient};
use ilion_engine::{Engine, EngineOptions};
use ilion_env::MemEnv;
use ilion_query::{
    ClientState, ClusterFacts, Consistency, EngineStore, Error, ExecuteOptions, Outcome, QueryOptions,
    QueryProcessor, Store,
};
use ilion_rows::random::Dice;
use ilion_schema::{TableId, is_system_keyspace};

/// All times of a test are near this second.
pub const NOW_SECS: i32 = 1_700_000_000;

/// Most pages of a statement; more means that paging does not end.
const PAGES_MAX: usize = 20_000;

pub fn engine(seed: u64) -> Arc<Engine> {
    let mut options = EngineOptions::below(Path::new("/ilion"));
    options.memtable_shards = 2;
    options.is_compacting = false;
    options.commit_log.segment_bytes = 256 << 10;
    let env = MemEnv::new(seed);
    env.set_micros(i64::from(NOW_SECS) * 1_000_000);
    Arc::new(Engine::open(Arc::new(env), options).unwrap())
}

fn store(engine: &Arc<Engine>) -> Arc<dyn Store> {
    let facts = ClusterFacts {
        name: "Test Cluster".to_owned(),
        snitch: String::new(),
        ranges: Vec::new(),
    };
    Arc::new(EngineStore::new(engine.clone(), facts))
}

/// How a statement is executed.
#[derive(Clone, Debug)]
pub struct How {
    pub level: Consistency,
    pub page_size: Option<u32>,
    pub timestamp_micros: i64,
    pub now_secs: i32,
}

impl Default for How {
    fn default() -> Self {
        Self {
            level: Consistency::ONE,
            page_size: None,
            timestamp_micros: 1,
            now_secs: NOW_SECS,
        }
    }
}

/// A page: its rows, their bytes, and whether there is another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub rows: u32,
    pub cells: Vec<u8>,
    pub state: Option<Vec<u8>>,
}

/// All pages of a statement; the warnings of the last one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    pub pages: Vec<Page>,
    pub warnings: Vec<String>,
}

impl Answered {
    pub fn rows(&self) -> u32 {
        self.pages.iter().map(|page| page.rows).sum()
    }
}

/// Executes a statement, all pages of it.
pub fn run(processor: &QueryProcessor, text: &str, how: &How) -> Result<Answered, Error> {
    let mut client = ClientState::default();
    let mut options = ExecuteOptions {
        consistency: how.level,
        page_size: how.page_size,
        timestamp_micros: Some(how.timestamp_micros),
        now_secs: Some(how.now_secs),
        ..ExecuteOptions::default()
    };
    let mut answered = Answered::default();
    for _ in 0..PAGES_MAX {
        let executed = processor.query(&mut client, text, &options)?;
        answered.warnings = executed.warnings;
        let Outcome::Rows(rows) = executed.outcome else {
            return Ok(answered);
        };
        let state = rows.paging_state.clone();
        answered.pages.push(Page {
            rows: rows.row_count,
            cells: rows.cells.into_vec(),
            state: state.clone(),
        });
        match state {
            Some(state) => options.paging_state = Some(state.into()),
            None => return Ok(answered),
        }
    }
    panic!("{text} does not end");
}

/// Three nodes, and one with all data.
pub struct World {
    pub cluster: TestCluster,
    pub engines: Vec<Arc<Engine>>,
    /// The nodes as coordinators, from node 1 on.
    pub coordinators: Vec<QueryProcessor>,
    pub single: QueryProcessor,
    single_engine: Arc<Engine>,
}

impl World {
    pub fn new(shape: &Shape, options: ReadOptions) -> Self {
        Self::with_client(shape, options, |client| Arc::new(client))
    }

    pub fn with_client(
        shape: &Shape,
        options: ReadOptions,
        wrap: impl Fn(InProcess) -> Arc<dyn ReplicaClient>,
    ) -> Self {
        let count = shape.slices.len() + 1;
        let engines: Vec<_> = (0..count).map(|number| engine(number as u64 + 1)).collect();
        let cluster = TestCluster::new(engines.iter().map(store).collect(), shape);
        let coordinator = |node| {
            let store = cluster.coordinator(node, wrap(cluster.client()), options);
            QueryProcessor::new(Arc::new(store), QueryOptions::default())
        };
        let single_engine = engine(99);
        let world = Self {
            coordinators: (1..=count as u32).map(coordinator).collect(),
            engines,
            single: QueryProcessor::new(store(&single_engine), QueryOptions::default()),
            single_engine,
            cluster,
        };
        world.write(
            0,
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            &How::default(),
        );
        world
    }

    /// Executes a write at a coordinator and at the node with all data. Both must say the same.
    pub fn write(&self, at: usize, text: &str, how: &How) {
        let expected = run(&self.single, text, how).map(|_| ());
        let answered = run(&self.coordinators[at], text, how).map(|_| ());
        assert_eq!(answered, expected, "{text}");
    }

    /// Flushes all nodes.
    pub fn flush(&self) {
        for engine in self.engines.iter().chain([&self.single_engine]) {
            for table in user_tables(engine) {
                engine.flush(table).unwrap();
            }
        }
    }

    /// Flushes or compacts a node.
    pub fn move_data(&self, dice: &mut Dice) {
        let engine = match dice.below(self.engines.len() + 1) {
            0 => &self.single_engine,
            number => &self.engines[number - 1],
        };
        let is_compacting = dice.one_in(3);
        for table in user_tables(engine) {
            engine.flush(table).unwrap();
            if is_compacting {
                engine.compact(table).unwrap();
            }
        }
    }

    /// Waits until no index is being built.
    pub fn wait_built(&self) {
        for engine in self.engines.iter().chain([&self.single_engine]) {
            engine.wait_idle();
        }
    }
}

fn user_tables(engine: &Engine) -> Vec<TableId> {
    let schema = engine.schema();
    let users = schema
        .keyspaces
        .values()
        .filter(|keyspace| !is_system_keyspace(&keyspace.name));
    users
        .flat_map(|keyspace| keyspace.tables.values().map(|table| table.id))
        .collect()
}
