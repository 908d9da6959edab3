//! `scrub`: readable rows are kept, lost ones are reported, and new files are valid.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_env::{Env, Seeded};
use ilion_sstable::{Component, Descriptor};

use super::super::{Command, Files, ScrubArguments};
use super::{Fixture, copied, fixtures, ran, rows, small_fixtures};

fn scrub(env: &Arc<dyn Env>, out: &Path, data: &Path) -> anyhow::Result<String> {
    let arguments = ScrubArguments {
        directory: out.to_path_buf(),
        files: Files {
            files: vec![data.to_path_buf()],
        },
    };
    ran(env, &Command::Scrub(arguments))
}

fn read(env: &Arc<dyn Env>, path: &Path) -> Vec<u8> {
    env.read_all(path, 1 << 30).unwrap()
}

fn replace(env: &Arc<dyn Env>, path: &Path, bytes: &[u8]) {
    env.create_or_truncate(path).unwrap().append(bytes).unwrap();
}

fn component(data: &Path, component: &Component) -> PathBuf {
    Descriptor::from_path(data).unwrap().0.path(component)
}

fn assert_whole(env: &Arc<dyn Env>, directory: &Path) {
    let files = vec![directory.to_path_buf()];
    ran(env, &Command::Verify(Files { files })).unwrap();
}

fn named(name: &str) -> Fixture {
    let mut all = small_fixtures().into_iter().chain(fixtures());
    all.find(|fixture| fixture.name == name).unwrap()
}

#[test]
fn whole_files_come_through_whole() {
    for fixture in small_fixtures() {
        let (env, data) = copied(&fixture, "");
        let out = PathBuf::from("/out");
        let report = scrub(&env, &out, &data).unwrap();
        assert!(!report.contains("  lost:"), "{report}");
        assert_eq!(rows(&env, &out), rows(&env, &data), "{}", fixture.name);
        assert_whole(&env, &out);
    }
}

#[test]
fn a_damaged_chunk_costs_what_lies_in_it() {
    for name in [
        "tombstones-nb 1",
        "simple_kv-da 1",
        "all_scalars-nb 1",
        "wide_range_tombstones-nb 1",
    ] {
        let fixture = named(name);
        let (env, data) = copied(&fixture, "");
        let before: BTreeSet<String> = rows(&env, &data).into_iter().collect();
        let mut bytes = read(&env, &data);
        let last = bytes.len() - 5;
        bytes[last] ^= 0x10;
        replace(&env, &data, &bytes);
        let out = PathBuf::from("/out");
        let Ok(report) = scrub(&env, &out, &data) else {
            // The whole file was one chunk.
            continue;
        };
        assert!(report.contains("  lost:"), "{report}");
        let after = rows(&env, &out);
        assert!(!after.is_empty() && after.len() <= before.len());
        let whole = after.iter().filter(|row| before.contains(*row)).count();
        assert!(whole + 1 >= after.len(), "{name}: {report}");
        assert_whole(&env, &out);
    }
}

#[test]
fn rows_after_a_damaged_chunk_are_found_by_the_row_index() {
    for name in ["wide_range_tombstones-nb 1", "wide_range_tombstones-da 1"] {
        let (env, data) = copied(&named(name), "");
        let before = rows(&env, &data);
        let mut bytes = read(&env, &data);
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x10;
        replace(&env, &data, &bytes);
        let out = PathBuf::from("/out");
        let report = scrub(&env, &out, &data).unwrap();
        assert!(
            report.contains("2 partitions saved, 1 of them in part; 0 lost"),
            "{report}"
        );
        let after = rows(&env, &out);
        let end = |row: &str| row[row.len() - 200..].to_owned();
        assert_eq!(end(&after[0]), end(&before[0]), "{report}");
        assert_eq!(after[0][..200], before[0][..200], "{report}");
        assert_eq!(after[1], before[1]);
        assert_whole(&env, &out);
    }
}

#[test]
fn a_file_without_index_is_read_from_the_data_alone() {
    for fixture in small_fixtures() {
        for missing in [
            Component::Index,
            Component::Summary,
            Component::Filter,
            Component::Toc,
            Component::Partitions,
        ] {
            let (env, data) = copied(&fixture, missing.name());
            let out = PathBuf::from("/out");
            let report = scrub(&env, &out, &data).unwrap();
            assert!(report.contains(" saved, 0 of them in part; 0 lost"), "{report}");
            assert_eq!(
                rows(&env, &out),
                rows(&copied(&fixture, "").0, &data),
                "{}",
                fixture.name
            );
        }
    }
}

#[test]
fn statistics_may_be_damaged_but_for_the_header() {
    let fixture = named("tombstones-nb 1");
    let (env, data) = copied(&fixture, "");
    let before = rows(&env, &data);
    let path = component(&data, &Component::Statistics);
    let mut bytes = read(&env, &path);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    replace(&env, &path, &bytes);
    let out = PathBuf::from("/out");
    let report = scrub(&env, &out, &data).unwrap();
    assert!(report.contains("can still be read"), "{report}");
    assert_eq!(rows(&env, &out), before);
    assert_whole(&env, &out);
}

#[test]
fn whatever_the_damage_new_files_are_whole() {
    let mut dice = Seeded::new(7);
    for fixture in small_fixtures() {
        for _ in 0..12 {
            let (env, data) = copied(&fixture, "Digest.crc32");
            let protected = [
                Component::Data,
                Component::Index,
                Component::Partitions,
                Component::Rows,
            ];
            for part in &protected {
                let path = component(&data, part);
                if !env.exists(&path) || dice.below(2) == 0 {
                    continue;
                }
                let mut bytes = read(&env, &path);
                if bytes.is_empty() {
                    continue;
                }
                let place = usize::try_from(dice.below(bytes.len() as u64)).unwrap();
                if dice.below(4) == 0 {
                    bytes.truncate(place);
                } else {
                    bytes[place] ^= 1 << dice.below(8);
                }
                replace(&env, &path, &bytes);
            }
            let out = PathBuf::from("/out");
            if scrub(&env, &out, &data).is_ok() {
                assert_whole(&env, &out);
            }
        }
    }
}
