//! Limits of the operator: warnings and refusals, with Cassandra's messages.

use ilion_query::{ExecuteOptions, Flag, Fullness, Guardrails, Threshold, ValueLists};

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

/// A limit, a statement with a warning, a refused one, and the messages of both.
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
    let cases: [Case<'_>; 14] = [
        (
            |limits| &mut limits.minimum_replication_factor,
            3,
            2,
            "CREATE KEYSPACE n WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}",
            "CREATE KEYSPACE n WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "Guardrail minimum_replication_factor violated: The keyspace n has a replication factor of 2, below the warning \
             threshold of 3.",
            "Guardrail minimum_replication_factor violated: The keyspace n has a replication factor of 1, below the failure \
             threshold of 2.",
        ),
        (
            |limits| &mut limits.unlogged_batch_across_partitions,
            1,
            9,
            "BEGIN UNLOGGED BATCH INSERT INTO t (k, c) VALUES (1, 1); INSERT INTO t (k, c) VALUES (2, 1); APPLY BATCH",
            "",
            "Unlogged batch covering 2 partitions detected against table [ks.t]. You should use a logged batch for atomicity, or \
             asynchronous writes for performance.",
            "",
        ),
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
            |limits| &mut limits.keyspaces,
            1,
            2,
            "CREATE KEYSPACE n WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "",
            "Guardrail keyspaces violated: Creating keyspace n, current number of keyspaces 2 exceeds warning threshold of 1.",
            "",
        ),
        (
            |limits| &mut limits.secondary_indexes_per_table,
            0,
            0,
            "",
            "CREATE INDEX i ON t (v)",
            "",
            "Guardrail secondary_indexes_per_table violated: Tables cannot have more than 0 secondary indexes, aborting the \
             creation of secondary index i",
        ),
        (
            |limits| &mut limits.materialized_views_per_table,
            0,
            0,
            "",
            "CREATE MATERIALIZED VIEW m AS SELECT * FROM t WHERE k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (c, k)",
            "",
            "Guardrail materialized_views_per_table violated: Tables cannot have more than 0 materialized views, aborting the \
             creation of materialized view m",
        ),
        (
            |limits| &mut limits.in_select_cartesian_product,
            1,
            2,
            "SELECT * FROM t WHERE k = 1 AND c IN (1, 2)",
            "SELECT * FROM t WHERE k = 1 AND c IN (1, 2, 3)",
            "Guardrail in_select_cartesian_product violated: The cartesian product of the IN restrictions on clustering key \
             produces 2 values, this exceeds warning threshold of 1.",
            "Guardrail in_select_cartesian_product violated: Aborting query because the cartesian product of the IN restrictions \
             on clustering key produces 3 values, this exceeds fail threshold of 2.",
        ),
        (
            |limits| &mut limits.collection_size,
            20,
            40,
            "INSERT INTO t (k, c, l) VALUES (1, 1, [1, 2])",
            "INSERT INTO t (k, c, l) VALUES (1, 1, [1, 2, 3])",
            "Guardrail collection_size violated: Detected collection l of size 40, this exceeds the warning threshold of 20.",
            "Guardrail collection_size violated: Detected collection l of size 60, this exceeds the failure threshold of 40.",
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
        if !warned.is_empty() {
            let shown = answer(guardrails.clone(), warned);
            assert!(
                shown.contains(&format!("warning: {warning}\n")),
                "{warned}: {shown}"
            );
        }
        if !refused.is_empty() {
            assert_eq!(answer(guardrails, refused), format!("error Invalid: {refusal}\n"));
        }
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
        vector_type_enabled: false,
        use_statements_enabled: false,
        secondary_indexes_enabled: false,
        compact_tables_enabled: false,
        drop_compact_storage_enabled: false,
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
            "CREATE INDEX ON t (v)",
            "secondary_indexes violated: User creation of secondary indexes is not allowed",
        ),
        (
            "CREATE TABLE n (k int PRIMARY KEY, v int) WITH COMPACT STORAGE",
            "compact_tables violated: Creation of new COMPACT STORAGE tables is not allowed",
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
        (
            "ALTER TABLE t ADD x frozen<list<vector<float, 2>>>",
            "alter_table violated: User access to ALTER TABLE statement for column mutation is not allowed",
        ),
        (
            "CREATE TYPE n (x vector<float, 2>)",
            "vector_type_enabled violated: usage of the vector type is not allowed",
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
        ignored: vec!["gc_grace_seconds".into()],
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

#[test]
fn properties_that_are_ignored_are_left_out_with_a_warning() {
    let mut session = Session::in_memory();
    session.script(SCHEMA);
    session.limit(Guardrails {
        table_properties: ValueLists {
            ignored: vec!["comment".into()],
            ..ValueLists::default()
        },
        ..Guardrails::default()
    });
    let shown =
        session.query("CREATE TABLE n (k int PRIMARY KEY) WITH comment = 'x' AND gc_grace_seconds = 1");
    assert!(
        shown.contains(
            "warning: Guardrail table_properties violated: Ignoring provided values [comment] as they are not supported for \
             Table Properties (ignored values are: [comment])"
        ),
        "{shown}"
    );
    let kept = session.query("SELECT comment, gc_grace_seconds FROM system_schema.tables WHERE keyspace_name = 'ks' AND table_name = 'n'");
    assert!(kept.contains(" | 1"), "{kept}");
    assert!(!kept.contains('x'), "{kept}");
}

#[test]
fn a_value_of_an_ignored_property_that_is_wrong_costs_the_creator_no_permission() {
    let mut session = Session::in_memory();
    session.script(SCHEMA);
    session.limit(Guardrails {
        table_properties: ValueLists {
            ignored: vec!["gc_grace_seconds".into()],
            ..ValueLists::default()
        },
        ..Guardrails::default()
    });
    session.require_login();
    session.script(
        "CREATE ROLE bob WITH LOGIN = true AND PASSWORD = 'bob'; GRANT CREATE ON KEYSPACE ks TO bob;",
    );
    session.log_in("bob");
    let made = session.query("CREATE TABLE ks.n (k int PRIMARY KEY) WITH gc_grace_seconds = -1");
    assert!(!made.contains("error"), "{made}");
    let written = session.query("INSERT INTO ks.n (k) VALUES (1)");
    assert!(!written.contains("error"), "{written}");
}

#[test]
fn timestamps_too_far_from_the_clock_are_warned_of_and_refused() {
    const HOUR_MICROS: u64 = 3_600_000_000;
    let limits = Guardrails {
        maximum_timestamp: Threshold {
            warn: Some(HOUR_MICROS),
            fail: Some(HOUR_MICROS << 40),
        },
        minimum_timestamp: Threshold {
            warn: None,
            fail: Some(HOUR_MICROS),
        },
        ..Guardrails::default()
    };
    let insert = |micros: i64| format!("INSERT INTO t (k, c) VALUES (1, 1) USING TIMESTAMP {micros}");
    let ahead = answer(limits.clone(), &insert(i64::MAX / 2));
    assert!(
        ahead.contains(
            "warning: Guardrail maximum_timestamp violated: The modification to table t has a timestamp"
        ),
        "{ahead}"
    );
    let behind = answer(limits.clone(), &insert(-HOUR_MICROS.cast_signed() * 2));
    assert!(
        behind.starts_with(
            "error Invalid: Guardrail minimum_timestamp violated: The modification to table t has a timestamp"
        ),
        "{behind}"
    );
    assert!(
        behind.contains("before the minimum allowable failure threshold"),
        "{behind}"
    );
    assert_eq!(answer(limits, "INSERT INTO t (k, c) VALUES (1, 1)"), "ok\n");
}

#[test]
fn flags_warn_or_refuse() {
    let warned = Flag {
        warned: true,
        enabled: true,
    };
    let off = Flag {
        warned: true,
        enabled: false,
    };
    let window = "ALTER TABLE t WITH compaction = {'class': 'TimeWindowCompactionStrategy'}";
    let expiring = "ALTER TABLE t WITH default_time_to_live = 9 AND compaction = {'class': 'TimeWindowCompactionStrategy'}";
    let of_window = |flag| Guardrails {
        zero_ttl_on_twcs: flag,
        ..Guardrails::default()
    };
    let message = "Guardrail zero_ttl_on_twcs violated: 0 default_time_to_live on a table with TimeWindowCompactionStrategy \
                   compaction strategy is not";
    let shown = answer(of_window(warned), window);
    assert!(
        shown.contains(&format!("warning: {message} recommended. It is suspicious")),
        "{shown}"
    );
    let shown = answer(of_window(off), window);
    assert!(
        shown.starts_with(&format!("error Invalid: {message} allowed.")),
        "{shown}"
    );
    let shown = answer(of_window(off), expiring);
    assert!(!shown.contains("zero_ttl"), "{shown}");
}

#[test]
fn intersections_of_filters_are_guarded_at_levels_of_several_nodes() {
    let mut session = Session::in_memory();
    session.script(SCHEMA);
    session.script("ALTER TABLE ks.t ADD w int;");
    session.limit(Guardrails {
        intersect_filtering_query: Flag {
            warned: true,
            enabled: false,
        },
        ..Guardrails::default()
    });
    let quorum = ExecuteOptions {
        consistency: ilion_query::Consistency::QUORUM,
        ..ExecuteOptions::default()
    };
    let both = "SELECT * FROM t WHERE v = 'a' AND w = 1 ALLOW FILTERING";
    assert!(session.execute_with(both, &ExecuteOptions::default()).is_ok());
    assert!(
        session
            .execute_with("SELECT * FROM t WHERE w = 1 AND c = 1 ALLOW FILTERING", &quorum)
            .is_ok()
    );
    let refused = session.execute_with(both, &quorum).map(|_| ());
    assert!(refused.is_err_and(|error| {
        error
            .to_string()
            .contains("Guardrail intersect_filtering_query violated")
    }),);
}

#[test]
fn pages_are_guarded_by_the_rows_that_a_client_asks_for() {
    let mut session = Session::in_memory();
    session.script(SCHEMA);
    session.limit(Guardrails {
        page_size: of(10, 20),
        ..Guardrails::default()
    });
    let mut ask = |page_size| {
        let options = ExecuteOptions {
            page_size: Some(page_size),
            ..ExecuteOptions::default()
        };
        match session.execute_with("SELECT * FROM t", &options) {
            Ok(executed) => executed.warnings.join("\n"),
            Err(error) => error.to_string(),
        }
    };
    assert_eq!(ask(10), "");
    assert!(ask(11).ends_with("Query for table t with page size 11 exceeds warning threshold of 10."));
    assert!(ask(21).ends_with("Aborting query for table t, page size 21 exceeds fail threshold of 20."));
}

#[test]
fn writes_are_guarded_by_how_full_the_disk_is() {
    let mut session = Session::in_memory();
    session.script(SCHEMA);
    let usage = session.disk_usage();
    const WRITES: [&str; 4] = [
        "INSERT INTO t (k, c) VALUES (1, 1)",
        "UPDATE t SET v = 'x' WHERE k = 1 AND c = 1",
        "DELETE FROM t WHERE k = 1",
        "INSERT INTO t (k, c) VALUES (1, 9) IF NOT EXISTS",
    ];
    usage.set(Fullness::Stuffed);
    let warning =
        "warning: Guardrail replica_disk_usage violated: Replica disk usage exceeds warning threshold\n";
    assert!(session.query(WRITES[0]).contains(warning));
    assert!(
        !session.query(WRITES[0]).contains("warning"),
        "not with every write"
    );
    session.advance_secs(30 * 60);
    assert!(session.query(WRITES[1]).contains(warning));
    usage.set(Fullness::Full);
    for write in WRITES {
        assert_eq!(
            session.query(write),
            "error Invalid: Guardrail replica_disk_usage violated: Write request failed because disk usage exceeds failure \
             threshold\n",
            "{write}"
        );
    }
    assert!(!session.query("SELECT k FROM t").contains("error"));
    usage.set(Fullness::Spacious);
    assert_eq!(session.query(WRITES[0]), "ok\n");
}

#[test]
fn queries_of_an_index_have_to_name_the_partition() {
    let mut session = Session::in_memory();
    session.script(SCHEMA);
    session.script("CREATE INDEX ON ks.t (v);");
    session.limit(Guardrails {
        non_partition_restricted_index_query_enabled: false,
        ..Guardrails::default()
    });
    let shown = session.query("SELECT * FROM t WHERE v = 'a'");
    assert!(
        shown.starts_with("error Invalid: Guardrail non_partition_restricted_index_query"),
        "{shown}"
    );
    let shown = session.query("SELECT * FROM t WHERE v = 'a' AND k = 1");
    assert!(!shown.contains("error"), "{shown}");
}

#[test]
fn levels_of_reads_are_warned_of_and_refused() {
    let limits = |warned: &str, disallowed: &str| Guardrails {
        read_consistency_levels: ValueLists {
            warned: vec![warned.to_owned()],
            ignored: Vec::new(),
            disallowed: vec![disallowed.to_owned()],
        },
        ..Guardrails::default()
    };
    let shown = answer(limits("ONE", "ALL"), "SELECT k FROM t");
    assert!(
        shown.contains("Provided values [ONE] are not recommended for read consistency levels"),
        "{shown}"
    );
    let shown = answer(limits("ALL", "ONE"), "SELECT k FROM t");
    assert!(
        shown.contains("Provided values [ONE] are not allowed for read consistency levels"),
        "{shown}"
    );
}

#[test]
fn the_own_default_compaction_is_no_property_that_a_client_gave() {
    let mut session = Session::in_memory();
    session.script(SCHEMA);
    session.default_compaction("LeveledCompactionStrategy");
    let lists = |disallowed: &str, ignored: &str| Guardrails {
        table_properties: ValueLists {
            warned: Vec::new(),
            ignored: vec![ignored.to_owned()],
            disallowed: vec![disallowed.to_owned()],
        },
        uncompressed_tables_enabled: false,
        ..Guardrails::default()
    };
    session.limit(lists("compaction", "compression"));
    assert!(
        !session
            .query("CREATE TABLE n (k int PRIMARY KEY)")
            .contains("error")
    );
    let of_n = "SELECT compaction FROM system_schema.tables WHERE keyspace_name = 'ks' AND table_name = 'n'";
    let shown = session.query(of_n);
    assert!(shown.contains("LeveledCompactionStrategy"), "{shown}");
    // An ignored property breaks no other rule.
    let shown = session.query("CREATE TABLE m (k int PRIMARY KEY) WITH compression = {'enabled': 'false'}");
    assert!(!shown.contains("error"), "{shown}");
}

#[test]
fn superusers_are_exempt_also_from_what_was_planned_for_others() {
    let mut session = Session::in_memory();
    session.require_login();
    session.script(SCHEMA);
    session.script("CREATE ROLE bob WITH LOGIN = true AND PASSWORD = 'bob'");
    session.script("GRANT ALL ON ALL KEYSPACES TO bob");
    session.limit(Guardrails {
        group_by_enabled: false,
        user_timestamps_enabled: false,
        read_before_write_list_operations_enabled: false,
        drop_truncate_table_enabled: false,
        use_statements_enabled: false,
        column_value_size: of(1, 4),
        tables: of(0, 1),
        ..Guardrails::default()
    });
    let guarded = [
        "SELECT k, max(c) FROM ks.t GROUP BY k",
        "INSERT INTO ks.t (k, c) VALUES (1, 1) USING TIMESTAMP 5",
        "BEGIN BATCH INSERT INTO ks.t (k, c) VALUES (1, 1) USING TIMESTAMP 5; APPLY BATCH",
        "UPDATE ks.t SET l[0] = 1 WHERE k = 1 AND c = 1",
        "INSERT INTO ks.t (k, c, v) VALUES (1, 1, 'three')",
        "CREATE TABLE ks.another (k int PRIMARY KEY)",
        "TRUNCATE ks.t",
    ];
    // The list has an element to replace.
    session.log_in("cassandra");
    session.script("INSERT INTO ks.t (k, c, l) VALUES (1, 1, [7])");
    for statement in guarded {
        session.log_in("bob");
        let refused = session.query(statement);
        assert!(
            refused.starts_with("error Invalid: Guardrail"),
            "{statement}: {refused}"
        );
        session.log_in("cassandra");
        let answer = session.query(statement);
        assert!(
            !answer.contains("error") && !answer.contains("Guardrail"),
            "{statement}: {answer}"
        );
        session.script("DROP TABLE IF EXISTS ks.another");
        session.log_in("bob");
        assert_eq!(session.query(statement), refused, "{statement}");
    }
    session.log_in("cassandra");
    let refused = session.query("USE ks");
    assert!(refused.contains("USE statements prohibited"), "{refused}");
}
