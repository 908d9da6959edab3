//! Entries that a changed row adds and removes.

use std::collections::HashMap;

use bytes::Bytes;
use ilion_rows::{
    Cell, Clustering, Data, DecoratedKey, DeletionTime, Liveness, Mutation, PartitionUpdate, Row, Values,
};
use ilion_types::{decode_composite, encode_composite};

use super::TableIndex;
use super::source::Source;
use crate::{EntryMark, Moment, RowChange};

/// A cell with its path, which is empty if the column has one cell.
type Pathed<'r> = (&'r Bytes, &'r Cell);

/// The path of a column of one cell.
static NO_PATH: Bytes = Bytes::new();

impl TableIndex {
    pub(super) fn entries_of(
        &self,
        key: &DecoratedKey,
        change: RowChange<'_>,
        moment: Moment,
        out: &mut Vec<Mutation>,
    ) {
        let now_secs = moment.now_secs;
        if self.source.is_of_rows() {
            if self.indexes_row(change.after) && change.after.is_live(now_secs) {
                let clustering = self.entry_clustering(key, &change.after.clustering, &NO_PATH);
                let value = self.row_value(&key.key, &change.after.clustering);
                out.extend(
                    value.map(|value| self.addition(value, clustering, Liveness::live(moment.entry_micros))),
                );
            }
            return;
        }
        if !self.definition.looks_at(change.after) {
            return;
        }
        let old = change.before.map(|row| self.cells(row)).unwrap_or_default();
        let new = self.cells(change.after);
        let (old_by_path, new_by_path) = (ByPath::of(&old), ByPath::of(&new));
        for (path, cell) in &new {
            let known = old_by_path.find(path);
            if known != Some(*cell) && cell.is_live(now_secs) {
                out.extend(self.entry_of_cell(key, change.after, path, cell));
            }
        }
        for (path, cell) in &old {
            let follower = new_by_path.find(path).filter(|new| new.is_live(now_secs));
            let is_same = follower.is_some_and(|new| self.has_same_value(new, cell));
            if cell.is_live(now_secs) && !is_same {
                out.extend(self.removal_of_cell(key, change.after, path, cell, now_secs));
            }
        }
    }

    /// True if rows like this one have entries by their key.
    fn indexes_row(&self, row: &Row) -> bool {
        let is_static = row.clustering.is_empty() && self.definition.table.clustering().len() > 0;
        !is_static || matches!(self.source, Source::PartitionKey(_))
    }

    /// The value that a key column gives a row.
    fn row_value(&self, key: &Bytes, clustering: &Clustering) -> Option<Bytes> {
        match self.source {
            Source::PartitionKey(position) => {
                let component = *decode_composite(key).ok()?.get(position)?;
                Some(key.slice_ref(component))
            }
            Source::Clustering(position) => clustering.values().get(position)?.clone(),
            _ => None,
        }
    }

    /// The cells of the indexed column.
    fn cells<'r>(&self, row: &'r Row) -> Vec<Pathed<'r>> {
        match row.column(self.definition.column.id) {
            None => Vec::new(),
            Some(Data::Simple(cell)) => vec![(&NO_PATH, cell)],
            Some(Data::Complex(complex)) => complex.cells.iter().map(|(path, cell)| (path, cell)).collect(),
        }
    }

    /// True if two cells of one path have the same entry.
    fn has_same_value(&self, a: &Cell, b: &Cell) -> bool {
        self.source == Source::Paths || a.value == b.value
    }

    /// The value that a cell is found by; nothing if it is too long for a key, which only values can be that were there before
    /// the index.
    fn cell_value(&self, path: &Bytes, cell: &Cell) -> Option<Bytes> {
        let value = match self.source {
            Source::Paths => path.clone(),
            Source::Entries => {
                let mut composite = Vec::with_capacity(path.len() + cell.value.len() + 6);
                encode_composite([&path[..], &cell.value[..]], &mut composite).ok()?;
                composite.into()
            }
            _ => cell.value.clone(),
        };
        (value.len() < super::VALUE_LEN_LIMIT).then_some(value)
    }

    fn entry_of_cell(&self, key: &DecoratedKey, row: &Row, path: &Bytes, cell: &Cell) -> Option<Mutation> {
        let liveness = Liveness {
            timestamp_micros: cell.timestamp_micros,
            ttl_secs: cell.ttl_secs,
            expires_secs: cell.local_deletion_secs,
        };
        let clustering = self.entry_clustering(key, &row.clustering, path);
        Some(self.addition(self.cell_value(path, cell)?, clustering, liveness))
    }

    fn removal_of_cell(
        &self,
        key: &DecoratedKey,
        row: &Row,
        path: &Bytes,
        cell: &Cell,
        now_secs: u32,
    ) -> Option<Mutation> {
        let mark = EntryMark {
            value: self.value_key(self.cell_value(path, cell)?),
            clustering: self.entry_clustering(key, &row.clustering, path),
            timestamp_micros: cell.timestamp_micros,
            is_expiring: cell.is_expiring(),
        };
        Some(self.removal_of(&mark, now_secs))
    }

    /// Compat: of a static row only the partition key is known. The path of an element is there all the same, which
    /// Cassandra leaves out and does not look at: so elements with the same value do not share an entry.
    fn entry_clustering(&self, key: &DecoratedKey, row: &Clustering, path: &Bytes) -> Clustering {
        let mut values: Values = Values::new();
        values.push(Some(key.key.clone()));
        for (position, _) in self.definition.table.clustering().enumerate() {
            if self.source != Source::Clustering(position) {
                values.push(row.values().get(position).cloned().flatten());
            }
        }
        if self.source == Source::Elements {
            values.push(Some(path.clone()));
        }
        Clustering::new(values)
    }

    fn addition(&self, value: Bytes, clustering: Clustering, liveness: Liveness) -> Mutation {
        let row = Row {
            liveness,
            ..Row::empty(clustering)
        };
        self.mutation(self.value_key(value), row)
    }

    pub(super) fn removal_of(&self, entry: &EntryMark, now_secs: u32) -> Mutation {
        let row = Row {
            deletion: DeletionTime::new(entry.timestamp_micros, now_secs),
            ..Row::empty(entry.clustering.clone())
        };
        self.mutation(entry.value.clone(), row)
    }

    fn mutation(&self, key: DecoratedKey, row: Row) -> Mutation {
        Mutation {
            table: self.hidden.clone(),
            key,
            update: PartitionUpdate {
                rows: vec![row],
                ..PartitionUpdate::default()
            },
        }
    }

    /// Shows every value that an update brings.
    pub(super) fn each_value(
        &self,
        key: &DecoratedKey,
        update: &PartitionUpdate,
        show: &mut dyn FnMut(&[u8]),
    ) {
        for row in update.rows.iter().chain(&update.static_row) {
            if self.source.is_of_rows() {
                if let Some(value) = self.row_value(&key.key, &row.clustering) {
                    show(&value);
                }
            } else if self.definition.looks_at(row) {
                for (path, cell) in self.cells(row) {
                    match self.source {
                        Source::Paths => show(path),
                        Source::Entries => {
                            show(path);
                            show(&cell.value);
                        }
                        _ => show(&cell.value),
                    }
                }
            }
        }
    }
}

/// Finds cells by their paths, without a walk over all of a large collection for each.
enum ByPath<'c, 'r> {
    Few(&'c [Pathed<'r>]),
    Many(HashMap<&'r Bytes, &'r Cell>),
}

impl<'c, 'r> ByPath<'c, 'r> {
    fn of(cells: &'c [Pathed<'r>]) -> Self {
        match cells.len() {
            0..=16 => Self::Few(cells),
            _ => Self::Many(cells.iter().copied().collect()),
        }
    }

    fn find(&self, path: &Bytes) -> Option<&'r Cell> {
        match self {
            Self::Few(cells) => cells
                .iter()
                .find(|(known, _)| *known == path)
                .map(|(_, cell)| *cell),
            Self::Many(cells) => cells.get(path).copied(),
        }
    }
}
