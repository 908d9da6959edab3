//! `metadata` beside `sstablemetadata`.

use super::super::metadata::print;
use super::super::{Files, MetadataArguments, TimestampUnit};
use super::{fixtures, real_env, text};

/// Cassandra prints columns in the order of a hash map, and the recorded estimate of droppable tombstones is from a later time.
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
        // Cassandra corrects the bias of estimates above a few thousand.
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

/// Compares with `sstablemetadata -s`, apart from the order of partitions of equal size.
const SCANNED: &str = "Size: 1915
Partitions: 26
Rows: 79
Tombstones: 0
Cells: 58
Widest Partitions: 
  [p1] 5
";

#[test]
fn a_scan_counts_what_sstablemetadata_counts() {
    let fixtures = super::small_fixtures();
    let fixture = fixtures
        .iter()
        .find(|fixture| fixture.name == "static_columns-nb 1")
        .unwrap();
    let arguments = MetadataArguments {
        files: Files {
            files: vec![fixture.data.clone()],
        },
        gc_grace_seconds: 0,
        scan: true,
        colors: true,
        unicode: false,
        timestamp_unit: TimestampUnit::Microseconds,
    };
    let mut out = Vec::new();
    print(&real_env(), &arguments, fixture.written_secs, &mut out).unwrap();
    let colored = String::from_utf8(out).unwrap();
    assert!(
        colored.contains("\x1b[34mTTL max\x1b[36m: \x1b[0m0\n"),
        "{colored}"
    );
    let codes = ["\x1b[34m", "\x1b[36m", "\x1b[37m", "\x1b[0m"];
    let plain = codes.iter().fold(colored, |text, code| text.replace(code, ""));
    let after_name = plain.split_once('\n').unwrap().1;
    assert!(after_name.starts_with(SCANNED), "{after_name}");
    assert!(
        after_name.contains("\nLargest Partitions: \n  [p14] 298 (298 B)\n"),
        "{after_name}"
    );
}
