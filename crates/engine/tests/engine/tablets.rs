//! Records of shared logs: each is applied to a table once, whatever is lost and read again.
//!
//! A record appends its letter to values that it reads. So a record that is applied twice, not at all, or out of
//! its order is seen in the value.

use std::collections::BTreeMap;

use bytes::Bytes;
use ilion_commitlog::{Capture, Position, SegmentId, WhenFull};
use ilion_engine::{CompactionRequest, EngineOptions, Error, MajorOutput, TabletPosition};
use ilion_env::{CrashRule, Env as _, Seeded};
use ilion_rows::{Cell, ClusteringFilter, Cursor as _, Data, Liveness, Unfiltered};
use ilion_schema::{SchemaChange, TableAlteration, TableId};

use crate::model::strategy;
use crate::stepped::stepped;
use crate::support::{Store, decorated, new_store, open, put, small_options};

pub(crate) const TABLES: [&str; 3] = ["t", "u", "v"];
pub(crate) const TABLETS: u32 = 3;

/// A record of a tablet: it appends a letter to one row of each of these tables.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    tables: Vec<usize>,
    clustering: i32,
    letter: char,
}

/// The log of a tablet: offsets grow, with gaps.
pub(crate) type Log = BTreeMap<u64, Record>;

pub(crate) fn key_of(tablet: u32) -> String {
    format!("tablet {tablet}")
}

pub(crate) fn random_record(random: &mut Seeded) -> Record {
    let mut tables: Vec<usize> = (0..TABLES.len()).filter(|_| random.one_in(2)).collect();
    if tables.is_empty() && random.one_in(2) {
        tables.push(0);
    }
    Record {
        tables,
        clustering: random.below(4) as i32,
        letter: char::from(b'a' + random.below(26) as u8),
    }
}

fn value(store: &Store, table: &str, tablet: u32, clustering: i32) -> String {
    let rows = store.rows_of(&store.table_named(table), &key_of(tablet));
    let found = rows.into_iter().find(|(own, _)| *own == clustering);
    found.map_or_else(String::new, |(_, value)| value)
}

/// Applies the next record of a tablet, if there is one.
pub(crate) fn apply_next(store: &Store, logs: &[Log], tablet: u32) -> bool {
    let log = &logs[tablet as usize];
    let Some((offset, record)) = log.range(store.engine.tablet_end(tablet)..).next() else {
        return false;
    };
    let mutations: Vec<_> = record
        .tables
        .iter()
        .map(|table| {
            let name = TABLES[*table];
            let mut value = value(store, name, tablet, record.clustering);
            value.push(record.letter);
            // The same on all replicas. If it is applied twice, the longer value wins.
            let timestamp = i64::try_from(*offset).unwrap();
            put(
                &store.table_named(name),
                &key_of(tablet),
                record.clustering,
                &value,
                timestamp,
            )
        })
        .collect();
    let position = TabletPosition {
        tablet,
        offset: *offset,
    };
    store.engine.apply_at(position, &mutations).unwrap();
    true
}

fn check(seed: u64, store: &Store, logs: &[Log]) {
    for tablet in 0..TABLETS {
        check_tablet(seed, store, logs, tablet);
    }
}

/// Checks that a store has applied all of a log up to its end, each record once and in order.
pub(crate) fn check_tablet(seed: u64, store: &Store, logs: &[Log], tablet: u32) {
    let end = store.engine.tablet_end(tablet);
    for (number, table) in TABLES.iter().enumerate() {
        for clustering in 0..4 {
            let wanted: String = logs[tablet as usize]
                .range(..end)
                .map(|(_, record)| record)
                .filter(|record| record.clustering == clustering && record.tables.contains(&number))
                .map(|record| record.letter)
                .collect();
            let found = value(store, table, tablet, clustering);
            assert_eq!(
                found, wanted,
                "seed {seed}: tablet {tablet}, {table}, {clustering}"
            );
        }
    }
}

/// A store without threads.
fn calm_store() -> Store {
    new_store(
        1,
        EngineOptions {
            is_stepped: true,
            ..small_options()
        },
    )
}

pub(crate) fn flush_one(random: &mut Seeded, store: &Store) {
    let name = TABLES[random.below(TABLES.len() as u64) as usize];
    let id: TableId = store.table_named(name).id;
    store.engine.flush(id).unwrap();
}

/// The table `t` gets change data capture.
fn capture_t() -> SchemaChange {
    SchemaChange::AlterTable {
        keyspace: "ks".to_owned(),
        table: "t".to_owned(),
        if_exists: false,
        alteration: TableAlteration::Options([("cdc", "true")].into_iter().collect()),
    }
}

fn capture(bytes_max: u64) -> Capture {
    Capture {
        dir: "/ilion/cdc".into(),
        bytes_max,
        excess_bytes: 0,
        when_full: WhenFull::Block,
        check_interval_millis: 250,
    }
}

/// Options that capture changes.
fn capturing(random: &mut Seeded) -> EngineOptions {
    let mut options = stepped(random);
    options.commit_log.capture = Some(capture(1 << 40));
    options
}

/// Checks that consumers find each record that changes the table `t` up to the end of each log, and that a record which comes for the first
/// time comes after those before it.
fn check_captured(seed: u64, store: &Store, logs: &[Log]) {
    store.engine.sync_log().unwrap();
    let changes = store.engine.changes(Position::START).unwrap();
    let mut found: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for change in changes {
        let (_, record, _) = change.unwrap();
        let offset = u64::from_be_bytes(*record.body.first_chunk().unwrap());
        let of_tablet = found.entry(record.tablet).or_default();
        if !of_tablet.contains(&offset) {
            of_tablet.push(offset);
        }
    }
    for (tablet, log) in (0..).zip(logs) {
        let end = store.engine.tablet_end(tablet);
        let changing = log.range(..end).filter(|(_, record)| record.tables.contains(&0));
        let wanted: Vec<u64> = changing.map(|(offset, _)| *offset).collect();
        let found = found.remove(&tablet).unwrap_or_default();
        assert_eq!(found, wanted, "seed {seed}: tablet {tablet}");
    }
}

fn life(seed: u64) -> u32 {
    let random = &mut Seeded::new(seed);
    let mut store = new_store(seed, capturing(random));
    store.add_table("u");
    store.add_table("v");
    store.alter(&strategy(random));
    store.alter(&capture_t());
    let mut logs = vec![Log::new(); TABLETS as usize];
    // What a replica has on disk beside its engine.
    let mut saved = [0; TABLETS as usize];
    let mut again = 0;
    for _ in 0..400 {
        let tablet = random.below(u64::from(TABLETS)) as u32;
        match random.below(40) {
            0 => flush_one(random, &store),
            1 => saved[tablet as usize] = store.engine.tablet_needed(tablet),
            2 => store
                .engine
                .flush_tablet_below(tablet, store.engine.tablet_end(tablet)),
            3 => check(seed, &store, &logs),
            4 => {
                let before: Vec<u64> = (0..TABLETS)
                    .map(|tablet| store.engine.tablet_end(tablet))
                    .collect();
                let after = store.env.crash(match random.one_in(2) {
                    true => CrashRule::LoseUnsynced,
                    false => CrashRule::Seeded(random.next_u64()),
                });
                drop(store);
                store = open(&after, capturing(random)).unwrap();
                for (tablet, end) in (0..).zip(saved) {
                    assert_eq!(
                        store.engine.tablet_end(tablet),
                        0,
                        "the replica says where it goes on"
                    );
                    store.engine.resume_tablet(tablet, end);
                    let log = &logs[tablet as usize];
                    while store.engine.tablet_end(tablet) < before[tablet as usize]
                        && apply_next(&store, &logs, tablet)
                    {
                        again += 1;
                    }
                    assert!(log.range(..end).next().is_none() || end > 0);
                }
                check(seed, &store, &logs);
            }
            // A memtable is frozen, and written later.
            5 => drop(store.engine.alter_schema(&strategy(random)).unwrap()),
            6..12 => {
                store.engine.step();
            }
            12..20 => {
                let log = &mut logs[tablet as usize];
                let above = log.last_key_value().map_or(0, |(offset, _)| offset + 1);
                log.insert(above + random.below(2), random_record(random));
            }
            _ => {
                apply_next(&store, &logs, tablet);
            }
        }
    }
    for tablet in 0..TABLETS {
        while apply_next(&store, &logs, tablet) {}
    }
    check(seed, &store, &logs);
    check_captured(seed, &store, &logs);
    again
}

#[test]
fn each_record_of_a_shared_log_is_applied_once_whatever_is_lost_and_read_again() {
    let again: u32 = (0..5).map(life).sum();
    assert!(again > 50, "records that were read again: {again}");
}

#[test]
fn a_drained_engine_needs_no_record_again() {
    let store = calm_store();
    let table = store.table();
    let position = TabletPosition {
        tablet: 5,
        offset: 70,
    };
    store
        .engine
        .apply_at(position, &[put(&table, "k", 1, "v", 1)])
        .unwrap();
    assert_eq!(
        (store.engine.tablet_end(5), store.engine.tablet_needed(5)),
        (71, 70)
    );
    // One without changes is passed over.
    store
        .engine
        .apply_at(
            TabletPosition {
                tablet: 5,
                offset: 80,
            },
            &[],
        )
        .unwrap();
    assert_eq!(
        (store.engine.tablet_end(5), store.engine.tablet_needed(5)),
        (81, 70)
    );
    store.flush();
    assert_eq!(store.engine.tablet_needed(5), 81);
    let error = store.engine.apply_at(
        TabletPosition {
            tablet: 1 << 30,
            offset: 0,
        },
        &[],
    );
    assert!(error.unwrap_err().to_string().contains("tablet 1073741824"));
}

/// The value of the only cell of a row, as it is stored.
fn stored_value(store: &Store) -> Bytes {
    let table = store.table();
    let cursor = store
        .engine
        .read_partition(&table, &decorated("k"), &ClusteringFilter::all());
    let mut cursor = cursor.unwrap();
    cursor.next_partition().unwrap().unwrap();
    match cursor.next_unfiltered().unwrap() {
        Some(Unfiltered::Row(row)) => match &row.columns[0].data {
            Data::Simple(cell) => cell.value.clone(),
            Data::Complex(_) => panic!("{row:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn compactions_keep_what_a_record_that_is_read_again_would_find() {
    let store = calm_store();
    let now_secs = u32::try_from(store.env.now_secs()).unwrap();
    let mut mutation = put(&store.table(), "k", 1, "v", 1);
    mutation.update.rows[0].liveness = Liveness::expiring(1, 10, now_secs + 10);
    mutation.update.rows[0].columns[0].data = Data::Simple(Cell::expiring(1, 10, now_secs + 10, "v".into()));
    let position = TabletPosition { tablet: 0, offset: 0 };
    store.engine.apply_at(position, &[mutation]).unwrap();
    store.flush();
    store.engine.hold_purge(now_secs);
    store.env.advance_micros(20_000_000);
    let compact = || {
        store
            .engine
            .compact_as(store.table().id, &CompactionRequest::Major(MajorOutput::AsUsual))
    };
    compact().unwrap();
    assert_eq!(stored_value(&store), "v");
    // Once it is saved that the log is further, the value goes.
    store.engine.hold_purge(now_secs + 20);
    compact().unwrap();
    assert_eq!(stored_value(&store), "");
}

#[test]
fn records_exceed_the_space_for_captured_changes_by_the_excess_and_then_wait() {
    let mut options = small_options();
    options.commit_log.segment_bytes = 64 << 10;
    options.commit_log.capture = Some(Capture {
        excess_bytes: 200 << 10,
        ..capture(200 << 10)
    });
    let store = new_store(1, options);
    store.alter(&capture_t());
    let table = store.table();
    let value = "v".repeat(1000);
    let mutation = || put(&table, "k", 1, &value, 1);
    let apply = |offset| {
        let position = TabletPosition { tablet: 0, offset };
        store.engine.apply_at(position, &[mutation()])
    };
    let is_full = |result: Result<(), Error>| match result {
        Ok(()) => false,
        Err(Error::CaptureFull(_)) => true,
        Err(other) => panic!("{other}"),
    };
    let mut refused_from = None;
    let stopped = (0..1000).find(|offset| {
        // The next call looks for space again.
        store.env.advance_micros(1_000_000);
        let is_refused = is_full(store.engine.admit_capture(table.id));
        if is_refused {
            refused_from.get_or_insert(*offset);
        }
        assert_eq!(is_refused, refused_from.is_some(), "{offset}");
        is_full(apply(*offset))
    });
    let (refused_from, stopped) = (refused_from.unwrap(), stopped.unwrap());
    let excess = stopped - refused_from;
    assert!(refused_from > 100 && excess > 100, "{refused_from}, {excess}");
    assert_eq!(store.engine.tablet_end(0), stopped);
    // All are read: a consumer removes them.
    store.engine.sync_log().unwrap();
    while apply(stopped).is_err() {
        // A segment can be removed once the thread of the log has linked it.
        store.engine.release_changes(SegmentId(u64::MAX)).unwrap();
        store.env.advance_micros(1_000_000);
        std::thread::yield_now();
    }
    assert_eq!(store.engine.tablet_end(0), stopped + 1);
}

#[test]
fn a_record_that_is_larger_than_segments_of_the_local_log_is_captured() {
    let mut options = small_options();
    options.commit_log.segment_bytes = 64 << 10;
    options.commit_log.capture = Some(capture(1 << 40));
    let store = new_store(1, options);
    store.alter(&capture_t());
    let large = put(&store.table(), "k", 1, &"v".repeat(15 << 20), 1);
    let position = TabletPosition { tablet: 0, offset: 0 };
    store.engine.apply_at(position, &[large]).unwrap();
    store.engine.sync_log().unwrap();
    let mut changes = store.engine.changes(Position::START).unwrap();
    let (_, record, _) = changes.next().unwrap().unwrap();
    assert!(record.body.len() > 15 << 20);
}
