//! Snapshots over the HTTP port, in the virtual table, and back in a table.

use std::sync::Arc;

use ilion_env::{Env, MemEnv};
use ilion_protocol::{Rows, Version};
use ilion_server::admin::{
    BackupReport, DataPathsReport, ImportReport, NodeTableReport, SSTablesReport, SnapshotsReport,
};

use crate::admin::{open, posted};
use crate::client::{Client, rows_of};
use crate::{make_table, run, start, start_with};

fn rows(client: &mut Client, text: &str) -> Rows {
    rows_of(run(client, text))
}

fn count(client: &mut Client, text: &str) -> usize {
    rows(client, text).rows().count()
}

#[test]
fn snapshots_are_taken_listed_and_cleared() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    run(&mut client, "INSERT INTO ks.t (k, v) VALUES (1, 'one')");
    let (_door, admin) = open(&setup);
    let list = || admin.get::<SnapshotsReport>("/admin/snapshots").unwrap();
    assert_eq!(list(), SnapshotsReport::default());
    assert_eq!(
        admin.post("/admin/snapshot?tag=one&keyspaces=ks").unwrap()["tables"],
        1
    );
    assert_eq!(
        admin.post("/admin/snapshot?tag=two&tables=ks.t&ttl=1h").unwrap()["tables"],
        1
    );
    assert_eq!(
        admin
            .post("/admin/snapshot?tag=three&keyspaces=ks&table=t&skip_flush=true")
            .unwrap()["tables"],
        1
    );
    let shown: Vec<_> = list()
        .snapshots
        .into_iter()
        .map(|one| (one.tag, one.keyspace, one.table))
        .collect();
    let expected = ["one", "three", "two"].map(|tag| (tag.to_owned(), "ks".to_owned(), "t".to_owned()));
    assert_eq!(shown, expected);
    for (request, message) in [
        ("snapshot?tag=one&keyspaces=ks", "Snapshot one already exists."),
        ("snapshot?tag=&keyspaces=ks", "You must supply a snapshot name."),
        ("snapshot?tag=x%2Fy", "Snapshot name cannot contain /"),
        (
            "snapshot?tag=x&keyspaces=nokeyspace",
            "Keyspace nokeyspace does not exist",
        ),
        (
            "snapshot?tag=x&tables=ks.nope",
            "Unknown keyspace/cf pair (ks.nope)",
        ),
        (
            "snapshot?tag=x&ttl=3s",
            "ttl for snapshot must be at least 60 seconds",
        ),
        (
            "clear-snapshot?tag=x&older_than=1h",
            "Specifying snapshot name together with an age is not allowed",
        ),
    ] {
        let error = admin.post(&format!("/admin/{request}")).unwrap_err();
        assert_eq!(error.to_string(), format!("the node refused: {message}"));
    }
    let clear =
        |request: &str| admin.post(&format!("/admin/clear-snapshot?{request}")).unwrap()["snapshots"].clone();
    assert_eq!(clear("tag=one&keyspaces=other"), 0);
    assert_eq!(clear("tag=one&keyspaces=ks"), 1);
    assert_eq!(clear("older_than=1d"), 0);
    assert_eq!(clear("older_than_timestamp=2100-01-01T00:00:00Z"), 2);
    assert_eq!(list(), SnapshotsReport::default());
    // All keyspaces, those of the system included.
    assert!(admin.post("/admin/snapshot?tag=all").unwrap()["tables"].as_u64() > Some(10));
}

#[test]
fn the_virtual_table_has_all_snapshots() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    run(&mut client, "INSERT INTO ks.t (k, v) VALUES (1, 'one')");
    run(&mut client, "TRUNCATE ks.t");
    let (_door, admin) = open(&setup);
    admin
        .post("/admin/snapshot?tag=kept&keyspaces=ks&ttl=1d")
        .unwrap();
    let all = "SELECT name, keyspace_name, table_name, expires_at, true_size FROM system_views.snapshots";
    assert_eq!(count(&mut client, all), 2);
    let kept = rows(&mut client, &format!("{all} WHERE name = 'kept'"));
    let kept: Vec<_> = kept.rows().collect();
    assert_eq!(kept.len(), 1);
    assert!(kept[0][3].is_some());
    run(&mut client, "DROP TABLE ks.t");
    assert_eq!(count(&mut client, all), 2);
}

#[test]
fn a_snapshot_of_a_table_with_indexes_and_a_view_is_brought_back() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    let view = "CREATE MATERIALIZED VIEW ks.mv AS SELECT * FROM ks.i WHERE v IS NOT NULL AND k IS NOT NULL \
                PRIMARY KEY (v, k)";
    for statement in [
        "CREATE TABLE ks.i (k int PRIMARY KEY, v text, w text)",
        "CREATE INDEX by_v ON ks.i (v)",
        "CREATE INDEX by_w ON ks.i (w) USING 'sai'",
        view,
    ] {
        run(&mut client, statement);
    }
    for key in 0..20 {
        let (v, w) = (key % 2, key % 5);
        run(
            &mut client,
            &format!("INSERT INTO ks.i (k, v, w) VALUES ({key}, 'v{v}', 'w{w}')"),
        );
    }
    let (_door, admin) = open(&setup);
    admin.post("/admin/flush?keyspace=ks&table=i").unwrap();
    run(&mut client, "UPDATE ks.i SET v = 'v1' WHERE k = 0");
    admin.post("/admin/snapshot?tag=s&keyspaces=ks").unwrap();
    let report: SnapshotsReport = admin.get("/admin/snapshots").unwrap();
    let of_table = report.snapshots.iter().find(|one| one.table == "i").unwrap();
    let directory = of_table.directory.clone();
    let in_hidden = setup.env.list(format!("{directory}/.by_v").as_ref()).unwrap();
    assert!(in_hidden.iter().any(|entry| entry.name.ends_with("Data.db")));
    let beside = setup.env.list(directory.as_ref()).unwrap();
    assert!(
        beside.iter().any(|entry| entry.name.contains("Index+by_w")),
        "{beside:?}"
    );
    assert!(report.snapshots.iter().any(|one| one.table == "mv"));
    run(&mut client, "TRUNCATE ks.i");
    assert_eq!(count(&mut client, "SELECT * FROM ks.mv"), 0);
    // An import would not fill the view: it is made again.
    run(&mut client, "DROP MATERIALIZED VIEW ks.mv");
    let escaped = directory.replace('/', "%2F");
    let place = format!("keyspace=ks&table=i&directory={escaped}&source=copied");
    let done: ImportReport = posted(&admin, &format!("/admin/import?{place}"));
    assert_eq!(done.refused, []);
    run(&mut client, view);
    setup.node.engine().wait_idle();
    assert_eq!(count(&mut client, "SELECT * FROM ks.i"), 20);
    assert_eq!(count(&mut client, "SELECT * FROM ks.i WHERE v = 'v1'"), 11);
    assert_eq!(count(&mut client, "SELECT * FROM ks.i WHERE v = 'v0'"), 9);
    assert_eq!(count(&mut client, "SELECT * FROM ks.i WHERE w = 'w3'"), 4);
    while count(&mut client, "SELECT * FROM ks.mv WHERE v = 'v1'") < 11 {
        std::thread::yield_now();
    }
    // The snapshot is still whole.
    assert!(setup.env.list(directory.as_ref()).unwrap().len() >= beside.len());
}

#[test]
fn backups_are_switched_and_files_are_found() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    let (_door, admin) = open(&setup);
    let backup = || admin.get::<BackupReport>("/admin/backup").unwrap().to_string();
    assert_eq!(backup(), "not running");
    admin.post("/admin/backup?on=true").unwrap();
    assert_eq!(backup(), "running");
    for key in [1, 2] {
        run(
            &mut client,
            &format!("INSERT INTO ks.t (k, v) VALUES ({key}, 'x')"),
        );
        admin.post("/admin/flush?keyspace=ks&table=t").unwrap();
    }
    let paths: DataPathsReport = admin.get("/admin/data-paths?tables=ks.t").unwrap();
    let directory = &paths.keyspaces["ks"]["t"];
    let backed_up = setup.env.list(format!("{directory}/backups").as_ref()).unwrap();
    let data = |name: &str| name.ends_with("Data.db");
    assert_eq!(backed_up.iter().filter(|entry| data(&entry.name)).count(), 2);
    let all: DataPathsReport = admin.get("/admin/data-paths").unwrap();
    assert!(all.keyspaces.contains_key("system_schema"));
    let with = |request: &str| {
        admin.get::<SSTablesReport>(&format!("/admin/sstables?keyspace=ks&table=t&{request}"))
    };
    assert_eq!(
        with("key=2").unwrap().sstables,
        [format!("{directory}/nb-2-big-Data.db")]
    );
    assert_eq!(
        with("key=00000001&hex=true").unwrap().sstables,
        [format!("{directory}/nb-1-big-Data.db")]
    );
    assert!(with("key=x").is_err());
    assert!(
        admin
            .get::<DataPathsReport>("/admin/data-paths?tables=ks.u")
            .is_err()
    );
}

#[test]
fn compactions_threads_and_clients_are_listed() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    let (_door, admin) = open(&setup);
    for _ in 0..2 {
        run(&mut client, "INSERT INTO ks.t (k, v) VALUES (1, 'x')");
        admin.post("/admin/flush?keyspace=ks&table=t").unwrap();
    }
    admin.post("/admin/compact?keyspace=ks&table=t").unwrap();
    let table = |name: &str| admin.get::<NodeTableReport>(&format!("/admin/{name}")).unwrap();
    let history = table("compaction-history").compaction_history();
    assert!(history.starts_with("Compaction History: \nid "), "{history}");
    assert!(history.contains(" ks            t                 "), "{history}");
    assert!(history.contains("{2:1}"), "{history}");
    let pools = table("thread-pools").thread_pools();
    assert!(
        pools.starts_with("Pool Name") && pools.lines().count() > 2,
        "{pools}"
    );
    let clients = table("clients");
    assert!(
        clients
            .clients(false)
            .starts_with("Total connected clients: 1\n\nUser")
    );
    assert!(
        clients.clients(true).contains("/127.0.0.1:"),
        "{}",
        clients.clients(true)
    );
}

#[test]
fn the_statements_of_a_snapshot_have_the_types_of_the_table_and_an_import_does_without_index_files() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    for statement in [
        "CREATE TYPE ks.inner_type (n int)",
        "CREATE TYPE ks.outer_type (i frozen<inner_type>)",
        "CREATE TYPE ks.unused (n int)",
        "CREATE TABLE ks.typed (k int PRIMARY KEY, l list<frozen<outer_type>>)",
        "INSERT INTO ks.typed (k, l) VALUES (1, [{i: {n: 1}}])",
    ] {
        run(&mut client, statement);
    }
    let (_door, admin) = open(&setup);
    admin.post("/admin/snapshot?tag=s&keyspaces=ks").unwrap();
    let report: SnapshotsReport = admin.get("/admin/snapshots").unwrap();
    let directory = |table: &str| {
        let found = report.snapshots.iter().find(|one| one.table == table).unwrap();
        found.directory.clone()
    };
    let statements = |table: &str| {
        let path = format!("{}/schema.cql", directory(table));
        String::from_utf8(setup.env.read_all(path.as_ref(), 1 << 20).unwrap()).unwrap()
    };
    let typed = statements("typed");
    let place = |name: &str| typed.find(&format!("IF NOT EXISTS ks.{name} ")).unwrap();
    assert!(
        place("inner_type") < place("outer_type") && place("outer_type") < place("typed"),
        "{typed}"
    );
    assert!(
        !typed.contains("unused") && !statements("t").contains("TYPE"),
        "{typed}"
    );
    // A snapshot of Cassandra may lack files of its indexes that TOC.txt lists.
    let toc = format!("{}/nb-1-big-TOC.txt", directory("typed"));
    let mut lines = setup.env.read_all(toc.as_ref(), 1 << 20).unwrap();
    lines.extend_from_slice(b"SAI+aa+i+Meta.db\n");
    setup.env.write_atomically(toc.as_ref(), &lines).unwrap();
    run(&mut client, "TRUNCATE ks.typed");
    let escaped = directory("typed").replace('/', "%2F");
    let place = format!("keyspace=ks&table=typed&directory={escaped}&source=copied");
    let done: ImportReport = posted(&admin, &format!("/admin/import?{place}"));
    assert_eq!((done.imported.len(), done.refused), (1, Vec::new()));
    assert_eq!(count(&mut client, "SELECT * FROM ks.typed"), 1);
}

#[test]
fn the_settings_say_which_snapshots_and_backups_are_made() {
    let setup = start_with(Arc::new(MemEnv::new(1)), |settings| {
        settings.auto_snapshot = false;
        settings.incremental_backups = true;
        settings.snapshot_before_compaction = true;
        settings.snapshot_links_per_second = 10_000;
    });
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    let (_door, admin) = open(&setup);
    for _ in 0..2 {
        run(&mut client, "INSERT INTO ks.t (k, v) VALUES (1, 'x')");
        admin.post("/admin/flush?keyspace=ks&table=t").unwrap();
    }
    admin.post("/admin/compact?keyspace=ks&table=t").unwrap();
    run(&mut client, "TRUNCATE ks.t");
    assert_eq!(
        admin.get::<BackupReport>("/admin/backup").unwrap().to_string(),
        "running"
    );
    let report: SnapshotsReport = admin.get("/admin/snapshots").unwrap();
    let of_table: Vec<_> = report.snapshots.iter().filter(|one| one.table == "t").collect();
    assert_eq!(of_table.len(), 1, "{of_table:?}");
    assert!(of_table[0].tag.ends_with("-compact-t"), "{of_table:?}");
}
