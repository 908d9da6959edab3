//! `metadata -s`: numbers that need a scan of all rows.

use std::fmt::Write as _;

use ilion_rows::{ColumnData, Data, PartitionHead, Row, Unfiltered};

use super::style::Style;
use super::units::bytes;
use crate::sstable::keys::print_key;
use crate::sstable::progress::Progress;
use crate::sstable::source::Source;

/// Most partitions in each list.
const LEADERS: usize = 5;

/// The counts of an SSTable.
#[derive(Default)]
pub(super) struct Overview {
    bytes: u64,
    partitions: u64,
    rows: u64,
    tombstones: u64,
    cells: u64,
    widest: Leaders,
    largest: Leaders,
    most_tombstones: Leaders,
}

/// The partitions with the greatest values, greatest first; partitions with equal values are in the order of the file.
#[derive(Default)]
struct Leaders(Vec<(u64, String)>);

impl Leaders {
    fn admit(&mut self, value: u64, key: impl FnOnce() -> String) {
        let at = self.0.partition_point(|(known, _)| *known >= value);
        if at < LEADERS {
            self.0.insert(at, (value, key()));
            self.0.truncate(LEADERS);
        }
    }
}

/// The counts of one partition.
#[derive(Default)]
struct Counts {
    rows: u64,
    bytes: u64,
    tombstones: u64,
    cells: u64,
}

impl Counts {
    fn of_head(head: &PartitionHead) -> Self {
        let mut counts = Self::default();
        counts.tombstones += u64::from(!head.deletion.is_live());
        if let Some(row) = &head.static_row {
            // Compat: cells of static rows are not counted.
            counts.rows += 1;
            counts.bytes += row_bytes(row);
        }
        counts
    }

    fn add(&mut self, unfiltered: &Unfiltered) {
        let Unfiltered::Row(row) = unfiltered else {
            self.tombstones += 1;
            return;
        };
        self.rows += 1;
        self.bytes += row_bytes(row);
        for (_, cell) in cells(row) {
            self.cells += 1;
            self.tombstones += u64::from(cell.is_tombstone());
        }
    }
}

fn cells(row: &Row) -> impl Iterator<Item = (usize, &ilion_rows::Cell)> {
    row.columns.iter().flat_map(|ColumnData { data, .. }| {
        let (simple, complex) = match data {
            Data::Simple(cell) => (Some((0, cell)), None),
            Data::Complex(complex) => (
                None,
                Some(complex.cells.iter().map(|(path, cell)| (path.len(), cell))),
            ),
        };
        simple.into_iter().chain(complex.into_iter().flatten())
    })
}

/// Compat: the size of Cassandra's objects in memory, not the stored size.
fn row_bytes(row: &Row) -> u64 {
    const TIMESTAMP: usize = 8;
    const EXPIRY: usize = 4 + 8;
    const DELETION: usize = 8 + 4;
    let clustering: usize = row
        .clustering
        .values()
        .iter()
        .flatten()
        .map(bytes::Bytes::len)
        .sum();
    let liveness = TIMESTAMP + if row.liveness.ttl_secs == 0 { 0 } else { EXPIRY };
    let complex = row
        .columns
        .iter()
        .filter(|column| matches!(column.data, Data::Complex(_)))
        .count();
    let cells: usize = cells(row)
        .map(|(path, cell)| TIMESTAMP + EXPIRY + cell.value.len() + path)
        .sum();
    (clustering + liveness + DELETION + 1 + complex * DELETION + cells) as u64
}

impl Overview {
    /// Reads all rows.
    pub(super) fn of(source: &Source) -> anyhow::Result<Self> {
        let mut overview = Self {
            bytes: source.sstable.data_length(),
            ..Self::default()
        };
        let mut progress = Progress::new("metadata", source.sstable.data_length());
        let mut scan = source.sstable.data_scan(&source.table)?;
        while let Some(head) = scan.next_partition()? {
            let mut counts = Counts::of_head(&head);
            while let Some(unfiltered) = scan.next_unfiltered()? {
                counts.add(&unfiltered);
                progress.at(scan.position());
            }
            overview.take(&counts, || print_key(&source.table, &head.key.key));
        }
        Ok(overview)
    }

    fn take(&mut self, counts: &Counts, key: impl Fn() -> String) {
        self.partitions += 1;
        self.rows += counts.rows;
        self.tombstones += counts.tombstones;
        self.cells += counts.cells;
        self.widest.admit(counts.rows, &key);
        self.largest.admit(counts.bytes, &key);
        if counts.tombstones > 0 {
            self.most_tombstones.admit(counts.tombstones, &key);
        }
    }

    /// Names and values of the counts.
    pub(super) fn fields(&self) -> [(&'static str, u64); 5] {
        [
            ("Size", self.bytes),
            ("Partitions", self.partitions),
            ("Rows", self.rows),
            ("Tombstones", self.tombstones),
            ("Cells", self.cells),
        ]
    }

    /// Names and lines of the lists of partitions; the last list is left out if it is empty.
    pub(super) fn lists(&self, style: Style) -> Vec<(&'static str, String)> {
        let size = |size: u64| match bytes(size) {
            Some(text) => format!("{} ({text}){}", style.white(), style.reset()),
            None => String::new(),
        };
        let mut lists = vec![
            ("Widest Partitions", lines(&self.widest, style, |_| String::new())),
            ("Largest Partitions", lines(&self.largest, style, size)),
        ];
        if !self.most_tombstones.0.is_empty() {
            let text = lines(&self.most_tombstones, style, |_| String::new());
            lists.push(("Tombstone Leaders", text));
        }
        lists
    }
}

fn lines(leaders: &Leaders, style: Style, comment: impl Fn(u64) -> String) -> String {
    let mut text = String::new();
    for (value, key) in &leaders.0 {
        let (cyan, reset) = (style.cyan(), style.reset());
        let _ = writeln!(
            text,
            "  {cyan}[{reset}{key}{cyan}] {reset}{value}{}",
            comment(*value)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::Leaders;

    #[test]
    fn leaders_are_the_greatest_and_the_first_of_equals() {
        let mut leaders = Leaders::default();
        for (value, key) in [
            (3, "a"),
            (9, "b"),
            (3, "c"),
            (1, "d"),
            (9, "e"),
            (4, "f"),
            (3, "g"),
        ] {
            leaders.admit(value, || key.to_owned());
        }
        let keys: Vec<&str> = leaders.0.iter().map(|(_, key)| key.as_str()).collect();
        assert_eq!(keys, ["b", "e", "f", "a", "c"]);
    }
}
