//! CREATE and ALTER KEYSPACE: replication by data centers, of which this node knows its own.
//!
//! Compat: `NetworkTopologyStrategy.prepareOptions` and `validateExpectedOptions` of Cassandra 5.0.

use std::collections::BTreeMap;

use ilion_schema::{Properties, PropertyValue};

use crate::Error;
use crate::context::PlanContext;

const CLASS: &str = "class";
const FACTOR: &str = "replication_factor";

/// The properties with what they mean for the data center of this node.
pub(super) fn of_data_center(
    keyspace: &str,
    mut properties: Properties,
    context: &PlanContext<'_>,
) -> Result<Properties, Error> {
    let own = context.options.data_center.as_str();
    let Some(PropertyValue::Map(replication)) = properties.0.get_mut("replication") else {
        return Ok(properties);
    };
    let is_by_data_center = |options: &BTreeMap<String, String>| {
        options
            .get(CLASS)
            .is_some_and(|class| class.rsplit('.').next() == Some("NetworkTopologyStrategy"))
    };
    if !is_by_data_center(replication) {
        return Ok(properties);
    }
    let is_known = |option: &str| [CLASS, FACTOR, own].contains(&option);
    if let Some(unknown) = replication.keys().find(|option| !is_known(option)) {
        return Err(Error::Config(format!(
            "Unrecognized strategy option {{{unknown}}} passed to NetworkTopologyStrategy for keyspace {keyspace}"
        )));
    }
    if replication.contains_key(own) {
        replication.remove(FACTOR);
        return Ok(properties);
    }
    let previous = context.schema.keyspace(keyspace);
    let previous = previous.map(|previous| &previous.replication.options);
    let was = |option: &str| previous.and_then(|previous| previous.get(option)).cloned();
    let factor = match replication.remove(FACTOR) {
        // What a data center has, stays.
        Some(given) => was(own).unwrap_or(given),
        None => was(FACTOR).unwrap_or_else(|| "1".to_owned()),
    };
    replication.insert(own.to_owned(), factor);
    Ok(properties)
}
