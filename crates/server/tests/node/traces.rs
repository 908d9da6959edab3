//! `TRACING ON`: what clients find in `system_traces`.

use ilion_protocol::{RequestFrame, Response, ResponseFrame, Rows, Version};
use uuid::Uuid;

use crate::client::{Client, query, rows_of};
use crate::{make_table, run, start};

fn traced(client: &mut Client, text: &str) -> ResponseFrame {
    let frame = RequestFrame {
        version: client.version,
        stream: 3,
        tracing: true,
        custom_payload: Vec::new(),
        request: query(text),
    };
    let bytes = client.encode_frame(&frame);
    std::io::Write::write_all(&mut client.stream, &bytes).unwrap();
    client.receive()
}

fn ask(client: &mut Client, text: &str) -> Rows {
    rows_of(run(client, text))
}

fn texts(rows: &Rows, column: usize) -> Vec<String> {
    let text = |row: Vec<Option<&[u8]>>| String::from_utf8(row[column].unwrap().to_vec()).unwrap();
    rows.rows().map(text).collect()
}

/// The activities of the events, in order.
fn activities(client: &mut Client, id: Uuid) -> Vec<String> {
    let rows = ask(
        client,
        &format!("SELECT activity, source_elapsed FROM system_traces.events WHERE session_id = {id}"),
    );
    let elapsed = rows
        .rows()
        .map(|row| i32::from_be_bytes(row[1].unwrap().try_into().unwrap()));
    assert!(elapsed.is_sorted());
    texts(&rows, 0)
}

#[test]
fn a_traced_request_is_told_step_by_step() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    let answer = traced(&mut client, "INSERT INTO ks.t (k, v) VALUES (1, 'one')");
    let told = activities(&mut client, answer.tracing_id.unwrap());
    assert_eq!(told[0], "Parsing INSERT INTO ks.t (k, v) VALUES (1, 'one')");
    assert_eq!(
        told[1..],
        [
            "Preparing statement",
            "Appending to commitlog",
            "Adding to t memtable",
            "Commitlog is durable"
        ]
    );
    setup.node.engine().flush_all().unwrap();
    let answer = traced(&mut client, "SELECT v FROM ks.t WHERE k = 1");
    let id = answer.tracing_id.unwrap();
    assert_eq!(rows_of(answer.response).row_count, 1);
    let told = activities(&mut client, id);
    for step in [
        "Preparing statement",
        "Executing single-partition query on t",
        "Reading sstable nb-1-big",
        "Merged data from memtables and 1 sstables",
        "Read 1 live rows and 0 tombstone cells",
    ] {
        assert!(told.iter().any(|activity| activity == step), "{step}: {told:#?}");
    }
    let session = ask(
        &mut client,
        &format!(
            "SELECT request, duration, started_at, ttl(duration), parameters['query'] \
             FROM system_traces.sessions WHERE session_id = {id}"
        ),
    );
    assert_eq!(texts(&session, 0), ["Execute CQL3 query"]);
    assert_eq!(texts(&session, 4), ["SELECT v FROM ks.t WHERE k = 1"]);
    let row = session.rows().next().unwrap();
    assert!(row[1].is_some() && row[2].is_some());
    let ttl = i32::from_be_bytes(row[3].unwrap().try_into().unwrap());
    assert!((86_000..=86_400).contains(&ttl), "{ttl}");
}

#[test]
fn an_error_comes_with_its_trace() {
    let setup = start();
    let mut client = setup.client(Version::V4);
    let answer = traced(&mut client, "SELECT * FROM nowhere.t");
    assert!(matches!(answer.response, Response::Error(_)));
    let told = activities(&mut client, answer.tracing_id.unwrap());
    assert_eq!(told[0], "Parsing SELECT * FROM nowhere.t");
}

#[test]
fn requests_are_traced_by_chance_and_their_clients_are_not_told() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    let count = |client: &mut Client| ask(client, "SELECT session_id FROM system_traces.sessions").row_count;
    assert_eq!(count(&mut client), 0);
    setup.node.observers().trace_probability.set(1.0);
    let answer = client.query("SELECT * FROM ks.t");
    assert!(matches!(answer, Response::Result(_)));
    setup.node.observers().trace_probability.set(0.0);
    assert_eq!(count(&mut client), 1);
    assert_eq!(count(&mut client), 1);
}
