//! Warnings about large partitions, rows and cells, and many tombstones, while they are written to SSTables.
//!
//! Compat: the messages of Cassandra's guardrails on partition size and tombstones. As there, data above the second threshold is only
//! logged as an error and not refused, since a flush or compaction must write it. Warnings about rows and cells are Ilion's own. The
//! number of warnings for an SSTable is limited.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::{Cell, Data, DecoratedKey, EntryRow, PartitionHead, PlainRow, Row, Unfiltered};
use ilion_schema::TableSchema;
use ilion_types::decode_composite;

/// Maximum number of warnings for one SSTable; more are only counted.
const WARNINGS_MAX: u64 = 10;

/// Thresholds of warnings; `None` means never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LargeLimits {
    /// Uncompressed bytes of a partition.
    pub partition_bytes: Option<u64>,
    /// Uncompressed bytes of a partition, logged as an error.
    pub partition_bytes_fail: Option<u64>,
    /// Tombstones of a partition.
    pub partition_tombstones: Option<u64>,
    /// Tombstones of a partition, logged as an error.
    pub partition_tombstones_fail: Option<u64>,
    /// Uncompressed bytes of a row.
    pub row_bytes: Option<u64>,
    /// Bytes of a cell's value.
    pub cell_bytes: Option<u64>,
}

/// Checks the partitions, rows and cells that are written to an SSTable.
pub(crate) struct LargeWatch {
    limits: LargeLimits,
    table: Arc<TableSchema>,
    key: Option<DecoratedKey>,
    start: u64,
    tombstones: u64,
    warnings: u64,
    /// The lowest of the limits in bytes.
    bytes_min: u64,
}

/// Upper limit for the bytes of a plain partition or row without its values: key, times, and the overhead of each value.
const PLAIN_OVERHEAD_BYTES: usize = 64;
const PLAIN_VALUE_OVERHEAD_BYTES: usize = 10;

impl LargeWatch {
    pub(crate) fn new(limits: LargeLimits, table: &Arc<TableSchema>) -> Self {
        let limits_in_bytes = [
            limits.partition_bytes,
            limits.partition_bytes_fail,
            limits.row_bytes,
            limits.cell_bytes,
        ];
        Self {
            bytes_min: limits_in_bytes.into_iter().flatten().min().unwrap_or(u64::MAX),
            limits,
            table: table.clone(),
            key: None,
            start: 0,
            tombstones: 0,
            warnings: 0,
        }
    }

    /// The table that is written.
    pub(crate) fn table(&self) -> &TableSchema {
        &self.table
    }

    /// Begins a partition; `written` is the number of uncompressed bytes of the SSTable before it.
    pub(crate) fn begin_partition(&mut self, head: &PartitionHead, written: u64) {
        if self.limits == LargeLimits::default() {
            return;
        }
        self.key = Some(head.key.clone());
        self.start = written;
        self.tombstones = u64::from(!head.deletion.is_live());
        if let Some(row) = &head.static_row {
            self.count(row);
        }
    }

    /// True if a plain partition or row cannot cause a warning and needs no check. Plain rows have no tombstones.
    #[inline]
    pub(crate) fn passes_over(&self, row: &PlainRow<'_>) -> bool {
        if self.bytes_min == u64::MAX {
            return true;
        }
        let clustering = row.clustering.iter().flatten().copied();
        let values = row.cells.iter().map(|(_, value)| *value).chain(clustering);
        let bytes: usize = values.map(|value| value.len() + PLAIN_VALUE_OVERHEAD_BYTES).sum();
        (bytes + row.key.len() + PLAIN_OVERHEAD_BYTES) as u64 <= self.bytes_min
    }

    /// Checks a row or marker that was written and took this many bytes.
    #[inline]
    pub(crate) fn unfiltered(&mut self, unfiltered: &Unfiltered, bytes: u64) {
        let is_above = |limit: Option<u64>| limit.is_some_and(|limit| bytes > limit);
        if let Unfiltered::Row(row) = unfiltered {
            self.count(row);
            if is_above(self.limits.row_bytes) || is_above(self.limits.cell_bytes) {
                self.large_row(row, bytes);
            }
        } else {
            self.tombstones += 1;
        }
    }

    /// Checks a row without values that was written and took this many bytes.
    #[inline]
    pub(crate) fn entry(&mut self, entry: &EntryRow<'_>, bytes: u64) {
        self.tombstones += u64::from(!entry.deletion.is_live());
        if self.limits.row_bytes.is_some_and(|limit| bytes > limit) {
            self.large_row(&entry.to_row(), bytes);
        }
    }

    /// Ends the partition; `written` is the number of uncompressed bytes of the SSTable up to its end.
    pub(crate) fn end_partition(&mut self, written: u64) {
        let Some(key) = self.key.take() else {
            return;
        };
        let (bytes, tombstones) = (written.saturating_sub(self.start), self.tombstones);
        let limits = self.limits;
        if let Some((threshold, limit)) = passed(bytes, limits.partition_bytes, limits.partition_bytes_fail) {
            self.tell(threshold, &key, |what| {
                format!(
                    "Partition {what} has size {bytes}, this exceeds the {threshold} threshold of {limit}."
                )
            });
        }
        let (warn, fail) = (limits.partition_tombstones, limits.partition_tombstones_fail);
        if let Some((threshold, limit)) = passed(tombstones, warn, fail) {
            self.tell(threshold, &key, |what| {
                format!("Partition {what} has {tombstones} tombstones, this exceeds the {threshold} threshold of {limit}.")
            });
        }
    }

    /// Ends the SSTable: logs how many warnings were left out.
    pub(crate) fn finish(&self) {
        if let Some(more) = self.warnings.checked_sub(WARNINGS_MAX).filter(|more| *more > 0) {
            let (keyspace, table) = (&self.table.keyspace, &self.table.name);
            tracing::warn!("{more} more warnings of large data in {keyspace}.{table} were left out");
        }
    }

    /// Number of warnings.
    #[cfg(test)]
    fn warnings(&self) -> u64 {
        self.warnings
    }

    fn count(&mut self, row: &Row) {
        if self
            .limits
            .partition_tombstones
            .or(self.limits.partition_tombstones_fail)
            .is_none()
        {
            return;
        }
        let is_tombstone = |cell: &Cell| cell.is_tombstone();
        self.tombstones += u64::from(!row.deletion.is_live());
        for column in &row.columns {
            self.tombstones += match &column.data {
                Data::Simple(cell) => u64::from(is_tombstone(cell)),
                Data::Complex(complex) => {
                    let cells = complex.cells.iter().filter(|(_, cell)| is_tombstone(cell));
                    u64::from(!complex.deletion.is_live()) + cells.count() as u64
                }
            };
        }
    }

    #[cold]
    fn large_row(&mut self, row: &Row, bytes: u64) {
        let Some(key) = self.key.clone() else {
            return;
        };
        if let Some(limit) = self.limits.row_bytes.filter(|limit| bytes > *limit) {
            self.tell(Threshold::Warning, &key, |what| {
                format!("A row of partition {what} has size {bytes}, this exceeds the warning threshold of {limit}.")
            });
        }
        let Some(limit) = self.limits.cell_bytes else {
            return;
        };
        let table = self.table.clone();
        for column in &row.columns {
            let size = match &column.data {
                Data::Simple(cell) => cell.value.len() as u64,
                Data::Complex(complex) => {
                    let sizes = complex.cells.iter().map(|(_, cell)| cell.value.len() as u64);
                    sizes.max().unwrap_or(0)
                }
            };
            if size > limit {
                let name = table
                    .column(column.column)
                    .map_or("?", |column| column.name.as_str());
                self.tell(Threshold::Warning, &key, |what| {
                    format!(
                        "A value of column {name} of partition {what} has size {size}, this exceeds the warning \
                         threshold of {limit}."
                    )
                });
            }
        }
    }

    /// Logs a warning. Compat: beyond the second threshold it is logged as an error, but the data is still written.
    fn tell(&mut self, threshold: Threshold, key: &DecoratedKey, sentence: impl FnOnce(&str) -> String) {
        self.warnings += 1;
        if self.warnings > WARNINGS_MAX {
            return;
        }
        let sentence = sentence(&shown(&self.table, &key.key));
        match threshold {
            Threshold::Failure => tracing::error!("{sentence}"),
            Threshold::Warning => tracing::warn!("{sentence}"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Threshold {
    Warning,
    Failure,
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warning => "warning",
            Self::Failure => "failure",
        })
    }
}

/// The highest threshold that the value exceeds, with its limit.
fn passed(value: u64, warn: Option<u64>, fail: Option<u64>) -> Option<(Threshold, u64)> {
    let above = |limit: &u64| value > *limit;
    let failed = fail.filter(above).map(|limit| (Threshold::Failure, limit));
    failed.or_else(|| warn.filter(above).map(|limit| (Threshold::Warning, limit)))
}

/// `keyspace.table:key`, the values of a compound key with colons between them.
pub(crate) fn shown(table: &TableSchema, key: &Bytes) -> String {
    let parts = match table.partition_key().len() {
        1 => vec![&key[..]],
        _ => decode_composite(key).unwrap_or_default(),
    };
    let columns = table.partition_key();
    let shown = columns.zip(parts).map(|(column, part)| {
        let printed = column.ty.print_plain(part);
        printed.unwrap_or_else(|_| ilion_types::hex::print(part))
    });
    let shown: Vec<String> = shown.collect();
    format!("{}.{}:{}", table.keyspace, table.name, shown.join(":"))
}

#[cfg(test)]
mod tests {
    use ilion_rows::{Clustering, ColumnData, DeletionTime, Liveness};
    use ilion_schema::{TableBuilder, TableId};
    use ilion_types::{CqlType, Partitioner};

    use super::*;

    fn table() -> Arc<TableSchema> {
        TableBuilder::new("ks", "t", TableId(uuid::Uuid::nil()))
            .partition_key("k", CqlType::Text)
            .regular("v", CqlType::Blob)
            .build()
    }

    fn head(key: &'static [u8]) -> PartitionHead {
        PartitionHead {
            key: DecoratedKey::new(Partitioner::Murmur3, Bytes::from_static(key)),
            deletion: DeletionTime::LIVE,
            static_row: None,
        }
    }

    fn row(table: &TableSchema, cell: Cell) -> Unfiltered {
        let column = table.column_named("v").unwrap().id;
        Unfiltered::Row(Row {
            liveness: Liveness::live(1),
            columns: vec![ColumnData {
                column,
                data: Data::Simple(cell),
            }],
            ..Row::empty(Clustering::empty())
        })
    }

    #[test]
    fn what_is_above_its_limit_is_warned_of() {
        let table = table();
        let limits = LargeLimits {
            partition_bytes: Some(1000),
            partition_tombstones: Some(1),
            row_bytes: Some(500),
            cell_bytes: Some(400),
            ..LargeLimits::default()
        };
        let warnings = |rows: &[(Cell, u64)]| {
            let mut watch = LargeWatch::new(limits, &table);
            watch.begin_partition(&head(b"key"), 0);
            for (cell, bytes) in rows {
                watch.unfiltered(&row(&table, cell.clone()), *bytes);
            }
            watch.end_partition(rows.iter().map(|(_, bytes)| bytes).sum());
            watch.warnings()
        };
        let of = |bytes: usize| Cell::live(1, Bytes::from(vec![0; bytes]));
        assert_eq!(warnings(&[(of(300), 350), (of(300), 350)]), 0);
        assert_eq!(warnings(&[(of(450), 480)]), 1, "the cell");
        assert_eq!(warnings(&[(of(300), 501)]), 1, "the row");
        assert_eq!(
            warnings(&[(of(300), 400), (of(300), 400), (of(300), 400)]),
            1,
            "the partition"
        );
        let dead = || Cell::tombstone(1, 1);
        assert_eq!(warnings(&[(dead(), 10), (dead(), 10)]), 1, "the tombstones");
    }

    #[test]
    fn a_plain_row_is_watched_if_it_may_be_above_a_limit() {
        let limits = LargeLimits {
            row_bytes: Some(1000),
            ..LargeLimits::default()
        };
        let watch = LargeWatch::new(limits, &table());
        let passes = |clustering: &[u8], value: &[u8]| {
            watch.passes_over(&PlainRow {
                key: b"key",
                token: None,
                clustering: &[Some(clustering), None],
                timestamp_micros: Some(1),
                cells: &[(ilion_schema::ColumnId(0), value)],
                stored: None,
            })
        };
        let long = [0; 990];
        assert!(passes(b"c", b"v"));
        assert!(!passes(&long, b"v") && !passes(b"c", &long));
    }

    #[test]
    fn the_higher_threshold_is_told() {
        assert_eq!(passed(10, Some(10), Some(20)), None);
        assert_eq!(passed(11, Some(10), Some(20)), Some((Threshold::Warning, 10)));
        assert_eq!(passed(21, Some(10), Some(20)), Some((Threshold::Failure, 20)));
        assert_eq!(passed(21, None, Some(20)), Some((Threshold::Failure, 20)));
        assert_eq!(passed(21, None, None), None);
    }

    #[test]
    fn a_key_is_shown_as_text() {
        assert_eq!(shown(&table(), &Bytes::from_static(b"key")), "ks.t:key");
    }
}
