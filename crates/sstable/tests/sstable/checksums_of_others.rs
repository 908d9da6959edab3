//! Tests with SSTables of Cassandra that got a Checksums.db: damage to components without checksums of their own is an error,
//! or changes no result.

use std::sync::Arc;

use ilion_env::{Env, MemEnv, Seeded};
use ilion_rows::{Bound, BoundKind, ClusteringFilter, KeyRange, Partition, Slice, Unfiltered};
use ilion_sstable::verify::verify;
use ilion_sstable::{Component, Descriptor, Finding, OpenOptions, SSTable, Scan};

use crate::support::{Case, small_cases, try_read_all};

/// Number of bit flips per component.
const FLIPS: u64 = 12;
const COVERED: [Component; 7] = [
    Component::Index,
    Component::Partitions,
    Component::Rows,
    Component::CompressionInfo,
    Component::Crc,
    Component::Filter,
    Component::Summary,
];

struct Copied {
    mem: MemEnv,
    env: Arc<dyn Env>,
    descriptor: Descriptor,
    case: Case,
}

type Answers = Vec<Option<Vec<Partition>>>;

impl Copied {
    fn of(case: Case) -> Self {
        let mem = MemEnv::new(1);
        let env = mem.shared();
        let descriptor = case.sstables[0].clone();
        env.create_dir_all(&descriptor.directory).unwrap();
        for (component, bytes) in case.components(0) {
            let mut file = env.create(&descriptor.path(&component)).unwrap();
            file.append(&bytes).unwrap();
        }
        Self {
            mem,
            env,
            descriptor,
            case,
        }
    }

    fn open(&self, finding: Finding) -> Result<SSTable, ilion_sstable::Error> {
        let options = OpenOptions {
            partitioner: self.case.partitioner,
            finding,
            ..OpenOptions::default()
        };
        SSTable::open(&self.env, &self.descriptor, &options)
    }

    /// A scan, and the second half of some partitions, forwards and backwards.
    fn answers(&self, finding: Finding, whole: &[Partition]) -> Answers {
        let Ok(sstable) = self.open(finding) else {
            return Vec::new();
        };
        let sstable = Arc::new(sstable);
        let table = sstable.header().to_table("fx", "fixture").unwrap();
        let all = Arc::new(ClusteringFilter::all());
        let mut scan = sstable.cursor(&table, KeyRange::all(), all, Scan::Sequential);
        let mut answers = vec![try_read_all(&mut scan).ok()];
        for reversed in [false, true] {
            for partition in whole.iter().step_by(1 + whole.len() / 4) {
                let filter = Arc::new(ClusteringFilter {
                    slices: vec![middle_of(partition)],
                    reversed,
                    ..ClusteringFilter::all()
                });
                let read = sstable.partition(&table, &partition.head.key, &filter);
                answers.push(match read {
                    Ok(Some(mut cursor)) => try_read_all(&mut cursor).ok(),
                    Ok(None) => Some(Vec::new()),
                    Err(_) => None,
                });
            }
        }
        answers
    }
}

/// From the middle of a partition on.
fn middle_of(partition: &Partition) -> Slice {
    let mut slice = Slice::all();
    if let Some(Unfiltered::Row(row)) = partition.unfiltereds.get(partition.unfiltereds.len() / 2) {
        slice.start = Bound::new(BoundKind::InclStart, row.clustering.values().clone());
    }
    slice
}

#[test]
fn files_of_a_cassandra_get_checksums_and_are_protected_by_them() {
    let mut dice = Seeded::new(5);
    for case in small_cases() {
        let copied = Copied::of(case);
        let sstable = copied.open(Finding::Summary).unwrap();
        assert!(sstable.wants_checksums());
        assert!(sstable.make_checksums(&mut || true).unwrap());
        assert!(!copied.open(Finding::Summary).unwrap().wants_checksums());
        let whole = copied.answers(Finding::Summary, &[])[0].clone().unwrap();
        let expected = copied.answers(Finding::Summary, &whole);
        for component in COVERED {
            let path = copied.descriptor.path(&component);
            let size = copied.env.file_size(&path).unwrap_or(0);
            for _ in 0..FLIPS.min(size) {
                let (at, bit) = (dice.below(size), 1 << dice.below(8));
                copied.mem.corrupt_byte(&path, at, bit).unwrap();
                let found = copied.answers(Finding::Summary, &whole);
                for (found, expected) in found.iter().zip(&expected) {
                    let what = format!("{}: {component}: byte {at}", copied.case.name);
                    assert!(found.is_none() || found == expected, "{what}");
                }
                let verified = verify(&*copied.env, &copied.descriptor, &mut |_| ()).unwrap();
                assert!(!verified.findings.kept().is_empty(), "{component}: byte {at}");
                copied.mem.corrupt_byte(&path, at, bit).unwrap();
            }
        }
    }
}
