//! A node: the engine on a disk, and CQL on it.

use std::path::Path;
use std::sync::Arc;

use ilion_commitlog::Mode;
use ilion_engine::{Engine, EngineOptions};
use ilion_env::Env;
use ilion_query::{
    Awaited, ClientState, ClusterFacts, EngineStore, ExecuteOptions, QueryOptions, QueryProcessor, Store,
};
use ilion_schema::{TableId, is_system_keyspace};

use crate::print::{self, Types};
use crate::workload::{QUERIES, Step};

pub struct Node {
    env: Arc<dyn Env>,
    running: Option<Running>,
}

struct Running {
    processor: QueryProcessor,
    store: Arc<EngineStore>,
}

impl Node {
    pub fn open(env: Arc<dyn Env>) -> Result<Self, String> {
        let mut node = Self { env, running: None };
        node.start()?;
        Ok(node)
    }

    fn start(&mut self) -> Result<(), String> {
        let mut options = EngineOptions::below(Path::new("/ilion"));
        options.memtable_shards = 2;
        options.is_compacting = false;
        options.commit_log.segment_bytes = 256 << 10;
        options.commit_log.mode = Mode::Batch;
        let engine = Engine::open(self.env.clone(), options).map_err(|error| format!("error: {error}"))?;
        let cluster = ClusterFacts {
            name: "Test Cluster".to_owned(),
            snitch: "org.apache.cassandra.locator.SimpleSnitch".to_owned(),
            ranges: vec![("0".to_owned(), vec!["127.0.0.1:7000".to_owned()])],
        };
        let store = Arc::new(EngineStore::new(Arc::new(engine), cluster));
        let processor = QueryProcessor::new(store.clone(), QueryOptions::default());
        self.running = Some(Running { processor, store });
        Ok(())
    }

    /// False after a start that failed.
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    fn running(&self) -> &Running {
        self.running.as_ref().expect("it was started")
    }

    fn engine(&self) -> &Engine {
        self.running().store.engine()
    }

    /// Blocks until no view and no index is being built.
    pub fn settle(&self) {
        self.running().processor.wait_for_views();
        self.engine().wait_idle();
    }

    /// Does a step and returns its answer; an error starts with that word.
    pub fn step(&mut self, step: &Step) -> String {
        let done = match step {
            Step::Statement(statement) => return self.statement(statement),
            Step::Flush => self
                .user_tables()
                .try_for_each(|table| self.engine().flush(table)),
            Step::Compact => self
                .user_tables()
                .try_for_each(|table| self.engine().compact(table)),
            Step::Drain => self.engine().drain(),
            Step::Restart => {
                if self.is_running() {
                    self.settle();
                }
                self.running = None;
                return self.start().err().unwrap_or_default();
            }
        };
        done.err()
            .map(|error| format!("error: {error}"))
            .unwrap_or_default()
    }

    /// Executes a statement and waits until it is durable.
    pub fn statement(&self, statement: &str) -> String {
        let running = self.running();
        let mut client = ClientState::default();
        let result = running
            .processor
            .query(&mut client, statement, &ExecuteOptions::default());
        let awaited = result.as_ref().ok().and_then(|executed| executed.awaited.clone());
        if let Some(Awaited::Log(position)) = awaited
            && let Err(error) = self.engine().wait_durable(position.into())
        {
            return format!("error: {error}");
        }
        let mut answer = print::answer(&result, Types::Hidden);
        // The rows of an index may come in any order.
        if statement.starts_with("SELECT") && !answer.starts_with("error") {
            let mut lines: Vec<&str> = answer.lines().collect();
            lines.sort_unstable();
            answer = lines.join("\n");
        }
        answer
    }

    /// The answers of all queries.
    pub fn state(&self) -> Vec<String> {
        self.settle();
        QUERIES.iter().map(|query| self.statement(query)).collect()
    }

    fn user_tables(&self) -> impl Iterator<Item = TableId> {
        let schema = self.running().store.schema();
        let tables: Vec<TableId> = schema
            .keyspaces
            .values()
            .filter(|keyspace| !is_system_keyspace(&keyspace.name))
            .flat_map(|keyspace| keyspace.tables.values().map(|table| table.id))
            .collect();
        tables.into_iter()
    }
}
