//! A server that is restarted under a shell.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

use std::sync::Arc;

use ilion_client::{LoginArgs, Target};
use ilion_env::MemEnv;
use ilion_protocol::ErrorCode;
use ilion_server::{Server, ServerNode, ServerOptions};
use ilion_settings::Settings;
use ilion_shell::{Body, Failure, How, Remote, Session as _};

fn serve(port: u16) -> (ServerNode, Server) {
    let settings = Settings {
        directory: "/ilion".into(),
        native_transport_port: port,
        ..Settings::default()
    };
    let node = ServerNode::open(Arc::new(MemEnv::new(1)), &settings).unwrap();
    let server = node.serve(&ServerOptions::of(&settings)).unwrap();
    (node, server)
}

#[test]
fn a_lost_connection_is_opened_again_in_the_same_keyspace() {
    let (node, server) = serve(0);
    let port = server.address().port();
    let mut session = Remote::open(Target::new("127.0.0.1", port, &LoginArgs::default())).unwrap();
    session.execute("USE system", &How::default()).unwrap();
    let unqualified = "SELECT key FROM local";
    assert!(matches!(
        session.execute(unqualified, &How::default()).unwrap().body,
        Body::Rows(_)
    ));

    drop((server, node));
    let failure = session.execute(unqualified, &How::default()).unwrap_err();
    assert!(matches!(failure, Failure::Lost(_)), "{failure}");

    let _again = serve(port);
    assert!(matches!(
        session.execute(unqualified, &How::default()).unwrap().body,
        Body::Rows(_)
    ));
    let failure = session
        .execute("SELECT key FROM missing", &How::default())
        .unwrap_err();
    assert!(matches!(failure, Failure::Refused(error) if error.detail.code() == ErrorCode::Invalid));
}
