//! The soak: a mix of reads and writes for a given time, measured second by second.
//!
//! Short runs do not show what a store does in its fourth hour. The mixes are those of YCSB (Cooper and others, 2010), on the five columns
//! of the other benchmarks. Each second a line shows the operations of clients, the memory and the files; the summary has the slowest
//! second, the longest latency, and the bytes that were written and stored for each byte of clients. Every answer is checked.
//!
//! | module | what |
//! | --- | --- |
//! | `args` | arguments |
//! | `mix` | the kind of the next operation |
//! | `choice` | the row of an operation |
//! | `rows` | statements, values with versions, and checks of answers |
//! | `turns` | gives operations to clients, at a rate if there is one |
//! | `clients` | the loops of clients, over the socket and embedded |
//! | `seconds` | latencies of clients since the last look |
//! | `watch` | the lines, with the resources of the process and its files |
//! | `report` | the summary |

pub mod args;
mod choice;
mod clients;
mod mix;
mod report;
mod rows;
mod seconds;
mod turns;
mod watch;

use std::sync::Arc;

use anyhow::bail;
use ilion_env::{Env, RealEnv};
use ilion_types::Partitioner;

use crate::bench::dataset::Dataset;
use crate::bench::drive::{self, Load};
use crate::bench::job::{Job, Until};
use crate::bench::soak::args::SoakArgs;
use crate::bench::soak::clients::Clients;
use crate::bench::soak::report::SoakReport;
use crate::bench::soak::rows::{Inserts, SoakRows};
pub use crate::bench::soak::seconds::{LatencyHistograms, Seconds};
use crate::bench::soak::turns::Turns;
use crate::bench::soak::watch::watch;
use crate::bench::store::{Host, Store};
use crate::bench::table::{publish, say};

const TABLE: &str = "soak";

/// Runs the soak.
///
/// # Errors
/// The store cannot be reached, refuses a request, or an answer is wrong.
pub fn run(args: &SoakArgs, host: &dyn Host) -> anyhow::Result<()> {
    let env: Arc<dyn Env> = RealEnv::new();
    let store = Arc::new(Store::open(&env, &args.store, host)?);
    let partitioner = store.partitioner()?;
    if partitioner == Partitioner::Random {
        bail!("tokens of RandomPartitioner have no fixed size; use another one");
    }
    let rows = Arc::new(SoakRows {
        table: store.qualified(TABLE),
        dataset: Dataset::new(args.seed, args.value_size),
        loaded: args.rows,
        partitioner,
    });
    let load = Load::of(&store, args.clients, args.in_flight);
    if args.rate.is_some() && load.in_flight > 1 {
        bail!("a rate needs --in-flight 1: use more clients instead");
    }
    if !args.keep {
        make_table(args, &store, &rows)?;
        say(&format!("inserting {} rows", args.rows));
        let inserts: Arc<dyn Job> = Arc::new(Inserts(rows.clone()));
        drive::run(&store, &inserts, load, &Until::Operations(0..args.rows))?;
    }
    let seconds = Arc::new(Seconds::new(usize::from(load.clients))?);
    let turns = Arc::new(Turns::new(&env, args));
    let watch = watch(&store, TABLE, &seconds, args)?;
    let clients = Clients {
        store: &store,
        rows: &rows,
        turns: &turns,
        seconds: &seconds,
        load,
    };
    let tally = clients.run();
    let watched = watch.stop()??;
    let tally = tally?;
    tally.check()?;
    let report = SoakReport::new(args, &store, load, &rows, &turns, &tally, watched)?;
    publish(env.as_ref(), &report.print(), &report, args.json.as_deref())
}

fn make_table(args: &SoakArgs, store: &Store, rows: &SoakRows) -> anyhow::Result<()> {
    store.execute(&format!("DROP TABLE IF EXISTS {}", rows.table))?;
    store.execute(&rows.create_text(args.with.as_deref()))?;
    Ok(())
}
