//! Runs a job with all clients, over the socket or embedded, and measures its rate.

use std::sync::Arc;

use ilion_env::Env;
use serde::Serialize;

use crate::bench::job::{Job, JobOnSocket, Turns, Until};
use crate::bench::load::{gather, run_clients};
use crate::bench::store::{Embedded, Prepared, ReadTotals, Store};
use crate::bench::tally::Tally;
use crate::bench::work::{Crowd, Work};

/// The number of concurrent requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Load {
    /// Number of connections; embedded, of threads.
    pub clients: u16,
    /// Requests under way on each connection; 1 when embedded.
    pub in_flight: u16,
}

impl Load {
    /// The load for this store: an embedded database has one request under way on each thread.
    pub fn of(store: &Store, clients: u16, in_flight: u16) -> Self {
        let in_flight = if store.embedded().is_some() { 1 } else { in_flight };
        Self { clients, in_flight }
    }
}

/// The rate and latency of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rate {
    /// Answers.
    pub operations: u64,
    /// Rows written or read.
    pub rows: u64,
    /// Duration in seconds.
    pub secs: f64,
    /// Answers per second.
    pub per_sec: f64,
    /// Median latency.
    pub p50_micros: f64,
    /// The 99th percentile of the latency.
    pub p99_micros: f64,
    /// Bytes read from files for each operation, as counted by the store; `None` if the store does not report them.
    pub read_bytes: Option<f64>,
    /// Bytes read by system calls of the store's process for each operation, including the requests themselves.
    pub read_bytes_by_calls: Option<f64>,
    /// Bytes read from the disk for each operation.
    pub read_bytes_from_disk: Option<f64>,
}

/// Runs a job.
///
/// # Errors
/// The store cannot be reached, or an answer is wrong.
pub fn run(store: &Store, job: &Arc<dyn Job>, load: Load, until: &Until) -> anyhow::Result<Rate> {
    let before = store.reads()?;
    let begin = store.env.monotonic_nanos();
    let turns = Arc::new(Turns::new(&store.env, until));
    let tally = turns.with_bar(|| match store.embedded() {
        None => over_socket(store, job, load, &turns),
        Some(database) => {
            let statement: Arc<dyn Prepared> = Arc::from(database.prepare(&job.text())?);
            embedded(&store.env, &statement, job, load, &turns)
        }
    })?;
    let secs = (store.env.monotonic_nanos() - begin) as f64 / 1e9;
    tally.check()?;
    Ok(Rate::of(&tally, secs, before, store.reads()?))
}

/// Runs a job in a database of this process.
///
/// # Errors
/// As [`run`].
pub fn run_embedded(
    env: &Arc<dyn Env>,
    database: &Arc<dyn Embedded>,
    job: &Arc<dyn Job>,
    load: Load,
    until: &Until,
) -> anyhow::Result<Tally> {
    let statement: Arc<dyn Prepared> = Arc::from(database.prepare(&job.text())?);
    let tally = embedded(env, &statement, job, load, &Arc::new(Turns::new(env, until)))?;
    tally.check()?;
    Ok(tally)
}

fn over_socket(store: &Store, job: &Arc<dyn Job>, load: Load, turns: &Arc<Turns>) -> anyhow::Result<Tally> {
    let crowd = Crowd {
        target: store.target(),
        clients: load.clients,
        in_flight: load.in_flight,
    };
    run_clients(&store.env, &crowd, &|connection| {
        let work = JobOnSocket::new(job, turns, load.in_flight, connection)?;
        Ok(Box::new(work) as Box<dyn Work + Send>)
    })
}

fn embedded(
    env: &Arc<dyn Env>,
    statement: &Arc<dyn Prepared>,
    job: &Arc<dyn Job>,
    load: Load,
    turns: &Arc<Turns>,
) -> anyhow::Result<Tally> {
    let caller = || Caller {
        env: env.clone(),
        statement: statement.clone(),
        job: job.clone(),
        turns: turns.clone(),
    };
    gather((0..load.clients).map(|_| caller()).collect(), |caller| {
        caller.run()
    })
}

/// A thread that executes operations on an embedded database.
struct Caller {
    env: Arc<dyn Env>,
    statement: Arc<dyn Prepared>,
    job: Arc<dyn Job>,
    turns: Arc<Turns>,
}

impl Caller {
    fn run(self) -> anyhow::Result<Tally> {
        let mut tally = Tally::new()?;
        let mut places: Vec<Vec<u8>> = self.job.sizes().iter().map(|size| vec![0; *size]).collect();
        let mut begin = self.env.monotonic_nanos();
        while let Some(number) = self.turns.take() {
            for (index, place) in places.iter_mut().enumerate() {
                self.job.fill(number, index, place);
            }
            let values: Vec<&[u8]> = places.iter().map(Vec::as_slice).collect();
            let outcome = self
                .statement
                .execute(&values, &mut |rows| self.job.check(number, rows))?;
            let end = self.env.monotonic_nanos();
            tally.count(outcome, end - begin);
            begin = end;
        }
        Ok(tally)
    }
}

impl Rate {
    fn of(tally: &Tally, secs: f64, before: ReadTotals, after: ReadTotals) -> Self {
        let operations = tally.operations.max(1) as f64;
        let each = |before: Option<u64>, after: Option<u64>| -> Option<f64> {
            Some(after?.saturating_sub(before?) as f64 / operations)
        };
        let micros = |quantile: f64| tally.latency.value_at_quantile(quantile) as f64 / 1e3;
        Self {
            operations: tally.operations,
            rows: tally.rows,
            secs,
            per_sec: tally.operations as f64 / secs.max(1e-9),
            p50_micros: micros(0.5),
            p99_micros: micros(0.99),
            read_bytes: each(before.by_store, after.by_store),
            read_bytes_by_calls: each(before.by_calls, after.by_calls),
            read_bytes_from_disk: each(before.from_disk, after.from_disk),
        }
    }
}
