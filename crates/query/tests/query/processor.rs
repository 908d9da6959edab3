//! What the files of `testdata` cannot say: ids, caches, paging states that are none.

use std::sync::Arc;

use ilion_query::{
    ClientState, Error, ExecuteOptions, Executed, Outcome, Prepared, QueryOptions, QueryProcessor, ResultSet,
};

use crate::store::MemoryStore;

struct Session {
    processor: QueryProcessor,
    client: ClientState,
}

impl Session {
    fn new(options: QueryOptions) -> Self {
        let mut session = Self {
            processor: QueryProcessor::new(Arc::new(MemoryStore::new()), options),
            client: ClientState::default(),
        };
        for keyspace in ["one", "two"] {
            session.run(&format!(
                "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
            ));
            session.run(&format!("CREATE TABLE {keyspace}.t (k int PRIMARY KEY, v text)"));
        }
        session
    }

    fn run(&mut self, cql: &str) -> Executed {
        let options = ExecuteOptions::default();
        self.processor.query(&mut self.client, cql, &options).unwrap()
    }

    fn prepare(&self, cql: &str) -> Arc<Prepared> {
        self.processor.prepare(&self.client, cql, None).unwrap()
    }

    fn describe(&mut self, paging_state: Option<Vec<u8>>) -> Result<ResultSet, Error> {
        let options = ExecuteOptions {
            page_size: Some(1),
            paging_state: paging_state.map(Into::into),
            ..ExecuteOptions::default()
        };
        let executed = self
            .processor
            .query(&mut self.client, "DESCRIBE KEYSPACES", &options)?;
        match executed.outcome {
            Outcome::Rows(rows) => Ok(rows),
            other => panic!("rows, not {other:?}"),
        }
    }
}

#[test]
fn ids_that_nothing_is_prepared_under_are_unknown() {
    let session = Session::new(QueryOptions::default());
    assert!(session.processor.prepared(&[]).is_none());
    assert!(session.processor.prepared(&[7; 16]).is_none());
    assert!(session.processor.prepared(&[7; 40]).is_none());
}

#[test]
fn the_same_text_is_prepared_once_for_each_keyspace() {
    let mut session = Session::new(QueryOptions::default());
    session.run("USE one");
    let in_one = session.prepare("TRUNCATE t");
    assert_eq!(session.prepare("TRUNCATE t").id, in_one.id);
    session.run("USE two");
    assert_ne!(session.prepare("TRUNCATE t").id, in_one.id);
}

#[test]
fn a_text_that_says_its_keyspace_is_prepared_once_for_all_sessions() {
    let mut session = Session::new(QueryOptions::default());
    let without = session.prepare("TRUNCATE one.t");
    session.run("USE two");
    assert_eq!(session.prepare("TRUNCATE one.t").id, without.id);
}

#[test]
fn statements_are_forgotten_when_there_are_too_many() {
    let session = Session::new(QueryOptions {
        prepared_count_max: 10,
        ..QueryOptions::default()
    });
    let ids: Vec<[u8; 16]> = (0..200)
        .map(|number| session.prepare(&format!("TRUNCATE one.t -- {number}")).id)
        .collect();
    let known = ids.iter().filter(|id| session.processor.prepared(*id).is_some());
    let count = known.count();
    assert!((1..=20).contains(&count), "{count} statements are kept");
}

#[test]
fn a_prepared_statement_outlives_the_process() {
    let store = Arc::new(MemoryStore::new());
    let open = || QueryProcessor::new(store.clone(), QueryOptions::default());
    let mut client = ClientState::default();
    let options = ExecuteOptions::default();
    let before = open();
    for cql in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "USE ks",
        "CREATE TABLE t (k int PRIMARY KEY)",
        "CREATE TABLE u (k int PRIMARY KEY)",
    ] {
        before.query(&mut client, cql, &options).unwrap();
    }
    let prepared = before.prepare(&client, "SELECT * FROM t", None).unwrap();
    let of_dropped = before.prepare(&client, "SELECT * FROM u", None).unwrap();
    before.query(&mut client, "DROP TABLE u", &options).unwrap();
    drop(before);
    let after = open();
    let found = after.prepared(&prepared.id).unwrap();
    assert_eq!(found.result_metadata_id, prepared.result_metadata_id);
    let mut fresh = ClientState::default();
    assert!(after.execute(&mut fresh, &found, &options).is_ok());
    assert!(after.prepared(&of_dropped.id).is_none());
    let rows = "SELECT query_string, logged_keyspace FROM system.prepared_statements";
    let Outcome::Rows(left) = after.query(&mut fresh, rows, &options).unwrap().outcome else {
        panic!("no rows")
    };
    assert_eq!(left.row_count, 1);
}

#[test]
fn a_dropped_table_is_told_when_its_statement_is_executed() {
    let mut session = Session::new(QueryOptions::default());
    let prepared = session.prepare("TRUNCATE one.t");
    session.run("DROP TABLE one.t");
    assert!(session.processor.prepared(&prepared.id).is_some());
    let options = ExecuteOptions::default();
    let refused = session
        .processor
        .execute(&mut session.client, &prepared, &options)
        .unwrap_err();
    assert_eq!(refused, Error::Invalid("table t does not exist".into()));
}

#[test]
fn paging_goes_on_only_in_the_schema_that_it_began_in() {
    let mut session = Session::new(QueryOptions::default());
    let state = session.describe(None).unwrap().paging_state;
    assert!(session.describe(state.clone()).is_ok());
    session.run("DROP TABLE two.t");
    let refused = session.describe(state).unwrap_err();
    assert!(refused.message().starts_with("The schema has changed"));
}

#[test]
fn paging_states_of_others_are_refused() {
    let mut session = Session::new(QueryOptions::default());
    let state = session.describe(None).unwrap().paging_state.unwrap();
    let mut newer = state.clone();
    newer[0] = 9;
    for bad in [vec![], vec![1, 2, 3], [state.clone(), vec![0]].concat(), newer] {
        assert!(matches!(session.describe(Some(bad)), Err(Error::Invalid(_))));
    }
    let beyond = [&state[..18], &[0xFF; 8]].concat();
    assert_eq!(session.describe(Some(beyond)).unwrap().row_count, 0);
}
