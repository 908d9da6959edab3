//! The result of experiment 3.

use serde::Serialize;

use crate::bench::drive::Load;
use crate::bench::table::{Table, number};

/// The result.
#[derive(Debug, Serialize)]
pub struct E3Report {
    /// Name of the experiment.
    pub experiment: &'static str,
    /// Version of the server.
    pub release_version: String,
    /// True if the database ran in this process, without a socket.
    pub is_embedded: bool,
    /// Rows in the table.
    pub rows: u64,
    /// Partitions between two samples.
    pub interval: u32,
    /// Look-ups of each kind.
    pub lookups: u64,
    /// Concurrent requests.
    pub load: Load,
    /// State of the page cache.
    pub page_cache: &'static str,
    /// One result for each group of settings.
    pub variants: Vec<Variant>,
}

/// Look-ups with one group of settings.
#[derive(Debug, Serialize)]
pub struct Variant {
    /// Name of the settings.
    pub name: String,
    /// Look-ups of the same key, as in the published account.
    pub one_key: Pair,
    /// Look-ups of all keys in turn.
    pub many_keys: Pair,
}

/// Times of both kinds of keys.
#[derive(Debug, Serialize)]
pub struct Pair {
    /// Seconds of all look-ups of sampled keys.
    pub sampled_secs: f64,
    /// Seconds of all look-ups of keys far from a sample.
    pub far_secs: f64,
    /// `far_secs` divided by `sampled_secs`.
    pub ratio: f64,
}

impl E3Report {
    /// Prints a table.
    pub fn print(&self) -> String {
        let mut table = Table::new(&["settings", "keys", "sampled, s", "far, s", "ratio"]);
        for variant in &self.variants {
            for (keys, pair) in [("one", &variant.one_key), ("many", &variant.many_keys)] {
                table.line(vec![
                    variant.name.clone(),
                    keys.to_owned(),
                    format!("{:.3}", pair.sampled_secs),
                    format!("{:.3}", pair.far_secs),
                    number(pair.ratio),
                ]);
            }
        }
        format!(
            "{} lookups of each kind among {} rows, {} clients with {} requests each, page cache {}\n{}",
            number(self.lookups as f64),
            number(self.rows as f64),
            self.load.clients,
            self.load.in_flight,
            self.page_cache,
            table.print().trim_end()
        )
    }
}
