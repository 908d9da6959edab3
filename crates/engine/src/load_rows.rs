//! Rows of SSTables that were received or restored, as mutations. A node of a cluster writes them through the logs: an import would give
//! rows to this node only.

use std::path::Path;
use std::sync::Arc;

use ilion_rows::{
    ClusteringFilter, Cursor, Data, Direction, KeyRange, Mutation, PartitionUpdate, RangeTombstone, Row,
    Unfiltered, UpdateBuilder, counter,
};
use ilion_schema::{TableId, TableSchema};
use ilion_sstable::{Descriptor, OpenOptions, SSTable, Scan};

use crate::import::{check, sstables_in};
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
        let store = self.shared.table(load.table());
        let store = store.ok_or_else(|| Error::Refused("the table was dropped".to_owned()))?;
        let (table, descriptor) = (store.schema(), load.whole()?);
        check(&self.shared, &table, descriptor, &mut |_| {})?
            .map_err(|reason| Error::Refused(load.with_short_paths(&reason)))?;
        self.read_rows(&table, descriptor, take)
    }

    /// Like [`Self::read_load`], for all SSTables of a directory; returns their number. All of them are checked before any row is passed on.
    ///
    /// # Errors
    /// The table does not exist or cannot import, an SSTable is damaged or does not fit the table, or the directory cannot be listed; an error
    /// of `take`.
    pub fn read_directory(
        &self,
        table: TableId,
        directory: &Path,
        take: &mut dyn FnMut(Vec<Mutation>) -> Result<()>,
    ) -> Result<usize> {
        let table = self.importing_store(table)?.schema();
        let found = sstables_in(&self.shared, directory)?;
        for descriptor in &found {
            check(&self.shared, &table, descriptor, &mut |_| {})?.map_err(Error::Refused)?;
        }
        for descriptor in &found {
            self.read_rows(&table, descriptor, take)?;
        }
        Ok(found.len())
    }

    fn read_rows(
        &self,
        table: &Arc<TableSchema>,
        descriptor: &Descriptor,
        take: &mut dyn FnMut(Vec<Mutation>) -> Result<()>,
    ) -> Result<()> {
        let shared = &self.shared;
        let options = OpenOptions {
            partitioner: table.partitioner(shared.options.partitioner),
            ..OpenOptions::default()
        };
        let sstable = Arc::new(SSTable::open(&shared.env, descriptor, &options)?);
        let all = Arc::new(ClusteringFilter::all());
        let mut cursor = sstable.cursor(table, KeyRange::all(), all, Scan::Sequential);
        mutations_of(&mut cursor, table, BATCH_BYTES, take)
    }
}

/// Passes on all that a cursor reads.
fn mutations_of(
    cursor: &mut dyn Cursor,
    table: &Arc<TableSchema>,
    batch_bytes: usize,
    take: &mut dyn FnMut(Vec<Mutation>) -> Result<()>,
) -> Result<()> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    while let Some(head) = cursor.next_partition()? {
        bytes += head.key.size_bytes() + head.static_row.as_ref().map_or(0, Row::size_bytes);
        let mut open = UpdateBuilder::new(table.clone(), head, Direction::Forward);
        while let Some(unfiltered) = cursor.next_unfiltered()? {
            match unfiltered {
                Unfiltered::Row(row) => {
                    bytes += row.size_bytes();
                    open.add_row(row);
                }
                Unfiltered::Marker(marker) => {
                    bytes += size_of::<RangeTombstone>();
                    open.add_marker(marker);
                }
            }
            if bytes >= batch_bytes {
                batch.extend(to_write(open.split()));
                bytes = 0;
                take(std::mem::take(&mut batch))?;
            }
        }
        batch.extend(to_write(open.finish()));
        if bytes >= batch_bytes {
            bytes = 0;
            take(std::mem::take(&mut batch))?;
        }
    }
    match batch.is_empty() {
        true => Ok(()),
        false => take(batch),
    }
}

/// The mutation as the replicas get it, without rows whose cells were all of dropped columns; `None` if it changes nothing, as after a split
/// behind the last row of a partition.
fn to_write(mut mutation: Mutation) -> Option<Mutation> {
    let update = &mut mutation.update;
    update.rows.retain(|row| !row.is_empty());
    update.static_row.take_if(|row| row.is_empty());
    if mutation.table.is_counter() {
        update
            .rows
            .iter_mut()
            .chain(&mut update.static_row)
            .for_each(clear_local);
    }
    (*update != PartitionUpdate::default()).then_some(mutation)
}

/// Makes sure that the counts of a row count once, even if they are written twice.
fn clear_local(row: &mut Row) {
    for column in &mut row.columns {
        if let Data::Simple(cell) = &mut column.data {
            cell.value = counter::without_local(&cell.value);
        }
    }
}

#[cfg(test)]
mod tests {
    use ilion_memtable::Memtable;
    use ilion_rows::Partition;
    use ilion_rows::random::{Dice, random_mutation, random_table};

    use super::*;

    /// The partitions that a cursor reads and that have a deletion, a static row, a row or a marker.
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
