//! CREATE and ALTER KEYSPACE: replication by data center. The only data center is this node's.
//!
//! Compat: `NetworkTopologyStrategy.prepareOptions` and `validateExpectedOptions` of Cassandra 5.0.

use std::borrow::Cow;
use std::collections::BTreeMap;

use ilion_schema::{Properties, PropertyValue, SchemaChange};

use crate::Error;
use crate::context::Execution;

const CLASS: &str = "class";
const FACTOR: &str = "replication_factor";

/// The change with the replication factor for this node's data center. Compat: the options are checked only if the keyspace
/// exists for ALTER, or does not exist for CREATE.
///
/// # Errors
/// The options name another data center.
pub(super) fn of_data_center<'c>(
    mut change: Cow<'c, SchemaChange>,
    execution: &Execution<'_>,
) -> Result<Cow<'c, SchemaChange>, Error> {
    let known = |name: &str| execution.schema.keyspace(name).is_some();
    let is_looked_at = match &*change {
        SchemaChange::CreateKeyspace { name, .. } => !known(name),
        SchemaChange::AlterKeyspace { name, .. } => known(name),
        _ => false,
    };
    if is_looked_at
        && let SchemaChange::CreateKeyspace { name, properties, .. }
        | SchemaChange::AlterKeyspace { name, properties, .. } = change.to_mut()
    {
        complete(name, properties, execution)?;
    }
    Ok(change)
}

fn complete(keyspace: &str, properties: &mut Properties, execution: &Execution<'_>) -> Result<(), Error> {
    let own = execution.query_options.data_center.as_str();
    let Some(PropertyValue::Map(replication)) = properties.0.get_mut("replication") else {
        return Ok(());
    };
    let is_by_data_center = |options: &BTreeMap<String, String>| {
        options
            .get(CLASS)
            .is_some_and(|class| class.rsplit('.').next() == Some("NetworkTopologyStrategy"))
    };
    if !is_by_data_center(replication) {
        return Ok(());
    }
    let is_known = |option: &str| [CLASS, FACTOR, own].contains(&option);
    if let Some(unknown) = replication.keys().find(|option| !is_known(option)) {
        return Err(Error::Config(format!(
            "Unrecognized strategy option {{{unknown}}} passed to NetworkTopologyStrategy for keyspace {keyspace}"
        )));
    }
    if replication.contains_key(own) {
        replication.remove(FACTOR);
        return Ok(());
    }
    let previous = execution.schema.keyspace(keyspace);
    let previous = previous.map(|previous| &previous.replication.options);
    let was = |option: &str| previous.and_then(|previous| previous.get(option)).cloned();
    let factor = match replication.remove(FACTOR) {
        // A data center that the keyspace already has keeps its factor.
        Some(given) => was(own).unwrap_or(given),
        None => was(FACTOR).unwrap_or_else(|| "1".to_owned()),
    };
    replication.insert(own.to_owned(), factor);
    Ok(())
}
