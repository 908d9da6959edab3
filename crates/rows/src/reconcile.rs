//! The laws by which cells, livenesses and rows with the same key are reconciled.
//!
//! Compat: Cassandra 5.0's `Cells.resolveRegular`, `Cells.resolveCounter`, `LivenessInfo.supersedes`, `Row.Merger`. Every law
//! is commutative and associative, so sources can be merged in any order. Where Cassandra's result depends on the order of
//! arguments (cells that differ only in their TTL), the lower TTL wins here: that cell was written later.
//!
//! Not here: order inside a partition and range tombstones (`merge`), dropping dead data (`purge`).

use std::cmp::Ordering;

use bytes::Bytes;
use ilion_schema::{Column, TableSchema};
use ilion_types::CqlType;
use smallvec::SmallVec;

use crate::{
    Cell, ColumnData, ComplexColumn, Data, DeletionTime, Liveness, NO_DELETION_TIME, Row, counter, paths,
};

/// The TTL that marks a removed primary key of a materialized view (`LivenessInfo.EXPIRED_LIVENESS_TTL`).
pub const EXPIRED_LIVENESS_TTL: u32 = i32::MAX.unsigned_abs();

impl Cell {
    /// True if this cell wins over `other`, a cell of the same (non-counter) column and path; false on a full tie.
    #[inline]
    pub fn supersedes(&self, other: &Self) -> bool {
        match self.timestamp_micros.cmp(&other.timestamp_micros) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal => self.wins_tie(other),
        }
    }

    /// The case of equal timestamps. A tombstone or expiring cell beats a cell without an end, independent of the clock.
    fn wins_tie(&self, other: &Self) -> bool {
        let ends = self.local_deletion_secs != NO_DELETION_TIME;
        let other_ends = other.local_deletion_secs != NO_DELETION_TIME;
        if ends != other_ends {
            return ends;
        }
        if ends {
            if self.is_expiring() != other.is_expiring() {
                return other.is_expiring();
            }
            if self.local_deletion_secs != other.local_deletion_secs {
                return self.local_deletion_secs > other.local_deletion_secs;
            }
        }
        match self.value.cmp(&other.value) {
            Ordering::Equal => self.ttl_secs < other.ttl_secs,
            order => order.is_gt(),
        }
    }

    /// Keeps the winner of this cell and `other`, a cell of the same (non-counter) column and path.
    #[inline]
    pub fn reconcile(&mut self, other: Self) {
        if other.supersedes(self) {
            *self = other;
        }
    }

    /// Adds `other`, a cell of the same counter. A tombstone wins regardless of timestamps (CASSANDRA-7346).
    pub fn reconcile_counter(&mut self, other: Self) {
        if self.is_tombstone() || other.is_tombstone() {
            let other_wins = match (self.is_tombstone(), other.is_tombstone()) {
                (true, true) => other.supersedes(self),
                (is_tombstone, _) => !is_tombstone,
            };
            if other_wins {
                *self = other;
            }
            return;
        }
        // A value is empty if its column was not fetched; it must not be taken for a count of zero.
        if self.value.is_empty() || other.value.is_empty() {
            let other_wins = match (self.value.is_empty(), other.value.is_empty()) {
                (true, true) => other.timestamp_micros > self.timestamp_micros,
                (is_empty, _) => !is_empty,
            };
            if other_wins {
                *self = other;
            }
            return;
        }
        self.timestamp_micros = self.timestamp_micros.max(other.timestamp_micros);
        self.value = counter::merge(&self.value, &other.value);
    }
}

impl Liveness {
    /// True if this liveness wins over `other`; false on a full tie.
    #[inline]
    pub fn supersedes(&self, other: &Self) -> bool {
        if self.timestamp_micros != other.timestamp_micros {
            return self.timestamp_micros > other.timestamp_micros;
        }
        let (dead, other_dead) = (self.is_dead_key(), other.is_dead_key());
        if dead != other_dead {
            return dead;
        }
        let (expires, other_expires) = (self.ttl_secs != 0, other.ttl_secs != 0);
        if expires != other_expires {
            return expires;
        }
        match self.expires_secs.cmp(&other.expires_secs) {
            Ordering::Equal => self.ttl_secs < other.ttl_secs,
            order => order.is_gt(),
        }
    }

    /// The liveness that wins.
    #[inline]
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        if other.supersedes(&self) { other } else { self }
    }

    /// True for the mark of a removed primary key in a view.
    #[inline]
    pub(crate) fn is_dead_key(&self) -> bool {
        self.ttl_secs == EXPIRED_LIVENESS_TTL
    }
}

impl Row {
    /// Merges `other`, a row of the same clustering: the newer of each part wins, and deletions remove the data that they cover.
    /// Returns the growth of this row in bytes ([`Row::size_bytes`]).
    pub fn merge(&mut self, other: Self, table: &TableSchema) -> isize {
        let deletion = self.deletion.max(other.deletion);
        let mut grown = 0;
        if deletion != self.deletion {
            self.deletion = deletion;
            grown += self.drop_shadowed(deletion);
        }
        self.liveness = self.liveness.max(other.liveness);
        if deletion.deletes(self.liveness.timestamp_micros) {
            self.liveness = Liveness::NONE;
        }
        let mut columns = other.columns;
        if deletion != other.deletion {
            drop_shadowed_columns(&mut columns, deletion);
        } else if columns.is_empty() {
            return grown;
        }
        grown + merge_columns(&mut self.columns, columns, table)
    }

    /// Removes the data that `deletion` (of the partition or a range) covers, and the row's own deletion unless it is newer.
    /// Returns the growth of this row in bytes: zero or less. The row may end up empty.
    #[inline]
    pub fn shadow(&mut self, deletion: DeletionTime) -> isize {
        if deletion.is_live() {
            return 0;
        }
        if !self.deletion.supersedes(&deletion) {
            self.deletion = DeletionTime::LIVE;
        }
        self.drop_shadowed(deletion)
    }

    fn drop_shadowed(&mut self, deletion: DeletionTime) -> isize {
        if deletion.deletes(self.liveness.timestamp_micros) {
            self.liveness = Liveness::NONE;
        }
        drop_shadowed_columns(&mut self.columns, deletion)
    }
}

/// Merges rows of one clustering, and removes the data that the deletion `active` (of the partition and open ranges) covers. `None`
/// if the result is empty. A single row is not copied.
pub fn merge_rows(
    rows: impl IntoIterator<Item = Row>,
    active: DeletionTime,
    table: &TableSchema,
) -> Option<Row> {
    if table.is_counter() {
        return merge_counter_rows(rows.into_iter().collect(), active, table);
    }
    let mut rows = rows.into_iter();
    let mut merged = rows.next()?;
    for row in rows {
        merged.merge(row, table);
    }
    merged.shadow(active);
    (!merged.is_empty()).then_some(merged)
}

/// Merges rows of a counter table. Counts add up, so shadowed cells must be removed first: they cannot be separated from the sum later.
fn merge_counter_rows(
    mut rows: SmallVec<[Row; 4]>,
    active: DeletionTime,
    table: &TableSchema,
) -> Option<Row> {
    let mut merged = Row::empty(rows.first()?.clustering.clone());
    for row in &mut rows {
        row.shadow(active);
        merged.deletion = merged.deletion.max(row.deletion);
    }
    for row in rows {
        merged.merge(row, table);
    }
    (!merged.is_empty()).then_some(merged)
}

fn drop_shadowed_columns(columns: &mut Vec<ColumnData>, deletion: DeletionTime) -> isize {
    if deletion.is_live() {
        return 0;
    }
    let mut grown = 0;
    columns.retain_mut(|entry| {
        let before = entry.size_bytes();
        let keep = match &mut entry.data {
            Data::Simple(cell) => !deletion.deletes(cell.timestamp_micros),
            Data::Complex(complex) => complex.shadow(deletion),
        };
        let after = if keep { entry.size_bytes() } else { 0 };
        grown += after.cast_signed() - before.cast_signed();
        keep
    });
    grown
}

impl ComplexColumn {
    /// Drops the data that `deletion` covers. Returns false if the column is empty then.
    pub(crate) fn shadow(&mut self, deletion: DeletionTime) -> bool {
        if !self.deletion.supersedes(&deletion) {
            self.deletion = DeletionTime::LIVE;
        }
        self.cells
            .retain(|(_, cell)| !deletion.deletes(cell.timestamp_micros));
        !self.deletion.is_live() || !self.cells.is_empty()
    }

    /// Merges another value of the same column. Returns the growth in bytes.
    fn merge(&mut self, other: Self, ty: Option<&CqlType>) -> isize {
        let deletion = self.deletion.max(other.deletion);
        let covers_self = deletion != self.deletion;
        let covers_other = deletion != other.deletion;
        self.deletion = deletion;
        let mut grown = 0;
        if covers_self {
            self.cells.retain(|(path, cell)| {
                let keep = !deletion.deletes(cell.timestamp_micros);
                if !keep {
                    grown -= path_cell_size(path, cell);
                }
                keep
            });
        }
        let mut cells = other.cells;
        if covers_other {
            cells.retain(|(_, cell)| !deletion.deletes(cell.timestamp_micros));
        }
        grown + merge_path_cells(&mut self.cells, cells, ty)
    }
}

fn path_cell_size(path: &Bytes, cell: &Cell) -> isize {
    crate::size::path_cell_bytes(path, cell).cast_signed()
}

/// If one side has more than this many times the cells of the other, the cells of the smaller side are inserted one by one.
const SPARSE_FACTOR: usize = 8;

fn merge_path_cells(into: &mut Vec<(Bytes, Cell)>, from: Vec<(Bytes, Cell)>, ty: Option<&CqlType>) -> isize {
    if into.is_empty() {
        *into = from;
        return into.iter().map(|(path, cell)| path_cell_size(path, cell)).sum();
    }
    let compare = |a: &Bytes, b: &Bytes| match ty {
        Some(ty) => paths::compare_paths(ty, a, b),
        None => a.cmp(b),
    };
    let mut grown = 0;
    if from.len() * SPARSE_FACTOR <= into.len() {
        for (path, cell) in from {
            // Appending (to lists, or by time) is the common case.
            let at = match into.last().map(|(last, _)| compare(last, &path)) {
                None | Some(Ordering::Less) => Err(into.len()),
                Some(Ordering::Equal) => Ok(into.len() - 1),
                Some(Ordering::Greater) => into.binary_search_by(|(known, _)| compare(known, &path)),
            };
            match at {
                Ok(index) => grown += reconcile_sized(&mut into[index].1, cell),
                Err(index) => {
                    grown += path_cell_size(&path, &cell);
                    into.insert(index, (path, cell));
                }
            }
        }
        return grown;
    }
    let mut merged = Vec::with_capacity(into.len() + from.len());
    let mut left = std::mem::take(into).into_iter().peekable();
    for (path, cell) in from {
        let mut same = None;
        while let Some((known, _)) = left.peek() {
            match compare(known, &path) {
                Ordering::Less => merged.extend(left.next()),
                Ordering::Equal => {
                    same = left.next();
                    break;
                }
                Ordering::Greater => break,
            }
        }
        match same {
            Some((path, mut known)) => {
                grown += reconcile_sized(&mut known, cell);
                merged.push((path, known));
            }
            None => {
                grown += path_cell_size(&path, &cell);
                merged.push((path, cell));
            }
        }
    }
    merged.extend(left);
    *into = merged;
    grown
}

#[inline]
fn reconcile_sized(cell: &mut Cell, other: Cell) -> isize {
    let before = cell.value.len().cast_signed();
    cell.reconcile(other);
    cell.value.len().cast_signed() - before
}

/// Merges columns, which ascend by id. Requires: both sides are already shadowed by the row's deletion.
fn merge_columns(into: &mut Vec<ColumnData>, from: Vec<ColumnData>, table: &TableSchema) -> isize {
    if into.is_empty() {
        *into = from;
        return into.iter().map(|entry| entry.size_bytes().cast_signed()).sum();
    }
    if is_subset(&from, into) {
        return merge_known_columns(into, from, table);
    }
    let mut grown = 0;
    let mut merged = Vec::with_capacity(into.len() + from.len());
    let mut left = std::mem::take(into).into_iter().peekable();
    for entry in from {
        while let Some(known) = left.next_if(|known| known.column < entry.column) {
            merged.push(known);
        }
        match left.next_if(|known| known.column == entry.column) {
            Some(mut known) => {
                grown += merge_data(&mut known.data, entry.data, table.column(entry.column));
                merged.push(known);
            }
            None => {
                grown += entry.size_bytes().cast_signed();
                merged.push(entry);
            }
        }
    }
    merged.extend(left);
    *into = merged;
    debug_assert!(into.is_sorted_by(|a, b| a.column < b.column));
    grown
}

fn is_subset(small: &[ColumnData], large: &[ColumnData]) -> bool {
    let mut large = large.iter();
    small
        .iter()
        .all(|wanted| large.by_ref().any(|known| known.column == wanted.column))
}

/// Merges in place. Requires: `into` has every column of `from`.
fn merge_known_columns(into: &mut [ColumnData], from: Vec<ColumnData>, table: &TableSchema) -> isize {
    let mut grown = 0;
    let mut index = 0;
    for entry in from {
        while into[index].column != entry.column {
            index += 1;
        }
        grown += merge_data(&mut into[index].data, entry.data, table.column(entry.column));
        index += 1;
    }
    grown
}

fn merge_data(into: &mut Data, from: Data, column: Option<&Column>) -> isize {
    match (into, from) {
        (Data::Simple(cell), Data::Simple(other)) => {
            if column.is_some_and(|column| column.ty == CqlType::Counter) {
                let before = cell.value.len().cast_signed();
                cell.reconcile_counter(other);
                cell.value.len().cast_signed() - before
            } else {
                reconcile_sized(cell, other)
            }
        }
        (Data::Complex(complex), Data::Complex(other)) => {
            complex.merge(*other, column.map(|column| &column.ty))
        }
        // Unreachable: a column that is dropped and added again has a new id, so the shapes of one id never differ.
        _ => 0,
    }
}
