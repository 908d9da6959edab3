//! A cluster of three nodes over sockets, each with an engine on a disk in memory, answers as a node with all data does, page for page; also
//! while connections break.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ilion_coordinator::testing::Shape;
use ilion_coordinator::{InProcess, PageSize, ReadOptions, ReplicaClient};
use ilion_env::{Env, MemEnv};
use ilion_internode::{Internode, Kind, ReadService, RemoteReplicas, Services};
use ilion_query::{Consistency, Error};
use ilion_rows::random::Dice;
use ilion_tls::{Connecting, PeerCertificates, TlsOptions};

use crate::nodes::{Addresses, Start, identity};
use crate::proxy::{Proxy, Wire};
use crate::statements::Table;
use crate::world::{How, NOW_SECS, World, run};

const NODES: u32 = 3;

/// The nodes of a world, and the wires to them.
struct Sockets {
    internodes: Vec<Internode>,
    proxies: Vec<Proxy>,
}

fn tls() -> TlsOptions {
    TlsOptions {
        block: "server_encryption_options",
        is_optional: false,
        keystore: "/tls/node.pem".into(),
        keystore_password: None,
        truststore: "/tls/ca.pem".into(),
        truststore_password: None,
        peer_certificates: PeerCertificates::Required,
        connecting: Connecting::Named,
        protocols: Vec::new(),
    }
}

/// With the clock of the engines, since the deadlines are theirs. Such a clock hardly moves.
fn env() -> Arc<dyn Env> {
    let env = MemEnv::new(1);
    env.set_micros(i64::from(NOW_SECS) * 1_000_000);
    env.create_dir_all(Path::new("/tls")).unwrap();
    for (file, content) in [
        (
            "/tls/node.pem",
            &include_bytes!("../../../tls/testdata/node.pem")[..],
        ),
        ("/tls/ca.pem", include_bytes!("../../../tls/testdata/ca.pem")),
    ] {
        env.write_atomically(Path::new(file), content).unwrap();
    }
    Arc::new(env)
}

impl Sockets {
    fn start(replicas: &InProcess, is_encrypted: bool) -> Self {
        let addresses = Addresses::default();
        let mut internodes = Vec::new();
        for node in 1..=NODES {
            let replica = replicas.replica(node).unwrap().clone();
            let start = Start {
                identity: identity(node),
                env: env(),
                services: Services::new().with(Kind::READ, Arc::new(ReadService::new(replica))),
                tls: is_encrypted.then(tls),
                ..Start::node(node)
            };
            internodes.push(start.start(&addresses));
        }
        let proxies: Vec<_> = internodes
            .iter()
            .map(|internode| Proxy::to(internode.address()))
            .collect();
        for (node, proxy) in (1..).zip(&proxies) {
            addresses.set(node, proxy.address());
        }
        Self { internodes, proxies }
    }

    fn cut(&self) {
        self.proxies.iter().for_each(Proxy::cut);
    }

    fn connections(&self) -> usize {
        self.proxies.iter().map(Proxy::connections).sum()
    }
}

/// A world whose coordinators reach each other over sockets.
fn world(shape: &Shape, options: ReadOptions, is_encrypted: bool) -> (World, Sockets) {
    let sockets: RefCell<Option<Sockets>> = RefCell::default();
    let left: RefCell<VecDeque<usize>> = RefCell::new((0..NODES as usize).collect());
    let world = World::with_client(shape, options, |replicas| {
        let mut sockets = sockets.borrow_mut();
        let sockets = sockets.get_or_insert_with(|| Sockets::start(&replicas, is_encrypted));
        let node = left.borrow_mut().pop_front().unwrap();
        let client: Arc<dyn ReplicaClient> =
            Arc::new(RemoteReplicas::new(sockets.internodes[node].client().clone()));
        client
    });
    (world, sockets.into_inner().unwrap())
}

fn random_options(dice: &mut Dice) -> ReadOptions {
    let mut page = |rows: usize, bytes: usize| PageSize {
        rows: 1 + dice.below(rows) as u32,
        bytes: 1 + dice.below(bytes) as u32,
    };
    ReadOptions {
        page_first: page(4, 2000),
        page_max: page(20, 20_000),
        ranges_max: 1 + dice.below(5),
        ..ReadOptions::default()
    }
}

fn random_how(dice: &mut Dice) -> How {
    How {
        level: *dice.pick(&[
            Consistency::QUORUM,
            Consistency::ALL,
            Consistency::SERIAL,
            Consistency::ONE,
        ]),
        page_size: dice
            .pick(&[None, Some(1), Some(3), Some(7), Some(100)])
            .to_owned(),
        timestamp_micros: 1 + dice.below(40) as i64,
        now_secs: NOW_SECS + *dice.pick(&[0, 0, 50, 200]),
    }
}

fn filled(dice: &mut Dice, is_encrypted: bool) -> (World, Sockets, Table) {
    let factor = 1 + dice.below(3) as u32;
    let shape = Shape::random(dice, NODES, factor);
    let (world, sockets) = world(&shape, random_options(dice), is_encrypted);
    let table = Table::random(dice);
    for text in [&table.create].into_iter().chain(&table.indexes) {
        world.write(0, text, &How::default());
    }
    world.wait_built();
    for _ in 0..120 {
        let how = How {
            now_secs: NOW_SECS,
            ..random_how(dice)
        };
        world.write(dice.below(3), &table.write(dice), &how);
        if dice.one_in(25) {
            world.move_data(dice);
        }
    }
    (world, sockets, table)
}

fn answers_are_the_same(first_seed: u64, is_encrypted: bool) {
    let (mut rows, mut pages, mut connections) = (0, 0, 0);
    for seed in first_seed..first_seed + histories() {
        let mut dice = Dice::new(seed);
        let (world, sockets, table) = filled(&mut dice, is_encrypted);
        for _ in 0..40 {
            let text = table.select(&mut dice);
            let how = random_how(&mut dice);
            let expected = run(&world.single, &text, &how);
            if let Ok(expected) = &expected {
                rows += expected.rows();
                pages += expected.pages.len();
            }
            for (at, coordinator) in world.coordinators.iter().enumerate() {
                let answered = run(coordinator, &text, &how);
                assert_eq!(
                    answered,
                    expected,
                    "seed {seed}, node {}, {how:?}\n{}\n{:?}\n{text}",
                    at + 1,
                    table.create,
                    table.indexes
                );
            }
        }
        connections += sockets.connections();
    }
    println!("{rows} rows, {pages} pages, {connections} connections");
    assert!(connections > 0, "reads went over sockets");
    assert!(rows > 200 && pages > 100, "{rows} rows, {pages} pages");
}

#[test]
fn any_select_is_answered_over_sockets_as_by_a_node_with_all_data() {
    answers_are_the_same(5000, false);
}

#[test]
fn any_select_is_answered_over_encrypted_sockets_as_by_a_node_with_all_data() {
    answers_are_the_same(6000, true);
}

/// Connections are cut between and during reads: an answer is right, or an error, and never short.
#[test]
fn an_answer_over_connections_that_break_is_right_or_an_error() {
    let (mut right, mut errors) = (0, 0);
    for seed in 7000..7000 + histories() {
        let mut dice = Dice::new(seed);
        let (world, sockets, table) = filled(&mut dice, false);
        for _ in 0..60 {
            let text = table.select(&mut dice);
            let how = random_how(&mut dice);
            let Ok(expected) = run(&world.single, &text, &how) else {
                continue;
            };
            let at = dice.below(3);
            let answered = std::thread::scope(|scope| {
                let reading = scope.spawn(|| run(&world.coordinators[at], &text, &how));
                if dice.one_in(2) {
                    sockets.cut();
                }
                reading.join().unwrap()
            });
            match answered {
                Ok(answered) => {
                    assert_eq!(answered, expected, "seed {seed}, node {}\n{text}", at + 1);
                    right += 1;
                }
                Err(Error::Unavailable { .. } | Error::ReadTimeout { .. } | Error::ReadFailure { .. }) => {
                    errors += 1;
                }
                Err(other) => panic!("seed {seed}: {text}: {other:?}"),
            }
        }
    }
    println!("{right} right, {errors} errors");
    assert!(right > 20, "{right} right, {errors} errors");
}

/// Two of three replicas can answer, and the nearer one hangs: `speculative_retry` decides how long that takes.
#[test]
fn a_node_that_hangs_delays_a_read_by_what_its_table_allows() {
    let shape = Shape::random(&mut Dice::new(3), NODES, 3);
    let (world, sockets) = world(&shape, ReadOptions::default(), false);
    let create = "CREATE TABLE ks.t (k int PRIMARY KEY, v int) WITH speculative_retry = '20ms'";
    world.write(0, create, &How::default());
    world.write(0, "INSERT INTO ks.t (k, v) VALUES (1, 7)", &How::default());
    world.cluster.set_ready(1, false);
    let select = "SELECT v FROM ks.t WHERE k = 1";
    let read = || run(&world.coordinators[0], select, &How::default()).unwrap();
    assert_eq!(read().rows(), 1);
    // One of the others has answered. Both hang in turn.
    for hangs in [1, 2] {
        sockets.proxies[hangs].set(Wire::Silent);
        let begun = Instant::now();
        for _ in 0..3 {
            assert_eq!(read().rows(), 1);
        }
        let took = begun.elapsed();
        // Without a second replica, it takes 1.5 s to find out, and more for a busy machine.
        assert!(took < Duration::from_millis(1000), "{took:?}");
        sockets.proxies[hangs].set(Wire::Whole);
    }
}

/// Number of histories: `HISTORIES` in the environment, or a few.
fn histories() -> u64 {
    let asked = std::env::var("HISTORIES").ok();
    asked.and_then(|count| count.parse().ok()).unwrap_or(4)
}
