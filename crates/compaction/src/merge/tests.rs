//! Plain rows are passed on where they lie, others as any are, in the order of the source.

use std::ops::Range;

use bytes::Bytes;
use ilion_rows::{Bound, Clustering, DecoratedKey, DeletionTime, Liveness, Row};
use ilion_types::Token;

use super::*;

/// Partitions of rows that are numbered from 0 on. Even ones are plain.
struct Numbers {
    counts: Vec<u8>,
    /// How many partitions were begun.
    begun: usize,
    left: Range<u8>,
}

impl Cursor for Numbers {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let Some(count) = self.counts.get(self.begun) else {
            return Ok(None);
        };
        self.left = 0..*count;
        let number = self.begun;
        self.begun += 1;
        Ok(Some(PartitionHead {
            key: DecoratedKey {
                token: Token::Murmur3(i64::try_from(number).unwrap()),
                key: Bytes::from(number.to_string()),
            },
            deletion: DeletionTime::LIVE,
            static_row: None,
        }))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        let next = self.left.next().map(|number| Row {
            liveness: Liveness::live(1),
            ..Row::empty(Clustering::of([Bytes::copy_from_slice(&[number])]))
        });
        Ok(next.map(Unfiltered::Row))
    }

    fn plain_rows(
        &mut self,
        key: &DecoratedKey,
        _: Option<&Bound>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<u64, ReadError> {
        let mut count = 0;
        while !self.left.is_empty() && self.left.start.is_multiple_of(2) {
            let number = [self.left.start];
            let flow = visitor.row(&PlainRow {
                key: &key.key,
                token: Some(&key.token),
                clustering: &[Some(&number)],
                timestamp_micros: Some(1),
                cells: &[],
                stored: None,
            });
            if flow == Flow::Leave {
                break;
            }
            self.left.start += 1;
            count += 1;
        }
        Ok(count)
    }

    ilion_rows::cursor_methods!(without: lower_bound peek plain_partitions skip_deleted);
}

/// Writes down what it is given; refuses plain rows of some numbers, and fails at one.
#[derive(Default)]
struct Log {
    text: String,
    refused: Vec<u8>,
    fails_at: Option<u8>,
}

impl Sink for Log {
    type Error = ReadError;

    fn begin_partition(&mut self, head: &PartitionHead) -> Result<(), ReadError> {
        self.text += std::str::from_utf8(&head.key.key).unwrap();
        self.text += ":";
        Ok(())
    }

    fn unfiltered(&mut self, unfiltered: &Unfiltered) -> Result<(), ReadError> {
        let Unfiltered::Row(row) = unfiltered else {
            panic!("there are only rows");
        };
        let number = row.clustering.values()[0].as_deref().unwrap()[0];
        self.text += &format!(" row {number}");
        Ok(())
    }

    fn end_partition(&mut self) -> Result<(), ReadError> {
        self.text += ".\n";
        Ok(())
    }

    fn takes_plain_rows(&self) -> bool {
        true
    }

    fn plain_row(&mut self, row: &PlainRow<'_>) -> Result<bool, ReadError> {
        let number = row.clustering[0].unwrap()[0];
        if self.fails_at == Some(number) {
            return Err(ReadError::Aborted("the disk is full"));
        }
        if self.refused.contains(&number) {
            return Ok(false);
        }
        self.text += &format!(" plain {number}");
        Ok(true)
    }
}

fn numbers(counts: &[u8]) -> Numbers {
    Numbers {
        counts: counts.to_vec(),
        begun: 0,
        left: 0..0,
    }
}

#[test]
fn plain_rows_are_passed_on_between_the_others() {
    let mut log = Log {
        refused: vec![2],
        ..Log::default()
    };
    let outcome = merge_into(&mut numbers(&[5, 0, 1]), &mut log).unwrap();
    assert_eq!(
        log.text, "0: plain 0 row 1 row 2 row 3 plain 4.\n2: plain 0.\n",
        "a partition without rows is not begun"
    );
    assert_eq!((outcome.partitions, outcome.unfiltereds), (2, 6));
}

#[test]
fn what_a_sink_fails_with_ends_the_merge() {
    let mut log = Log {
        fails_at: Some(2),
        ..Log::default()
    };
    let failed = merge_into(&mut numbers(&[5]), &mut log);
    assert!(matches!(failed, Err(ReadError::Aborted("the disk is full"))));
    assert_eq!(log.text, "0: plain 0 row 1");
}
