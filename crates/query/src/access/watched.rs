//! Facts about access control for operators: cached roles, and checks of clients against groups of addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use super::{AccessControl, NetworkAuthorizer};
use crate::Sizes;

/// Compat: the name under which addresses in no group are counted.
const NO_GROUP: &str = "Undefined";

/// How clients were compared with their groups of addresses, since the start.
#[derive(Debug, Default)]
pub struct CidrCounts {
    /// Accepted clients by group.
    pub accepted: Mutex<BTreeMap<String, u64>>,
    /// Rejected clients by group.
    pub rejected: Mutex<BTreeMap<String, u64>>,
    /// How often the groups were read.
    pub reads: AtomicU64,
    /// Nanoseconds of each comparison, with its reads.
    pub check_nanos: Sizes,
    /// Nanoseconds of each read of the groups.
    pub read_nanos: Sizes,
    /// Nanoseconds of each search for the groups of an address.
    pub search_nanos: Sizes,
}

impl CidrCounts {
    /// Counts a client whose address is in these groups.
    pub(super) fn count(&self, groups: &BTreeSet<&str>, is_accepted: bool) {
        let mut counts = match is_accepted {
            true => self.accepted.lock(),
            false => self.rejected.lock(),
        };
        let none = groups.is_empty().then_some(&NO_GROUP);
        for group in groups.iter().chain(none) {
            *counts.entry((*group).to_owned()).or_default() += 1;
        }
    }

    pub(super) fn count_read(&self, nanos: u64) {
        self.reads.fetch_add(1, Relaxed);
        self.read_nanos.record(nanos);
    }
}

/// The roles with cached facts that are still valid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptAccess {
    /// Roles that are cached.
    pub roles: BTreeSet<String>,
    /// Roles with the resources on which they have permissions.
    pub permissions: BTreeSet<(String, String)>,
    /// Roles whose data centers are cached.
    pub datacenters: BTreeSet<String>,
    /// Roles whose hash of the password is cached.
    pub credentials: BTreeSet<String>,
}

impl AccessControl {
    /// Counts of how clients were compared with their groups of addresses.
    pub fn cidr_counts(&self) -> &CidrCounts {
        &self.cidr_counts
    }

    /// The facts about roles that are cached now.
    pub fn kept(&self) -> KeptAccess {
        let mut kept = KeptAccess {
            credentials: self.kept_hashes().into_iter().collect(),
            ..KeptAccess::default()
        };
        for login in self.known_logins() {
            let rights = login.rights.load_full();
            if !self.is_current(&rights) {
                continue;
            }
            kept.roles.extend(rights.roles.keys().cloned());
            let resources = rights.grants.resources();
            kept.permissions
                .extend(resources.map(|resource| (login.role.clone(), resource.to_owned())));
            if self.options.network_authorizer == NetworkAuthorizer::Cassandra {
                kept.datacenters.insert(login.role.clone());
            }
        }
        kept
    }
}
