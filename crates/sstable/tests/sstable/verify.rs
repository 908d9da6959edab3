//! Tests of `verify`: it reports no damage of whole files, and every flipped byte that can be found.

use std::sync::Arc;

use ilion_env::RealEnv;
use ilion_rows::{ClusteringFilter, KeyRange, Partition};
use ilion_sstable::verify::{Verification, verify};
use ilion_sstable::{Component, OpenOptions, SSTable, Scan};

use crate::support::{Case, Files, cases, disk_with, small_cases};

fn verified(files: &Files, case: &Case) -> Verification {
    let descriptor = &case.sstables[0];
    let env = disk_with(files, descriptor);
    verify(env.as_ref(), descriptor, &mut |_| {}).unwrap()
}

/// All partitions, or `None` after an error.
fn rows(files: &Files, case: &Case) -> Option<Vec<Partition>> {
    let env = disk_with(files, &case.sstables[0]);
    let options = OpenOptions {
        partitioner: case.partitioner,
        chunk_cache: None,
        ..OpenOptions::default()
    };
    let sstable = Arc::new(SSTable::open(&env, &case.sstables[0], &options).ok()?);
    let table = sstable.header().to_table("fx", "fixture").ok()?;
    let filter = Arc::new(ClusteringFilter::all());
    let mut cursor = sstable.cursor(&table, KeyRange::all(), filter, Scan::Sequential);
    let all = std::iter::from_fn(|| Partition::read_next(&mut cursor).transpose());
    all.collect::<Result<Vec<_>, _>>().ok()
}

#[test]
fn what_cassandra_wrote_is_whole() {
    let env = RealEnv::new();
    for case in cases() {
        for descriptor in &case.sstables {
            let verification = verify(env.as_ref(), descriptor, &mut |_| {}).unwrap();
            let findings = verification.findings.kept();
            assert!(findings.is_empty(), "{}: {findings:?}", case.name);
            assert!(verification.partitions > 0, "{}", case.name);
        }
    }
}

/// The smallest case of each format.
fn smallest() -> Vec<Case> {
    let size = |case: &Case| {
        case.components(0)
            .iter()
            .map(|(_, bytes)| bytes.len())
            .sum::<usize>()
    };
    let mut smallest: Vec<Case> = Vec::new();
    for case in small_cases() {
        let version = case.sstables[0].version;
        match smallest
            .iter_mut()
            .find(|known| known.sstables[0].version == version)
        {
            Some(known) if size(known) > size(&case) => *known = case,
            Some(_) => {}
            None => smallest.push(case),
        }
    }
    smallest
}

#[test]
fn every_flipped_byte_is_found_or_changes_nothing() {
    for case in smallest() {
        let files = case.components(0);
        let whole = rows(&files, &case).unwrap();
        for (at, (component, bytes)) in files.iter().enumerate() {
            let mut missed = 0;
            // Statistics.db is by far the longest, and has checksums throughout.
            let step = if *component == Component::Statistics { 5 } else { 1 };
            for place in (0..bytes.len()).step_by(step) {
                let mut damaged = files.clone();
                damaged[at].1[place] ^= 1 << (place % 8);
                let is_found = !verified(&damaged, &case).findings.is_empty();
                missed += usize::from(!is_found);
                // Whether found or not: reads return the same rows or an error, never other rows.
                match rows(&damaged, &case) {
                    Some(found) => assert_eq!(found, whole, "{}: {component}: byte {place}", case.name),
                    None => assert!(is_found, "{}: {component}: byte {place}", case.name),
                }
            }
            // Options that the compressor ignores, and a limit that no chunk reaches; the sampling level and the interval of a
            // summary that is too short to depend on them.
            let most = match component {
                Component::CompressionInfo => 8,
                Component::Summary => 8,
                _ => 0,
            };
            assert!(
                missed <= most,
                "{}: {component}: {missed} flips are missed",
                case.name
            );
        }
    }
}

#[test]
fn every_flipped_byte_of_a_row_index_is_found() {
    for case in small_cases() {
        if !case.name.starts_with("wide_range_tombstones") {
            continue;
        }
        let files = case.components(0);
        for (at, (component, bytes)) in files.iter().enumerate() {
            if !matches!(
                component,
                Component::Index | Component::Partitions | Component::Rows
            ) {
                continue;
            }
            let mut missed = Vec::new();
            for place in 0..bytes.len() {
                let mut damaged = files.clone();
                damaged[at].1[place] ^= 1 << (place % 8);
                if verified(&damaged, &case).findings.is_empty() {
                    missed.push(place);
                }
            }
            // The seconds of a live deletion, and a bit of a clustering value that the table does not have.
            let most = if *component == Component::Index { 5 } else { 0 };
            assert!(missed.len() <= most, "{}: {component}: {missed:?}", case.name);
        }
    }
}

#[test]
fn every_truncation_is_found() {
    for case in smallest() {
        let files = case.components(0);
        let whole = rows(&files, &case).unwrap();
        for (at, (component, bytes)) in files.iter().enumerate() {
            let step = if *component == Component::Statistics { 5 } else { 1 };
            for length in (0..bytes.len()).step_by(step) {
                let mut damaged = files.clone();
                damaged[at].1.truncate(length);
                if let Some(found) = rows(&damaged, &case) {
                    assert_eq!(found, whole, "{}: {component} of {length} bytes", case.name);
                }
                let verification = verified(&damaged, &case);
                assert!(
                    !verification.findings.is_empty(),
                    "{}: {component} of {length} bytes",
                    case.name
                );
                let named = verification.findings.kept()[0].to_string();
                assert!(named.contains("at byte"), "{named}");
            }
        }
    }
}
