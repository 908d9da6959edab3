//! Tables that are computed when they are read (`system_views`, `system_virtual_schema`).
//!
//! For each read, the rows are written to a memtable, which is read like any other. So order, slices and paging work, and one page
//! shows one moment.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use ilion_memtable::Memtable;
use ilion_rows::{
    Cell, Clustering, ClusteringFilter, ColumnData, ComplexColumn, Cursor, Data, DecoratedKey, DeletionTime,
    KeyRange, Liveness, Mutation, PartitionUpdate, Row,
};
use ilion_schema::{TableId, TableKind, TableSchema};
use ilion_types::{CqlType, Partitioner, collection_elements, encode_composite};
use parking_lot::RwLock;

use crate::{Error, Result};

/// Computes the rows of a virtual table.
pub trait VirtualTable: Send + Sync {
    /// All current rows, in any order.
    fn rows(&self) -> Vec<VirtualRow>;

    /// Whether TRUNCATE is possible.
    fn is_clearable(&self) -> bool {
        false
    }

    /// Resets the counts of the table (TRUNCATE); false if that is not possible.
    fn clear(&self) -> bool {
        false
    }

    /// Whether UPDATE is possible; the table then has one column in its key, and no clustering columns.
    fn is_settable(&self) -> bool {
        false
    }

    /// Sets columns of the row with this key (UPDATE); `None` is null.
    ///
    /// # Errors
    /// The row cannot have these values; the text is the reason. The table is unchanged then.
    fn set(&self, _key: &[u8], _cells: &[(String, Option<Bytes>)]) -> std::result::Result<(), String> {
        Err("it cannot be updated".to_owned())
    }
}

/// One row of a virtual table, with serialized values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VirtualRow {
    /// Values of the partition key columns.
    pub partition_key: Vec<Bytes>,
    /// Values of the clustering columns.
    pub clustering: Vec<Bytes>,
    /// Other columns by name; `None` is null. A set that is not frozen is serialized like a frozen one; other collections must be frozen.
    pub cells: Vec<(String, Option<Bytes>)>,
}

#[derive(Default)]
pub(crate) struct VirtualTables {
    by_id: RwLock<HashMap<TableId, Arc<dyn VirtualTable>>>,
}

/// The rows of one moment.
pub(crate) struct Computed(Arc<Memtable>);

impl VirtualTables {
    pub(crate) fn register(&self, id: TableId, table: Arc<dyn VirtualTable>) {
        self.by_id.write().insert(id, table);
    }

    /// The table if it can be updated.
    pub(crate) fn settable(&self, id: TableId) -> Option<Arc<dyn VirtualTable>> {
        self.provider(id).filter(|table| table.is_settable())
    }

    pub(crate) fn provider(&self, id: TableId) -> Option<Arc<dyn VirtualTable>> {
        self.by_id.read().get(&id).cloned()
    }

    /// Computes the table; `None` if its rows are stored. A virtual table that is not registered is empty. A registered table of `system`
    /// is computed, and its stored data is ignored.
    pub(crate) fn open(&self, table: &Arc<TableSchema>) -> Option<Result<Computed>> {
        let is_virtual = table.kind == TableKind::Virtual;
        if !is_virtual && table.keyspace != "system" {
            return None;
        }
        let rows = match self.provider(table.id) {
            Some(provider) => provider.rows(),
            None if is_virtual => Vec::new(),
            None => return None,
        };
        let memtable = Memtable::new(table.clone(), 1);
        for row in rows {
            match mutation_of(table, row) {
                Ok(mutation) => memtable.apply(&mutation),
                Err(error) => return Some(Err(error)),
            };
        }
        Some(Ok(Computed(Arc::new(memtable))))
    }
}

/// Passes the values of the mutation to a table that can be updated.
pub(crate) fn update(provider: &dyn VirtualTable, mutation: &Mutation) -> Result<()> {
    let table = &mutation.table;
    let mut cells = Vec::new();
    for data in mutation.update.rows.iter().flat_map(|row| &row.columns) {
        if let (Some(column), Data::Simple(cell)) = (table.column(data.column), &data.data) {
            let value = (!cell.is_tombstone()).then(|| cell.value.clone());
            cells.push((column.name.clone(), value));
        }
    }
    provider.set(&mutation.key.key, &cells).map_err(Error::Refused)
}

impl Computed {
    pub(crate) fn cursor(&self, range: &KeyRange, filter: &ClusteringFilter) -> Box<dyn Cursor> {
        Box::new(self.0.cursor(range.clone(), Arc::new(filter.clone())))
    }
}

/// The timestamp of virtual rows, as WRITETIME returns it.
const WRITTEN_MICROS: i64 = 1;

/// The cells of a set, in the order of the elements' bytes, which is right for texts.
fn set_of(bytes: &Bytes) -> std::result::Result<ComplexColumn, ilion_types::Error> {
    let elements = collection_elements(bytes)?;
    let mut paths = elements
        .map(|element| element.map(|element| bytes.slice_ref(element)))
        .collect::<std::result::Result<Vec<Bytes>, _>>()?;
    paths.sort_unstable();
    let cells = paths.into_iter();
    Ok(ComplexColumn {
        deletion: DeletionTime::LIVE,
        cells: cells
            .map(|path| (path, Cell::live(WRITTEN_MICROS, Bytes::new())))
            .collect(),
    })
}

fn mutation_of(table: &Arc<TableSchema>, row: VirtualRow) -> Result<Mutation> {
    let refuse = |what: &str| Error::Refused(format!("{}.{}: {what}", table.keyspace, table.name));
    let key = match <[Bytes; 1]>::try_from(row.partition_key) {
        Ok([key]) => key,
        Err(parts) => {
            let mut key = Vec::new();
            encode_composite(parts.iter().map(Bytes::as_ref), &mut key)
                .map_err(|error| refuse(&error.to_string()))?;
            key.into()
        }
    };
    let mut columns = Vec::with_capacity(row.cells.len());
    for (name, value) in row.cells {
        let column = table
            .column_named(&name)
            .ok_or_else(|| refuse(&format!("no column {name}")))?;
        let Some(value) = value else {
            continue;
        };
        let data = match (&column.ty, column.is_complex()) {
            (_, false) => Data::Simple(Cell::live(WRITTEN_MICROS, value)),
            (CqlType::Set { .. }, true) => {
                let set = set_of(&value).map_err(|error| refuse(&format!("{name}: {error}")))?;
                Data::Complex(Box::new(set))
            }
            (_, true) => return Err(refuse(&format!("{name} is a collection that is not frozen"))),
        };
        columns.push(ColumnData {
            column: column.id,
            data,
        });
    }
    columns.sort_by_key(|data| data.column);
    let row = Row {
        liveness: Liveness::live(WRITTEN_MICROS),
        columns,
        ..Row::empty(Clustering::of(row.clustering))
    };
    Ok(Mutation {
        table: table.clone(),
        key: DecoratedKey::new(table.partitioner(Partitioner::default()), key),
        update: PartitionUpdate {
            rows: vec![row],
            ..PartitionUpdate::default()
        },
    })
}
