//! What a start could not open is set aside, so that one bad table does not cost the node.
//!
//! | what | found | kept |
//! | --- | --- | --- |
//! | a table whose files do not open, or are of unknown types | when its store is opened | a store without its SSTables; its log records are applied and flushed as ever |
//! | an object of `system_schema` that does not decode | when the schema is loaded | its rows, by name |
//!
//! Reads and writes of a table that is set aside are refused with the reason; it is not compacted, since a compaction could drop
//! a tombstone that hides data of the file that is missing now. No file is deleted: once the damaged one is restored, the next
//! start opens the table again. DROP removes it for good. The name of an object that does not decode is not given away before that: a new
//! object would get the old one's rows.
//!
//! Not set aside: the node's own keyspaces, without which it is not this node; and anything in a directory that another
//! program wrote, which is refused as a whole the first time, so that this program can still open it. Nor a table that lacks
//! file descriptors or memory to be opened: nothing is wrong with it, and the start ends with what is short.

use std::fmt;

use ilion_schema::rows::SCHEMA_TABLES;
use ilion_schema::{
    Applied, Diff, RowChange, Schema, SchemaChange, SchemaFault, SchemaRow, TableId, Transition,
    is_system_keyspace,
};

use crate::engine::Shared;
use crate::table_store::TableStore;
use crate::{Engine, Error, Result};

/// Something that a start could not open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// Its keyspace.
    pub keyspace: String,
    /// What it is: `table`, `view`, `type`, `function`, `aggregate`, `index`, `trigger` or `keyspace`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// The id of a table, as far as that can be read.
    pub id: Option<TableId>,
    /// Why, and what to do.
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

impl Engine {
    /// What the last start could not open, ordered by name. A restart tries again.
    pub fn set_aside(&self) -> Vec<SetAside> {
        let shared = &self.shared;
        let mut all = shared.faults.lock().clone();
        for store in shared.tables.load().values() {
            let table = store.schema();
            // A table whose rows do not decode may have a store all the same.
            if let Some(reason) = store.set_aside_reason()
                && !all
                    .iter()
                    .any(|fault| is_table(fault, &table.keyspace, &table.name))
            {
                all.push(SetAside {
                    keyspace: table.keyspace.clone(),
                    kind: "table",
                    name: table.name.clone(),
                    id: Some(table.id),
                    reason: reason.to_owned(),
                });
            }
        }
        all.sort_by(|a, b| (&a.keyspace, &a.name).cmp(&(&b.keyspace, &b.name)));
        all
    }
}

fn is_table(fault: &SetAside, keyspace: &str, name: &str) -> bool {
    let is_meant = match fault.kind {
        "keyspace" => true,
        "table" | "view" => fault.name == name,
        _ => false,
    };
    is_meant && fault.keyspace == keyspace
}

impl Shared {
    /// Ends with the error if the table is one that the node cannot do without, the directory is not ours yet, or something is
    /// used up for now. Otherwise sets the table aside.
    pub(crate) fn set_aside_or_refuse(&self, store: &TableStore, error: Error) -> Result<()> {
        let table = store.schema();
        let is_ours = self.is_ours || self.log.get().is_some();
        if is_system_keyspace(&table.keyspace) || !is_ours || error.is_shortage() {
            return Err(error);
        }
        let reason = format!("{error}; restore the file and restart, or DROP the table");
        tracing::error!(keyspace = %table.keyspace, table = %table.name, %reason, "a table cannot be opened and is set aside");
        store.set_aside(reason);
        Ok(())
    }

    /// The log is replayed: refuses the start if what does not decode now is something that the node cannot do without, or
    /// the directory is not ours yet.
    pub(crate) fn check_faults(&self, faults: &[SchemaFault]) -> Result<()> {
        let mut serious = faults
            .iter()
            .filter(|fault| !self.is_ours || is_system_keyspace(&fault.keyspace));
        serious
            .next()
            .map_or(Ok(()), |fault| Err(fault.error.clone().into()))
    }

    /// What does not decode now. Tables of it that are known are kept, with their files.
    pub(crate) fn note_faults(&self, faults: &[SchemaFault]) {
        let set_aside = |fault: &SchemaFault| SetAside {
            reason: format!("{}; DROP it, or restore its rows and restart", fault.error),
            keyspace: fault.keyspace.clone(),
            kind: fault.kind,
            name: fault.name.clone(),
            id: fault.id,
        };
        *self.faults.lock() = faults.iter().map(set_aside).collect();
    }

    /// The log is replayed: what does not decode now is set aside.
    pub(crate) fn set_faulty_aside(&self) {
        for fault in &*self.faults.lock() {
            let SetAside {
                keyspace,
                kind,
                name,
                reason,
                ..
            } = fault;
            tracing::error!(%keyspace, %kind, %name, %reason, "an object of the schema cannot be read and is set aside");
        }
        for store in self.tables.load().values() {
            if self.is_faulty(store) {
                store.set_aside("its rows in system_schema do not decode".to_owned());
            }
        }
    }

    /// Removes the files of a table that was set aside and dropped, if it has no store.
    pub(crate) fn remove_files_of_fault(&self, keyspace: &str, name: &str, id: TableId) -> Result<()> {
        let directory = self
            .options
            .data_dir
            .join(keyspace)
            .join(format!("{name}-{}", id.0.simple()));
        self.remove_unopened(&directory)?;
        // Stays where there are snapshots.
        let _ = self.env.remove_dir(&directory);
        Ok(())
    }

    /// True if the schema lacks the table only since its rows do not decode: its files stay.
    pub(crate) fn is_faulty(&self, store: &TableStore) -> bool {
        let table = store.schema();
        let faults = self.faults.lock();
        faults
            .iter()
            .any(|fault| is_table(fault, &table.keyspace, &table.name))
    }

    /// Refuses a change that gives the name of a set-aside object away.
    pub(crate) fn check_names_free(&self, applied: &Applied) -> Result<()> {
        let faults = self.faults.lock();
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

    /// What DROP of a set-aside object deletes from `system_schema`; `None` if the change is no such drop.
    pub(crate) fn drop_of_fault(
        &self,
        schema: &Schema,
        change: &SchemaChange,
    ) -> Result<Option<(SetAside, Vec<RowChange>)>> {
        let (kinds, keyspace, name): (&[&str], &str, &str) = match change {
            SchemaChange::DropKeyspace { name, .. } => (&["keyspace"], name, name),
            SchemaChange::DropTable(drop) => (&["table"], &drop.keyspace, &drop.name),
            SchemaChange::DropView(drop) => (&["view"], &drop.keyspace, &drop.name),
            SchemaChange::DropType(drop) => (&["type"], &drop.keyspace, &drop.name),
            SchemaChange::DropIndex(drop) => (&["index"], &drop.keyspace, &drop.name),
            SchemaChange::DropFunction(drop) => (&["function"], &drop.keyspace, &drop.name),
            SchemaChange::DropAggregate(drop) => (&["aggregate"], &drop.keyspace, &drop.name),
            _ => return Ok(None),
        };
        let faults = self.faults.lock().clone();
        let is_meant = |fault: &&SetAside| {
            fault.keyspace == keyspace && kinds.contains(&fault.kind) && fault.name == name
        };
        let Some(fault) = faults.iter().find(is_meant) else {
            return Ok(None);
        };
        if fault.kind == "keyspace" && schema.keyspace(keyspace).is_none() {
            let whole = |table| RowChange::DeletePartition {
                table,
                keyspace: keyspace.to_owned(),
            };
            return Ok(Some((fault.clone(), SCHEMA_TABLES.map(whole).to_vec())));
        }
        let rows = self.read_schema_rows()?;
        let deleted = rows.into_iter().filter(|row| is_row_of(fault, row));
        let deletions = deleted.map(|row| RowChange::Delete {
            table: row.table,
            keyspace: row.keyspace,
            clustering: row.clustering,
        });
        Ok(Some((fault.clone(), deletions.collect())))
    }
}

/// Whether a row of `system_schema` is one of the object: of a table also those of its columns, indexes and triggers.
fn is_row_of(fault: &SetAside, row: &SchemaRow) -> bool {
    let tables: &[&str] = match fault.kind {
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
    let place = usize::from(fault.kind == "index");
    let is_named = row
        .clustering
        .get(place)
        .is_some_and(|name| **name == *fault.name.as_bytes());
    row.keyspace == fault.keyspace && tables.contains(&row.table) && is_named
}
