//! Tests of sources that a merge opens only when it reaches them.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ilion_rows::notation::{parse_mutations, parse_table, print_cursor};
use ilion_rows::{
    ClusteringComparator, Cursor, DecoratedKey, Direction, LateSources, MergeCursor, Partition, ReadError,
    VecCursor,
};
use ilion_schema::TableSchema;
use ilion_types::Partitioner;

fn cursor_of(source: &str, table: &Arc<TableSchema>) -> VecCursor {
    let comparator = ClusteringComparator::of(table);
    let mut mutations = parse_mutations(source, table, Partitioner::Murmur3).unwrap();
    mutations.sort_by(|a, b| a.key.cmp(&b.key));
    let partitions = mutations
        .into_iter()
        .map(|mutation| Partition::of(mutation.key, mutation.update, &comparator));
    VecCursor::new(partitions.collect())
}

/// Each source first waits by a bound that is too early.
struct Late {
    /// Ascending by their bounds.
    waiting: VecDeque<(DecoratedKey, Option<VecCursor>)>,
    early: DecoratedKey,
    is_looked_up: bool,
    opened: Arc<AtomicUsize>,
}

impl LateSources for Late {
    fn bound(&self) -> Option<DecoratedKey> {
        let (bound, _) = self.waiting.front()?;
        Some(if self.is_looked_up { bound } else { &self.early }.clone())
    }

    fn open(&mut self) -> Result<Option<Box<dyn Cursor>>, ReadError> {
        if !std::mem::replace(&mut self.is_looked_up, true) {
            return Ok(None);
        }
        let (_, cursor) = self.waiting.pop_front().unwrap();
        self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(cursor.map(|cursor| Box::new(cursor) as Box<dyn Cursor>))
    }
}

#[test]
fn sources_are_opened_when_the_merge_comes_to_them_and_not_before() {
    let table = parse_table("k int pk, v int").unwrap();
    let row = |key: i32, value: i32, micros: i32| format!("partition {key}\nrow v={value}@{micros}\n");
    let texts: Vec<String> = (0..20)
        .map(|part| (part..60).step_by(20).map(|key| row(key, part, 5)).collect())
        .collect();
    let newer = row(3, 100, 9) + &row(25, 100, 9);
    let mut cursors: Vec<VecCursor> = texts.iter().map(|text| cursor_of(text, &table)).collect();
    cursors.sort_by_key(|cursor| cursor.lower_bound());
    let early = cursors[0].lower_bound().unwrap();
    let waiting = cursors
        .into_iter()
        .map(|cursor| (cursor.lower_bound().unwrap(), Some(cursor)));
    let opened = Arc::new(AtomicUsize::new(0));
    let late = Late {
        waiting: waiting.collect(),
        early,
        is_looked_up: false,
        opened: opened.clone(),
    };
    let at_once: Vec<Box<dyn Cursor>> = vec![Box::new(cursor_of(&newer, &table))];
    let merge = MergeCursor::new(at_once, table.clone(), Direction::Forward);
    let mut merge = merge.with_late(Box::new(late));
    merge.next_partition().unwrap().unwrap();
    assert!((1..=3).contains(&opened.load(Ordering::Relaxed)));

    let every: String = texts.concat();
    let expected: Vec<Box<dyn Cursor>> = vec![
        Box::new(cursor_of(&every, &table)),
        Box::new(cursor_of(&newer, &table)),
    ];
    let mut expected = MergeCursor::new(expected, table.clone(), Direction::Forward);
    expected.next_partition().unwrap().unwrap();
    let print = |merge: &mut MergeCursor| print_cursor(merge, &table).unwrap();
    assert_eq!(print(&mut merge), print(&mut expected));
    assert_eq!(opened.load(Ordering::Relaxed), 20);
}
