//! The HTTP port.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ilion_env::Env;
use ilion_protocol::{Event, EventKind, Version};
use ilion_server::admin::{
    AdminClient, AdminDoor, ClientError, CompactionReport, DataPathsReport, DoorOptions, EngineAdmin,
    ExportReport, ImportReport, InfoReport, KeySampleReport, StatementsReport, StatusReport,
    TableHistogramsReport, TableStatsReport, TraceProbabilityReport,
};
use ilion_server::dashboard::{HistoryReport, SlowIo, SlowestReport, SpectrogramReport};
use ilion_server::{Entrance, Port};

use crate::{Setup, make_table, run, start};

const TIMEOUT: Duration = Duration::from_secs(20);

pub fn open(setup: &Setup) -> (AdminDoor, AdminClient) {
    open_with(setup, TIMEOUT)
}

fn open_with(setup: &Setup, timeout: Duration) -> (AdminDoor, AdminClient) {
    let admin = EngineAdmin::new(&setup.node, &setup.server, &setup.settings);
    let port = Port::take(Entrance::Administration, ([127, 0, 0, 1], 0).into()).unwrap();
    let options = DoorOptions::of_this_machine(timeout);
    let door = AdminDoor::open(port, options, None, Arc::new(admin)).unwrap();
    let client = AdminClient::new(door.address());
    (door, client)
}

#[test]
fn whoever_comes_from_this_machine_is_let_in_by_any_loopback_address() {
    let setup = start();
    let admin = || EngineAdmin::new(&setup.node, &setup.server, &setup.settings);
    for address in [IpAddr::from([127, 0, 0, 2]), Ipv6Addr::LOCALHOST.into()] {
        // A machine may have no IPv6.
        let Ok(port) = Port::take(Entrance::Administration, SocketAddr::new(address, 0)) else {
            assert!(address.is_ipv6(), "{address}");
            continue;
        };
        let options = DoorOptions::of_this_machine(TIMEOUT);
        let door = AdminDoor::open(port, options, None, Arc::new(admin())).unwrap();
        let client = AdminClient::new(door.address());
        let status: StatusReport = client.get("/admin/status").unwrap();
        assert_eq!(status.clients, 0);
    }
}

/// Sends the bytes of a request and returns the bytes of the answer.
fn raw(door: &AdminDoor, request: &str) -> String {
    let mut stream = TcpStream::connect(door.address()).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn who_does_not_ask_or_does_not_finish_asking_is_sent_away_but_not_who_waits_for_an_answer() {
    let setup = start();
    let (door, admin) = open_with(&setup, Duration::from_millis(100));
    let silent = raw(&door, "");
    assert_eq!(silent, "");
    let half_a_head = raw(&door, "GET /admin/status HTTP/1.1\r\nHost: 127.0.0.1\r\n");
    assert!(!half_a_head.contains("200 OK"), "{half_a_head}");
    let half_a_body = "POST /api/query HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
                       Content-Length: 100\r\nConnection: close\r\n\r\n{";
    let half_a_body = raw(&door, half_a_body);
    assert!(half_a_body.starts_with("HTTP/1.1 408 "), "{half_a_body}");
    let idle = raw(&door, "GET /admin/status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    assert!(idle.starts_with("HTTP/1.1 200 OK"), "{idle}");
    // It takes longer than the timeout for incomplete requests.
    let long = "POST /admin/top-partitions?millis=400&top=5 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    let long = raw(&door, long);
    assert!(long.starts_with("HTTP/1.1 200 OK"), "{long}");
    let _: StatusReport = admin.get("/admin/status").unwrap();
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
fn a_cache_is_made_smaller_while_it_runs() {
    let setup = start();
    let (_door, admin) = open(&setup);
    admin
        .post("/admin/cache?cache=keys&bytes_max=1048576&keys_to_save=-1")
        .unwrap();
    let info: InfoReport = admin.get("/admin/info").unwrap();
    let keys = info.caches.iter().find(|cache| cache.name == "keys").unwrap();
    assert_eq!(keys.bytes_max, 1 << 20);
    assert!(matches!(
        admin.post("/admin/cache?cache=chunks&keys_to_save=1"),
        Err(ClientError::Refused(reason)) if reason.contains("not saved")
    ));
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
    let nobody = AdminClient::new(setup.server.address());
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

#[test]
fn placed_sstables_come_into_a_table_and_the_sample_of_keys_has_them() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    for key in 0..300 {
        run(
            &mut client,
            &format!("INSERT INTO ks.t (k, v) VALUES ({key}, 'x')"),
        );
    }
    let (_door, admin) = open(&setup);
    let tokens = || admin.get::<KeySampleReport>("/admin/key-sample").unwrap().tokens;
    assert_eq!(tokens(), Vec::<String>::new());
    let exported: ExportReport = posted(&admin, "/admin/export?keyspace=ks&table=t&directory=%2Fout");
    // The first partition, and each 128th behind it.
    let sampled = tokens();
    assert_eq!(sampled.len(), 3, "{sampled:?}");
    run(&mut client, "TRUNCATE ks.t");
    assert_eq!(tokens(), Vec::<String>::new());
    let paths: DataPathsReport = admin.get("/admin/data-paths?tables=ks.t").unwrap();
    let directory = Path::new(&paths.keyspaces["ks"]["t"]);
    let from = exported.exported[0].parent().unwrap();
    for file in setup.env.list(from).unwrap() {
        setup
            .env
            .hard_link(&from.join(&file.name), &directory.join(&file.name))
            .unwrap();
    }
    let done: ImportReport = posted(&admin, "/admin/refresh?keyspace=ks&table=t");
    assert_eq!((done.imported.len(), done.refused.len()), (1, 0));
    assert_eq!(tokens(), sampled);
    let error = admin.post("/admin/refresh?keyspace=ks").unwrap_err();
    assert_eq!(error.to_string(), "the node refused: name a keyspace and a table");
}

pub fn posted<T: serde::de::DeserializeOwned>(admin: &AdminClient, path: &str) -> T {
    serde_json::from_value(admin.post(path).unwrap()).unwrap()
}

/// Posts JSON as the page does.
pub fn post_json(door: &AdminDoor, path: &str, body: &str) -> serde_json::Value {
    let host = door.address();
    let answer = raw(
        door,
        &format!(
            "POST {path} HTTP/1.0\r\nHost: {host}\r\nOrigin: http://{host}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ),
    );
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap()
}

#[test]
fn the_page_and_all_that_it_names_are_inside_the_program() {
    let setup = start();
    let (door, _) = open(&setup);
    let page = raw(&door, "GET / HTTP/1.0\r\n\r\n");
    assert!(page.contains("<title>Ilion</title>"), "{page}");
    assert!(page.contains("frame-ancestors 'none'"), "{page}");
    let mut wanted: Vec<String> = Vec::new();
    let named = |text: &str| -> Vec<String> {
        let parts = text.split(['"', '\'']);
        let parts =
            parts.filter_map(|part| part.strip_prefix("/assets/").or_else(|| part.strip_prefix("./")));
        parts.map(str::to_owned).collect()
    };
    wanted.extend(named(&page));
    let mut seen = 0;
    while let Some(name) = wanted.pop() {
        seen += 1;
        assert!(seen < 100, "assets name each other without end");
        let asset = raw(&door, &format!("GET /assets/{name} HTTP/1.0\r\n\r\n"));
        assert!(asset.starts_with("HTTP/1.0 200"), "{name}: {asset}");
        assert!(!asset.contains("https://cdn"), "{name} wants the internet");
        if name == "app.js" {
            wanted.extend(named(&asset));
        }
    }
    let missing = raw(&door, "GET /assets/..%2Fnode.rs HTTP/1.0\r\n\r\n");
    assert!(missing.starts_with("HTTP/1.0 404"), "{missing}");
}

#[test]
fn the_query_box_pages_shows_values_as_text_and_says_what_was_wrong() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    let (door, _) = open(&setup);
    for key in 1..=3 {
        let cql = format!("INSERT INTO ks.t (k, v) VALUES ({key}, 'it''s {key}')");
        let done = post_json(
            &door,
            "/api/query",
            &serde_json::json!({ "cql": cql }).to_string(),
        );
        assert_eq!(done["columns"], serde_json::json!([]), "{done}");
    }
    let mut order = serde_json::json!({ "cql": "SELECT k, v FROM t", "keyspace": "ks", "page_size": 2 });
    let first = post_json(&door, "/api/query", &order.to_string());
    assert_eq!(
        first["columns"][1],
        serde_json::json!({ "name": "v", "type": "text" })
    );
    assert_eq!(first["rows"].as_array().unwrap().len(), 2);
    order["paging_state"] = first["paging_state"].clone();
    let second = post_json(&door, "/api/query", &order.to_string());
    assert_eq!(second["rows"], serde_json::json!([["3", "it's 3"]]));
    assert_eq!(second["paging_state"], serde_json::Value::Null);
    let wrong = r#"{"cql": "SELECT nothing FROM ks.t", "keyspace": "ks"}"#;
    let wrong = post_json(&door, "/api/query", wrong);
    assert!(
        wrong["error"]
            .as_str()
            .unwrap()
            .contains("Undefined column name nothing"),
        "{wrong}"
    );
    // They are counted like statements of clients.
    let counted = "SELECT calls, errors, rows_returned_total FROM system_views.statements \
                   WHERE keyspace_name = 'ks' AND statement = ";
    for (statement, expected) in [
        ("SELECT k, v FROM t", ["2", "0", "3"]),
        ("SELECT nothing FROM ks.t", ["1", "1", "0"]),
    ] {
        let cql = format!("{counted} '{statement}'");
        let order = serde_json::json!({ "cql": cql }).to_string();
        let told = post_json(&door, "/api/query", &order);
        assert_eq!(told["rows"], serde_json::json!([expected]), "{statement}: {told}");
    }
    let damaged = post_json(
        &door,
        "/api/query",
        r#"{"cql": "SELECT * FROM ks.t", "paging_state": "xyz"}"#,
    );
    assert!(
        damaged["error"].as_str().unwrap().contains("damaged"),
        "{damaged}"
    );
}

#[test]
fn a_changed_schema_is_told_to_drivers_from_the_query_box_too() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    client.register(&[EventKind::SchemaChange]);
    let (door, _) = open(&setup);
    let cql = "CREATE KEYSPACE boxed WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
    post_json(
        &door,
        "/api/query",
        &serde_json::json!({ "cql": cql }).to_string(),
    );
    let Event::Schema(change) = client.receive_event() else {
        panic!("another event");
    };
    assert_eq!(change.keyspace, "boxed");
}

#[test]
fn the_history_has_what_clients_asked_before_anybody_looked() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    let (_door, admin) = open(&setup);
    let (mut queries, mut after) = (0, 0);
    // A sample is taken every second.
    while queries == 0 {
        run(&mut client, "INSERT INTO ks.t (k, v) VALUES (1, 'one')");
        let report: HistoryReport = admin.get(&format!("/api/history?after={after}")).unwrap();
        assert_eq!(report.kinds[0], "query");
        assert!(report.samples.iter().all(|sample| sample.millis > after));
        after = report.samples.last().map_or(after, |sample| sample.millis);
        for sample in report.samples {
            queries += sample.requests[0];
            let timed: u32 = sample.latencies.iter().sum();
            assert!(timed >= sample.requests[0], "{sample:?}");
            assert!(
                sample.sizes.clients >= 1 && sample.sizes.memtable_bytes > 0,
                "{sample:?}"
            );
        }
    }
}

#[test]
fn the_spectrogram_has_the_reads_of_a_table_and_lists_the_slowest() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    run(&mut client, "INSERT INTO ks.t (k, v) VALUES (1, 'one')");
    let (_door, admin) = open(&setup);
    admin.post("/admin/flush?keyspace=ks&table=t").unwrap();
    run(&mut client, "SELECT * FROM ks.t WHERE k = 1");
    let slot = |report: &SpectrogramReport| report.slots.last().map(|slot| slot.slot);
    // A slot is sent when its time is over.
    let report: SpectrogramReport = loop {
        let report: SpectrogramReport = admin.get("/api/spectrogram?from=0").unwrap();
        if report.tables.values().any(|name| name == "ks.t") {
            break report;
        }
    };
    assert_eq!(report.bounds_nanos.len(), 40);
    assert!(report.kinds.contains(&"flush".to_owned()));
    let (number, _) = report.tables.iter().find(|(_, name)| *name == "ks.t").unwrap();
    let cells = report.slots.iter().flat_map(|slot| &slot.cells);
    let of_table: Vec<&[u32; 4]> = cells.filter(|cell| cell[0] == u32::from(*number)).collect();
    assert!(
        of_table.iter().all(|cell| cell[3] > 0 && cell[2] < 40),
        "{of_table:?}"
    );
    let to = slot(&report).unwrap() + 100;
    let slowest = |only: &str| -> Vec<SlowIo> {
        let path = format!("/api/slowest?from=0&to={to}&{only}");
        let found: SlowestReport = admin.get(&path).unwrap();
        assert!(found.slowest.is_sorted_by_key(|io| std::cmp::Reverse(io.nanos)));
        found.slowest
    };
    let reads = slowest("kinds=data,index&table=ks.t");
    let statements: Vec<&str> = reads.iter().filter_map(|io| io.statement.as_deref()).collect();
    assert!(
        statements.contains(&"SELECT * FROM ks.t WHERE k = ?"),
        "{reads:?}"
    );
    assert!(reads.iter().all(|io| io.table == "ks.t"), "{reads:?}");
    // What flushes wrote and synced is listed, too. Other tests of this process write as well, so the table is any.
    for (kind, verb) in [("flush", "write"), ("fsync", "sync")] {
        let found = slowest(&format!("kinds={kind}"));
        assert!(found.iter().any(|io| io.verb == verb), "{found:?}");
        assert!(found.iter().all(|io| io.kind == kind), "{found:?}");
    }
}

#[test]
fn statements_are_listed_by_the_time_they_took_and_forgotten() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    for key in 0..3 {
        run(&mut client, &format!("SELECT * FROM ks.t WHERE k = {key}"));
    }
    let (_door, admin) = open(&setup);
    let list = || {
        admin
            .get::<StatementsReport>("/admin/statements")
            .unwrap()
            .statements
    };
    let statements = list();
    let found = statements
        .iter()
        .find(|known| known.statement == "SELECT * FROM ks.t WHERE k = ?");
    assert_eq!((found.unwrap().calls, found.unwrap().errors), (3, 0));
    assert!(statements.is_sorted_by(|a, b| a.total_millis >= b.total_millis));
    let printed = StatementsReport { statements }.to_string();
    assert!(
        printed.contains("[ks] SELECT * FROM ks.t WHERE k = ?"),
        "{printed}"
    );
    admin.post("/admin/statements/reset").unwrap();
    assert!(list().is_empty());
}

#[test]
fn a_table_is_told_in_detail() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    for key in 0..10 {
        run(
            &mut client,
            &format!("INSERT INTO ks.t (k, v) VALUES ({key}, 'x')"),
        );
    }
    setup.node.engine().flush_all().unwrap();
    run(&mut client, "SELECT * FROM ks.t");
    let (_door, admin) = open(&setup);
    let path = "/admin/table-stats?keyspace=ks&table=t";
    let report: TableStatsReport = admin.get(path).unwrap();
    let [table] = &report.tables[..] else {
        panic!("{report:?}");
    };
    assert_eq!((table.sstables, table.estimated_partitions), (1, 10));
    assert_eq!((table.reads, table.writes), (1, 10));
    assert!(table.rows_per_read.max > 9.0 && table.sstables_per_read.max > 0.0);
    assert!(table.partition_bytes.max > 0.0 && table.read_micros.p50 > 0.0);
    let printed = report.to_string();
    assert!(
        printed.contains("Number of partitions (estimate): 10"),
        "{printed}"
    );
    let histograms: TableHistogramsReport = admin.get(path).unwrap();
    assert!(histograms.to_string().contains("ks/t histograms"));
    let rows = run(
        &mut client,
        "SELECT count FROM system_views.local_write_latency WHERE keyspace_name = 'ks' AND table_name = 't'",
    );
    let rows = crate::client::rows_of(rows);
    assert_eq!(rows.rows().next().unwrap()[0], Some(&10_i64.to_be_bytes()[..]));
    assert!(
        admin
            .get::<TableStatsReport>("/admin/table-stats?keyspace=ks&table=x")
            .is_err()
    );
}

#[test]
fn the_trace_probability_is_told_set_and_checked() {
    let setup = start();
    let (_door, admin) = open(&setup);
    let told = || {
        admin
            .get::<TraceProbabilityReport>("/admin/trace-probability")
            .unwrap()
            .probability
    };
    assert!(told() == 0.0);
    admin.post("/admin/trace-probability?probability=0.5").unwrap();
    assert!((told() - 0.5).abs() < 1e-9);
    assert!(admin.post("/admin/trace-probability?probability=7").is_err());
}

#[test]
fn the_partitions_used_most_are_named() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    let engine = setup.node.engine();
    let table = engine.schema().table("ks", "t").unwrap().id;
    engine.begin_sampling(vec![table]).unwrap();
    let (_door, admin) = open(&setup);
    let path = "/admin/top-partitions?millis=0&top=5&keyspace=ks&table=t";
    assert!(
        admin
            .post(path)
            .unwrap_err()
            .to_string()
            .contains("for somebody else")
    );
    for key in [1, 2, 2, 2] {
        run(
            &mut client,
            &format!("INSERT INTO ks.t (k, v) VALUES ({key}, 'x')"),
        );
    }
    run(&mut client, "SELECT * FROM ks.t WHERE k = 1");
    let top = engine.finish_sampling(1);
    assert_eq!(
        (top.writes[0].partition.as_str(), top.writes[0].count),
        ("ks.t:2", 3)
    );
    assert_eq!(
        (top.reads[0].partition.as_str(), top.reads[0].count),
        ("ks.t:1", 1)
    );
    assert!(top.write_bytes[0].count > 30);
    let report = admin.post(path).unwrap();
    assert_eq!(report["reads"].as_array().unwrap().len(), 0);
}

#[test]
fn the_hidden_table_of_an_index_is_told_of_and_compacted_by_its_name() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    run(&mut client, "CREATE INDEX by_v ON ks.t (v)");
    let (_door, admin) = open(&setup);
    for value in ["one", "two"] {
        run(
            &mut client,
            &format!("INSERT INTO ks.t (k, v) VALUES (1, '{value}')"),
        );
        admin.post("/admin/flush?keyspace=ks").unwrap();
    }
    let sstables = |admin: &AdminClient| {
        let stats: TableStatsReport = admin.get("/admin/table-stats?keyspace=ks&table=t").unwrap();
        let tables = stats.tables.into_iter();
        tables
            .map(|table| (table.table, table.sstables))
            .collect::<Vec<_>>()
    };
    let told = |base, hidden| [("t".to_owned(), base), ("t.by_v".to_owned(), hidden)];
    assert_eq!(sstables(&admin), told(2, 2));
    admin.post("/admin/compact?keyspace=ks&table=t.by_v").unwrap();
    assert_eq!(sstables(&admin), told(2, 1));
    admin.post("/admin/compact?keyspace=ks&table=t").unwrap();
    assert_eq!(sstables(&admin), told(1, 1));
}
