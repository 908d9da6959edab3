//! Tables and objects that a start could not open are set aside, so that the node can serve the others.
//!
//! | what | found | kept |
//! | --- | --- | --- |
//! | a table whose files do not open, or are of unknown types | when its store is opened | a store without its SSTables; its log records are applied and flushed as usual |
//! | an object of `system_schema` that does not decode | when the schema is loaded | its rows, by name |
//!
//! Reads and writes of a table that is set aside are refused with the reason. It is not compacted, since a compaction could drop
//! a tombstone that hides data of the missing file. No file is deleted: once the damaged one is restored, the next
//! start opens the table again. DROP removes it for good. Until then no new object may have the name of one that does not decode: it
//! would get the old one's rows.
//!
//! Three things end the start instead: damage in the node's own keyspaces; any damage in a directory of another program, so that
//! this program can still open it; and a lack of file descriptors or memory, which does not mean that the table is damaged.

use ilion_schema::rows::SCHEMA_TABLES;
use ilion_schema::{RowChange, Schema, SchemaChange, SchemaFault, TableId, is_system_keyspace};

use crate::faults::SetAside;
use crate::shared::Shared;
use crate::table_store::TableStore;
use crate::{Engine, Error, Result};

impl Engine {
    /// The tables and objects that the last start could not open, ordered by name. A restart tries again.
    pub fn set_aside(&self) -> Vec<SetAside> {
        let shared = &self.shared;
        let mut all = shared.faults.all();
        for store in shared.tables.load().values() {
            let table = store.schema();
            // A table whose rows do not decode may have a store, and is on the list already.
            if let Some(reason) = store.set_aside_reason()
                && !all
                    .iter()
                    .any(|fault| fault.is_table(&table.keyspace, &table.name))
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

impl Shared {
    /// Sets the table aside. Returns the error instead if the table is one of the node's own, if the directory is not ours yet, or for
    /// a shortage.
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

    /// Called after the replay: refuses the start if an object of the node's own keyspaces does not decode, or any object of a
    /// directory that is not ours yet.
    pub(crate) fn check_faults(&self, faults: &[SchemaFault]) -> Result<()> {
        let mut serious = faults
            .iter()
            .filter(|fault| !self.is_ours || is_system_keyspace(&fault.keyspace));
        serious
            .next()
            .map_or(Ok(()), |fault| Err(fault.error.clone().into()))
    }

    /// Called after the replay: sets aside the objects that do not decode.
    pub(crate) fn set_faulty_aside(&self) {
        for fault in &self.faults.all() {
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
            if self.faults.has(&store.schema()) {
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
        // Fails if the directory still has snapshots.
        let _ = self.env.remove_dir(&directory);
        Ok(())
    }

    /// The deletions from `system_schema` for a DROP of an object that is set aside; `None` for any other change.
    pub(crate) fn drop_of_fault(
        &self,
        schema: &Schema,
        change: &SchemaChange,
    ) -> Result<Option<(SetAside, Vec<RowChange>)>> {
        let Some(fault) = self.faults.dropped_by(change) else {
            return Ok(None);
        };
        if fault.kind == "keyspace" && schema.keyspace(&fault.keyspace).is_none() {
            let whole = |table| RowChange::DeletePartition {
                table,
                keyspace: fault.keyspace.clone(),
            };
            let deletions = SCHEMA_TABLES.map(whole).to_vec();
            return Ok(Some((fault, deletions)));
        }
        let rows = self.read_schema_rows()?;
        let deleted = rows.into_iter().filter(|row| fault.has_row(row));
        let deletions = deleted.map(|row| RowChange::Delete {
            table: row.table,
            keyspace: row.keyspace,
            clustering: row.clustering,
        });
        let deletions = deletions.collect();
        Ok(Some((fault, deletions)))
    }
}
