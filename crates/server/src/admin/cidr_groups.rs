//! Groups of addresses, for nodetool: they are rows of `system_auth.cidr_groups`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ilion_auth::{Cidr, groups_of};
use serde::{Deserialize, Serialize};

use super::AdminError;

/// Selects groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct CidrGroupsOrder {
    /// Only groups that contain this address.
    pub address: Option<String>,
}

/// Groups of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CidrGroupsReport {
    /// The addresses of each group, as `10.0.0.0/8`.
    pub groups: BTreeMap<String, Vec<String>>,
}

/// Creates, changes or, if there are no addresses, removes a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct CidrGroupOrder {
    /// Its name.
    pub name: String,
    /// Its addresses, one `10.0.0.0/8` per line.
    #[serde(default)]
    pub cidrs: String,
}

impl CidrGroupsOrder {
    /// The report of the chosen groups.
    pub(super) fn report(&self, groups: &[(String, Vec<Cidr>)]) -> Result<CidrGroupsReport, AdminError> {
        let of_address = match &self.address {
            None => None,
            Some(text) => {
                let address: IpAddr = text
                    .parse()
                    .map_err(|_| AdminError::Refused(format!("{text} is no address")))?;
                Some(groups_of(address, groups))
            }
        };
        let is_meant = |name: &str| of_address.as_ref().is_none_or(|names| names.contains(name));
        let groups = groups.iter().filter(|(name, _)| is_meant(name));
        Ok(CidrGroupsReport {
            groups: groups
                .map(|(name, cidrs)| (name.clone(), cidrs.iter().map(ToString::to_string).collect()))
                .collect(),
        })
    }
}

impl CidrGroupOrder {
    /// The statement that executes the order.
    pub(super) fn statement(&self, groups: &[(String, Vec<Cidr>)]) -> Result<String, AdminError> {
        let name = self.name.replace('\'', "''");
        let mut tuples = Vec::new();
        for line in self.cidrs.lines() {
            let cidr: Cidr = line.parse().map_err(|()| {
                AdminError::Refused(format!("{line} is not an address with a prefix, as 10.0.0.0/8"))
            })?;
            tuples.push(format!("('{}', {})", cidr.address(), cidr.prefix_bits()));
        }
        if tuples.is_empty() {
            if groups.iter().all(|(known, _)| *known != self.name) {
                return Err(AdminError::Refused(format!(
                    "there is no CIDR group {}",
                    self.name
                )));
            }
            return Ok(format!(
                "DELETE FROM system_auth.cidr_groups WHERE cidr_group = '{name}'"
            ));
        }
        Ok(format!(
            "INSERT INTO system_auth.cidr_groups (cidr_group, cidrs) VALUES ('{name}', {{{}}})",
            tuples.join(", ")
        ))
    }
}
