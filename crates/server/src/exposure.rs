//! Whether other machines may reach a node without logins.

use ilion_settings::{Authenticator, Settings};

/// Whether the operator accepts that everybody who reaches the port may do everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// Not accepted.
    Refused,
    /// Accepted (`--insecure`).
    Accepted,
}

/// Refuses settings with an address that other machines can reach, unless clients must log in. Pure.
///
/// # Errors
/// What the operator can do, as a sentence.
pub fn check_exposure(settings: &Settings, exposure: Exposure) -> Result<(), String> {
    let is_closed = settings.rpc_address.to_canonical().is_loopback()
        || settings.authenticator != Authenticator::AllowAll
        || exposure == Exposure::Accepted;
    if is_closed {
        return Ok(());
    }
    Err(format!(
        "rpc_address {} is reached by other machines, and nobody needs a password there: set authenticator: \
         PasswordAuthenticator and authorizer: CassandraAuthorizer (docs/security.md says how), leave rpc_address at \
         127.0.0.1, or start with --insecure",
        settings.rpc_address
    ))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    #[test]
    fn other_machines_need_a_password() {
        let at = |address: &str, authenticator| Settings {
            rpc_address: address.parse().unwrap(),
            authenticator,
            ..Settings::default()
        };
        let open = Authenticator::AllowAll;
        for address in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(
                check_exposure(&at(address, open), Exposure::Refused),
                Ok(()),
                "{address}"
            );
        }
        for address in ["0.0.0.0", "::", "10.0.0.1", "2001:db8::1"] {
            let refused = check_exposure(&at(address, open), Exposure::Refused).unwrap_err();
            assert!(
                refused.contains("--insecure") && refused.contains(address),
                "{refused}"
            );
            assert_eq!(check_exposure(&at(address, open), Exposure::Accepted), Ok(()));
            assert_eq!(
                check_exposure(&at(address, Authenticator::Password), Exposure::Refused),
                Ok(())
            );
        }
        let default: IpAddr = Settings::default().rpc_address;
        assert!(default.is_loopback());
    }
}
