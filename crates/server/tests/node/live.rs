//! Settings changed while the node runs, the port of clients closed and opened, SSTables checked and written anew.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ilion_env::{Env, MemEnv};
use ilion_node::ReloadReport;
use ilion_protocol::{Response, Version};
use ilion_server::admin::{
    AdminClient, AdminDoor, ClientError, DoorOptions, EngineAdmin, NodeReport, SettingsReport, VerifyReport,
};
use ilion_server::{Entrance, Port};
use ilion_settings::Loaded;

use crate::client::Client;
use crate::{Setup, admin, make_table, run, start, start_on, start_with, tls};

const TIMEOUT: Duration = Duration::from_secs(20);

/// The message of a statement that must fail.
fn refusal(client: &mut Client, text: &str) -> String {
    match client.query(text) {
        Response::Error(error) => error.message,
        other => panic!("{text}: {other:?}"),
    }
}

fn value(admin: &AdminClient, name: &str) -> String {
    let settings: SettingsReport = admin.get("/admin/settings").unwrap();
    settings.value(name).unwrap().to_owned()
}

fn set(name: &str, value: &str) -> String {
    format!("UPDATE system_views.settings SET value = '{value}' WHERE name = '{name}'")
}

#[test]
fn an_update_of_a_setting_holds_at_once_for_text_and_prepared_statements() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    let (_door, admin) = admin::open(&setup);
    let filtering = "SELECT * FROM ks.t WHERE v = 'x' ALLOW FILTERING";
    run(&mut client, filtering);
    run(&mut client, &set("allow_filtering_enabled", "false"));
    assert!(refusal(&mut client, filtering).contains("ALLOW FILTERING"));
    assert_eq!(value(&admin, "allow_filtering_enabled"), "false");
    run(&mut client, &set("allow_filtering_enabled", "true"));
    run(&mut client, filtering);

    // Limits that are asked at each execution hold for what was planned before.
    let value_of = |size: usize| format!("INSERT INTO ks.t (k, v) VALUES (1, '{}')", "x".repeat(size));
    run(&mut client, &value_of(2048));
    run(&mut client, &set("column_value_size_fail_threshold", "1KiB"));
    assert!(
        refusal(&mut client, &value_of(2048)).contains("column_value_size") || {
            let message = refusal(&mut client, &value_of(2048));
            panic!("{message}")
        }
    );
    // INSERT is another way to write it.
    run(
        &mut client,
        "INSERT INTO system_views.settings (name, value) VALUES ('column_value_size_fail_threshold', 'auto')",
    );
    run(&mut client, &value_of(2048));
}

#[test]
fn old_versions_of_the_protocol_are_refused_and_allowed_again() {
    let setup = start();
    let (mut old, mut new) = (setup.client(Version::V4), setup.client(Version::V5));
    let statement = "SELECT key FROM system.local";
    run(&mut old, statement);
    run(&mut new, &set("native_transport_allow_older_protocols", "false"));
    assert_eq!(
        refusal(&mut old, statement),
        "Rejecting Protocol Version 4/v4 < 5/v5."
    );
    run(&mut new, statement);
    run(&mut new, &set("native_transport_allow_older_protocols", "true"));
    run(&mut old, statement);
}

#[test]
fn what_cannot_be_changed_is_refused_by_name_and_nothing_is_changed() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    let (_door, admin) = admin::open(&setup);
    let before: SettingsReport = admin.get("/admin/settings").unwrap();
    for (statement, reason) in [
        (
            set("native_transport_port", "1"),
            "native_transport_port cannot be changed while the node runs",
        ),
        (
            set("read_request_timeot", "1s"),
            "unknown setting read_request_timeot; did you mean read_request_timeout?",
        ),
        (
            set("read_request_timeout", "soon"),
            "read_request_timeout: expected a duration like 10s",
        ),
        (set("hinted_handoff_enabled", "true"), "hinted_handoff_enabled"),
        (
            "DELETE FROM system_views.settings WHERE name = 'read_request_timeout'".to_owned(),
            "Deletion is not supported by table system_views.settings",
        ),
        (
            "UPDATE system_views.settings SET value = null WHERE name = 'read_request_timeout'".to_owned(),
            "read_request_timeout needs a value",
        ),
        (
            format!("{} IF EXISTS", set("read_request_timeout", "1s")),
            "Conditional updates are not supported by table system_views.settings",
        ),
        (
            "UPDATE system_views.settings USING TTL 5 SET value = '1s' WHERE name = 'read_request_timeout'"
                .to_owned(),
            "Expiring columns are not supported by table system_views.settings",
        ),
        (
            format!("BEGIN BATCH {}; APPLY BATCH", set("read_request_timeout", "1s")),
            "Virtual tables cannot be updated in a batch",
        ),
        (
            "UPDATE system_views.caches SET size_bytes = 1 WHERE name = 'keys'".to_owned(),
            "Modification is not supported by table system_views.caches",
        ),
    ] {
        let told = refusal(&mut client, &statement);
        assert!(told.contains(reason), "{statement}: {told}");
    }
    // Of several settings one is wrong: none is changed.
    let both = "/admin/settings?assignments=read_request_timeout%3D1s%0Apartitioner%3Dnone";
    assert!(matches!(admin.post(both), Err(ClientError::Refused(_))));
    let after: SettingsReport = admin.get("/admin/settings").unwrap();
    assert_eq!(before, after);
}

#[test]
fn setters_of_nodetool_go_the_same_way() {
    let setup = start();
    let (_door, admin) = admin::open(&setup);
    admin
        .post("/admin/cache?cache=keys&bytes_max=1048576&keys_to_save=5")
        .unwrap();
    admin
        .post("/admin/compaction-throughput?bytes_per_sec=33554432")
        .unwrap();
    admin.post("/admin/backup?on=true").unwrap();
    for (name, expected) in [
        ("key_cache_size", "1MiB"),
        ("key_cache_keys_to_save", "5"),
        ("compaction_throughput", "32MiB/s"),
        ("incremental_backups", "true"),
    ] {
        assert_eq!(value(&admin, name), expected, "{name}");
    }
    assert_eq!(setup.node.engine().compaction_throughput(), Some(32 << 20));
    assert!(setup.node.engine().is_backing_up());
    let settings: SettingsReport = admin.get("/admin/settings").unwrap();
    assert_eq!(settings.value_at_start("compaction_throughput"), Some("64MiB/s"));
    assert_eq!(settings.value_at_start("log_level"), Some("info"));
}

/// A door over a node whose file has this text.
fn with_file(setup: &Setup, text: &'static str) -> (AdminDoor, AdminClient) {
    let settings = setup.settings.clone();
    let reloading = move || {
        let mut loaded = Loaded {
            settings: settings.clone(),
            ..Loaded::default()
        };
        let added = loaded.add_text("ilion.yaml", text);
        added.map(|()| loaded).map_err(|error| error.to_string())
    };
    let admin = EngineAdmin::new(&setup.node, &setup.server, &setup.settings).with_reloading(reloading);
    let port = Port::take(Entrance::Administration, ([127, 0, 0, 1], 0).into()).unwrap();
    let door = AdminDoor::open(port, DoorOptions::of_this_machine(TIMEOUT), None, Arc::new(admin)).unwrap();
    let client = AdminClient::new(door.address());
    (door, client)
}

#[test]
fn a_reload_takes_over_what_it_can_and_lists_the_rest() {
    let setup = start();
    let (_door, admin) = with_file(
        &setup,
        "read_request_timeout: 7s\nnative_transport_max_threads: 3\nhinted_handoff_enabled: true\n",
    );
    let mut client = setup.client(Version::V5);
    // Changed by hand, and not in the file.
    run(&mut client, &set("range_request_timeout", "99s"));
    let report = admin.post("/admin/reload").unwrap();
    let report: ReloadReport = serde_json_of(report);
    assert_eq!(
        report.changed,
        [
            ("read_request_timeout".to_owned(), "7s".to_owned()),
            ("range_request_timeout".to_owned(), "10s".to_owned())
        ]
    );
    assert_eq!(report.needs_restart, ["native_transport_max_threads"]);
    assert_eq!(report.warnings.len(), 1, "{:?}", report.warnings);
    assert_eq!(value(&admin, "read_request_timeout"), "7s");
    assert_eq!(value(&admin, "native_transport_max_threads"), "auto");

    // A wrong file changes nothing.
    let (_door, admin) = with_file(&setup, "read_request_timeout: 8s\nrange_request_timeout: soon\n");
    let refused = admin.post("/admin/reload").unwrap_err().to_string();
    assert!(refused.contains("ilion.yaml, line 2"), "{refused}");
    assert_eq!(value(&admin, "read_request_timeout"), "7s");
}

/// What is secret is named as changed, but not shown; and the certificate of the node is warned of when it ends.
#[test]
fn a_reload_names_changed_secrets_and_warns_of_certificates_that_end() {
    let setup = start_with(tls::env(), |settings| {
        tls::encrypts(settings);
        settings.client_encryption_options_keystore = tls::EXPIRED_KEYSTORE.into();
        let mut loaded = Loaded {
            settings: settings.clone(),
            ..Loaded::default()
        };
        let text = "client_encryption_options:\n  keystore_password: word-one\n";
        loaded.add_text("ilion.yaml", text).unwrap();
        *settings = loaded.settings;
    });
    let text = "client_encryption_options:\n  keystore_password: word-two\n";
    let (_door, admin) = with_file(&setup, text);
    for _ in 0..2 {
        let report = admin.post("/admin/reload").unwrap();
        assert!(!report.to_string().contains("word-two"), "{report}");
        let report: ReloadReport = serde_json_of(report);
        assert_eq!(
            report.needs_restart,
            ["client_encryption_options_keystore_password"]
        );
        let [warning] = &report.warnings[..] else {
            panic!("{:?}", report.warnings);
        };
        assert!(
            warning.contains("/tls/expired.pem: the certificate ended at 2021-"),
            "{warning}"
        );
    }
    let shown = admin.get::<serde_json::Value>("/admin/settings").unwrap();
    assert!(!shown.to_string().contains("word-one"), "{shown}");
    // No secret has changed, so none is named.
    let (_door, admin) = with_file(&setup, "");
    let report: ReloadReport = serde_json_of(admin.post("/admin/reload").unwrap());
    assert_eq!(report.needs_restart, Vec::<String>::new());
}

fn serde_json_of<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// Status and body of a request without any header.
fn bare(address: SocketAddr, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap();
    (status.to_owned(), body.to_owned())
}

#[test]
fn a_closed_port_ends_connections_and_is_not_ready() {
    let setup = start();
    let admin = EngineAdmin::new(&setup.node, &setup.server, &setup.settings);
    let port = Port::take(Entrance::Administration, ([127, 0, 0, 1], 0).into()).unwrap();
    let (env, mut settings): (Arc<dyn Env>, _) = (setup.env.clone(), setup.settings.clone());
    let path = Path::new("/ilion/token");
    env.write_atomically(path, b"secret\n").unwrap();
    settings.admin_token_file = Some(path.to_owned());
    let options = DoorOptions::of(&env, &settings).unwrap();
    let door = AdminDoor::open(port, options, None, Arc::new(admin)).unwrap();
    let admin = AdminClient::new(door.address()).with_token("secret");
    let address = setup.server.address();

    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    assert_eq!(bare(door.address(), "/readyz").0, "200");
    admin.post("/admin/binary?on=false").unwrap();
    // Both ask without a token; everything else needs one.
    let (status, reason) = bare(door.address(), "/readyz");
    assert_eq!((&*status, reason.contains("may not connect")), ("503", true));
    assert_eq!(
        bare(door.address(), "/healthz"),
        ("200".to_owned(), "ok\n".to_owned())
    );
    assert_eq!(bare(door.address(), "/admin/binary").0, "200");
    assert_eq!(bare(door.address(), "/admin/status").0, "401");
    assert!(client.try_receive_frame().is_none());
    assert!(TcpStream::connect(address).is_err());
    // Twice is as good as once.
    admin.post("/admin/binary?on=false").unwrap();
    admin.post("/admin/binary?on=true").unwrap();
    admin.post("/admin/binary?on=true").unwrap();
    assert_eq!(bare(door.address(), "/readyz").0, "200");
    let mut client = setup.client(Version::V5);
    run(&mut client, "SELECT * FROM ks.t");
    admin.post("/admin/binary?on=false").unwrap();
    drop(client);
    // A node with a closed port stops as any other.
    drop(admin);
    setup.server.stop(TIMEOUT);
}

#[test]
fn sstables_are_checked_and_written_anew_while_the_table_is_in_use() {
    let env = Arc::new(MemEnv::new(1));
    let setup = start_on(env.clone());
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    let (_door, admin) = admin::open(&setup);
    for key in 0..3 {
        run(
            &mut client,
            &format!("INSERT INTO ks.t (k, v) VALUES ({key}, 'x')"),
        );
        admin.post("/admin/flush?keyspace=ks").unwrap();
    }
    let verified = |admin: &AdminClient| {
        let found = admin.post("/admin/verify?keyspace=ks&table=t").unwrap();
        serde_json_of::<VerifyReport>(found)
    };
    let before = verified(&admin);
    assert_eq!((before.sstables.len(), before.damaged()), (3, 0));
    // All are of the format that is written.
    let none = admin.post("/admin/rewrite?keyspace=ks&table=t").unwrap();
    assert_eq!(none["sstables"], 0);
    let all = admin.post("/admin/rewrite?keyspace=ks&table=t&all=true").unwrap();
    assert_eq!(all["sstables"], 3);
    let after = verified(&admin);
    assert_eq!((after.sstables.len(), after.damaged()), (3, 0));
    assert!(
        after
            .sstables
            .iter()
            .all(|sstable| !before.sstables.contains(sstable)),
        "{after:?}"
    );
    let node: NodeReport = admin.get("/admin/node").unwrap();
    let table = node
        .tables
        .iter()
        .find(|table| table.keyspace == "ks" && table.table == "t");
    assert!(table.is_some_and(|table| table.is_auto_compacting && table.sstables == 3));

    env.corrupt_byte(Path::new(&after.sstables[0].path), 10, 0x40)
        .unwrap();
    let damaged = verified(&admin);
    assert_eq!(damaged.damaged(), 1, "{damaged:?}");
    assert!(
        damaged
            .sstables
            .iter()
            .any(|sstable| { sstable.path == after.sstables[0].path && !sstable.damage.is_empty() })
    );
}

#[test]
fn smaller_blocks_of_the_row_index_hold_for_the_next_flush() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    run(
        &mut client,
        "CREATE TABLE ks.wide (k int, c int, v text, PRIMARY KEY (k, c))",
    );
    let (_door, admin) = admin::open(&setup);
    let data = setup.env.list(Path::new("/ilion/data/ks")).unwrap();
    let table = data
        .into_iter()
        .find(|entry| entry.name.starts_with("wide-"))
        .unwrap();
    let directory = Path::new("/ilion/data/ks").join(table.name);
    // Bytes of the partition index, which has the row indexes, of the SSTable that a flush of the same rows writes.
    let mut known = Vec::new();
    let mut flush = |client: &mut Client| {
        for row in 0..100 {
            let text = "x".repeat(1000);
            run(
                client,
                &format!("INSERT INTO ks.wide (k, c, v) VALUES (1, {row}, '{text}')"),
            );
        }
        admin.post("/admin/flush?keyspace=ks&table=wide").unwrap();
        let files = setup.env.list(&directory).unwrap();
        let index = files
            .into_iter()
            .find(|file| file.name.ends_with("-Index.db") && !known.contains(&file.name))
            .unwrap();
        known.push(index.name.clone());
        setup
            .env
            .read_all(&directory.join(index.name), 1 << 20)
            .unwrap()
            .len()
    };
    let set_size = |size: &str| set("column_index_size", size);
    let usual = flush(&mut client);
    run(&mut client, &set_size("4KiB"));
    assert_eq!(value(&admin, "column_index_size"), "4KiB");
    let small = flush(&mut client);
    assert!(small > 4 * usual, "{small} {usual}");
    run(&mut client, &set_size("auto"));
    assert_eq!(flush(&mut client), usual);
    for size in ["0B", "2GiB", "x"] {
        let refused = refusal(&mut client, &set_size(size));
        assert!(refused.contains("from 1B to 2147483646B"), "{refused}");
    }
}

#[test]
fn the_timeout_of_writes_of_a_node_that_is_alone_is_refused() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    let refused = refusal(&mut client, &set("write_request_timeout", "1s"));
    assert!(refused.contains("has an effect in a cluster only"), "{refused}");
}
