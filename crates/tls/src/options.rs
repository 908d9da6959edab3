//! Encryption of client connections and of the HTTP port: the options, and the certificate and key that they name.
//!
//! Files are PEM or PKCS#12 ([`crate::keystore`]). When a client connects, and at most every ten seconds, their times are checked, so a
//! new certificate needs no restart. If new files cannot be used, the old certificates stay in use, and the log reports it. The log also
//! warns of a certificate that soon expires.

use std::path::PathBuf;
use std::sync::Arc;

use ilion_env::Env;
use parking_lot::Mutex;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};

use crate::certificate::{CertificateLogins, warning_of_end};
use crate::keystore::{KeyAndChain, of_file, read_issuers, read_key};
use crate::settings::{ClientCertificates, Secret, Settings};

/// Least time between two checks of the files.
const LOOK_NANOS: u64 = 10_000_000_000;

/// Encryption of client connections, or of the HTTP port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// The block of settings that asks for it, for error messages.
    pub block: &'static str,
    /// Clients may also connect without encryption, on the same port.
    pub is_optional: bool,
    /// The certificate of the node with those of its issuers, and its private key.
    pub keystore: PathBuf,
    /// Password of a PKCS#12 keystore.
    pub keystore_password: Option<Secret>,
    /// Certificates of the issuers of clients' certificates.
    pub truststore: PathBuf,
    /// Password of a PKCS#12 truststore.
    pub truststore_password: Option<Secret>,
    /// Whether clients show certificates.
    pub client_certificates: ClientCertificates,
    /// `TLSv1.2`, `TLSv1.3`; empty: both.
    pub protocols: Vec<String>,
}

/// Why encryption cannot be set up; the operator must act.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{block}: {problem}")]
pub struct TlsError {
    block: &'static str,
    problem: String,
}

impl TlsOptions {
    /// The options of client connections in the settings; `None` without encryption.
    pub fn of(settings: &Settings) -> Option<Self> {
        settings.client_encryption_options_enabled.then(|| Self {
            block: "client_encryption_options",
            is_optional: settings.client_encryption_options_optional,
            keystore: settings.client_encryption_options_keystore.clone(),
            keystore_password: settings.client_encryption_options_keystore_password.clone(),
            truststore: settings.client_encryption_options_truststore.clone(),
            truststore_password: settings.client_encryption_options_truststore_password.clone(),
            client_certificates: settings.client_encryption_options_require_client_auth,
            protocols: settings.client_encryption_options_accepted_protocols.0.clone(),
        })
    }

    fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let needs_truststore = self.client_certificates != ClientCertificates::NotAsked;
        std::iter::once(&self.keystore).chain(needs_truststore.then_some(&self.truststore))
    }

    /// The options of the HTTP port in the settings; `None` without encryption. Client certificates are checked as on CQL connections.
    pub fn of_administration(settings: &Settings) -> Option<Self> {
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
        is_wanted.then(|| Self {
            block: "admin_encryption_options",
            is_optional: false,
            keystore,
            keystore_password,
            truststore: settings.client_encryption_options_truststore.clone(),
            truststore_password: settings.client_encryption_options_truststore_password.clone(),
            // Clients without a certificate log in with a password, or show the token.
            client_certificates: match has_certificate_logins {
                true => ClientCertificates::Optional,
                false => ClientCertificates::NotAsked,
            },
            protocols: settings.client_encryption_options_accepted_protocols.0.clone(),
        })
    }

    /// Reads the files; warns of a certificate that soon expires.
    fn load(&self, env: &dyn Env) -> Result<Ready, TlsError> {
        let ready = self.read(env)?;
        if let Some(warning) = ready.warning(self, env) {
            tracing::warn!("{warning}");
        }
        Ok(ready)
    }

    fn read(&self, env: &dyn Env) -> Result<Ready, TlsError> {
        self.build(env).map_err(|problem| TlsError {
            block: self.block,
            problem,
        })
    }

    fn build(&self, env: &dyn Env) -> Result<Ready, String> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&self.versions()?)
            .map_err(|error| error.to_string())?;
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
        let password = self.keystore_password.as_ref().map(Secret::text);
        let KeyAndChain { key, chain } = read_key(env, &self.keystore, password)?;
        let certificate = chain.first().cloned();
        let config = builder.with_single_cert(chain, key);
        Ok(Ready {
            config: Arc::new(config.map_err(|error| of_file(&self.keystore, error))?),
            certificate,
        })
    }

    fn versions(&self) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
        if self.protocols.is_empty() {
            return Ok(vec![&TLS13, &TLS12]);
        }
        let version = |name: &String| match name.as_str() {
            "TLSv1.3" => Ok(&TLS13),
            "TLSv1.2" => Ok(&TLS12),
            _ => Err(format!("accepted_protocols: {name} is none of TLSv1.2, TLSv1.3")),
        };
        self.protocols.iter().map(version).collect()
    }

    fn issuers(&self, env: &dyn Env) -> Result<RootCertStore, String> {
        let mut issuers = RootCertStore::empty();
        let password = self.truststore_password.as_ref().map(Secret::text);
        for certificate in read_issuers(env, &self.truststore, password)? {
            issuers
                .add(certificate)
                .map_err(|error| of_file(&self.truststore, error))?;
        }
        Ok(issuers)
    }
}

/// The content of the files, ready for use.
struct Ready {
    config: Arc<ServerConfig>,
    /// The certificate of the node.
    certificate: Option<CertificateDer<'static>>,
}

impl Ready {
    fn warning(&self, options: &TlsOptions, env: &dyn Env) -> Option<String> {
        let warning = warning_of_end(self.certificate.as_ref()?, env.now_secs())?;
        let (block, keystore) = (options.block, options.keystore.display());
        Some(format!("{block}: {keystore}: {warning}"))
    }
}

/// Gives each connection the current certificate and key.
pub(crate) struct Encryption {
    options: TlsOptions,
    env: Arc<dyn Env>,
    current: Mutex<Current>,
}

struct Current {
    ready: Ready,
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
            ready: options.load(&**env)?,
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

    /// The configuration for the next connection.
    pub fn config(&self) -> Arc<ServerConfig> {
        let mut current = self.current.lock();
        let now = self.env.monotonic_nanos();
        if now.saturating_sub(current.looked_nanos) >= LOOK_NANOS {
            current.looked_nanos = now;
            self.look_again(&mut current);
        }
        current.ready.config.clone()
    }

    /// Reads the files now; the old ones stay in use if the new ones cannot be used.
    ///
    /// # Errors
    /// The files cannot be read or used.
    pub fn reload(&self) -> Result<(), TlsError> {
        let mut current = self.current.lock();
        let written_secs = written(&*self.env, &self.options);
        current.ready = self.options.load(&*self.env)?;
        current.written_secs = written_secs;
        tracing::info!(keystore = %self.options.keystore.display(), "certificates were read again");
        Ok(())
    }

    /// A warning if the certificate has expired or soon will.
    pub fn warning(&self) -> Option<String> {
        self.current.lock().ready.warning(&self.options, &*self.env)
    }

    fn look_again(&self, current: &mut Current) {
        let written_secs = written(&*self.env, &self.options);
        if written_secs == current.written_secs {
            return;
        }
        match self.options.load(&*self.env) {
            Ok(ready) => {
                current.ready = ready;
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
