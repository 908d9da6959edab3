//! A whole node on a disk in memory: real statements over a real socket, and the HTTP port.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests fail where the test fails"
)]

#[path = "../cql/client.rs"]
mod client;
#[path = "../../../telemetry/tests/receiver/mod.rs"]
mod receiver;
#[path = "../cql/sending.rs"]
mod sending;

mod admin;
mod audit;
mod caches;
mod certificates;
mod changes;
mod costs;
mod entry;
mod functions;
mod live;
mod loads;
mod logins;
mod masks;
mod metrics;
mod parked;
mod peers;
mod prepared;
mod snapshots;
mod spans;
mod system;
mod tls;
mod traces;

use std::sync::Arc;

use ilion_env::MemEnv;
use ilion_protocol::{Response, Version};
use ilion_server::{Server, ServerNode, ServerOptions};
use ilion_settings::Settings;

use client::Client;

pub struct Setup {
    pub env: Arc<MemEnv>,
    pub settings: Settings,
    pub node: ServerNode,
    pub server: Server,
}

impl Setup {
    pub fn client(&self, version: Version) -> Client {
        Client::open(self.server.address(), version, None)
    }
}

pub fn start() -> Setup {
    start_on(Arc::new(MemEnv::new(1)))
}

pub fn start_on(env: Arc<MemEnv>) -> Setup {
    start_with(env, |_| ())
}

pub fn start_with(env: Arc<MemEnv>, adjust: impl FnOnce(&mut Settings)) -> Setup {
    let mut settings = Settings {
        directory: "/ilion".into(),
        native_transport_port: 0,
        ..Settings::default()
    };
    adjust(&mut settings);
    let node = ServerNode::open(env.clone(), &settings).unwrap();
    let server = node.serve(&ServerOptions::of(&settings)).unwrap();
    Setup {
        env,
        settings,
        node,
        server,
    }
}

/// Executes a statement that must succeed.
pub fn run(client: &mut Client, text: &str) -> Response {
    let response = client.query(text);
    assert!(matches!(response, Response::Result(_)), "{text}: {response:?}");
    response
}

pub fn make_table(client: &mut Client) {
    run(
        client,
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    run(client, "CREATE TABLE ks.t (k int PRIMARY KEY, v text)");
}
