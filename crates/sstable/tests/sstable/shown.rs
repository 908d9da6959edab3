//! Reads a cursor twice: row by row, and with plain rows shown in place. Both must return the same.

use bytes::Bytes;
use ilion_rows::{
    Clustering, ClusteringFilter, Cursor, Data, DecoratedKey, Flow, Liveness, NO_TTL, PartitionHead,
    PlainRow, PlainVisitor, Row, Unfiltered,
};
use ilion_schema::ColumnId;

/// The results of a scan, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    Head(PartitionHead),
    Whole(Unfiltered),
    /// A plain partition with its row.
    PlainPartition(Bytes, Copied),
    PlainRow(Copied),
}

/// A plain row, as it was shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Copied {
    clustering: Vec<Option<Bytes>>,
    timestamp_micros: Option<i64>,
    cells: Vec<(ColumnId, Bytes)>,
    has_stored: bool,
}

impl Copied {
    fn of(row: &PlainRow<'_>) -> Self {
        let copy = Bytes::copy_from_slice;
        let cells = row.cells.iter();
        Self {
            clustering: row.clustering.iter().map(|value| value.map(copy)).collect(),
            timestamp_micros: row.timestamp_micros,
            cells: cells.map(|(column, value)| (*column, copy(value))).collect(),
            has_stored: row.stored.is_some(),
        }
    }

    /// True if it equals the row in the selected columns.
    fn is_of(&self, row: &Row, filter: &ClusteringFilter) -> bool {
        let is_live = |entry: &ilion_rows::ColumnData| match &entry.data {
            Data::Simple(cell) => !cell.is_tombstone() && cell.ttl_secs == NO_TTL,
            Data::Complex(_) => false,
        };
        let micros_of = |entry: &ilion_rows::ColumnData| match &entry.data {
            Data::Simple(cell) => Some(cell.timestamp_micros),
            Data::Complex(_) => None,
        };
        let wanted = row.columns.iter().filter(|entry| filter.wants(entry.column));
        let cells = wanted.map(|entry| match &entry.data {
            Data::Simple(cell) => (entry.column, cell.value.clone()),
            Data::Complex(_) => (entry.column, Bytes::new()),
        });
        let shown = self.cells.iter().filter(|(column, _)| filter.wants(*column));
        let is_together = |micros: i64| {
            row.liveness == Liveness::live(micros)
                && row.columns.iter().all(|entry| micros_of(entry) == Some(micros))
        };
        row.clustering == Clustering::new(self.clustering.iter().cloned().collect())
            && row.deletion.is_live()
            && row.liveness.ttl_secs == NO_TTL
            && row.columns.iter().all(is_live)
            && cells.eq(shown.cloned())
            && self.timestamp_micros.is_none_or(is_together)
            && (!self.has_stored || self.timestamp_micros.is_some())
    }
}

/// Keeps what it is shown, and answers with the given flow.
struct Watch<F> {
    seen: Vec<Seen>,
    key: Option<DecoratedKey>,
    flow: F,
}

impl<F: FnMut() -> Flow> PlainVisitor for Watch<F> {
    fn row(&mut self, row: &PlainRow<'_>) -> Flow {
        let flow = (self.flow)();
        if flow == Flow::Leave {
            return flow;
        }
        match &self.key {
            None => {
                let key = Bytes::copy_from_slice(row.key);
                self.seen.push(Seen::PlainPartition(key, Copied::of(row)));
            }
            Some(key) => {
                assert_eq!((row.key, row.token), (&key.key[..], Some(&key.token)));
                self.seen.push(Seen::PlainRow(Copied::of(row)));
            }
        }
        flow
    }
}

/// All results up to the first error, and whether there was one; plain rows as they are shown.
pub fn watch(cursor: &mut dyn Cursor, flow: impl FnMut() -> Flow) -> (Vec<Seen>, bool) {
    let mut watch = Watch {
        seen: Vec::new(),
        key: None,
        flow,
    };
    let has_failed = try_watch(cursor, &mut watch).is_err();
    (watch.seen, has_failed)
}

fn try_watch<F: FnMut() -> Flow>(
    cursor: &mut dyn Cursor,
    watch: &mut Watch<F>,
) -> Result<(), ilion_rows::ReadError> {
    loop {
        watch.key = None;
        let before = watch.seen.len();
        let run = cursor.plain_partitions(None, watch)?;
        assert_eq!(run.map_or(0, |run| run.count), (watch.seen.len() - before) as u64);
        let Some(head) = cursor.next_partition()? else {
            return Ok(());
        };
        let key = head.key.clone();
        watch.seen.push(Seen::Head(head));
        watch.key = Some(key.clone());
        loop {
            let before = watch.seen.len();
            let count = cursor.plain_rows(&key, None, watch)?;
            assert_eq!(count, (watch.seen.len() - before) as u64);
            let Some(unfiltered) = cursor.next_unfiltered()? else {
                break;
            };
            watch.seen.push(Seen::Whole(unfiltered));
        }
    }
}

/// The same, without showing plain rows.
pub fn read(cursor: &mut dyn Cursor) -> (Vec<Seen>, bool) {
    let mut read = Vec::new();
    let has_failed = try_read(cursor, &mut read).is_err();
    (read, has_failed)
}

fn try_read(cursor: &mut dyn Cursor, read: &mut Vec<Seen>) -> Result<(), ilion_rows::ReadError> {
    while let Some(head) = cursor.next_partition()? {
        read.push(Seen::Head(head));
        while let Some(unfiltered) = cursor.next_unfiltered()? {
            read.push(Seen::Whole(unfiltered));
        }
    }
    Ok(())
}

/// Compares what was shown with what was read with the same filter. Returns the number of rows shown, or a description of the
/// difference.
pub fn compare(
    seen: (Vec<Seen>, bool),
    read: (Vec<Seen>, bool),
    filter: &ClusteringFilter,
) -> Result<usize, String> {
    if seen.1 != read.1 {
        return Err(format!("failed: shown {}, read {}", seen.1, read.1));
    }
    let mut read = read.0.into_iter();
    let mut shown = 0;
    for seen in seen.0 {
        let first = read.next();
        let is_same = match (&seen, &first) {
            (Seen::PlainPartition(key, row), Some(Seen::Head(head))) => {
                shown += 1;
                let is_plain = head.deletion.is_live() && head.static_row.is_none();
                let second = read.next();
                is_plain && head.key.key == *key && is_shown(row, second.as_ref(), filter)
            }
            (Seen::PlainRow(row), first) => {
                shown += 1;
                is_shown(row, first.as_ref(), filter)
            }
            (seen, first) => Some(seen) == first.as_ref(),
        };
        if !is_same {
            return Err(format!("shown {seen:?}\nread {first:?}"));
        }
    }
    match read.next() {
        Some(left) => Err(format!("not shown: {left:?}")),
        None => Ok(shown),
    }
}

fn is_shown(row: &Copied, read: Option<&Seen>, filter: &ClusteringFilter) -> bool {
    match read {
        Some(Seen::Whole(Unfiltered::Row(read))) => row.is_of(read, filter),
        _ => false,
    }
}
