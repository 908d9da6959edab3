//! The encryption in the settings: of client connections, of the HTTP port, and between nodes.

use ilion_settings::{ClientCertificates, InternodeEncryption, Settings};
use ilion_tls::{Connecting, PeerCertificates, TlsOptions};

use crate::certificate::CertificateLogins;

/// The encryption of client connections; `None` if they are not encrypted.
pub fn client_encryption(settings: &Settings) -> Option<TlsOptions> {
    settings.client_encryption_options_enabled.then(|| TlsOptions {
        block: "client_encryption_options",
        is_optional: settings.client_encryption_options_optional,
        keystore: settings.client_encryption_options_keystore.clone(),
        keystore_password: settings.client_encryption_options_keystore_password.clone(),
        truststore: settings.client_encryption_options_truststore.clone(),
        truststore_password: settings.client_encryption_options_truststore_password.clone(),
        peer_certificates: match settings.client_encryption_options_require_client_auth {
            ClientCertificates::NotAsked => PeerCertificates::NotAsked,
            ClientCertificates::Required => PeerCertificates::Required,
            ClientCertificates::Optional => PeerCertificates::Optional,
        },
        connecting: Connecting::Never,
        protocols: settings.client_encryption_options_accepted_protocols.0.clone(),
    })
}

/// The encryption of the HTTP port; `None` if it is not encrypted. Client certificates are checked as on CQL connections.
pub fn admin_encryption(settings: &Settings) -> Option<TlsOptions> {
    let is_reached = !settings.admin_address.to_canonical().is_loopback();
    let is_wanted = settings
        .admin_encryption_options_enabled
        .unwrap_or(is_reached && settings.client_encryption_options_enabled);
    let has_certificate_logins = CertificateLogins::of(settings).is_some();
    let (keystore, keystore_password) = match &settings.admin_encryption_options_keystore {
        Some(own) => (own, &settings.admin_encryption_options_keystore_password),
        None => (
            &settings.client_encryption_options_keystore,
            &settings.client_encryption_options_keystore_password,
        ),
    };
    let (keystore, keystore_password) = (keystore.clone(), keystore_password.clone());
    is_wanted.then(|| TlsOptions {
        block: "admin_encryption_options",
        is_optional: false,
        keystore,
        keystore_password,
        truststore: settings.client_encryption_options_truststore.clone(),
        truststore_password: settings.client_encryption_options_truststore_password.clone(),
        // Clients without a certificate log in with a password, or show the token.
        peer_certificates: match has_certificate_logins {
            true => PeerCertificates::Optional,
            false => PeerCertificates::NotAsked,
        },
        connecting: Connecting::Never,
        protocols: settings.client_encryption_options_accepted_protocols.0.clone(),
    })
}

/// The encryption of connections between nodes; `None` if they are not encrypted. A single node has no such connections.
pub fn server_encryption(settings: &Settings) -> Option<TlsOptions> {
    let is_wanted = settings.server_encryption_options_internode_encryption != InternodeEncryption::None;
    is_wanted.then(|| TlsOptions {
        block: "server_encryption_options",
        is_optional: false,
        keystore: settings.server_encryption_options_keystore.clone(),
        keystore_password: settings.server_encryption_options_keystore_password.clone(),
        truststore: settings.server_encryption_options_truststore.clone(),
        truststore_password: settings.server_encryption_options_truststore_password.clone(),
        peer_certificates: match settings.server_encryption_options_require_client_auth {
            true => PeerCertificates::Required,
            false => PeerCertificates::NotAsked,
        },
        connecting: match settings.server_encryption_options_require_endpoint_verification {
            true => Connecting::Named,
            false => Connecting::Trusted,
        },
        protocols: settings.server_encryption_options_accepted_protocols.0.clone(),
    })
}
