//! Files with keys and certificates: PEM, or PKCS#12 as Java's keytool and OpenSSL write it. The first bytes of a file show which it is.
//!
//! Java's older format, JKS, is refused with the command that converts it.

use std::path::Path;

use ilion_env::Env;
use p12_keystore::{KeyStore, KeyStoreEntry, Pkcs12ImportPolicy};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

const FILE_BYTES_MAX: u64 = 4 << 20;

/// A private key, and the certificate for it with those of its issuers.
pub(crate) struct KeyAndChain {
    pub key: PrivateKeyDer<'static>,
    pub chain: Vec<CertificateDer<'static>>,
}

/// The content of a file.
enum Content {
    Pem(Vec<u8>),
    Pkcs12(KeyStore),
}

/// Reads a private key and its certificates.
///
/// # Errors
/// The file cannot be read, or has no key or no certificate; the text names the file.
pub(crate) fn read_key(env: &dyn Env, path: &Path, password: Option<&str>) -> Result<KeyAndChain, String> {
    match read(env, path, password)? {
        Content::Pem(pem) => Ok(KeyAndChain {
            key: PrivateKeyDer::from_pem_slice(&pem)
                .map_err(|error| of_file(path, format!("no private key: {error}")))?,
            chain: certificates(path, &pem)?,
        }),
        Content::Pkcs12(store) => {
            let (_, found) = store
                .private_key_chain()
                .ok_or_else(|| of_file(path, "no private key with a certificate"))?;
            let key = PrivatePkcs8KeyDer::from(found.key().as_der().to_vec());
            let chain = found.certs().iter();
            Ok(KeyAndChain {
                key: key.into(),
                chain: chain
                    .map(|certificate| certificate.as_der().to_vec().into())
                    .collect(),
            })
        }
    }
}

/// Reads the certificates of issuers. Compat: of a PKCS#12 file only those that are marked as trusted, as `keytool -importcert` does.
///
/// # Errors
/// The file cannot be read, or has no such certificate; the text names the file.
pub(crate) fn read_issuers(
    env: &dyn Env,
    path: &Path,
    password: Option<&str>,
) -> Result<Vec<CertificateDer<'static>>, String> {
    match read(env, path, password)? {
        Content::Pem(pem) => certificates(path, &pem),
        Content::Pkcs12(store) => {
            let trusted = store.entries().filter_map(|(_, entry)| match entry {
                KeyStoreEntry::Certificate(certificate) => Some(certificate.as_der().to_vec().into()),
                _ => None,
            });
            let trusted: Vec<_> = trusted.collect();
            match trusted.is_empty() {
                true => Err(of_file(
                    path,
                    "no certificate is marked as trusted: add them with keytool -importcert",
                )),
                false => Ok(trusted),
            }
        }
    }
}

/// An error message that names the file.
pub(crate) fn of_file(path: &Path, problem: impl std::fmt::Display) -> String {
    format!("{}: {problem}", path.display())
}

fn read(env: &dyn Env, path: &Path, password: Option<&str>) -> Result<Content, String> {
    let bytes = env
        .read_all(path, FILE_BYTES_MAX)
        .map_err(|error| of_file(path, error.source))?;
    match bytes.as_slice() {
        [0xFE, 0xED, 0xFE, 0xED, ..] => Err(of_file(
            path,
            format!(
                "it is a keystore in Java's old format; convert it to PKCS#12: keytool -importkeystore -srckeystore {} -destkeystore \
                 node.p12 -deststoretype pkcs12",
                path.display()
            ),
        )),
        // The start of a DER sequence.
        [0x30, 0x80..=0xFF, ..] => {
            let store =
                KeyStore::from_pkcs12(&bytes, password.unwrap_or_default(), Pkcs12ImportPolicy::Strict);
            store.map(Content::Pkcs12).map_err(|error| {
                let hint = match password {
                    None => "give its password (keystore_password or truststore_password)",
                    Some(_) => "is its password right?",
                };
                of_file(
                    path,
                    format!("the PKCS#12 keystore cannot be opened: {error}; {hint}"),
                )
            })
        }
        _ => Ok(Content::Pem(bytes)),
    }
}

fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if found.is_empty() => Err(of_file(path, "no certificate")),
        found => found.map_err(|error| of_file(path, error)),
    }
}

#[cfg(test)]
mod tests {
    use ilion_env::MemEnv;

    use super::*;

    const PATH: &str = "/store";
    const PEM: &[u8] = include_bytes!("../testdata/node.pem");
    const PASSWORD: Option<&str> = Some("secret");

    fn with(bytes: &[u8]) -> MemEnv {
        let env = MemEnv::new(1);
        env.write_atomically(Path::new(PATH), bytes).unwrap();
        env
    }

    fn key(bytes: &[u8], password: Option<&str>) -> Result<KeyAndChain, String> {
        read_key(&with(bytes), Path::new(PATH), password)
    }

    #[test]
    fn keystores_of_java_and_openssl_have_what_the_pem_file_has() {
        let pem = key(PEM, None).unwrap();
        for (bytes, name) in [
            (&include_bytes!("../testdata/java.p12")[..], "keytool"),
            (include_bytes!("../testdata/openssl.p12"), "openssl"),
            (include_bytes!("../testdata/legacy.p12"), "openssl -legacy"),
        ] {
            let found = key(bytes, PASSWORD).unwrap();
            assert_eq!(found.chain, pem.chain, "{name}");
            assert!(matches!(found.key, PrivateKeyDer::Pkcs8(_)), "{name}");
            for wrong in [None, Some(""), Some("Secret")] {
                let problem = key(bytes, wrong).err().unwrap();
                assert!(
                    problem.starts_with("/store: the PKCS#12 keystore cannot be opened"),
                    "{problem}"
                );
                assert!(problem.contains("password"), "{problem}");
            }
        }
    }

    #[test]
    fn issuers_are_those_that_a_truststore_marks() {
        let issuers = |bytes: &[u8]| read_issuers(&with(bytes), Path::new(PATH), PASSWORD);
        let pem = issuers(include_bytes!("../testdata/ca.pem")).unwrap();
        assert_eq!(issuers(include_bytes!("../testdata/trust.p12")).unwrap(), pem);
        let none = issuers(include_bytes!("../testdata/java.p12")).unwrap_err();
        assert!(none.contains("keytool -importcert"), "{none}");
    }

    #[test]
    fn damaged_keystores_are_refused_and_do_no_harm() {
        let whole = include_bytes!("../testdata/legacy.p12");
        for len in (2..whole.len()).step_by(97) {
            assert!(key(&whole[..len], PASSWORD).is_err(), "{len}");
        }
        for index in (0..whole.len()).step_by(53) {
            let mut bytes = whole.to_vec();
            bytes[index] ^= 0x10;
            // Some bits are not covered by the digest, so it may be accepted.
            let _ = key(&bytes, PASSWORD);
        }
    }
}
