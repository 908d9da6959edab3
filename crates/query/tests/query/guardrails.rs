//! Limits of the operator: warnings and refusals, with Cassandra's messages.

use ilion_query::{Guardrails, Threshold, ValueLists};

use crate::session::Session;

const SCHEMA: &str = "
CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
USE ks;
CREATE TABLE t (k int, c int, v text, l list<int>, PRIMARY KEY (k, c));
";

fn answer(guardrails: Guardrails, statement: &str) -> String {
    let mut session = Session::in_memory();
    session.script(SCHEMA);
    session.limit(guardrails);
    session.query(statement)
}

fn of(warn: u64, fail: u64) -> Threshold {
    Threshold {
        warn: Some(warn),
        fail: Some(fail),
    }
}

/// A limit, a statement that is warned of, one that is refused, and the words of both.
type Case<'a> = (
    fn(&mut Guardrails) -> &mut Threshold,
    u64,
    u64,
    &'a str,
    &'a str,
    &'a str,
    &'a str,
);

#[test]
fn above_one_threshold_is_warned_and_above_the_other_refused() {
    let cases: [Case<'_>; 7] = [
        (
            |limits| &mut limits.columns_per_table,
            1,
            2,
            "CREATE TABLE n (a int PRIMARY KEY, b int)",
            "CREATE TABLE n (a int PRIMARY KEY, b int, c int)",
            "Guardrail columns_per_table violated: The table n has 2 columns, this exceeds the warning threshold of 1.",
            "Guardrail columns_per_table violated: Tables cannot have more than 2 columns, but 3 provided for table n",
        ),
        (
            |limits| &mut limits.fields_per_udt,
            1,
            2,
            "CREATE TYPE n (a int, b int)",
            "CREATE TYPE n (a int, b int, c int)",
            "Guardrail fields_per_udt violated: The user type n has 2 columns, this exceeds the warning threshold of 1.",
            "Guardrail fields_per_udt violated: User types cannot have more than 2 columns, but 3 provided for user type n.",
        ),
        (
            |limits| &mut limits.vector_dimensions,
            1,
            2,
            "CREATE TABLE n (a int PRIMARY KEY, b vector<float, 2>)",
            "CREATE TABLE n (a int PRIMARY KEY, b vector<float, 3>)",
            "Guardrail vector_dimensions violated: Column b has a vector of 2 dimensions, this exceeds the warning threshold of 1.",
            "Guardrail vector_dimensions violated: Column b has a vector of 3 dimensions, this exceeds the failure threshold of 2.",
        ),
        (
            |limits| &mut limits.partition_keys_in_select,
            1,
            2,
            "SELECT * FROM t WHERE k IN (1, 2)",
            "SELECT * FROM t WHERE k IN (1, 2, 3)",
            "Guardrail partition_keys_in_select violated: Query with partition keys in IN clause on table t, with number of \
             partition keys 2 exceeds warning threshold of 1.",
            "Guardrail partition_keys_in_select violated: Aborting query with partition keys in IN clause on table t, number \
             of partition keys 3 exceeds fail threshold of 2.",
        ),
        (
            |limits| &mut limits.column_value_size,
            1,
            2,
            "INSERT INTO t (k, c, v) VALUES (1, 1, 'ab')",
            "INSERT INTO t (k, c, v) VALUES (1, 1, 'abc')",
            "Guardrail column_value_size violated: Value of column 'v' has size 2, this exceeds the warning threshold of 1.",
            "Guardrail column_value_size violated: Value of column 'v' has size 3, this exceeds the failure threshold of 2.",
        ),
        (
            |limits| &mut limits.items_per_collection,
            1,
            2,
            "INSERT INTO t (k, c, l) VALUES (1, 1, [1, 2])",
            "BEGIN BATCH UPDATE t SET l = l + [1, 2, 3] WHERE k = 1 AND c = 1; APPLY BATCH",
            "Guardrail items_per_collection violated: Detected collection l with 2 items, this exceeds the warning threshold of 1.",
            "Guardrail items_per_collection violated: Detected collection l with 3 items, this exceeds the failure threshold of 2.",
        ),
        (
            |limits| &mut limits.maximum_replication_factor,
            1,
            2,
            "CREATE KEYSPACE n WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}",
            "CREATE KEYSPACE n WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}",
            "Guardrail maximum_replication_factor violated: The keyspace n has a replication factor of 2, above the warning \
             threshold of 1.",
            "Guardrail maximum_replication_factor violated: The keyspace n has a replication factor of 3, above the failure \
             threshold of 2.",
        ),
    ];
    for (limit, warn, fail, warned, refused, warning, refusal) in cases {
        let mut guardrails = Guardrails::default();
        *limit(&mut guardrails) = of(warn, fail);
        let shown = answer(guardrails.clone(), warned);
        assert!(
            shown.contains(&format!("warning: {warning}\n")),
            "{warned}: {shown}"
        );
        assert_eq!(answer(guardrails, refused), format!("error Invalid: {refusal}\n"));
    }
}

#[test]
fn what_is_switched_off_is_refused() {
    let off = Guardrails {
        group_by_enabled: false,
        drop_truncate_table_enabled: false,
        drop_keyspace_enabled: false,
        alter_table_enabled: false,
        user_timestamps_enabled: false,
        uncompressed_tables_enabled: false,
        read_before_write_list_operations_enabled: false,
        simplestrategy_enabled: false,
        tables: of(0, 1),
        ..Guardrails::default()
    };
    for (statement, message) in [
        (
            "SELECT k FROM t GROUP BY k",
            "group_by violated: GROUP BY functionality is not allowed",
        ),
        (
            "DROP TABLE t",
            "drop_truncate_table_enabled violated: DROP and TRUNCATE TABLE functionality is not allowed",
        ),
        (
            "TRUNCATE t",
            "drop_truncate_table_enabled violated: DROP and TRUNCATE TABLE functionality is not allowed",
        ),
        (
            "DROP KEYSPACE ks",
            "drop_keyspace_enabled violated: DROP KEYSPACE functionality is not allowed",
        ),
        (
            "ALTER TABLE t ADD x int",
            "alter_table violated: User access to ALTER TABLE statement for column mutation is not allowed",
        ),
        (
            "INSERT INTO t (k, c) VALUES (1, 1) USING TIMESTAMP 5",
            "user_timestamps violated: User provided timestamps (USING TIMESTAMP) is not allowed",
        ),
        (
            "ALTER TABLE t WITH compression = {'enabled': 'false'}",
            "uncompressed_tables_enabled violated: Uncompressed table is not allowed",
        ),
        (
            "UPDATE t SET l[0] = 1 WHERE k = 1 AND c = 1",
            "read_before_write_list_operations violated: List operation requiring read before write is not allowed",
        ),
        (
            "CREATE KEYSPACE n WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "simplestrategy violated: SimpleStrategy is not allowed",
        ),
        (
            "CREATE TABLE n (k int PRIMARY KEY)",
            "tables violated: Cannot have more than 1 tables, aborting the creation of table n",
        ),
    ] {
        let expected = format!("error Invalid: Guardrail {message}\n");
        assert_eq!(answer(off.clone(), statement), expected, "{statement}");
    }
}

#[test]
fn values_of_lists_are_warned_of_and_refused() {
    let lists = ValueLists {
        warned: vec!["comment".into(), "ONE".into()],
        disallowed: vec!["cdc".into()],
    };
    let limits = Guardrails {
        table_properties: lists.clone(),
        write_consistency_levels: lists,
        ..Guardrails::default()
    };
    let shown = answer(limits.clone(), "ALTER TABLE t WITH comment = 'x'");
    assert!(
        shown.contains(
            "Guardrail table_properties violated: Provided values [comment] are not recommended for Table Properties \
             (warned values are: [comment, ONE])"
        ),
        "{shown}"
    );
    assert_eq!(
        answer(limits.clone(), "ALTER TABLE t WITH cdc = true"),
        "error Invalid: Guardrail table_properties violated: Provided values [cdc] are not allowed for Table Properties \
         (disallowed values are: [cdc])\n"
    );
    let shown = answer(limits, "INSERT INTO t (k, c) VALUES (1, 1)");
    assert!(
        shown.contains("Provided values [ONE] are not recommended for write consistency levels"),
        "{shown}"
    );
}
