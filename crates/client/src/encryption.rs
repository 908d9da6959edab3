//! TLS of a client's connection.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use ilion_env::{Env, RealEnv};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

const FILE_BYTES_MAX: u64 = 4 << 20;

/// A blocking socket, encrypted or not.
pub trait Socket: Read + Write + Send {}

impl<S: Read + Write + Send> Socket for S {}

/// The issuers whose certificates a client trusts.
#[derive(Clone, Debug)]
pub struct Trust(Arc<ClientConfig>);

impl Trust {
    /// Reads a PEM file with certificates of issuers.
    ///
    /// # Errors
    /// The file cannot be read, or has no certificate.
    pub fn read(path: &str) -> anyhow::Result<Self> {
        let pem = RealEnv::new().read_all(Path::new(path), FILE_BYTES_MAX)?;
        let mut issuers = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            issuers.add(certificate?)?;
        }
        anyhow::ensure!(!issuers.is_empty(), "it has no certificate");
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(issuers)
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }

    /// Encrypts a connection to this host.
    ///
    /// # Errors
    /// `host` is neither a name nor an address.
    pub fn encrypt(&self, host: &str, socket: TcpStream) -> anyhow::Result<Box<dyn Socket>> {
        let name = ServerName::try_from(host.to_owned()).with_context(|| host.to_owned())?;
        let connection = ClientConnection::new(self.0.clone(), name)?;
        Ok(Box::new(StreamOwned::new(connection, socket)))
    }
}
