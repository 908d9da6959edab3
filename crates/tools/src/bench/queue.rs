//! A table used as a queue: insert an entry, read one that waits, take it out, again and again.
//!
//! Users of Cassandra are warned of such tables. If a queue is a partition, each read of the first entry passes the tombstones of all entries
//! before it, until a compaction removes them, at the earliest after `gc_grace_seconds`. If an index finds entries by their status, it also
//! finds the ones that had this status before. This experiment shows how reads develop over many cycles. Every answer is checked.
//!
//! | module | what |
//! | --- | --- |
//! | `args` | arguments |
//! | `consumer` | the state of one queue, and the statement that is next |
//! | `clients` | the loops of clients, over the socket and embedded |
//! | `report` | the result, by tenths of the cycles |

pub mod args;
mod clients;
mod consumer;
mod report;

use std::sync::Arc;

use ilion_env::{Env, RealEnv};

use crate::bench::dataset::Dataset;
use crate::bench::queue::args::QueueArgs;
use crate::bench::queue::clients::Clients;
use crate::bench::queue::consumer::{Finding, Queues};
use crate::bench::queue::report::{Part, QueueReport};
use crate::bench::store::{Host, Store};
use crate::bench::table::{publish, say};

const TABLE: &str = "queue";
/// Parts of the cycles that are reported separately.
const PARTS: u64 = 10;

/// Runs the experiment.
///
/// # Errors
/// The store cannot be reached, refuses a request, or an answer is wrong.
pub fn run(args: &QueueArgs, host: &dyn Host) -> anyhow::Result<()> {
    let env: Arc<dyn Env> = RealEnv::new();
    let store = Store::open(&env, &args.store, host)?;
    let queues = Arc::new(Queues {
        table: store.qualified(TABLE),
        finding: args.find_by,
        dataset: Dataset::new(args.seed, args.value_size),
    });
    store.execute(&format!("DROP TABLE IF EXISTS {}", queues.table))?;
    for text in queues.create_texts(args.with.as_deref()) {
        store.execute(&text)?;
    }
    if args.find_by != Finding::Partition {
        store.await_index(&queues.table, "status")?;
    }
    let clients = Clients::new(&store, &queues, args.queues)?;
    say(&format!(
        "filling {} queues with {} entries",
        args.queues, args.depth
    ));
    clients.fill(args.depth)?;
    say(&format!("{} cycles", args.cycles));
    let mut parts = Vec::new();
    for number in 0..PARTS {
        let cycles = args.cycles * (number + 1) / PARTS - args.cycles * number / PARTS;
        let begun = env.monotonic_nanos();
        clients.cycle(cycles)?;
        let nanos = env.monotonic_nanos() - begun;
        parts.push(Part::new(
            cycles,
            nanos,
            &clients.take_latencies()?,
            store.sstables(TABLE)?,
        ));
    }
    let report = QueueReport::new(args, &store, parts)?;
    publish(env.as_ref(), &report.print(), &report, args.json.as_deref())
}
