//! A change of the schema that takes long, as in a cluster whose nodes are slow: what other clients do meanwhile.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use ilion_query::{
    ClientState, Error, ExecuteOptions, Executed, Prepared, QueryOptions, QueryProcessor, Store, StoreError,
};
use ilion_schema::{Applied, SchemaChange};
use parking_lot::Mutex;

use crate::store::TestStore;

/// Far longer than anything here takes: a test that fails shall end.
const PATIENCE: Duration = Duration::from_secs(60);

/// A store that tells when a change of the schema has begun, and makes it when it is let.
struct Slow {
    inner: Arc<TestStore>,
    /// `None`: changes are made at once.
    gates: Mutex<Option<(SyncSender<()>, Receiver<()>)>>,
}

impl Store for Slow {
    fn alter_schema(&self, change: &SchemaChange) -> Result<Option<Applied>, StoreError> {
        if let Some((begun, may_end)) = self.gates.lock().take() {
            begun.send(()).unwrap();
            may_end.recv_timeout(PATIENCE).unwrap();
        }
        self.inner.alter_schema(change)
    }

    ilion_query::store_methods!(forward [inner]: schema apply apply_decided time_uuid random_uuid read_partition read_range truncate is_clearable is_settable set_virtual lock_partitions partitioner now_micros unique_micros monotonic_nanos counter_id counter_cache survey_partition survey_range cluster index_classes indexes_of index_search index_estimate index_nearest);
}

fn query(processor: &QueryProcessor, cql: &str) -> Executed {
    let options = ExecuteOptions::default();
    processor
        .query(&mut ClientState::default(), cql, &options)
        .unwrap()
}

fn execute(processor: &QueryProcessor, prepared: &Arc<Prepared>) -> Result<Executed, Error> {
    let options = ExecuteOptions::default();
    processor.execute(&mut ClientState::default(), prepared, &options)
}

#[test]
fn statements_are_prepared_and_executed_while_the_schema_changes() {
    let inner = TestStore::in_memory();
    let store = Arc::new(Slow {
        inner: inner.clone(),
        gates: Mutex::default(),
    });
    let processor = QueryProcessor::new(store.clone(), QueryOptions::default());
    for cql in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k int PRIMARY KEY, v text)",
        "CREATE TABLE ks.u (k int PRIMARY KEY)",
    ] {
        query(&processor, cql);
    }
    let (begun, has_begun) = sync_channel(1);
    let (let_end, may_end) = sync_channel(1);
    *store.gates.lock() = Some((begun, may_end));
    let prepare = |cql| processor.prepare(&ClientState::default(), cql, None).unwrap();
    let (all, of_v, of_u) = std::thread::scope(|scope| {
        let changes = scope.spawn(|| query(&processor, "ALTER TABLE ks.t ADD w int"));
        has_begun.recv_timeout(PATIENCE).unwrap();
        let prepared = (
            prepare("SELECT * FROM ks.t"),
            prepare("SELECT v FROM ks.t"),
            prepare("SELECT * FROM ks.u"),
        );
        assert!(execute(&processor, &prepared.0).is_ok());
        let_end.send(()).unwrap();
        changes.join().unwrap();
        prepared
    });
    // Its result has another column now, which its clients do not know.
    let unprepared = Error::Unprepared { id: all.id.to_vec() };
    assert_eq!(execute(&processor, &all).unwrap_err(), unprepared);
    assert!(processor.prepared(&all.id).is_none());
    assert!(execute(&processor, &of_v).is_ok());
    assert!(execute(&processor, &of_u).is_ok());
    drop(processor);
    // The table must not have what was prepared with columns of the old schema.
    let next = QueryProcessor::new(inner, QueryOptions::default());
    assert!(next.prepared(&all.id).is_none());
}
