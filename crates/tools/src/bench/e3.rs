//! Experiment 3, the position of a key in the index: look-ups of keys that the index summary samples, and of the last keys before
//! the next sample.
//!
//! The published account (2014): 50,000 look-ups took 1.1 s for a sampled key, 11.2 s for one far from a sample, and 0.14 to
//! 0.2 s with a key cache.

mod report;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::builder::RangedU64ValueParser;
use ilion_env::{Env, RealEnv};

use crate::bench::dataset::{Dataset, mix};
use crate::bench::drive::{self, Load};
use crate::bench::e3::report::{E3Report, Pair, Variant};
use crate::bench::job::{Job, Until};
use crate::bench::small_rows::{Inserts, Points, SmallRows};
use crate::bench::store::{Host, Store, StoreArgs};
use crate::bench::table::{publish, say};

const TABLE: &str = "e3";
/// The ways to find a key: with the token map alone; with the index summary and the key cache; with the index summary alone.
const VARIANTS: [&str; 3] = [
    "token map:sstable_lookup=token_map,key_cache_size=0MiB",
    "summary and key cache:sstable_lookup=summary",
    "summary alone:sstable_lookup=summary,key_cache_size=0MiB",
];

/// Arguments of experiment 3.
#[derive(Clone, Debug, clap::Args)]
pub struct E3Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Rows in the table, all in one SSTable.
    #[arg(long, default_value_t = 1_000_000, value_parser = RangedU64ValueParser::<u64>::new().range(1..=1_000_000_000))]
    rows: u64,
    /// Look-ups of each kind.
    #[arg(long, default_value_t = 50_000, value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    lookups: u64,
    /// Measurements of each kind; the fastest counts.
    #[arg(long, default_value_t = 5, value_parser = RangedU64ValueParser::<u32>::new().range(1..))]
    runs: u32,
    /// Partitions between two samples: min_index_interval of the table.
    #[arg(long, default_value_t = 128, value_parser = RangedU64ValueParser::<u32>::new().range(1..))]
    interval: u32,
    /// Connections, or threads when embedded.
    #[arg(long, default_value_t = 1, value_parser = RangedU64ValueParser::<u16>::new().range(1..=1024))]
    clients: u16,
    /// Requests under way on each connection.
    #[arg(long, default_value_t = 1, value_parser = RangedU64ValueParser::<u16>::new().range(1..=32768))]
    in_flight: u16,
    /// Embedded: measures with these settings, separated by commas, and reports them under this name; may be repeated.
    #[arg(long, value_name = "NAME:SETTING=VALUE,...", default_values = VARIANTS)]
    variant: Vec<String>,
    /// Seed of the rows and of the order of reads.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Writes the result as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the experiment.
///
/// # Errors
/// The store cannot be reached, refuses a request, or an answer is wrong.
pub fn run(args: &E3Args, host: &dyn Host) -> anyhow::Result<()> {
    let env: Arc<dyn Env> = RealEnv::new();
    let store = Store::open(&env, &args.store, host)?;
    let rows = Arc::new(SmallRows {
        table: store.qualified(TABLE),
        dataset: Dataset::new(args.seed, 40),
        count: args.rows,
        seed: args.seed,
        partitioner: store.partitioner()?,
    });
    let load = Load::of(&store, args.clients, args.in_flight);
    fill(&store, args, &rows)?;
    let keys = Keys::find(&rows, args.interval)?;
    let release_version = store.local("release_version")?;
    let measure = |store: &Store, name: &str| measure(store, name, args, &rows, &keys, load);
    let mut variants = Vec::new();
    if !args.store.embedded {
        variants.push(measure(&store, "the server's")?);
    }
    // A directory can be opened only once at a time.
    drop(store);
    for text in args.variant.iter().filter(|_| args.store.embedded) {
        let (name, settings) = parse_variant(text)?;
        let mut own = args.store.clone();
        own.set.extend(settings);
        variants.push(measure(&Store::open(&env, &own, host)?, &name)?);
    }
    let report = E3Report {
        experiment: "e3",
        release_version,
        is_embedded: args.store.embedded,
        rows: args.rows,
        interval: args.interval,
        lookups: args.lookups,
        load,
        page_cache: "warm",
        variants,
    };
    publish(env.as_ref(), &report.print(), &report, args.json.as_deref())
}

/// Writes all rows, and compacts them into one SSTable.
fn fill(store: &Store, args: &E3Args, rows: &Arc<SmallRows>) -> anyhow::Result<()> {
    say(&format!("inserting {} rows", args.rows));
    let options = format!(
        " WITH min_index_interval = {} AND max_index_interval = {}",
        args.interval,
        args.interval.max(2048)
    );
    store.execute(&format!("DROP TABLE IF EXISTS {}", rows.table))?;
    store.execute(&rows.create_text(&options))?;
    let many = Load::of(store, 8, 16);
    let inserts: Arc<dyn Job> = Arc::new(Inserts(rows.clone()));
    drive::run(store, &inserts, many, &Until::Operations(0..args.rows))?;
    store.flush(TABLE)?;
    store.compact(TABLE)?;
    match store.sstables(TABLE)? {
        Some(1) | None => Ok(()),
        Some(count) => bail!("the rows are in {count} SSTables after a major compaction, not in one"),
    }
}

/// Keys by their position in the index.
struct Keys {
    sampled: Vec<u64>,
    far: Vec<u64>,
}

impl Keys {
    /// Compat: a summary at full sampling level has every partition whose position is a multiple of `min_index_interval`.
    fn find(rows: &SmallRows, interval: u32) -> anyhow::Result<Self> {
        say("sorting the keys");
        let mut order: Vec<u64> = (0..rows.count).collect();
        order.sort_by_cached_key(|row| rows.token(*row));
        let interval = usize::try_from(interval)?;
        let blocks = order.chunks_exact(interval);
        let keys = Self {
            sampled: blocks
                .clone()
                .filter_map(|block| block.first().copied())
                .collect(),
            far: blocks.filter_map(|block| block.last().copied()).collect(),
        };
        if keys.far.is_empty() {
            bail!(
                "{} rows have no key far from a sample: more are needed",
                rows.count
            );
        }
        Ok(keys.shuffled(rows.seed))
    }

    /// Shuffles both kinds in the same way, so that consecutive keys are not neighbours in the file.
    fn shuffled(mut self, seed: u64) -> Self {
        for keys in [&mut self.sampled, &mut self.far] {
            let mut places: Vec<usize> = (0..keys.len()).collect();
            places.sort_by_key(|place| mix(seed ^ *place as u64));
            *keys = places.iter().map(|place| keys[*place]).collect();
        }
        self
    }
}

fn measure(
    store: &Store,
    name: &str,
    args: &E3Args,
    rows: &Arc<SmallRows>,
    keys: &Keys,
    load: Load,
) -> anyhow::Result<Variant> {
    if let Some(files) = store.files(TABLE) {
        files.fill_page_cache(store.env.as_ref())?;
    }
    say(&format!("looking up: {name}"));
    let job = |chosen: &[u64]| -> Arc<dyn Job> {
        Arc::new(Points {
            rows: rows.clone(),
            chosen: Some(chosen.to_vec()),
        })
    };
    let pair = |sampled: &[u64], far: &[u64]| pair(store, args, &job(sampled), &job(far), load);
    Ok(Variant {
        name: name.to_owned(),
        one_key: pair(&keys.sampled[..1], &keys.far[..1])?,
        many_keys: pair(&keys.sampled, &keys.far)?,
    })
}

/// Measures both kinds of keys alternately. The first round only fills caches.
fn pair(
    store: &Store,
    args: &E3Args,
    sampled: &Arc<dyn Job>,
    far: &Arc<dyn Job>,
    load: Load,
) -> anyhow::Result<Pair> {
    let until = Until::Operations(0..args.lookups);
    let mut best = Pair {
        sampled_secs: f64::MAX,
        far_secs: f64::MAX,
        ratio: 0.0,
    };
    for turn in 0..=args.runs {
        let sampled = drive::run(store, sampled, load, &until)?.secs;
        let far = drive::run(store, far, load, &until)?.secs;
        if turn > 0 {
            best.sampled_secs = best.sampled_secs.min(sampled);
            best.far_secs = best.far_secs.min(far);
        }
    }
    best.ratio = best.far_secs / best.sampled_secs;
    Ok(best)
}

fn parse_variant(text: &str) -> anyhow::Result<(String, Vec<String>)> {
    let (name, settings) = text
        .split_once(':')
        .with_context(|| format!("--variant {text}: expected NAME:SETTING=VALUE,..."))?;
    let settings = settings.split(',').filter(|setting| !setting.is_empty());
    Ok((name.to_owned(), settings.map(str::to_owned).collect()))
}

#[cfg(test)]
mod tests {
    use ilion_types::Partitioner;

    use super::*;

    #[test]
    fn sampled_keys_stand_at_the_interval_and_far_ones_before_the_next() {
        let rows = SmallRows {
            table: "ks.t".to_owned(),
            dataset: Dataset::new(1, 8),
            count: 300,
            seed: 1,
            partitioner: Partitioner::Murmur3,
        };
        let keys = Keys::find(&rows, 128).unwrap();
        let rank = |row: u64| {
            (0..300)
                .filter(|other| rows.token(*other) < rows.token(row))
                .count()
        };
        let mut sampled: Vec<_> = keys.sampled.iter().map(|row| rank(*row)).collect();
        let mut far: Vec<_> = keys.far.iter().map(|row| rank(*row)).collect();
        sampled.sort_unstable();
        far.sort_unstable();
        assert_eq!((sampled, far), (vec![0, 128], vec![127, 255]));
        assert!(Keys::find(&rows, 1000).is_err());
    }

    #[test]
    fn a_variant_has_a_name_and_settings() {
        let (name, settings) = parse_variant("no cache:a=1,b=2").unwrap();
        assert_eq!(
            (&*name, settings),
            ("no cache", vec!["a=1".to_owned(), "b=2".to_owned()])
        );
        assert!(parse_variant("a=1").is_err());
    }
}
