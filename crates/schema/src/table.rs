//! A table: its columns, in the orders that the engine needs.
//!
//! A [`ColumnId`] identifies a column of a table while the process runs: ALTER ADD takes the next number, and the number of a
//! dropped column is not reused. Rows in memory have ids; files and the commit log have names.
//!
//! Invariant: `statics` and `regulars` are in Cassandra's storage order (simple columns by name bytes, then
//! multi-cell columns by name bytes; `org.apache.cassandra.db.Columns`).

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

use ilion_types::{CqlType, KeyOrder, Partitioner};
use uuid::Uuid;

use crate::{ColumnMask, TableOptions};

/// The id of a table; the suffix of its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TableId(pub Uuid);

impl std::fmt::Display for TableId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a column in its table, stable while the process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnId(pub u16);

/// The role of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnKind {
    /// Part of the partition key.
    PartitionKey,
    /// Part of the clustering.
    Clustering,
    /// One value per partition.
    Static,
    /// One value per row.
    Regular,
}

impl ColumnKind {
    const ALL: [Self; 4] = [Self::PartitionKey, Self::Clustering, Self::Static, Self::Regular];

    /// The name in the column `kind` of `system_schema.columns`.
    pub fn name(self) -> &'static str {
        match self {
            Self::PartitionKey => "partition_key",
            Self::Clustering => "clustering",
            Self::Static => "static",
            Self::Regular => "regular",
        }
    }

    /// The kind with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Direction of a clustering column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ClusteringOrder {
    /// Ascending by the type's order.
    Asc,
    /// Descending (`ReversedType`).
    Desc,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub id: ColumnId,
    /// Its name, with its case.
    pub name: String,
    /// Its role.
    pub kind: ColumnKind,
    /// Index among the columns of its kind for partition key and clustering, otherwise 0.
    pub position: u16,
    /// The type of its values.
    pub ty: CqlType,
    /// The direction of a clustering column; `Asc` for other columns.
    pub order: ClusteringOrder,
    /// The mask: what roles without UNMASK see instead of its values. `None` if the column is not masked.
    pub mask: Option<Arc<ColumnMask>>,
}

impl Column {
    /// True if a value of the column is stored as several cells.
    pub fn is_complex(&self) -> bool {
        self.ty.is_multi_cell()
    }

    /// The type of the column, and the types of the arguments of its mask.
    pub(crate) fn types(&self) -> impl Iterator<Item = &CqlType> {
        let arguments = self.mask.iter().flat_map(|mask| &mask.arguments);
        [&self.ty]
            .into_iter()
            .chain(arguments.map(|argument| &argument.ty))
    }

    /// True for columns of the primary key.
    pub fn is_primary_key(&self) -> bool {
        matches!(self.kind, ColumnKind::PartitionKey | ColumnKind::Clustering)
    }
}

/// Rounds a time up to a whole millisecond, for [`DroppedColumn::dropped_micros`]. Drop times are stored in milliseconds; a time that is
/// rounded down would keep data that was written just before the drop.
pub fn whole_milli(micros: i64) -> i64 {
    let rest = (1000 - micros.rem_euclid(1000)) % 1000;
    micros.saturating_add(rest)
}

/// A column that was dropped: its old cells in files are skipped up to `dropped_micros`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedColumn {
    /// Its name.
    pub name: String,
    /// `Static` or `Regular`.
    pub kind: ColumnKind,
    /// Its type, with user types expanded to tuples, as Cassandra stores it.
    pub ty: CqlType,
    /// Cells with this timestamp or an older one are dropped.
    pub dropped_micros: i64,
}

/// The kinds of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableKind {
    /// An ordinary table.
    Regular,
    /// A materialized view.
    View,
    /// A table that the server computes when it is read.
    Virtual,
}

/// A table, immutable. Made by [`TableBuilder`].
#[derive(Clone, Debug, PartialEq)]
pub struct TableSchema {
    pub id: TableId,
    /// Keyspace name.
    pub keyspace: String,
    /// Table name.
    pub name: String,
    pub kind: TableKind,
    /// Options (`WITH ...`).
    pub options: TableOptions,
    /// `system_schema.tables.flags`: `compound`, except in compact tables with fewer than two clustering columns; `counter`, `dense`,
    /// `super` if they apply.
    pub flags: Vec<String>,
    /// Dropped columns by name.
    pub dropped: BTreeMap<String, DroppedColumn>,
    pub(crate) columns: Vec<Option<Column>>,
    partition_key: Vec<ColumnId>,
    clustering: Vec<ColumnId>,
    statics: Vec<ColumnId>,
    regulars: Vec<ColumnId>,
    by_name: BTreeMap<String, ColumnId>,
    has_complex: bool,
    has_masks: bool,
    is_local: bool,
    /// The order of partition keys, for hidden tables; `None` for the order of the partitioner.
    pub key_order: Option<KeyOrder>,
    /// True if rows live as long as their primary key, whatever their cells. Set for views with a column in their key that is not in the
    /// base's key (`TableMetadata.enforceStrictLiveness`).
    pub has_strict_liveness: bool,
}

impl TableSchema {
    /// The table's partitioner on a node with partitioner `of_node`. Compat: virtual tables and `system.batches` order by key
    /// on every node (`SystemKeyspace`, `AbstractVirtualTable`).
    #[inline]
    pub fn partitioner(&self, of_node: Partitioner) -> Partitioner {
        match self.key_order {
            Some(order) => Partitioner::Ordered(order),
            None if self.is_local => Partitioner::Local,
            None => of_node,
        }
    }

    /// The column with this id, unless it was dropped.
    #[inline]
    pub fn column(&self, id: ColumnId) -> Option<&Column> {
        self.columns.get(usize::from(id.0)).and_then(Option::as_ref)
    }

    /// The column of this name.
    pub fn column_named(&self, name: &str) -> Option<&Column> {
        self.by_name.get(name).and_then(|id| self.column(*id))
    }

    fn columns_of<'a>(&'a self, ids: &'a [ColumnId]) -> impl ExactSizeIterator<Item = &'a Column> + Clone {
        #[expect(
            clippy::expect_used,
            reason = "the builder lists only ids it has put into `columns`"
        )]
        ids.iter()
            .map(|id| self.column(*id).expect("a listed column exists"))
    }

    /// Partition key columns in key order.
    pub fn partition_key(&self) -> impl ExactSizeIterator<Item = &Column> + Clone {
        self.columns_of(&self.partition_key)
    }

    /// Clustering columns in key order.
    pub fn clustering(&self) -> impl ExactSizeIterator<Item = &Column> + Clone {
        self.columns_of(&self.clustering)
    }

    /// Static columns in storage order.
    pub fn statics(&self) -> impl ExactSizeIterator<Item = &Column> + Clone {
        self.columns_of(&self.statics)
    }

    /// Regular columns in storage order.
    pub fn regulars(&self) -> impl ExactSizeIterator<Item = &Column> + Clone {
        self.columns_of(&self.regulars)
    }

    /// The columns in the order of `SELECT *`: partition key, clustering, statics by name, regulars by name.
    pub fn select_order(&self) -> Vec<&Column> {
        let mut columns = self.every_column();
        columns.retain(|column| !self.is_hidden(column));
        columns
    }

    /// Like [`Self::select_order`], with hidden columns.
    pub fn every_column(&self) -> Vec<&Column> {
        let mut statics: Vec<&Column> = self.statics().collect();
        let mut regulars: Vec<&Column> = self.regulars().collect();
        statics.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
        regulars.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
        self.partition_key()
            .chain(self.clustering())
            .chain(statics)
            .chain(regulars)
            .collect()
    }

    /// The highest column id that was ever used, plus one.
    pub fn column_id_end(&self) -> u16 {
        u16::try_from(self.columns.len()).unwrap_or(u16::MAX)
    }

    /// True if a column is stored as several cells.
    pub fn has_complex(&self) -> bool {
        self.has_complex
    }

    /// True if a column is masked.
    pub fn has_masks(&self) -> bool {
        self.has_masks
    }

    /// True if the table has static columns.
    pub fn has_statics(&self) -> bool {
        !self.statics.is_empty()
    }

    /// True for a table of counters.
    pub fn is_counter(&self) -> bool {
        self.flags.iter().any(|flag| flag == "counter")
    }

    /// The column of this name, unless it is hidden from CQL.
    pub fn shown_named(&self, name: &str) -> Option<&Column> {
        self.column_named(name).filter(|column| !self.is_hidden(column))
    }

    /// True for tables with `COMPACT STORAGE`.
    pub fn is_compact(&self) -> bool {
        let has = |flag: &str| self.flags.iter().any(|known| known == flag);
        has("dense") || has("super") || !has("compound")
    }

    /// True for compact tables without clustering columns in CQL: their row is stored as a static row. They have a clustering column and
    /// a regular column that are hidden.
    pub fn is_static_compact(&self) -> bool {
        let has = |flag: &str| self.flags.iter().any(|known| known == flag);
        !has("dense") && !has("compound") && !has("super")
    }

    /// True for columns that exist only for the layout of a compact table; statements cannot name them.
    pub fn is_hidden(&self, column: &Column) -> bool {
        match column.kind {
            ColumnKind::Clustering => self.is_static_compact(),
            ColumnKind::Regular => {
                self.is_static_compact() || (column.ty == CqlType::Empty && self.is_compact())
            }
            ColumnKind::PartitionKey | ColumnKind::Static => false,
        }
    }

    /// A builder that starts from this table and keeps its column ids.
    pub fn to_builder(&self) -> TableBuilder {
        TableBuilder {
            id: self.id,
            keyspace: self.keyspace.clone(),
            name: self.name.clone(),
            kind: self.kind,
            options: self.options.clone(),
            flags: self.flags.clone(),
            dropped: self.dropped.clone(),
            has_strict_liveness: self.has_strict_liveness,
            key_order: self.key_order,
            columns: self.columns.clone(),
        }
    }
}

/// Collects the columns of a table and orders them. It does not check the rules of CQL (there is a partition key, names are unique,
/// counters are not mixed with other columns); the schema change that uses it does.
#[derive(Clone, Debug)]
pub struct TableBuilder {
    pub id: TableId,
    /// Keyspace name.
    pub keyspace: String,
    /// Table name.
    pub name: String,
    pub kind: TableKind,
    pub options: TableOptions,
    /// Flags as in `system_schema.tables`.
    pub flags: Vec<String>,
    /// Dropped columns by name.
    pub dropped: BTreeMap<String, DroppedColumn>,
    /// See [`TableSchema`].
    pub has_strict_liveness: bool,
    /// See [`TableSchema`].
    pub key_order: Option<KeyOrder>,
    pub(crate) columns: Vec<Option<Column>>,
}

impl TableBuilder {
    /// A table without columns, with default options.
    pub fn new(keyspace: impl Into<String>, name: impl Into<String>, id: TableId) -> Self {
        Self {
            id,
            keyspace: keyspace.into(),
            name: name.into(),
            kind: TableKind::Regular,
            options: TableOptions::default(),
            flags: vec!["compound".to_owned()],
            dropped: BTreeMap::new(),
            has_strict_liveness: false,
            key_order: None,
            columns: Vec::new(),
        }
    }

    /// Appends a partition key column.
    pub fn partition_key(self, name: impl Into<String>, ty: CqlType) -> Self {
        self.add(name.into(), ColumnKind::PartitionKey, ty, ClusteringOrder::Asc)
    }

    /// Appends a clustering column.
    pub fn clustering(self, name: impl Into<String>, ty: CqlType, order: ClusteringOrder) -> Self {
        self.add(name.into(), ColumnKind::Clustering, ty, order)
    }

    /// Adds a static column.
    pub fn static_column(self, name: impl Into<String>, ty: CqlType) -> Self {
        self.add(name.into(), ColumnKind::Static, ty, ClusteringOrder::Asc)
    }

    /// Adds a regular column.
    pub fn regular(self, name: impl Into<String>, ty: CqlType) -> Self {
        self.add(name.into(), ColumnKind::Regular, ty, ClusteringOrder::Asc)
    }

    /// Adds a column of any kind; a key column gets the next position of its kind.
    #[expect(
        clippy::expect_used,
        reason = "guardrail: a table has far fewer than 65535 columns"
    )]
    pub fn add(mut self, name: String, kind: ColumnKind, ty: CqlType, order: ClusteringOrder) -> Self {
        let id = ColumnId(u16::try_from(self.columns.len()).expect("fewer than 65536 columns"));
        let key = matches!(kind, ColumnKind::PartitionKey | ColumnKind::Clustering);
        let same_kind = self
            .columns
            .iter()
            .flatten()
            .filter(|column| column.kind == kind)
            .count();
        let position = if key {
            u16::try_from(same_kind).expect("fewer than 65536 columns")
        } else {
            0
        };
        self.columns.push(Some(Column {
            id,
            name,
            kind,
            position,
            ty,
            order,
            mask: None,
        }));
        self
    }

    /// True if the table has a column of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.columns.iter().flatten().any(|column| column.name == name)
    }

    /// Removes a static or regular column; its id is not reused. The caller adds it to `dropped`.
    pub fn remove(mut self, name: &str) -> Self {
        for slot in &mut self.columns {
            if slot.as_ref().is_some_and(|column| column.name == name) {
                *slot = None;
            }
        }
        self
    }

    /// Renames a column.
    pub fn rename(mut self, from: &str, to: &str) -> Self {
        for column in self
            .columns
            .iter_mut()
            .flatten()
            .filter(|column| column.name == from)
        {
            to.clone_into(&mut column.name);
        }
        self
    }

    /// Sets or removes the mask of a column.
    pub fn mask(mut self, name: &str, mask: Option<Arc<ColumnMask>>) -> Self {
        for column in self
            .columns
            .iter_mut()
            .flatten()
            .filter(|column| column.name == name)
        {
            column.mask.clone_from(&mask);
        }
        self
    }

    /// Changes a column's type (ALTER TYPE of a user type that it uses).
    pub(crate) fn retype(mut self, name: &str, ty: CqlType) -> Self {
        for column in self
            .columns
            .iter_mut()
            .flatten()
            .filter(|column| column.name == name)
        {
            column.ty = ty.clone();
        }
        self
    }

    /// Orders the columns and returns the table.
    pub fn build(self) -> Arc<TableSchema> {
        let ids_of = |kind: ColumnKind| {
            let mut columns: Vec<&Column> = self
                .columns
                .iter()
                .flatten()
                .filter(|column| column.kind == kind)
                .collect();
            columns.sort_by(|a, b| {
                (a.position, a.is_complex(), a.name.as_bytes()).cmp(&(
                    b.position,
                    b.is_complex(),
                    b.name.as_bytes(),
                ))
            });
            columns.iter().map(|column| column.id).collect::<Vec<_>>()
        };
        let by_name = self
            .columns
            .iter()
            .flatten()
            .map(|column| (column.name.clone(), column.id))
            .collect();
        Arc::new(TableSchema {
            partition_key: ids_of(ColumnKind::PartitionKey),
            clustering: ids_of(ColumnKind::Clustering),
            statics: ids_of(ColumnKind::Static),
            regulars: ids_of(ColumnKind::Regular),
            by_name,
            has_complex: self.columns.iter().flatten().any(Column::is_complex),
            has_masks: self.columns.iter().flatten().any(|column| column.mask.is_some()),
            is_local: self.kind == TableKind::Virtual
                || (self.keyspace == "system" && self.name == "batches"),
            id: self.id,
            keyspace: self.keyspace,
            name: self.name,
            kind: self.kind,
            options: self.options,
            flags: self.flags,
            dropped: self.dropped,
            has_strict_liveness: self.has_strict_liveness,
            key_order: self.key_order,
            columns: self.columns,
        })
    }
}

/// The table with the column ids and the order of flags that it would get if a start read it from `system_schema`.
pub(crate) fn normalized(table: &TableSchema) -> Arc<TableSchema> {
    let mut builder = table.to_builder();
    builder.columns.clear();
    builder.flags.sort();
    for column in table.every_column() {
        builder = builder
            .add(column.name.clone(), column.kind, column.ty.clone(), column.order)
            .mask(&column.name, column.mask.clone());
    }
    builder.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_tables_hide_what_only_their_layout_needs() {
        let table = |flags: &[&str], value: CqlType| {
            let mut builder = TableBuilder::new("ks", "t", TableId(uuid::Uuid::nil()))
                .partition_key("k", CqlType::Int)
                .clustering("column1", CqlType::Text, ClusteringOrder::Asc)
                .add(
                    "value".to_owned(),
                    ColumnKind::Regular,
                    value,
                    ClusteringOrder::Asc,
                );
            builder.flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
            builder.static_column("a", CqlType::Int).build()
        };
        let shown = |table: &TableSchema| -> Vec<String> {
            let columns = table.select_order().into_iter();
            columns.map(|column| column.name.clone()).collect()
        };
        assert_eq!(shown(&table(&[], CqlType::Blob)), ["k", "a"]);
        assert_eq!(
            shown(&table(&["dense", "compound"], CqlType::Empty)),
            ["k", "column1", "a"]
        );
        assert_eq!(
            shown(&table(&["compound"], CqlType::Int)),
            ["k", "column1", "a", "value"]
        );
        assert_eq!(table(&[], CqlType::Blob).every_column().len(), 4);
    }
}
