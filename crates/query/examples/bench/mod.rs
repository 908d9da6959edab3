//! The common part of the examples: a query layer over an engine in memory, statements and their values.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use ilion_engine::{Engine, EngineOptions};
use ilion_env::MemEnv;
use ilion_query::{
    ClientState, ClusterFacts, EngineStore, ExecuteOptions, Outcome, Prepared, QueryOptions, QueryProcessor,
    ResultSet, Value, Values,
};

/// Options with values for the markers of a statement.
pub fn with(values: Vec<Bytes>) -> ExecuteOptions {
    ExecuteOptions {
        values: Values::Positional(values.into_iter().map(Value::Bytes).collect()),
        ..ExecuteOptions::default()
    }
}

/// A database with the keyspace `ks`.
pub struct Bench {
    engine: Arc<Engine>,
    processor: QueryProcessor,
    client: ClientState,
}

impl Bench {
    #[allow(dead_code, reason = "one example has options of its own")]
    pub fn open() -> Self {
        Self::open_with(EngineOptions::below(Path::new("/ilion")))
    }

    pub fn open_with(options: EngineOptions) -> Self {
        let options = EngineOptions {
            is_compacting: false,
            ..options
        };
        let engine = Arc::new(Engine::open(Arc::new(MemEnv::new(1)), options).unwrap());
        let store = Arc::new(EngineStore::new(engine.clone(), ClusterFacts::default()));
        let mut bench = Self {
            engine,
            processor: QueryProcessor::new(store, QueryOptions::default()),
            client: ClientState::default(),
        };
        bench.run(
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        );
        bench
    }

    pub fn run(&mut self, text: &str) {
        self.processor
            .query(&mut self.client, text, &ExecuteOptions::default())
            .unwrap();
    }

    pub fn prepare(&self, text: &str) -> Arc<Prepared> {
        self.processor.prepare(&self.client, text, None).unwrap()
    }

    pub fn write(&mut self, insert: &Arc<Prepared>, options: &ExecuteOptions) {
        self.processor.execute(&mut self.client, insert, options).unwrap();
    }

    pub fn read(&mut self, select: &Arc<Prepared>, options: &ExecuteOptions) -> ResultSet {
        let executed = self.processor.execute(&mut self.client, select, options);
        match executed.unwrap().outcome {
            Outcome::Rows(rows) => rows,
            other => panic!("{other:?} is no rows"),
        }
    }

    /// Executes the statement with each of the options; returns the number of rows.
    #[allow(dead_code, reason = "one example counts cells instead")]
    pub fn read_all(&mut self, select: &Arc<Prepared>, reads: &[ExecuteOptions]) -> u64 {
        let counts = reads.iter().map(|options| self.read(select, options).row_count);
        counts.map(u64::from).sum()
    }

    /// Flushes `ks.t` to an SSTable.
    #[allow(dead_code, reason = "one example reads nothing back")]
    pub fn flush(&self) {
        let table = self.engine.schema().table("ks", "t").unwrap().id;
        self.engine.flush(table).unwrap();
    }

    /// Makes the sorted view of `ks.t` now, so that measured reads do not cause that.
    #[allow(dead_code, reason = "not every example has several SSTables")]
    pub fn sort(&self) {
        let table = self.engine.schema().table("ks", "t").unwrap().id;
        self.engine.sort(table).unwrap();
    }
}
