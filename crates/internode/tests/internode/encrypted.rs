//! TLS between nodes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use ilion_auth::Secret;
use ilion_env::{Env, MemEnv};
use ilion_internode::{CallError, Internode, StartError};
use ilion_tls::{Connecting, PeerCertificates, TlsOptions};

use crate::nodes::{Addresses, LONG, Start, ask, echo, refuses};

const CA: &[u8] = include_bytes!("../../../tls/testdata/ca.pem");
const NODE: &[u8] = include_bytes!("../../../tls/testdata/node.pem");
const OTHER_NODE: &[u8] = include_bytes!("../../../tls/testdata/node2.pem");
/// For `other.example`; by another issuer.
const OTHER_HOST: &[u8] = include_bytes!("../../../tls/testdata/other-host.pem");
const OTHER_CA: &[u8] = include_bytes!("../../../tls/testdata/expiry-ca.pem");
const EXPIRED: &[u8] = include_bytes!("../../../tls/testdata/expired-node.pem");
const PKCS12: &[u8] = include_bytes!("../../../tls/testdata/java.p12");
const TRUST_PKCS12: &[u8] = include_bytes!("../../../tls/testdata/trust.p12");

fn options() -> TlsOptions {
    TlsOptions {
        block: "server_encryption_options",
        is_optional: false,
        keystore: "/tls/node".into(),
        keystore_password: Some(Secret::new("secret")),
        truststore: "/tls/trust".into(),
        truststore_password: Some(Secret::new("secret")),
        peer_certificates: PeerCertificates::Required,
        connecting: Connecting::Trusted,
        protocols: Vec::new(),
    }
}

fn env(keystore: &[u8], truststore: &[u8]) -> Arc<dyn Env> {
    let env = MemEnv::new(1);
    env.create_dir_all(Path::new("/tls")).unwrap();
    env.write_atomically(Path::new("/tls/node"), keystore).unwrap();
    env.write_atomically(Path::new("/tls/trust"), truststore).unwrap();
    Arc::new(env)
}

fn node(number: u32, env: Arc<dyn Env>, adjust: impl FnOnce(&mut TlsOptions)) -> Start {
    let mut tls = options();
    adjust(&mut tls);
    Start {
        env,
        tls: Some(tls),
        ..Start::node(number).serving(echo())
    }
}

/// Node 1 with the first files calls node 2 with the second ones.
fn between(first: Start, second: Start) -> (Result<bytes::Bytes, CallError>, [Internode; 2]) {
    let addresses = Addresses::default();
    let second = second.start(&addresses);
    let first = first.start(&addresses);
    let mut said = ask(&first, 2, "secret words");
    // In TLS 1.3 the side that connects is done before the other one has seen its certificate: the first call may have been sent.
    if let Err(CallError::Unreachable(_)) = &said {
        said = ask(&first, 2, "secret words");
    }
    (said, [first, second])
}

/// Node 1 cannot reach node 2, and reads these words about it. Node 2 notes the others.
fn refused(first: Start, second: Start, words: &str, others: &str) {
    let (said, [_first, second]) = between(first, second);
    let Err(CallError::Unreachable(reason)) = said else {
        panic!("{words}: {said:?}");
    };
    assert!(reason.contains(words), "{words}: {reason}");
    refuses(&second, others);
}

#[test]
fn nodes_with_certificates_of_the_same_issuer_talk() {
    for protocol in ["TLSv1.2", "TLSv1.3"] {
        for (keystore, truststore) in [(NODE, CA), (PKCS12, TRUST_PKCS12)] {
            let first = node(1, env(keystore, truststore), |tls| {
                tls.protocols = vec![protocol.to_owned()];
            });
            let (said, _nodes) = between(first, node(2, env(OTHER_NODE, CA), |_| {}));
            assert_eq!(said.unwrap(), "secret words", "{protocol}");
        }
    }
}

#[test]
fn large_requests_and_answers_pass_in_both_versions_of_tls() {
    for protocol in ["TLSv1.2", "TLSv1.3"] {
        let with = |tls: &mut TlsOptions| tls.protocols = vec![protocol.to_owned()];
        let (_, [first, _second]) = between(node(1, env(NODE, CA), with), node(2, env(OTHER_NODE, CA), with));
        let large = vec![0x5A; 3 << 20];
        assert_eq!(ask(&first, 2, large.clone()).unwrap(), large);
    }
}

#[test]
fn nothing_of_a_call_can_be_read_on_the_wire() {
    let addresses = Addresses::default();
    let asked = node(2, env(OTHER_NODE, CA), |_| {}).start(&addresses);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let asking = node(1, env(NODE, CA), |_| {}).start(&addresses);
    addresses.set(2, listener.local_addr().unwrap());
    let target = asked.address();
    let spying = std::thread::spawn(move || {
        let (mut first, _) = listener.accept().unwrap();
        let mut second = TcpStream::connect(target).unwrap();
        let (mut back_from, mut back_to) = (second.try_clone().unwrap(), first.try_clone().unwrap());
        let back = std::thread::spawn(move || {
            let mut seen = Vec::new();
            let mut buffer = [0; 4096];
            while let Ok(count) = back_from.read(&mut buffer) {
                if count == 0 || back_to.write_all(&buffer[..count]).is_err() {
                    break;
                }
                seen.extend_from_slice(&buffer[..count]);
            }
            seen
        });
        let mut seen = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(count) = first.read(&mut buffer) {
            if count == 0 || second.write_all(&buffer[..count]).is_err() {
                break;
            }
            seen.extend_from_slice(&buffer[..count]);
        }
        let _ = second.shutdown(std::net::Shutdown::Both);
        [seen, back.join().unwrap()].concat()
    });
    assert_eq!(ask(&asking, 2, "secret words").unwrap(), "secret words");
    drop(asking);
    drop(asked);
    let seen = spying.join().unwrap();
    assert!(seen.len() > 1000);
    assert!(!seen.windows(12).any(|window| window == b"secret words"));
    assert!(
        !seen.windows(5).any(|window| window == b"ILION"),
        "not even the greeting"
    );
}

#[test]
fn certificates_that_nobody_vouches_for_are_refused() {
    // The other node does not trust this one: it says so in an alert.
    refused(
        node(1, env(OTHER_HOST, CA), |_| {}),
        node(2, env(OTHER_NODE, CA), |_| {}),
        "check server_encryption_options of both nodes",
        "TLS failed (invalid peer certificate: UnknownIssuer): check server_encryption_options of both nodes",
    );
    // This node does not trust the other one.
    refused(
        node(1, env(NODE, CA), |_| {}),
        node(2, env(OTHER_HOST, CA), |_| {}),
        "TLS failed (invalid peer certificate: UnknownIssuer)",
        "TLS failed (received fatal alert",
    );
    // A certificate that has ended.
    refused(
        node(1, env(NODE, OTHER_CA), |_| {}),
        node(2, env(EXPIRED, CA), |_| {}),
        "invalid peer certificate: certificate expired",
        "TLS failed (received fatal alert",
    );
}

#[test]
fn names_count_only_if_that_is_asked_for() {
    let pair = |named: u32, keystores: [&[u8]; 2]| {
        let both = [CA, OTHER_CA].concat();
        let start = |number: u32, keystore| {
            node(number, env(keystore, &both), |tls| {
                if number == named {
                    tls.connecting = Connecting::Named;
                }
            })
        };
        (start(1, keystores[0]), start(2, keystores[1]))
    };
    let (first, second) = pair(0, [OTHER_HOST, NODE]);
    assert!(between(first, second).0.is_ok());
    let (first, second) = pair(0, [NODE, OTHER_HOST]);
    assert!(between(first, second).0.is_ok());
    // Both certificates name 127.0.0.1.
    let (first, second) = pair(1, [NODE, OTHER_NODE]);
    assert!(between(first, second).0.is_ok());
    let (first, second) = pair(2, [NODE, OTHER_NODE]);
    assert!(between(first, second).0.is_ok());
    // The side that connects looks at the name of the other one, and the other way round.
    let (first, second) = pair(1, [NODE, OTHER_HOST]);
    refused(
        first,
        second,
        "certificate not valid for name",
        "TLS failed (received fatal alert",
    );
    let (first, second) = pair(2, [OTHER_HOST, NODE]);
    refused(
        first,
        second,
        "it refuses: the certificate of the node that connects does not name its address, 127.0.0.1",
        "the certificate of the node that connects does not name its address, 127.0.0.1",
    );
}

#[test]
fn a_node_that_encrypts_and_one_that_does_not_tell_what_to_look_at() {
    refused(
        Start::node(1),
        node(2, env(NODE, CA), |_| {}),
        "it refuses: this node accepts encrypted connections only (server_encryption_options: internode_encryption: all)",
        "this node accepts encrypted connections only",
    );
    refused(
        node(1, env(NODE, CA), |_| {}),
        Start::node(2).serving(echo()),
        "server_encryption_options",
        "it encrypts, and this node does not (server_encryption_options: internode_encryption)",
    );
}

/// It connects as a node would that has no certificate.
#[test]
fn a_node_without_a_certificate_is_refused_unless_that_is_allowed() {
    use rustls_free::handshake_without_certificate;
    let addresses = Addresses::default();
    let strict = node(2, env(NODE, CA), |_| {}).start(&addresses);
    assert!(!handshake_without_certificate(strict.address()));
    let lenient = node(3, env(NODE, CA), |tls| {
        tls.peer_certificates = PeerCertificates::NotAsked;
    })
    .start(&addresses);
    assert!(handshake_without_certificate(lenient.address()));
}

/// A client of TLS without a certificate, made with the options of a node.
mod rustls_free {
    use std::net::SocketAddr;
    use std::sync::Arc;

    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, ServerName};
    use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

    use super::{CA, LONG, Read, TcpStream, Write};

    /// True if the node answers a greeting after the handshake.
    pub fn handshake_without_certificate(address: SocketAddr) -> bool {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(CertificateDer::pem_slice_iter(CA).map(Result::unwrap));
        let config =
            ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(roots)
                .with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let tcp = TcpStream::connect(address).unwrap();
        tcp.set_read_timeout(Some(LONG)).unwrap();
        let mut stream = StreamOwned::new(connection, tcp);
        // A damaged greeting is answered, too.
        let greeting = [5, 0, 0, 0, 0x70, 0, 0, 0, 1, 7];
        let sent = stream.write_all(&greeting).and_then(|()| stream.flush());
        let answered = sent.and_then(|()| stream.read(&mut [0; 100]));
        answered.is_ok_and(|count| count > 0)
    }
}

#[test]
fn files_that_cannot_be_used_are_named_at_the_start() {
    let addresses = Addresses::default();
    let problem = |start: Start| match start.try_start(&addresses) {
        Err(StartError::Tls(error)) => error.to_string(),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it started"),
    };
    let missing = problem(node(1, env(NODE, CA), |tls| tls.keystore = "/tls/none".into()));
    assert!(
        missing.starts_with("server_encryption_options: /tls/none: "),
        "{missing}"
    );
    let no_issuers = problem(node(1, env(NODE, b"nothing"), |_| {}));
    assert!(
        no_issuers.starts_with("server_encryption_options: /tls/trust: "),
        "{no_issuers}"
    );
    let protocol = problem(node(1, env(NODE, CA), |tls| {
        tls.protocols = vec!["SSLv3".to_owned()]
    }));
    assert!(
        protocol.contains("SSLv3 is none of TLSv1.2, TLSv1.3"),
        "{protocol}"
    );
}

#[test]
fn a_new_certificate_needs_no_restart() {
    let addresses = Addresses::default();
    let files = env(OTHER_HOST, CA);
    let asked = node(2, files.clone(), |_| {}).start(&addresses);
    let asking = node(1, env(NODE, CA), |_| {}).start(&addresses);
    assert!(ask(&asking, 2, "x").is_err());
    files.write_atomically(Path::new("/tls/node"), NODE).unwrap();
    asked.encryption().unwrap().reload().unwrap();
    let begun = std::time::Instant::now();
    while ask(&asking, 2, "x").is_err() {
        assert!(begun.elapsed() < LONG);
        std::thread::yield_now();
    }
}
