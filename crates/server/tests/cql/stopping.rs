//! The end of a server.

use std::net::TcpStream;
use std::time::Duration;

use ilion_protocol::Version;
use ilion_server::{NoListener, NoLog, Server, ServerOptions, Services};

use crate::client::{Client, rows_of};
use crate::double::start;

#[test]
fn what_was_asked_before_the_end_is_answered() {
    let setup = start();
    let address = setup.server.address();
    let mut client = Client::open(address, Version::V5, None);
    let mut idle = Client::open(address, Version::V5, None);
    client.send_query(1, "SELECT wait");
    while setup.double.begun.load(std::sync::atomic::Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    let server = setup.server;
    let stopping = std::thread::spawn(move || server.stop(Duration::from_secs(20)));
    assert!(idle.try_receive().is_none());
    setup.gate.send(()).unwrap();
    rows_of(client.receive().response);
    assert!(client.try_receive().is_none());
    stopping.join().unwrap();
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_port_that_is_taken_is_said_plainly() {
    let setup = start();
    let mut options = ServerOptions::of(&ilion_server::settings::Settings::default());
    options.address = setup.server.address();
    let services = Services {
        env: std::sync::Arc::new(ilion_env::MemEnv::new(1)),
        statements: setup.double.clone(),
        durability: std::sync::Arc::new(NoLog),
        schema_listener: std::sync::Arc::new(NoListener),
        observers: Default::default(),
    };
    let Err(error) = Server::start(&options, services) else {
        panic!("two servers on one port");
    };
    let text = error.to_string();
    assert!(
        text.contains("another server runs there, choose another port"),
        "{text}"
    );
}
