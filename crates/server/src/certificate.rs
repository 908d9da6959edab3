//! The identity in the certificate of a client, which TLS has checked before.

use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use ilion_settings::{Authenticator, CertificateValidator, Settings};

/// Logins by certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateLogins {
    /// Which part of the certificate is the identity.
    pub validator: CertificateValidator,
    /// Whether clients without a certificate may log in with a password.
    pub falls_back: bool,
}

impl CertificateLogins {
    /// The options in the settings; `None` if certificates are not used for logins.
    pub fn of(settings: &Settings) -> Option<Self> {
        let falls_back = match settings.authenticator {
            Authenticator::AllowAll | Authenticator::Password => return None,
            Authenticator::MutualTls => false,
            Authenticator::MutualTlsWithPasswordFallback => true,
        };
        Some(Self {
            validator: settings.authenticator_parameters_validator_class_name,
            falls_back,
        })
    }

    /// The identity in a certificate.
    ///
    /// Compat: messages of `MutualTlsAuthenticator` and `SpiffeCertificateValidator`.
    ///
    /// # Errors
    /// The certificate has no identity; the text is for the client.
    pub(crate) fn identity(self, der: &[u8]) -> Result<String, &'static str> {
        let certificate = Certificate::from_der(der).map_err(|_| "Invalid or not supported certificate")?;
        let identity = match self.validator {
            CertificateValidator::Spiffe => {
                spiffe(&certificate).ok_or("Unable to extract Spiffe from the certificate")?
            }
            CertificateValidator::CommonName => common_name(&certificate).unwrap_or_default(),
        };
        match identity.is_empty() {
            true => Err("Unable to extract client identity from certificate for authentication"),
            false => Ok(identity),
        }
    }
}

fn spiffe(certificate: &Certificate) -> Option<String> {
    let names = certificate.tbs_certificate().get_extension::<SubjectAltName>();
    let (_, SubjectAltName(names)) = names.ok()??;
    names.iter().find_map(|name| match name {
        GeneralName::UniformResourceIdentifier(uri) if uri.as_str().starts_with("spiffe://") => {
            Some(uri.as_str().to_owned())
        }
        _ => None,
    })
}

fn common_name(certificate: &Certificate) -> Option<String> {
    let name = certificate.tbs_certificate().subject().common_name().ok()??;
    Some(name.value().into_owned())
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    use super::*;

    fn identity(validator: CertificateValidator, pem: &[u8]) -> Result<String, &'static str> {
        let certificate = CertificateDer::from_pem_slice(pem).unwrap();
        let logins = CertificateLogins {
            validator,
            falls_back: false,
        };
        logins.identity(&certificate)
    }

    #[test]
    fn the_identity_is_a_spiffe_uri_or_the_common_name() {
        let alice = include_bytes!("../../tls/testdata/alice.pem");
        let robot = include_bytes!("../../tls/testdata/robot.pem");
        let node = include_bytes!("../../tls/testdata/node.pem");
        let (spiffe, common_name) = (CertificateValidator::Spiffe, CertificateValidator::CommonName);
        assert_eq!(identity(spiffe, alice).unwrap(), "spiffe://ilion.example/alice");
        assert_eq!(identity(common_name, alice).unwrap(), "alice");
        assert_eq!(identity(common_name, robot).unwrap(), "robot");
        for pem in [&robot[..], &node[..]] {
            assert!(identity(spiffe, pem).unwrap_err().contains("Spiffe"));
        }
    }

    #[test]
    fn damaged_certificates_have_no_other_identity() {
        let alice = CertificateDer::from_pem_slice(include_bytes!("../../tls/testdata/alice.pem")).unwrap();
        let logins = CertificateLogins {
            validator: CertificateValidator::Spiffe,
            falls_back: false,
        };
        for len in 0..alice.len() {
            assert!(logins.identity(&alice[..len]).is_err());
        }
        for index in 0..alice.len() {
            for bit in 0..8 {
                let mut bytes = alice.to_vec();
                bytes[index] ^= 1 << bit;
                // It must not panic; TLS refuses the certificate, since its signature is wrong.
                let _ = logins.identity(&bytes);
            }
        }
    }
}
