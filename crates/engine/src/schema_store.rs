//! The schema in `system_schema`: read at the start, written by every change.
//!
//! A change is one log record of kind `Schema`, applied to the tables of `system_schema` like any other write, and synced
//! before the caller gets an answer; then the engine adopts the new schema. A replay does the same.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ilion_commitlog::{Kind, Position};
use ilion_rows::{
    Cell, Clustering, ClusteringFilter, ColumnData, Cursor, Data, DecoratedKey, DeletionTime, KeyRange,
    Liveness, Mutation, PartitionUpdate, ReadPurge, Row, Unfiltered,
};
use ilion_schema::rows::SCHEMA_TABLES;
use ilion_schema::{
    Applied, ColumnId, RowChange, Schema, SchemaChange, SchemaFault, SchemaRow, TableId, TableSchema,
    schema_column_named, whole_milli,
};

use crate::affected::Affected;
use crate::faults::SetAside;
use crate::shared::Shared;
use crate::table_store::TableStore;
use crate::{Engine, Error, Result};

const KEYSPACE: &str = "system_schema";

/// How often, and at which interval, the engine tries to adopt a logged schema change while descriptors or memory are short: for half a
/// minute in total.
const ADOPT_TRIES: u32 = 300;
const ADOPT_PAUSE: Duration = Duration::from_millis(100);

impl Engine {
    /// Changes the schema: checks the change and tries it out, makes it durable, and makes or drops the tables. `None` means
    /// that the `IF` of the statement was not met, so nothing changed.
    ///
    /// # Errors
    /// The rules do not allow the change, its tables could not be opened again, or writes are refused. Then nothing has changed.
    pub fn alter_schema(&self, change: &SchemaChange) -> Result<Option<Applied>> {
        let shared = &self.shared;
        let _guard = shared.schema_change.lock();
        shared.check_writable()?;
        let old = self.schema();
        let now_micros = shared.whole_milli();
        if let Some((fault, deletions)) = shared.drop_of_fault(&old, change)? {
            let change_micros = shared.change_micros(now_micros)?;
            return self
                .drop_set_aside(&old, &fault, deletions, change_micros)
                .map(Some);
        }
        let mut applied = old.apply(change, now_micros)?;
        if applied.diffs.is_empty() {
            return Ok(None);
        }
        shared.faults.check_names_free(&applied)?;
        shared.try_out(&applied)?;
        let changes = std::mem::take(&mut applied.changes);
        let mut mutations = mutations_of(shared, changes, shared.change_micros(now_micros)?)?;
        mutations.extend(shared.forget_built(&applied.diffs)?);
        let snapshot = shared.snapshot_before_drop(&applied.diffs)?;
        let written = shared.write(Kind::Schema, &mutations);
        if let Err(error) = &written {
            shared.take_back(snapshot, error);
        }
        // If the sync fails, the change may be in the log.
        shared.sync_schema(written?)?;
        // The next start will have the change, since it is logged, so this process must not continue without it.
        let adopted = until_there_is_enough(|| shared.adopt(&applied));
        adopted.inspect_err(|error| shared.stop_writes(error))?;
        if let Err(error) = shared.build_new() {
            tracing::warn!(%error, "a new index is not built yet; the next change of the schema or start goes on with it");
        }
        Ok(Some(applied))
    }

    /// Deletes the rows of an object that does not decode, and its files.
    fn drop_set_aside(
        &self,
        schema: &Arc<Schema>,
        fault: &SetAside,
        deletions: Vec<RowChange>,
        now_micros: i64,
    ) -> Result<Applied> {
        let shared = &self.shared;
        shared.write_schema(&mutations_of(shared, deletions, now_micros)?)?;
        shared.faults.forget(fault);
        until_there_is_enough(|| shared.adopt_tables(schema, &Affected::All))?;
        if let Some(id) = fault.id {
            shared.remove_files_of_fault(&fault.keyspace, &fault.name, id)?;
        }
        Ok(Applied::no_change(schema))
    }

    /// Writes the rows of the server's own keyspaces that `system_schema` lacks, since drivers read them.
    pub(crate) fn store_own_keyspaces(&self) -> Result<()> {
        let shared = &self.shared;
        let missing = std::mem::take(&mut *shared.missing_own_rows.lock());
        if missing.is_empty() {
            return Ok(());
        }
        let change_micros = shared.change_micros(shared.env.unique_micros())?;
        let changes = missing.into_iter().map(RowChange::Put).collect();
        // One record for each keyspace: a power loss may cut the log between two records, and a start refuses a system keyspace
        // with only some of its rows.
        let mut keyspaces: BTreeMap<Bytes, Vec<Mutation>> = BTreeMap::new();
        for mutation in mutations_of(shared, changes, change_micros)? {
            let keyspace = mutation.key.key.clone();
            keyspaces.entry(keyspace).or_default().push(mutation);
        }
        for mutations in keyspaces.values() {
            match shared.write(Kind::Schema, mutations) {
                // Segments of a few KiB, as in tests, have no room for a keyspace in one record: write one record per mutation.
                Err(Error::Log(ilion_commitlog::Error::Refused { .. })) => {
                    let mut mutations = mutations.iter().map(std::slice::from_ref);
                    mutations.try_for_each(|one| shared.write(Kind::Schema, one).map(drop))?;
                }
                written => drop(written?),
            }
        }
        Ok(())
    }
}

/// Repeats `adopt` while it fails for a shortage, for half a minute at most: a logged change cannot be taken back.
fn until_there_is_enough(adopt: impl Fn() -> Result<()>) -> Result<()> {
    for _ in 1..ADOPT_TRIES {
        match adopt() {
            Err(error) if error.is_shortage() => {
                tracing::warn!(%error, "a change of the schema is logged and cannot be made yet; this is tried again");
                ilion_env::turns::pause(ADOPT_PAUSE);
            }
            adopted => return adopted,
        }
    }
    adopt()
}

impl Shared {
    /// Logs the rows of a schema change, applies them, and returns when they are durable. If the disk is full, neither log
    /// nor memtables have changed.
    fn write_schema(&self, mutations: &[Mutation]) -> Result<()> {
        self.sync_schema(self.write(Kind::Schema, mutations)?)
    }

    fn sync_schema(&self, written: Option<Position>) -> Result<()> {
        match written {
            Some(position) => Ok(self.log()?.sync_upto(position)?),
            None => Ok(()),
        }
    }

    /// Creates and drops stores of tables, then publishes the schema.
    fn adopt(&self, applied: &Applied) -> Result<()> {
        let affected = Affected::by(&applied.diffs);
        let known = self.tables.load_full();
        self.adopt_tables(&applied.schema, &affected)?;
        let tables = self.tables.load();
        for store in tables.values().filter(|store| affected.has(&store.schema())) {
            if !known.contains_key(&store.id) {
                self.make_directory_of(store)?;
            }
            let indexes = store.indexes();
            let mut hidden = indexes
                .hidden()
                .filter(|hidden| !self.env.exists(hidden.directory()));
            hidden.try_for_each(|hidden| self.make_directory_of(hidden))?;
        }
        self.schema.store(Arc::new(applied.schema.clone()));
        Ok(())
    }

    /// Makes the directory of a table whose creation is logged already. If disk space or descriptors are short, the first
    /// flush makes it.
    fn make_directory_of(&self, store: &TableStore) -> Result<()> {
        match self.env.create_dir_all(store.directory()) {
            Err(error) if error.is_shortage() => Ok(()),
            made => Ok(made?),
        }
    }

    /// The schema in `system_schema`, with the server's own keyspaces, and the objects that do not decode.
    ///
    /// In the middle of a replay, tables of `system_schema` may be at different moments: some were flushed with a change
    /// that comes later in the log. An object that does not decode then will be dropped or completed by such a later change, so it
    /// is left out for now.
    pub(crate) fn load_schema(&self) -> Result<(Schema, Vec<SchemaFault>)> {
        let loaded = Schema::from_rows_in_part(self.release, self.read_schema_rows()?);
        *self.missing_own_rows.lock() = loaded.missing;
        let schema = loaded.schema.with_column_ids_of(&self.schema.load());
        Ok((schema, loaded.faults))
    }

    /// A new timestamp, raised to the end of its millisecond.
    fn whole_milli(&self) -> i64 {
        let micros = whole_milli(self.env.unique_micros());
        self.env.raise_unique_micros(micros);
        micros
    }

    /// The timestamp of a change of the schema: above all timestamps in the schema, whose rows may come from a Cassandra with a clock
    /// that was ahead.
    fn change_micros(&self, now_micros: i64) -> Result<i64> {
        let newest = self
            .schema_tables()
            .filter_map(|name| {
                self.table(TableId::of_system_table(KEYSPACE, name))?
                    .newest_micros()
            })
            .max();
        let Some(newest) = newest else {
            return Ok(now_micros);
        };
        // The deletions of a change get the timestamp before that of its rows, so two timestamps are needed.
        let above = newest.checked_add(2).ok_or_else(|| {
            Error::Refused(format!(
                "{KEYSPACE} has a row of the timestamp {newest}, and no change can be newer; remove the SSTable that has it"
            ))
        })?;
        Ok(now_micros.max(above))
    }

    /// The tables of `system_schema` that the release has.
    fn schema_tables(&self) -> impl Iterator<Item = &'static str> {
        let schema = self.schema.load_full();
        SCHEMA_TABLES
            .into_iter()
            .filter(move |name| schema.table(KEYSPACE, name).is_some())
    }

    /// A table of `system_schema`. That never fails for [`Self::schema_tables`].
    fn schema_table(&self, name: &str) -> Result<Arc<TableStore>> {
        let store = self.table(TableId::of_system_table(KEYSPACE, name));
        store.ok_or_else(|| Error::Refused(format!("{KEYSPACE}.{name} is not there")))
    }

    pub(crate) fn read_schema_rows(&self) -> Result<Vec<SchemaRow>> {
        self.counters.schema_read();
        let mut rows = Vec::new();
        for name in self.schema_tables() {
            let store = self.schema_table(name)?;
            let table = store.schema();
            let law = self.own_read_law();
            let source = store.read_range(&table, &KeyRange::all(), &ClusteringFilter::all());
            read_rows(
                name,
                &table,
                &mut ReadPurge::new(source, table.clone(), law),
                &mut rows,
            )?;
        }
        Ok(rows)
    }
}

fn read_rows(
    name: &'static str,
    table: &TableSchema,
    cursor: &mut dyn Cursor,
    rows: &mut Vec<SchemaRow>,
) -> Result<()> {
    let columns = columns_of(name, table);
    while let Some(head) = cursor.next_partition()? {
        let keyspace = String::from_utf8_lossy(&head.key.key).into_owned();
        // A partition of `keyspaces` has one row.
        while let Some(unfiltered) = cursor.next_unfiltered()? {
            if let Unfiltered::Row(row) = unfiltered {
                rows.push(SchemaRow {
                    table: name,
                    keyspace: keyspace.clone(),
                    clustering: row.clustering.values().iter().flatten().cloned().collect(),
                    cells: cells_of(&columns, &row),
                });
            }
        }
    }
    Ok(())
}

/// The regular columns of a table, by their names in rows.
fn columns_of(name: &str, table: &TableSchema) -> Vec<(ColumnId, &'static str)> {
    table
        .regulars()
        .filter_map(|column| Some((column.id, schema_column_named(name, &column.name)?)))
        .collect()
}

/// The values of all columns; `None` for columns that the row does not have.
fn cells_of(columns: &[(ColumnId, &'static str)], row: &Row) -> Vec<(&'static str, Option<Bytes>)> {
    let value = |column: ColumnId| match row.column(column) {
        Some(Data::Simple(cell)) => Some(cell.value.clone()),
        _ => None,
    };
    columns.iter().map(|(id, name)| (*name, value(*id))).collect()
}

/// Groups the changes into one mutation per partition. Changes of tables that an older release lacks are left out; a change of the schema
/// that needs such a table was refused before.
fn mutations_of(shared: &Shared, changes: Vec<RowChange>, change_micros: i64) -> Result<Vec<Mutation>> {
    let now_secs = shared.now_secs();
    // Deletions of a change are older than its rows: with equal timestamps they would hide new rows.
    let deletion = DeletionTime::new(change_micros - 1, now_secs);
    let mut by_table: BTreeMap<&'static str, Vec<RowChange>> = BTreeMap::new();
    for change in changes {
        by_table.entry(change.table()).or_default().push(change);
    }
    by_table.retain(|name, _| shared.schema_tables().any(|known| known == *name));
    let mut mutations = Vec::new();
    for (name, changes) in by_table {
        let table = shared.schema_table(name)?.schema();
        let mut partitions: BTreeMap<String, PartitionUpdate> = BTreeMap::new();
        for change in changes {
            let update = partitions.entry(change.keyspace().to_owned()).or_default();
            match change {
                RowChange::Put(row) => update.rows.push(row_of(&table, row, change_micros, now_secs)),
                RowChange::Delete { clustering, .. } => update.rows.push(Row {
                    deletion,
                    ..Row::empty(Clustering::of(clustering))
                }),
                RowChange::DeletePartition { .. } => update.deletion = Some(deletion),
            }
        }
        let partitioner = table.partitioner(shared.options.partitioner);
        let comparator = ilion_rows::ClusteringComparator::of(&table);
        mutations.extend(partitions.into_iter().map(|(keyspace, mut update)| {
            let compare = |a: &Row, b: &Row| comparator.compare(&a.clustering, &b.clustering);
            update.rows.sort_by(compare);
            Mutation {
                key: DecoratedKey::new(partitioner, Bytes::from(keyspace)),
                table: table.clone(),
                update,
            }
        }));
    }
    Ok(mutations)
}

fn row_of(table: &TableSchema, row: SchemaRow, change_micros: i64, now_secs: u32) -> Row {
    let mut columns: Vec<ColumnData> = row
        .cells
        .into_iter()
        .filter_map(|(name, value)| {
            let cell = match value {
                Some(value) => Cell::live(change_micros, value),
                None => Cell::tombstone(change_micros, now_secs),
            };
            Some(ColumnData {
                column: table.column_named(name)?.id,
                data: Data::Simple(cell),
            })
        })
        .collect();
    columns.sort_by_key(|data| data.column);
    Row {
        liveness: Liveness::live(change_micros),
        columns,
        ..Row::empty(Clustering::of(row.clustering))
    }
}
