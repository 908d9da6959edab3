//! Experiment 5, one column of many: what a read of one blob costs, by how many blobs its row has.
//!
//! The account (2023): a query asked for one small column, and the store read the whole table. Rows of 1 to 100 blob columns are
//! compared with the schema that the account was told to use instead: one blob a row, the number of the column as clustering.

mod blobs;
mod report;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::bail;
use clap::builder::RangedU64ValueParser;
use ilion_env::{Env, RealEnv};

use crate::bench::dataset::Dataset;
use crate::bench::drive::{self, Load, Rate};
use crate::bench::e5::blobs::{Blobs, Reads, Schema, Writes};
use crate::bench::e5::report::{Case, Report};
use crate::bench::job::{Job, Until};
use crate::bench::store::{Host, Store, StoreArgs};
use crate::bench::table::{publish, say};

/// Bytes of a row: it is written with one statement, and servers refuse requests above 16 MiB.
const ROW_BYTES_MAX: u64 = 8 << 20;

/// What to write and to read.
#[derive(Clone, Debug, clap::Args)]
pub struct E5Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Blobs of a row, several numbers separated by commas.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 100], value_parser = RangedU64ValueParser::<u16>::new().range(1..=1000))]
    columns: Vec<u16>,
    /// Bytes of a blob; they cannot be compressed.
    #[arg(long, default_value_t = 10_000, value_parser = RangedU64ValueParser::<u32>::new().range(1..=8_000_000))]
    value_size: u32,
    /// Rows of each table; of the other schema: partitions.
    #[arg(long, default_value_t = 200, value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    rows: u64,
    /// Times that each row is read, in turn.
    #[arg(long, default_value_t = 1, value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    passes: u64,
    /// Connections, or threads when embedded.
    #[arg(long, default_value_t = 1, value_parser = RangedU64ValueParser::<u16>::new().range(1..=1024))]
    clients: u16,
    /// Options of the tables, as they follow WITH.
    #[arg(long, value_name = "CQL")]
    with: Option<String>,
    /// Leaves the page cache of the tables' files as it is; else it is dropped before each measurement (they are in --data).
    #[arg(long)]
    keep_cache: bool,
    /// Makes the rows and orders the reads.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Writes the result as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the experiment.
///
/// # Errors
/// The store cannot be reached, refuses something, or an answer is not what was written.
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
    let report = Report::new(args, &store, cases)?;
    publish(env.as_ref(), &report.print(), &report, args.json.as_deref())
}

fn measure(store: &Store, args: &E5Args, columns: u16, schema: Schema) -> anyhow::Result<Case> {
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
    let reads: Arc<dyn Job> = Arc::new(Reads::one(&blobs));
    let rate = read(store, args, &reads)?;
    Ok(Case::new(&blobs, rate, cached, store.sstables(&table)?))
}

/// Writes all rows and brings them into one SSTable.
fn write(store: &Store, args: &E5Args, blobs: &Arc<Blobs>, table: &str) -> anyhow::Result<()> {
    let with = args
        .with
        .as_ref()
        .map_or_else(String::new, |with| format!(" WITH {with}"));
    store.execute(&format!("DROP TABLE IF EXISTS {}", blobs.table))?;
    store.execute(&blobs.create_text(&with))?;
    let writes: Arc<dyn Job> = Arc::new(Writes(blobs.clone()));
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
