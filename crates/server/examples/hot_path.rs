//! A prepared statement by key, without and with counting of its cost as a worker counts it, and without and with checked
//! permissions, to compare the instructions:
//!
//! ```text
//! cargo build --release -p ilion-server --example hot_path
//! for path in read read-counted read-checked write write-counted write-checked; do
//!     valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='*hot_path::measured*' \
//!         target/release/examples/hot_path $path 20000
//! done
//! ```
//! The collected instructions, divided by the count, are those of one operation.

#![expect(clippy::unwrap_used, reason = "a tool for developers")]

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use ilion_env::{MemEnv, cost};
use ilion_node::costs::{CostShard, Spent};
use ilion_query::{
    ClientState, ExecuteOptions, FirstSuperuser, Identity, Prepared, QueryProcessor, Value, Values,
};
use ilion_server::ServerNode;
use ilion_settings::{Authenticator, Authorizer, CommitLogSync, Settings};

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const KEYS: u64 = 2000;

fn key(number: u64) -> Value {
    Value::Bytes(bytes::Bytes::copy_from_slice(&(number % KEYS).to_be_bytes()))
}

fn values(number: u64, is_write: bool) -> Values {
    let blob = || Value::Bytes(bytes::Bytes::from_static(&[7; 34]));
    let blobs = if is_write { 5 } else { 0 };
    Values::Positional(
        std::iter::once(key(number))
            .chain((0..blobs).map(|_| blob()))
            .collect(),
    )
}

struct Path<'a> {
    processor: &'a QueryProcessor,
    statement: &'a Arc<Prepared>,
    client: ClientState,
    shard: Arc<parking_lot::Mutex<CostShard>>,
    is_counted: bool,
}

impl Path<'_> {
    fn run(&mut self, options: &ExecuteOptions) {
        if !self.is_counted {
            let executed = self.processor.execute(&mut self.client, self.statement, options);
            black_box(&executed.unwrap());
            return;
        }
        let scope = cost::begin();
        let executed = self.processor.execute(&mut self.client, self.statement, options);
        let spent = Spent {
            cost: &scope,
            elapsed_nanos: Some(5000),
            is_error: executed.is_err(),
        };
        let shape = self.statement.shape();
        self.shard.lock().record(shape.id, || shape.clone(), &spent);
        black_box(&executed.unwrap());
    }
}

#[inline(never)]
fn measured(path: &mut Path<'_>, options: &[ExecuteOptions]) {
    for options in options {
        path.run(options);
    }
}

/// A role that may read and write the keyspace.
fn logged_in(node: &ServerNode) -> Identity {
    let access = node.processor().access();
    let of = |name: &str| FirstSuperuser {
        role: name.to_owned(),
        password: name.to_owned(),
    };
    access.create_superuser(&of("root")).unwrap();
    let mut root = ClientState {
        identity: Identity::User(access.log_in("root", "root", LOCALHOST).unwrap()),
        ..ClientState::default()
    };
    for text in [
        "CREATE ROLE app WITH PASSWORD = 'app' AND LOGIN = true",
        "GRANT SELECT ON KEYSPACE ks TO app",
        "GRANT MODIFY ON KEYSPACE ks TO app",
    ] {
        let options = ExecuteOptions::default();
        node.processor().query(&mut root, text, &options).unwrap();
    }
    Identity::User(access.log_in("app", "app", LOCALHOST).unwrap())
}

#[expect(clippy::print_stdout, reason = "this is what it is for")]
fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "read".to_owned());
    let count: u64 = arguments.next().map_or(20_000, |count| count.parse().unwrap());
    let mut settings = Settings {
        directory: "/ilion".into(),
        commitlog_sync: CommitLogSync::Periodic,
        ..Settings::default()
    };
    let is_checked = name.ends_with("-checked");
    if is_checked {
        settings.authenticator = Authenticator::Password;
        settings.authorizer = Authorizer::Cassandra;
    }
    let node = ServerNode::open(Arc::new(MemEnv::new(1)), &settings).unwrap();
    let processor = node.processor();
    let mut client = ClientState::default();
    for text in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k bigint PRIMARY KEY, a blob, b blob, c blob, d blob, e blob)",
    ] {
        processor
            .query(&mut client, text, &ExecuteOptions::default())
            .unwrap();
    }
    let insert = "INSERT INTO ks.t (k, a, b, c, d, e) VALUES (?, ?, ?, ?, ?, ?)";
    let insert = processor.prepare(&client, insert, None).unwrap();
    let select = processor
        .prepare(&client, "SELECT * FROM ks.t WHERE k = ?", None)
        .unwrap();
    let options = |is_write: bool, count: u64| -> Vec<ExecuteOptions> {
        let with = |number| ExecuteOptions {
            values: values(number, is_write),
            ..ExecuteOptions::default()
        };
        (0..count).map(with).collect()
    };
    for options in options(true, KEYS) {
        processor.execute(&mut client, &insert, &options).unwrap();
    }
    if is_checked {
        client.identity = logged_in(&node);
    }
    let is_write = name.starts_with("write");
    let mut path = Path {
        processor,
        statement: if is_write { &insert } else { &select },
        client,
        shard: node.observers().costs.new_shard(),
        is_counted: name.ends_with("-counted"),
    };
    let options = options(is_write, count);
    path.run(&options[0]);
    measured(&mut path, &options);
    println!("{name}: {count} operations");
}
