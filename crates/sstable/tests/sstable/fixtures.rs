//! Tests with files of Cassandra, compared with the output of Cassandra's own tools.
//!
//! Small cases are in `testdata/`. The whole collection is tested if it exists: `ILION_FIXTURES` is its folder, or a parent
//! folder has `shared/fixtures/cassandra-5.0`. Without it, the tests print that they are skipped.

use std::sync::Arc;

use ilion_rows::{ClusteringFilter, KeyRange};
use ilion_sstable::{Scan, dump};

use crate::support::{Case, cases};

fn dump_all(case: &Case, index: usize, scan: Scan) -> String {
    let (sstable, table) = case.open(index);
    let filter = Arc::new(ClusteringFilter::all());
    let mut cursor = sstable.cursor(&table, KeyRange::all(), filter, scan);
    let mut out = String::new();
    while dump::dump_partition(&mut cursor, &table, &mut out).unwrap() {}
    out
}

#[test]
fn every_file_reads_as_sstabledump_prints_it() {
    for case in cases() {
        for index in 0..case.sstables.len() {
            let expected = case.expected(index);
            for scan in [Scan::Point, Scan::Sequential] {
                let found = dump_all(&case, index, scan);
                crate::support::assert_same_lines(&case, &expected, &found);
            }
        }
    }
}
