//! The result of experiment 5.

use serde::Serialize;

use crate::bench::drive::Rate;
use crate::bench::e5::args::E5Args;
use crate::bench::e5::blobs::{Blobs, Schema};
use crate::bench::files::Cached;
use crate::bench::store::Store;
use crate::bench::table::{Table, number, number_or_dash};

/// The result.
#[derive(Debug, Serialize)]
pub struct E5Report {
    experiment: &'static str,
    release_version: String,
    is_embedded: bool,
    rows: u64,
    value_bytes: u32,
    clients: u16,
    table_options: Option<String>,
    page_cache_dropped: bool,
    cases: Vec<BlobCase>,
}

/// The result for one number of blobs in one schema.
#[derive(Debug, Serialize)]
pub struct BlobCase {
    schema: Schema,
    columns: u16,
    sstables: Option<u64>,
    /// How much of the files was in the page cache before the reads.
    page_cache: Option<Cached>,
    rate: Rate,
    /// Bytes read for each requested byte.
    amplification: Amplification,
}

/// Bytes read for each requested byte, by who counts them.
#[derive(Clone, Copy, Debug, Serialize)]
struct Amplification {
    /// Counted by the store: reads of files.
    by_store: Option<f64>,
    /// Counted by the system: read calls of the process.
    by_calls: Option<f64>,
    /// Counted by the system: reads of the process from the disk, in whole pages.
    from_disk: Option<f64>,
}

impl BlobCase {
    /// Computes the amplification.
    pub fn new(blobs: &Blobs, rate: Rate, page_cache: Option<Cached>, sstables: Option<u64>) -> Self {
        let value_bytes = blobs.dataset.value_bytes() as f64;
        let each = |bytes: Option<f64>| bytes.map(|bytes| bytes / value_bytes);
        Self {
            schema: blobs.schema,
            columns: blobs.columns,
            sstables,
            page_cache,
            amplification: Amplification {
                by_store: each(rate.read_bytes),
                by_calls: each(rate.read_bytes_by_calls),
                from_disk: each(rate.read_bytes_from_disk),
            },
            rate,
        }
    }
}

impl E5Report {
    /// Collects the result.
    pub fn new(args: &E5Args, store: &Store, cases: Vec<BlobCase>) -> anyhow::Result<Self> {
        Ok(Self {
            experiment: "e5",
            release_version: store.local("release_version")?,
            is_embedded: store.embedded().is_some(),
            rows: args.rows,
            value_bytes: args.value_size,
            clients: args.clients,
            table_options: args.with.clone(),
            page_cache_dropped: !args.keep_cache,
            cases,
        })
    }

    /// Prints a table.
    pub fn print(&self) -> String {
        let mut table = Table::new(&[
            "blobs in",
            "of a key",
            "SSTables",
            "store's count",
            "by calls",
            "from disk",
            "p50 us",
            "p99 us",
            "reads/s",
            "to rows",
        ]);
        for case in &self.cases {
            table.line(self.line(case));
        }
        let cache = match self.page_cache_dropped {
            true => "page cache of the files dropped before each",
            false => "page cache as it was",
        };
        format!(
            "bytes read for each byte of one blob of {} bytes, {} keys, {cache}; time to that of a blob in a row of its own\n{}",
            number(f64::from(self.value_bytes)),
            number(self.rows as f64),
            table.print().trim_end()
        )
    }

    fn line(&self, case: &BlobCase) -> Vec<String> {
        let amplification = case.amplification;
        vec![
            case.schema.name().to_owned(),
            case.columns.to_string(),
            case.sstables
                .map_or_else(|| "-".to_owned(), |count| count.to_string()),
            number_or_dash(amplification.by_store),
            number_or_dash(amplification.by_calls),
            number_or_dash(amplification.from_disk),
            number(case.rate.p50_micros),
            number(case.rate.p99_micros),
            number(case.rate.per_sec),
            number_or_dash(self.to_rows(case)),
        ]
    }

    /// The median latency, as a ratio to that of the same blob in a row of its own.
    fn to_rows(&self, case: &BlobCase) -> Option<f64> {
        let other = self.cases.iter().find(|other| {
            other.schema == Schema::Rows && other.columns == case.columns && case.schema == Schema::Columns
        })?;
        Some(case.rate.p50_micros / other.rate.p50_micros)
    }
}

#[cfg(test)]
mod tests {
    use crate::bench::dataset::Dataset;

    use super::*;

    fn case(schema: Schema, p50_micros: f64) -> BlobCase {
        let blobs = Blobs {
            table: "ks.t".to_owned(),
            schema,
            columns: 100,
            rows: 5,
            dataset: Dataset::new(1, 1000),
        };
        let rate = Rate {
            p50_micros,
            read_bytes: Some(2500.0),
            ..Rate::default()
        };
        BlobCase::new(&blobs, rate, None, Some(1))
    }

    #[test]
    fn bytes_are_per_byte_asked_for_and_time_is_to_the_other_schema() {
        let report = E5Report {
            experiment: "e5",
            release_version: "5".to_owned(),
            is_embedded: true,
            rows: 5,
            value_bytes: 1000,
            clients: 1,
            table_options: None,
            page_cache_dropped: true,
            cases: vec![case(Schema::Columns, 30.0), case(Schema::Rows, 25.0)],
        };
        assert_eq!(report.cases[0].amplification.by_store, Some(2.5));
        assert_eq!(report.to_rows(&report.cases[0]), Some(1.2));
        assert_eq!(report.to_rows(&report.cases[1]), None);
        let text = report.print();
        assert!(text.contains("2.50") && text.contains("1.20"), "{text}");
    }
}
