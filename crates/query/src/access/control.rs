//! Logins and checks: [`AccessControl`].

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use ilion_auth::{Cidr, Grants, Permission, Resource, RightPasswords, closure, groups_of, password};
use ilion_schema::TableSchema;
use parking_lot::Mutex;

use super::needs::Needs;
use super::rights::Rights;
use super::tables::{AuthTables, Changes};
use super::{AccessOptions, CidrAuthorizer, CidrCounts, Identity, Login, NetworkAuthorizer};
use crate::context::Sight;
use crate::{Error, QueryOptions, Store};

/// Most roles whose login or hash is kept in memory. Logins that sessions use are kept even above this number.
const KEPT_MAX: usize = 10_000;

/// A role, and the address of its clients if roles are bound to addresses.
type LoginKey = (String, Option<IpAddr>);

/// Checks statements against the rights of roles, and passwords against their hashes.
pub struct AccessControl {
    pub(super) tables: AuthTables,
    pub(super) options: AccessOptions,
    validity: Validity,
    data_center: String,
    logins: Mutex<HashMap<LoginKey, Arc<Login>>>,
    /// Hashes of passwords, with the time when each was read.
    hashes: Mutex<HashMap<String, (u64, String)>>,
    pub(super) right_passwords: Mutex<RightPasswords>,
    /// The number of changes of roles and grants. Rights that were read at an earlier number are read again.
    changes: AtomicU64,
    /// Held by a [`Turn`](super::turn::Turn).
    pub(super) turn: Mutex<()>,
    /// Compared with the password if the role does not exist, so that such a login takes as long as any other.
    dummy_hash: String,
    pub(super) cidr_counts: CidrCounts,
}

/// The result of looking for a password among those that were right before.
enum LookUp {
    WasRight,
    /// The hash of the role, if it has one.
    Hash(Option<String>),
}

/// How long rows of `system_auth` are cached.
struct Validity {
    rights_nanos: AtomicU64,
    credentials_nanos: AtomicU64,
}

impl Validity {
    fn of(options: &AccessOptions) -> Self {
        Self {
            rights_nanos: AtomicU64::new(options.rights_validity_nanos()),
            credentials_nanos: AtomicU64::new(options.credentials_validity_nanos()),
        }
    }
}

impl AccessControl {
    /// The access control over the tables of this store. If clients must log in, it hashes one password, which takes long.
    pub fn new(store: Arc<dyn Store>, query_options: &QueryOptions) -> Self {
        let options = query_options.access.clone();
        let dummy_hash = match options.requires_login() {
            true => password::hash("", options.bcrypt_cost, random_bytes(&*store)).unwrap_or_default(),
            false => String::new(),
        };
        let mut key = [0; 32];
        key[..16].copy_from_slice(&random_bytes(&*store));
        key[16..].copy_from_slice(&random_bytes(&*store));
        Self {
            tables: AuthTables::new(store, query_options.clone()),
            data_center: query_options.data_center.clone(),
            validity: Validity::of(&options),
            options,
            logins: Mutex::default(),
            hashes: Mutex::default(),
            right_passwords: Mutex::new(RightPasswords::new(key)),
            changes: AtomicU64::new(1),
            turn: Mutex::default(),
            dummy_hash,
            cidr_counts: CidrCounts::default(),
        }
    }

    pub(super) fn known_logins(&self) -> Vec<Arc<Login>> {
        self.logins.lock().values().cloned().collect()
    }

    /// Roles whose hash is kept.
    pub(super) fn kept_hashes(&self) -> Vec<String> {
        let validity = self.validity.credentials_nanos.load(Ordering::Relaxed);
        let now = self.now_nanos();
        let hashes = self.hashes.lock();
        let kept = hashes
            .iter()
            .filter(|(_, (read, _))| now.saturating_sub(*read) < validity);
        kept.map(|(role, _)| role.clone()).collect()
    }

    /// Changes how long rights and hashes of passwords are cached. Those that are cached now are read again.
    pub(crate) fn change_validity(&self, options: &AccessOptions) {
        let changed = Validity::of(options);
        let is_changed = [
            (&self.validity.rights_nanos, changed.rights_nanos),
            (&self.validity.credentials_nanos, changed.credentials_nanos),
        ]
        .map(|(kept, changed)| {
            let changed = changed.into_inner();
            kept.swap(changed, Ordering::Relaxed) != changed
        });
        if is_changed.contains(&true) {
            self.forget();
        }
    }

    /// True if clients must log in.
    pub fn requires_login(&self) -> bool {
        self.options.requires_login()
    }

    /// Logs in a client whose password was right before; `None` if the password must be checked. Quick.
    ///
    /// # Errors
    /// The role may not log in, or `system_auth` cannot be read.
    pub fn recognise(&self, role: &str, given: &str, from: IpAddr) -> Result<Option<Arc<Login>>, Error> {
        match self.look_up(role, given)? {
            LookUp::WasRight => self.permitted(role, from).map(Some),
            LookUp::Hash(_) => Ok(None),
        }
    }

    /// Logs in a client. Unless this password was right before, it takes as long as hashing a password, on purpose and even if the role
    /// does not exist.
    ///
    /// # Errors
    /// Role and password do not fit, the role may not log in, or `system_auth` cannot be read.
    pub fn log_in(&self, role: &str, given: &str, from: IpAddr) -> Result<Arc<Login>, Error> {
        let is_right = match self.look_up(role, given)? {
            LookUp::WasRight => true,
            LookUp::Hash(Some(hash)) => {
                let is_right = password::check(given, &hash);
                if is_right {
                    self.right_passwords.lock().add(role, &hash, given);
                }
                is_right
            }
            LookUp::Hash(None) => {
                let _ = password::check(given, &self.dummy_hash);
                false
            }
        };
        match is_right {
            true => self.permitted(role, from),
            false => Err(Error::BadCredentials(format!(
                "Provided username {role} and/or password are incorrect"
            ))),
        }
    }

    /// Looks for a password among those that were right before. If it is not among them, returns the hash of the role.
    fn look_up(&self, role: &str, given: &str) -> Result<LookUp, Error> {
        let was_right = |hash: &String| self.right_passwords.lock().contain(role, hash, given);
        if self.cached_hash(role).as_ref().is_some_and(was_right) {
            return Ok(LookUp::WasRight);
        }
        // Read even if it is cached: only existing roles are cached, and the time must not reveal which roles exist.
        let hash = self.read_hash(role).map_err(unable)?;
        Ok(match hash.as_ref().is_some_and(was_right) {
            true => LookUp::WasRight,
            false => LookUp::Hash(hash),
        })
    }

    /// Logs in a client whose certificate, which must be checked already, has this identity.
    ///
    /// # Errors
    /// No role has the identity, the role may not log in, or `system_auth` cannot be read.
    pub fn log_in_by_identity(&self, identity: &str, from: IpAddr) -> Result<Arc<Login>, Error> {
        let role = self.tables.role_of_identity(identity).map_err(unable)?;
        let role = role.ok_or_else(|| {
            Error::BadCredentials(format!("Certificate identity '{identity}' not authorized"))
        })?;
        self.permitted(&role, from)
    }

    /// The login of a role, if it may log in.
    fn permitted(&self, role: &str, from: IpAddr) -> Result<Arc<Login>, Error> {
        let login = self.login(role, from);
        let rights = self.rights(&login).map_err(unable)?;
        match rights.roles.get(role) {
            Some(found) if found.can_login => {
                if rights.is_from_elsewhere {
                    tracing::warn!(role, address = %from, "a role is used from an address outside of its CIDR groups");
                }
                Ok(login)
            }
            _ => Err(Error::BadCredentials(format!(
                "{role} is not permitted to log in"
            ))),
        }
    }

    /// The login of a role, shared by all its sessions, or by those of one address if roles are bound to addresses.
    fn login(&self, role: &str, from: IpAddr) -> Arc<Login> {
        let is_bound = self.options.cidr_authorizer != CidrAuthorizer::AllowAll;
        let address = is_bound.then(|| from.to_canonical());
        let key = (role.to_owned(), address);
        let mut logins = self.logins.lock();
        if let Some(known) = logins.get(&key) {
            return known.clone();
        }
        if logins.len() >= KEPT_MAX {
            logins.retain(|_, login| Arc::strong_count(login) > 1);
        }
        let login = Arc::new(Login::from_address(role, address));
        logins.insert(key, login.clone());
        login
    }

    fn cached_hash(&self, role: &str) -> Option<String> {
        let now = self.now_nanos();
        let hashes = self.hashes.lock();
        let (read_at, hash) = hashes.get(role)?;
        let is_valid = now.saturating_sub(*read_at) < self.validity.credentials_nanos.load(Ordering::Relaxed);
        is_valid.then(|| hash.clone())
    }

    pub(super) fn read_hash(&self, role: &str) -> Result<Option<String>, Error> {
        let now = self.now_nanos();
        let hash = self.tables.hash(role)?;
        let mut hashes = self.hashes.lock();
        match &hash {
            Some(hash) => {
                if hashes.len() >= KEPT_MAX {
                    hashes.clear();
                }
                hashes.insert(role.to_owned(), (now, hash.clone()));
            }
            None => {
                hashes.remove(role);
            }
        }
        Ok(hash)
    }

    /// Checks whether the client may execute a statement with these needs.
    ///
    /// # Errors
    /// The client does not meet one of the needs.
    #[inline]
    pub(crate) fn check(&self, client: &Identity, needs: &Needs) -> Result<(), Error> {
        match client {
            Identity::Internal => Ok(()),
            Identity::Anonymous => self.check_anonymous(),
            Identity::User(login) => {
                let rights = login.rights.load();
                if rights.meet(needs) && self.is_current(&rights) {
                    return Ok(());
                }
                drop(rights);
                self.check_anew(login, needs)
            }
        }
    }

    /// Checks whether the client may read the changes of a table: it needs SELECT, and UNMASK if the table has masks, since changes
    /// have the stored values.
    ///
    /// # Errors
    /// The client lacks one of these permissions.
    pub fn check_changes(&self, client: &Identity, table: &TableSchema) -> Result<(), Error> {
        self.check(client, &Needs::of_changes(table))
    }

    /// Whether the client sees the values of these tables as they are stored. `masked` are tables to which masks apply.
    ///
    /// # Errors
    /// The permissions of the role cannot be read.
    #[inline]
    pub(crate) fn sight(&self, client: &Identity, masked: &[Resource]) -> Result<Sight, Error> {
        match client {
            Identity::User(login) if !masked.is_empty() => self.sight_of(login, masked),
            _ => Ok(Sight::Clear),
        }
    }

    fn sight_of(&self, login: &Login, masked: &[Resource]) -> Result<Sight, Error> {
        let rights = self.rights(login).map_err(|error| {
            Error::Unauthorized(format!("Unable to perform authorization of permissions: {error}"))
        })?;
        let is_clear = masked.iter().all(|table| rights.allow(Permission::Unmask, table));
        Ok(if is_clear { Sight::Clear } else { Sight::Masked })
    }

    fn check_anonymous(&self) -> Result<(), Error> {
        match self.requires_login() {
            true => Err(Error::Unauthorized("You have not logged in".to_owned())),
            false => Ok(()),
        }
    }

    #[cold]
    fn check_anew(&self, login: &Login, needs: &Needs) -> Result<(), Error> {
        self.rights_here(login)?.check(needs, &login.role)
    }

    /// The rights of a role. Fails if the role may not use this data center, or may not be used from its address.
    pub(super) fn rights_here(&self, login: &Login) -> Result<Arc<Rights>, Error> {
        let rights = self.rights(login).map_err(|error| {
            Error::Unauthorized(format!("Unable to perform authorization of permissions: {error}"))
        })?;
        if !rights.has_access_here {
            return Err(Error::Unauthorized(format!(
                "You do not have access to this datacenter ({})",
                self.data_center
            )));
        }
        if let Some(address) = login.address
            && rights.is_from_elsewhere
            && self.options.cidr_authorizer == CidrAuthorizer::Enforce
        {
            return Err(Error::Unauthorized(format!(
                "You do not have access from this IP {address}"
            )));
        }
        Ok(rights)
    }

    pub(super) fn is_current(&self, rights: &Rights) -> bool {
        self.now_nanos() < rights.valid_until_nanos && rights.change == self.changes.load(Ordering::Acquire)
    }

    /// The rights of a role: the cached ones while they are valid, else new ones from `system_auth`.
    pub(super) fn rights(&self, login: &Login) -> Result<Arc<Rights>, Error> {
        let known = login.rights.load_full();
        if self.is_current(&known) {
            return Ok(known);
        }
        let _turn = login.renewal.lock();
        let known = login.rights.load_full();
        if self.is_current(&known) {
            return Ok(known);
        }
        // Loaded before the tables are read, so that a change meanwhile makes these rights invalid.
        let change = self.changes.load(Ordering::Acquire);
        let now = self.now_nanos();
        let mut rights = self.read_rights(&login.role)?;
        rights.is_from_elsewhere = match login.address {
            Some(address) => self.is_elsewhere(address, &login.role, &rights)?,
            None => false,
        };
        rights.change = change;
        rights.valid_until_nanos = now.saturating_add(self.validity.rights_nanos.load(Ordering::Relaxed));
        let rights = Arc::new(rights);
        login.is_superuser.store(rights.is_superuser(), Ordering::Relaxed);
        login.rights.store(rights.clone());
        Ok(rights)
    }

    /// Reads the rights of a role from `system_auth`.
    fn read_rights(&self, role: &str) -> Result<Rights, Error> {
        let roles = closure(role, |name| self.tables.role(name))?;
        let is_open = !self.options.checks_permissions();
        let is_superuser = roles.values().any(|role| role.is_superuser);
        let mut grants = match is_superuser {
            true => Grants::of_superuser(),
            false => Grants::default(),
        };
        if !is_superuser && !is_open {
            for name in roles.keys() {
                for granted in self.tables.granted(name)? {
                    grants.add(granted.resource, granted.permissions);
                }
            }
        }
        let has_access_here = match self.options.network_authorizer {
            NetworkAuthorizer::AllowAll => true,
            NetworkAuthorizer::Cassandra if is_superuser => true,
            NetworkAuthorizer::Cassandra => {
                let datacenters = self.tables.datacenters(role)?;
                datacenters.is_none_or(|names| names.contains(&self.data_center))
            }
        };
        Ok(Rights {
            roles,
            grants,
            is_open,
            has_access_here,
            ..Rights::stamped()
        })
    }

    /// Drops all cached roles, permissions and hashes, so that they are read again.
    pub fn forget(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.hashes.lock().clear();
    }

    /// All groups of addresses, by name.
    ///
    /// # Errors
    /// `system_auth` cannot be read.
    pub fn cidr_groups(&self) -> Result<Vec<(String, Vec<Cidr>)>, Error> {
        self.tables.cidr_groups()
    }

    /// Whether an address is outside of the groups that a role is bound to. Compat: `CIDRPermissionsManager`.
    fn is_elsewhere(&self, address: IpAddr, role: &str, rights: &Rights) -> Result<bool, Error> {
        if rights.is_superuser() && !self.options.checks_addresses_of_superusers {
            return Ok(false);
        }
        let began = self.now_nanos();
        let bound_to = self.tables.cidr_groups_of(role)?;
        if bound_to.is_empty() {
            return Ok(false);
        }
        let counts = &self.cidr_counts;
        let reading = self.now_nanos();
        let groups = self.tables.cidr_groups()?;
        let searching = self.now_nanos();
        counts.count_read(searching.saturating_sub(reading));
        let found = groups_of(address, &groups);
        let ended = self.now_nanos();
        counts.search_nanos.record(ended.saturating_sub(searching));
        let is_accepted = bound_to.iter().any(|name| found.contains(name.as_str()));
        counts.count(&found, is_accepted);
        counts.check_nanos.record(ended.saturating_sub(began));
        Ok(!is_accepted)
    }

    /// Adds to `changes` the removal of all grants on exactly these resources.
    pub(super) fn revoke_all_on(&self, resources: &[Resource], changes: &mut Changes) -> Result<(), Error> {
        for resource in resources {
            let name = resource.name();
            for role in self.tables.roles_with(&name)? {
                changes.revoke_all(&role, &name);
            }
        }
        Ok(())
    }

    /// The data centers of this node and of the other nodes of its cluster.
    pub(super) fn known_data_centers(&self) -> Result<Vec<String>, Error> {
        let mut known = self.tables.data_centers_of_peers()?;
        known.push(self.data_center.clone());
        Ok(known)
    }

    /// Hashes a password with a new salt.
    pub(super) fn hash_of(&self, given: &str) -> Result<String, Error> {
        let salt = random_bytes(&**self.tables.store());
        password::hash(given, self.options.bcrypt_cost, salt)
            .ok_or_else(|| Error::ServerError("auth_bcrypt_work_factor is out of bounds".to_owned()))
    }

    fn now_nanos(&self) -> u64 {
        self.tables.store().monotonic_nanos()
    }
}

fn unable(error: Error) -> Error {
    Error::BadCredentials(format!("Unable to perform authentication: {error}"))
}

/// 16 bytes, of which 122 bits are random; for salts and keys.
fn random_bytes(store: &dyn Store) -> [u8; 16] {
    store.random_uuid().into_bytes()
}
