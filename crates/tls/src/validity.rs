//! The end of the validity of certificates.

use x509_cert::Certificate;
use x509_cert::der::Decode;

/// The log warns if the certificate of the node expires within this time.
const WARN_SECS: i64 = 30 * DAY_SECS;
const DAY_SECS: i64 = 24 * 60 * 60;

/// The warning about a certificate that has expired or soon will. Pure.
pub(crate) fn warning_of_end(der: &[u8], now_secs: i64) -> Option<String> {
    let certificate = Certificate::from_der(der).ok()?;
    let end = certificate.tbs_certificate().validity().not_after;
    let left_secs = i64::try_from(end.to_unix_duration().as_secs()).ok()? - now_secs;
    match left_secs {
        ..0 => Some(format!("the certificate ended at {end}: clients refuse it")),
        0..=WARN_SECS => {
            let days = left_secs / DAY_SECS;
            Some(format!("the certificate ends at {end}, in {days} days"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    use super::*;

    #[test]
    fn a_certificate_that_ends_is_warned_of() {
        let expired = CertificateDer::from_pem_slice(include_bytes!("../testdata/expired-node.pem")).unwrap();
        let certificate = Certificate::from_der(&expired).unwrap();
        let end = certificate
            .tbs_certificate()
            .validity()
            .not_after
            .to_unix_duration();
        let end = i64::try_from(end.as_secs()).unwrap();
        let warning = |left_secs: i64| warning_of_end(&expired, end - left_secs);
        assert!(warning(-1).unwrap().contains("ended at 2021-"));
        assert!(warning(0).unwrap().ends_with("in 0 days"));
        assert!(warning(29 * DAY_SECS + 1).unwrap().ends_with("in 29 days"));
        assert_eq!(warning(30 * DAY_SECS + 1), None);
    }
}
