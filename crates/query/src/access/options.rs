//! The settings of logins and permissions.

use std::time::Duration;

/// Who may connect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authenticator {
    /// Everybody, without a name.
    #[default]
    AllowAll,
    /// Roles with their passwords.
    Password,
    /// Clients with a certificate. The identity in it stands for a role.
    MutualTls,
    /// Like `MutualTls`, but clients without a certificate log in with a password.
    MutualTlsWithPasswordFallback,
}

/// Who may do what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authorizer {
    /// Everybody has all permissions.
    #[default]
    AllowAll,
    /// A role has the permissions that were granted to it.
    Cassandra,
}

/// Which data centers roles may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkAuthorizer {
    /// All data centers.
    #[default]
    AllowAll,
    /// The data centers of `ACCESS TO DATACENTERS`.
    Cassandra,
}

/// Which addresses roles may be used from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CidrAuthorizer {
    /// All addresses.
    #[default]
    AllowAll,
    /// All addresses; a login from outside of the groups of `ACCESS FROM CIDRS` is logged.
    Monitor,
    /// The groups of addresses of `ACCESS FROM CIDRS`.
    Enforce,
}

/// The settings of logins and permissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessOptions {
    /// Who may connect.
    pub authenticator: Authenticator,
    /// Who may do what.
    pub authorizer: Authorizer,
    /// Which data centers roles may use.
    pub network_authorizer: NetworkAuthorizer,
    /// Which addresses roles may be used from.
    pub cidr_authorizer: CidrAuthorizer,
    /// True if `cidr_authorizer` applies to superusers, too.
    pub checks_addresses_of_superusers: bool,
    /// How long cached rows about a role are used.
    pub roles_validity: Duration,
    /// How long permissions that were read are used.
    pub permissions_validity: Duration,
    /// How long a hash of a password that was read is used.
    pub credentials_validity: Duration,
    /// Cost of new hashes: 2^cost rounds.
    pub bcrypt_cost: u32,
}

impl Default for AccessOptions {
    fn default() -> Self {
        let validity = Duration::from_secs(2);
        Self {
            authenticator: Authenticator::default(),
            authorizer: Authorizer::default(),
            network_authorizer: NetworkAuthorizer::default(),
            cidr_authorizer: CidrAuthorizer::default(),
            checks_addresses_of_superusers: false,
            roles_validity: validity,
            permissions_validity: validity,
            credentials_validity: validity,
            bcrypt_cost: 10,
        }
    }
}

impl AccessOptions {
    /// True if clients must log in.
    pub fn requires_login(&self) -> bool {
        self.authenticator != Authenticator::AllowAll
    }

    /// True if permissions are checked.
    pub fn checks_permissions(&self) -> bool {
        self.authorizer == Authorizer::Cassandra
    }

    /// How long cached rights may be used: the shorter of the validities of roles and permissions, since rights depend on both.
    pub(super) fn rights_validity_nanos(&self) -> u64 {
        nanos(self.roles_validity.min(self.permissions_validity))
    }

    pub(super) fn credentials_validity_nanos(&self) -> u64 {
        nanos(self.credentials_validity)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
