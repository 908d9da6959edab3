//! Tests of the data model's laws, by the files of `testdata`. `REWRITE=1 cargo test` writes the answers.
//!
//! A case starts with a directive. Its input is a list of sources, separated by `--`, in the notation of
//! `ilion_rows::notation`. The line `partition 1` may be left out. `table` sets the table for the cases that follow.
//!
//! * `merge [reversed] [at_once]`: the merge of the sources. The test also merges them in other orders, and two by two unless
//!   `at_once` is given; the result must be the same.
//! * `read now=N gc_before=N [warn=N fail=N]`: what a read returns, and its counts.
//! * `compact now=N gc_before=N [below=N]`: what a compaction keeps.
//! * `filter [reversed]`: the first source has the selected slices; prints what they select of the other sources, merged.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fmt::Write as _;
use std::sync::Arc;

use datadriven::TestCase;
use ilion_rows::notation::{parse_mutations, parse_table, print_cursor};
use ilion_rows::{
    ClusteringComparator, ClusteringFilter, CompactionPurge, Cursor, Direction, FilterCursor, MergeCursor,
    Mutation, Partition, ReadLaw, ReadPurge, Slice, TombstoneLimits, VecCursor,
};
use ilion_schema::TableSchema;
use ilion_types::Partitioner;

fn mutations(source: &str, table: &Arc<TableSchema>) -> Vec<Mutation> {
    let implied = !source.lines().any(|line| line.starts_with("partition"));
    let text = match implied {
        true => format!("partition 1\n{source}"),
        false => source.to_owned(),
    };
    let mut mutations = parse_mutations(&text, table, Partitioner::Murmur3).unwrap();
    mutations.sort_by(|a, b| a.key.cmp(&b.key));
    mutations
}

fn sources(input: &str) -> impl Iterator<Item = &str> {
    input.split("--\n")
}

fn cursor_of(source: &str, table: &Arc<TableSchema>) -> VecCursor {
    let comparator = ClusteringComparator::of(table);
    let partitions = mutations(source, table)
        .into_iter()
        .map(|mutation| Partition::of(mutation.key, mutation.update, &comparator));
    VecCursor::new(partitions.collect())
}

fn merge<'i>(
    sources: impl Iterator<Item = &'i str>,
    table: &Arc<TableSchema>,
    direction: Direction,
) -> MergeCursor {
    let comparator = ClusteringComparator::of(table);
    let filter = Arc::new(ClusteringFilter {
        reversed: direction == Direction::Reversed,
        ..ClusteringFilter::all()
    });
    let cursors = sources.map(|source| {
        let cursor = FilterCursor::new(cursor_of(source, table), filter.clone(), comparator.clone());
        Box::new(cursor) as Box<dyn Cursor>
    });
    MergeCursor::new(cursors.collect(), table.clone(), direction)
}

/// Prints without the parts that every case of one partition would repeat.
fn print(cursor: &mut dyn Cursor, table: &TableSchema) -> String {
    let text = print_cursor(cursor, table).unwrap();
    let lines = text.lines().map(|line| match line.split_once(" token=") {
        Some((head, rest)) => {
            let deletion = rest
                .split_once(' ')
                .map_or(String::new(), |(_, rest)| format!(" {rest}"));
            format!("{head}{deletion}")
        }
        None => line.to_owned(),
    });
    let lines: Vec<String> = lines.filter(|line| line != "partition 1").collect();
    let indented = lines.iter().any(|line| line.starts_with("partition"));
    lines.iter().fold(String::new(), |mut out, line| {
        let line = if indented { line } else { line.trim_start() };
        let _ = writeln!(out, "{line}");
        out
    })
}

fn number<T: std::str::FromStr>(test: &TestCase, name: &str) -> Option<T> {
    test.args.get(name)?.first()?.parse().ok()
}

fn run_merge(test: &TestCase, table: &Arc<TableSchema>) -> String {
    let direction = Direction::of(test.args.contains_key("reversed"));
    let mut all: Vec<&str> = sources(&test.input).collect();
    let answer = print(&mut merge(all.iter().copied(), table, direction), table);
    for turn in 0..all.len() * 2 {
        if turn == all.len() {
            all.reverse();
        }
        all.rotate_left(1);
        let again = print(&mut merge(all.iter().copied(), table, direction), table);
        assert_eq!(again, answer, "the order of sources matters:\n{}", test.input);
    }
    if test.args.contains_key("at_once") {
        return answer;
    }
    let tree = merge_two_by_two(&all, table, direction);
    assert_eq!(tree, answer, "what is merged first matters:\n{}", test.input);
    answer
}

fn merge_two_by_two(all: &[&str], table: &Arc<TableSchema>, direction: Direction) -> String {
    let mut cursor: Box<dyn Cursor> = Box::new(merge(all.iter().copied().take(1), table, direction));
    for source in all.iter().skip(1) {
        let next = Box::new(merge(std::iter::once(*source), table, direction));
        cursor = Box::new(MergeCursor::new(vec![cursor, next], table.clone(), direction));
    }
    print(&mut *cursor, table)
}

fn run_read(test: &TestCase, table: &Arc<TableSchema>) -> String {
    let law = ReadLaw {
        now_secs: number(test, "now").unwrap(),
        gc_before_secs: number(test, "gc_before").unwrap(),
        limits: TombstoneLimits {
            warn: number(test, "warn").unwrap_or(u64::MAX),
            fail: number(test, "fail").unwrap_or(u64::MAX),
        },
        spend: ReadLaw::patient,
    };
    let merged = merge(sources(&test.input), table, Direction::Forward);
    let mut cursor = ReadPurge::new(merged, table.clone(), law);
    if test.args.contains_key("fail") {
        return format!("{}\n", print_cursor(&mut cursor, table).unwrap_err());
    }
    let rows = print(&mut cursor, table);
    let counts = cursor.counts();
    let warning = if cursor.is_worth_warning() { ", warns" } else { "" };
    format!(
        "{rows}({} live, {} tombstones{warning})\n",
        counts.live_rows, counts.tombstones
    )
}

fn run_compact(test: &TestCase, table: &Arc<TableSchema>) -> String {
    let below = number(test, "below").unwrap_or(i64::MAX);
    let mut cursor = CompactionPurge::new(
        merge(sources(&test.input), table, Direction::Forward),
        number(test, "now").unwrap(),
        number(test, "gc_before").unwrap(),
        Box::new(move |_| below),
    );
    print(&mut cursor, table)
}

fn run_filter(test: &TestCase, table: &Arc<TableSchema>) -> String {
    let (slices, rest) = test.input.split_once("--\n").unwrap();
    let slices: String = slices.lines().map(|line| format!("{line} del@0\n")).collect();
    let slices = mutations(&slices, table).remove(0).update.ranges;
    let filter = ClusteringFilter {
        slices: slices
            .into_iter()
            .map(|range| Slice {
                start: range.start,
                end: range.end,
            })
            .collect(),
        reversed: test.args.contains_key("reversed"),
        ..ClusteringFilter::all()
    };
    let comparator = ClusteringComparator::of(table);
    let merged = merge(sources(rest), table, Direction::Forward);
    print(
        &mut FilterCursor::new(merged, Arc::new(filter), comparator),
        table,
    )
}

#[test]
fn sources_merge_purge_and_filter_as_the_files_say() {
    datadriven::walk(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata"), |file| {
        let mut table = parse_table("k int pk, c int ck, a int, b text").unwrap();
        file.run(|test| match test.directive.as_str() {
            "table" => {
                table = parse_table(&test.input).unwrap();
                String::new()
            }
            "merge" => run_merge(test, &table),
            "read" => run_read(test, &table),
            "compact" => run_compact(test, &table),
            "filter" => run_filter(test, &table),
            other => panic!("unknown directive {other}"),
        });
    });
}
