//! Rows of an SSTable that was received, as mutations. A node of a cluster writes them through the logs: an import would give rows to this
//! node only.

use std::sync::Arc;

use ilion_rows::{
    Bound, ClusteringFilter, Cursor, DeletionTime, KeyRange, Marker, Mutation, PartitionHead,
    PartitionUpdate, RangeTombstone, Row, Unfiltered,
};
use ilion_schema::TableSchema;
use ilion_sstable::{OpenOptions, SSTable, Scan};

use crate::import::check;
use crate::load::Load;
use crate::{Engine, Error, Result};

/// Bytes of rows in memory after which the mutations so far are passed on.
const BATCH_BYTES: usize = 64 << 10;

impl Engine {
    /// Passes the rows of an SSTable that was received to `take`, as mutations in batches of about 64 KiB. A large partition becomes several
    /// mutations.
    ///
    /// # Errors
    /// The SSTable is incomplete, damaged, or does not fit the table; an error of `take`. Then `take` may have got a part of the rows.
    pub fn read_load(&self, load: &Load, take: &mut dyn FnMut(Vec<Mutation>) -> Result<()>) -> Result<()> {
        let (shared, descriptor) = (&self.shared, load.whole()?);
        let store = shared.table(load.table());
        let store = store.ok_or_else(|| Error::Refused("the table was dropped".to_owned()))?;
        let table = store.schema();
        check(shared, &table, descriptor, &mut |_| {})?
            .map_err(|reason| Error::Refused(load.with_short_paths(&reason)))?;
        let options = OpenOptions {
            partitioner: table.partitioner(shared.options.partitioner),
            ..OpenOptions::default()
        };
        let sstable = Arc::new(SSTable::open(&shared.env, descriptor, &options)?);
        let all = Arc::new(ClusteringFilter::all());
        let mut cursor = sstable.cursor(&table, KeyRange::all(), all, Scan::Sequential);
        mutations_of(&mut cursor, &table, BATCH_BYTES, take)
    }
}

/// Passes on all that a cursor reads.
fn mutations_of(
    cursor: &mut dyn Cursor,
    table: &Arc<TableSchema>,
    batch_bytes: usize,
    take: &mut dyn FnMut(Vec<Mutation>) -> Result<()>,
) -> Result<()> {
    let mut batch = Batch::new(table.clone());
    while let Some(head) = cursor.next_partition()? {
        batch.begin(head);
        while let Some(unfiltered) = cursor.next_unfiltered()? {
            match unfiltered {
                Unfiltered::Row(row) => batch.add_row(row),
                Unfiltered::Marker(marker) => batch.add_marker(marker),
            }
            if batch.bytes >= batch_bytes {
                take(batch.split())?;
            }
        }
        batch.end();
        if batch.bytes >= batch_bytes {
            take(batch.take())?;
        }
    }
    match batch.take() {
        rest if rest.is_empty() => Ok(()),
        rest => take(rest),
    }
}

/// Mutations that are being made of what a cursor reads.
struct Batch {
    table: Arc<TableSchema>,
    mutations: Vec<Mutation>,
    /// The mutation of the partition that is being read.
    open: Option<Mutation>,
    /// The start of the range that is deleted at this place, and its deletion.
    range: Option<(Bound, DeletionTime)>,
    bytes: usize,
}

impl Batch {
    fn new(table: Arc<TableSchema>) -> Self {
        Self {
            table,
            mutations: Vec::new(),
            open: None,
            range: None,
            bytes: 0,
        }
    }

    fn begin(&mut self, head: PartitionHead) {
        let static_row = head.static_row.and_then(|row| self.known(row));
        self.bytes += head.key.size_bytes() + static_row.as_ref().map_or(0, Row::size_bytes);
        self.open = Some(Mutation {
            table: self.table.clone(),
            key: head.key,
            update: PartitionUpdate {
                deletion: Some(head.deletion).filter(|deletion| !deletion.is_live()),
                static_row,
                ..PartitionUpdate::default()
            },
        });
    }

    /// The row without cells of dropped columns, which have no name any more; `None` if it has nothing else.
    fn known(&self, mut row: Row) -> Option<Row> {
        row.columns
            .retain(|entry| self.table.column(entry.column).is_some());
        Some(row).filter(|row| !row.is_empty())
    }

    fn add_row(&mut self, row: Row) {
        if let (Some(row), Some(open)) = (self.known(row), &mut self.open) {
            self.bytes += row.size_bytes();
            open.update.rows.push(row);
        }
    }

    /// Ends the deleted range before a marker, and begins the one behind it.
    fn add_marker(&mut self, marker: Marker) {
        if let (Some((start, deletion)), Some(open)) = (self.range.take(), &mut self.open) {
            open.update.ranges.push(RangeTombstone {
                start: start.as_start(),
                end: marker.bound.as_end(),
                deletion,
            });
            self.bytes += size_of::<RangeTombstone>();
        }
        self.range = marker.start.map(|deletion| (marker.bound, deletion));
    }

    fn end(&mut self) {
        self.range = None;
        let open = self.open.take();
        // After a split at the last row, nothing is left.
        self.mutations
            .extend(open.filter(|open| open.update != PartitionUpdate::default()));
    }

    fn take(&mut self) -> Vec<Mutation> {
        self.bytes = 0;
        std::mem::take(&mut self.mutations)
    }

    /// Takes what there is of the partition that is being read, too. Its next rows are a mutation of their own.
    fn split(&mut self) -> Vec<Mutation> {
        let next = self.open.as_ref().map(|open| Mutation {
            table: open.table.clone(),
            key: open.key.clone(),
            update: PartitionUpdate::default(),
        });
        self.mutations.extend(self.open.take());
        self.open = next;
        self.take()
    }
}

#[cfg(test)]
mod tests {
    use ilion_memtable::Memtable;
    use ilion_rows::Partition;
    use ilion_rows::random::{Dice, random_mutation, random_table};

    use super::*;

    /// What a cursor reads, without partitions in which nothing is.
    fn read_all(cursor: &mut dyn Cursor) -> Vec<Partition> {
        let partitions = std::iter::from_fn(|| Partition::read_next(cursor).unwrap());
        let has_something = |partition: &Partition| {
            let head = &partition.head;
            !head.deletion.is_live() || head.static_row.is_some() || !partition.unfiltereds.is_empty()
        };
        partitions.filter(has_something).collect()
    }

    #[test]
    fn the_mutations_make_what_was_read() {
        for seed in 0..400 {
            let mut dice = Dice::new(seed);
            let table = random_table(&mut dice);
            if table.is_counter() {
                continue;
            }
            let memtable = || Arc::new(Memtable::new(table.clone(), 1));
            let (source, copy) = (memtable(), memtable());
            for _ in 0..1 + dice.below(30) {
                source.apply(&random_mutation(&table, &mut dice));
            }
            let batch_bytes = *dice.pick(&[1, 200, BATCH_BYTES]);
            let mut batches = 0;
            let mut take = |mutations: Vec<Mutation>| {
                batches += 1;
                for mutation in &mutations {
                    copy.apply(mutation);
                }
                Ok(())
            };
            mutations_of(&mut source.flush_cursor(), &table, batch_bytes, &mut take).unwrap();
            let (read, expected) = (
                read_all(&mut copy.flush_cursor()),
                read_all(&mut source.flush_cursor()),
            );
            assert_eq!(read, expected, "seed {seed}");
            assert!(batch_bytes > 1 || batches >= expected.len(), "seed {seed}");
        }
    }
}
