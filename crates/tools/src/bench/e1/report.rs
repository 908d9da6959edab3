//! The result of experiment 1.

use serde::Serialize;

use crate::bench::e1::server::Start;
use crate::bench::table::{Table, number};
use crate::median::median;

/// The result.
#[derive(Debug, Serialize)]
pub struct E1Report {
    experiment: &'static str,
    value_bytes: u32,
    runs: u32,
    page_cache_dropped: bool,
    starts: Vec<Starts>,
    medians: Vec<Median>,
}

/// The starts with one amount of data.
#[derive(Debug, Serialize)]
pub struct Starts {
    /// Rows in the table.
    pub rows: u64,
    /// SSTables of the table.
    pub sstables: u64,
    /// Bytes of the table's files.
    pub size_bytes: u64,
    /// Bytes of saved caches.
    pub saved_caches_bytes: u64,
    /// Starts with the given settings.
    pub usual: Vec<Start>,
    /// Starts that read the whole index; `None` if they were not measured.
    pub old_way: Option<Vec<Start>>,
}

#[derive(Debug, Serialize)]
struct Median {
    rows: u64,
    secs: f64,
    /// Ratio to the first amount of data.
    ratio: f64,
    old_way_secs: Option<f64>,
}

impl E1Report {
    /// Computes medians and ratios.
    pub fn new(value_bytes: u32, runs: u32, page_cache_dropped: bool, starts: Vec<Starts>) -> Self {
        let first = starts.first().map_or(0.0, |starts| median_secs(&starts.usual));
        let medians = starts.iter().map(|starts| Median {
            rows: starts.rows,
            secs: median_secs(&starts.usual),
            ratio: median_secs(&starts.usual) / first,
            old_way_secs: starts.old_way.as_deref().map(median_secs),
        });
        Self {
            experiment: "e1",
            value_bytes,
            runs,
            page_cache_dropped,
            medians: medians.collect(),
            starts,
        }
    }

    /// Prints a table.
    pub fn print(&self) -> String {
        let mut table = Table::new(&[
            "rows",
            "SSTables",
            "MiB",
            "min, s",
            "median, s",
            "max, s",
            "CPU, s",
            "MiB read",
            "MiB resident",
            "ratio",
            "old way, s",
        ]);
        for (starts, median) in self.starts.iter().zip(&self.medians) {
            table.line(line(starts, median));
        }
        let cache = match self.page_cache_dropped {
            true => "page cache of the files dropped before each",
            false => "page cache as it was",
        };
        format!(
            "exec to first answered query, {} starts each, {cache}\n{}",
            self.runs,
            table.print().trim_end()
        )
    }
}

fn line(starts: &Starts, median_of: &Median) -> Vec<String> {
    let secs: Vec<f64> = starts.usual.iter().map(|start| start.secs).collect();
    let shown = |secs: f64| format!("{secs:.3}");
    let mebibytes = |bytes: f64| number(bytes / 1_048_576.0);
    let middle = |of: fn(&Start) -> f64| median(starts.usual.iter().map(of).collect());
    vec![
        number(starts.rows as f64),
        starts.sstables.to_string(),
        mebibytes(starts.size_bytes as f64),
        shown(secs.iter().copied().fold(f64::MAX, f64::min)),
        shown(median_of.secs),
        shown(secs.iter().copied().fold(0.0, f64::max)),
        shown(middle(|start| start.cpu_secs)),
        mebibytes(middle(|start| start.read_bytes as f64)),
        mebibytes(middle(|start| start.memory_bytes as f64)),
        number(median_of.ratio),
        median_of.old_way_secs.map_or_else(|| "-".to_owned(), shown),
    ]
}

fn median_secs(starts: &[Start]) -> f64 {
    median(starts.iter().map(|start| start.secs).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(secs: f64) -> Start {
        Start {
            secs,
            cpu_secs: 0.1,
            memory_bytes: 1 << 20,
            read_bytes: 2 << 20,
            disk_bytes: 0,
            cached_bytes_before: Some(0),
        }
    }

    fn starts(rows: u64, secs: [f64; 3], old_way: f64) -> Starts {
        Starts {
            rows,
            sstables: 6,
            size_bytes: 3 << 20,
            saved_caches_bytes: 0,
            usual: secs.map(start).to_vec(),
            old_way: Some(vec![start(old_way)]),
        }
    }

    #[test]
    fn the_ratio_is_that_of_the_medians_to_the_first() {
        let all = vec![
            starts(10, [0.3, 0.1, 0.2], 0.4),
            starts(1000, [0.9, 0.22, 0.1], 5.0),
        ];
        let report = E1Report::new(128, 3, true, all);
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["medians"][0]["secs"], 0.2);
        assert!((json["medians"][1]["ratio"].as_f64().unwrap() - 1.1).abs() < 1e-9);
        let text = report.print();
        assert!(text.contains("1.10") && text.contains("5.000"), "{text}");
    }
}
