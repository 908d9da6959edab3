//! Reads SSTables that have different stretches of a partition one after another. If the read ends before a stretch, its SSTable is not
//! opened.
//!
//! The rows of an SSTable lie between its least and its greatest clustering, which are known from memory. SSTables whose stretches do
//! not overlap form a chain: one source of the merge, in the order of the read. So the first rows of a partition that is spread over
//! many SSTables cost only reads of the SSTables that have these rows, also in reversed order.
//!
//! SSTables that may have a deletion of the whole partition or a static row are not in chains: every read of the partition needs them
//! first.

use std::sync::Arc;

use ilion_rows::{
    Bound, ClusteringComparator, ClusteringFilter, Cursor, DecoratedKey, DeletionTime, PartitionHead,
    PlainVisitor, ReadError, Slice, Unfiltered,
};
use ilion_schema::TableSchema;
use ilion_sstable::PartitionCursor;

use crate::live_sstable::LiveSSTable;
use crate::source::touch;

/// Divides stretches into chains, each in the order of the read. The number of chains is the highest number of stretches that overlap
/// in one place. Pure.
fn divide(stretches: &[&Slice], is_reversed: bool, comparator: &ClusteringComparator) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..stretches.len()).collect();
    let compare = |a: usize, b: usize| match is_reversed {
        false => comparator.compare_bounds(&stretches[a].start, &stretches[b].start),
        true => comparator.compare_bounds(&stretches[b].end, &stretches[a].end),
    };
    order.sort_by(|a, b| compare(*a, *b));
    let follows = |last: usize, next: usize| match is_reversed {
        false => comparator.compare_bounds(&stretches[last].end, &stretches[next].start),
        true => comparator.compare_bounds(&stretches[next].end, &stretches[last].start),
    };
    let mut chains: Vec<Vec<usize>> = Vec::new();
    for at in order {
        let mut open = chains.iter_mut();
        match open.find(|chain| chain.last().is_none_or(|last| follows(*last, at).is_lt())) {
            Some(chain) => chain.push(at),
            None => chains.push(vec![at]),
        }
    }
    chains
}

/// A read of one partition.
#[derive(Clone)]
pub(crate) struct ChainRead {
    pub table: Arc<TableSchema>,
    pub key: DecoratedKey,
    pub filter: Arc<ClusteringFilter>,
}

impl ChainRead {
    /// A source for each chain of the SSTables.
    pub(crate) fn sources(
        &self,
        sstables: Vec<Arc<LiveSSTable>>,
        comparator: &ClusteringComparator,
    ) -> Vec<Box<dyn Cursor>> {
        let stretches: Vec<&Slice> = sstables.iter().map(|live| live.sstable.covered()).collect();
        let chains = divide(&stretches, self.filter.reversed, comparator);
        let chains = chains.into_iter().map(|chain| {
            // Reversed, since `open_next` pops the next SSTable from the end.
            let left = chain.into_iter().rev().map(|at| sstables[at].clone()).collect();
            Box::new(Chain {
                read: self.clone(),
                left,
                current: None,
                is_begun: false,
            }) as Box<dyn Cursor>
        });
        chains.collect()
    }
}

struct Chain {
    read: ChainRead,
    /// SSTables that are not opened yet, the next one last.
    left: Vec<Arc<LiveSSTable>>,
    current: Option<(PartitionCursor, Arc<LiveSSTable>)>,
    /// True after the partition was returned.
    is_begun: bool,
}

impl Chain {
    /// Opens the next SSTable that has the partition; false if there is none.
    fn open_next(&mut self) -> Result<bool, ReadError> {
        let read = &self.read;
        while let Some(live) = self.left.pop() {
            touch(&live);
            let opened = live.sstable.partition(&read.table, &read.key, &read.filter)?;
            let Some(mut cursor) = opened else { continue };
            if cursor.next_partition()?.is_some() {
                self.current = Some((cursor, live));
                return Ok(true);
            }
        }
        self.current = None;
        Ok(false)
    }
}

impl Cursor for Chain {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        if std::mem::replace(&mut self.is_begun, true) {
            self.left.clear();
            self.current = None;
            return Ok(None);
        }
        Ok(Some(PartitionHead {
            key: self.read.key.clone(),
            deletion: DeletionTime::LIVE,
            static_row: None,
        }))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        loop {
            if let Some((cursor, _)) = &mut self.current
                && let Some(unfiltered) = cursor.next_unfiltered()?
            {
                return Ok(Some(unfiltered));
            }
            if !self.open_next()? {
                return Ok(None);
            }
        }
    }

    fn lower_bound(&self) -> Option<DecoratedKey> {
        (!self.is_begun).then(|| self.read.key.clone())
    }

    fn plain_rows(
        &mut self,
        key: &DecoratedKey,
        before: Option<&Bound>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<u64, ReadError> {
        match &mut self.current {
            Some((cursor, _)) => cursor.plain_rows(key, before, visitor),
            None => Ok(0),
        }
    }

    fn skip_deleted(&mut self, before: Option<&Bound>) -> Result<(), ReadError> {
        match &mut self.current {
            Some((cursor, _)) => cursor.skip_deleted(before),
            None => Ok(()),
        }
    }

    ilion_rows::cursor_methods!(without: peek plain_partitions);
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use ilion_rows::notation::parse_table;
    use ilion_rows::{Bound, BoundKind, Values};

    use super::*;

    fn slice(start: i32, end: i32) -> Slice {
        let bound = |kind, at: i32| {
            let value = Some(Bytes::copy_from_slice(&at.to_be_bytes()));
            Bound::new(kind, Values::from_iter([value]))
        };
        Slice {
            start: bound(BoundKind::InclStart, start),
            end: bound(BoundKind::InclEnd, end),
        }
    }

    fn divided(stretches: &[(i32, i32)], is_reversed: bool) -> Vec<Vec<usize>> {
        let table = parse_table("k text pk, c int ck, v text").unwrap();
        let slices: Vec<Slice> = stretches.iter().map(|(start, end)| slice(*start, *end)).collect();
        let slices: Vec<&Slice> = slices.iter().collect();
        divide(&slices, is_reversed, &ClusteringComparator::of(&table))
    }

    #[test]
    fn stretches_that_do_not_overlap_are_one_chain_in_the_order_of_the_read() {
        let stretches = [(20, 25), (0, 5), (10, 15)];
        assert_eq!(divided(&stretches, false), [[1, 2, 0]]);
        assert_eq!(divided(&stretches, true), [[0, 2, 1]]);
    }

    #[test]
    fn there_are_as_many_chains_as_stretches_in_one_place() {
        let stretches = [(0, 9), (5, 14), (10, 19), (15, 24)];
        assert_eq!(divided(&stretches, false), [[0, 2], [1, 3]]);
        assert_eq!(divided(&stretches, true), [[3, 1], [2, 0]]);
        // Both may have the clustering at which they meet.
        assert_eq!(divided(&[(0, 5), (5, 9)], false).len(), 2);
        let all = Slice::all();
        let table = parse_table("k text pk, c int ck, v text").unwrap();
        let chains = divide(&[&all, &all], false, &ClusteringComparator::of(&table));
        assert_eq!(chains.len(), 2);
    }
}
