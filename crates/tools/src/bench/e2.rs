//! Experiment 2, secondary indexes without read-before-write: the cost of a write with no, one and three indexes, the bytes that
//! it reads, and the cost of queries while the index has stale entries.
//!
//! The published account (2013): with an index that writes do not read, one node did 11 % more writes per second on a hot table.
//! Here a table is written once for each choice of indexes. Then half of its rows get other values, so that entries become
//! stale, and rows are selected by value. Compaction of the tables is off, so that all reads during the writes are caused by the writes.

pub mod args;
mod report;
mod rows;

use std::sync::Arc;

use ilion_env::{Env, RealEnv};

use crate::bench::dataset::Dataset;
use crate::bench::drive::{self, Load};
use crate::bench::e2::args::{E2Args, Indexes};
use crate::bench::e2::report::{E2Report, IndexCase, WriteCost};
use crate::bench::e2::rows::{IndexedRows, Puts, QueriesByValue};
use crate::bench::job::{Job, Until};
use crate::bench::store::{Host, Store};
use crate::bench::table::{publish, say};

/// Runs the experiment.
///
/// # Errors
/// The store cannot be reached, refuses a request, or an answer is wrong.
pub fn run(args: &E2Args, host: &dyn Host) -> anyhow::Result<()> {
    let env: Arc<dyn Env> = RealEnv::new();
    let store = Store::open(&env, &args.store, host)?;
    let mut best: Vec<IndexCase> = Vec::new();
    for pass in 1..=args.runs {
        for (place, indexes) in args.indexes.iter().enumerate() {
            say(&format!("pass {pass}: {}", indexes.name()));
            let case = measure(&store, args, *indexes)?;
            match best.get_mut(place) {
                None => best.push(case),
                Some(known) => known.keep_faster(case),
            }
        }
    }
    let report = E2Report::new(args, &store, best)?;
    publish(env.as_ref(), &report.print(), &report, args.json.as_deref())
}

fn measure(store: &Store, args: &E2Args, indexes: Indexes) -> anyhow::Result<IndexCase> {
    let rows = Arc::new(IndexedRows {
        table: store.qualified(indexes.table()),
        dataset: Dataset::new(args.seed, args.value_size),
        count: args.rows,
        updated: args.rows / 2,
        values: (args.rows / args.per_value).max(1),
        seed: args.seed,
        compacts: args.compaction,
    });
    make_table(store, &rows, indexes)?;
    let inserts: Arc<dyn Job> = Arc::new(Puts {
        rows: rows.clone(),
        generation: 0,
    });
    let inserts = write(store, args, &inserts, args.rows)?;
    // Without the flush, the memtable would remove the entries of old values, and none would become stale.
    store.flush(indexes.table())?;
    let updates: Arc<dyn Job> = Arc::new(Puts {
        rows: rows.clone(),
        generation: 1,
    });
    let updates = write(store, args, &updates, rows.updated)?;
    let mut queries = Vec::new();
    if indexes != Indexes::None {
        let asked: Arc<dyn Job> = Arc::new(QueriesByValue::new(&rows)?);
        for _ in 0..2 {
            let one_by_one = Load {
                clients: 1,
                in_flight: 1,
            };
            let until = Until::Operations(0..args.queries);
            queries.push(drive::run(store, &asked, one_by_one, &until)?);
        }
    }
    let sstables = store.sstables(indexes.table())?;
    store.execute(&format!("DROP TABLE {}", rows.table))?;
    Ok(IndexCase {
        indexes,
        inserts,
        updates,
        queries,
        sstables,
    })
}

fn make_table(store: &Store, rows: &IndexedRows, indexes: Indexes) -> anyhow::Result<()> {
    let table = &rows.table;
    store.execute(&format!("DROP TABLE IF EXISTS {table}"))?;
    store.execute(&rows.create_text())?;
    for column in indexes.columns() {
        let using = indexes.using();
        store.execute(&format!("CREATE INDEX ON {table} ({column}){using}"))?;
        store.await_index(table, column)?;
    }
    Ok(())
}

fn write(store: &Store, args: &E2Args, job: &Arc<dyn Job>, count: u64) -> anyhow::Result<WriteCost> {
    let load = Load::of(store, args.clients, args.in_flight);
    let before = store.cpu_secs()?;
    let rate = drive::run(store, job, load, &Until::Operations(0..count))?;
    let after = store.cpu_secs()?;
    let cpu_micros = before
        .zip(after)
        .map(|(before, after)| (after - before) * 1e6 / rate.operations.max(1) as f64);
    Ok(WriteCost { rate, cpu_micros })
}
