//! [`TlsOptions`]: what the operator asks for, and the configurations of rustls for it.
//!
//! Files are PEM or PKCS#12 (`keystore`). The log warns of a certificate that soon expires.

use std::path::PathBuf;
use std::sync::Arc;

use ilion_auth::Secret;
use ilion_env::Env;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};

use crate::any_name::AnyName;
use crate::keystore::{KeyAndChain, of_file, read_issuers, read_key};
use crate::validity::warning_of_end;

/// The encryption of one kind of connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// The block of settings that asks for it, for error messages.
    pub block: &'static str,
    /// Peers may also connect without encryption, on the same port.
    pub is_optional: bool,
    /// The certificate of the node with those of its issuers, and its private key.
    pub keystore: PathBuf,
    /// Password of a PKCS#12 keystore.
    pub keystore_password: Option<Secret>,
    /// Certificates of the issuers of peers' certificates.
    pub truststore: PathBuf,
    /// Password of a PKCS#12 truststore.
    pub truststore_password: Option<Secret>,
    /// Whether connecting peers show certificates.
    pub peer_certificates: PeerCertificates,
    /// Whether the node itself connects to others with this encryption.
    pub connecting: Connecting,
    /// `TLSv1.2`, `TLSv1.3`; empty: both.
    pub protocols: Vec<String>,
}

/// Whether connecting peers show certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerCertificates {
    /// They are not asked for one.
    NotAsked,
    /// Like `Required`, but peers without any are accepted.
    Optional,
    /// A peer is refused without a certificate that the truststore vouches for.
    Required,
}

/// Whether the node connects to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connecting {
    /// It only accepts connections.
    Never,
    /// It connects to others, if the truststore vouches for their certificates.
    Trusted,
    /// It connects to others, if the truststore vouches for their certificates, and these name the address.
    Named,
}

/// Why encryption cannot be set up; the operator must act.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{block}: {problem}")]
pub struct TlsError {
    block: &'static str,
    problem: String,
}

impl TlsOptions {
    /// The files whose content is used.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let needs_truststore =
            self.peer_certificates != PeerCertificates::NotAsked || self.connecting != Connecting::Never;
        std::iter::once(&self.keystore).chain(needs_truststore.then_some(&self.truststore))
    }

    /// Reads the files; warns of a certificate that soon expires.
    pub(crate) fn load(&self, env: &dyn Env) -> Result<Ready, TlsError> {
        let ready = self.build(env).map_err(|problem| TlsError {
            block: self.block,
            problem,
        })?;
        if let Some(warning) = ready.warning(self, env) {
            tracing::warn!("{warning}");
        }
        Ok(ready)
    }

    fn build(&self, env: &dyn Env) -> Result<Ready, String> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let client = match self.connecting {
            Connecting::Never => None,
            _ => Some(Arc::new(self.connecting_config(env, &provider)?)),
        };
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&self.versions()?)
            .map_err(|error| error.to_string())?;
        let builder = match self.peer_certificates {
            PeerCertificates::NotAsked => builder.with_no_client_auth(),
            asked => {
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(self.issuers(env)?.into(), provider);
                let verifier = match asked {
                    PeerCertificates::Optional => verifier.allow_unauthenticated(),
                    _ => verifier,
                };
                let verifier = verifier.build();
                builder.with_client_cert_verifier(verifier.map_err(|error| of_file(&self.truststore, error))?)
            }
        };
        let KeyAndChain { key, chain } = self.key(env)?;
        let certificate = chain.first().cloned();
        let config = builder.with_single_cert(chain, key);
        Ok(Ready {
            server: Arc::new(config.map_err(|error| of_file(&self.keystore, error))?),
            client,
            certificate,
        })
    }

    fn connecting_config(
        &self,
        env: &dyn Env,
        provider: &Arc<CryptoProvider>,
    ) -> Result<ClientConfig, String> {
        let issuers: Arc<RootCertStore> = self.issuers(env)?.into();
        let verifier: Arc<dyn ServerCertVerifier> = match self.connecting {
            Connecting::Named => WebPkiServerVerifier::builder_with_provider(issuers, provider.clone())
                .build()
                .map_err(|error| of_file(&self.truststore, error))?,
            _ => Arc::new(AnyName {
                issuers,
                provider: provider.clone(),
            }),
        };
        let KeyAndChain { key, chain } = self.key(env)?;
        ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&self.versions()?)
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_auth_cert(chain, key)
            .map_err(|error| of_file(&self.keystore, error))
    }

    fn key(&self, env: &dyn Env) -> Result<KeyAndChain, String> {
        let password = self.keystore_password.as_ref().map(Secret::text);
        read_key(env, &self.keystore, password)
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
pub(crate) struct Ready {
    pub server: Arc<ServerConfig>,
    /// For connections to others; `None` if there are none.
    pub client: Option<Arc<ClientConfig>>,
    /// The certificate of the node.
    certificate: Option<CertificateDer<'static>>,
}

impl Ready {
    /// A warning if the certificate has expired or soon will.
    pub(crate) fn warning(&self, options: &TlsOptions, env: &dyn Env) -> Option<String> {
        let warning = warning_of_end(self.certificate.as_ref()?, env.now_secs())?;
        let (block, keystore) = (options.block, options.keystore.display());
        Some(format!("{block}: {keystore}: {warning}"))
    }
}
