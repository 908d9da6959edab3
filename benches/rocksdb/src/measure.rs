//! Time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{anyhow, ensure};
use serde::Serialize;

use crate::Arguments;
use crate::rows::{Rows, mix};
use crate::store::Store;

/// Kinds of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Get,
    ShortRange,
    LongRange,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Get, Self::ShortRange, Self::LongRange];

    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::ShortRange => "range of 10",
            Self::LongRange => "range of 1000",
        }
    }

    fn limit(self) -> u32 {
        match self {
            Self::Get => 1,
            Self::ShortRange => 10,
            Self::LongRange => 1000,
        }
    }
}

/// Writes all rows; gives the seconds that it took.
pub fn loaded(store: &dyn Store, rows: &Rows, threads: u64) -> anyhow::Result<f64> {
    let begin = Instant::now();
    in_threads(threads, |thread| {
        let mut row = thread;
        while row < rows.count {
            store.put(&rows.key(row), &rows.value(row))?;
            row += threads;
        }
        Ok(())
    })?;
    Ok(begin.elapsed().as_secs_f64())
}

/// Reads at random; gives the reads a second.
pub fn rate(store: &dyn Store, rows: &Rows, kind: Kind, arguments: &Arguments) -> anyhow::Result<f64> {
    let total = AtomicU64::new(0);
    let begin = Instant::now();
    let duration = Duration::from_secs_f64(arguments.secs);
    in_threads(arguments.threads, |thread| {
        let mut count = 0;
        while begin.elapsed() < duration {
            read(
                store,
                rows,
                kind,
                mix(count * arguments.threads + thread) % rows.count,
            )?;
            count += 1;
        }
        total.fetch_add(count, Ordering::Relaxed);
        Ok(())
    })?;
    Ok(total.into_inner() as f64 / begin.elapsed().as_secs_f64())
}

fn read(store: &dyn Store, rows: &Rows, kind: Kind, row: u64) -> anyhow::Result<()> {
    let key = rows.key(row);
    let mut found = 0;
    let mut good = 0;
    let mut visit = |key: &[u8], value: &[u8]| {
        found += 1;
        good += u32::from(rows.is_row(key, value));
    };
    match kind {
        Kind::Get => store.get(&key, &mut visit)?,
        Kind::ShortRange | Kind::LongRange => store.range(&key, kind.limit(), &mut visit)?,
    }
    // Near the end of the order there are fewer: where that is, only the stores know.
    let is_whole = found == kind.limit() || (kind != Kind::Get && found > 0);
    ensure!(
        is_whole && good == found,
        "{}: row {row}: {found} rows came back, {good} of them good",
        store.name()
    );
    Ok(())
}

fn in_threads(threads: u64, work: impl Fn(u64) -> anyhow::Result<()> + Sync) -> anyhow::Result<()> {
    let work = &work;
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        running
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(|_| anyhow!("a thread panicked"))?)
    })
}
