//! The schema in `system_schema`: read at the start, written by every change.
//!
//! A change is one log record of kind `Schema`, applied to the tables of `system_schema` like any other write and synced
//! before anybody hears of it; then the engine adopts the new schema. A replay does the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use ilion_commitlog::Kind;
use ilion_rows::{
    Cell, Clustering, ClusteringFilter, ColumnData, Cursor, Data, DecoratedKey, DeletionTime, KeyRange,
    Liveness, Mutation, PartitionUpdate, ReadPurge, Row, Unfiltered,
};
use ilion_schema::rows::{SCHEMA_TABLES, schema_column_named};
use ilion_schema::{
    Applied, RowChange, Schema, SchemaChange, SchemaRow, TableId, TableKind, TableSchema, encode_keyspace,
};

use crate::engine::Shared;
use crate::{Engine, Error, Result};

const KEYSPACE: &str = "system_schema";

impl Engine {
    /// Changes the schema: checks the change, makes it durable, and makes or drops the tables. Nothing means that nothing
    /// changed, by the statement's `IF`.
    ///
    /// # Errors
    /// The rules do not allow it, or writes are refused: nothing was changed then.
    pub fn alter_schema(&self, change: &SchemaChange) -> Result<Option<Applied>> {
        let shared = &self.shared;
        let _guard = shared.schema_change.lock();
        shared.check_writable()?;
        let old = self.schema();
        let now_micros = shared.env.unique_micros();
        let applied = old.apply(change, now_micros)?;
        if applied.diffs.is_empty() {
            return Ok(None);
        }
        let changes = ilion_schema::row_changes(&old, &applied.schema);
        let mut mutations = mutations_of(shared, changes, now_micros)?;
        mutations.extend(shared.forget_built(&old, &applied.schema)?);
        shared.write(Kind::Schema, &mutations)?;
        shared.log()?.sync()?;
        shared.adopt(&applied.schema)?;
        shared.build_new()?;
        Ok(Some(applied))
    }

    /// Writes what `system_schema` lacks of the keyspaces that the server brings along, as drivers want to read it.
    pub(crate) fn store_own_keyspaces(&self) -> Result<()> {
        let shared = &self.shared;
        let stored = shared.read_schema_rows()?;
        let schema = self.schema();
        let is_stored = |table: &&Arc<TableSchema>| table.kind != TableKind::Virtual;
        let mut missing = Vec::new();
        for keyspace in schema.keyspaces.values() {
            if ilion_schema::is_system_keyspace(&keyspace.name)
                && keyspace.tables.values().any(|t| is_stored(&t))
            {
                let rows = encode_keyspace(keyspace).into_iter();
                missing.extend(rows.filter(|row| !stored.iter().any(|stored| stored.says_the_same(row))));
            }
        }
        let now_micros = shared.env.unique_micros();
        let changes = missing.into_iter().map(RowChange::Put).collect();
        for mutation in mutations_of(shared, changes, now_micros)? {
            shared.write(Kind::Schema, std::slice::from_ref(&mutation))?;
        }
        Ok(())
    }
}

impl Shared {
    /// Makes and drops tables, then shows the schema to everybody.
    fn adopt(&self, schema: &Schema) -> Result<()> {
        let known = self.tables.load_full();
        self.adopt_tables(schema)?;
        let tables = self.tables.load();
        for store in tables.values().filter(|store| !known.contains_key(&store.id)) {
            self.env.create_dir_all(store.directory())?;
        }
        for store in tables.values() {
            let indexes = store.indexes();
            let mut hidden = indexes
                .hidden()
                .filter(|hidden| !self.env.exists(hidden.directory()));
            hidden.try_for_each(|hidden| self.env.create_dir_all(hidden.directory()))?;
        }
        self.schema.store(Arc::new(schema.clone()));
        Ok(())
    }

    /// The schema that `system_schema` holds now, with the server's own keyspaces.
    pub(crate) fn load_schema(&self) -> Result<Schema> {
        Ok(Schema::from_rows(self.release, self.read_schema_rows()?)?)
    }

    /// The same in the middle of a replay, when tables of `system_schema` may stand at different moments: some were
    /// flushed with a change that the log comes to later. What does not decode is either dropped by such a change, or made by
    /// one that the replay has not come to, so it is left out for now.
    pub(crate) fn load_schema_in_part(&self) -> Result<Schema> {
        Ok(Schema::from_rows_in_part(self.release, self.read_schema_rows()?).0)
    }

    /// The tables of `system_schema` that the release has.
    fn schema_tables(&self) -> impl Iterator<Item = &'static str> {
        let schema = self.schema.load_full();
        SCHEMA_TABLES
            .into_iter()
            .filter(move |name| schema.table(KEYSPACE, name).is_some())
    }

    fn read_schema_rows(&self) -> Result<Vec<SchemaRow>> {
        let mut rows = Vec::new();
        for name in self.schema_tables() {
            let store = self.table(TableId::of_system_table(KEYSPACE, name));
            // A schema of our own making has all of them.
            let store = store.ok_or_else(|| Error::Refused(format!("{KEYSPACE}.{name} is not there")))?;
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
    while let Some(head) = cursor.next_partition()? {
        let keyspace = String::from_utf8_lossy(&head.key.key).into_owned();
        // The partition of `keyspaces` is its one row.
        while let Some(unfiltered) = cursor.next_unfiltered()? {
            if let Unfiltered::Row(row) = unfiltered {
                rows.push(SchemaRow {
                    table: name,
                    keyspace: keyspace.clone(),
                    clustering: row.clustering.values().iter().flatten().cloned().collect(),
                    cells: cells_of(name, table, &row),
                });
            }
        }
    }
    Ok(())
}

/// Every regular column of the table, null where the row has none.
fn cells_of(name: &str, table: &TableSchema, row: &Row) -> Vec<(&'static str, Option<Bytes>)> {
    table
        .regulars()
        .filter_map(|column| {
            let value = match row.column(column.id) {
                Some(Data::Simple(cell)) => Some(cell.value.clone()),
                _ => None,
            };
            Some((schema_column_named(name, &column.name)?, value))
        })
        .collect()
}

/// One mutation per partition.
fn mutations_of(shared: &Shared, changes: Vec<RowChange>, now_micros: i64) -> Result<Vec<Mutation>> {
    let mut partitions: BTreeMap<(&'static str, String), Mutation> = BTreeMap::new();
    let now_secs = u32::try_from(now_micros / 1_000_000).unwrap_or(u32::MAX);
    // What a change deletes is older than what it puts: never equal, so that a deletion hides nothing new.
    let deletion = DeletionTime::new(now_micros - 1, now_secs);
    let known: Vec<&str> = shared.schema_tables().collect();
    let is_known = |change: &RowChange| match change {
        RowChange::Put(row) => known.contains(&row.table),
        RowChange::Delete { table, .. } | RowChange::DeletePartition { table, .. } => known.contains(table),
    };
    // What an older release has no table for is refused before it comes here.
    for change in changes.into_iter().filter(is_known) {
        let (name, keyspace) = match &change {
            RowChange::Put(row) => (row.table, row.keyspace.clone()),
            RowChange::Delete { table, keyspace, .. } | RowChange::DeletePartition { table, keyspace } => {
                (*table, keyspace.clone())
            }
        };
        let store = shared
            .table(TableId::of_system_table(KEYSPACE, name))
            .ok_or_else(|| Error::Refused(format!("{KEYSPACE}.{name} is not there")))?;
        let table = store.schema();
        let mutation = partitions
            .entry((name, keyspace))
            .or_insert_with_key(|(_, keyspace)| Mutation {
                key: DecoratedKey::new(
                    table.partitioner(shared.options.partitioner),
                    Bytes::from(keyspace.clone()),
                ),
                table: table.clone(),
                update: PartitionUpdate::default(),
            });
        match change {
            RowChange::Put(row) => mutation
                .update
                .rows
                .push(row_of(&table, row, now_micros, now_secs)),
            RowChange::Delete { clustering, .. } => mutation.update.rows.push(Row {
                deletion,
                ..Row::empty(Clustering::of(clustering))
            }),
            RowChange::DeletePartition { .. } => mutation.update.deletion = Some(deletion),
        }
    }
    let mut mutations: Vec<Mutation> = partitions.into_values().collect();
    for mutation in &mut mutations {
        let comparator = ilion_rows::ClusteringComparator::of(&mutation.table);
        mutation
            .update
            .rows
            .sort_by(|a, b| comparator.compare(&a.clustering, &b.clustering));
    }
    Ok(mutations)
}

fn row_of(table: &TableSchema, row: SchemaRow, now_micros: i64, now_secs: u32) -> Row {
    let mut columns: Vec<ColumnData> = row
        .cells
        .into_iter()
        .filter_map(|(name, value)| {
            let cell = match value {
                Some(value) => Cell::live(now_micros, value),
                None => Cell::tombstone(now_micros, now_secs),
            };
            Some(ColumnData {
                column: table.column_named(name)?.id,
                data: Data::Simple(cell),
            })
        })
        .collect();
    columns.sort_by_key(|data| data.column);
    Row {
        liveness: Liveness::live(now_micros),
        columns,
        ..Row::empty(Clustering::of(row.clustering))
    }
}
