//! Tests of searches after rows are written, overwritten, deleted and flushed.

use std::collections::BTreeMap;

use bytes::Bytes;
use ilion_env::MemEnv;
use ilion_rows::{Cell, Clustering, ColumnData, Data, DecoratedKey, ReadError, Row};
use ilion_schema::{ClusteringOrder, IndexKind, IndexSchema, TableBuilder, TableId, TableSchema};
use ilion_types::Partitioner;

use super::*;
use crate::{Before, Place, Ranked, RowChange, RowPart};

const BASE: &str = "nb-1-big-";

fn vectors_of(element: CqlType, dimension: u32) -> CqlType {
    CqlType::Vector {
        element: Arc::new(element),
        dimension,
    }
}

fn table() -> Arc<TableSchema> {
    TableBuilder::new("ks", "t", TableId::of_system_table("ks", "t"))
        .partition_key("p", CqlType::Int)
        .clustering("c", CqlType::Int, ClusteringOrder::Asc)
        .static_column("s", vectors_of(CqlType::Float, 2))
        .regular("v", vectors_of(CqlType::Float, 2))
        .regular("one", vectors_of(CqlType::Float, 1))
        .regular("whole", vectors_of(CqlType::Int, 2))
        .regular("i", CqlType::Int)
        .build()
}

fn definition_of(column: &str, options: &[(&str, &str)]) -> Definition {
    let target = [("target", column)];
    let options = options.iter().chain(&target);
    let schema = Arc::new(IndexSchema {
        name: "by_v".to_owned(),
        table: "t".to_owned(),
        kind: IndexKind::Custom,
        options: options
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect::<BTreeMap<_, _>>(),
    });
    Definition::of(&schema, &table()).unwrap()
}

fn opened(column: &str, options: &[(&str, &str)]) -> Result<VectorIndex, String> {
    VectorIndex::of(definition_of(column, options)).map_err(|error| error.to_string())
}

fn index() -> VectorIndex {
    opened("v", &[("similarity_function", "euclidean")]).unwrap()
}

fn key(partition: i32) -> DecoratedKey {
    DecoratedKey::new(
        Partitioner::Murmur3,
        Bytes::copy_from_slice(&partition.to_be_bytes()),
    )
}

fn row(column: &str, clustering: Option<i32>, vector: &[f32]) -> Row {
    let values = clustering.map(|value| Bytes::copy_from_slice(&value.to_be_bytes()));
    let value: Vec<u8> = vector.iter().flat_map(|part| part.to_be_bytes()).collect();
    let column = table().column_named(column).unwrap().id;
    Row {
        columns: vec![ColumnData {
            column,
            data: Data::Simple(Cell::live(1, value.into())),
        }],
        ..Row::empty(Clustering::of(values))
    }
}

fn empty(clustering: i32) -> Row {
    Row::empty(Clustering::of([Bytes::copy_from_slice(
        &clustering.to_be_bytes(),
    )]))
}

fn place(partition: i32, clustering: i32) -> Place {
    Place {
        key: key(partition),
        row: RowPart::Row(empty(clustering).clustering),
    }
}

fn put(memtable: &dyn MemtableIndex, partition: i32, before: Option<&Row>, after: &Row) -> isize {
    memtable.apply(
        &key(partition),
        RowChange {
            before: before.map(Before::Row),
            after,
        },
        &mut Vec::new(),
    )
}

fn all(mut ranked: Box<dyn Ranked>) -> Vec<(Place, f32)> {
    std::iter::from_fn(|| ranked.next().unwrap()).collect()
}

fn places(ranked: Box<dyn Ranked>) -> Vec<Place> {
    all(ranked).into_iter().map(|(place, _)| place).collect()
}

/// Places of rows by number.
struct Rows(Vec<Place>);

impl RowNumbers for Rows {
    fn len(&self) -> u32 {
        self.0.len() as u32
    }

    fn place(&self, number: u32) -> Result<Place, ReadError> {
        Ok(self.0[number as usize].clone())
    }

    fn number_from(&self, _place: &Place) -> Result<u32, ReadError> {
        unreachable!("nobody seeks")
    }
}

fn flushed(index: &VectorIndex, env: &Arc<dyn Env>, segment_bytes: usize, rows: &[Row]) -> Arc<Rows> {
    let mut writer = writer_of(index, env, segment_bytes);
    let mut places = Vec::new();
    for (number, row) in (0..).zip(rows) {
        writer.add(number, &key(1), row).unwrap();
        places.push(Place {
            key: key(1),
            row: index.values.part(row),
        });
    }
    writer.finish().unwrap();
    Arc::new(Rows(places))
}

fn writer_of(index: &VectorIndex, env: &Arc<dyn Env>, segment_bytes: usize) -> Box<VectorsWriter> {
    let gathered = Gathered::new(index.values.options, index.graphs.lock().clone());
    Box::new(VectorsWriter::new(
        env,
        BASE,
        "by_v",
        &index.values,
        gathered,
        segment_bytes,
    ))
}

fn points(count: i32) -> Vec<Row> {
    let angle = |number: i32| number as f32 * 0.01;
    (0..count)
        .map(|number| row("v", Some(number), &[angle(number).cos(), angle(number).sin()]))
        .collect()
}

#[test]
fn definitions_are_checked_in_cassandras_words() {
    let refusal = |column: &str, options: &[(&str, &str)]| opened(column, options).map(drop).unwrap_err();
    assert_eq!(
        refusal("whole", &[]),
        "SAI ANN indexes are only allowed on vector columns with float elements"
    );
    assert_eq!(
        refusal("one", &[]),
        "Cosine similarity is not supported for single-dimension vectors"
    );
    assert!(opened("one", &[("similarity_function", "DOT_PRODUCT")]).is_ok());
    assert!(
        refusal("v", &[("similarity_function", "angle")])
            .starts_with("Similarity function ANGLE was not recognized")
    );
    assert!(opened("s", &[]).is_ok());
}

#[test]
fn the_class_makes_indexes_of_vectors_that_rank() {
    use crate::{IndexClass as _, Sai};
    let definition = index().definition;
    Sai.validate(&definition).unwrap();
    let index = Sai.open(definition).unwrap();
    assert!(index.ranks() && !index.serves(&Predicate::Equal(Bytes::new())));
    let analyzed = definition_of("v", &[("case_sensitive", "false")]);
    let refused = Sai.validate(&analyzed).unwrap_err().to_string();
    assert_eq!(refused, "CQL type vector<float, 2> cannot be analyzed.");
    assert!(Sai.validate(&definition_of("whole", &[])).is_err());
}

#[test]
fn rows_of_a_memtable_come_nearest_first() {
    let index = index();
    let memtable = index.begin_memtable();
    for (clustering, x) in [(1, 5.0), (2, 1.0), (3, 3.0)] {
        assert!(put(&*memtable, 7, None, &row("v", Some(clustering), &[x, 0.0])) > 0);
    }
    let found = all(memtable.nearest(&[0.0, 0.0]).unwrap());
    assert_eq!(
        found.iter().map(|(place, _)| place.clone()).collect::<Vec<_>>(),
        [place(7, 2), place(7, 3), place(7, 1)]
    );
    assert!((found[0].1 - 0.5).abs() < 1e-6);
}

#[test]
fn a_row_is_found_by_its_new_vector_only() {
    let index = index();
    let memtable = index.begin_memtable();
    let (old, new) = (row("v", Some(1), &[1.0, 1.0]), row("v", Some(1), &[9.0, 9.0]));
    put(&*memtable, 7, None, &old);
    put(&*memtable, 8, None, &old);
    put(&*memtable, 7, Some(&old), &new);
    assert_eq!(put(&*memtable, 7, Some(&new), &new.clone()), 0);
    assert_eq!(
        places(memtable.nearest(&[1.0, 1.0]).unwrap()),
        [place(8, 1), place(7, 1)]
    );
    put(&*memtable, 8, Some(&old), &empty(1));
    assert_eq!(places(memtable.nearest(&[1.0, 1.0]).unwrap()), [place(7, 1)]);
}

#[test]
fn static_vectors_stand_for_their_partitions() {
    let index = opened("s", &[]).unwrap();
    let memtable = index.begin_memtable();
    put(&*memtable, 7, None, &row("s", None, &[1.0, 1.0]));
    put(&*memtable, 7, None, &row("v", Some(1), &[1.0, 1.0]));
    let found = places(memtable.nearest(&[1.0, 0.0]).unwrap());
    assert_eq!(found, [Place::start_of(key(7))]);
}

#[test]
fn what_cannot_be_indexed_is_refused_before_it_is_written() {
    let index = opened("v", &[]).unwrap();
    let mut mutation = Mutation {
        table: table(),
        key: key(1),
        update: Default::default(),
    };
    mutation.update.rows.push(row("v", Some(1), &[0.0, 0.0]));
    let refused = index.check(&mutation).map_err(|error| error.to_string());
    assert_eq!(
        refused,
        Err("Zero vectors cannot be indexed or queried with cosine similarity".to_owned())
    );
    mutation.update.rows = vec![row("v", Some(1), &[0.0, 1.0]), row("i", Some(2), &[0.0])];
    assert!(index.check(&mutation).is_ok());
}

#[test]
fn an_sstable_gives_what_its_rows_have_however_many_segments_there_are() {
    let index = index();
    let mut rows = points(300);
    rows.insert(17, empty(1000));
    rows.insert(40, row("v", Some(1001), &[f32::NAN, 0.0]));
    let mut found = Vec::new();
    for segment_bytes in [usize::MAX, 20_000, 1] {
        let env = MemEnv::new(1).shared();
        let numbers = flushed(&index, &env, segment_bytes, &rows);
        let opened = index.open_sstable(&env, BASE, numbers).unwrap();
        assert!(opened.size_bytes() > 0);
        let ranked = opened.nearest(&[1.0, 0.0]).unwrap().unwrap();
        found.push(places(ranked));
    }
    let expected: Vec<Place> = (0..300).map(|clustering| place(1, clustering)).collect();
    assert!(found.iter().all(|found| *found == expected));
}

#[test]
fn a_flush_finds_what_the_memtable_found_and_what_was_not_in_it() {
    for (in_memtable, flushed_from) in [(300, 0), (300, 100), (300, 250), (100, 0), (5, 0), (0, 0)] {
        let (index, env) = (index(), MemEnv::new(1).shared());
        let memtable = index.begin_memtable();
        let rows = points(300);
        for row in &rows[..in_memtable] {
            put(&*memtable, 1, None, row);
        }
        let numbers = flushed(&index, &env, usize::MAX, &rows[flushed_from..]);
        drop(memtable);
        let opened = index.open_sstable(&env, BASE, numbers).unwrap();
        let found = places(opened.nearest(&[1.0, 0.0]).unwrap().unwrap());
        let expected: Vec<Place> = (flushed_from as i32..300)
            .map(|number| place(1, number))
            .collect();
        assert_eq!(found, expected, "{in_memtable} {flushed_from}");
    }
}

#[test]
fn an_sstable_without_vectors_gives_nothing() {
    let (index, env) = (index(), MemEnv::new(1).shared());
    let numbers = flushed(&index, &env, usize::MAX, &[empty(1), empty(2)]);
    let opened = index.open_sstable(&env, BASE, numbers).unwrap();
    assert_eq!(places(opened.nearest(&[1.0, 0.0]).unwrap().unwrap()), []);
}

#[test]
fn files_of_other_rows_or_options_or_damaged_ones_are_unusable() {
    let (index, mem) = (index(), MemEnv::new(1));
    let env = mem.shared();
    let numbers = flushed(&index, &env, usize::MAX, &points(50));
    let refused = |index: &VectorIndex, numbers: Arc<Rows>| {
        let opened = index.open_sstable(&env, BASE, numbers).map(drop);
        matches!(opened, Err(Error::Unusable { .. }))
    };
    assert!(!refused(&index, numbers.clone()));
    assert!(refused(&index, Arc::new(Rows(numbers.0[1..].to_vec()))));
    assert!(refused(&opened("v", &[]).unwrap(), numbers.clone()));
    let path = writer::path_of(BASE, "by_v", 1);
    mem.corrupt_byte(&path, env.file_size(&path).unwrap() - 30, 1)
        .unwrap();
    assert!(refused(&index, numbers.clone()));
    env.remove_file(&path).unwrap();
    assert!(refused(&index, numbers));
}

#[test]
fn a_comparison_sees_other_vectors_and_rows_too_many_and_too_few() {
    let index = index();
    let mut rows = points(60);
    rows.insert(7, rows[3].clone());
    rows.insert(17, empty(1000));
    rows.insert(40, row("v", Some(1001), &[f32::NAN, 0.0]));
    for segment_bytes in [usize::MAX, 5_000] {
        let mem = MemEnv::new(1);
        let env = mem.shared();
        let numbers = flushed(&index, &env, segment_bytes, &rows);
        let is_same = |rows: &[Row]| {
            let opened = index.open_sstable(&env, BASE, numbers.clone()).unwrap();
            let mut comparison = opened.begin_comparison().unwrap().unwrap();
            for (number, row) in (0..).zip(rows) {
                comparison.add(number, &key(1), row);
            }
            comparison.is_same()
        };
        assert!(is_same(&rows));
        assert!(!is_same(&rows[..rows.len() - 1]));
        for (number, other) in [
            (0, row("v", Some(0), &[1.0, 0.001])),
            (5, empty(5)),
            (17, row("v", Some(1000), &[0.5, 0.5])),
        ] {
            let mut changed = rows.clone();
            changed[number] = other;
            assert!(!is_same(&changed), "row {number}");
        }
        mem.corrupt_byte(&writer::path_of(BASE, "by_v", 1), 5, 1).unwrap();
        assert!(!is_same(&rows));
    }
}

#[test]
fn an_abandoned_writer_leaves_nothing() {
    let (index, env) = (index(), MemEnv::new(1).shared());
    let mut writer = writer_of(&index, &env, 1);
    for (number, row) in (0..).zip(points(40)) {
        writer.add(number, &key(1), &row).unwrap();
    }
    let temporary = |segment| crate::paged::temporary_of(&writer::path_of(BASE, "by_v", segment));
    assert!((1..=3).all(|segment| env.exists(&temporary(segment))));
    writer.abandon();
    assert!(!(1..=3).any(|segment| env.exists(&temporary(segment))));
}
