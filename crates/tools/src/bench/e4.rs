//! Experiment 4, reads after a burst of writes: 8 clients insert small rows, then point reads and range reads of two rows are
//! measured directly after the burst, after a pause, and after a major compaction.
//!
//! The published account (2011): 100 million rows of 50 bytes left 108 SSTables. Directly after the burst, range reads ran at 0.9 % of
//! the rate after the major compaction, point reads at 38 %.

pub mod args;
mod report;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::bail;
use ilion_env::{Env, RealEnv};
use ilion_types::Partitioner;

use crate::bench::dataset::Dataset;
use crate::bench::drive::{self, Load, Rate};
use crate::bench::e4::args::E4Args;
use crate::bench::e4::report::{E4Report, Inserted, PageCache, ReadStage};
use crate::bench::job::{Job, Until};
use crate::bench::small_rows::{Inserts, Points, Ranges, SmallRows};
use crate::bench::store::{Host, Store};
use crate::bench::table::{publish, say};
use crate::bench::watcher::Watcher;

const TABLE: &str = "e4";
/// Time between two counts of the SSTables during the burst.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Runs the experiment.
///
/// # Errors
/// The store cannot be reached, refuses a request, or an answer is wrong.
pub fn run(args: &E4Args, host: &dyn Host) -> anyhow::Result<()> {
    let env: Arc<dyn Env> = RealEnv::new();
    let store = Arc::new(Store::open(&env, &args.store, host)?);
    let run = Run::new(args, store)?;
    let report = run.report()?;
    publish(env.as_ref(), &report.print(), &report, args.json.as_deref())
}

struct Run<'a> {
    args: &'a E4Args,
    store: Arc<Store>,
    rows: Arc<SmallRows>,
    load: Load,
}

impl<'a> Run<'a> {
    fn new(args: &'a E4Args, store: Arc<Store>) -> anyhow::Result<Self> {
        let partitioner = store.partitioner()?;
        if partitioner == Partitioner::Random {
            bail!("tokens of RandomPartitioner have no fixed size; use another one");
        }
        if args.drop_cache && store.files(TABLE).is_none() {
            bail!("say where the files are whose page cache is to be dropped: --data");
        }
        let rows = Arc::new(SmallRows {
            table: store.qualified(TABLE),
            dataset: Dataset::new(args.seed, args.value_size),
            count: args.rows,
            seed: args.seed,
            partitioner,
        });
        let load = Load::of(&store, args.clients, args.in_flight);
        Ok(Self {
            args,
            store,
            rows,
            load,
        })
    }

    fn report(&self) -> anyhow::Result<E4Report> {
        self.make_table()?;
        let inserted = self.insert()?;
        let mut stages = vec![self.stage("straight after")?];
        if self.args.pause > 0 {
            say(&format!("pausing for {} s", self.args.pause));
            thread::sleep(Duration::from_secs(self.args.pause));
            stages.push(self.stage(&format!("{} s later", self.args.pause))?);
        }
        if self.store.can_compact() {
            say("major compaction");
            let begin = self.store.env.monotonic_nanos();
            self.store.compact(TABLE)?;
            let secs = (self.store.env.monotonic_nanos() - begin) as f64 / 1e9;
            stages.push(self.stage(&format!("after a major compaction of {secs:.0} s"))?);
        }
        E4Report::new(self.args, &self.store, &self.rows, self.load, inserted, stages)
    }

    fn make_table(&self) -> anyhow::Result<()> {
        let mut options: Vec<&str> = self.args.with.as_deref().into_iter().collect();
        if self.args.sstables.is_some() {
            options.push("compaction = {'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}");
        }
        let with = match options.is_empty() {
            true => String::new(),
            false => format!(" WITH {}", options.join(" AND ")),
        };
        let table = &self.rows.table;
        self.store.execute(&format!("DROP TABLE IF EXISTS {table}"))?;
        self.store.execute(&self.rows.create_text(&with))?;
        Ok(())
    }

    fn insert(&self) -> anyhow::Result<Inserted> {
        say(&format!("inserting {} rows", self.args.rows));
        let watch = watch(&self.store)?;
        let job: Arc<dyn Job> = Arc::new(Inserts(self.rows.clone()));
        let begin = self.store.env.monotonic_nanos();
        let parts = self.args.sstables.unwrap_or(1).min(self.args.rows);
        let mut last = Rate::default();
        for part in 0..parts {
            let bound =
                |part: u64| u64::try_from(u128::from(self.args.rows) * u128::from(part) / u128::from(parts));
            let numbers = bound(part)?..bound(part + 1)?;
            last = drive::run(&self.store, &job, self.load, &Until::Operations(numbers))?;
            if self.args.sstables.is_some() {
                self.store.flush(TABLE)?;
            }
        }
        let secs = (self.store.env.monotonic_nanos() - begin) as f64 / 1e9;
        Ok(Inserted {
            secs,
            rows_per_sec: self.args.rows as f64 / secs,
            p99_micros: last.p99_micros,
            sstables_most: watch.stop()?,
        })
    }

    fn stage(&self, name: &str) -> anyhow::Result<ReadStage> {
        say(&format!("reading {name}"));
        let until = Until::Secs(self.args.secs);
        let sstables = self.store.sstables(TABLE)?;
        let points: Arc<dyn Job> = Arc::new(Points {
            rows: self.rows.clone(),
            chosen: None,
        });
        let ranges: Arc<dyn Job> = Arc::new(Ranges {
            rows: self.rows.clone(),
            limit: self.args.range_rows as usize,
        });
        let cache_before_points = self.page_cache()?;
        let points = drive::run(&self.store, &points, self.load, &until)?;
        let cache_before_ranges = self.page_cache()?;
        let ranges = drive::run(&self.store, &ranges, self.load, &until)?;
        Ok(ReadStage {
            name: name.to_owned(),
            sstables,
            sstables_at_end: self.store.sstables(TABLE)?,
            points,
            ranges,
            page_cache: PageCache {
                before_points: cache_before_points,
                before_ranges: cache_before_ranges,
            },
        })
    }

    fn page_cache(&self) -> anyhow::Result<Option<crate::bench::files::Cached>> {
        let Some(files) = self.store.files(TABLE) else {
            return Ok(None);
        };
        let env = self.store.env.as_ref();
        match self.args.drop_cache {
            true => files.drop_page_cache(env).map(Some),
            false => files.fill_page_cache(env).map(Some),
        }
    }
}

/// Counts the SSTables during the burst; returns the largest count.
fn watch(store: &Arc<Store>) -> anyhow::Result<Watcher<u64>> {
    let store = store.clone();
    Watcher::start(move |is_over| {
        let mut most = 0;
        while !is_over.get() {
            // A count that fails is skipped.
            let count = store.sstables(TABLE).ok().flatten().unwrap_or(0);
            most = most.max(count);
            is_over.wait(LOOK_EVERY);
        }
        most
    })
}
