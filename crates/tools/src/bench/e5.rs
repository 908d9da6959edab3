//! Experiment 5, one column of many: the cost of reading one blob, by the number of blobs in its row.
//!
//! The published account (2023): a query selected one small column, and the store read the whole table. Rows of 1 to 100 blob
//! columns are compared with the schema that was recommended instead: one blob per row, with its number as clustering.

pub mod args;
mod blobs;
mod report;

use std::sync::Arc;

use anyhow::bail;
use ilion_env::{Env, RealEnv};

use crate::bench::dataset::Dataset;
use crate::bench::drive::{self, Load, Rate};
use crate::bench::e5::args::E5Args;
use crate::bench::e5::blobs::{BlobReads, BlobWrites, Blobs, Schema};
use crate::bench::e5::report::{BlobCase, E5Report};
use crate::bench::job::{Job, Until};
use crate::bench::store::{Host, Store};
use crate::bench::table::{publish, say};

/// Largest row: it is written with one statement, and servers refuse requests above 16 MiB.
const ROW_BYTES_MAX: u64 = 8 << 20;

/// Runs the experiment.
///
/// # Errors
/// The store cannot be reached, refuses a request, or an answer is wrong.
pub fn run(args: &E5Args, host: &dyn Host) -> anyhow::Result<()> {
    let most = args.columns.iter().copied().max().unwrap_or(1);
    if u64::from(most) * u64::from(args.value_size) > ROW_BYTES_MAX {
        bail!(
            "rows of {most} columns of {} bytes are too large to be written at once",
            args.value_size
        );
    }
    let env: Arc<dyn Env> = RealEnv::new();
    let store = Store::open(&env, &args.store, host)?;
    if !args.keep_cache && args.store.data.is_none() {
        bail!(
            "say where the files are whose page cache is to be dropped (--data), or leave it (--keep-cache)"
        );
    }
    let mut cases = Vec::new();
    for columns in &args.columns {
        for schema in [Schema::Columns, Schema::Rows] {
            cases.push(measure(&store, args, *columns, schema)?);
        }
    }
    let report = E5Report::new(args, &store, cases)?;
    publish(env.as_ref(), &report.print(), &report, args.json.as_deref())
}

fn measure(store: &Store, args: &E5Args, columns: u16, schema: Schema) -> anyhow::Result<BlobCase> {
    let table = format!("e5_{}_{columns}", schema.name());
    let blobs = Arc::new(Blobs {
        table: store.qualified(&table),
        schema,
        columns,
        rows: args.rows,
        dataset: Dataset::new(args.seed, args.value_size),
    });
    say(&format!(
        "writing {} rows of {columns} blobs as {}",
        args.rows,
        schema.name()
    ));
    write(store, args, &blobs, &table)?;
    let cached = match store.files(&table) {
        Some(files) if args.keep_cache => Some(files.fill_page_cache(store.env.as_ref())?),
        Some(files) => Some(files.drop_page_cache(store.env.as_ref())?),
        None => None,
    };
    say("reading one of them");
    let reads: Arc<dyn Job> = Arc::new(BlobReads::one(&blobs));
    let rate = read(store, args, &reads)?;
    Ok(BlobCase::new(&blobs, rate, cached, store.sstables(&table)?))
}

/// Writes all rows, and compacts them into one SSTable if the store can compact.
fn write(store: &Store, args: &E5Args, blobs: &Arc<Blobs>, table: &str) -> anyhow::Result<()> {
    let with = args
        .with
        .as_ref()
        .map_or_else(String::new, |with| format!(" WITH {with}"));
    store.execute(&format!("DROP TABLE IF EXISTS {}", blobs.table))?;
    store.execute(&blobs.create_text(&with))?;
    let writes: Arc<dyn Job> = Arc::new(BlobWrites(blobs.clone()));
    let load = Load {
        clients: 2,
        in_flight: 1,
    };
    drive::run(store, &writes, load, &Until::Operations(0..blobs.writes()))?;
    store.flush(table)?;
    if store.can_compact() {
        store.compact(table)?;
    }
    Ok(())
}

fn read(store: &Store, args: &E5Args, reads: &Arc<dyn Job>) -> anyhow::Result<Rate> {
    let load = Load {
        clients: args.clients,
        in_flight: 1,
    };
    drive::run(store, reads, load, &Until::Operations(0..args.rows * args.passes))
}
