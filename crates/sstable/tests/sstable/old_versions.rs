//! Tests with files as Cassandra 3.0 to 4.0 wrote them: the same rows with the older names, where components that differ are
//! rewritten in the form of those versions.

use std::sync::Arc;

use ilion_env::{Env, MemEnv};
use ilion_rows::{ClusteringFilter, KeyRange, Partition};
use ilion_sstable::compression_info::{CompressionInfo, NEVER_RAW};
use ilion_sstable::verify::verify;
use ilion_sstable::{
    BloomFilter, Component, Descriptor, OpenOptions, SSTable, Scan, Statistics, Version, list_directory,
};

use crate::support::{Case, scan_all, small_cases};

/// The component in the form of `version`.
fn rewritten(component: &Component, bytes: Vec<u8>, from: &Descriptor, version: Version) -> Vec<u8> {
    let path = from.path(component);
    match component {
        Component::Statistics => Statistics::decode(&bytes, from.version, &path)
            .unwrap()
            .encode(version),
        Component::Filter => BloomFilter::decode(&bytes, from.version).unwrap().encode(version),
        Component::CompressionInfo => {
            let info = CompressionInfo::decode(&bytes, from.version, &path).unwrap();
            assert_eq!(
                info.compressed_length_max, NEVER_RAW,
                "older versions have no raw chunks"
            );
            info.encode(version)
        }
        _ => bytes,
    }
}

fn written_as(case: &Case, version: Version) -> (MemEnv, Descriptor) {
    let from = &case.sstables[0];
    let to = Descriptor::new(from.directory.clone(), version, from.id, from.format);
    let mem = MemEnv::new(1);
    mem.create_dir_all(&to.directory).unwrap();
    for (component, bytes) in case.components(0) {
        let mut file = mem.create(&to.path(&component)).unwrap();
        file.append(&rewritten(&component, bytes, from, version)).unwrap();
    }
    (mem, to)
}

fn options_of(case: &Case) -> OpenOptions {
    OpenOptions {
        partitioner: case.partitioner,
        chunk_cache: None,
        ..OpenOptions::default()
    }
}

fn open_as(case: &Case, version: Version) -> Arc<SSTable> {
    let (mem, to) = written_as(case, version);
    let env = mem.shared();
    let found = list_directory(env.as_ref(), &to.directory).unwrap();
    assert_eq!(found[0].descriptor, to);
    let verification = verify(env.as_ref(), &to, &mut |_| {}).unwrap();
    // The components that TOC.txt names exist with the old names.
    let findings = verification.findings.kept();
    assert!(findings.is_empty(), "{} as {version}: {findings:?}", case.name);
    Arc::new(SSTable::open(&env, &to, &options_of(case)).unwrap())
}

/// All partitions; `None` after an error.
fn rows(env: &Arc<dyn Env>, descriptor: &Descriptor, case: &Case) -> Option<Vec<Partition>> {
    let sstable = SSTable::open(env, descriptor, &options_of(case)).ok()?;
    let table = sstable.header().to_table("fx", "fixture").ok()?;
    let filter = Arc::new(ClusteringFilter::all());
    let mut cursor = Arc::new(sstable).cursor(&table, KeyRange::all(), filter, Scan::Sequential);
    let all = std::iter::from_fn(|| Partition::read_next(&mut cursor).transpose());
    all.collect::<Result<Vec<_>, _>>().ok()
}

/// In these versions, Statistics.db has no checksums, and has the minima that rows are relative to. So damage to it may only
/// cause errors or other times, but never stop the reader.
#[test]
fn every_flipped_or_missing_byte_of_an_old_version_is_an_error_or_changes_nothing() {
    let cases = small_cases().into_iter();
    let of_nb = cases.filter(|case| case.sstables[0].version == Version::NB);
    let size = |case: &Case| {
        case.components(0)
            .iter()
            .map(|(_, bytes)| bytes.len())
            .sum::<usize>()
    };
    let case = of_nb.min_by_key(size).unwrap();
    let (mem, descriptor) = written_as(&case, Version::parse("me").unwrap());
    let env = mem.shared();
    let whole = rows(&env, &descriptor, &case);
    assert!(whole.is_some());
    for (component, _) in case.components(0) {
        let path = descriptor.path(&component);
        let bytes = env.read_all(&path, 1 << 20).unwrap();
        let is_checked = component != Component::Statistics;
        let check = |what: String| {
            let found = rows(&env, &descriptor, &case);
            assert!(
                !is_checked || found.is_none() || found == whole,
                "{component}: {what}"
            );
        };
        for at in 0..bytes.len() {
            let mask = 1 << (at % 8);
            mem.corrupt_byte(&path, at as u64, mask).unwrap();
            check(format!("byte {at}"));
            mem.corrupt_byte(&path, at as u64, mask).unwrap();
        }
        for length in 0..bytes.len() {
            let mut file = env.create_or_truncate(&path).unwrap();
            file.append(&bytes[..length]).unwrap();
            check(format!("{length} bytes"));
        }
        let mut file = env.create_or_truncate(&path).unwrap();
        file.append(&bytes).unwrap();
    }
}

#[test]
fn versions_from_3_0_on_give_the_same_rows() {
    for case in small_cases() {
        if case.sstables[0].version != Version::NB {
            continue;
        }
        let (sstable, table) = case.open(0);
        let expected = scan_all(&sstable, &table);
        for text in ["ma", "mb", "mc", "md", "me", "na"] {
            let older = open_as(&case, Version::parse(text).unwrap());
            assert_eq!(scan_all(&older, &table), expected, "{} as {text}", case.name);
            let (stats, known) = (older.stats(), sstable.stats());
            assert_eq!(stats.total_rows, known.total_rows);
            assert_eq!(stats.max_timestamp_micros, known.max_timestamp_micros);
            assert_eq!(
                stats.originating_host.is_some(),
                text == "me" && known.originating_host.is_some()
            );
            let hash = ilion_sstable::KeyHash::of(&expected[0].head.key.key);
            assert!(older.may_contain(&hash));
        }
    }
}
