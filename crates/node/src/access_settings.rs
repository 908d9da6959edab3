//! Checks settings of logins that contradict each other. Pure.

use ilion_auth::password;
use ilion_settings::{
    Authenticator, Authorizer, CidrAuthorizer, ClientCertificates, NetworkAuthorizer, Settings,
};

use crate::open_error::OpenError;

/// Refuses settings that contradict each other.
pub(crate) fn check_access(settings: &Settings) -> Result<(), OpenError> {
    let refuse = |problem: &str| Err(OpenError::Settings(problem.to_owned()));
    let requires_login = settings.authenticator != Authenticator::AllowAll;
    let of_roles = [
        (
            settings.authorizer == Authorizer::Cassandra,
            "authorizer: CassandraAuthorizer",
        ),
        (
            settings.network_authorizer == NetworkAuthorizer::Cassandra,
            "network_authorizer: CassandraNetworkAuthorizer",
        ),
        (
            settings.cidr_authorizer == CidrAuthorizer::Cassandra,
            "cidr_authorizer: CassandraCIDRAuthorizer",
        ),
    ];
    if let Some((_, setting)) = of_roles.iter().find(|(is_set, _)| *is_set && !requires_login) {
        return refuse(&format!(
            "{setting} needs authenticator: PasswordAuthenticator, since clients of AllowAllAuthenticator have no roles"
        ));
    }
    let is_encrypted = settings.client_encryption_options_enabled;
    // Compat: the message of `DatabaseDescriptor`.
    if settings.native_transport_port_ssl.is_some() && !is_encrypted {
        return refuse(
            "Encryption must be enabled in client_encryption_options for native_transport_port_ssl",
        );
    }
    let certificates = settings.client_encryption_options_require_client_auth;
    // Compat: `validateConfiguration` of both authenticators.
    match settings.authenticator {
        Authenticator::MutualTls if !is_encrypted || certificates != ClientCertificates::Required => {
            return refuse(
                "authenticator: MutualTlsAuthenticator requires client_encryption_options.enabled to be true & \
                 client_encryption_options.require_client_auth to be true",
            );
        }
        Authenticator::MutualTlsWithPasswordFallback
            if !is_encrypted || certificates == ClientCertificates::NotAsked =>
        {
            return refuse(
                "authenticator: MutualTlsWithPasswordFallbackAuthenticator requires client_encryption_options.enabled \
                 to be true & client_encryption_options.require_client_auth to be optional/true",
            );
        }
        _ => {}
    }
    let cost = u32::from(settings.auth_bcrypt_work_factor);
    if !password::COST_RANGE.contains(&cost) {
        return refuse("auth_bcrypt_work_factor: expected a number from 4 to 31");
    }
    Ok(())
}
