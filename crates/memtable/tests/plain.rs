//! Plain partitions are shown as they are read.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::sync::Arc;

use bytes::Bytes;
use ilion_memtable::Memtable;
use ilion_rows::notation::parse_table;
use ilion_rows::random::{Dice, random_update};
use ilion_rows::{
    Cell, Clustering, ClusteringFilter, ColumnData, Cursor, Data, DecoratedKey, DeletionTime, Flow, KeyRange,
    Liveness, Mutation, Partition, PartitionHead, PartitionUpdate, PlainRow, PlainVisitor, Row, Unfiltered,
};
use ilion_schema::TableSchema;
use ilion_types::Partitioner;

const KEYS: usize = 300;

fn key(number: usize) -> DecoratedKey {
    DecoratedKey::new(Partitioner::Murmur3, Bytes::from(format!("key {number}")))
}

/// Most of them plain.
fn mutation(table: &Arc<TableSchema>, dice: &mut Dice) -> Mutation {
    let mut update = random_update(table, dice);
    if !dice.one_in(6) {
        let micros = 1000 + i64::from(dice.byte());
        let columns = table.regulars().filter(|_| dice.one_in(2));
        let columns = columns.map(|column| ColumnData {
            column: column.id,
            data: Data::Simple(Cell::live(micros, Bytes::from_static(b"1234"))),
        });
        let row = Row {
            liveness: Liveness::live(micros),
            columns: columns.collect(),
            ..Row::empty(Clustering::empty())
        };
        update = PartitionUpdate {
            rows: vec![row],
            ..PartitionUpdate::default()
        };
    }
    Mutation {
        table: table.clone(),
        key: key(dice.below(KEYS)),
        update,
    }
}

/// Keeps what it is shown; leaves some of it alone, and ends some runs.
struct Shown {
    dice: Dice,
    partitions: Vec<Partition>,
}

impl PlainVisitor for Shown {
    fn row(&mut self, row: &PlainRow<'_>) -> Flow {
        if self.dice.one_in(10) {
            return Flow::Leave;
        }
        let key = DecoratedKey::new(Partitioner::Murmur3, Bytes::copy_from_slice(row.key));
        assert_eq!(row.token, Some(&key.token));
        let micros = row.timestamp_micros.unwrap();
        let columns = row.cells.iter().map(|(column, value)| ColumnData {
            column: *column,
            data: Data::Simple(Cell::live(micros, Bytes::copy_from_slice(value))),
        });
        let row = Row {
            liveness: Liveness::live(micros),
            columns: columns.collect(),
            ..Row::empty(Clustering::empty())
        };
        self.partitions.push(Partition {
            head: PartitionHead {
                key,
                deletion: DeletionTime::LIVE,
                static_row: None,
            },
            unfiltereds: vec![Unfiltered::Row(row)],
        });
        match self.dice.one_in(10) {
            true => Flow::Last,
            false => Flow::Next,
        }
    }
}

#[test]
fn what_is_plain_is_shown_as_it_is_read() {
    let table = parse_table("k text pk, a int, b blob").unwrap();
    for seed in 0..20 {
        let mut dice = Dice::new(seed);
        let memtable = Arc::new(Memtable::new(table.clone(), 4));
        for _ in 0..KEYS {
            memtable.apply(&mutation(&table, &mut dice));
        }
        let open = || memtable.cursor(KeyRange::all(), Arc::new(ClusteringFilter::all()));
        let mut cursor = open();
        let expected: Vec<_> = std::iter::from_fn(|| Partition::read_next(&mut cursor).unwrap()).collect();
        let mut shown = Shown {
            dice,
            partitions: Vec::new(),
        };
        let (mut cursor, mut plain) = (open(), 0);
        loop {
            let before = key(shown.dice.below(KEYS));
            let had = shown.partitions.len();
            let run = cursor.plain_partitions(Some(&before), &mut shown).unwrap();
            assert_eq!(
                run.as_ref().map(|run| &run.last),
                shown.partitions[had..].last().map(|last| &last.head.key)
            );
            assert!(
                shown.partitions[had..]
                    .iter()
                    .all(|shown| shown.head.key < before)
            );
            plain += run.map_or(0, |run| run.count);
            assert!(
                cursor
                    .peek()
                    .is_none_or(|next| expected[shown.partitions.len()].head.key == next)
            );
            let Some(partition) = Partition::read_next(&mut cursor).unwrap() else {
                break;
            };
            shown.partitions.push(partition);
        }
        assert_eq!(shown.partitions, expected, "seed {seed}");
        assert!(plain > 20, "seed {seed}: only {plain} were plain");
    }
}
