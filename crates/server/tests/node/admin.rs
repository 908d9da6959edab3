//! The door for operators.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use ilion_env::Env;
use ilion_protocol::Version;
use ilion_server::admin::{
    AdminClient, AdminDoor, ClientError, CompactionReport, EngineAdmin, ExportReport, ImportReport,
    InfoReport, StatusReport,
};

use crate::{Setup, make_table, run, start};

fn open(setup: &Setup) -> (AdminDoor, AdminClient) {
    let admin = EngineAdmin::new(&setup.node, &setup.server, &setup.settings);
    let door = AdminDoor::open(0, Arc::new(admin)).unwrap();
    let client = AdminClient::new(door.address().port());
    (door, client)
}

/// One exchange, as it is on the wire.
fn raw(door: &AdminDoor, request: &str) -> String {
    let mut stream = TcpStream::connect(door.address()).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_flush_brings_a_table_to_disk_and_the_status_tells() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    run(&mut client, "INSERT INTO ks.t (k, v) VALUES (1, 'one')");
    let (_door, admin) = open(&setup);
    let table = |status: StatusReport| {
        status
            .tables
            .into_iter()
            .find(|table| table.table == "t")
            .unwrap()
    };
    let before: StatusReport = admin.get("/admin/status").unwrap();
    assert_eq!((before.clients, before.failure.clone()), (1, None));
    assert_eq!(table(before).sstables, 0);
    let done = admin.post("/admin/flush?keyspace=ks&table=t").unwrap();
    assert_eq!(done["tables"], 1);
    let after: StatusReport = admin.get("/admin/status").unwrap();
    assert_eq!(table(after).sstables, 1);
}

#[test]
fn compactions_are_listed_limited_and_switched_off() {
    let setup = start();
    let (_door, admin) = open(&setup);
    let list = |admin: &AdminClient| admin.get::<CompactionReport>("/admin/compactions").unwrap();
    assert_eq!(list(&admin).bytes_per_sec_max, Some(64 << 20));
    admin
        .post("/admin/compaction-throughput?bytes_per_sec=1048576")
        .unwrap();
    assert_eq!(list(&admin).bytes_per_sec_max, Some(1 << 20));
    admin
        .post("/admin/compaction-throughput?bytes_per_sec=0")
        .unwrap();
    assert_eq!(list(&admin).bytes_per_sec_max, None);
    assert_eq!(admin.post("/admin/stop").unwrap()["stopped"], 0);
    assert!(admin.post("/admin/stop?id=x").is_err());
    let done = admin.post("/admin/autocompaction?on=false&keyspace=system&table=local");
    assert_eq!(done.unwrap()["tables"], 1);
    let unknown = admin.post("/admin/compact?files=nb-77-big-Data.db");
    assert!(unknown.unwrap_err().to_string().contains("no table has"));
    let range = "/admin/compact?keyspace=system&table=local&start_token=-5&end_token=5";
    assert_eq!(admin.post(range).unwrap()["tables"], 1);
    assert!(
        admin
            .post("/admin/compact?keyspace=system&table=local&start_token=x")
            .is_err()
    );
}

#[test]
fn compact_leaves_one_sstable() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    let (_door, admin) = open(&setup);
    for key in 0..3 {
        run(
            &mut client,
            &format!("INSERT INTO ks.t (k, v) VALUES ({key}, 'x')"),
        );
        admin.post("/admin/flush?keyspace=ks").unwrap();
    }
    admin.post("/admin/compact?keyspace=ks").unwrap();
    let status: StatusReport = admin.get("/admin/status").unwrap();
    assert_eq!(status.tables[0].sstables, 1);
    admin.post("/admin/drain").unwrap();
}

#[test]
fn info_says_which_node_it_is() {
    let setup = start();
    let (_door, admin) = open(&setup);
    let info: InfoReport = admin.get("/admin/info").unwrap();
    assert_eq!(info.cql_address, setup.server.address().to_string());
    assert_eq!(info.host_id, setup.node.engine().id().to_string());
    assert_eq!(info.release_version, "5.0.9");
}

#[test]
fn what_is_not_there_is_said() {
    let setup = start();
    let (_door, admin) = open(&setup);
    for (path, message) in [
        ("/admin/flush?keyspace=nobody", "keyspace nobody does not exist"),
        (
            "/admin/flush?keyspace=system&table=x",
            "table system.x does not exist",
        ),
        ("/admin/compact?table=t", "in which keyspace is t?"),
    ] {
        let error = admin.post(path).unwrap_err();
        assert_eq!(error.to_string(), format!("the node refused: {message}"));
    }
    assert!(matches!(admin.post("/elsewhere"), Err(ClientError::Foreign(_))));
    let nobody = AdminClient::new(setup.server.address().port());
    assert!(nobody.get::<InfoReport>("/admin/info").is_err());
}

#[test]
fn metrics_are_in_the_format_of_prometheus() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    client.query("nonsense");
    let (door, _) = open(&setup);
    let answer = raw(&door, "GET /metrics HTTP/1.0\r\n\r\n");
    for line in [
        "application/openmetrics-text",
        "ilion_cql_connections 1",
        "ilion_cql_errors_total{code=\"0x2000\"} 1",
        "ilion_cql_request_seconds_count{kind=\"query\"} 3",
        "# TYPE ilion_commit_log_records counter",
        "ilion_writes_refused 0",
        "# EOF",
    ] {
        assert!(answer.contains(line), "{line} is not in {answer}");
    }
}

#[test]
fn browsers_and_other_names_are_kept_out() {
    let setup = start();
    let (door, _) = open(&setup);
    for head in ["Origin: http://evil.example\r\n", "Host: evil.example\r\n"] {
        let answer = raw(&door, &format!("POST /admin/drain HTTP/1.0\r\n{head}\r\n"));
        assert!(answer.starts_with("HTTP/1.0 403"), "{answer}");
    }
    let answer = raw(&door, "GET /admin/drain HTTP/1.0\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.0 405"), "{answer}");
}

#[test]
fn a_table_is_exported_emptied_and_imported_again() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    run(&mut client, "INSERT INTO ks.t (k, v) VALUES (1, 'one')");
    let (_door, admin) = open(&setup);
    let place = "keyspace=ks&table=t&directory=%2Fout";
    let exported: ExportReport = posted(&admin, &format!("/admin/export?{place}"));
    assert_eq!(exported.exported.len(), 1);
    run(&mut client, "TRUNCATE ks.t");
    let done: ImportReport = posted(&admin, &format!("/admin/import?{place}&source=moved"));
    assert_eq!((done.imported.len(), done.refused.len()), (1, 0));
    let status: StatusReport = admin.get("/admin/status").unwrap();
    assert_eq!(status.tables[0].sstables, 1);
    assert!(!setup.env.exists(&exported.exported[0]));
    for (query, message) in [
        ("keyspace=ks&table=t&directory=out", "out is not an absolute path"),
        (
            "keyspace=ks&table=u&directory=%2Fout",
            "table ks.u does not exist",
        ),
    ] {
        let error = admin.post(&format!("/admin/import?{query}")).unwrap_err();
        assert_eq!(error.to_string(), format!("the node refused: {message}"));
    }
}

fn posted<T: serde::de::DeserializeOwned>(admin: &AdminClient, path: &str) -> T {
    serde_json::from_value(admin.post(path).unwrap()).unwrap()
}
