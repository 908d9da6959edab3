//! From the stored entry of a view to the wanted one: computes a row that, merged into the stored entry, gives the wanted entry,
//! whatever the timestamps are.
//!
//! Usually the row is what Cassandra writes: the liveness and the cells with the timestamps of the base; to remove an entry, an
//! expired liveness with the same timestamp (strict liveness) or the deletion of the base. Where the stored entry would win
//! against that, the row gets a timestamp that wins. This happens if a column outside the view kept the row alive, or if the
//! base has purged the tombstones of an old entry.

use ilion_rows::{
    Cell, ColumnData, ComplexColumn, Data, DeletionTime, EXPIRED_LIVENESS_TTL, Liveness, NO_DELETION_TIME,
    Row, paths,
};
use ilion_schema::{Column, TableSchema};

use super::entry::WantedEntry;

/// The row to merge into the stored entry; `None` if the stored entry is as wanted.
pub(super) fn to_wanted(
    stored: Option<&Row>,
    wanted: &WantedEntry,
    view: &TableSchema,
    now_secs: u32,
) -> Option<Row> {
    let absent = Row::empty(wanted.place.clustering.clone());
    let stored = stored.unwrap_or(&absent);
    let mut change = Row::empty(wanted.place.clustering.clone());
    let liveness = liveness(stored, wanted.liveness, now_secs);
    let is_news = liveness != stored.liveness;
    change.liveness = liveness;
    let law = Law {
        deletion: stored.deletion,
        now_secs,
        is_rewriting: view.has_strict_liveness && is_news && !lives_for_good(&stored.liveness),
    };
    for column in view_columns(view) {
        let want = wanted.columns.iter().find(|entry| entry.column == column.id);
        let data = column_change(
            column,
            stored.column(column.id),
            want.map(|entry| &entry.data),
            &law,
        );
        change.columns.extend(data.map(|data| ColumnData {
            column: column.id,
            data,
        }));
    }
    (is_news || !change.columns.is_empty()).then_some(change)
}

/// The row that removes a stored entry; `None` if the entry is already dead. `deletion` is the deletion that removed the base row, if
/// one did.
pub(super) fn to_nothing(
    stored: &Row,
    deletion: Option<DeletionTime>,
    view: &TableSchema,
    now_secs: u32,
) -> Option<Row> {
    let mut seen = stored.clone();
    if !seen.keep_live(now_secs, view) {
        return None;
    }
    let mut change = Row::empty(stored.clustering.clone());
    if let Some(deletion) = deletion.filter(|deletion| covers(*deletion, stored)) {
        change.deletion = deletion;
        return Some(change);
    }
    if stored.liveness.is_live(now_secs) {
        change.liveness = dead_key(stored.liveness.timestamp_micros, now_secs);
    }
    let law = Law {
        deletion: stored.deletion,
        now_secs,
        is_rewriting: false,
    };
    if !view.has_strict_liveness {
        for column in view_columns(view) {
            let stored_data = stored.column(column.id);
            let data = column_change(column, stored_data, None, &law);
            change.columns.extend(data.map(|data| ColumnData {
                column: column.id,
                data,
            }));
        }
    }
    Some(change)
}

/// The rules for cells.
#[derive(Clone, Copy)]
struct Law {
    /// The deletion of the stored entry: data at or below its timestamp would be hidden.
    deletion: DeletionTime,
    now_secs: u32,
    /// True if cells are written again even if they are stored as wanted: with strict liveness, a compaction that drops the old
    /// liveness drops the cells written with it.
    is_rewriting: bool,
}

fn lives_for_good(liveness: &Liveness) -> bool {
    !liveness.is_none() && liveness.expires_secs == NO_DELETION_TIME
}

fn view_columns(view: &TableSchema) -> Vec<&Column> {
    let mut columns: Vec<&Column> = view.regulars().collect();
    columns.sort_by_key(|column| column.id);
    columns
}

/// True if a deletion covers all data of a row.
fn covers(deletion: DeletionTime, row: &Row) -> bool {
    let hides = |cell: &Cell| deletion.deletes(cell.timestamp_micros);
    (row.liveness.is_none() || deletion.deletes(row.liveness.timestamp_micros))
        && row.columns.iter().all(|entry| match &entry.data {
            Data::Simple(cell) => hides(cell),
            Data::Complex(complex) => complex.cells.iter().all(|(_, cell)| hides(cell)),
        })
}

fn dead_key(timestamp_micros: i64, now_secs: u32) -> Liveness {
    Liveness {
        timestamp_micros,
        ttl_secs: EXPIRED_LIVENESS_TTL,
        expires_secs: now_secs,
    }
}

/// The liveness to write, so that after the merge the entry lives as long as wanted.
fn liveness(stored: &Row, wanted: Liveness, now_secs: u32) -> Liveness {
    let floor = stored
        .liveness
        .timestamp_micros
        .max(stored.deletion.marked_at_micros);
    if wanted.is_none() {
        return match stored.liveness.is_live(now_secs) {
            true => dead_key(stored.liveness.timestamp_micros, now_secs),
            false => stored.liveness,
        };
    }
    let merged = stored.liveness.max(wanted);
    let is_hidden = stored.deletion.deletes(wanted.timestamp_micros);
    let is_as_wanted = merged.is_live(now_secs) && merged.expires_secs == wanted.expires_secs;
    if is_as_wanted && !is_hidden {
        return merged;
    }
    Liveness {
        timestamp_micros: floor.saturating_add(1),
        ..wanted
    }
}

fn column_change(column: &Column, stored: Option<&Data>, wanted: Option<&Data>, law: &Law) -> Option<Data> {
    if column.is_complex() {
        let stored = complex_of(stored);
        let wanted = complex_of(wanted);
        return complex_change(column, &stored, &wanted, law).map(|complex| Data::Complex(Box::new(complex)));
    }
    cell_change(simple_of(stored), simple_of(wanted), law).map(Data::Simple)
}

fn simple_of(data: Option<&Data>) -> Option<&Cell> {
    match data {
        Some(Data::Simple(cell)) => Some(cell),
        _ => None,
    }
}

fn complex_of(data: Option<&Data>) -> ComplexColumn {
    match data {
        Some(Data::Complex(complex)) => (**complex).clone(),
        _ => ComplexColumn {
            deletion: DeletionTime::LIVE,
            cells: Vec::new(),
        },
    }
}

/// The cell to write; `None` if the stored cell is as wanted.
fn cell_change(stored: Option<&Cell>, wanted: Option<&Cell>, law: &Law) -> Option<Cell> {
    let Law {
        deletion, now_secs, ..
    } = *law;
    let Some(live) = wanted.filter(|cell| cell.is_live(now_secs)) else {
        let stored = stored.filter(|cell| cell.is_live(now_secs))?;
        return Some(match wanted {
            Some(dead) if dead.supersedes(stored) && !deletion.deletes(dead.timestamp_micros) => dead.clone(),
            _ => Cell::tombstone(stored.timestamp_micros, now_secs),
        });
    };
    let Some(stored) = stored else {
        return Some(above(live, None, deletion));
    };
    let is_same = stored.value == live.value
        && stored.ttl_secs == live.ttl_secs
        && stored.local_deletion_secs == live.local_deletion_secs
        && stored.timestamp_micros >= live.timestamp_micros;
    if is_same {
        return law.is_rewriting.then(|| stored.clone());
    }
    Some(above(live, Some(stored), deletion))
}

/// The cell, or a copy with a timestamp that wins over the stored one.
fn above(cell: &Cell, stored: Option<&Cell>, deletion: DeletionTime) -> Cell {
    let loses = stored.is_some_and(|stored| !cell.supersedes(stored));
    if !loses && !deletion.deletes(cell.timestamp_micros) {
        return cell.clone();
    }
    let floor = stored
        .map_or(i64::MIN, |stored| stored.timestamp_micros)
        .max(deletion.marked_at_micros);
    Cell {
        timestamp_micros: floor.saturating_add(1),
        ..cell.clone()
    }
}

fn complex_change(
    column: &Column,
    stored: &ComplexColumn,
    wanted: &ComplexColumn,
    law: &Law,
) -> Option<ComplexColumn> {
    let mut change = ComplexColumn {
        deletion: DeletionTime::LIVE,
        cells: Vec::new(),
    };
    if wanted.deletion.supersedes(&stored.deletion) && !stored.cells.is_empty() {
        change.deletion = wanted.deletion;
    }
    let law = Law {
        deletion: law.deletion.max(stored.deletion).max(change.deletion),
        ..*law
    };
    let left = |cell: &&Cell| !change.deletion.deletes(cell.timestamp_micros);
    let order = |a: &[u8], b: &[u8]| paths::compare_paths(&column.ty, a, b);
    let (mut old, mut new) = (stored.cells.iter().peekable(), wanted.cells.iter().peekable());
    loop {
        let side = match (old.peek(), new.peek()) {
            (None, None) => break,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some((old, _)), Some((new, _))) => order(old, new),
        };
        let before = if side.is_le() { old.next() } else { None };
        let after = if side.is_ge() { new.next() } else { None };
        let path = before.or(after).map(|(path, _)| path.clone());
        let before = before.map(|(_, cell)| cell).filter(left);
        let cell = cell_change(before, after.map(|(_, cell)| cell), &law);
        change.cells.extend(path.zip(cell));
    }
    (!change.cells.is_empty() || !change.deletion.is_live()).then_some(change)
}
