//! Experiment 1, the time of a start: from the exec of a server to its first answered query, with the page cache of its files
//! dropped, for several amounts of data.
//!
//! The published account (2012): 10 million rows in 6 SSTables. When the index summary became a file of its own, the start took
//! 8.0 s; before, it read the whole index and took 40.9 s.

mod report;
mod server;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::bail;
use clap::builder::RangedU64ValueParser;
use ilion_env::{Env, RealEnv};
use ilion_types::Partitioner;

use crate::bench::dataset::{Dataset, mix};
use crate::bench::drive::{self, Load};
use crate::bench::e1::report::{E1Report, Starts};
use crate::bench::e1::server::{AskedRow, Server, Start};
use crate::bench::files::{TableFiles, Tree};
use crate::bench::job::{Job, Until};
use crate::bench::settings::create_keyspace;
use crate::bench::small_rows::{Inserts, SmallRows};
use crate::bench::store::{Embedded, Host};
use crate::bench::table::{publish, say};

const KEYSPACE: &str = "ilion_bench";
const TABLE: &str = "e1";
const SEED: u64 = 1;

/// Arguments of experiment 1.
#[derive(Clone, Debug, clap::Args)]
pub struct E1Args {
    /// Amounts of rows, separated by commas; ratios are to the first.
    #[arg(long, value_delimiter = ',', default_values_t = [100_000, 1_000_000])]
    rows: Vec<u64>,
    /// Parent of the data directories rows-COUNT; missing ones are created, existing ones are used.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Least number of SSTables to create.
    #[arg(long, default_value_t = 6, value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    sstables: u64,
    /// Bytes of the value of a row; its key has ten.
    #[arg(long, default_value_t = 128, value_parser = RangedU64ValueParser::<u32>::new().range(1..=2_000_000))]
    value_size: u32,
    /// Number of starts, each with the page cache dropped.
    #[arg(long, default_value_t = 5, value_parser = RangedU64ValueParser::<u32>::new().range(1..))]
    runs: u32,
    /// Shell command that starts the server, with {data} and {port} in it [default: this program's serve].
    #[arg(long, value_name = "COMMAND")]
    command: Option<String>,
    /// Also measures starts that read the whole primary index (sstable_lookup=whole_index).
    #[arg(long, conflicts_with = "command")]
    old_way: bool,
    /// A setting of this program's serve; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "command")]
    set: Vec<String>,
    /// Does not drop the page cache.
    #[arg(long)]
    keep_cache: bool,
    /// Writes the result as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the experiment.
///
/// # Errors
/// The data cannot be created, or a server does not return a row that was written.
pub fn run(args: &E1Args, host: &dyn Host) -> anyhow::Result<()> {
    let env: Arc<dyn Env> = RealEnv::new();
    let mut all = Vec::new();
    for count in &args.rows {
        let directory = args.data.join(format!("rows-{count}"));
        let rows = Arc::new(rows(*count, args.value_size));
        if !env.exists(&directory) {
            make(&env, host, &directory, &rows, args.sstables)?;
        }
        all.push(measure(&env, args, &directory, &rows)?);
    }
    let report = E1Report::new(args.value_size, args.runs, !args.keep_cache, all);
    publish(env.as_ref(), &report.print(), &report, args.json.as_deref())
}

fn rows(count: u64, value_size: u32) -> SmallRows {
    SmallRows {
        table: format!("{KEYSPACE}.{TABLE}"),
        dataset: Dataset::new(SEED, value_size),
        count,
        seed: SEED,
        partitioner: Partitioner::Murmur3,
    }
}

/// Creates a data directory.
fn make(
    env: &Arc<dyn Env>,
    host: &dyn Host,
    directory: &Path,
    rows: &Arc<SmallRows>,
    sstables: u64,
) -> anyhow::Result<()> {
    say(&format!("making {} rows", rows.count));
    let database: Arc<dyn Embedded> =
        Arc::from(host.open(directory, &["commitlog_sync=periodic".to_owned()])?);
    database.execute(&create_keyspace(KEYSPACE))?;
    let off = " WITH compaction = {'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}";
    database.execute(&rows.create_text(off))?;
    let job: Arc<dyn Job> = Arc::new(Inserts(rows.clone()));
    let load = Load {
        clients: 8,
        in_flight: 1,
    };
    let bound = |part: u64| rows.count * part / sstables;
    for part in 0..sstables {
        drive::run_embedded(
            env,
            &database,
            &job,
            load,
            &Until::Operations(bound(part)..bound(part + 1)),
        )?;
        database.flush(KEYSPACE, TABLE)?;
    }
    let count = database.sstables(KEYSPACE, TABLE)?;
    if count < sstables {
        bail!("{count} SSTables were made, not {sstables}");
    }
    Ok(())
}

fn measure(env: &Arc<dyn Env>, args: &E1Args, directory: &Path, rows: &SmallRows) -> anyhow::Result<Starts> {
    let files = TableFiles::new(directory, KEYSPACE, TABLE);
    let sstables = files.sstables(env.as_ref())?;
    let size_bytes = files.size_bytes(env.as_ref())?;
    let usual = starts(env, args, directory, rows, &args.set)?;
    let old_way = args.old_way.then(|| {
        let settings = [&args.set[..], &["sstable_lookup=whole_index".to_owned()]].concat();
        starts(env, args, directory, rows, &settings)
    });
    Ok(Starts {
        rows: rows.count,
        sstables,
        size_bytes,
        saved_caches_bytes: Tree::new(&directory.join("saved_caches")).size_bytes(env.as_ref()),
        usual,
        old_way: old_way.transpose()?,
    })
}

fn starts(
    env: &Arc<dyn Env>,
    args: &E1Args,
    directory: &Path,
    rows: &SmallRows,
    settings: &[String],
) -> anyhow::Result<Vec<Start>> {
    let tree = Tree::new(directory);
    let server = Server {
        command: args.command.as_deref(),
        directory,
        settings,
    };
    (0..args.runs)
        .map(|run| {
            let left = match args.keep_cache {
                true => None,
                false => tree.drop_page_cache(env.as_ref())?.cached_bytes,
            };
            say(&format!("start {} with {} rows", run + 1, rows.count));
            let row = mix(u64::from(run)) % rows.count;
            let asked = AskedRow { rows, row };
            server.measure(env, &asked, left)
        })
        .collect()
}
