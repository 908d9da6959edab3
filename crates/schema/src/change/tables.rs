//! DROP TABLE, triggers, and the identity of new tables.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use ilion_types::{ticks_of_unix_micros, time_uuid_from_ticks};

use super::DropObject;
use crate::error::{config, invalid};
use crate::{Error, Keyspace, Properties, Schema, TableId, TableKind, TriggerSchema};

/// The id in `WITH id = ...`.
pub(super) fn table_id_of(properties: &Properties) -> Result<Option<TableId>, Error> {
    match properties.text("id")?.map(str::parse) {
        None => Ok(None),
        Some(Ok(id)) => Ok(Some(TableId(id))),
        Some(Err(_)) => config("Invalid table id"),
    }
}

/// A time UUID of the change; a hash of the names makes it unique within a microsecond.
pub(super) fn new_table_id(keyspace: &str, name: &str, now_micros: i64) -> TableId {
    let mut hasher = DefaultHasher::new();
    (keyspace, name).hash(&mut hasher);
    // The variant bits of RFC 4122, and the multicast bit that marks a random node id.
    let clock_and_node = (hasher.finish() & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0100_0000_0000;
    TableId(time_uuid_from_ticks(
        ticks_of_unix_micros(now_micros),
        clock_and_node,
    ))
}

impl Schema {
    pub(super) fn drop_table(&self, drop: &DropObject) -> Result<Option<Schema>, Error> {
        let found = self
            .keyspace(&drop.keyspace)
            .and_then(|keyspace| Some((keyspace, keyspace.tables.get(&drop.name)?)));
        let Some((keyspace, table)) = found else {
            return absent(drop.if_exists, || table_missing(&drop.keyspace, &drop.name));
        };
        if table.kind == TableKind::View {
            return invalid(
                "Cannot use DROP TABLE on a materialized view. Please use DROP MATERIALIZED VIEW instead.",
            );
        }
        let views: Vec<&str> = views_of(keyspace, &table.name).collect();
        if !views.is_empty() {
            return invalid(format!(
                "Cannot drop a table when materialized views still depend on it ({})",
                views.join(", ")
            ));
        }
        Ok(Some(self.with_changed(keyspace, |keyspace| {
            keyspace.tables.remove(&drop.name);
            keyspace.indexes.retain(|_, index| index.table != drop.name);
            keyspace.triggers.retain(|trigger| trigger.table != drop.name);
        })))
    }

    pub(super) fn create_trigger(
        &self,
        keyspace: &str,
        table: &str,
        name: &str,
        class: &str,
        if_not_exists: bool,
    ) -> Result<Option<Schema>, Error> {
        let keyspace = self.existing(keyspace)?;
        match keyspace.tables.get(table).map(|table| table.kind) {
            None => return invalid(format!("Table '{table}' doesn't exist")),
            Some(TableKind::View) => {
                return invalid(format!("Cannot CREATE TRIGGER for a materialized view '{table}'"));
            }
            Some(_) => {}
        }
        if find_trigger(keyspace, table, name).is_some() {
            return absent(if_not_exists, || format!("Trigger '{name}' already exists"));
        }
        let trigger = TriggerSchema {
            name: name.to_owned(),
            table: table.to_owned(),
            options: [("class".to_owned(), class.to_owned())].into(),
        };
        Ok(Some(self.with_changed(keyspace, |keyspace| {
            keyspace.triggers.push(Arc::new(trigger))
        })))
    }

    pub(super) fn drop_trigger(
        &self,
        keyspace: &str,
        table: &str,
        name: &str,
        if_exists: bool,
    ) -> Result<Option<Schema>, Error> {
        let found = self
            .keyspace(keyspace)
            .filter(|keyspace| find_trigger(keyspace, table, name).is_some());
        let Some(keyspace) = found else {
            return absent(if_exists, || {
                format!("Trigger '{name}' on '{keyspace}.{table}' doesn't exist")
            });
        };
        Ok(Some(self.with_changed(keyspace, |keyspace| {
            keyspace
                .triggers
                .retain(|trigger| trigger.table != table || trigger.name != name);
        })))
    }
}

fn find_trigger<'a>(keyspace: &'a Keyspace, table: &str, name: &str) -> Option<&'a Arc<TriggerSchema>> {
    keyspace
        .triggers
        .iter()
        .find(|trigger| trigger.table == table && trigger.name == name)
}

/// The result for an object that exists or is missing against the wish of the statement: no change if the statement has
/// `IF [NOT] EXISTS`, otherwise the refusal.
pub(super) fn absent(is_fine: bool, message: impl FnOnce() -> String) -> Result<Option<Schema>, Error> {
    if is_fine { Ok(None) } else { invalid(message()) }
}

pub(super) fn table_missing(keyspace: &str, table: &str) -> String {
    format!("Table '{keyspace}.{table}' doesn't exist")
}

/// Names of the views of a base table.
pub(super) fn views_of<'a>(keyspace: &'a Keyspace, base: &'a str) -> impl Iterator<Item = &'a str> {
    keyspace
        .views
        .values()
        .filter(move |view| view.base_table == base)
        .map(|view| view.name.as_str())
}
