//! Generated tables: the cost of a format depends on the shape of the rows.

use std::sync::Arc;

use bytes::Bytes;
use clap::ValueEnum;
use ilion_env::Seeded;
use ilion_rows::{
    Cell, Clustering, ColumnData, Data, DecoratedKey, DeletionTime, Liveness, PartitionHead, PlainRow, Row,
    Unfiltered,
};
use ilion_schema::{ClusteringOrder, ColumnId, TableBuilder, TableId, TableSchema};
use ilion_sstable::row_format::cell_flag;
use ilion_types::{CqlType, Partitioner, Uuid};

/// Timestamp of all rows.
pub(super) const WRITTEN_MICROS: i64 = 1_700_000_000_000_000;

/// The shape of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shape {
    /// Five blobs of 34 random bytes, one row per partition: the rows of cassandra-stress. They do not compress.
    Blobs,
    /// The same with words, which compress.
    Words,
    /// A text of 1 KiB, one row per partition.
    Kilobyte,
    /// Partitions of 1000 rows: an int, a bigint and a text of 9 bytes behind a clustering int.
    Narrow,
    /// The same with texts of 1 to 17 bytes, so that consecutive rows have different layouts.
    Uneven,
    /// Five texts of 10 to 60 bytes, one row per partition.
    Texts,
    /// Narrow rows; four of five were updated in part, set to null in part, have a TTL, or come from an UPDATE.
    Updated,
}

/// A change of a row after, or instead of, its INSERT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Update {
    /// No change.
    None,
    /// One column was updated a second later.
    Later,
    /// One column was set to null.
    Null,
    /// The row was inserted with a TTL.
    Ttl,
    /// The row comes from an UPDATE of two columns, so it has no row timestamp.
    Upsert,
}

impl Update {
    const ALL: [Self; 5] = [Self::None, Self::Later, Self::Null, Self::Ttl, Self::Upsert];
}

/// The contents of a table. Partitions share rows, and keys are contiguous in memory, so that generating and fetching them is not
/// measured. A chunk never has the same row twice.
pub(super) struct Contents {
    /// The partitions, in token order.
    pub heads: Vec<PartitionHead>,
    rows: Vec<Vec<Unfiltered>>,
}

/// Most different rows of a table. If partitions have more rows than this, all of them have the same rows.
const DIFFERENT_ROWS: u32 = 100;
/// Bytes of a key.
const KEY_BYTES: usize = 10;

impl Contents {
    /// Each partition with its rows.
    pub(super) fn partitions(&self) -> impl Iterator<Item = (&PartitionHead, &Vec<Unfiltered>)> {
        self.heads.iter().zip(self.rows.iter().cycle())
    }

    /// The rows of each partition as a compaction receives them.
    pub(super) fn seen(&self, table: &TableSchema) -> Vec<Vec<SeenRow<'_>>> {
        let seen = |row| match PlainParts::of(row, table) {
            Some(parts) => SeenRow::Plain(parts),
            None => SeenRow::Built(row),
        };
        let partitions = self.rows.iter().map(|rows| rows.iter().map(seen).collect());
        partitions.collect()
    }

    pub(super) fn row_count(&self) -> u64 {
        self.partitions().map(|(_, rows)| rows.len() as u64).sum()
    }
}

/// A row as a compaction receives it.
pub(super) enum SeenRow<'c> {
    /// A plain row, visited in place.
    Plain(PlainParts<'c>),
    /// A row that is not plain, so it was built.
    Built(&'c Unfiltered),
}

/// The parts of a plain row.
pub(super) struct PlainParts<'c> {
    clustering: Vec<Option<&'c [u8]>>,
    cells: Vec<(ColumnId, &'c [u8])>,
    /// The encoded cells, for a row from an SSTable; `None` for a row from a memtable.
    stored: Option<Vec<u8>>,
}

impl<'c> PlainParts<'c> {
    fn of(unfiltered: &'c Unfiltered, table: &TableSchema) -> Option<Self> {
        let Unfiltered::Row(row) = unfiltered else {
            return None;
        };
        if row.liveness != Liveness::live(WRITTEN_MICROS) {
            return None;
        }
        let cells = row.columns.iter().map(|column| match &column.data {
            Data::Simple(cell) if *cell == Cell::live(WRITTEN_MICROS, cell.value.clone()) => {
                Some((column.column, &cell.value[..]))
            }
            _ => None,
        });
        let cells = cells.collect::<Option<Vec<_>>>()?;
        let clustering = row.clustering.values().iter();
        // Flushes write plain rows only if they are alone in their partition.
        let is_from_sstable = table.clustering().next().is_some();
        Some(Self {
            clustering: clustering.map(Option::as_deref).collect(),
            stored: if is_from_sstable {
                Some(stored(&cells, table)?)
            } else {
                None
            },
            cells,
        })
    }

    /// The row in a partition.
    pub(super) fn row_of<'r>(&'r self, key: &'r DecoratedKey) -> PlainRow<'r> {
        PlainRow {
            key: &key.key,
            token: Some(&key.token),
            clustering: &self.clustering,
            timestamp_micros: Some(WRITTEN_MICROS),
            cells: &self.cells,
            stored: self.stored.as_deref(),
        }
    }
}

/// Encodes cells with the timestamp of their row; `None` if a value is too long.
fn stored(cells: &[(ColumnId, &[u8])], table: &TableSchema) -> Option<Vec<u8>> {
    let mut stored = Vec::new();
    for (id, value) in cells {
        stored.push(cell_flag::USES_ROW_TIMESTAMP);
        if table.column(*id)?.ty.fixed_len().is_none() {
            stored.push(u8::try_from(value.len()).ok().filter(|len| *len < 0x80)?);
        }
        stored.extend_from_slice(value);
    }
    Some(stored)
}

const WORDS: [&str; 16] = [
    "alder", "beech", "cedar", "dogwood", "elm", "fir", "ginkgo", "hazel", "ivy", "juniper", "kapok",
    "larch", "maple", "nutmeg", "oak", "pine",
];

impl Shape {
    pub(super) const ALL: [Self; 7] = [
        Self::Blobs,
        Self::Words,
        Self::Kilobyte,
        Self::Narrow,
        Self::Uneven,
        Self::Texts,
        Self::Updated,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Blobs => "blobs",
            Self::Words => "words",
            Self::Kilobyte => "kilobyte",
            Self::Narrow => "narrow",
            Self::Uneven => "uneven",
            Self::Texts => "texts",
            Self::Updated => "updated",
        }
    }

    pub(super) fn table(self) -> Arc<TableSchema> {
        let id = TableId(Uuid::from_u128(self as u128 + 1));
        let table = TableBuilder::new("bench", self.name(), id).partition_key("key", CqlType::Blob);
        let table = match self {
            Self::Blobs | Self::Words | Self::Texts => ["c0", "c1", "c2", "c3", "c4"]
                .into_iter()
                .fold(table, |table, name| table.regular(name, CqlType::Blob)),
            Self::Kilobyte => table.regular("value", CqlType::Text),
            Self::Narrow | Self::Uneven | Self::Updated => table
                .clustering("at", CqlType::Int, ClusteringOrder::Asc)
                .regular("count", CqlType::Int)
                .regular("sum", CqlType::BigInt)
                .regular("text", CqlType::Text),
        };
        table.build()
    }

    fn rows_per_partition(self) -> u32 {
        match self {
            Self::Blobs | Self::Words | Self::Kilobyte | Self::Texts => 1,
            Self::Narrow | Self::Uneven | Self::Updated => 1000,
        }
    }

    /// Approximate encoded size of a row.
    fn row_bytes(self) -> u64 {
        match self {
            Self::Blobs | Self::Words | Self::Texts => 212,
            Self::Kilobyte => 1060,
            Self::Narrow | Self::Uneven | Self::Updated => 34,
        }
    }

    /// Generates rows of about `size_bytes`.
    pub(super) fn contents(self, table: &TableSchema, size_bytes: u64) -> Contents {
        let rows_each = self.rows_per_partition();
        let count = size_bytes / (self.row_bytes() * u64::from(rows_each));
        let mut seeded = Seeded::new(20_250_501);
        let heads = heads(count.max(2), &mut seeded);
        let mut row = |number| Unfiltered::Row(self.row(number, table, &mut seeded));
        let lists = (DIFFERENT_ROWS / rows_each).max(1);
        let rows = (0..lists).map(|_| (0..rows_each).map(&mut row).collect());
        Contents {
            rows: rows.collect(),
            heads,
        }
    }

    fn row(self, number: u32, table: &TableSchema, seeded: &mut Seeded) -> Row {
        let text_len = match self {
            Self::Uneven => 1 + usize::try_from(seeded.below(17)).unwrap_or(0),
            _ => 9,
        };
        let values: Vec<(&str, Bytes)> = match self {
            Self::Blobs => ["c0", "c1", "c2", "c3", "c4"]
                .map(|name| (name, random(seeded, 34)))
                .into(),
            Self::Words => ["c0", "c1", "c2", "c3", "c4"]
                .map(|name| (name, words(seeded, 34)))
                .into(),
            Self::Texts => ["c0", "c1", "c2", "c3", "c4"]
                .map(|name| {
                    let len = 10 + usize::try_from(seeded.below(51)).unwrap_or(0);
                    (name, words(seeded, len))
                })
                .into(),
            Self::Kilobyte => vec![("value", words(seeded, 1024))],
            Self::Narrow | Self::Uneven | Self::Updated => vec![
                ("count", random(seeded, 4)),
                (
                    "sum",
                    Bytes::copy_from_slice(&seeded.below(1_000_000).to_be_bytes()),
                ),
                ("text", words(seeded, text_len)),
            ],
        };
        let columns = values.into_iter().filter_map(|(name, value)| {
            Some(ColumnData {
                column: table.column_named(name)?.id,
                data: Data::Simple(Cell::live(WRITTEN_MICROS, value)),
            })
        });
        let mut columns: Vec<ColumnData> = columns.collect();
        columns.sort_by_key(|data| data.column);
        let clustering = match self {
            Self::Narrow | Self::Uneven | Self::Updated => {
                Clustering::of([Bytes::copy_from_slice(&number.to_be_bytes())])
            }
            _ => Clustering::empty(),
        };
        let mut row = Row {
            liveness: Liveness::live(WRITTEN_MICROS),
            columns,
            ..Row::empty(clustering)
        };
        if self == Self::Updated {
            let column = usize::try_from(seeded.below(row.columns.len() as u64)).unwrap_or(0);
            update(&mut row, Update::ALL[number as usize % Update::ALL.len()], column);
        }
        row
    }
}

/// TTL of rows with one.
const TTL_SECS: u32 = 86_400;
/// Timestamp of all rows, in seconds.
const WRITTEN_SECS: u32 = 1_700_000_000;

/// Changes a row; `column` is the index of the column that changes.
fn update(row: &mut Row, update: Update, column: usize) {
    let later_micros = WRITTEN_MICROS + 1_000_000;
    let cell = |data: &ColumnData| match &data.data {
        Data::Simple(cell) => cell.value.clone(),
        Data::Complex(_) => Bytes::new(),
    };
    match update {
        Update::None => {}
        Update::Later => {
            let value = cell(&row.columns[column]);
            row.columns[column].data = Data::Simple(Cell::live(later_micros, value));
        }
        Update::Null => {
            row.columns[column].data = Data::Simple(Cell::tombstone(later_micros, WRITTEN_SECS + 1));
        }
        Update::Ttl => {
            let expires_secs = WRITTEN_SECS + TTL_SECS;
            row.liveness = Liveness::expiring(WRITTEN_MICROS, TTL_SECS, expires_secs);
            for data in &mut row.columns {
                let expiring = Cell::expiring(WRITTEN_MICROS, TTL_SECS, expires_secs, cell(data));
                data.data = Data::Simple(expiring);
            }
        }
        Update::Upsert => {
            row.columns.remove(column);
            row.liveness = Liveness::NONE;
        }
    }
}

/// Heads of partitions with random keys, in token order.
fn heads(count: u64, seeded: &mut Seeded) -> Vec<PartitionHead> {
    let key = |_| DecoratedKey::new(Partitioner::Murmur3, random(seeded, KEY_BYTES));
    let mut keys: Vec<DecoratedKey> = (0..count).map(key).collect();
    keys.sort();
    let bytes: Bytes = keys.iter().flat_map(|key| key.key.to_vec()).collect();
    let heads = keys.into_iter().enumerate().map(|(index, key)| PartitionHead {
        key: DecoratedKey {
            token: key.token,
            key: bytes.slice(index * KEY_BYTES..(index + 1) * KEY_BYTES),
        },
        deletion: DeletionTime::LIVE,
        static_row: None,
    });
    heads.collect()
}

fn random(seeded: &mut Seeded, length: usize) -> Bytes {
    let mut bytes = vec![0; length];
    seeded.fill(&mut bytes);
    bytes.into()
}

fn words(seeded: &mut Seeded, length: usize) -> Bytes {
    let mut text = String::with_capacity(length + 8);
    while text.len() < length {
        text.push_str(word(seeded));
        text.push(' ');
    }
    text.truncate(length);
    text.into_bytes().into()
}

fn word(seeded: &mut Seeded) -> &'static str {
    let index = usize::try_from(seeded.below(WORDS.len() as u64)).unwrap_or(0);
    WORDS[index]
}
