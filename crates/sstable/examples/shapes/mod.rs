//! Tables that the examples write and read: what their rows look like decides what a format costs.

use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::notation::parse_table;
use ilion_rows::{
    Cell, Clustering, ColumnData, Data, DecoratedKey, DeletionTime, Liveness, PartitionHead, Row, Unfiltered,
};
use ilion_schema::TableSchema;
use ilion_sstable::{EncodingStats, WriterOptions};
use ilion_types::Partitioner;

/// When all rows were written.
pub const MICROS: i64 = 1_700_000_000_000_000;

/// A table and what its rows look like.
pub struct Shape {
    pub table: Arc<TableSchema>,
    /// Rows of a partition.
    pub rows_each: u64,
    value: Value,
}

/// What values look like.
#[derive(Clone, Copy)]
enum Value {
    Random(usize),
    Words(usize),
}

impl Shape {
    /// `blobs`, `words`, `kilobyte` or `rows`.
    pub fn named(name: &str) -> Self {
        let five = "k blob pk, a blob, b blob, c blob, d blob, e blob";
        let (text, rows_each, value) = match name {
            "blobs" => (five, 1, Value::Random(34)),
            "words" => (five, 1, Value::Words(34)),
            "kilobyte" => ("k blob pk, v blob", 1, Value::Words(1024)),
            "rows" => ("k bigint pk, c bigint ck, v blob", 1000, Value::Random(34)),
            other => panic!("no such shape: {other}"),
        };
        Self {
            table: parse_table(text).unwrap(),
            rows_each,
            value,
        }
    }

    /// So many partitions, in order, their keys one behind the other in memory: to fetch them is no part of what is measured.
    pub fn heads(&self, partitions: u64) -> Vec<PartitionHead> {
        let mut keys: Vec<DecoratedKey> = (0..partitions)
            .map(|key| DecoratedKey::new(Partitioner::Murmur3, Bytes::copy_from_slice(&key.to_be_bytes())))
            .collect();
        keys.sort();
        let bytes: Bytes = keys.iter().flat_map(|key| key.key.to_vec()).collect();
        let heads = keys.into_iter().enumerate().map(|(index, key)| PartitionHead {
            key: DecoratedKey {
                token: key.token,
                key: bytes.slice(index * 8..index * 8 + 8),
            },
            deletion: DeletionTime::LIVE,
            static_row: None,
        });
        heads.collect()
    }

    /// The next row, the one with that number of its partition.
    pub fn row(&self, number: u64, state: &mut u64) -> Unfiltered {
        let clustering = match self.rows_each {
            1 => Clustering::empty(),
            _ => Clustering::of([Bytes::copy_from_slice(&number.to_be_bytes())]),
        };
        let columns = self.table.regulars().map(|column| ColumnData {
            column: column.id,
            data: Data::Simple(Cell::live(MICROS + 5, self.value.make(state))),
        });
        Unfiltered::Row(Row {
            liveness: Liveness::live(MICROS + 5),
            columns: columns.collect(),
            ..Row::empty(clustering)
        })
    }

    /// For a file of so many partitions.
    pub fn options(partitions: u64) -> WriterOptions {
        WriterOptions {
            estimated_partitions: partitions,
            encoding_stats: EncodingStats {
                min_timestamp_micros: MICROS,
                ..EncodingStats::NONE
            },
            ..WriterOptions::default()
        }
    }
}

impl Value {
    fn make(self, state: &mut u64) -> Bytes {
        const WORDS: [&str; 8] = [
            "alder ", "beech ", "dogwood ", "elm ", "fir ", "ginkgo ", "juniper ", "oak ",
        ];
        let (Self::Random(len) | Self::Words(len)) = self;
        let mut bytes = Vec::new();
        while bytes.len() < len {
            *state ^= *state << 13;
            *state ^= *state >> 7;
            *state ^= *state << 17;
            match self {
                Self::Random(_) => bytes.extend_from_slice(&state.to_le_bytes()),
                Self::Words(_) => bytes.extend_from_slice(WORDS[(*state >> 61) as usize].as_bytes()),
            }
        }
        bytes.truncate(len);
        Bytes::from(bytes)
    }
}
