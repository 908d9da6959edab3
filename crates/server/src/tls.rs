//! Encryption of client connections: the options, and the certificate and key that they name.
//!
//! Files are PEM. They are looked at again when a client connects, at most every ten seconds: a new certificate needs no restart. If the new
//! files cannot be used, the old ones stay in use, and the log says so.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_env::Env;
use parking_lot::Mutex;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};

use crate::settings::{ClientCertificates, Settings};

const FILE_BYTES_MAX: u64 = 4 << 20;
/// Time between two looks at the files.
const LOOK_NANOS: u64 = 10_000_000_000;

/// Encryption of client connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// Clients may also connect without encryption, on the same port.
    pub is_optional: bool,
    /// The certificate of the node with those of its issuers, and its private key.
    pub keystore: PathBuf,
    /// Certificates of those who issue certificates to clients.
    pub truststore: PathBuf,
    /// Whether clients show certificates.
    pub client_certificates: ClientCertificates,
    /// `TLSv1.2`, `TLSv1.3`; empty: both.
    pub protocols: Vec<String>,
}

/// Why encryption cannot be set up; the operator must act.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("client_encryption_options: {0}")]
pub struct TlsError(String);

impl TlsOptions {
    /// The options that the settings ask for; `None` without encryption.
    pub fn of(settings: &Settings) -> Option<Self> {
        settings.client_encryption_options_enabled.then(|| Self {
            is_optional: settings.client_encryption_options_optional,
            keystore: settings.client_encryption_options_keystore.clone(),
            truststore: settings.client_encryption_options_truststore.clone(),
            client_certificates: settings.client_encryption_options_require_client_auth,
            protocols: settings.client_encryption_options_accepted_protocols.0.clone(),
        })
    }

    fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let needs_truststore = self.client_certificates != ClientCertificates::NotAsked;
        std::iter::once(&self.keystore).chain(needs_truststore.then_some(&self.truststore))
    }

    /// Reads the files.
    fn load(&self, env: &dyn Env) -> Result<ServerConfig, TlsError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&self.versions()?)
            .map_err(|error| TlsError(error.to_string()))?;
        let builder = match self.client_certificates {
            ClientCertificates::NotAsked => builder.with_no_client_auth(),
            asked => {
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(self.issuers(env)?.into(), provider);
                let verifier = match asked {
                    ClientCertificates::Optional => verifier.allow_unauthenticated(),
                    _ => verifier,
                };
                let verifier = verifier.build();
                builder.with_client_cert_verifier(verifier.map_err(|error| of_file(&self.truststore, error))?)
            }
        };
        let pem = read(env, &self.keystore)?;
        let key = PrivateKeyDer::from_pem_slice(&pem)
            .map_err(|error| of_file(&self.keystore, format!("no private key: {error}")))?;
        builder
            .with_single_cert(certificates(&self.keystore, &pem)?, key)
            .map_err(|error| of_file(&self.keystore, error))
    }

    fn versions(&self) -> Result<Vec<&'static SupportedProtocolVersion>, TlsError> {
        if self.protocols.is_empty() {
            return Ok(vec![&TLS13, &TLS12]);
        }
        let version = |name: &String| match name.as_str() {
            "TLSv1.3" => Ok(&TLS13),
            "TLSv1.2" => Ok(&TLS12),
            _ => Err(TlsError(format!(
                "accepted_protocols: {name} is none of TLSv1.2, TLSv1.3"
            ))),
        };
        self.protocols.iter().map(version).collect()
    }

    fn issuers(&self, env: &dyn Env) -> Result<RootCertStore, TlsError> {
        let mut issuers = RootCertStore::empty();
        for certificate in certificates(&self.truststore, &read(env, &self.truststore)?)? {
            issuers
                .add(certificate)
                .map_err(|error| of_file(&self.truststore, error))?;
        }
        Ok(issuers)
    }
}

fn of_file(path: &Path, problem: impl std::fmt::Display) -> TlsError {
    TlsError(format!("{}: {problem}", path.display()))
}

/// Reads a PEM file. A keystore of Java is refused with the commands that convert it.
fn read(env: &dyn Env, path: &Path) -> Result<Vec<u8>, TlsError> {
    let bytes = env
        .read_all(path, FILE_BYTES_MAX)
        .map_err(|error| of_file(path, error.source))?;
    let convert = "openssl pkcs12 -in node.p12 -out node.pem -nodes";
    match bytes.as_slice() {
        [0xFE, 0xED, 0xFE, 0xED, ..] => Err(of_file(
            path,
            format!(
                "it is a Java keystore; convert it to PEM: keytool -importkeystore -srckeystore {} -destkeystore node.p12 \
                 -deststoretype pkcs12 && {convert}",
                path.display()
            ),
        )),
        // The start of a DER sequence.
        [0x30, 0x80..=0xFF, ..] => Err(of_file(
            path,
            format!(
                "it is a PKCS#12 keystore; convert it to PEM: {}",
                convert.replace("node.p12", &path.display().to_string())
            ),
        )),
        _ => Ok(bytes),
    }
}

fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if found.is_empty() => Err(of_file(path, "no certificate")),
        found => found.map_err(|error| of_file(path, error)),
    }
}

/// Gives each connection the current certificate and key.
pub(crate) struct Encryption {
    options: TlsOptions,
    env: Arc<dyn Env>,
    current: Mutex<Current>,
}

struct Current {
    config: Arc<ServerConfig>,
    /// When each file was written.
    written_secs: Vec<Option<i64>>,
    looked_nanos: u64,
}

impl Encryption {
    /// Reads the files.
    ///
    /// # Errors
    /// They cannot be read or used.
    pub fn load(env: &Arc<dyn Env>, options: TlsOptions) -> Result<Self, TlsError> {
        let current = Current {
            written_secs: written(&**env, &options),
            config: Arc::new(options.load(&**env)?),
            looked_nanos: env.monotonic_nanos(),
        };
        Ok(Self {
            options,
            env: env.clone(),
            current: Mutex::new(current),
        })
    }

    /// Clients may also connect without encryption.
    pub fn is_optional(&self) -> bool {
        self.options.is_optional
    }

    /// For the next connection.
    pub fn config(&self) -> Arc<ServerConfig> {
        let mut current = self.current.lock();
        let now = self.env.monotonic_nanos();
        if now.saturating_sub(current.looked_nanos) >= LOOK_NANOS {
            current.looked_nanos = now;
            self.look_again(&mut current);
        }
        current.config.clone()
    }

    /// Reads the files now; the old ones stay in use if the new ones cannot be used.
    ///
    /// # Errors
    /// The files cannot be read or used.
    pub fn reload(&self) -> Result<(), TlsError> {
        let mut current = self.current.lock();
        let written_secs = written(&*self.env, &self.options);
        current.config = Arc::new(self.options.load(&*self.env)?);
        current.written_secs = written_secs;
        tracing::info!(keystore = %self.options.keystore.display(), "certificates were read again");
        Ok(())
    }

    fn look_again(&self, current: &mut Current) {
        let written_secs = written(&*self.env, &self.options);
        if written_secs == current.written_secs {
            return;
        }
        match self.options.load(&*self.env) {
            Ok(config) => {
                current.config = Arc::new(config);
                current.written_secs = written_secs;
                tracing::info!(keystore = %self.options.keystore.display(), "certificates were read again");
            }
            Err(error) => {
                tracing::error!(%error, "changed certificates cannot be used: the old ones stay in use")
            }
        }
    }
}

fn written(env: &dyn Env, options: &TlsOptions) -> Vec<Option<i64>> {
    options.files().map(|file| env.modified_secs(file).ok()).collect()
}
