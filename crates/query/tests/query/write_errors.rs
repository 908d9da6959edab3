//! What clients are told when the log of a cluster does not acknowledge a write, or cannot.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ilion_query::{
    Awaited, ClientState, Command, Consistency, Error, ExecuteOptions, Form, FunctionResults, QueryOptions,
    QueryProcessor, Reason, Store, StoreError, WriteType,
};
use ilion_rows::Mutation;
use ilion_schema::{Applied, SchemaChange};
use ilion_types::Uuid;

use crate::store::TestStore;

/// A store whose writes fail on request.
struct Failing {
    inner: Arc<TestStore>,
    /// Whether too few are alive, rather than too slow.
    is_unavailable: AtomicBool,
    fails: AtomicBool,
}

impl Failing {
    fn check(&self) -> Result<(), StoreError> {
        match (self.fails.load(Relaxed), self.is_unavailable.load(Relaxed)) {
            (false, _) => Ok(()),
            (true, true) => Err(StoreError::Unavailable {
                required: 2,
                alive: 1,
            }),
            (true, false) => Err(StoreError::WriteTimeout {
                received: 1,
                block_for: 2,
            }),
        }
    }
}

impl Store for Failing {
    fn apply(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError> {
        self.check()?;
        self.inner.apply(mutations)
    }

    fn apply_decided(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, StoreError> {
        self.check()?;
        self.inner.apply_decided(mutations)
    }

    fn alter_schema(&self, change: &SchemaChange) -> Result<Option<Applied>, StoreError> {
        self.check()?;
        self.inner.alter_schema(change)
    }

    ilion_query::store_methods!(forward [inner]: schema time_uuid random_uuid read_partition read_range truncate is_clearable is_settable set_virtual lock_partitions partitioner now_micros unique_micros monotonic_nanos counter_id counter_cache survey_partition survey_range cluster index_classes indexes_of index_search index_estimate index_nearest);
}

struct Client {
    store: Arc<Failing>,
    processor: QueryProcessor,
    state: ClientState,
}

impl Client {
    fn new() -> Self {
        let store = Arc::new(Failing {
            inner: TestStore::in_memory(),
            is_unavailable: AtomicBool::new(false),
            fails: AtomicBool::new(false),
        });
        let mut client = Self {
            processor: QueryProcessor::new(store.clone(), QueryOptions::default()),
            store,
            state: ClientState::default(),
        };
        for statement in [
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}",
            "CREATE TABLE ks.t (k int PRIMARY KEY, v int)",
            "CREATE TABLE ks.c (k int PRIMARY KEY, v counter)",
        ] {
            client.run(statement).unwrap();
        }
        client.store.fails.store(true, Relaxed);
        client
    }

    fn run(&mut self, statement: &str) -> Result<(), Error> {
        let options = ExecuteOptions {
            consistency: Consistency::LOCAL_QUORUM,
            ..ExecuteOptions::default()
        };
        let executed = self.processor.query(&mut self.state, statement, &options);
        executed.map(drop)
    }
}

const STATEMENTS: [(&str, WriteType); 5] = [
    ("INSERT INTO ks.t (k, v) VALUES (1, 1)", WriteType::Simple),
    (
        "BEGIN BATCH INSERT INTO ks.t (k, v) VALUES (1, 1); INSERT INTO ks.t (k, v) VALUES (2, 1); APPLY BATCH",
        WriteType::Batch,
    ),
    (
        "BEGIN UNLOGGED BATCH INSERT INTO ks.t (k, v) VALUES (1, 1); INSERT INTO ks.t (k, v) VALUES (2, 1); APPLY BATCH",
        WriteType::UnloggedBatch,
    ),
    ("UPDATE ks.c SET v = v + 1 WHERE k = 1", WriteType::Counter),
    (
        "INSERT INTO ks.t (k, v) VALUES (1, 1) IF NOT EXISTS",
        WriteType::Cas,
    ),
];

#[test]
fn a_write_that_is_not_acknowledged_in_time_says_its_kind_and_counts() {
    let mut client = Client::new();
    for (statement, write_type) in STATEMENTS {
        let (consistency, received, block_for) = (Consistency::LOCAL_QUORUM, 1, 2);
        let message = "Operation timed out - received only 1 responses.".to_owned();
        let expected = match write_type {
            WriteType::Cas => Error::CasWriteUnknown {
                consistency,
                received,
                block_for,
                message,
            },
            write_type => Error::WriteTimeout {
                consistency,
                write_type,
                received,
                block_for,
                message,
            },
        };
        assert_eq!(client.run(statement), Err(expected), "{statement}");
    }
}

#[test]
fn a_write_without_enough_replicas_is_unavailable() {
    let mut client = Client::new();
    client.store.is_unavailable.store(true, Relaxed);
    for (statement, _) in STATEMENTS {
        let expected = Error::Unavailable {
            consistency: Consistency::LOCAL_QUORUM,
            required: 2,
            alive: 1,
        };
        assert_eq!(client.run(statement), Err(expected), "{statement}");
    }
}

#[test]
fn a_change_of_the_schema_fails_like_a_write_at_quorum() {
    let mut client = Client::new();
    let failed = client.run("CREATE TABLE ks.u (k int PRIMARY KEY)");
    assert!(
        matches!(
            failed,
            Err(Error::WriteTimeout {
                consistency: Consistency::QUORUM,
                write_type: WriteType::Simple,
                ..
            })
        ),
        "{failed:?}"
    );
    client.store.is_unavailable.store(true, Relaxed);
    let failed = client.run("CREATE TABLE ks.u (k int PRIMARY KEY)");
    assert!(matches!(failed, Err(Error::Unavailable { .. })), "{failed:?}");
}

#[test]
fn a_command_fails_with_its_serial_level() {
    let command = Command {
        form: Form::Statement,
        statements: Vec::new(),
        keyspace: None,
        consistency: Consistency::QUORUM,
        serial_consistency: Some(Consistency::LOCAL_SERIAL),
        timestamp_micros: 0,
        now_secs: None,
        seed: Uuid::nil(),
        function_results: FunctionResults::new(),
    };
    let timeout = || StoreError::WriteTimeout {
        received: 0,
        block_for: 1,
    };
    assert!(matches!(
        timeout().of_command(command.level(Reason::Decides)),
        Error::CasWriteUnknown {
            consistency: Consistency::LOCAL_SERIAL,
            ..
        }
    ));
    assert!(matches!(
        timeout().of_command(command.level(Reason::Counts)),
        Error::WriteTimeout {
            consistency: Consistency::QUORUM,
            write_type: WriteType::Counter,
            ..
        }
    ));
}
