//! Logins by certificate, on a whole node.

use std::path::Path;

use ilion_env::Env;
use ilion_protocol::{Compression, ErrorDetail, Response, Version};
use ilion_server::ServerNode;
use ilion_settings::{Authenticator, Authorizer, CertificateValidator, ClientCertificates, Settings};
use rustls::version::{TLS12, TLS13};

use crate::audit::summary;
use crate::client::{Client, credentials, error_of, rows_of};
use crate::logins::{ROOT, make_root};
use crate::tls::{CA, Encrypted, TRUSTSTORE, config, connect, encrypts, env};
use crate::{Setup, start_with};

const CLIENTS_CA: &[u8] = include_bytes!("../../../tls/testdata/clients-ca.pem");
const ALICE: &[u8] = include_bytes!("../../../tls/testdata/alice.pem");
pub const ROBOT: &[u8] = include_bytes!("../../../tls/testdata/robot.pem");

fn asks_certificates(settings: &mut Settings) {
    encrypts(settings);
    settings.client_encryption_options_require_client_auth = ClientCertificates::Optional;
    settings.authenticator = Authenticator::MutualTlsWithPasswordFallback;
    settings.authorizer = Authorizer::Cassandra;
    settings.auth_bcrypt_work_factor = 4;
}

pub fn start(adjust: impl FnOnce(&mut Settings)) -> Setup {
    let env = env();
    let issuers = [CA, CLIENTS_CA].concat();
    env.write_atomically(Path::new(TRUSTSTORE), &issuers).unwrap();
    let setup = start_with(env, |settings| {
        asks_certificates(settings);
        adjust(settings);
    });
    make_root(&setup);
    setup
}

fn without_certificate(setup: &Setup) -> Encrypted {
    connect(setup.server.address(), config(&TLS13, None))
}

fn with_certificate(setup: &Setup, pem: &[u8]) -> Encrypted {
    connect(setup.server.address(), config(&TLS13, Some(pem)))
}

/// Logged in as the superuser, by password.
pub fn root(setup: &Setup) -> Encrypted {
    let mut root = without_certificate(setup);
    assert!(matches!(root.startup(None), Response::Authenticate(_)));
    let answer = root.ask(credentials(ROOT.0, ROOT.1));
    assert_eq!(answer, Response::AuthSuccess(None));
    root
}

pub fn run(client: &mut Encrypted, text: &str) {
    let answer = client.query(text);
    assert!(matches!(answer, Response::Result(_)), "{text}: {answer:?}");
}

/// Why the login fails.
fn refused(mut client: Encrypted) -> String {
    let refused = error_of(client.startup(None));
    assert_eq!(refused.detail, ErrorDetail::BadCredentials);
    refused.message
}

#[test]
fn a_certificate_stands_for_a_role_until_its_identity_or_the_role_is_dropped() {
    let setup = start(|_| ());
    let mut root = root(&setup);
    let unknown = "Certificate identity 'spiffe://ilion.example/alice' not authorized";
    assert_eq!(refused(with_certificate(&setup, ALICE)), unknown);
    run(&mut root, "CREATE ROLE alice WITH LOGIN = true");
    run(
        &mut root,
        "ADD IDENTITY 'spiffe://ilion.example/alice' TO ROLE 'alice'",
    );
    for (version, compression) in [(&TLS13, None), (&TLS12, Some(Compression::Lz4))] {
        let mut alice = connect(setup.server.address(), config(version, Some(ALICE)));
        assert_eq!(alice.startup(compression), Response::Ready);
        rows_of(alice.query("SELECT key FROM system.local"));
        let denied = error_of(alice.query("CREATE ROLE eve"));
        assert_eq!(denied.detail, ErrorDetail::Unauthorized);
    }
    run(&mut root, "ALTER ROLE alice WITH LOGIN = false");
    let denied = refused(with_certificate(&setup, ALICE));
    assert_eq!(denied, "alice is not permitted to log in");
    run(&mut root, "ALTER ROLE alice WITH LOGIN = true");
    run(&mut root, "DROP IDENTITY 'spiffe://ilion.example/alice'");
    assert_eq!(refused(with_certificate(&setup, ALICE)), unknown);
    run(
        &mut root,
        "ADD IDENTITY 'spiffe://ilion.example/alice' TO ROLE 'alice'",
    );
    run(&mut root, "DROP ROLE alice");
    run(&mut root, "CREATE ROLE alice WITH LOGIN = true");
    assert_eq!(refused(with_certificate(&setup, ALICE)), unknown);
}

#[test]
fn a_certificate_without_an_identity_is_no_login_and_no_password_helps() {
    let setup = start(|_| ());
    let mut robot = with_certificate(&setup, ROBOT);
    let denied = error_of(robot.startup(None));
    assert_eq!(denied.message, "Unable to extract Spiffe from the certificate");
    // The connection has ended.
    assert!(robot.try_receive().is_none());
}

#[test]
fn the_common_name_may_be_the_identity() {
    let setup = start(|settings| {
        settings.authenticator_parameters_validator_class_name = CertificateValidator::CommonName;
    });
    let mut root = root(&setup);
    run(&mut root, "CREATE ROLE \"Robots\" WITH LOGIN = true");
    run(&mut root, "ADD IDENTITY 'robot' TO ROLE 'Robots'");
    let mut robot = with_certificate(&setup, ROBOT);
    assert_eq!(robot.startup(None), Response::Ready);
    let named = rows_of(root.query("SELECT username FROM system_views.clients"));
    assert!(named.cells().any(|name| name == Some(b"Robots".as_slice())));
}

#[test]
fn without_a_fallback_a_certificate_is_needed() {
    let setup = start(|settings| {
        settings.authenticator = Authenticator::MutualTls;
        settings.client_encryption_options_require_client_auth = ClientCertificates::Required;
        settings.client_encryption_options_optional = true;
    });
    // Plain connections are taken, but nobody logs in by them.
    let mut plain = Client::connect(setup.server.address(), Version::V4);
    let denied = error_of(plain.startup(None));
    assert_eq!(denied.message, "No certificate present on connection");
    let unknown = refused(with_certificate(&setup, ALICE));
    assert!(unknown.contains("not authorized"), "{unknown}");
}

#[test]
fn settings_that_would_let_nobody_in_are_refused() {
    let problem = |adjust: &dyn Fn(&mut Settings)| {
        let mut settings = Settings {
            directory: "/ilion".into(),
            ..Settings::default()
        };
        asks_certificates(&mut settings);
        adjust(&mut settings);
        let refused = ServerNode::open(env(), &settings);
        refused.err().expect("it opens").to_string()
    };
    let optional = problem(&|settings| settings.authenticator = Authenticator::MutualTls);
    assert!(optional.contains("require_client_auth to be true"), "{optional}");
    let not_asked = problem(&|settings| {
        settings.client_encryption_options_require_client_auth = ClientCertificates::NotAsked;
    });
    assert!(not_asked.contains("to be optional/true"), "{not_asked}");
    let plain = problem(&|settings| settings.client_encryption_options_enabled = false);
    assert!(plain.contains("client_encryption_options.enabled"), "{plain}");
}

#[test]
fn logins_by_certificate_are_in_the_audit_log() {
    let setup = start(|settings| settings.audit_logging_options_enabled = true);
    let mut root = root(&setup);
    refused(with_certificate(&setup, ALICE));
    refused(with_certificate(&setup, ROBOT));
    run(&mut root, "CREATE ROLE alice WITH LOGIN = true");
    run(
        &mut root,
        "ADD IDENTITY 'spiffe://ilion.example/alice' TO ROLE 'alice'",
    );
    assert_eq!(with_certificate(&setup, ALICE).startup(None), Response::Ready);
    let entries = setup.audited();
    assert_eq!(
        summary(&entries),
        [
            "LOGIN_SUCCESS AUTH .",
            "LOGIN_ERROR AUTH .",
            "LOGIN_ERROR AUTH .",
            "CREATE_ROLE DCL .",
            "CREATE_IDENTITY DCL .",
            "LOGIN_SUCCESS AUTH .",
        ]
    );
    let told = |place: usize, field: &str| entries[place][field].as_str().map(str::to_owned);
    assert_eq!(
        told(1, "operation").unwrap(),
        "LOGIN FAILURE; Certificate identity 'spiffe://ilion.example/alice' not authorized"
    );
    assert_eq!(
        told(2, "operation").unwrap(),
        "LOGIN FAILURE; Unable to extract Spiffe from the certificate"
    );
    assert_eq!(told(5, "user").unwrap(), "alice");
}
