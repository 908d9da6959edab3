//! What was found, for people and for programs.

use serde::Serialize;

use crate::Arguments;
use crate::measure::Kind;

/// The result.
#[derive(Serialize)]
pub struct Report {
    rows: u64,
    value_bytes: usize,
    threads: u64,
    memtable_mib: u64,
    cache_mib: u64,
    partitioner: String,
    durability: &'static str,
    page_cache: &'static str,
    pub loads: Vec<Loaded>,
    reads: Vec<Reads>,
}

/// A store with its rows.
#[derive(Serialize)]
pub struct Loaded {
    pub store: &'static str,
    pub rows_per_sec: f64,
    /// Flushes and compactions after the last write.
    pub settled_after_secs: f64,
    pub files: u64,
}

/// Reads of a kind in a store.
#[derive(Serialize)]
struct Reads {
    kind: Kind,
    store: &'static str,
    rounds: Vec<Round>,
}

/// One measurement.
#[derive(Clone, Copy, Serialize)]
pub struct Round {
    /// Reads a second.
    pub per_sec: f64,
    /// Bytes that came from the disk meanwhile.
    pub from_disk: Option<u64>,
}

impl Report {
    pub fn new(arguments: &Arguments) -> Self {
        Self {
            rows: arguments.rows,
            value_bytes: arguments.value_size,
            threads: arguments.threads,
            memtable_mib: arguments.memtable_mib,
            cache_mib: arguments.cache_mib,
            partitioner: arguments.partitioner.clone(),
            durability: "log written at every write, not synced",
            page_cache: "filled before each measurement",
            loads: Vec::new(),
            reads: Vec::new(),
        }
    }

    pub fn add(&mut self, kind: Kind, store: &'static str, round: Round) {
        match self
            .reads
            .iter_mut()
            .find(|reads| reads.kind == kind && reads.store == store)
        {
            Some(reads) => reads.rounds.push(round),
            None => self.reads.push(Reads {
                kind,
                store,
                rounds: vec![round],
            }),
        }
    }

    pub fn print(&self) -> String {
        let mut out = format!(
            "{} rows of 16 + {} bytes, {} threads, {}, page cache {}\n",
            self.rows, self.value_bytes, self.threads, self.durability, self.page_cache
        );
        let names: Vec<&str> = self.loads.iter().map(|loaded| loaded.store).collect();
        out.push_str(&format!(
            "| a second | {} | ratio |\n| --- | ---: | ---: | ---: |\n",
            names.join(" | ")
        ));
        let loads: Vec<f64> = self.loads.iter().map(|loaded| loaded.rows_per_sec).collect();
        out.push_str(&line("load (rows)", &loads));
        for kind in Kind::ALL {
            let of_kind = self.reads.iter().filter(|reads| reads.kind == kind);
            let rates: Vec<f64> = of_kind.map(Reads::median).collect();
            out.push_str(&line(kind.name(), &rates));
        }
        for reads in &self.reads {
            if let Some(bytes @ 1..) = reads.from_disk() {
                let (store, kind) = (reads.store, reads.kind.name());
                out.push_str(&format!(
                    "{store}: {kind}: {:.1} MB came from the disk\n",
                    bytes as f64 / 1e6
                ));
            }
        }
        for loaded in &self.loads {
            out.push_str(&format!(
                "{}: settled {:.1} s after the last write, {} files\n",
                loaded.store, loaded.settled_after_secs, loaded.files
            ));
        }
        out
    }
}

impl Reads {
    fn median(&self) -> f64 {
        let mut rates: Vec<f64> = self.rounds.iter().map(|round| round.per_sec).collect();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied().unwrap_or(0.0)
    }

    fn from_disk(&self) -> Option<u64> {
        self.rounds.iter().map(|round| round.from_disk).sum()
    }
}

fn line(name: &str, rates: &[f64]) -> String {
    let shown: Vec<String> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
    let ratio = match rates {
        [first, second] => format!("{:.2}", first / second),
        _ => "-".to_owned(),
    };
    format!("| {name} | {} | {ratio} |\n", shown.join(" | "))
}
