//! What the server makes of the settings: encryption, logins by certificate. Settings themselves: `crates/settings/tests`.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

use std::sync::Arc;

use ilion_env::MemEnv;
use ilion_server::{CertificateLogins, ServerNode, client_encryption, server_encryption};
use ilion_settings::{CertificateValidator, Loaded};
use ilion_tls::{Connecting, PeerCertificates};

fn from_text(text: &str) -> Result<Loaded, String> {
    let mut loaded = Loaded::default();
    loaded
        .add_text("ilion.yaml", text)
        .map_err(|error| error.to_string())?;
    Ok(loaded)
}

#[test]
fn encryption_is_set_in_the_words_of_cassandra() {
    let loaded = from_text(
        "client_encryption_options:\n  enabled: true\n  optional: true\n  keystore: /etc/node.pem\n  keystore_password: secret\n  \
         require_client_auth: optional\n  truststore: /etc/ca.pem\n  protocol: TLS\n  accepted_protocols: [TLSv1.2, TLSv1.3]\n",
    )
    .unwrap();
    let told = loaded.warnings.join("\n");
    assert!(!told.contains("secret"), "{told}");
    let password = &loaded.settings.client_encryption_options_keystore_password;
    assert_eq!(password.as_ref().unwrap().text(), "secret");
    assert!(!told.contains("secret"), "{told}");
    let tls = client_encryption(&loaded.settings).unwrap();
    assert_eq!(
        (tls.keystore, tls.truststore),
        ("/etc/node.pem".into(), "/etc/ca.pem".into())
    );
    assert_eq!(tls.peer_certificates, PeerCertificates::Optional);
    assert_eq!(tls.protocols, ["TLSv1.2", "TLSv1.3"]);
    assert!(tls.is_optional);
    let off =
        from_text("client_encryption_options:\n  enabled: false\n  keystore: conf/.keystore\n").unwrap();
    assert_eq!(client_encryption(&off.settings), None);
}

#[test]
fn encryption_between_nodes_is_set_in_the_words_of_cassandra() {
    let loaded = from_text(
        "server_encryption_options:\n  internode_encryption: all\n  legacy_ssl_storage_port_enabled: false\n  optional: false\n  \
         keystore: /etc/node.p12\n  keystore_password: secret\n  truststore: /etc/nodes.pem\n  \
         require_endpoint_verification: true\n  protocol: TLS\n  accepted_protocols: [TLSv1.3]\n",
    )
    .unwrap();
    assert_eq!(loaded.warnings, Vec::<String>::new());
    let tls = server_encryption(&loaded.settings).unwrap();
    assert_eq!(
        (tls.keystore, tls.truststore),
        ("/etc/node.p12".into(), "/etc/nodes.pem".into())
    );
    assert_eq!(tls.keystore_password.unwrap().text(), "secret");
    // Unlike in Cassandra, both sides show certificates unless the operator says otherwise.
    assert_eq!(tls.peer_certificates, PeerCertificates::Required);
    assert_eq!(tls.connecting, Connecting::Named);
    assert_eq!(tls.protocols, ["TLSv1.3"]);
    let weaker =
        from_text("server_encryption_options: {internode_encryption: all, require_client_auth: false}\n");
    let weaker = server_encryption(&weaker.unwrap().settings).unwrap();
    assert_eq!(weaker.peer_certificates, PeerCertificates::NotAsked);
    assert_eq!(weaker.connecting, Connecting::Trusted);
    let off = from_text("server_encryption_options: {internode_encryption: none, keystore: x}\n");
    assert_eq!(server_encryption(&off.unwrap().settings), None);
}

/// Nothing listens for other nodes there, so nobody may rely on its encryption.
#[test]
fn a_single_node_does_not_start_with_encryption_between_nodes() {
    let settings = from_text("server_encryption_options: {internode_encryption: all}\n")
        .unwrap()
        .settings;
    let refused = ServerNode::open(Arc::new(MemEnv::new(1)), &settings)
        .err()
        .unwrap();
    assert_eq!(
        refused.to_string(),
        "server_encryption_options: all is refused: a single node has no connections to other nodes"
    );
}

#[test]
fn logins_by_certificate_are_set_in_the_words_of_cassandra() {
    let loaded = from_text(
        "authenticator:\n  class_name: org.apache.cassandra.auth.MutualTlsWithPasswordFallbackAuthenticator\n  parameters:\n    \
         validator_class_name: org.apache.cassandra.auth.SpiffeCertificateValidator\n",
    )
    .unwrap();
    assert_eq!(
        CertificateLogins::of(&loaded.settings),
        Some(CertificateLogins {
            validator: CertificateValidator::Spiffe,
            falls_back: true,
        })
    );
    let by_name = from_text(
        "authenticator:\n  class_name: MutualTlsAuthenticator\n  parameters: {validator_class_name: CommonNameCertificateValidator}\n",
    )
    .unwrap();
    assert_eq!(
        CertificateLogins::of(&by_name.settings),
        Some(CertificateLogins {
            validator: CertificateValidator::CommonName,
            falls_back: false,
        })
    );
    let other = from_text(
        "authenticator: {class_name: MutualTlsAuthenticator, parameters: {validator_class_name: com.example.Own}}",
    );
    let refused = other.unwrap_err().to_string();
    assert!(
        refused.contains("expected one of SpiffeCertificateValidator, CommonNameCertificateValidator"),
        "{refused}"
    );
}
