//! [`Faults`]: objects of `system_schema` that do not decode. Module `set_aside` explains how the node serves the rest.

use std::fmt;

use ilion_schema::{Applied, Diff, SchemaChange, SchemaFault, SchemaRow, TableId, TableSchema, Transition};
use parking_lot::Mutex;

use crate::{Error, Result};

/// An object that a start could not open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// Its keyspace.
    pub keyspace: String,
    /// `table`, `view`, `type`, `function`, `aggregate`, `index`, `trigger` or `keyspace`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// The id of a table, if it can be read.
    pub id: Option<TableId>,
    /// Why it could not be opened, and what to do.
    pub reason: String,
}

impl fmt::Display for SetAside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}.{}: {}",
            self.kind, self.keyspace, self.name, self.reason
        )
    }
}

impl SetAside {
    /// True if the object is this table or the keyspace of this table.
    pub(crate) fn is_table(&self, keyspace: &str, name: &str) -> bool {
        let is_meant = match self.kind {
            "keyspace" => true,
            "table" | "view" => self.name == name,
            _ => false,
        };
        is_meant && self.keyspace == keyspace
    }

    /// True if a row of `system_schema` belongs to the object. A table also has the rows of its columns, indexes and triggers.
    pub(crate) fn has_row(&self, row: &SchemaRow) -> bool {
        let tables: &[&str] = match self.kind {
            "table" => &[
                "tables",
                "columns",
                "column_masks",
                "dropped_columns",
                "indexes",
                "triggers",
            ],
            "view" => &["views", "columns", "column_masks", "dropped_columns"],
            "type" => &["types"],
            "function" => &["functions"],
            "aggregate" => &["aggregates"],
            "index" => &["indexes"],
            _ => &[],
        };
        let place = usize::from(self.kind == "index");
        let is_named = row
            .clustering
            .get(place)
            .is_some_and(|name| **name == *self.name.as_bytes());
        row.keyspace == self.keyspace && tables.contains(&row.table) && is_named
    }
}

/// The objects that did not decode when the schema was last read.
#[derive(Default)]
pub(crate) struct Faults(Mutex<Vec<SetAside>>);

impl Faults {
    pub(crate) fn all(&self) -> Vec<SetAside> {
        self.0.lock().clone()
    }

    /// Replaces the list. Stores of tables on it are kept, with their files.
    pub(crate) fn note(&self, faults: &[SchemaFault]) {
        let set_aside = |fault: &SchemaFault| SetAside {
            reason: format!("{}; DROP it, or restore its rows and restart", fault.error),
            keyspace: fault.keyspace.clone(),
            kind: fault.kind,
            name: fault.name.clone(),
            id: fault.id,
        };
        *self.0.lock() = faults.iter().map(set_aside).collect();
    }

    /// True if the table is missing in the schema because its rows do not decode. Its files must stay then.
    pub(crate) fn has(&self, table: &TableSchema) -> bool {
        let faults = self.0.lock();
        faults
            .iter()
            .any(|fault| fault.is_table(&table.keyspace, &table.name))
    }

    /// Removes an object that was dropped.
    pub(crate) fn forget(&self, fault: &SetAside) {
        self.0.lock().retain(|known| known != fault);
    }

    /// Refuses a change that creates an object with the name of one that is set aside.
    pub(crate) fn check_names_free(&self, applied: &Applied) -> Result<()> {
        let faults = self.0.lock();
        for diff in &applied.diffs {
            let (keyspace, kinds, name): (&str, &[&str], &str) = match diff {
                Diff::Keyspace(Transition::Created(new)) => (&new.name, &["keyspace"], &new.name),
                Diff::Table(Transition::Created(new)) => (&new.keyspace, &["table", "view"], &new.name),
                Diff::Type(Transition::Created(new)) => (&new.keyspace, &["type"], &new.name),
                Diff::Index(keyspace, Transition::Created(new)) => (keyspace, &["index"], &new.name),
                Diff::Function(keyspace, Transition::Created(new)) => (keyspace, &["function"], &new.name),
                Diff::Aggregate(keyspace, Transition::Created(new)) => (keyspace, &["aggregate"], &new.name),
                _ => continue,
            };
            let taken = faults.iter().find(|fault| {
                fault.keyspace == keyspace && kinds.contains(&fault.kind) && fault.name == name
            });
            if let Some(fault) = taken {
                return Err(Error::Refused(format!(
                    "The name {keyspace}.{name} is that of a {} which is set aside ({})",
                    fault.kind, fault.reason
                )));
            }
        }
        Ok(())
    }

    /// The object on the list that a DROP names; `None` for any other change.
    pub(crate) fn dropped_by(&self, change: &SchemaChange) -> Option<SetAside> {
        let (kinds, keyspace, name): (&[&str], &str, &str) = match change {
            SchemaChange::DropKeyspace { name, .. } => (&["keyspace"], name, name),
            SchemaChange::DropTable(drop) => (&["table"], &drop.keyspace, &drop.name),
            SchemaChange::DropView(drop) => (&["view"], &drop.keyspace, &drop.name),
            SchemaChange::DropType(drop) => (&["type"], &drop.keyspace, &drop.name),
            SchemaChange::DropIndex(drop) => (&["index"], &drop.keyspace, &drop.name),
            SchemaChange::DropFunction(drop) => (&["function"], &drop.keyspace, &drop.name),
            SchemaChange::DropAggregate(drop) => (&["aggregate"], &drop.keyspace, &drop.name),
            _ => return None,
        };
        let faults = self.0.lock();
        let is_meant = |fault: &&SetAside| {
            fault.keyspace == keyspace && kinds.contains(&fault.kind) && fault.name == name
        };
        faults.iter().find(is_meant).cloned()
    }
}
