//! The entries that a change of a row adds and removes.

use std::borrow::Cow;
use std::collections::HashMap;

use bytes::Bytes;
use ilion_rows::{
    Cell, CellRef, Clustering, Data, DecoratedKey, DeletionTime, Entry, EntryPlace, Liveness, Mutation,
    NO_DELETION_TIME, PartitionUpdate, Row,
};
use ilion_types::{decode_composite, encode_composite};
use smallvec::SmallVec;

use super::TableIndex;
use super::source::Source;
use crate::{EntryMark, RowChange, When};

/// A cell with its path, which is empty for a simple column.
type Pathed<'r> = (&'r Bytes, &'r Cell);

/// The clustering of an entry.
type EntryClustering<'r> = SmallVec<[Option<&'r [u8]>; 4]>;

/// Called with entries.
type Take<'t> = &'t mut dyn FnMut(&EntryPlace<'_>, &[Entry<'_>]);

/// The path of the cell of a simple column.
static NO_PATH: Bytes = Bytes::new();

/// True if the cell is live. Reads the clock only if the cell expires.
fn is_live(cell: CellRef<'_>, when: &dyn When) -> bool {
    cell.local_deletion_secs == NO_DELETION_TIME || (!cell.is_tombstone() && cell.is_live(when.now_secs()))
}

/// The liveness of a cell's entry: the timestamp and TTL of the cell.
fn liveness_of(cell: CellRef<'_>) -> Liveness {
    Liveness {
        timestamp_micros: cell.timestamp_micros,
        ttl_secs: cell.ttl_secs,
        expires_secs: cell.local_deletion_secs,
    }
}

impl TableIndex {
    pub(super) fn entries_of(
        &self,
        key: &DecoratedKey,
        change: RowChange<'_>,
        when: &dyn When,
        take: Take<'_>,
    ) {
        let after = change.after;
        if self.source.is_of_rows() {
            return self.entry_of_row(key, after, when, take);
        }
        if !self.definition.looks_at(after) {
            return;
        }
        if self.source == Source::Whole {
            let old = change.cell_before(self.definition.column.id);
            return self.entries_of_cell(key, old, after, when, take);
        }
        let before = change.row_before();
        let old = before.as_deref().map(|row| self.cells(row)).unwrap_or_default();
        let new = self.cells(after);
        let (old_by_path, new_by_path) = (ByPath::of(&old), ByPath::of(&new));
        for (path, cell) in &new {
            let before = old_by_path.find(path).filter(|old| is_live((*old).into(), when));
            if before != Some(*cell) && is_live((*cell).into(), when) {
                let is_first = before.is_none_or(|before| !self.has_same_value(before, cell));
                self.add_cell(key, after, (path, (*cell).into()), is_first, take);
            }
        }
        for (path, cell) in &old {
            let follower = new_by_path.find(path).filter(|new| is_live((*new).into(), when));
            let is_same = follower.is_some_and(|new| self.has_same_value(new, cell));
            if is_live((*cell).into(), when) && !is_same {
                self.remove_cell(key, after, (path, (*cell).into()), when, take);
            }
        }
    }

    /// Adds the entry of a row whose key is indexed.
    fn entry_of_row(&self, key: &DecoratedKey, row: &Row, when: &dyn When, take: Take<'_>) {
        let is_live = || match row.liveness.ttl_secs == ilion_rows::NO_TTL && !row.liveness.is_none() {
            true => true,
            false => row.is_live(when.now_secs()),
        };
        if !self.indexes_row(row) || !is_live() {
            return;
        }
        if let Some(value) = self.row_value(&key.key, &row.clustering) {
            let liveness = Liveness::live(when.entry_micros());
            self.pass(key, row, &[], &[Entry::added(value, liveness)], take);
        }
    }

    /// Adds and removes the entries of a change of a simple column's cell.
    fn entries_of_cell(
        &self,
        key: &DecoratedKey,
        old: Option<CellRef<'_>>,
        row: &Row,
        when: &dyn When,
        take: Take<'_>,
    ) {
        let fits = |cell: &CellRef<'_>| cell.value.len() < super::VALUE_LEN_LIMIT;
        let new = row.cell(self.definition.column.id);
        let [old, new] = [old, new].map(|cell| cell.filter(|cell| is_live(*cell, when)));
        let added = new.filter(|new| Some(*new) != old).filter(fits);
        let added = added.map(|cell| Entry {
            is_first: old.is_none_or(|old| old.value != cell.value),
            ..Entry::added(cell.value, liveness_of(cell))
        });
        let gone = old.filter(|cell| new.is_none_or(|new| new.value != cell.value));
        let removed = gone.filter(fits).map(|cell| {
            let deletion = DeletionTime::new(cell.timestamp_micros, when.now_secs());
            Entry::removed(cell.value, deletion)
        });
        match (added, removed) {
            (None, None) => {}
            (Some(only), None) | (None, Some(only)) => self.pass(key, row, &[], &[only], take),
            (Some(added), Some(removed)) => self.pass(key, row, &[], &[added, removed], take),
        }
    }

    fn add_cell(
        &self,
        key: &DecoratedKey,
        row: &Row,
        (path, cell): (&[u8], CellRef<'_>),
        is_first: bool,
        take: Take<'_>,
    ) {
        if let Some(value) = self.cell_value(path, cell) {
            let entry = Entry {
                is_first,
                ..Entry::added(&value, liveness_of(cell))
            };
            self.pass(key, row, path, &[entry], take);
        }
    }

    fn remove_cell(
        &self,
        key: &DecoratedKey,
        row: &Row,
        (path, cell): (&[u8], CellRef<'_>),
        when: &dyn When,
        take: Take<'_>,
    ) {
        if let Some(value) = self.cell_value(path, cell) {
            let deletion = DeletionTime::new(cell.timestamp_micros, when.now_secs());
            self.pass(key, row, path, &[Entry::removed(&value, deletion)], take);
        }
    }

    /// Passes entries of a row, or of one element of it, to `take`.
    fn pass(&self, key: &DecoratedKey, row: &Row, path: &[u8], entries: &[Entry<'_>], take: Take<'_>) {
        let place = EntryPlace {
            key_token: &key.token,
            clustering: &self.entry_clustering(key, &row.clustering, path),
        };
        take(&place, entries);
    }

    /// True if a key column is indexed, and this kind of row has entries.
    fn indexes_row(&self, row: &Row) -> bool {
        let is_static = row.clustering.is_empty() && self.definition.table.clustering().len() > 0;
        !is_static || matches!(self.source, Source::PartitionKey(_))
    }

    /// The indexed value of a key column.
    fn row_value<'r>(&self, key: &'r [u8], clustering: &'r Clustering) -> Option<&'r [u8]> {
        match self.source {
            Source::PartitionKey(position) => decode_composite(key).ok()?.get(position).copied(),
            Source::Clustering(position) => clustering.values().get(position)?.as_deref(),
            _ => None,
        }
    }

    /// The cells of the indexed column.
    fn cells<'r>(&self, row: &'r Row) -> SmallVec<[Pathed<'r>; 1]> {
        match row.column(self.definition.column.id) {
            None => SmallVec::new(),
            Some(Data::Simple(cell)) => SmallVec::from_buf([(&NO_PATH, cell)]),
            Some(Data::Complex(complex)) => complex.cells.iter().map(|(path, cell)| (path, cell)).collect(),
        }
    }

    /// True if two cells of one path have the same entry.
    fn has_same_value(&self, a: &Cell, b: &Cell) -> bool {
        self.source == Source::Paths || a.value == b.value
    }

    /// The indexed value of a cell; `None` if it is too long for a key. Only values that were written before the index existed
    /// can be that long.
    fn cell_value<'r>(&self, path: &'r [u8], cell: CellRef<'r>) -> Option<Cow<'r, [u8]>> {
        let value = match self.source {
            Source::Paths => Cow::Borrowed(path),
            Source::Entries => {
                let mut composite = Vec::with_capacity(path.len() + cell.value.len() + 6);
                encode_composite([path, cell.value], &mut composite).ok()?;
                Cow::Owned(composite)
            }
            _ => Cow::Borrowed(cell.value),
        };
        (value.len() < super::VALUE_LEN_LIMIT).then_some(value)
    }

    /// The clustering of an entry. Compat: for a static row, only the partition key is known. The path of an element is stored even then;
    /// Cassandra leaves it out and does not read it. So, unlike there, elements with the same value do not share an entry.
    fn entry_clustering<'r>(
        &self,
        key: &'r DecoratedKey,
        row: &'r Clustering,
        path: &'r [u8],
    ) -> EntryClustering<'r> {
        let mut values = EntryClustering::new();
        values.push(Some(&key.key));
        for (position, _) in self.definition.table.clustering().enumerate() {
            if self.source != Source::Clustering(position) {
                values.push(row.values().get(position).and_then(Option::as_deref));
            }
        }
        if self.source == Source::Elements {
            values.push(Some(path));
        }
        values
    }

    pub(super) fn removal_of(&self, entry: &EntryMark, now_secs: u32) -> Mutation {
        let row = Row {
            deletion: DeletionTime::new(entry.timestamp_micros, now_secs),
            ..Row::empty(entry.clustering.clone())
        };
        Mutation {
            table: self.hidden.clone(),
            key: entry.value.clone(),
            update: PartitionUpdate {
                rows: vec![row],
                ..PartitionUpdate::default()
            },
        }
    }

    /// The length of the longest indexed value in a mutation.
    pub(super) fn longest_value(&self, mutation: &Mutation) -> usize {
        let update = &mutation.update;
        if self.source == Source::Whole {
            // A loop instead of iterators, since this runs for each write.
            let len_of = |row: &Row| {
                let cell = row.cell(self.definition.column.id);
                cell.map_or(0, |cell| cell.value.len())
            };
            let mut longest = update.static_row.as_ref().map_or(0, len_of);
            for row in &update.rows {
                longest = longest.max(len_of(row));
            }
            return longest;
        }
        let mut longest = 0;
        self.each_value(&mutation.key, update, &mut |value| {
            longest = longest.max(value.len())
        });
        longest
    }

    /// Calls `show` with every indexed value of an update, except whole values of cells.
    fn each_value(&self, key: &DecoratedKey, update: &PartitionUpdate, show: &mut dyn FnMut(&[u8])) {
        for row in update.rows.iter().chain(&update.static_row) {
            if self.source.is_of_rows() {
                if let Some(value) = self.row_value(&key.key, &row.clustering) {
                    show(value);
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

/// Finds cells by their paths, without scanning a large collection each time.
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
