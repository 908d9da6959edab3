//! Guardrails of table properties and of the replication of keyspaces.

use std::borrow::Cow;

use ilion_schema::{Properties, PropertyValue, SchemaChange, TableAlteration, TableOptions};

use super::{check_flag, check_lists, ensure, is_among, tell};
use crate::Error;
use crate::context::Execution;

/// Refuses properties that the operator does not allow, and warns of those that are discouraged or ignored.
///
/// # Errors
/// One property is not allowed.
pub(crate) fn check_given(change: &SchemaChange, execution: &Execution<'_>) -> Result<(), Error> {
    let properties = match change {
        SchemaChange::CreateTable(create) => &create.properties,
        SchemaChange::CopyTable(copy) => &copy.properties,
        SchemaChange::CreateView(create) => &create.properties,
        SchemaChange::AlterView { properties, .. }
        | SchemaChange::AlterTable {
            alteration: TableAlteration::Options(properties),
            ..
        } => properties,
        _ => return Ok(()),
    };
    let names = properties.0.keys().map(String::as_str);
    let given: Vec<&str> = names.filter(|name| *name != "id").collect();
    check_lists(
        "table_properties",
        &execution.query_options.guardrails.table_properties,
        &given,
        "Table Properties",
        execution,
    )
}

pub(super) fn check_properties(properties: &Properties, execution: &Execution<'_>) -> Result<(), Error> {
    let limits = &execution.query_options.guardrails;
    if let Some(PropertyValue::Map(compression)) = properties.0.get("compression") {
        let is_off = compression
            .get("enabled")
            .is_some_and(|enabled| enabled.eq_ignore_ascii_case("false"))
            || compression.is_empty();
        let is_allowed = limits.uncompressed_tables_enabled || !is_off;
        ensure("uncompressed_tables_enabled", is_allowed, "Uncompressed table")?;
    }
    Ok(())
}

/// The change without the properties that the operator has set to be ignored.
pub(crate) fn without_ignored<'c>(
    change: &'c SchemaChange,
    execution: &Execution<'_>,
) -> Cow<'c, SchemaChange> {
    let ignored = &execution.query_options.guardrails.table_properties.ignored;
    if ignored.is_empty() {
        return Cow::Borrowed(change);
    }
    let mut change = change.clone();
    let properties = match &mut change {
        SchemaChange::CreateTable(create) => &mut create.properties,
        SchemaChange::CopyTable(copy) => &mut copy.properties,
        SchemaChange::CreateView(create) => &mut create.properties,
        SchemaChange::AlterView { properties, .. }
        | SchemaChange::AlterTable {
            alteration: TableAlteration::Options(properties),
            ..
        } => properties,
        _ => return Cow::Owned(change),
    };
    properties.0.retain(|name, _| !is_among(name, ignored));
    Cow::Owned(change)
}

const NO_EXPIRY: &str = "It is suspicious to use default_time_to_live set to 0 with such compaction strategy. Please keep in \
    mind that data will not start to automatically expire after they are older than a respective compaction window unit of a \
    certain size. Please set TTL for your INSERT or UPDATE statements if you expect data to be expired as table settings \
    will not do it.";

pub(super) fn is_time_window(compaction: &PropertyValue) -> bool {
    match compaction {
        PropertyValue::Map(options) => options
            .get("class")
            .is_some_and(|class| is_time_window_class(class)),
        PropertyValue::Text(_) => false,
    }
}

fn is_time_window_class(class: &str) -> bool {
    class.ends_with("TimeWindowCompactionStrategy")
}

/// Refuses or warns of a table with TimeWindowCompactionStrategy and no default TTL. `known` are its current options.
pub(super) fn check_expiry(
    is_time_window: Option<bool>,
    ttl: Option<&PropertyValue>,
    known: Option<&TableOptions>,
    execution: &Execution<'_>,
) -> Result<(), Error> {
    let was = || {
        known.is_some_and(|known| {
            known
                .compaction
                .get("class")
                .is_some_and(|class| is_time_window_class(class))
        })
    };
    let expires = match ttl {
        Some(PropertyValue::Text(ttl)) => ttl != "0",
        Some(PropertyValue::Map(_)) => true,
        None => known.is_some_and(|known| known.default_time_to_live_secs != 0),
    };
    if expires || !is_time_window.unwrap_or_else(was) {
        return Ok(());
    }
    check_flag(
        "zero_ttl_on_twcs",
        execution.query_options.guardrails.zero_ttl_on_twcs,
        "0 default_time_to_live on a table with TimeWindowCompactionStrategy compaction strategy",
        NO_EXPIRY,
        execution,
    )
}

pub(super) fn check_replication(
    keyspace: &str,
    properties: &Properties,
    execution: &Execution<'_>,
) -> Result<(), Error> {
    let limits = &execution.query_options.guardrails;
    let Some(PropertyValue::Map(replication)) = properties.0.get("replication") else {
        return Ok(());
    };
    let is_simple = replication
        .get("class")
        .is_some_and(|class| class.ends_with("SimpleStrategy"));
    ensure(
        "simplestrategy",
        limits.simplestrategy_enabled || !is_simple,
        "SimpleStrategy",
    )?;
    let factors = replication.iter().filter(|(option, _)| *option != "class");
    for factor in factors.filter_map(|(_, factor)| factor.parse::<u64>().ok()) {
        let (low, high) = (
            limits.minimum_replication_factor,
            limits.maximum_replication_factor,
        );
        tell(
            "minimum_replication_factor",
            low.below(factor),
            execution,
            |verdict, limit| {
                format!(
                    "The keyspace {keyspace} has a replication factor of {factor}, below the {verdict} threshold of {limit}."
                )
            },
        )?;
        tell(
            "maximum_replication_factor",
            high.above(factor),
            execution,
            |verdict, limit| {
                format!(
                    "The keyspace {keyspace} has a replication factor of {factor}, above the {verdict} threshold of {limit}."
                )
            },
        )?;
    }
    Ok(())
}
