//! Replication options of a keyspace: Cassandra's strategies.
//!
//! On a single node every strategy places every partition on that node; in a cluster the crate `cluster` places replicas by them. The
//! options are checked, stored and printed as in Cassandra, so that a schema can move between both.

use std::collections::BTreeMap;

use crate::error::{config, invalid};
use crate::{Error, Replication};

const PACKAGE: &str = "org.apache.cassandra.locator.";
const FACTOR: &str = "replication_factor";
/// Cassandra's `default_keyspace_rf`.
const FACTOR_DEFAULT: &str = "1";

impl Replication {
    /// `SimpleStrategy` with one replica.
    pub fn simple() -> Self {
        Self::of("SimpleStrategy", [(FACTOR.to_owned(), FACTOR_DEFAULT.to_owned())])
    }

    /// `LocalStrategy`, for the node's own keyspaces.
    pub fn local() -> Self {
        Self::of("LocalStrategy", [])
    }

    fn of(class: &str, options: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut options: BTreeMap<_, _> = options.into_iter().collect();
        options.insert("class".to_owned(), format!("{PACKAGE}{class}"));
        Self { options }
    }

    /// The strategy's class without Cassandra's package.
    pub fn class(&self) -> &str {
        let class = self.options.get("class").map_or("", String::as_str);
        class.strip_prefix(PACKAGE).unwrap_or(class)
    }

    /// All options except the class.
    pub fn factors(&self) -> impl Iterator<Item = (&str, &str)> {
        self.options
            .iter()
            .filter(|(name, _)| *name != "class")
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Checks and completes the options of a statement. `previous` are those before ALTER KEYSPACE. Requires: the caller has replaced
    /// `replication_factor` by the node's data centers, so that data centers are named.
    pub(crate) fn parse(
        keyspace: &str,
        given: &BTreeMap<String, String>,
        previous: Option<&Replication>,
    ) -> Result<Replication, Error> {
        let class = given.get("class").map_or("", String::as_str);
        let class = class.strip_prefix(PACKAGE).unwrap_or(class);
        let factors: BTreeMap<String, String> = given
            .iter()
            .filter(|(name, _)| *name != "class")
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        let factors = match class {
            "SimpleStrategy" => simple(keyspace, factors, previous)?,
            "NetworkTopologyStrategy" if factors.is_empty() => {
                return config("Configuration for at least one datacenter must be present");
            }
            "NetworkTopologyStrategy" => factors,
            "LocalStrategy" => {
                return invalid(
                    "Unable to use given strategy class: LocalStrategy is reserved for internal use.",
                );
            }
            _ => {
                let full = if class.contains('.') {
                    class.to_owned()
                } else {
                    format!("{PACKAGE}{class}")
                };
                return config(format!("Unable to find replication strategy class '{full}'"));
            }
        };
        factors.values().try_for_each(|factor| check_factor(factor))?;
        Ok(Self::of(class, factors))
    }
}

fn simple(
    keyspace: &str,
    mut factors: BTreeMap<String, String>,
    previous: Option<&Replication>,
) -> Result<BTreeMap<String, String>, Error> {
    if let Some(unknown) = factors.keys().find(|name| *name != FACTOR) {
        return config(format!(
            "Unrecognized strategy option {{{unknown}}} passed to SimpleStrategy for keyspace {keyspace}"
        ));
    }
    factors
        .entry(FACTOR.to_owned())
        .or_insert_with(|| inherited_factor(previous));
    Ok(factors)
}

fn inherited_factor(previous: Option<&Replication>) -> String {
    previous
        .and_then(|previous| previous.options.get(FACTOR))
        .map_or(FACTOR_DEFAULT, String::as_str)
        .to_owned()
}

fn check_factor(factor: &str) -> Result<(), Error> {
    if let Some((_, transient)) = factor.split_once('/')
        && transient != "0"
    {
        return config("Transient replication is disabled. Enable in cassandra.yaml to use.");
    }
    match factor.split('/').next().unwrap_or("").parse::<i32>() {
        Ok(count) if count >= 0 => Ok(()),
        Ok(count) => config(format!("Replication factor must be non-negative, found {count}")),
        Err(_) => config(format!("Replication factor must be numeric, found {factor}")),
    }
}
