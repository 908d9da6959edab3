//! Measures the soak once a second, and prints a line about it.

use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::bench::process::{Transferred, Usage};
use crate::bench::soak::args::SoakArgs;
use crate::bench::soak::seconds::{LatencyHistograms, Seconds};
use crate::bench::store::Store;
use crate::bench::table::{number, say};
use crate::bench::watcher::{IsOver, Watcher};

const SECOND_NANOS: u64 = 1_000_000_000;
/// The names of the columns are printed again after this many lines.
const LINES: usize = 30;

/// One second, or the rest of one at the end.
#[derive(Clone, Debug, Serialize)]
pub struct Second {
    /// Seconds from the beginning of the mix to the end of this second.
    pub at: f64,
    /// Its exact length, in seconds.
    pub secs: f64,
    /// Operations that were answered in this second.
    pub operations: u64,
    /// Latencies of these operations.
    pub p50_micros: f64,
    pub p99_micros: f64,
    pub max_micros: f64,
    /// CPU time of the store's process, as a share of one core.
    pub cpu: Option<f64>,
    /// Resident memory of the store's process.
    pub memory_bytes: Option<u64>,
    pub sstables: Option<u64>,
    /// Bytes of the table's files.
    pub file_bytes: Option<u64>,
}

/// All measurements.
pub struct Watched {
    pub seconds: Vec<Second>,
    pub times: LatencyHistograms,
    /// What the store's process has read and written, at the beginning and at the end.
    pub transferred: Option<(Transferred, Transferred)>,
    /// CPU and memory of the process, at the beginning and at the end.
    pub usage: Option<(Usage, Usage)>,
}

/// Starts a thread that measures.
pub fn watch(
    store: &Arc<Store>,
    table: &'static str,
    seconds: &Arc<Seconds>,
    args: &SoakArgs,
) -> anyhow::Result<Watcher<anyhow::Result<Watched>>> {
    let look = Look {
        store: store.clone(),
        table,
        seconds: seconds.clone(),
        total: args.secs,
    };
    Watcher::start(move |is_over| look.run(is_over))
}

struct Look {
    store: Arc<Store>,
    table: &'static str,
    seconds: Arc<Seconds>,
    total: u64,
}

impl Look {
    fn run(self, is_over: &IsOver) -> anyhow::Result<Watched> {
        let began = self.store.env.monotonic_nanos();
        let transferred = self.store.transferred()?;
        let usage = self.store.usage()?;
        let (mut seconds, mut all) = (Vec::new(), self.seconds.take()?);
        let (mut last_nanos, mut last_usage) = (began, usage);
        loop {
            self.wait_until(last_nanos + SECOND_NANOS, is_over);
            let is_over = is_over.get();
            let now = self.store.env.monotonic_nanos();
            let times = self.seconds.take()?;
            let usage_now = self.store.usage()?;
            let secs = (now - last_nanos) as f64 / 1e9;
            let second = Second {
                at: (now - began) as f64 / 1e9,
                secs,
                cpu: cpu_between(last_usage, usage_now).map(|cpu| cpu / secs),
                memory_bytes: usage_now.map(|usage| usage.memory_bytes),
                sstables: self.store.sstables(self.table).ok().flatten(),
                file_bytes: self.file_bytes(),
                ..Second::of(&times.all())
            };
            self.say(seconds.len(), &second);
            all.add(&times)?;
            (last_nanos, last_usage) = (now, usage_now);
            // A short rest at the end says little about the rate.
            if !is_over || secs > 0.5 {
                seconds.push(second);
            }
            if is_over {
                break;
            }
        }
        Ok(Watched {
            seconds,
            times: all,
            transferred: transferred.zip(self.store.transferred()?),
            usage: usage.zip(last_usage),
        })
    }

    fn wait_until(&self, nanos: u64, is_over: &IsOver) {
        loop {
            let left = nanos.saturating_sub(self.store.env.monotonic_nanos());
            if left == 0 || is_over.get() {
                return;
            }
            is_over.wait(Duration::from_nanos(left));
        }
    }

    fn file_bytes(&self) -> Option<u64> {
        let files = self.store.files(self.table)?;
        files.size_bytes(self.store.env.as_ref()).ok()
    }

    fn say(&self, line: usize, second: &Second) {
        if line.is_multiple_of(LINES) {
            say(&format!(
                "{:>6} {:>9} {:>9} {:>9} {:>10} {:>6} {:>8} {:>8} {:>9}",
                "second", "ops/s", "p50 us", "p99 us", "max us", "cpu %", "RSS MiB", "SSTables", "files MiB"
            ));
        }
        let mebibytes = |bytes: Option<u64>| bytes.map_or_else(dash, |bytes| (bytes >> 20).to_string());
        say(&format!(
            "{:>6.0} {:>9} {:>9} {:>9} {:>10} {:>6} {:>8} {:>8} {:>9}{}",
            second.at,
            number(second.per_sec()),
            number(second.p50_micros),
            number(second.p99_micros),
            number(second.max_micros),
            second.cpu.map_or_else(dash, |cpu| format!("{:.0}", cpu * 100.0)),
            mebibytes(second.memory_bytes),
            second.sstables.map_or_else(dash, |count| count.to_string()),
            mebibytes(second.file_bytes),
            match line {
                0 => format!("   of {} s", self.total),
                _ => String::new(),
            }
        ));
    }
}

fn dash() -> String {
    "-".to_owned()
}

fn cpu_between(before: Option<Usage>, after: Option<Usage>) -> Option<f64> {
    Some(after?.cpu_secs - before?.cpu_secs)
}

impl Second {
    fn of(times: &Histogram<u64>) -> Self {
        let micros = |nanos: u64| nanos as f64 / 1e3;
        Self {
            at: 0.0,
            secs: 0.0,
            operations: times.len(),
            p50_micros: micros(times.value_at_quantile(0.5)),
            p99_micros: micros(times.value_at_quantile(0.99)),
            max_micros: micros(times.max()),
            cpu: None,
            memory_bytes: None,
            sstables: None,
            file_bytes: None,
        }
    }

    /// Operations per second.
    pub fn per_sec(&self) -> f64 {
        self.operations as f64 / self.secs.max(1e-9)
    }
}
