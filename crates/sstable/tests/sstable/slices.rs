//! Tests of filters on real partitions: reads of the file, with its index, return the same as the whole partition in memory.

use std::sync::Arc;

use ilion_env::Seeded;
use ilion_rows::{
    Bound, BoundKind, ClusteringComparator, ClusteringFilter, Cursor, DecoratedKey, FilterCursor, KeyBound,
    KeyRange, Partition, Slice, Unfiltered, Values, VecCursor,
};
use ilion_schema::TableSchema;
use ilion_sstable::{SSTable, Scan};

use crate::support::{cases, read_all};

const FILTERS_A_PARTITION: usize = 12;
const PARTITIONS_A_FILE: usize = 20;

struct Dice(Seeded);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.0.below(end as u64)).unwrap()
    }

    fn pick<'c, T>(&mut self, choices: &'c [T]) -> &'c T {
        let index = self.below(choices.len());
        &choices[index]
    }

    /// A start bound beside an unfiltered of the partition.
    fn bound(&mut self, partition: &Partition) -> Bound {
        let kind = *self.pick(&[BoundKind::InclStart, BoundKind::ExclStart]);
        if partition.unfiltereds.is_empty() || self.0.one_in(8) {
            return Bound::new(kind, Values::new());
        }
        let values = match self.pick(&partition.unfiltereds) {
            Unfiltered::Row(row) => row.clustering.values(),
            Unfiltered::Marker(marker) => &marker.bound.values,
        };
        let len = self.below(values.len() + 1);
        let len = if self.0.one_in(2) { values.len() } else { len };
        Bound::new(kind, values[..len].iter().cloned().collect())
    }

    fn filter(&mut self, partition: &Partition, comparator: &ClusteringComparator) -> ClusteringFilter {
        let count = 2 * (1 + self.below(3));
        let mut bounds: Vec<Bound> = (0..count).map(|_| self.bound(partition)).collect();
        bounds.sort_by(|a, b| comparator.compare_bounds(a, b));
        let slices = bounds.chunks(2).map(|pair| Slice {
            start: pair[0].clone(),
            end: pair[1].invert(),
        });
        ClusteringFilter {
            slices: slices.filter(|slice| !slice.is_empty(comparator)).collect(),
            reversed: self.0.one_in(2),
            ..ClusteringFilter::all()
        }
    }
}

/// What the filter selects of partitions in memory.
fn filtered(
    partitions: Vec<Partition>,
    filter: &Arc<ClusteringFilter>,
    comparator: &ClusteringComparator,
) -> Vec<Partition> {
    let source = VecCursor::new(partitions);
    read_all(&mut FilterCursor::new(source, filter.clone(), comparator.clone()))
}

fn check_partition(
    sstable: &Arc<SSTable>,
    table: &Arc<TableSchema>,
    whole: &Partition,
    dice: &mut Dice,
) -> Result<(), String> {
    let comparator = ClusteringComparator::of(table);
    let key = &whole.head.key;
    for _ in 0..FILTERS_A_PARTITION {
        let filter = Arc::new(dice.filter(whole, &comparator));
        let expected = filtered(vec![whole.clone()], &filter, &comparator);
        let mut cursor = sstable.partition(table, key, &filter).unwrap().unwrap();
        let from_partition = read_all(&mut cursor);
        let scan = *dice.pick(&[Scan::Point, Scan::Sequential]);
        let range = KeyRange::exactly(key);
        let from_range = read_all(&mut sstable.cursor(table, range, filter.clone(), scan));
        for (way, found) in [("partition", from_partition), ("range", from_range)] {
            if found != expected {
                return Err(format!(
                    "by {way}: {filter:?}\nexpected {expected:?}\nfound    {found:?}"
                ));
            }
        }
    }
    Ok(())
}

#[test]
fn slices_of_a_file_are_those_of_its_partitions_in_both_directions() {
    let mut dice = Dice(Seeded::new(1));
    for case in cases() {
        for index in 0..case.sstables.len() {
            let (sstable, table) = case.open(index);
            let all = crate::support::scan_all(&sstable, &table);
            for whole in all.iter().take(PARTITIONS_A_FILE) {
                if let Err(difference) = check_partition(&sstable, &table, whole, &mut dice) {
                    panic!("{}: {difference}", case.name);
                }
            }
        }
    }
}

#[test]
fn a_filter_without_slices_wants_heads_and_static_rows_only() {
    for case in cases() {
        let (sstable, table) = case.open(0);
        let all = crate::support::scan_all(&sstable, &table);
        let filter = Arc::new(ClusteringFilter {
            slices: Vec::new(),
            ..ClusteringFilter::all()
        });
        let heads = read_all(&mut sstable.cursor(&table, KeyRange::all(), filter, Scan::Sequential));
        assert!(heads.iter().all(|partition| partition.unfiltereds.is_empty()));
        let expected = all.iter().map(|partition| &partition.head);
        assert!(
            heads.iter().map(|partition| &partition.head).eq(expected),
            "{}",
            case.name
        );
    }
}

#[test]
fn ranges_of_keys_give_the_partitions_inside() {
    let mut dice = Dice(Seeded::new(2));
    for case in cases() {
        let (sstable, table) = case.open(0);
        let all = crate::support::scan_all(&sstable, &table);
        for _ in 0..20 {
            let range = KeyRange {
                start: key_bound(&all, &mut dice),
                end: key_bound(&all, &mut dice),
            };
            let filter = Arc::new(ClusteringFilter::all());
            let scan = *dice.pick(&[Scan::Point, Scan::Sequential]);
            let mut cursor = sstable.cursor(&table, range.clone(), filter, scan);
            let bound = cursor.lower_bound();
            let found = keys_without_rows(&mut cursor);
            let inside = all.iter().map(|partition| &partition.head.key);
            let expected: Vec<&DecoratedKey> = inside.filter(|key| range.contains(key)).collect();
            assert!(
                found.iter().eq(expected.iter().copied()),
                "{}: {range:?}",
                case.name
            );
            if let (Some(bound), Some(first)) = (bound, found.first()) {
                assert!(bound <= *first, "{}: {range:?}: {bound:?}", case.name);
            }
        }
    }
}

fn keys_without_rows(cursor: &mut dyn Cursor) -> Vec<DecoratedKey> {
    let heads = std::iter::from_fn(|| cursor.next_partition().unwrap());
    heads.map(|head| head.key).collect()
}

fn key_bound(all: &[Partition], dice: &mut Dice) -> KeyBound {
    let key = dice.pick(all).head.key.clone();
    match dice.below(7) {
        0 => KeyBound::Start,
        1 => KeyBound::End,
        2 => KeyBound::BeforeToken(key.token),
        3 => KeyBound::AfterToken(key.token),
        4 => KeyBound::After(key),
        _ => KeyBound::Before(key),
    }
}

#[test]
fn every_key_is_found_and_no_other() {
    for case in cases() {
        for index in 0..case.sstables.len() {
            let (sstable, table) = case.open(index);
            let filter = Arc::new(ClusteringFilter::all());
            let all = crate::support::scan_all(&sstable, &table);
            assert_eq!(sstable.estimated_keys(), all.len() as u64);
            assert_eq!(
                Some(sstable.first_key()),
                all.first().map(|first| &first.head.key)
            );
            assert_eq!(Some(sstable.last_key()), all.last().map(|last| &last.head.key));
            for whole in all.iter().step_by(1 + all.len() / 300) {
                let mut cursor = sstable
                    .partition(&table, &whole.head.key, &filter)
                    .unwrap()
                    .unwrap();
                assert_eq!(
                    read_all(&mut cursor),
                    std::slice::from_ref(whole),
                    "{}",
                    case.name
                );
                let mut other = whole.head.key.key.to_vec();
                other.push(1);
                let other = DecoratedKey::new(case.partitioner, other.into());
                assert!(sstable.partition(&table, &other, &filter).unwrap().is_none());
                assert_eq!(sstable.position_of(&other).unwrap(), None);
                assert!(sstable.position_of(&whole.head.key).unwrap().is_some());
            }
        }
    }
}
