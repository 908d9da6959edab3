//! From an entry as a view holds it to the entry that it should hold: a row to be merged into the stored one, after which a
//! reader sees what is wanted, whatever the timestamps are.
//!
//! In general it is written what Cassandra writes: the liveness and the cells with the timestamps of the base, and for an
//! entry that is gone an expired liveness of the same timestamp (strict liveness) or the deletion of the base. Where that
//! would lose against what is stored (a row that lived by a column the view has not; an old entry whose tombstones the base
//! has purged), it gets a timestamp that wins.

use ilion_rows::{
    Cell, ColumnData, ComplexColumn, Data, DeletionTime, EXPIRED_LIVENESS_TTL, Liveness, NO_DELETION_TIME,
    Row, paths,
};
use ilion_schema::{Column, TableSchema};

use super::entry::Wanted;

/// What is to be merged into the stored entry, if it is not as wanted.
pub(super) fn to_wanted(
    stored: Option<&Row>,
    wanted: &Wanted,
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

/// What is to be merged into a stored entry that should not be. `deletion` is what removed the base row, if that did.
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

/// What decides about cells.
#[derive(Clone, Copy)]
struct Law {
    /// Hides what is written at or below it.
    deletion: DeletionTime,
    now_secs: u32,
    /// Cells are written again even if they are stored as wanted: with strict liveness, a compaction that drops the
    /// liveness they were written with drops them too.
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

/// True if a deletion hides everything of a row.
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

/// The liveness to write: after it is merged, the entry lives as long as wanted.
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

/// The cell to write, if what is stored does not look as wanted.
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

/// A cell as it is, or with a timestamp that wins over what is stored.
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
