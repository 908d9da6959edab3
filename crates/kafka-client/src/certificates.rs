//! The issuers of certificates that a connection with TLS trusts.

use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use crate::Error;

/// The configuration of encrypted connections. `issuers` is PEM; `None` trusts the issuers that the system trusts.
pub(crate) fn client_config(issuers: Option<&[u8]>) -> Result<Arc<ClientConfig>, Error> {
    let problem = |problem: String| {
        Error::Refused(format!(
            "certificates of who issues those of the brokers: {problem}"
        ))
    };
    let mut roots = RootCertStore::empty();
    match issuers {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(|error| problem(error.to_string()))?;
                roots
                    .add(certificate)
                    .map_err(|error| problem(error.to_string()))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err(problem("there is none".to_owned()));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| problem(error.to_string()))?;
    Ok(Arc::new(
        config.with_root_certificates(roots).with_no_client_auth(),
    ))
}
