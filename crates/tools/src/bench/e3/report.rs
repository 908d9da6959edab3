//! What experiment 3 found.

use serde::Serialize;

use crate::bench::drive::Load;
use crate::bench::table::{Table, number};

/// The result.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Which.
    pub experiment: &'static str,
    /// Of the server.
    pub release_version: String,
    /// Without a socket.
    pub is_embedded: bool,
    /// In the table.
    pub rows: u64,
    /// Partitions between samples.
    pub interval: u32,
    /// Of each kind.
    pub lookups: u64,
    /// How many at once.
    pub load: Load,
    /// Cold or warm.
    pub page_cache: &'static str,
    /// One for each group of settings.
    pub variants: Vec<Variant>,
}

/// Lookups with some settings.
#[derive(Debug, Serialize)]
pub struct Variant {
    /// What they are.
    pub name: String,
    /// The same key again and again, as in the account.
    pub one_key: Pair,
    /// All keys of the kind in turn.
    pub many_keys: Pair,
}

/// Both kinds of keys.
#[derive(Debug, Serialize)]
pub struct Pair {
    /// All lookups of sampled keys.
    pub sampled_secs: f64,
    /// All lookups of keys far from a sample.
    pub far_secs: f64,
    /// The second to the first.
    pub ratio: f64,
}

impl Report {
    /// For people.
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
