//! Tests that `testdata` cannot express: ids, caches, invalid paging states.

use std::sync::Arc;

use ilion_query::{
    ClientState, Error, ExecuteOptions, Executed, Outcome, Prepared, QueryOptions, QueryProcessor, ResultSet,
};

use crate::store::TestStore;

struct Session {
    processor: QueryProcessor,
    client: ClientState,
}

impl Session {
    fn new(options: QueryOptions) -> Self {
        let mut session = Self::over(&TestStore::in_memory(), options);
        for keyspace in ["one", "two"] {
            session.run(&format!(
                "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
            ));
            session.run(&format!("CREATE TABLE {keyspace}.t (k int PRIMARY KEY, v text)"));
        }
        session
    }

    /// A processor as after a start.
    fn over(store: &Arc<TestStore>, options: QueryOptions) -> Self {
        Self {
            processor: QueryProcessor::new(store.clone(), options),
            client: ClientState::default(),
        }
    }

    /// The next start of the same node.
    fn restarted(self, store: &Arc<TestStore>) -> Self {
        drop(self);
        Self::over(store, QueryOptions::default())
    }

    fn run(&mut self, cql: &str) -> Executed {
        let options = ExecuteOptions::default();
        self.processor.query(&mut self.client, cql, &options).unwrap()
    }

    fn execute(&mut self, prepared: &Arc<Prepared>) -> Result<Executed, Error> {
        let options = ExecuteOptions::default();
        self.processor.execute(&mut self.client, prepared, &options)
    }

    fn knows(&self, prepared: &Prepared) -> bool {
        self.processor.prepared(&prepared.id).is_some()
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
fn prepared_statements_are_limited_by_their_bytes() {
    let session = Session::new(QueryOptions {
        prepared_bytes_max: 4 << 20,
        ..QueryOptions::default()
    });
    let text = |number: usize| format!("TRUNCATE one.t -- {number} {}", "x".repeat(200_000));
    let ids: Vec<[u8; 16]> = (0..60).map(|number| session.prepare(&text(number)).id).collect();
    let known = ids.iter().filter(|id| session.processor.prepared(*id).is_some());
    let bytes = known.count() * 200_000;
    assert!(
        (200_000..=2 << 20).contains(&bytes),
        "{bytes} bytes of text are kept"
    );
    let large = format!("TRUNCATE one.t -- {}", "x".repeat(600_000));
    let refused = session.processor.prepare(&ClientState::default(), &large, None);
    let Err(Error::Invalid(message)) = refused else {
        panic!("{refused:?}");
    };
    assert!(message.contains("larger than allowed maximum"), "{message}");
}

/// A node with tables `ks.t` and `ks.u`, and what is left of it without the process.
fn with_two_tables() -> (Arc<TestStore>, Session) {
    let store = TestStore::in_memory();
    let mut session = Session::over(&store, QueryOptions::default());
    for cql in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "USE ks",
        "CREATE TABLE t (k int PRIMARY KEY)",
        "CREATE TABLE u (k int PRIMARY KEY)",
    ] {
        session.run(cql);
    }
    (store, session)
}

#[test]
fn a_prepared_statement_outlives_the_process() {
    let (store, mut before) = with_two_tables();
    let prepared = before.prepare("SELECT * FROM t");
    let of_dropped = before.prepare("SELECT * FROM u");
    before.run("DROP TABLE u");
    let mut after = before.restarted(&store);
    let found = after.processor.prepared(&prepared.id).unwrap();
    assert_eq!(found.result_metadata_id, prepared.result_metadata_id);
    assert!(after.execute(&found).is_ok());
    assert!(!after.knows(&of_dropped));
    let rows = "SELECT query_string, logged_keyspace FROM system.prepared_statements";
    let Outcome::Rows(left) = after.run(rows).outcome else {
        panic!("no rows")
    };
    assert_eq!(left.row_count, 1);
}

#[test]
fn a_statement_is_prepared_no_more_when_what_it_uses_has_changed() {
    let select = "SELECT * FROM one.t";
    let call = "SELECT one.f(k) FROM two.t";
    let batch = "BEGIN BATCH INSERT INTO one.t (k) VALUES (1); INSERT INTO two.t (k) VALUES (1) APPLY BATCH";
    let function = "FUNCTION one.f(x int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE lua AS 'return x'";
    for (change, invalid) in [
        ("ALTER TABLE one.t ADD w int".to_owned(), vec![select, batch]),
        (
            "ALTER TABLE one.t WITH gc_grace_seconds = 1".to_owned(),
            vec![select, batch],
        ),
        ("ALTER TABLE one.t WITH comment = 'x'".to_owned(), vec![]),
        ("CREATE INDEX ON one.t (v)".to_owned(), vec![select, batch]),
        ("ALTER TYPE one.ty ADD b int".to_owned(), vec![select, batch]),
        (
            format!("CREATE OR REPLACE {} + 1'", function.trim_end_matches('\'')),
            vec![call],
        ),
        (
            "CREATE FUNCTION one.f(x text) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE lua AS 'return 1'"
                .to_owned(),
            vec![call],
        ),
        ("DROP FUNCTION one.f".to_owned(), vec![call]),
        ("DROP TABLE one.t".to_owned(), vec![select, batch]),
        ("DROP KEYSPACE one".to_owned(), vec![select, batch, call]),
    ] {
        let mut session = Session::new(QueryOptions::default());
        session.run("CREATE TYPE one.ty (a int)");
        session.run("ALTER TABLE one.t ADD u frozen<ty>");
        session.run(&format!("CREATE {function}"));
        let ids: Vec<_> = [select, call, batch]
            .into_iter()
            .map(|text| (text, session.prepare(text)))
            .collect();
        session.run(&change);
        for (text, prepared) in ids {
            assert_eq!(
                session.knows(&prepared),
                !invalid.contains(&text),
                "{change}: {text}"
            );
            // A client that found it before the change gets the same error.
            let executed = session.execute(&prepared);
            let unprepared = Error::Unprepared {
                id: prepared.id.to_vec(),
            };
            assert_eq!(
                executed.err() == Some(unprepared),
                invalid.contains(&text),
                "{change}: {text}"
            );
        }
    }
}

#[test]
fn a_statement_that_was_prepared_before_a_change_is_unknown_after_a_restart() {
    let (store, first) = with_two_tables();
    let of_t = first.prepare("SELECT * FROM ks.t");
    let of_u = first.prepare("SELECT * FROM ks.u");
    // After the start, neither was used when the table changes.
    let mut second = first.restarted(&store);
    second.run("ALTER TABLE ks.t ADD v int");
    assert!(!second.knows(&of_t));
    assert_eq!(second.prepare("SELECT * FROM ks.u").id, of_u.id);
    second.run("ALTER TABLE ks.t ADD w int");
    let third = second.restarted(&store);
    assert!(!third.knows(&of_t));
    assert!(third.knows(&of_u));
}

#[test]
fn a_statement_that_a_change_leaves_alone_is_known_after_a_restart() {
    let (store, mut first) = with_two_tables();
    let prepared = first.prepare("SELECT * FROM ks.t");
    first.run("CREATE TABLE ks.v (k int PRIMARY KEY)");
    // It is planned again, since the schema has changed.
    assert!(first.knows(&prepared));
    assert!(first.restarted(&store).knows(&prepared));
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
