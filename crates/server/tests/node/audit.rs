//! The audit log of a whole node: what requests over a socket leave in its files.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;

use bytes::Bytes;
use ilion_audit::Category;
use ilion_env::{Env, MemEnv};
use ilion_protocol::{
    Batch, BatchStatement, Execute, Prepare, QueryParams, Request, Response, ResultBody, StatementSource,
    Values, ValuesBuilder, Version,
};
use ilion_server::admin::{Admin as _, AuditLogReport, EngineAdmin};
use ilion_settings::{AuditLogger, Categories, Loaded, Names, RollCycle, Settings, Size};
use serde_json::Value;

use crate::client::{Client, credentials, error_of};
use crate::logins::{ROOT, make_root, with_logins};
use crate::{Setup, make_table, run, start_with};

const DIRECTORY: &str = "/ilion/logs/audit";
const BOB: (&str, &str) = ("bob", "sEcReT");

pub fn on(settings: &mut Settings) {
    settings.audit_logging_options_enabled = true;
}

/// Files end with each minute.
fn minutely() -> RollCycle {
    let mut loaded = Loaded::default();
    let place = || String::new();
    loaded
        .set("audit_logging_options_roll_cycle", "MINUTELY", place)
        .unwrap();
    loaded.settings.audit_logging_options_roll_cycle
}

fn start(adjust: impl FnOnce(&mut Settings)) -> Setup {
    start_with(Arc::new(MemEnv::new(1)), |settings| {
        on(settings);
        adjust(settings);
    })
}

fn start_with_logins(adjust: impl FnOnce(&mut Settings)) -> Setup {
    let setup = start(|settings| {
        with_logins(settings);
        adjust(settings);
    });
    make_root(&setup);
    setup
}

impl Setup {
    fn log_in_as(&self, who: (&str, &str)) -> Client {
        Client::log_in(self.server.address(), Version::V5, None, who)
    }

    /// Switches the log off, so that all of it is written, and returns its entries.
    pub fn audited(&self) -> Vec<Value> {
        self.node.auditor().audit().switch_off();
        entries(&self.env)
    }

    fn counts(&self) -> [u64; 3] {
        use std::sync::atomic::Ordering::Relaxed;
        let counts = self.node.auditor().audit().counts();
        [&counts.written, &counts.dropped, &counts.failed].map(|count| count.load(Relaxed))
    }

    /// Waits for the thread of the log.
    fn wait_until_written(&self, count: u64) {
        while self.counts()[0] < count {
            std::thread::yield_now();
        }
    }

    /// Makes the table with both entries written.
    fn make_table_and_wait(&self, client: &mut Client) {
        run(
            client,
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        );
        self.wait_until_written(1);
        run(client, "CREATE TABLE ks.t (k int PRIMARY KEY, v text)");
        self.wait_until_written(2);
    }
}

/// The files of the log with their sizes, the newest last.
fn files(env: &MemEnv) -> Vec<(String, Vec<u8>)> {
    let listed = env.list(Path::new(DIRECTORY)).unwrap().into_iter();
    let read = |name: &str| env.read_all(&Path::new(DIRECTORY).join(name), 1 << 24).unwrap();
    listed
        .map(|entry| {
            let bytes = read(&entry.name);
            (entry.name, bytes)
        })
        .collect()
}

fn entries(env: &MemEnv) -> Vec<Value> {
    let mut entries = Vec::new();
    for (_, bytes) in files(env) {
        for line in String::from_utf8(bytes).unwrap().lines() {
            entries.push(serde_json::from_str(line).unwrap());
        }
    }
    entries
}

fn text<'e>(entry: &'e Value, field: &str) -> &'e str {
    entry[field].as_str().unwrap_or_default()
}

/// `TYPE CATEGORY ks.scope` of each entry.
pub fn summary(entries: &[Value]) -> Vec<String> {
    let of = |entry: &Value| {
        let [entry_type, category, keyspace, scope] =
            ["type", "category", "ks", "scope"].map(|field| text(entry, field));
        format!("{entry_type} {category} {keyspace}.{scope}")
    };
    entries.iter().map(of).collect()
}

fn prepare(client: &mut Client, cql: &str) -> Bytes {
    let request = Request::Prepare(Prepare {
        text: cql.to_owned(),
        keyspace: None,
    });
    match client.ask(request) {
        Response::Result(ResultBody::Prepared(prepared)) => prepared.id,
        other => panic!("{cql} is not prepared: {other:?}"),
    }
}

fn execute(id: &Bytes, values: Values) -> Request {
    Request::Execute(Execute {
        id: id.clone(),
        params: QueryParams {
            values,
            ..QueryParams::default()
        },
        ..Execute::default()
    })
}

#[test]
fn each_statement_has_its_type_and_category() {
    let setup = start(|_| ());
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    for cql in [
        "INSERT INTO ks.t (k, v) VALUES (1, 'one')",
        "UPDATE ks.t SET v = 'two' WHERE k = 1",
        "SELECT * FROM ks.t",
        "USE ks",
        "DELETE FROM t WHERE k = 1",
        "BEGIN BATCH INSERT INTO t (k) VALUES (2) APPLY BATCH",
        "CREATE INDEX i ON t (v)",
        "TRUNCATE t",
        "DESCRIBE KEYSPACES",
        "DROP TABLE t",
        "DROP KEYSPACE ks",
    ] {
        run(&mut client, cql);
    }
    let entries = setup.audited();
    assert_eq!(
        summary(&entries),
        [
            "CREATE_KEYSPACE DDL ks.",
            "CREATE_TABLE DDL ks.t",
            "UPDATE DML ks.t",
            "UPDATE DML ks.t",
            "SELECT QUERY ks.t",
            "USE_KEYSPACE OTHER ks.",
            "DELETE DML ks.t",
            "BATCH DML ks.",
            "CREATE_INDEX DDL ks.i",
            "TRUNCATE DDL ks.t",
            "DESCRIBE OTHER ks.",
            "DROP_TABLE DDL ks.t",
            "DROP_KEYSPACE DDL ks.",
        ]
    );
    let first = &entries[4];
    assert_eq!(text(first, "operation"), "SELECT * FROM ks.t");
    assert_eq!(text(first, "user"), "anonymous");
    assert_eq!(text(first, "host"), "127.0.0.1");
    assert_eq!(text(first, "source"), "127.0.0.1");
    assert!(first["port"].as_u64().unwrap() > 0);
    let now = setup.env.now_micros() / 1000;
    let told = first["timestamp"].as_i64().unwrap();
    assert!(told <= now && told > now - 3_600_000, "{told} at {now}");
}

#[test]
fn prepared_statements_are_told_when_prepared_and_executed_without_their_values() {
    let setup = start(|_| ());
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    run(&mut client, "USE ks");
    let id = prepare(&mut client, "INSERT INTO t (k, v) VALUES (1, ?)");
    let values = || {
        let mut values = ValuesBuilder::new();
        values.push(ilion_protocol::Value::Bytes(b"vAlUe"));
        values.build()
    };
    client.ask(execute(&id, values()));
    client.ask(execute(&id, values()));
    error_of(client.ask(execute(&Bytes::from_static(b"unknown id"), Values::default())));
    let entries = setup.audited();
    assert_eq!(
        summary(&entries[3..]),
        [
            "PREPARE_STATEMENT PREPARE ks.t",
            "UPDATE DML ks.t",
            "UPDATE DML ks.t",
            "REQUEST_FAILURE ERROR ks.",
        ]
    );
    assert_eq!(
        text(&entries[4], "operation"),
        "INSERT INTO t (k, v) VALUES (1, ?)"
    );
    assert!(!entries.iter().any(|entry| entry.to_string().contains("vAlUe")));
}

#[test]
fn a_batch_has_an_entry_of_its_own_and_one_for_each_statement() {
    let setup = start(|_| ());
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    let id = prepare(&mut client, "DELETE FROM ks.t WHERE k = 2");
    let batch = |first: &str| {
        let sources = [
            StatementSource::Text(first.to_owned()),
            StatementSource::Prepared(id.clone()),
        ];
        let statements = sources.map(|source| BatchStatement {
            source,
            values: Values::default(),
        });
        Request::Batch(Batch {
            statements: statements.to_vec(),
            ..Batch::default()
        })
    };
    client.ask(batch("INSERT INTO ks.t (k) VALUES (1)"));
    error_of(client.ask(batch("SELECT * FROM ks.t")));
    let entries = setup.audited();
    let entries = &entries[3..];
    assert_eq!(
        summary(entries),
        [
            "BATCH DML .",
            "UPDATE DML ks.t",
            "DELETE DML ks.t",
            "REQUEST_FAILURE ERROR ."
        ]
    );
    let id = text(&entries[0], "batch");
    assert_eq!(id.len(), 36);
    assert!(entries[..3].iter().all(|entry| text(entry, "batch") == id));
    assert_eq!(
        text(&entries[0], "operation"),
        format!("BatchId:[{id}] - BATCH of [2] statements")
    );
    let told = text(&entries[3], "operation");
    assert!(
        told.starts_with("BATCH of 2 statements at consistency ONE; Invalid statement in batch"),
        "{told}"
    );
}

#[test]
fn logins_refusals_and_errors_are_told() {
    let setup = start_with_logins(|_| ());
    let mut root = setup.log_in_as(ROOT);
    make_table(&mut root);
    run(
        &mut root,
        "CREATE ROLE bob WITH PASSWORD = 'sEcReT' AND LOGIN = true",
    );
    let mut bob = setup.log_in_as(BOB);
    error_of(bob.query("SELECT * FROM ks.t"));
    error_of(bob.query("SELECT * FROM ks.nothing"));
    error_of(bob.query("SELEC 1"));
    let mut stranger = Client::connect(setup.server.address(), Version::V4);
    stranger.startup(None);
    error_of(stranger.ask(credentials("bob", "wrong sEcReT")));
    error_of(stranger.ask(Request::AuthResponse(Some(Bytes::from_static(b"no credentials")))));
    let entries = setup.audited();
    let told: Vec<(String, &str)> = summary(&entries)
        .into_iter()
        .zip(entries.iter().map(|entry| text(entry, "user")))
        .collect();
    let expected = [
        ("LOGIN_SUCCESS AUTH .", "cassandra"),
        ("CREATE_KEYSPACE DDL ks.", "cassandra"),
        ("CREATE_TABLE DDL ks.t", "cassandra"),
        ("CREATE_ROLE DCL .", "cassandra"),
        ("LOGIN_SUCCESS AUTH .", "bob"),
        ("UNAUTHORIZED_ATTEMPT AUTH ks.t", "bob"),
        ("REQUEST_FAILURE ERROR ks.nothing", "bob"),
        ("REQUEST_FAILURE ERROR .", "bob"),
        ("LOGIN_ERROR AUTH .", ""),
        ("LOGIN_ERROR AUTH .", ""),
    ];
    assert_eq!(told, expected.map(|(entry, user)| (entry.to_owned(), user)));
    assert_eq!(text(&entries[4], "operation"), "LOGIN SUCCESSFUL");
    assert_eq!(
        text(&entries[5], "operation"),
        "SELECT * FROM ks.t; User bob has no SELECT permission on <table ks.t> or any of its parents"
    );
    assert!(text(&entries[7], "operation").starts_with("SELEC 1; line 1:0 "));
    assert_eq!(
        text(&entries[8], "operation"),
        "LOGIN FAILURE; Provided username bob and/or password are incorrect"
    );
    assert!(entries[8]["user"].is_null());
}

#[test]
fn passwords_are_never_in_the_files() {
    let setup = start_with_logins(|_| ());
    let mut root = setup.log_in_as(ROOT);
    let id = prepare(
        &mut root,
        "CREATE ROLE bob WITH PASSWORD = 'sEcReT' AND LOGIN = true",
    );
    root.ask(execute(&id, Values::default()));
    setup.log_in_as(BOB);
    for cql in [
        "ALTER ROLE bob WITH PASSWORD = 'sEcReT'",
        "CREATE USER carol WITH PASSWORD 'sEcReT'",
        "ALTER ROLE nobody WITH PASSWORD = 'sEcReT'",
        "ALTER ROLE bob WITH PASSWORD = sEcReT",
        "ALTER ROLE bob WITH PASSWORD = 'sEcReT",
        "ALTER ROLE bob WITH PASSWRD = 'x' AND PASSWORD = 'sEcReT'",
    ] {
        root.query(cql);
    }
    let in_batch = BatchStatement {
        source: StatementSource::Text("ALTER ROLE bob WITH PASSWORD = 'sEcReT'".to_owned()),
        values: Values::default(),
    };
    error_of(root.ask(Request::Batch(Batch {
        statements: vec![in_batch],
        ..Batch::default()
    })));
    let mut stranger = Client::connect(setup.server.address(), Version::V4);
    stranger.startup(None);
    error_of(stranger.ask(credentials("bob", "sEcReT2")));
    setup.node.auditor().audit().switch_off();
    let files = files(&setup.env);
    let whole = String::from_utf8(files.into_iter().flat_map(|(_, bytes)| bytes).collect()).unwrap();
    assert!(!whole.to_lowercase().contains("secret"), "{whole}");
    assert_eq!(
        whole
            .matches("CREATE ROLE bob WITH PASSWORD = '***' AND LOGIN = true")
            .count(),
        2
    );
    assert_eq!(whole.lines().count(), 12);
}

fn names(names: &[&str]) -> Names {
    Names(names.iter().map(|name| (*name).to_owned()).collect())
}

/// What a fixed course of requests leaves with these settings.
fn told_with(adjust: impl FnOnce(&mut Settings)) -> Vec<String> {
    let setup = start_with_logins(adjust);
    let mut root = setup.log_in_as(ROOT);
    make_table(&mut root);
    run(
        &mut root,
        "CREATE ROLE bob WITH PASSWORD = 'sEcReT' AND LOGIN = true",
    );
    run(&mut root, "SELECT * FROM system.local");
    let mut bob = setup.log_in_as(BOB);
    error_of(bob.query("SELECT * FROM ks.t"));
    run(&mut root, "INSERT INTO ks.t (k) VALUES (1)");
    summary(&setup.audited())
}

#[test]
fn keyspaces_categories_and_users_are_included_and_excluded() {
    let default = [
        "LOGIN_SUCCESS AUTH .",
        "CREATE_KEYSPACE DDL ks.",
        "CREATE_TABLE DDL ks.t",
        "CREATE_ROLE DCL .",
        "LOGIN_SUCCESS AUTH .",
        "UNAUTHORIZED_ATTEMPT AUTH ks.t",
        "UPDATE DML ks.t",
    ];
    assert_eq!(told_with(|_| ()), default);
    let told = told_with(|settings| settings.audit_logging_options_excluded_keyspaces = names(&["ks"]));
    assert_eq!(
        told,
        [
            "LOGIN_SUCCESS AUTH .",
            "CREATE_ROLE DCL .",
            "SELECT QUERY system.local",
            "LOGIN_SUCCESS AUTH ."
        ]
    );
    let told = told_with(|settings| settings.audit_logging_options_included_keyspaces = names(&["ks"]));
    assert_eq!(
        told,
        [
            "CREATE_KEYSPACE DDL ks.",
            "CREATE_TABLE DDL ks.t",
            "UNAUTHORIZED_ATTEMPT AUTH ks.t",
            "UPDATE DML ks.t"
        ]
    );
    let told = told_with(|settings| {
        settings.audit_logging_options_included_categories = Categories(vec![Category::Dml, Category::Auth]);
        settings.audit_logging_options_excluded_categories = Categories(vec![Category::Auth]);
    });
    assert_eq!(told, ["UPDATE DML ks.t"]);
    let told = told_with(|settings| settings.audit_logging_options_included_users = names(&["bob"]));
    assert_eq!(told, ["LOGIN_SUCCESS AUTH .", "UNAUTHORIZED_ATTEMPT AUTH ks.t"]);
    let told = told_with(|settings| {
        settings.audit_logging_options_excluded_users = names(&["cassandra"]);
        settings.audit_logging_options_excluded_categories = Categories(vec![Category::Auth]);
    });
    assert!(told.is_empty(), "{told:?}");
}

#[test]
fn files_roll_with_their_period_and_go_beyond_the_size() {
    let setup = start(|settings| {
        settings.audit_logging_options_roll_cycle = minutely();
        settings.audit_logging_options_max_log_size = Size(1);
    });
    let mut client = setup.client(Version::V5);
    let audit = setup.node.auditor().audit();
    setup.make_table_and_wait(&mut client);
    audit.switch_off();
    let at_first: Vec<String> = files(&setup.env).into_iter().map(|(name, _)| name).collect();
    // Each line is larger than the log may be.
    assert_eq!(at_first, ["audit.log"]);
    assert_eq!(entries(&setup.env).len(), 1);
    let setup = start(|settings| settings.audit_logging_options_roll_cycle = minutely());
    let mut client = setup.client(Version::V5);
    setup.make_table_and_wait(&mut client);
    let (sender, receiver) = mpsc::channel();
    setup.env.on_sync(move |_, event| {
        if event.path.ends_with("audit.log") {
            let _ = sender.send(());
        }
    });
    setup.env.advance_micros(60_000_000);
    run(&mut client, "SELECT * FROM ks.t");
    // The thread completes the file of the first minute.
    receiver.recv().unwrap();
    let entries = setup.audited();
    let files = files(&setup.env);
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["audit-000001.log", "audit.log"]);
    assert_eq!(
        summary(&entries),
        [
            "CREATE_KEYSPACE DDL ks.",
            "CREATE_TABLE DDL ks.t",
            "SELECT QUERY ks.t"
        ]
    );
    assert_eq!(setup.counts(), [3, 0, 0]);
}

/// A node whose thread of the audit log stands still at the end of a file, until the sender is dropped.
fn start_and_stall(adjust: impl FnOnce(&mut Settings)) -> (Setup, Client, mpsc::Sender<()>) {
    let setup = start(|settings| {
        settings.audit_logging_options_roll_cycle = minutely();
        settings.audit_logging_options_max_queue_weight = Size(1);
        adjust(settings);
    });
    let mut client = setup.client(Version::V5);
    setup.make_table_and_wait(&mut client);
    let (release, stalled) = mpsc::channel::<()>();
    let (reached, wait) = mpsc::channel();
    let stalled = std::sync::Mutex::new(stalled);
    setup.env.on_sync(move |_, event| {
        if event.path.ends_with("audit.log") {
            let _ = reached.send(());
            let _ = stalled.lock().unwrap().recv();
        }
    });
    setup.env.advance_micros(60_000_000);
    run(&mut client, "SELECT * FROM ks.t");
    wait.recv().unwrap();
    (setup, client, release)
}

#[test]
fn without_block_entries_are_dropped_and_counted_while_the_queue_is_full() {
    let (setup, mut client, release) =
        start_and_stall(|settings| settings.audit_logging_options_block = false);
    let [_, dropped, _] = setup.counts();
    run(&mut client, "INSERT INTO ks.t (k) VALUES (1)");
    run(&mut client, "INSERT INTO ks.t (k) VALUES (2)");
    assert_eq!(setup.counts()[1], dropped + 2);
    let metrics = EngineAdmin::new(&setup.node, &setup.server, &setup.settings).metrics();
    let expected = format!("ilion_audit_entries_dropped_total {}", dropped + 2);
    assert!(metrics.contains(&expected), "{metrics}");
    drop(release);
    let entries = setup.audited();
    assert_eq!(summary(&entries).last().unwrap(), "SELECT QUERY ks.t");
    assert_eq!(setup.counts()[0], entries.len() as u64);
}

#[test]
fn with_block_requests_wait_while_the_queue_is_full_and_nothing_is_lost() {
    let (setup, mut client, release) = start_and_stall(|_| ());
    client.send_query(1, "INSERT INTO ks.t (k) VALUES (1)");
    let engine = setup.node.engine();
    let table = engine.schema().table("ks", "t").unwrap().id;
    // The statement is executed, and its answer waits for the log.
    while engine.table_details(table).unwrap().facts.memtable_bytes == 0 {
        std::thread::yield_now();
    }
    assert_eq!(setup.counts()[1], 0);
    drop(release);
    assert!(matches!(client.receive().response, Response::Result(_)));
    let entries = setup.audited();
    assert_eq!(
        summary(&entries),
        [
            "CREATE_KEYSPACE DDL ks.",
            "CREATE_TABLE DDL ks.t",
            "SELECT QUERY ks.t",
            "UPDATE DML ks.t",
        ]
    );
    assert_eq!(setup.counts(), [4, 0, 0]);
}

#[test]
fn a_full_disk_loses_entries_and_counts_them_but_serves() {
    let setup = start(|_| ());
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    setup.wait_until_written(2);
    setup.env.set_capacity_bytes(0);
    run(&mut client, "SELECT k FROM ks.t");
    run(&mut client, "SELECT v FROM ks.t");
    while setup.counts()[2] < 2 {
        std::thread::yield_now();
    }
    setup.env.set_capacity_bytes(u64::MAX);
    run(&mut client, "SELECT * FROM ks.t");
    let entries = setup.audited();
    assert_eq!(text(&entries[2], "operation"), "SELECT * FROM ks.t");
    assert_eq!(setup.counts(), [3, 0, 2]);
}

#[test]
fn an_operator_switches_it_on_and_off() {
    let setup = start_with(Arc::new(MemEnv::new(1)), |_| ());
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    assert!(!setup.env.exists(Path::new(DIRECTORY)));
    let (_door, admin) = crate::admin::open(&setup);
    let option = |name: &str| {
        let report: AuditLogReport = admin.get("/admin/audit-log").unwrap();
        let found = report.options.into_iter().find(|(option, _)| option == name);
        found.unwrap().1
    };
    assert_eq!(option("enabled"), "false");
    assert_eq!(option("audit_logs_dir"), DIRECTORY);
    admin
        .post("/admin/audit-log?on=true&excluded_categories=ddl")
        .unwrap();
    assert_eq!(option("enabled"), "true");
    assert_eq!(option("excluded_categories"), "DDL");
    run(&mut client, "CREATE TABLE ks.u (k int PRIMARY KEY)");
    run(&mut client, "SELECT * FROM ks.u");
    // Without the filter it is as in the settings; the files go on.
    admin.post("/admin/audit-log?on=true").unwrap();
    run(&mut client, "DROP TABLE ks.u");
    admin.post("/admin/audit-log?on=false").unwrap();
    run(&mut client, "SELECT * FROM ks.t");
    assert_eq!(
        summary(&entries(&setup.env)),
        [
            "ADMINISTRATION OTHER .",
            "SELECT QUERY ks.u",
            "ADMINISTRATION OTHER .",
            "DROP_TABLE DDL ks.u",
            "ADMINISTRATION OTHER ."
        ]
    );
    for wrong in [
        "excluded_categories=JMX",
        "logger=BinAuditLogger",
        "logger=NoOpAuditLogger",
    ] {
        let path = format!("/admin/audit-log?on=true&{wrong}");
        assert!(admin.post(&path).is_err(), "{wrong}");
    }
    assert_eq!(option("enabled"), "false");
    let shown = admin
        .get::<AuditLogReport>("/admin/audit-log")
        .unwrap()
        .to_string();
    assert!(
        shown.contains("\nexcluded_keyspaces  system, system_schema"),
        "{shown}"
    );
}

#[test]
fn statements_of_the_dashboard_are_told_too() {
    let setup = start(|_| ());
    make_table(&mut setup.client(Version::V5));
    let (door, _) = crate::admin::open(&setup);
    crate::admin::post_json(&door, "/api/query", r#"{"cql": "SELECT * FROM ks.t"}"#);
    crate::admin::post_json(
        &door,
        "/api/query",
        r#"{"cql": "SELECT * FROM nothing", "keyspace": "ks"}"#,
    );
    let entries = setup.audited();
    assert_eq!(
        summary(&entries[2..]),
        ["SELECT QUERY ks.t", "REQUEST_FAILURE ERROR ks.nothing"]
    );
    assert_eq!(text(&entries[2], "user"), "system");
    assert_eq!(text(&entries[2], "source"), "0.0.0.0");
}

#[test]
fn what_cannot_be_written_is_refused_at_the_start() {
    let refused = |adjust: fn(&mut Settings)| {
        let env = MemEnv::new(1);
        env.write_atomically(Path::new("/file"), b"x").unwrap();
        let mut settings = Settings {
            directory: "/ilion".into(),
            audit_logging_options_enabled: true,
            ..Settings::default()
        };
        adjust(&mut settings);
        let opened = ilion_server::ServerNode::open(env.shared(), &settings);
        opened.err().map(|error| error.to_string())
    };
    let told = refused(|settings| settings.audit_logging_options_logger = AuditLogger::Bin).unwrap();
    assert!(told.contains("BinAuditLogger is not built"), "{told}");
    let told = refused(|settings| settings.audit_logging_options_audit_logs_dir = Some("/file/audit".into()))
        .unwrap();
    assert!(told.contains("audit_logs_dir: cannot create directory"), "{told}");
    let bin_but_off = refused(|settings| {
        settings.audit_logging_options_logger = AuditLogger::Bin;
        settings.audit_logging_options_enabled = false;
    });
    assert_eq!(bin_but_off, None);
}

#[test]
fn noop_and_a_disabled_log_write_no_files() {
    for adjust in [
        (|settings| settings.audit_logging_options_logger = AuditLogger::NoOp) as fn(&mut Settings),
        |settings| settings.audit_logging_options_enabled = false,
    ] {
        let setup = start(adjust);
        make_table(&mut setup.client(Version::V5));
        assert!(!setup.env.exists(Path::new(DIRECTORY)));
    }
}
