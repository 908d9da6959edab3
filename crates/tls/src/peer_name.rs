//! Whether the certificate of a peer names the address that it connects from.

use std::net::IpAddr;

use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;

/// True if the certificate is for this address. The chain of the certificate must have been checked before.
pub fn names_address(certificate: &CertificateDer<'_>, address: IpAddr) -> bool {
    let name = ServerName::IpAddress(address.to_canonical().into());
    ParsedCertificate::try_from(certificate).is_ok_and(|parsed| verify_server_name(&parsed, &name).is_ok())
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::pem::PemObject;

    use super::*;

    #[test]
    fn a_certificate_names_the_addresses_in_it() {
        let node = CertificateDer::from_pem_slice(include_bytes!("../testdata/node.pem")).unwrap();
        let other = CertificateDer::from_pem_slice(include_bytes!("../testdata/other-host.pem")).unwrap();
        let here = IpAddr::from([127, 0, 0, 1]);
        assert!(names_address(&node, here));
        assert!(names_address(&node, "::ffff:127.0.0.1".parse().unwrap()));
        assert!(!names_address(&node, IpAddr::from([127, 0, 0, 2])));
        assert!(!names_address(&other, here));
        assert!(!names_address(&CertificateDer::from(vec![0x30, 0x00]), here));
    }
}
