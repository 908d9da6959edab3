//! `metadata` beside `sstablemetadata`.

use super::super::metadata::print;
use super::super::{Files, MetadataArguments, TimestampUnit};
use super::{fixtures, real_env, text};

/// Cassandra prints columns in the order of a hash map, and estimated what is droppable some time after the rest.
fn comparable(line: &str) -> String {
    match line.split_once(": ") {
        Some((name @ ("StaticColumns" | "RegularColumns"), columns)) => {
            let mut columns: Vec<&str> = columns.split(", ").collect();
            columns.sort_unstable();
            format!("{name}: {}", columns.join(", "))
        }
        Some((name @ "Estimated droppable tombstones", ratio)) => {
            format!("{name}: {:.5}", ratio.parse::<f64>().unwrap())
        }
        // Cassandra corrects the bias of estimates above some thousands.
        Some((name @ "Estimated cardinality", count)) => {
            let count: f64 = count.parse().unwrap();
            format!(
                "{name}: {:.0}",
                if count > 6000.0 {
                    (count / 500.0).round()
                } else {
                    count
                }
            )
        }
        Some(("SSTable", _)) => "SSTable".to_owned(),
        _ => line.trim_end().to_owned(),
    }
}

#[test]
fn metadata_are_those_of_sstablemetadata() {
    for fixture in fixtures() {
        let arguments = MetadataArguments {
            files: Files {
                files: vec![fixture.data.clone()],
            },
            gc_grace_seconds: 0,
            scan: false,
            colors: false,
            unicode: false,
            timestamp_unit: TimestampUnit::Microseconds,
        };
        let mut out = Vec::new();
        print(&real_env(), &arguments, fixture.written_secs, &mut out).unwrap();
        let found = String::from_utf8(out).unwrap();
        let expected = text(&fixture.directory.join(&fixture.metadata));
        for (expected, found) in expected.lines().zip(found.lines()) {
            // Cassandra prints seconds after 2038 as if they were negative.
            if expected.starts_with("EncodingStats minLocalDeletionTime") && expected.contains("(-") {
                continue;
            }
            assert_eq!(comparable(found), comparable(expected), "{}", fixture.name);
        }
        assert_eq!(
            expected.lines().count(),
            found.lines().count(),
            "{}",
            fixture.name
        );
    }
}
