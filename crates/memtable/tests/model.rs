//! Random mutations against a model that keeps them all and works out every read from scratch.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use ilion_memtable::Memtable;
use ilion_rows::notation::{print_mutation, print_partition};
use ilion_rows::random::{Dice, random_bound, random_mutation, random_table};
use ilion_rows::{
    Bound, BoundKind, Cell, Clustering, ClusteringComparator, ClusteringFilter, ColumnData, ComplexColumn,
    Cursor, Data, DecoratedKey, DeletionTime, Direction, FilterCursor, KeyRange, Marker, MergeCursor,
    Mutation, Partition, PartitionHead, RangeTombstone, Row, Slice, Unfiltered, VecCursor, paths,
};
use ilion_schema::{ColumnId, TableSchema};
use ilion_types::CqlType;
use proptest::prelude::*;

/// A partition as the mutations of it say, worked out by the definition: of each part the winner, unless some deletion
/// that covers it is not older.
struct Model<'m> {
    table: &'m TableSchema,
    comparator: ClusteringComparator,
    mutations: Vec<&'m Mutation>,
}

impl Model<'_> {
    fn deletion(&self) -> DeletionTime {
        let deletions = self
            .mutations
            .iter()
            .filter_map(|mutation| mutation.update.deletion);
        deletions.fold(DeletionTime::LIVE, DeletionTime::max)
    }

    fn ranges(&self) -> impl Iterator<Item = &RangeTombstone> {
        self.mutations.iter().flat_map(|mutation| &mutation.update.ranges)
    }

    /// What deletes a row from outside of it.
    fn covering(&self, clustering: &Clustering) -> DeletionTime {
        let is_covering = |range: &&RangeTombstone| {
            let start = self.comparator.compare_bound_to_row(&range.start, clustering);
            let end = self.comparator.compare_bound_to_row(&range.end, clustering);
            start.is_lt() && end.is_gt()
        };
        let ranges = self.ranges().filter(is_covering).map(|range| range.deletion);
        ranges.fold(self.deletion(), DeletionTime::max)
    }

    fn row(&self, versions: &[&Row], covering: DeletionTime) -> Option<Row> {
        let mut row = Row::empty(versions[0].clustering.clone());
        let own = versions.iter().map(|version| version.deletion);
        let own = own.fold(DeletionTime::LIVE, DeletionTime::max);
        if own.supersedes(&covering) {
            row.deletion = own;
        }
        let deletion = own.max(covering);
        for version in versions {
            if !deletion.deletes(version.liveness.timestamp_micros) {
                row.liveness = row.liveness.max(version.liveness);
            }
        }
        let mut columns: BTreeMap<ColumnId, Vec<&Data>> = BTreeMap::new();
        for entry in versions.iter().flat_map(|version| &version.columns) {
            columns.entry(entry.column).or_default().push(&entry.data);
        }
        for (column, versions) in columns {
            let ty = &self.table.column(column).unwrap().ty;
            let data = column_of(&versions, ty, deletion);
            row.columns.extend(data.map(|data| ColumnData { column, data }));
        }
        (!row.is_empty()).then_some(row)
    }

    fn rows(&self) -> Vec<Row> {
        let mut versions: Vec<&Row> = self
            .mutations
            .iter()
            .flat_map(|mutation| &mutation.update.rows)
            .collect();
        versions.sort_by(|a, b| self.comparator.compare(&a.clustering, &b.clustering));
        versions
            .chunk_by(|a, b| self.comparator.compare(&a.clustering, &b.clustering).is_eq())
            .filter_map(|versions| self.row(versions, self.covering(&versions[0].clustering)))
            .collect()
    }

    /// Between any two neighbouring ends the newest deletion that spans both.
    fn markers(&self) -> Vec<Marker> {
        let compare = |a: &&Bound, b: &&Bound| self.comparator.compare_bounds(a, b);
        let mut ends: Vec<&Bound> = self
            .ranges()
            .flat_map(|range| [&range.start, &range.end])
            .collect();
        ends.sort_by(compare);
        ends.dedup_by(|a, b| compare(&&**a, &&**b).is_eq());
        let mut open = None;
        let mut markers = Vec::new();
        for (index, end) in ends.iter().enumerate() {
            let spans = |range: &&RangeTombstone| {
                compare(&&range.start, end).is_le()
                    && ends
                        .get(index + 1)
                        .is_some_and(|next| compare(&&range.end, next).is_ge())
            };
            let deletions = self.ranges().filter(spans).map(|range| range.deletion);
            let deletion = deletions.fold(DeletionTime::LIVE, DeletionTime::max);
            let next = deletion.supersedes(&self.deletion()).then_some(deletion);
            if next != open {
                markers.push(Marker::at(end, open, next, Direction::Forward));
            }
            open = next;
        }
        markers
    }

    fn read(&self) -> Partition {
        let statics: Vec<&Row> = self
            .mutations
            .iter()
            .filter_map(|mutation| mutation.update.static_row.as_ref())
            .collect();
        let static_row = (!statics.is_empty()).then(|| self.row(&statics, self.deletion()));
        let mut unfiltereds: Vec<Unfiltered> = self.rows().into_iter().map(Unfiltered::Row).collect();
        unfiltereds.extend(self.markers().into_iter().map(Unfiltered::Marker));
        unfiltereds.sort_by(|a, b| self.comparator.compare_unfiltered(a, b));
        Partition {
            head: PartitionHead {
                key: self.mutations[0].key.clone(),
                deletion: self.deletion(),
                static_row: static_row.flatten(),
            },
            unfiltereds,
        }
    }
}

fn winner(versions: impl Iterator<Item = Cell>, ty: &CqlType) -> Option<Cell> {
    versions.reduce(|mut winner, cell| {
        match ty {
            CqlType::Counter => winner.reconcile_counter(cell),
            _ => winner.reconcile(cell),
        }
        winner
    })
}

fn column_of(versions: &[&Data], ty: &CqlType, covering: DeletionTime) -> Option<Data> {
    if !ty.is_multi_cell() {
        let cells = versions.iter().filter_map(|version| match version {
            Data::Simple(cell) => Some(cell.clone()),
            Data::Complex(_) => None,
        });
        let cells = cells.filter(|cell| !covering.deletes(cell.timestamp_micros));
        return winner(cells, ty).map(Data::Simple);
    }
    let versions: Vec<&ComplexColumn> = versions
        .iter()
        .filter_map(|version| match version {
            Data::Complex(complex) => Some(&**complex),
            Data::Simple(_) => None,
        })
        .collect();
    let own = versions.iter().map(|version| version.deletion);
    let own = own.fold(DeletionTime::LIVE, DeletionTime::max);
    let deletion = own.max(covering);
    let mut all: Vec<_> = versions.iter().flat_map(|version| &version.cells).collect();
    all.retain(|(_, cell)| !deletion.deletes(cell.timestamp_micros));
    all.sort_by(|(a, _), (b, _)| paths::compare_paths(ty, a, b));
    let cells: Vec<_> = all
        .chunk_by(|(a, _), (b, _)| a == b)
        .map(|same| {
            (
                same[0].0.clone(),
                winner(same.iter().map(|(_, cell)| cell.clone()), ty).unwrap(),
            )
        })
        .collect();
    let deletion = if own.supersedes(&covering) {
        own
    } else {
        DeletionTime::LIVE
    };
    (!deletion.is_live() || !cells.is_empty())
        .then(|| Data::Complex(Box::new(ComplexColumn { deletion, cells })))
}

fn model_of(mutations: &[Mutation], table: &TableSchema) -> Vec<Partition> {
    let mut keys: BTreeMap<&DecoratedKey, Vec<&Mutation>> = BTreeMap::new();
    for mutation in mutations {
        keys.entry(&mutation.key).or_default().push(mutation);
    }
    keys.into_values()
        .map(|mutations| {
            let comparator = ClusteringComparator::of(table);
            Model {
                table,
                comparator,
                mutations,
            }
            .read()
        })
        .collect()
}

/// Of counters, increments only: which of a deletion and an older increment comes first matters for them, also in Cassandra.
fn without_counter_deletions(mut mutation: Mutation) -> Mutation {
    if mutation.table.is_counter() {
        let update = &mut mutation.update;
        update.deletion = None;
        update.ranges.clear();
        for row in update.rows.iter_mut().chain(&mut update.static_row) {
            row.deletion = DeletionTime::LIVE;
            row.columns
                .retain(|entry| matches!(&entry.data, Data::Simple(cell) if !cell.is_tombstone()));
        }
        update.rows.retain(|row| !row.is_empty());
        update.static_row = update.static_row.take().filter(|row| !row.is_empty());
    }
    mutation
}

struct Case {
    table: Arc<TableSchema>,
    comparator: ClusteringComparator,
    mutations: Vec<Mutation>,
    dice: Dice,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let table = random_table(&mut dice);
        let count = 1 + dice.below(30);
        let mutations = std::iter::repeat_with(|| random_mutation(&table, &mut dice));
        let mutations = mutations.take(count).map(without_counter_deletions).collect();
        Self {
            comparator: ClusteringComparator::of(&table),
            table,
            mutations,
            dice,
        }
    }

    fn memtable(&mut self, mutations: &[Mutation]) -> Arc<Memtable> {
        let memtable = Arc::new(Memtable::new(self.table.clone(), 1 + self.dice.below(3)));
        for mutation in mutations {
            memtable.apply(mutation);
        }
        memtable
    }

    fn slices(&mut self) -> ClusteringFilter {
        let mut ends: Vec<Bound> = (0..2 * self.dice.below(4))
            .map(|_| {
                random_bound(
                    &self.table,
                    &[BoundKind::InclStart, BoundKind::ExclStart],
                    &mut self.dice,
                )
            })
            .collect();
        let compare = |a: &Bound, b: &Bound| self.comparator.compare_bounds(a, b);
        ends.sort_by(compare);
        ends.dedup_by(|a, b| compare(a, b).is_eq());
        let slices = ends.chunks_exact(2).map(|ends| Slice {
            start: ends[0].clone(),
            end: ends[1].invert(),
        });
        ClusteringFilter {
            slices: slices.collect(),
            reversed: self.dice.one_in(2),
            ..ClusteringFilter::all()
        }
    }

    fn said(&self) -> String {
        self.mutations.iter().map(print_mutation).collect()
    }
}

fn read_all(cursor: &mut dyn Cursor) -> Vec<Partition> {
    std::iter::from_fn(|| Partition::read_next(cursor).unwrap()).collect()
}

fn print(partitions: &[Partition], table: &TableSchema) -> String {
    let text: String = partitions
        .iter()
        .map(|partition| print_partition(partition, table))
        .collect();
    text
}

fn check(read: &[Partition], expected: &[Partition], case: &Case) {
    assert!(
        read == expected,
        "read:\n{}expected:\n{}after:\n{}",
        print(read, &case.table),
        print(expected, &case.table),
        case.said()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_memtable_gives_what_the_mutations_say(seed: u64) {
        let mut case = Case::new(seed);
        let memtable = case.memtable(&case.mutations.clone());
        let read = read_all(&mut memtable.flush_cursor());
        check(&read, &model_of(&case.mutations, &case.table), &case);
    }

    #[test]
    fn the_order_of_mutations_does_not_matter(seed: u64) {
        let mut case = Case::new(seed);
        let mut mutations = case.mutations.clone();
        let forwards = read_all(&mut case.memtable(&mutations).flush_cursor());
        mutations.reverse();
        let backwards = read_all(&mut case.memtable(&mutations).flush_cursor());
        check(&backwards, &forwards, &case);
    }

    #[test]
    fn slices_and_reversed_reads_give_parts_of_the_whole(seed: u64) {
        let mut case = Case::new(seed);
        let memtable = case.memtable(&case.mutations.clone());
        let filter = Arc::new(case.slices());
        let whole = VecCursor::new(model_of(&case.mutations, &case.table));
        let expected = read_all(&mut FilterCursor::new(whole, filter.clone(), case.comparator.clone()));
        let read = read_all(&mut memtable.cursor(KeyRange::all(), filter.clone()));
        check(&read, &expected, &case);
        for partition in &expected {
            let mut cursor = memtable.partition(&partition.head.key, &filter).unwrap();
            check(&read_all(&mut cursor), std::slice::from_ref(partition), &case);
        }
    }

    #[test]
    fn a_merge_of_sources_gives_what_one_source_with_everything_would(seed: u64) {
        let mut case = Case::new(seed);
        let filter = Arc::new(case.slices());
        let size = 1 + case.dice.below(8);
        let sources: Vec<Vec<Mutation>> = case.mutations.chunks(size).map(<[Mutation]>::to_vec).collect();
        let mut cursors: Vec<Box<dyn Cursor>> = Vec::new();
        for source in &sources {
            if case.dice.one_in(2) {
                let memtable = case.memtable(source);
                cursors.push(Box::new(memtable.cursor(KeyRange::all(), filter.clone())));
            } else {
                let whole = VecCursor::new(model_of(source, &case.table));
                cursors.push(Box::new(FilterCursor::new(whole, filter.clone(), case.comparator.clone())));
            }
        }
        let mut merged = MergeCursor::new(cursors, case.table.clone(), Direction::of(filter.reversed));
        let whole = VecCursor::new(model_of(&case.mutations, &case.table));
        let expected = read_all(&mut FilterCursor::new(whole, filter, case.comparator.clone()));
        check(&read_all(&mut merged), &expected, &case);
    }

    #[test]
    fn the_size_is_no_less_than_what_its_values_weigh(seed: u64) {
        let mut case = Case::new(seed);
        let memtable = case.memtable(&case.mutations.clone());
        let partitions = read_all(&mut memtable.flush_cursor());
        let rows = partitions.iter().flat_map(|partition| &partition.unfiltereds);
        let weight: usize = rows
            .map(|unfiltered| match unfiltered {
                Unfiltered::Row(row) => weight_of(row),
                Unfiltered::Marker(_) => 0,
            })
            .sum();
        prop_assert!(memtable.size_bytes() >= weight);
        prop_assert_eq!(memtable.statistics().operations, case.mutations.len() as u64);
    }
}

fn weight_of(row: &Row) -> usize {
    let columns = row.columns.iter().map(|entry| match &entry.data {
        Data::Simple(cell) => cell.value.len(),
        Data::Complex(complex) => {
            let cells = complex.cells.iter();
            cells.map(|(path, cell)| path.len() + cell.value.len()).sum()
        }
    });
    row.clustering
        .values()
        .iter()
        .flatten()
        .map(Bytes::len)
        .sum::<usize>()
        + columns.sum::<usize>()
}

#[test]
fn the_order_of_the_model_is_that_of_the_comparator() {
    let case = Case::new(7);
    for partition in model_of(&case.mutations, &case.table) {
        let in_order =
            |pair: &[Unfiltered]| case.comparator.compare_unfiltered(&pair[0], &pair[1]) == Ordering::Less;
        assert!(partition.unfiltereds.windows(2).all(in_order));
    }
}
