//! Tests of [`Watched`]: it reports once after each stretch, by whichever method of `Cursor` the rows are read.

use bytes::Bytes;
use ilion_rows::notation::{parse_partitions, parse_table};
use ilion_rows::recorder::{Method, forwarded};
use ilion_rows::{DeletionTime, LaidTimestamp, RowLayout};
use ilion_types::{Partitioner, Token};
use parking_lot::Mutex;

use super::*;

/// Plain partitions numbered from 0 on; or one partition with such rows.
struct Numbers {
    next: u64,
    end: u64,
}

impl Numbers {
    /// Shows those that come next; returns how many were taken, and whether no more are wanted.
    fn show(&mut self, visitor: &mut dyn PlainVisitor) -> (u64, bool) {
        let (first, mut is_over) = (self.next, false);
        while self.next < self.end && !is_over {
            let key = key_of(self.next);
            let flow = visitor.row(&PlainRow {
                key: &key.key,
                token: Some(&key.token),
                clustering: &[],
                timestamp_micros: Some(0),
                cells: &[],
                stored: None,
            });
            if flow == Flow::Leave {
                break;
            }
            self.next += 1;
            is_over = flow == Flow::Last;
        }
        (self.next - first, is_over)
    }
}

fn key_of(number: u64) -> DecoratedKey {
    DecoratedKey {
        token: Token::Murmur3(number.cast_signed()),
        key: Bytes::copy_from_slice(&number.to_be_bytes()),
    }
}

impl Cursor for Numbers {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        if self.next == self.end {
            return Ok(None);
        }
        self.next += 1;
        Ok(Some(PartitionHead {
            key: key_of(self.next - 1),
            deletion: DeletionTime::LIVE,
            static_row: None,
        }))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        Ok(None)
    }

    fn plain_partitions(
        &mut self,
        _: Option<&DecoratedKey>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<Option<PlainRun>, ReadError> {
        let (count, is_over) = self.show(visitor);
        Ok((count > 0).then(|| PlainRun {
            count,
            last: key_of(self.next - 1),
            is_over,
        }))
    }

    fn plain_rows(
        &mut self,
        _: &DecoratedKey,
        _: Option<&Bound>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<u64, ReadError> {
        Ok(self.show(visitor).0)
    }

    ilion_rows::cursor_methods!(without: lower_bound peek skip_deleted);
}

/// A partition whose rows are laid out alike: a number each, which is their clustering.
struct Alike(Vec<u8>);

impl Cursor for Alike {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        Ok(None)
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        Ok(None)
    }

    fn plain_rows(
        &mut self,
        key: &DecoratedKey,
        _: Option<&Bound>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<u64, ReadError> {
        let layout = RowLayout {
            len: 8,
            clustering: std::iter::once(0..8).collect(),
            timestamp: LaidTimestamp {
                end: 8,
                ..LaidTimestamp::default()
            },
            ..RowLayout::default()
        };
        let (taken, _) = visitor.rows(&AlikeRows::new(&self.0, self.0.len() / 8, &layout, Some(key)));
        self.0.drain(..taken * layout.len);
        Ok(taken as u64)
    }

    ilion_rows::cursor_methods!(without: lower_bound peek plain_partitions skip_deleted);
}

/// Writes down the bytes of every look, and ends the read at some of them.
struct Looks<'l> {
    bytes: &'l Mutex<Vec<u64>>,
    end_at: usize,
}

impl Watch for Looks<'_> {
    fn look(&mut self, bytes: u64) -> Result<(), ReadError> {
        let mut looks = self.bytes.lock();
        looks.push(bytes);
        match looks.len() == self.end_at {
            true => Err(ReadError::Aborted("enough")),
            false => Ok(()),
        }
    }
}

/// Takes rows up to a number, which is the last, or is left.
struct Upto {
    seen: Vec<u64>,
    number: u64,
    then: Flow,
}

impl Upto {
    fn number(number: u64, then: Flow) -> Self {
        Self {
            seen: Vec::new(),
            number,
            then,
        }
    }
}

impl PlainVisitor for Upto {
    fn row(&mut self, row: &PlainRow<'_>) -> Flow {
        let number = row.clustering.first().copied().flatten().unwrap_or(row.key);
        let number = u64::from_be_bytes(number.try_into().unwrap());
        if number < self.number {
            self.seen.push(number);
            return Flow::Next;
        }
        if self.then == Flow::Last {
            self.seen.push(number);
        }
        self.then
    }
}

#[test]
fn rows_that_are_alike_are_cut_into_stretches_and_none_is_lost() {
    let looks = Mutex::default();
    let numbers: Vec<u8> = (0..10_000_u64).flat_map(u64::to_be_bytes).collect();
    let end_at = usize::MAX;
    let mut source = Watched::new(
        Alike(numbers),
        Looks {
            bytes: &looks,
            end_at,
        },
        200_000,
        20_000,
    );
    let mut taken = Upto::number(9_000, Flow::Last);
    let mut rows = || source.plain_rows(&key_of(0), None, &mut taken).unwrap();
    assert_eq!([rows(), rows(), rows()], [4096, 4096, 809]);
    assert_eq!(taken.seen, (0..=9_000).collect::<Vec<_>>());
    assert_eq!(*looks.lock(), [40_960; 2]);
}

fn watched(count: u64, bytes: &Mutex<Vec<u64>>, end_at: usize) -> Watched<Numbers, Looks<'_>> {
    let numbers = Numbers { next: 0, end: count };
    // Ten bytes an item, so that a stretch is as many items as it may be.
    Watched::new(numbers, Looks { bytes, end_at }, count * 20, count * 2)
}

#[test]
fn a_long_run_is_cut_into_stretches_and_nothing_is_lost() {
    let looks = Mutex::default();
    let mut source = watched(10_000, &looks, usize::MAX);
    let mut taken = Upto::number(u64::MAX, Flow::Last);
    let mut runs = Vec::new();
    while let Some(run) = source.plain_partitions(None, &mut taken).unwrap() {
        assert!(!run.is_over);
        runs.push(run.count);
    }
    assert_eq!(taken.seen, (0..10_000).collect::<Vec<_>>());
    assert_eq!(runs, [2048, 2048, 2048, 2048, 1808]);
    assert_eq!(*looks.lock(), [40_960; 4]);
}

#[test]
fn the_rows_of_a_partition_are_cut_into_stretches_and_none_is_lost() {
    let looks = Mutex::default();
    let mut source = watched(10_000, &looks, usize::MAX);
    let mut taken = Upto::number(u64::MAX, Flow::Last);
    let mut rows = || source.plain_rows(&key_of(0), None, &mut taken).unwrap();
    assert_eq!([rows(), rows(), rows(), rows()], [4096, 4096, 1808, 0]);
    assert_eq!(taken.seen, (0..10_000).collect::<Vec<_>>());
    assert_eq!(*looks.lock(), [40_960; 2]);
}

#[test]
fn the_visitor_ends_a_run_where_it_wants() {
    for (then, count) in [(Flow::Last, 101), (Flow::Leave, 100)] {
        let looks = Mutex::default();
        let mut source = watched(10_000, &looks, usize::MAX);
        let mut taken = Upto::number(100, then);
        let run = source.plain_partitions(None, &mut taken).unwrap().unwrap();
        assert_eq!((run.count, run.is_over), (count, then == Flow::Last));
        let head = source.next_partition().unwrap().unwrap();
        assert_eq!(head.key, key_of(count));
    }
}

#[test]
fn whoever_looks_can_end_the_read() {
    let looks = Mutex::default();
    let mut source = watched(10_000, &looks, 2);
    let taken = std::iter::from_fn(|| source.next_partition().transpose());
    let taken: Vec<_> = taken.take_while(Result::is_ok).collect();
    assert_eq!(taken.len(), 2 * 4096 - 1);
    assert_eq!(looks.lock().len(), 2);
}

#[test]
fn every_way_of_reading_is_forwarded() {
    let table = parse_table("k int pk, c int ck, v int").unwrap();
    let text = "partition 1\n  row 1 live@1 v=1@1\n  row 2 live@1 v=2@1\n";
    let partitions = parse_partitions(text, &table, Partitioner::Murmur3).unwrap();
    let looks = Mutex::new(Vec::new());
    let found = forwarded(&partitions, |cursor| {
        let watch = Looks {
            bytes: &looks,
            end_at: 0,
        };
        Watched::new(cursor, watch, 1, 1)
    });
    assert_eq!(found.unwrap(), Method::ALL);
}
