//! The laws of reads, flushes and replays, told by the files of `testdata`. `REWRITE=1 cargo test` writes the answers.
//!
//! ```text
//! table [version=da] [find=filter]   begins a new store with the table of the input; `find=filter`: without token maps
//! sstables                           writes and flushes each source of the input (`--` between them): nb-1-big, nb-2-big, ...
//! write                              applies the input, in a record for each partition; records are numbered from 1
//! flush, compact, truncate, drain, add_column name=w
//! read key=a [rows=(1,2)] [from=1 to=9] [columns=(v)] [reversed] [limit=2]
//! scan [limit=1]                     the first partitions of the table
//! files                              SSTables and their components, and what else is in the table's directory
//! covers                             the stretch of the log that each SSTable covers; its ends are numbered in the order of the log
//! reopen                             closes the store, which syncs its log, and opens it
//! kill [damage=3] [cut_in=3] [remove_segment_of=3]
//!                                    opens what kill -9 leaves, after damage of the commit log at a record
//! ```
//!
//! A read prints what a client would see, then the memtables it used, and for each SSTable what a trace says of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::Path;

use datadriven::TestCase;
use ilion_commitlog::{Mode, Position};
use ilion_engine::{EngineOptions, Finding, SSTableVersion};
use ilion_env::cost::{self, Count};
use ilion_env::{CrashRule, Env, MemEnv, trace};
use ilion_rows::notation::{parse_mutations, parse_table, print_partition};
use ilion_rows::{
    Bound, BoundKind, ClusteringFilter, Cursor, KeyRange, Partition, ReadLaw, ReadPurge, Slice,
};
use ilion_schema::{CreateTable, NewColumn, Properties, SchemaChange};
use ilion_sstable::{OpenOptions, SSTable, list_directory};
use ilion_types::Partitioner;

use crate::support::{Store, add_column, clustering_of, create_keyspace, decorated, open, small_options};

struct Script {
    store: Store,
    options: EngineOptions,
    /// Where the records of `write` are.
    records: Vec<Position>,
}

fn number<T: std::str::FromStr>(test: &TestCase, name: &str) -> Option<T> {
    test.args.get(name)?.first()?.parse().ok()
}

fn word<'t>(test: &'t TestCase, name: &str) -> Option<&'t str> {
    test.args.get(name)?.first().map(String::as_str)
}

impl Script {
    fn table(test: &TestCase) -> Self {
        let mut options = small_options();
        // Only a closed or rotated segment is synced: a record of an open one may be torn.
        options.commit_log.mode = Mode::Periodic {
            period_millis: 1_000_000,
        };
        if word(test, "version") == Some("da") {
            options.sstable_version = SSTableVersion::DA;
        }
        if word(test, "find") == Some("filter") {
            options.finding = Finding::Summary;
        }
        let store = open(&MemEnv::new(7), options.clone()).unwrap();
        store.alter(&create_keyspace("ks"));
        let table = parse_table(&test.input).unwrap();
        let columns = table.every_column().into_iter();
        let names = |columns: &mut dyn Iterator<Item = &ilion_schema::Column>| {
            columns.map(|column| column.name.clone()).collect()
        };
        store.alter(&SchemaChange::CreateTable(Box::new(CreateTable {
            keyspace: "ks".to_owned(),
            name: "t".to_owned(),
            columns: columns
                .map(|column| NewColumn {
                    name: column.name.clone(),
                    ty: column.ty.clone(),
                    is_static: column.kind == ilion_schema::ColumnKind::Static,
                    mask: None,
                })
                .collect(),
            partition_key: names(&mut table.partition_key()),
            clustering: names(&mut table.clustering()),
            properties: Properties::default(),
            ..CreateTable::default()
        })));
        Self {
            store,
            options,
            records: Vec::new(),
        }
    }

    fn write(&mut self, text: &str) {
        let table = self.store.table();
        for mutation in parse_mutations(text, &table, Partitioner::Murmur3).unwrap() {
            let position = self.store.engine.apply(&[mutation]).unwrap().unwrap();
            // Survives kill -9, but is not synced.
            self.store.engine.wait_durable(position).unwrap();
            self.records.push(position);
        }
    }

    fn sstables(&mut self, input: &str) {
        for source in input.split("--\n") {
            self.write(source);
            self.store.flush();
        }
    }

    fn read(&self, test: &TestCase) -> String {
        let key = decorated(word(test, "key").unwrap());
        let table = self.store.table();
        let filter = filter(test, &self.store);
        self.told(|| {
            let cursor = self.store.engine.read_partition(&table, &key, &filter);
            self.print(cursor.unwrap(), 1, number(test, "limit"))
        })
    }

    fn scan(&self, test: &TestCase) -> String {
        let table = self.store.table();
        self.told(|| {
            let range = KeyRange::all();
            let cursor = self
                .store
                .engine
                .read_range(&table, &range, &ClusteringFilter::all());
            self.print(cursor.unwrap(), number(test, "limit").unwrap_or(usize::MAX), None)
        })
    }

    /// What a read answers, and what it says of its sources.
    fn told(&self, read: impl FnOnce() -> String) -> String {
        self.store.engine.wait_idle();
        let scope = cost::begin();
        trace::begin();
        let mut text = read();
        let told = trace::finish().into_iter().map(|event| event.activity);
        let told: Vec<String> = told
            .filter(|activity| activity.contains("sstable nb-") || activity.contains("sstable da-"))
            .collect();
        let cost = scope.so_far();
        let skipped = [
            Count::SkippedByKeyRange,
            Count::SkippedByFilter,
            Count::SkippedBySortedView,
            Count::SkippedByClustering,
            Count::SkippedByTimestamp,
            Count::SkippedByDeletion,
        ];
        let counted: u64 = skipped
            .into_iter()
            .chain([Count::SSTablesTouched])
            .map(|count| cost.of(count))
            .sum();
        assert_eq!(counted, told.len() as u64, "counts and trace differ: {told:?}");
        let (memtables, sstables) = (cost.of(Count::Memtables), cost.of(Count::SSTablesConsidered));
        writeln!(text, "memtables {memtables}, sstables {sstables}").unwrap();
        for activity in told {
            writeln!(text, "  {activity}").unwrap();
        }
        text
    }

    /// As many partitions and rows as are wanted, as a client would see them.
    fn print(&self, cursor: Box<dyn Cursor>, partitions: usize, rows: Option<usize>) -> String {
        let table = self.store.table();
        let law = ReadLaw::without_limits(u32::try_from(self.store.env.now_secs()).unwrap());
        let mut cursor = ReadPurge::new(cursor, table.clone(), law);
        let mut text = String::new();
        for _ in 0..partitions {
            let Some(head) = cursor.next_partition().unwrap() else {
                break;
            };
            let mut unfiltereds = Vec::new();
            while rows.is_none_or(|rows| unfiltereds.len() < rows)
                && let Some(unfiltered) = cursor.next_unfiltered().unwrap()
            {
                unfiltereds.push(unfiltered);
            }
            text += &without_token(&print_partition(&Partition { head, unfiltereds }, &table));
        }
        text
    }

    fn files(&self) -> String {
        let mut components: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for entry in self.store.env.list(&self.store.directory()).unwrap() {
            let (base, component) = match entry.name.rsplit_once('-') {
                Some((base, component)) => (base, component),
                None => ("", &*entry.name),
            };
            let of_base = components.entry(base.to_owned()).or_default();
            of_base.insert(component.to_owned());
        }
        let lines = components.into_iter().map(|(base, components)| {
            let components: Vec<String> = components.into_iter().collect();
            format!("{base}: {}\n", components.join(" "))
        });
        lines.collect()
    }

    fn covers(&self) -> String {
        let listed = list_directory(&*self.store.env.shared(), &self.store.directory()).unwrap();
        let open = |found: &ilion_sstable::ListedSSTable| {
            SSTable::open(
                &self.store.env.shared(),
                &found.descriptor,
                &OpenOptions::default(),
            )
            .unwrap()
        };
        let covered: Vec<(String, Vec<_>)> = listed
            .iter()
            .map(|found| {
                (
                    found.descriptor.base_name(),
                    open(found).stats().covered_intervals(),
                )
            })
            .collect();
        let marks: BTreeSet<(u64, u32)> = covered
            .iter()
            .flat_map(|(_, intervals)| intervals.iter().flat_map(|(start, end)| [*start, *end]))
            .collect();
        let names: HashMap<(u64, u32), usize> = marks.into_iter().zip(1..).collect();
        let mut text = String::new();
        for (name, intervals) in covered {
            let intervals = intervals
                .iter()
                .map(|(start, end)| format!(" from {} to {}", names[start], names[end]));
            writeln!(text, "{name}:{}", intervals.collect::<String>()).unwrap();
        }
        text
    }

    fn segment_of(&self, record: usize) -> String {
        let segment = self.records[record - 1].segment;
        format!("/ilion/commitlog/ilion-1-{segment}.log")
    }

    fn kill(self, test: &TestCase) -> (Option<Self>, String) {
        let env = self.store.env.crash(CrashRule::KeepAll);
        if let Some(record) = number::<usize>(test, "damage") {
            let offset = u64::from(self.records[record - 1].offset);
            let segment = self.segment_of(record);
            env.corrupt_byte(Path::new(&segment), offset + 20, 1).unwrap();
        }
        if let Some(record) = number(test, "remove_segment_of") {
            env.remove_file(Path::new(&self.segment_of(record))).unwrap();
        }
        if let Some(record) = number::<usize>(test, "cut_in") {
            let offset = u64::from(self.records[record - 1].offset);
            let mut file = env.open_append(Path::new(&self.segment_of(record))).unwrap();
            file.truncate(offset + 20).unwrap();
        }
        let Self {
            store,
            options,
            records,
        } = self;
        drop(store.engine);
        Self::opened(&env, options, records)
    }

    fn reopen(self) -> (Option<Self>, String) {
        let Self {
            store,
            options,
            records,
        } = self;
        Self::opened(&store.close(), options, records)
    }

    /// Opens a store, and prints what the start could not read of the log, or why it ended.
    fn opened(env: &MemEnv, options: EngineOptions, records: Vec<Position>) -> (Option<Self>, String) {
        let store = match open(env, options.clone()) {
            Ok(store) => store,
            Err(error) => return (None, format!("refused: {}\n", without_places(&error.to_string()))),
        };
        let losses = store.engine.facts().log_losses;
        let text = match losses.is_any() {
            false => String::new(),
            true => format!(
                "lost: {} places, {} records given up, {} gaps\n",
                losses.places, losses.records_given_up, losses.gaps
            ),
        };
        let script = Self {
            store,
            options,
            records,
        };
        (Some(script), text)
    }
}

/// The number of a segment and an offset depend on the clock and on how rows are encoded.
fn without_places(text: &str) -> String {
    let words = text.split(' ').map(|word| match word {
        word if word.contains("/ilion-1-") => "SEGMENT",
        word if word.trim_end_matches(':').parse::<u64>().is_ok() => "OFFSET:",
        word => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

fn without_token(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let line = match line.split_once(" token=") {
            Some((head, rest)) => format!(
                "{head}{}",
                rest.split_once(' ')
                    .map_or(String::new(), |(_, rest)| format!(" {rest}"))
            ),
            None => line.to_owned(),
        };
        writeln!(out, "{line}").unwrap();
    }
    out
}

fn filter(test: &TestCase, store: &Store) -> ClusteringFilter {
    let table = store.table();
    let bound = |kind, name| {
        let clustering = number(test, name).unwrap();
        Bound::new(kind, clustering_of(clustering).values().clone())
    };
    let mut filter = ClusteringFilter {
        reversed: test.args.contains_key("reversed"),
        ..ClusteringFilter::all()
    };
    if let Some(rows) = test.args.get("rows") {
        let rows = rows.iter().map(|row| clustering_of(row.parse().unwrap()));
        filter.slices = rows.map(|row| Slice::exactly(&row)).collect();
    }
    if test.args.contains_key("from") {
        filter.slices = vec![Slice {
            start: bound(BoundKind::InclStart, "from"),
            end: bound(BoundKind::InclEnd, "to"),
        }];
    }
    if let Some(columns) = test.args.get("columns") {
        let id = |name: &String| table.column_named(name).unwrap().id;
        filter.columns = Some(columns.iter().map(id).collect());
    }
    filter
}

fn run(script: &mut Option<Script>, test: &TestCase) -> String {
    let none = String::new();
    match test.directive.as_str() {
        "table" => {
            *script = Some(Script::table(test));
            return none;
        }
        "reopen" | "kill" => {
            let before = script.take().unwrap();
            let (opened, text) = match test.directive.as_str() {
                "kill" => before.kill(test),
                _ => before.reopen(),
            };
            *script = opened;
            return text;
        }
        _ => {}
    }
    let script = script.as_mut().unwrap();
    let table = script.store.table().id;
    match test.directive.as_str() {
        "sstables" => script.sstables(&test.input),
        "write" => script.write(&test.input),
        "flush" => script.store.flush(),
        "compact" => script.store.engine.compact(table).unwrap(),
        "truncate" => script.store.engine.truncate(table).unwrap(),
        "drain" => script.store.engine.drain().unwrap(),
        "add_column" => script.store.alter(&add_column(word(test, "name").unwrap())),
        "read" => return script.read(test),
        "scan" => return script.scan(test),
        "files" => return script.files(),
        "covers" => return script.covers(),
        other => panic!("unknown directive {other}"),
    }
    none
}

#[test]
fn reads_flushes_and_replays_do_what_the_files_say() {
    datadriven::walk(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata"), |file| {
        let mut script = None;
        file.run(|test| run(&mut script, test));
    });
}
