//! Masked columns of a whole node, over a socket and over restarts.

use std::sync::Arc;

use ilion_env::{CrashRule, MemEnv};
use ilion_protocol::Version;
use ilion_settings::Settings;

use crate::client::{Client, error_of, rows_of};
use crate::logins::{ROOT, make_root, with_logins};
use crate::{Setup, run, start_with};

const BOB: (&str, &str) = ("bob", "bob");

fn start_on(env: Arc<MemEnv>, is_masking: bool) -> Setup {
    let setup = start_with(env, |settings: &mut Settings| {
        with_logins(settings);
        settings.dynamic_data_masking_enabled = is_masking;
        settings.slow_query_log_timeout = std::time::Duration::from_nanos(1);
    });
    make_root(&setup);
    setup
}

fn log_in(setup: &Setup, who: (&str, &str)) -> Client {
    Client::log_in(setup.server.address(), Version::V4, None, who)
}

fn texts(client: &mut Client, cql: &str) -> Vec<String> {
    let rows = rows_of(client.query(cql));
    let cells = rows.cells().map(|cell| cell.unwrap_or_default());
    cells
        .map(|cell| String::from_utf8_lossy(cell).into_owned())
        .collect()
}

/// A table with a secret that `bob` may read and write, but not see.
fn make_secret(root: &mut Client) {
    run(
        root,
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    run(
        root,
        "CREATE FUNCTION ks.fails (v text) CALLED ON NULL INPUT RETURNS text LANGUAGE lua AS $$ error(v) $$",
    );
    run(
        root,
        "CREATE TABLE ks.t (k int PRIMARY KEY, v text MASKED WITH mask_inner(1, 1), w text MASKED WITH fails())",
    );
    run(
        root,
        "INSERT INTO ks.t (k, v, w) VALUES (1, 'cLeArTeXt', 'cLeArToO')",
    );
    run(root, "CREATE ROLE bob WITH PASSWORD = 'bob' AND LOGIN = true");
    run(root, "GRANT SELECT ON KEYSPACE ks TO bob");
    run(root, "GRANT MODIFY ON KEYSPACE ks TO bob");
    run(root, "GRANT SELECT ON KEYSPACE system_traces TO bob");
    run(root, "GRANT SELECT ON KEYSPACE system_views TO bob");
}

#[test]
fn masks_and_grants_survive_a_crash_and_apply_while_masking_is_enabled() {
    let setup = start_on(Arc::new(MemEnv::new(1)), true);
    make_secret(&mut log_in(&setup, ROOT));
    let select = "SELECT v FROM ks.t";
    assert_eq!(texts(&mut log_in(&setup, BOB), select), ["c*******t"]);
    let mut setup = setup;
    for (is_masking, seen) in [(true, "c*******t"), (false, "cLeArTeXt"), (true, "c*******t")] {
        let crashed = Arc::new(setup.env.crash(CrashRule::LoseUnsynced));
        drop(setup);
        setup = start_on(crashed, is_masking);
        assert_eq!(texts(&mut log_in(&setup, BOB), select), [seen]);
        assert_eq!(texts(&mut log_in(&setup, ROOT), select), ["cLeArTeXt"]);
    }
    run(&mut log_in(&setup, ROOT), "GRANT UNMASK ON TABLE ks.t TO bob");
    let crashed = Arc::new(setup.env.crash(CrashRule::LoseUnsynced));
    drop(setup);
    let setup = start_on(crashed, true);
    assert_eq!(texts(&mut log_in(&setup, BOB), select), ["cLeArTeXt"]);
}

#[test]
fn what_describe_prints_makes_the_same_table() {
    let setup = start_on(Arc::new(MemEnv::new(1)), true);
    let mut root = log_in(&setup, ROOT);
    make_secret(&mut root);
    let describe = |root: &mut Client| texts(root, "DESCRIBE TABLE ks.t")[3].clone();
    let before = describe(&mut root);
    assert!(
        before.contains("v text MASKED WITH system.mask_inner(1, 1)"),
        "{before}"
    );
    run(&mut root, "DROP TABLE ks.t");
    run(&mut root, &before);
    assert_eq!(describe(&mut root), before);
}

/// Whether the part that masks hide is in a text, as characters, or as the numbers of its bytes.
fn has_secret(text: &str) -> bool {
    let part = "LeArT";
    let numbers = format!("{:?}", part.as_bytes());
    text.contains(part) || text.contains(numbers.trim_matches(['[', ']']))
}

#[test]
fn a_masked_value_is_in_no_answer_and_in_no_table_that_tells_of_statements() {
    let setup = start_on(Arc::new(MemEnv::new(1)), true);
    let mut root = log_in(&setup, ROOT);
    make_secret(&mut root);
    // What the superuser wrote is in these tables, too, since it is in the text.
    let crashed = Arc::new(setup.env.crash(CrashRule::LoseUnsynced));
    drop((root, setup));
    let setup = start_on(crashed, true);
    let mut bob = log_in(&setup, BOB);
    setup.node.observers().trace_probability.set(1.0);
    let mut shown = Vec::new();
    for statement in [
        "SELECT * FROM ks.t",
        "SELECT JSON k, v FROM ks.t",
        "SELECT DISTINCT k FROM ks.t WHERE v = 'x' ALLOW FILTERING",
        "SELECT min(v), max(v) FROM ks.t",
        "SELECT v FROM ks.t GROUP BY k",
        "SELECT w FROM ks.t",
        "SELECT to_json(w) FROM ks.t",
        "SELECT cast(w as blob), text_as_blob(v) FROM ks.t",
        "SELECT text_as_blob(v), [v], (v, k) FROM ks.t",
        "SELECT v FROM ks.t WHERE v > 'a' ALLOW FILTERING",
        "EXPLAIN SELECT v FROM ks.t",
        "EXPLAIN ANALYZE SELECT v FROM ks.t",
        "EXPLAIN ANALYZE SELECT w FROM ks.t",
        "INSERT INTO ks.t (k) VALUES (1) IF NOT EXISTS",
        "UPDATE ks.t SET v = 'x' WHERE k = 1 IF v = 'y'",
        "UPDATE ks.t SET v = 'x' WHERE k = 1 IF w = 'y'",
        "DELETE FROM ks.t WHERE k = 1 IF w = 'y' AND v = 'z'",
        "BEGIN BATCH UPDATE ks.t SET v = 'x' WHERE k = 1 IF w = 'y' APPLY BATCH",
    ] {
        shown.push((statement, format!("{:?}", bob.query(statement))));
    }
    setup.node.observers().trace_probability.set(0.0);
    for table in [
        "system_traces.sessions",
        "system_traces.events",
        "system_views.statements",
        "system_views.queries",
        "system_views.system_logs",
    ] {
        shown.push((
            table,
            texts(&mut bob, &format!("SELECT JSON * FROM {table}")).concat(),
        ));
    }
    for (what, text) in shown {
        assert!(!has_secret(&text), "{what}: {text}");
    }
    // The same search finds it where it may be seen.
    let seen = format!("{:?}", log_in(&setup, ROOT).query("SELECT * FROM ks.t"));
    assert!(has_secret(&seen), "{seen}");
    let refused = error_of(bob.query("SELECT w FROM ks.t")).message;
    assert_eq!(
        refused,
        "execution of 'ks.fails[text]' failed, which masks a column"
    );
}
