//! Reads of rows that wait for the disk: many at a time, each answered as if its bytes had been in memory.

use std::io::Write;
use std::sync::Arc;

use ilion_env::{FaultEnv, MemEnv};
use ilion_protocol::{Response, Version};
use ilion_server::{ServerNode, ServerOptions};
use ilion_settings::{Settings, Size};

use crate::client::{Client, query, rows_of};
use crate::{make_table, run};

const KEYS: i32 = 300;

/// What a key has after the writes below: it is in one, two or three SSTables, deleted, or was never written.
fn expected(key: i32) -> Option<String> {
    match key % 5 {
        0 => None,
        1 => Some(format!("first {key}")),
        2 => Some(format!("second {key}")),
        3 => None,
        _ => Some(format!("third {key}")),
    }
}

fn write(client: &mut Client, node: &ServerNode) {
    for (name, least) in [("first", 1), ("second", 2), ("third", 4)] {
        for key in (0..KEYS).filter(|key| key % 5 >= least) {
            run(
                client,
                &format!("INSERT INTO ks.t (k, v) VALUES ({key}, '{name} {key}')"),
            );
        }
        if name == "second" {
            for key in (0..KEYS).filter(|key| key % 5 == 3) {
                run(client, &format!("DELETE FROM ks.t WHERE k = {key}"));
            }
        }
        node.engine().flush_all().unwrap();
    }
}

/// Asks for all keys with one write to the socket, so that many requests come together.
fn ask_for_all(client: &mut Client) -> Vec<Response> {
    let streams = 0..i16::try_from(KEYS).unwrap();
    let asked: Vec<u8> = streams
        .flat_map(|key| client.encode(key, query(&format!("SELECT v FROM ks.t WHERE k = {key}"))))
        .collect();
    client.stream.write_all(&asked).unwrap();
    let mut answers: Vec<_> = (0..KEYS).map(|_| client.receive()).collect();
    answers.sort_by_key(|answer| answer.stream);
    answers.into_iter().map(|answer| answer.response).collect()
}

#[test]
fn parked_reads_are_answered_like_others() {
    let env = FaultEnv::new(Arc::new(MemEnv::new(1)));
    let settings = Settings {
        directory: "/ilion".into(),
        native_transport_port: 0,
        file_cache_size: Some(Size(0)),
        ..Settings::default()
    };
    let node = ServerNode::open(env.clone(), &settings).unwrap();
    let server = node.serve(&ServerOptions::of(&settings)).unwrap();
    let mut client = Client::open(server.address(), Version::V5, None);
    make_table(&mut client);
    write(&mut client, &node);
    env.add(r#"wait read "*-Data.db""#).unwrap();
    for (key, response) in (0..).zip(ask_for_all(&mut client)) {
        let rows = rows_of(response);
        let found = rows
            .rows()
            .next()
            .map(|row| String::from_utf8(row[0].unwrap().to_vec()).unwrap());
        assert_eq!(found, expected(key), "key {key}");
    }
    env.add(r#"fail read "*-Data.db""#).unwrap();
    let failed = ask_for_all(&mut client)
        .into_iter()
        .filter(|response| matches!(response, Response::Error(_)));
    // Keys that no SSTable has are answered without a read.
    assert_eq!(failed.count(), (0..KEYS).filter(|key| key % 5 != 0).count());
    env.clear();
    run(&mut client, "SELECT v FROM ks.t WHERE k = 1");
}
