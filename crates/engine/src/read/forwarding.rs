//! The wrappers of cursors in a read forward its fast paths: a read of many plain rows takes them all in place.

use ilion_rows::notation::{parse_partitions, parse_table};
use ilion_rows::recorder::{Method, Recorder, forwarded};
use ilion_rows::{Partition, VecCursor};
use ilion_types::Partitioner;

use super::tests::Case;
use super::*;
use crate::row_cache::HeadThenRest;
use crate::source::Held;
use Method::{NextPartition, NextUnfiltered, PlainRows, SkipDeleted};

fn partitions(text: &str) -> Vec<Partition> {
    let table = parse_table("k int pk, c int ck, v int").unwrap();
    parse_partitions(text, &table, Partitioner::Murmur3).unwrap()
}

fn forwarded_by<C: Cursor>(wrap: impl FnMut(Recorder) -> C) -> Vec<Method> {
    let partitions = partitions("partition 1\n  row 1 live@1 v=1@1\n  row 2 live@1 v=2@1\n");
    forwarded(&partitions, wrap).unwrap()
}

#[test]
fn a_cursor_that_holds_its_files_forwards_everything() {
    let live = (0..).find_map(|seed| Case::new(seed).store.view().sstables.first().cloned());
    let live = live.unwrap();
    assert_eq!(
        forwarded_by(|cursor| Held::new(cursor, live.clone())),
        Method::ALL
    );
    assert_eq!(
        forwarded_by(|cursor| Held::touched(cursor, live.clone())),
        Method::ALL
    );
}

/// Its first partition was already read, so no partition is plain.
#[test]
fn a_cursor_that_was_begun_forwards_rows() {
    let found = forwarded_by(|cursor| Begun::of(cursor).unwrap());
    assert_eq!(found, [NextPartition, NextUnfiltered, PlainRows, SkipDeleted]);
}

#[test]
fn the_rest_of_a_partition_behind_its_cached_head_is_forwarded() {
    let found = forwarded_by(|cursor| HeadThenRest {
        head: Box::new(VecCursor::new(partitions("partition 1\n"))),
        open_rest: Some(Box::new(move || Ok(Box::new(cursor)))),
        rest: None,
    });
    assert_eq!(found, [NextUnfiltered, PlainRows, SkipDeleted]);
}
