//! Executes statements on members of a cluster in one process, over logs in memory, so that a profiler can count instructions:
//! `valgrind --tool=callgrind target/release/examples/costs MEMBERS KIND CLIENTS COUNT`. MEMBERS 0 is a single node without a cluster; KIND is
//! `write`, `condition`, `counter`, `one` or `quorum` (reads). The instructions of a statement are the difference of two runs with different
//! COUNTs, divided by the difference of these. They are those of all members together, with parsing, and without the native protocol.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    dead_code,
    reason = "an example fails where it stands, and uses a part of what tests use"
)]

use std::path::Path;
use std::sync::Arc;
use std::thread;

use ilion_engine::{Engine, EngineOptions};
use ilion_env::MemEnv;
use ilion_member::MemberOptions;
use ilion_query::{ClusterFacts, Consistency, EngineStore, QueryOptions, QueryProcessor};

use world::{World, run};

#[path = "../tests/members/world.rs"]
mod world;

const TABLETS: u32 = 8;
/// Rows that are there before the statements that are counted.
const ROWS: i64 = 1000;

/// The statement of a kind, its level, and how many values it has.
fn statement(kind: &str) -> Option<(&'static str, Consistency, usize)> {
    Some(match kind {
        "write" => ("INSERT INTO ks.t (k, n) VALUES (?, ?)", Consistency::QUORUM, 2),
        "condition" => (
            "UPDATE ks.t SET n = ? WHERE k = ? IF EXISTS",
            Consistency::QUORUM,
            2,
        ),
        "counter" => ("UPDATE ks.c SET n = n + ? WHERE k = ?", Consistency::QUORUM, 2),
        "one" => ("SELECT n FROM ks.t WHERE k = ?", Consistency::ONE, 1),
        "quorum" => ("SELECT n FROM ks.t WHERE k = ?", Consistency::QUORUM, 1),
        _ => return None,
    })
}

fn single() -> QueryProcessor {
    let engine = Engine::open(MemEnv::new(1).shared(), EngineOptions::below(Path::new("/ilion"))).unwrap();
    QueryProcessor::new(
        Arc::new(EngineStore::new(Arc::new(engine), ClusterFacts::default())),
        QueryOptions::default(),
    )
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|word| word.parse::<i64>().ok());
    let kind = arguments.get(1).and_then(|kind| statement(kind));
    let (Some(members), Some(kind), Some(clients), Some(count)) = (number(0), kind, number(2), number(3))
    else {
        eprintln!("usage: costs MEMBERS write|condition|counter|one|quorum CLIENTS COUNT");
        std::process::exit(2);
    };
    let (text, level, values) = kind;
    let mut world = World::with_room(0, members as usize, TABLETS);
    // Those that users have.
    world.change_options = |options| {
        let usual = MemberOptions::new(
            options.host,
            options.endpoint,
            options.location.clone(),
            &options.release,
        );
        *options = MemberOptions {
            create: options.create,
            ..usual
        };
    };
    for place in 0..members as usize {
        world.start(place, MemEnv::new(place as u64 + 1));
    }
    let alone = (members == 0).then(single);
    let nodes: Vec<_> = (0..members as usize)
        .map(|place| world.at(place).unwrap())
        .collect();
    let processor = |client: i64| match &alone {
        Some(alone) => alone,
        None => &nodes[client as usize % nodes.len()].processor,
    };
    for text in [
        format!(
            "CREATE KEYSPACE ks WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': {}}}",
            members.max(1)
        )
        .as_str(),
        "CREATE TABLE ks.t (k bigint PRIMARY KEY, n bigint)",
        "CREATE TABLE ks.c (k bigint PRIMARY KEY, n counter)",
    ] {
        run(processor(0), text, &[], Consistency::ONE).unwrap();
    }
    for key in 0..ROWS {
        let insert = "INSERT INTO ks.t (k, n) VALUES (?, ?)";
        run(processor(0), insert, &[key, key], Consistency::QUORUM).unwrap();
    }
    thread::scope(|scope| {
        for client in 0..clients {
            let of_client = processor(client);
            scope.spawn(move || {
                for number in 0..count / clients {
                    let key = (client * 31 + number * 7) % ROWS;
                    run(of_client, text, &[key, key][..values], level).unwrap();
                }
            });
        }
    });
}
