//! Indexes that are not built yet, or are created and dropped while a statement is prepared.

use std::sync::Arc;

use ilion_query::{ClientState, ExecuteOptions, Outcome, QueryOptions, QueryProcessor};

use crate::print::{self, Types};
use crate::store::TestStore;

struct Client {
    store: Arc<TestStore>,
    processor: QueryProcessor,
    state: ClientState,
}

impl Client {
    fn new() -> Self {
        let store = TestStore::in_memory();
        let mut client = Self {
            processor: QueryProcessor::new(store.clone(), QueryOptions::default()),
            store,
            state: ClientState::default(),
        };
        for statement in [
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "USE ks",
            "CREATE TABLE t (k int PRIMARY KEY, v int, w int)",
            "INSERT INTO t (k, v, w) VALUES (1, 10, 1)",
        ] {
            client.query(statement);
        }
        client
    }

    fn query(&mut self, statement: &str) -> String {
        let options = ExecuteOptions::default();
        let result = self.processor.query(&mut self.state, statement, &options);
        self.store.wait_built();
        print::answer(&result, Types::Hidden)
    }
}

#[test]
fn a_query_waits_for_the_index_that_it_needs() {
    let mut client = Client::new();
    client.query("CREATE INDEX ON t (v)");
    client.query("CREATE INDEX ON t (w)");
    client.store.set_built("t_v_idx", false);
    assert_eq!(
        client.query("SELECT k FROM t WHERE v = 10"),
        "error ReadFailure: The secondary index 't_v_idx' is not yet available\n"
    );
    assert_eq!(
        client.query("SELECT k FROM t WHERE v = 10 ALLOW FILTERING"),
        "k\n1\n(1 rows)\n"
    );
    assert_eq!(client.query("SELECT k FROM t WHERE w = 1"), "k\n1\n(1 rows)\n");
    client.store.set_built("t_v_idx", true);
    assert_eq!(client.query("SELECT k FROM t WHERE v = 10"), "k\n1\n(1 rows)\n");
}

#[test]
fn what_is_prepared_has_to_be_prepared_again_when_an_index_comes_or_goes() {
    let mut client = Client::new();
    client.query("CREATE INDEX ON t (v)");
    let prepare = |client: &Client| {
        let text = "SELECT k FROM t WHERE v = 10";
        client.processor.prepare(&client.state, text, None)
    };
    let execute = |client: &mut Client, prepared| {
        let options = ExecuteOptions::default();
        let executed = client.processor.execute(&mut client.state, prepared, &options);
        executed.map(|executed| match executed.outcome {
            Outcome::Rows(rows) => rows.row_count,
            other => panic!("rows, not {other:?}"),
        })
    };
    let prepared = prepare(&client).unwrap();
    let unprepared = Err(ilion_query::Error::Unprepared {
        id: prepared.id.to_vec(),
    });
    assert_eq!(execute(&mut client, &prepared), Ok(1));
    client.query("DROP INDEX t_v_idx");
    assert_eq!(execute(&mut client, &prepared), unprepared);
    assert!(prepare(&client).is_err());
    client.query("CREATE INDEX ON t (v) USING 'sai'");
    assert_eq!(execute(&mut client, &prepared), unprepared);
    let prepared = prepare(&client).unwrap();
    assert_eq!(execute(&mut client, &prepared), Ok(1));
}

/// The start of a partition is before its only row, also where no row can be before it.
#[test]
fn two_indexes_of_a_table_without_clustering_columns_find_what_both_have() {
    let mut client = Client::new();
    client.query("CREATE TABLE u (k int PRIMARY KEY, a int, b text)");
    client.query("CREATE INDEX ON u (a) USING 'sai'");
    client.query("CREATE INDEX ON u (b) USING 'sai'");
    let rows: Vec<(i32, i32, i32)> = (0..60).map(|k| (k, k % 10, k % 7)).collect();
    for (k, a, b) in &rows {
        client.query(&format!("INSERT INTO u (k, a, b) VALUES ({k}, {a}, 'b{b}')"));
    }
    for least in [0, 5, 9] {
        for wanted in 0..7 {
            let found = client.query(&format!("SELECT k FROM u WHERE a >= {least} AND b = 'b{wanted}'"));
            let count = rows
                .iter()
                .filter(|(_, a, b)| *a >= least && *b == wanted)
                .count();
            assert!(
                found.ends_with(&format!("({count} rows)\n")),
                "a >= {least}, b{wanted}: {count} rows are wanted\n{found}"
            );
        }
    }
}
