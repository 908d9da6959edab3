//! Client connections over TLS, on a whole node.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use ilion_env::{Env, MemEnv};
use ilion_protocol::{Compression, Response, Version};
use ilion_server::{ServerNode, ServerOptions};
use ilion_settings::{ClientCertificates, Loaded, Settings};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion};

use crate::client::{Client, patient, query, rows_of};
use crate::{Setup, make_table, run, start_with};

pub const CA: &[u8] = include_bytes!("../../../tls/testdata/ca.pem");
const NODE: &[u8] = include_bytes!("../../../tls/testdata/node.pem");
const OTHER_NODE: &[u8] = include_bytes!("../../../tls/testdata/node2.pem");
const CLIENT: &[u8] = include_bytes!("../../../tls/testdata/client.pem");
const PKCS12: &[u8] = include_bytes!("../../../tls/testdata/java.p12");
const EXPIRY_CA: &[u8] = include_bytes!("../../../tls/testdata/expiry-ca.pem");
const EXPIRED_NODE: &[u8] = include_bytes!("../../../tls/testdata/expired-node.pem");
const OTHER_HOST: &[u8] = include_bytes!("../../../tls/testdata/other-host.pem");
const EXPIRED_CLIENT: &[u8] = include_bytes!("../../../tls/testdata/expired-client.pem");

const KEYSTORE: &str = "/tls/node.pem";
pub const TRUSTSTORE: &str = "/tls/ca.pem";
pub const EXPIRED_KEYSTORE: &str = "/tls/expired.pem";

pub type Encrypted = Client<StreamOwned<ClientConnection, TcpStream>>;

pub fn env() -> Arc<MemEnv> {
    let env = MemEnv::new(1);
    env.create_dir_all(Path::new("/tls")).unwrap();
    env.write_atomically(Path::new(KEYSTORE), NODE).unwrap();
    env.write_atomically(Path::new(TRUSTSTORE), CA).unwrap();
    env.write_atomically(Path::new(EXPIRED_KEYSTORE), EXPIRED_NODE)
        .unwrap();
    Arc::new(env)
}

pub fn encrypts(settings: &mut Settings) {
    settings.client_encryption_options_enabled = true;
    settings.client_encryption_options_keystore = KEYSTORE.into();
    settings.client_encryption_options_truststore = TRUSTSTORE.into();
}

fn start(adjust: impl FnOnce(&mut Settings)) -> Setup {
    start_with(env(), |settings| {
        encrypts(settings);
        adjust(settings);
    })
}

fn certificates(pem: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem).map(Result::unwrap).collect()
}

pub fn config(version: &'static SupportedProtocolVersion, shown: Option<&[u8]>) -> ClientConfig {
    config_trusting(CA, version, shown)
}

fn config_trusting(
    issuers: &[u8],
    version: &'static SupportedProtocolVersion,
    shown: Option<&[u8]>,
) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(issuers));
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots);
    match shown {
        None => builder.with_no_client_auth(),
        Some(pem) => builder
            .with_client_auth_cert(certificates(pem), PrivateKeyDer::from_pem_slice(pem).unwrap())
            .unwrap(),
    }
}

pub fn connect(address: SocketAddr, config: ClientConfig) -> Encrypted {
    let tcp = patient(TcpStream::connect(address).unwrap());
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    Client::on(StreamOwned::new(connection, tcp), Version::V5)
}

/// Connected and ready for statements.
fn open(setup: &Setup, version: &'static SupportedProtocolVersion) -> Encrypted {
    let mut client = connect(setup.server.address(), config(version, None));
    assert_eq!(client.startup(Some(Compression::Lz4)), Response::Ready);
    client
}

/// False if the server ends the connection without an answer.
fn is_answered(stream: &mut (impl Read + Write), request: &[u8]) -> bool {
    let answered = stream
        .write_all(request)
        .and_then(|()| stream.flush())
        .and_then(|()| stream.read(&mut [0; 64]));
    match answered {
        Ok(count) => count > 0,
        Err(error) => {
            let is_timeout = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
            assert!(!is_timeout, "{error}");
            false
        }
    }
}

/// OPTIONS in v4.
const OPTIONS: [u8; 9] = [4, 0, 0, 1, 5, 0, 0, 0, 0];

#[test]
fn statements_run_encrypted_and_operators_see_it() {
    let setup = start(|_| ());
    for (version, name) in [(&TLS13, "TLSv1.3"), (&TLS12, "TLSv1.2")] {
        let mut client = open(&setup, version);
        let port = client.stream.sock.local_addr().unwrap().port();
        let answer = client.query(&format!(
            "SELECT ssl_enabled, ssl_protocol, ssl_cipher_suite FROM system_views.clients WHERE address = '127.0.0.1' AND port = {port}"
        ));
        let rows = rows_of(answer);
        let row = rows.rows().next().unwrap();
        let text = |index: usize| String::from_utf8_lossy(row[index].unwrap()).into_owned();
        assert_eq!(row[0], Some(&[1][..]));
        assert_eq!(text(1), name);
        assert!(text(2).starts_with("TLS_"), "{}", text(2));
    }
}

#[test]
fn answers_that_the_client_reads_late_arrive_whole() {
    const ANSWERS: i16 = 40;
    let setup = start(|_| ());
    let mut plain = open(&setup, &TLS13);
    for text in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k int PRIMARY KEY, v text)",
    ] {
        assert!(matches!(plain.query(text), Response::Result(_)));
    }
    let value = "x".repeat(700_000);
    plain.query(&format!("INSERT INTO ks.t (k, v) VALUES (1, '{value}')"));
    for version in [&TLS13, &TLS12] {
        let mut config = config(version, None);
        config.enable_sni = false;
        let mut client = connect(setup.server.address(), config);
        assert_eq!(client.startup(None), Response::Ready);
        // All are under way before the first is read: 28 MB, more than sockets hold.
        for stream in 0..ANSWERS {
            client.send(stream, query("SELECT v FROM ks.t WHERE k = 1"));
        }
        let mut seen = [false; ANSWERS as usize];
        for _ in 0..ANSWERS {
            let answer = client.receive();
            seen[usize::try_from(answer.stream).unwrap()] = true;
            let rows = rows_of(answer.response);
            assert_eq!(rows.rows().next().unwrap()[0], Some(value.as_bytes()));
        }
        assert!(seen.iter().all(|seen| *seen));
    }
}

#[test]
fn who_does_not_encrypt_is_refused_unless_that_is_optional() {
    let setup = start(|_| ());
    let mut plain = patient(TcpStream::connect(setup.server.address()).unwrap());
    // The answer is an alert of TLS, and then the end.
    plain.write_all(&OPTIONS).unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(answer.is_empty() || answer[0] == 0x15, "{answer:?}");

    let setup = start(|settings| settings.client_encryption_options_optional = true);
    make_table(&mut setup.client(Version::V4));
    let mut client = open(&setup, &TLS13);
    assert!(matches!(
        client.query("INSERT INTO ks.t (k, v) VALUES (1, 'a')"),
        Response::Result(_)
    ));
    run(&mut setup.client(Version::V5), "SELECT * FROM ks.t");
    // The rest of the handshake never comes, or is none.
    for bytes in [
        &[0x16][..],
        &[0x16, 3, 1, 0xFF, 0xFF, 0, 0],
        &[0x16; 3000],
        &[0x15, 3, 3, 0, 2, 1, 0],
    ] {
        let mut broken = patient(TcpStream::connect(setup.server.address()).unwrap());
        broken.write_all(bytes).unwrap();
        run(&mut setup.client(Version::V5), "SELECT * FROM ks.t");
    }
}

#[test]
fn a_second_port_is_encrypted_while_the_first_is_not() {
    let setup = start(|settings| settings.native_transport_port_ssl = Some(0));
    make_table(&mut setup.client(Version::V5));
    let address = setup.server.encrypted_address().unwrap();
    let mut client = connect(address, config(&TLS13, None));
    assert_eq!(client.startup(None), Response::Ready);
    assert!(matches!(client.query("SELECT * FROM ks.t"), Response::Result(_)));
    let mut plain = patient(TcpStream::connect(address).unwrap());
    plain.write_all(&OPTIONS).unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(answer.is_empty() || answer[0] == 0x15, "{answer:?}");
    // Both are closed when the server stops.
    setup.server.stop(std::time::Duration::from_secs(5));
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn one_number_for_both_ports_is_one_encrypted_port_and_without_encryption_there_is_no_second() {
    let of = |plain, encrypted| {
        let settings = Settings {
            native_transport_port: plain,
            native_transport_port_ssl: encrypted,
            ..Settings::default()
        };
        ServerOptions::of(&settings)
            .encrypted_address
            .map(|address| address.port())
    };
    assert_eq!(of(9042, Some(9042)), None);
    assert_eq!(of(9042, Some(9142)), Some(9142));
    assert_eq!(of(9042, None), None);
    let settings = Settings {
        directory: "/ilion".into(),
        native_transport_port_ssl: Some(9142),
        ..Settings::default()
    };
    let refused = ServerNode::open(Arc::new(MemEnv::new(1)), &settings)
        .err()
        .expect("it starts");
    assert!(
        refused.to_string().contains(
            "Encryption must be enabled in client_encryption_options for native_transport_port_ssl"
        ),
        "{refused}"
    );
}

#[test]
fn clients_show_certificates_where_they_must() {
    for (asked, is_taken_without) in [
        (ClientCertificates::Required, false),
        (ClientCertificates::Optional, true),
        (ClientCertificates::NotAsked, true),
    ] {
        let setup = start(|settings| settings.client_encryption_options_require_client_auth = asked);
        for version in [&TLS13, &TLS12] {
            let mut without = connect(setup.server.address(), config(version, None));
            assert_eq!(
                is_answered(&mut without.stream, &OPTIONS),
                is_taken_without,
                "{asked:?}"
            );
            let mut with = connect(setup.server.address(), config(version, Some(CLIENT)));
            assert!(is_answered(&mut with.stream, &OPTIONS), "{asked:?}");
        }
    }
}

#[test]
fn protocols_that_are_not_accepted_are_refused() {
    let setup = start(|settings| {
        settings.client_encryption_options_accepted_protocols.0 = vec!["TLSv1.3".to_owned()];
    });
    let mut old = connect(setup.server.address(), config(&TLS12, None));
    assert!(!is_answered(&mut old.stream, &OPTIONS));
    open(&setup, &TLS13);
}

#[test]
fn files_that_cannot_be_used_are_named_at_the_start() {
    let problem = |env: &Arc<MemEnv>, adjust: &dyn Fn(&mut Settings)| {
        let mut settings = Settings {
            directory: "/ilion".into(),
            native_transport_port: 0,
            ..Settings::default()
        };
        encrypts(&mut settings);
        adjust(&mut settings);
        let node = ServerNode::open(env.clone(), &settings).unwrap();
        let refused = node.serve(&ServerOptions::of(&settings));
        refused.err().expect("it starts").to_string()
    };
    let with = |keystore: &[u8]| {
        let env = env();
        env.write_atomically(Path::new(KEYSTORE), keystore).unwrap();
        env
    };
    let as_is = |_: &mut Settings| ();
    let locked = problem(&with(PKCS12), &as_is);
    assert!(
        locked.contains("/tls/node.pem: the PKCS#12 keystore cannot be opened"),
        "{locked}"
    );
    let java = problem(&with(&[0xFE, 0xED, 0xFE, 0xED, 0, 0, 0, 2]), &as_is);
    assert!(
        java.contains("keytool -importkeystore -srckeystore /tls/node.pem"),
        "{java}"
    );
    let without_key = problem(&with(CA), &as_is);
    assert!(
        without_key.contains("/tls/node.pem: no private key"),
        "{without_key}"
    );
    let empty = problem(&with(b""), &as_is);
    assert!(empty.contains("/tls/node.pem"), "{empty}");
    let missing = problem(&env(), &|settings| {
        settings.client_encryption_options_keystore = "/none.pem".into()
    });
    assert!(missing.contains("/none.pem"), "{missing}");
    let missing = problem(&env(), &|settings| {
        settings.client_encryption_options_truststore = "/none.pem".into();
        settings.client_encryption_options_require_client_auth = ClientCertificates::Required;
    });
    assert!(missing.contains("/none.pem"), "{missing}");
    let protocol = problem(&env(), &|settings| {
        settings.client_encryption_options_accepted_protocols.0 = vec!["TLSv1".to_owned()];
    });
    assert!(
        protocol.contains("TLSv1 is none of TLSv1.2, TLSv1.3"),
        "{protocol}"
    );
}

#[test]
fn a_keystore_of_java_is_as_good_as_pem() {
    let env = env();
    env.write_atomically(Path::new(KEYSTORE), PKCS12).unwrap();
    let mut loaded = Loaded::default();
    let name = "client_encryption_options_keystore_password";
    loaded.set(name, "secret", String::new).unwrap();
    let password = loaded.settings.client_encryption_options_keystore_password;
    let setup = start_with(env, |settings| {
        encrypts(settings);
        settings.client_encryption_options_keystore_password = password;
    });
    let mut client = open(&setup, &TLS13);
    let answer = client.query(&format!(
        "SELECT value FROM system_views.settings WHERE name = '{name}'"
    ));
    assert_eq!(rows_of(answer).rows().next().unwrap()[0], Some(&b"(hidden)"[..]));
    assert!(!format!("{:?}", setup.settings).contains("\"secret\""));
}

/// Why the handshake fails, on either side.
fn failed_handshake(setup: &Setup, config: ClientConfig) -> String {
    let mut client = connect(setup.server.address(), config);
    let mut ask = || {
        client.stream.write_all(&OPTIONS)?;
        client.stream.flush()?;
        match client.stream.read(&mut [0; 64])? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            count => Ok(count),
        }
    };
    let failed: std::io::Result<usize> = ask();
    failed.expect_err("it succeeds").to_string()
}

#[test]
fn expired_certificates_and_those_of_other_hosts_are_refused() {
    for (shown, why) in [(EXPIRED_NODE, "Expired"), (OTHER_HOST, "NotValidForName")] {
        let env = env();
        env.write_atomically(Path::new(KEYSTORE), shown).unwrap();
        let setup = start_with(env, encrypts);
        for version in [&TLS13, &TLS12] {
            let failed = failed_handshake(&setup, config_trusting(EXPIRY_CA, version, None));
            assert!(
                failed.contains(why)
                    || failed.contains(&why.to_lowercase())
                    || failed.contains("not valid for name"),
                "{failed}"
            );
        }
    }
    let env = env();
    env.write_atomically(Path::new(TRUSTSTORE), EXPIRY_CA).unwrap();
    let setup = start_with(env, |settings| {
        encrypts(settings);
        settings.client_encryption_options_require_client_auth = ClientCertificates::Optional;
    });
    for version in [&TLS13, &TLS12] {
        let failed = failed_handshake(&setup, config(version, Some(EXPIRED_CLIENT)));
        assert!(failed.contains("CertificateExpired"), "{failed}");
        // This one comes from an issuer that the node does not trust.
        let failed = failed_handshake(&setup, config(version, Some(CLIENT)));
        assert!(failed.contains("UnknownCA"), "{failed}");
    }
}

#[test]
fn a_changed_certificate_is_shown_without_a_restart_and_a_broken_one_is_not() {
    let env = env();
    let setup = start_with(env.clone(), encrypts);
    let shown = || {
        let mut client = connect(setup.server.address(), config(&TLS13, None));
        assert!(is_answered(&mut client.stream, &OPTIONS));
        client.stream.conn.peer_certificates().unwrap()[0]
            .clone()
            .into_owned()
    };
    assert_eq!(shown(), certificates(NODE)[0]);
    env.write_atomically(Path::new(KEYSTORE), OTHER_NODE).unwrap();
    env.advance_micros(11_000_000);
    assert_eq!(shown(), certificates(OTHER_NODE)[0]);
    env.write_atomically(Path::new(KEYSTORE), b"no certificate")
        .unwrap();
    env.advance_micros(11_000_000);
    assert_eq!(shown(), certificates(OTHER_NODE)[0]);
}
