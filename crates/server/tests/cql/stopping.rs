//! How a server stops.

use std::net::TcpStream;
use std::time::Duration;

use ilion_protocol::Version;
use ilion_server::{Entrance, Port};

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
    for (entrance, setting) in [
        (Entrance::Clients, "native_transport_port"),
        (Entrance::Administration, "admin_port"),
    ] {
        let refused = Port::take(entrance, setup.server.address())
            .unwrap_err()
            .to_string();
        let hint = format!("; another server runs there, choose another port ({setting})");
        assert!(refused.ends_with(&hint), "{refused}");
    }
    let nowhere = Port::take(Entrance::Clients, ([192, 0, 2, 1], 0).into()).unwrap_err();
    assert!(
        nowhere
            .to_string()
            .ends_with("; it is no address of this machine (rpc_address)")
    );
}

#[test]
fn who_comes_before_a_taken_port_is_listened_on_is_refused() {
    let port = Port::take(Entrance::Clients, ([127, 0, 0, 1], 0).into()).unwrap();
    let refused = TcpStream::connect(port.address()).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
}
