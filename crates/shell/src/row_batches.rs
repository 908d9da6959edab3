//! [`RowBatches`]: the rows of a feed, as requests of several rows each.
//!
//! - A request of several rows is an unlogged batch, which costs the server less than as many statements.
//! - All rows of a batch have the same timestamp, so two rows that write the same cells would be mixed, column by column. They are never in
//!   one batch.
//! - A batch is refused as a whole. Then each of its rows is sent again by itself, and has an outcome of its own.
//! - Refused batches make the next ones smaller: the server may refuse all batches of this size.

use std::cmp::Ordering;
use std::collections::VecDeque;

use ilion_protocol::Value;

use crate::session::{Failure, Packing, RowFeed, WriteRow};

/// Maximum size of the rows of a batch, as a server counts it. Cassandra warns of batches above 5 KiB.
const BATCH_BYTES_MAX: usize = 4 << 10;
/// What a server counts for a row and for a value, beside the bytes of its values.
const ROW_BYTES: usize = 20;
const VALUE_BYTES: usize = 16;
/// After this many accepted requests in a row, batches become larger again.
const ACCEPTED_TO_GROW: u32 = 64;

/// Takes rows from a feed and gives them back with their outcomes.
pub(crate) struct RowBatches<'f> {
    feed: &'f mut dyn RowFeed,
    packing: &'f Packing,
    /// A row that was taken from the feed and belongs into the next batch.
    next: Option<WriteRow>,
    /// True if the feed has no more rows.
    is_at_end: bool,
    /// Rows of refused batches.
    again: VecDeque<WriteRow>,
    /// Rows in a batch, for now.
    rows_max: usize,
    /// Accepted requests since a batch was refused.
    accepted: u32,
}

impl<'f> RowBatches<'f> {
    pub fn new(feed: &'f mut dyn RowFeed, packing: &'f Packing) -> Self {
        Self {
            feed,
            packing,
            next: None,
            is_at_end: false,
            again: VecDeque::new(),
            rows_max: packing.rows_max,
            accepted: 0,
        }
    }

    /// The rows of the next request, at least one. After `None` there can be rows again: a batch under way may be refused.
    pub fn next(&mut self) -> Option<Vec<WriteRow>> {
        if let Some(row) = self.again.pop_front() {
            return Some(vec![row]);
        }
        let first = self.next.take().or_else(|| self.take())?;
        let mut size_bytes = size_of(&first);
        let mut batch = Vec::with_capacity(self.rows_max);
        batch.push(first);
        while batch.len() < self.rows_max
            && let Some(row) = self.take()
        {
            size_bytes += size_of(&row);
            if size_bytes > BATCH_BYTES_MAX || batch.iter().any(|other| self.have_same_key(other, &row)) {
                self.next = Some(row);
                break;
            }
            batch.push(row);
        }
        Some(batch)
    }

    fn take(&mut self) -> Option<WriteRow> {
        if self.is_at_end {
            return None;
        }
        let row = self.feed.next();
        self.is_at_end = row.is_none();
        row
    }

    fn have_same_key(&self, left: &WriteRow, right: &WriteRow) -> bool {
        self.packing.key.iter().all(|(place, cql_type)| {
            match [left, right].map(|row| row.values.value(*place)) {
                [Some(Value::Bytes(left)), Some(Value::Bytes(right))] => {
                    cql_type.compare(left, right) == Ordering::Equal
                }
                [left, right] => left == right,
            }
        })
    }

    /// Reports the outcome of a request.
    pub fn done(&mut self, batch: Vec<WriteRow>, outcome: Result<(), Failure>) {
        match outcome {
            Ok(()) => {
                self.accept();
                batch.into_iter().for_each(|row| self.feed.done(row, Ok(())));
            }
            Err(failure) => match <[WriteRow; 1]>::try_from(batch) {
                Ok([row]) => self.feed.done(row, Err(failure)),
                Err(batch) => {
                    self.rows_max = self.rows_max.div_ceil(2);
                    self.accepted = 0;
                    self.again.extend(batch);
                }
            },
        }
    }

    fn accept(&mut self) {
        self.accepted += 1;
        if self.accepted == ACCEPTED_TO_GROW {
            self.accepted = 0;
            self.rows_max = (self.rows_max * 2).min(self.packing.rows_max);
        }
    }

    /// Reports that the outcome of these requests is unknown, because the connection broke, and gives back the rows that were not sent.
    pub fn give_up(&mut self, under_way: impl Iterator<Item = Vec<WriteRow>>) {
        let taken = self.again.drain(..).chain(self.next.take());
        under_way
            .flatten()
            .chain(taken)
            .for_each(|row| self.feed.lost(row));
    }
}

fn size_of(row: &WriteRow) -> usize {
    let value_len = |value| match value {
        Value::Bytes(bytes) => VALUE_BYTES + bytes.len(),
        Value::Null | Value::Unset => VALUE_BYTES,
    };
    ROW_BYTES + row.values.iter().map(value_len).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use ilion_types::CqlType;

    use super::*;

    /// Rows with a key and a value each, and what became of them.
    #[derive(Default)]
    struct Feed {
        rows: VecDeque<(Vec<u8>, usize)>,
        written: Vec<u64>,
        failed: Vec<u64>,
        lost: Vec<u64>,
        number: u64,
    }

    impl RowFeed for Feed {
        fn next(&mut self) -> Option<WriteRow> {
            let (key, value_bytes) = self.rows.pop_front()?;
            self.number += 1;
            Some(WriteRow {
                values: [&vec![0; value_bytes], &key]
                    .into_iter()
                    .map(|bytes| Value::Bytes(bytes))
                    .collect(),
                source: Vec::new(),
                line: self.number,
                number: self.number,
            })
        }

        fn done(&mut self, row: WriteRow, outcome: Result<(), Failure>) {
            match outcome {
                Ok(()) => self.written.push(row.number),
                Err(_) => self.failed.push(row.number),
            }
        }

        fn lost(&mut self, row: WriteRow) {
            self.lost.push(row.number);
        }
    }

    fn feed_of(keys: impl IntoIterator<Item = i32>) -> Feed {
        Feed {
            rows: keys
                .into_iter()
                .map(|key| (key.to_be_bytes().to_vec(), 4))
                .collect(),
            ..Feed::default()
        }
    }

    fn packing(rows_max: usize) -> Packing {
        Packing {
            requests_max: 1,
            rows_max,
            key: vec![(1, CqlType::Int)],
        }
    }

    fn refused() -> Failure {
        Failure::Lost("refused".to_owned())
    }

    fn numbers(batch: &[WriteRow]) -> Vec<u64> {
        batch.iter().map(|row| row.number).collect()
    }

    #[test]
    fn rows_with_the_same_key_are_in_different_batches() {
        let mut feed = feed_of([1, 2, 1, 1, 3, 4]);
        let packing = packing(10);
        let mut batches = RowBatches::new(&mut feed, &packing);
        let taken: Vec<_> = std::iter::from_fn(|| batches.next())
            .map(|batch| numbers(&batch))
            .collect();
        assert_eq!(taken, [vec![1, 2], vec![3], vec![4, 5, 6]]);
    }

    #[test]
    fn keys_that_are_equal_in_another_scale_are_the_same_key() {
        let decimal = |scale: i32, digits: u8| [&scale.to_be_bytes()[..], &[digits]].concat();
        let mut feed = Feed {
            rows: [decimal(0, 1), decimal(1, 10), decimal(1, 11)]
                .map(|key| (key, 4))
                .into(),
            ..Feed::default()
        };
        let packing = Packing {
            key: vec![(1, CqlType::Decimal)],
            ..packing(10)
        };
        let mut batches = RowBatches::new(&mut feed, &packing);
        assert_eq!(numbers(&batches.next().unwrap()), [1]);
        assert_eq!(numbers(&batches.next().unwrap()), [2, 3]);
    }

    #[test]
    fn large_rows_make_small_batches() {
        let mut feed = Feed {
            rows: (0_u8..6).map(|key| (vec![key; 4], 1500)).collect(),
            ..Feed::default()
        };
        feed.rows.push_back((vec![9; 4], 1 << 20));
        let packing = packing(10);
        let mut batches = RowBatches::new(&mut feed, &packing);
        let sizes: Vec<_> = std::iter::from_fn(|| batches.next())
            .map(|batch| batch.len())
            .collect();
        assert_eq!(sizes, [2, 2, 2, 1]);
    }

    #[test]
    fn the_rows_of_a_refused_batch_have_outcomes_of_their_own() {
        let mut feed = feed_of(0..1000);
        let packing = packing(8);
        let mut batches = RowBatches::new(&mut feed, &packing);
        let mut sizes = Vec::new();
        while let Some(batch) = batches.next() {
            sizes.push(batch.len());
            let is_bad = batch.iter().any(|row| row.number == 100);
            batches.done(batch, if is_bad { Err(refused()) } else { Ok(()) });
        }
        assert_eq!(feed.failed, [100]);
        assert_eq!(feed.written.len(), 999);
        assert_eq!(sizes[..13], [8; 13]);
        assert_eq!(sizes[13..21], [1; 8]);
        assert_eq!(sizes[21], 4, "smaller after the refusal");
        assert!(sizes[21..].contains(&8), "and as large as before in the end");
    }

    #[test]
    fn where_all_batches_are_refused_nearly_all_requests_are_single_rows() {
        let mut feed = feed_of(0..10_000);
        let packing = packing(10);
        let mut batches = RowBatches::new(&mut feed, &packing);
        let mut refusals = 0;
        while let Some(batch) = batches.next() {
            let is_single = batch.len() == 1;
            refusals += u32::from(!is_single);
            batches.done(batch, if is_single { Ok(()) } else { Err(refused()) });
        }
        assert_eq!(feed.written.len(), 10_000);
        assert!(refusals < 200, "{refusals}");
    }

    #[test]
    fn all_rows_that_were_taken_are_given_back() {
        let mut feed = feed_of([1, 2, 3, 3, 4]);
        let packing = packing(2);
        let mut batches = RowBatches::new(&mut feed, &packing);
        let (first, second) = (batches.next().unwrap(), batches.next().unwrap());
        assert_eq!(numbers(&second), [3], "the next row has its key");
        batches.done(first, Err(refused()));
        batches.give_up([second].into_iter());
        assert_eq!(feed.lost, [3, 1, 2, 4]);
        assert_eq!(feed.number, 4, "the rest was not taken");
    }
}
