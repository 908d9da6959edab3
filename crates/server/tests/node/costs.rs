//! The costs of statements, as clients and operators see them.

use ilion_protocol::{
    Batch, BatchKind, BatchStatement, Consistency, Execute, Prepare, QueryParams, Request, RequestFrame,
    Response, ResponseFrame, ResultBody, Rows, StatementSource, Value, Version,
};
use ilion_server::COST_KEY;

use crate::client::{Client, query, rows_of};
use crate::{make_table, run, start};

fn ask(client: &mut Client, text: &str) -> Rows {
    rows_of(run(client, text))
}

/// The counts of a shape, by the names of their columns.
fn counts(client: &mut Client, shape: &str, columns: &[&str]) -> Option<Vec<i64>> {
    let text = format!(
        "SELECT {} FROM system_views.statements WHERE keyspace_name = 'ks' AND statement = '{shape}'",
        columns.join(", ")
    );
    let rows = ask(client, &text);
    let row = rows.rows().next()?;
    let number = |cell: Option<&[u8]>| i64::from_be_bytes(cell.unwrap().try_into().unwrap());
    Some(row.into_iter().map(number).collect())
}

#[test]
fn statements_that_differ_in_values_are_counted_together() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    for key in 0..5 {
        run(
            &mut client,
            &format!("INSERT INTO ks.t (k, v) VALUES ({key}, 'x{key}')"),
        );
    }
    setup.node.engine().flush_all().unwrap();
    for key in [3, 4, 77] {
        run(&mut client, &format!("select v  from ks.t where k = {key}"));
    }
    let insert = "INSERT INTO ks.t(k, v) VALUES (?, ?)";
    assert_eq!(
        counts(&mut client, insert, &["calls", "errors"]),
        Some(vec![5, 0])
    );
    let select = "SELECT v FROM ks.t WHERE k = ?";
    let read = counts(
        &mut client,
        select,
        &[
            "calls",
            "rows_returned_total",
            "rows_scanned_total",
            "rows_scanned_max",
            "sstables_touched_total",
            "bytes_returned_total",
        ],
    );
    assert_eq!(read, Some(vec![3, 2, 2, 1, 2, 12]));
    let disk = counts(&mut client, select, &["disk_reads_total", "disk_bytes_max"]).unwrap();
    assert!(disk[0] > 0 && disk[1] > 0, "{disk:?}");
    run(&mut client, "TRUNCATE system_views.statements");
    assert_eq!(counts(&mut client, select, &["calls"]), None);
}

#[test]
fn statements_that_fail_are_counted_with_their_error() {
    let setup = start();
    let mut client = setup.client(Version::V4);
    make_table(&mut client);
    run(&mut client, "USE ks");
    assert!(matches!(
        client.query("INSERT INTO t (k, v) VALUES (1)"),
        Response::Error(_)
    ));
    let shape = "INSERT INTO t(k, v) VALUES (?)";
    assert_eq!(counts(&mut client, shape, &["calls", "errors"]), Some(vec![1, 1]));
    assert!(matches!(client.query("SELECT 'unfinished"), Response::Error(_)));
    assert_eq!(
        counts(&mut client, "(not CQL)", &["calls", "errors"]),
        Some(vec![1, 1])
    );
}

fn prepare(client: &mut Client, text: &str) -> bytes::Bytes {
    let request = Request::Prepare(Prepare {
        text: text.to_owned(),
        keyspace: None,
    });
    match client.ask(request) {
        Response::Result(ResultBody::Prepared(prepared)) => prepared.id,
        other => panic!("{other:?}"),
    }
}

fn key(value: i32) -> ilion_protocol::Values {
    ilion_protocol::Values::from_iter([Value::Bytes(&value.to_be_bytes())])
}

#[test]
fn prepared_statements_and_batches_are_counted_by_their_texts() {
    let setup = start();
    let mut client = setup.client(Version::V4);
    make_table(&mut client);
    let id = prepare(&mut client, "insert into ks.t (k) values (?)");
    for value in 0..3 {
        let request = Request::Execute(Execute {
            id: id.clone(),
            result_metadata_id: bytes::Bytes::new(),
            params: QueryParams {
                values: key(value),
                ..QueryParams::default()
            },
        });
        assert!(matches!(client.ask(request), Response::Result(ResultBody::Void)));
    }
    let insert = "INSERT INTO ks.t(k) VALUES (?)";
    assert_eq!(counts(&mut client, insert, &["calls"]), Some(vec![3]));
    let statement = |value| BatchStatement {
        source: StatementSource::Prepared(id.clone()),
        values: key(value),
    };
    let batch = Request::Batch(Batch {
        kind: BatchKind::Unlogged,
        statements: (10..14).map(statement).collect(),
        consistency: Consistency::One,
        serial_consistency: None,
        timestamp_micros: None,
        keyspace: None,
        now_secs: None,
    });
    assert!(matches!(client.ask(batch), Response::Result(ResultBody::Void)));
    let shape = format!("BEGIN UNLOGGED BATCH {insert}; APPLY BATCH");
    assert_eq!(counts(&mut client, &shape, &["calls"]), Some(vec![1]));
}

fn with_payload(client: &mut Client, text: &str, key: &str) -> ResponseFrame {
    let frame = RequestFrame {
        version: client.version,
        stream: 3,
        tracing: false,
        custom_payload: vec![(key.to_owned(), None)],
        request: query(text),
    };
    let bytes = client.encode_frame(&frame);
    std::io::Write::write_all(&mut client.stream, &bytes).unwrap();
    client.receive()
}

#[test]
fn the_cost_comes_with_the_answer_if_the_payload_asks_for_it() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    run(&mut client, "INSERT INTO ks.t (k, v) VALUES (1, 'one')");
    let answer = with_payload(&mut client, "SELECT * FROM ks.t WHERE k = 1", COST_KEY);
    let [(name, Some(json))] = &answer.custom_payload[..] else {
        panic!("{answer:?}");
    };
    let cost: serde_json::Value = serde_json::from_slice(json).unwrap();
    assert_eq!(name, COST_KEY);
    assert_eq!(
        (&cost["rows_returned"], &cost["memtables"]),
        (&1.into(), &1.into())
    );
    let answer = with_payload(&mut client, "SELECT * FROM ks.t WHERE k = 1", "something.else");
    assert!(answer.custom_payload.is_empty());
}

#[test]
fn writetime_and_ttl_do_not_read_the_value() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    let mut random = ilion_env::Seeded::new(4);
    let value: String = (0..60_000)
        .map(|_| format!("{:016x}", random.below(u64::MAX)))
        .collect();
    run(
        &mut client,
        &format!("INSERT INTO ks.t (k, v) VALUES (1, '{value}') USING TTL 1000"),
    );
    setup.node.engine().flush_all().unwrap();
    let mut disk_bytes = |selected: &str| {
        let select = format!("SELECT {selected} FROM ks.t WHERE k = 1");
        let answer = with_payload(&mut client, &select, COST_KEY);
        let cost: serde_json::Value =
            serde_json::from_slice(answer.custom_payload[0].1.as_ref().unwrap()).unwrap();
        assert_eq!(cost["rows_returned"], 1, "{selected}");
        cost["disk_bytes"].as_u64().unwrap()
    };
    let times = disk_bytes("k, writetime(v), ttl(v), maxwritetime(v)");
    assert!(times < 40_000, "{times} bytes");
    let all = disk_bytes("v, writetime(v)");
    assert!(all > 400_000, "{all} bytes");
}
