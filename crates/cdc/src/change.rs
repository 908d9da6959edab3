//! From a captured record to the changes of one table.
//!
//! Each change can be applied by itself: data that an earlier change of the same record deletes is not in a later one, since
//! deletions cover only what has their timestamp or an older one, and come first.

use std::fmt;
use std::sync::Arc;

use bytes::Buf;
use ilion_commitlog::{Kind, Position, Record};
use ilion_rows::{Decoded, DecoratedKey, DeletionTime, Mutation, MutationReader, RangeTombstone, Row};
use ilion_schema::{TableId, TableSchema};
use uuid::Uuid;

/// One change of a table.
#[derive(Clone, Debug)]
pub struct Change {
    /// Where its record starts. A record may have several changes.
    pub position: Position,
    /// Its number among the changes of its record.
    pub number: u32,
    /// Where to resume once this change was processed: behind the record after its last change, otherwise at the record's start.
    pub resume: Position,
    /// When it was logged.
    pub logged_micros: i64,
    /// Where its record is in the logs of the cluster; `None` on a single node.
    pub shared: Option<SharedPosition>,
    /// The table as it is now.
    pub table: Arc<TableSchema>,
    /// The partition; `None` if TRUNCATE removed all partitions.
    pub key: Option<DecoratedKey>,
    /// What changed.
    pub changed: Changed,
}

/// Where a record is in the logs of a cluster: the same for all replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedPosition {
    /// The tablet (a slice of the token ring) whose log it is.
    pub tablet: u32,
    /// Its offset in that log.
    pub offset: u64,
}

impl fmt::Display for SharedPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.tablet, self.offset)
    }
}

/// What changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Changed {
    /// TRUNCATE.
    Table,
    /// The partition was deleted.
    Partition(DeletionTime),
    /// A range of its rows was deleted.
    Range(RangeTombstone),
    /// Columns of its static row were written or deleted.
    Static(Row),
    /// The row was deleted. It has no columns and no liveness.
    DeletedRow(Row),
    /// Columns of the row were written or deleted, or the row was inserted. It has no deletion.
    Row(Row),
}

/// A captured record does not decode.
#[derive(Debug, thiserror::Error)]
#[error("the record at {position} cannot be decoded: at byte {offset} of it: expected {expected}")]
pub struct Error {
    /// Where the record starts.
    pub position: Position,
    /// Offset in its body.
    pub offset: usize,
    /// What the format expects there.
    pub expected: &'static str,
}

/// The changes of one table in a captured record; `next` is where the next record begins.
///
/// # Errors
/// The record does not decode.
pub fn changes_of(
    table: &Arc<TableSchema>,
    position: Position,
    record: &Record,
    next: Position,
) -> Result<Vec<Change>, Error> {
    let broken = |offset, expected| Error {
        position,
        offset,
        expected,
    };
    let mut found: Vec<(Option<DecoratedKey>, Changed)> = Vec::new();
    let mut shared = None;
    let mut body = record.body.clone();
    if record.kind == Kind::Applied {
        let offset = body.try_get_u64();
        shared = Some(SharedPosition {
            tablet: record.tablet,
            offset: offset.map_err(|_| broken(0, "an offset"))?,
        });
    }
    match record.kind {
        // Records of shared logs; their changes are in copies, which are `Kind::Applied`.
        Kind::Noop | Kind::Schema | Kind::LoggedBatch | Kind::BatchesDone => {}
        Kind::Truncate => {
            let id = body.first_chunk::<16>();
            let id = id.ok_or_else(|| broken(0, "the id of a table"))?;
            if TableId(Uuid::from_bytes(*id)) == table.id {
                found.push((None, Changed::Table));
            }
        }
        Kind::Mutation | Kind::Cas | Kind::Counter | Kind::Batch | Kind::Applied => {
            let start = record.body.len() - body.len();
            let mut reader = MutationReader::new(body);
            let resolve = |id: TableId| (id == table.id).then(|| Arc::clone(table));
            loop {
                let read = reader.next_mutation(&resolve);
                match read.map_err(|error| broken(start + error.offset, error.expected))? {
                    None => break,
                    Some(Decoded::NoSuchTable(_)) => {}
                    Some(Decoded::Mutation(mutation)) => split(mutation, &mut found),
                }
            }
        }
    }
    let last = found.len().saturating_sub(1);
    let numbered = (0..).zip(found).map(|(number, (key, changed))| Change {
        position,
        number,
        resume: if number as usize == last { next } else { position },
        logged_micros: record.time_micros,
        shared,
        table: Arc::clone(table),
        key,
        changed,
    });
    Ok(numbered.collect())
}

/// Adds the changes of a mutation, deletions of many rows first.
fn split(mutation: Mutation, into: &mut Vec<(Option<DecoratedKey>, Changed)>) {
    let Mutation { key, update, .. } = mutation;
    let mut add = |changed| into.push((Some(key.clone()), changed));
    if let Some(deletion) = update.deletion {
        add(Changed::Partition(deletion));
    }
    update
        .ranges
        .into_iter()
        .for_each(|range| add(Changed::Range(range)));
    if let Some(row) = update.static_row {
        add(Changed::Static(row));
    }
    for mut row in update.rows {
        if !row.deletion.is_live() {
            let deleted = Row {
                deletion: row.deletion,
                ..Row::empty(row.clustering.clone())
            };
            add(Changed::DeletedRow(deleted));
            row.deletion = DeletionTime::LIVE;
            if row.is_empty() {
                continue;
            }
        }
        add(Changed::Row(row));
    }
}
