//! Measures the cost of a storage-attached index: bytes per row, time per search, instructions per write.
//!
//! `cargo run --release -p ilion-index --example sai_cost -- DIR ROWS` writes the index of one SSTable per kind of column, and
//! searches it. With `memtable` instead of DIR, it applies ROWS rows to a memtable's index and exits, to be run under `valgrind
//! --tool=callgrind` with two numbers of rows.
#![expect(clippy::unwrap_used, reason = "an example")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use ilion_env::{Env, RealEnv, Seeded};
use ilion_index::{
    Attached, Definition, IndexClass, Limit, Place, Predicate, RowChange, RowNumbersFile, RowNumbersWriter,
    SSTableIndex, Sai, SecondaryIndex, Storage,
};
use ilion_rows::{Cell, Clustering, ColumnData, Data, DecoratedKey, Liveness, Row};
use ilion_schema::{IndexKind, IndexSchema, TableBuilder, TableId, TableSchema};
use ilion_types::{CqlType, Partitioner};

/// Columns with the distribution of their values.
const COLUMNS: [(&str, CqlType, u64); 5] = [
    ("unique", CqlType::Int, 1 << 31),
    ("tenth", CqlType::Int, 0),
    ("thousand", CqlType::Int, 1000),
    ("ten", CqlType::Text, 10),
    ("text", CqlType::Text, 1 << 31),
];

fn table() -> Arc<TableSchema> {
    let builder = TableBuilder::new("ks", "t", TableId::of_system_table("ks", "t"));
    let builder = builder.partition_key("k", CqlType::Uuid);
    COLUMNS
        .iter()
        .fold(builder, |builder, (name, ty, _)| {
            builder.regular(*name, ty.clone())
        })
        .build()
}

fn open(table: &Arc<TableSchema>, column: &str) -> Arc<dyn SecondaryIndex> {
    let schema = IndexSchema {
        name: column.to_owned(),
        table: "t".to_owned(),
        kind: IndexKind::Custom,
        options: BTreeMap::from([("target".to_owned(), column.to_owned())]),
    };
    Sai.open(Definition::of(&Arc::new(schema), table).unwrap())
        .unwrap()
}

fn attached(index: &dyn SecondaryIndex) -> &dyn Attached {
    match index.storage() {
        Storage::Attached(attached) => attached,
        Storage::HiddenTable(_) => unreachable!(),
    }
}

fn value(ty: &CqlType, number: u64) -> Bytes {
    match ty {
        CqlType::Int => Bytes::copy_from_slice(&(number as i32).to_be_bytes()),
        _ => Bytes::from(format!("value-{number:012}")),
    }
}

fn row(table: &TableSchema, column: &str, value: Bytes) -> Row {
    let mut row = Row::empty(Clustering::empty());
    row.liveness = Liveness::live(1);
    let column = table.column_named(column).unwrap().id;
    row.columns.push(ColumnData {
        column,
        data: Data::Simple(Cell::live(1, value)),
    });
    row
}

fn key(number: u64) -> DecoratedKey {
    let mut random = Seeded::new(number);
    let mut key = [0; 16];
    random.fill(&mut key);
    DecoratedKey::new(Partitioner::Murmur3, Bytes::copy_from_slice(&key))
}

fn apply_to_memtable(rows: u64) {
    let table = table();
    let index = open(&table, "thousand");
    let memtable = attached(&*index).begin_memtable();
    let mut random = Seeded::new(7);
    let rows: Vec<_> = (0..rows)
        .map(|number| {
            (
                key(number),
                row(&table, "thousand", value(&CqlType::Int, random.below(100_000))),
            )
        })
        .collect();
    let start = Instant::now();
    let mut weight = 0;
    for (key, row) in &rows {
        let change = RowChange {
            before: None,
            after: row,
        };
        weight += memtable.apply(key, change, &mut Vec::new());
    }
    let nanos = start.elapsed().as_nanos() / rows.len().max(1) as u128;
    println!(
        "{} rows: {nanos} ns and {} bytes a row",
        rows.len(),
        weight / rows.len().max(1) as isize
    );
}

struct Sizes {
    rows: u32,
    numbers_bytes: u64,
}

fn write_rows(env: &Arc<dyn Env>, base: &str, table: &TableSchema, keys: &[DecoratedKey]) -> Sizes {
    let start = Instant::now();
    let mut numbers = RowNumbersWriter::create(env, base, table, Partitioner::Murmur3).unwrap();
    let row = row(table, "ten", Bytes::new());
    for key in keys {
        numbers.add(key, &row).unwrap();
    }
    numbers.finish().unwrap();
    let file = RowNumbersFile::open(env, base, table, Partitioner::Murmur3).unwrap();
    let nanos = start.elapsed().as_nanos() / keys.len() as u128;
    println!(
        "row numbers: {:.2} bytes and {nanos} ns a row",
        file.size_bytes() as f64 / keys.len() as f64
    );
    Sizes {
        rows: keys.len() as u32,
        numbers_bytes: file.size_bytes(),
    }
}

fn time_search(index: &Arc<dyn SSTableIndex>, what: &str, predicates: &[Predicate], most: usize) {
    let (mut rows, mut worst) = (0, 0);
    let start = Instant::now();
    for predicate in predicates {
        let one = Instant::now();
        let mut candidates = index.clone().search(predicate).unwrap();
        for _ in 0..most {
            if candidates.next().unwrap().is_none() {
                break;
            }
            rows += 1;
        }
        worst = worst.max(one.elapsed().as_micros());
    }
    println!(
        "  {what}: {:.1} us a search, worst {worst} us, {:.1} rows",
        start.elapsed().as_micros() as f64 / predicates.len() as f64,
        rows as f64 / predicates.len() as f64
    );
}

fn range(ty: &CqlType, from: u64, to: u64) -> Predicate {
    let limit = |number| Limit {
        value: value(ty, number),
        is_inclusive: true,
    };
    Predicate::Range {
        from: Some(limit(from)),
        to: Some(limit(to)),
    }
}

fn measure(env: &Arc<dyn Env>, base: &str, table: &Arc<TableSchema>, keys: &[DecoratedKey], sizes: &Sizes) {
    for (column, ty, values) in &COLUMNS {
        let values = if *values == 0 {
            u64::from(sizes.rows) / 10
        } else {
            *values
        };
        let index = open(table, column);
        let mut random = Seeded::new(values);
        let start = Instant::now();
        let mut writer = attached(&*index).begin_sstable(env, base).unwrap();
        for (number, key) in keys.iter().enumerate() {
            let row = row(table, column, value(ty, random.below(values)));
            writer.add(number as u32, key, &row).unwrap();
        }
        writer.finish().unwrap();
        let nanos = start.elapsed().as_nanos() / keys.len() as u128;
        let rows = Arc::new(RowNumbersFile::open(env, base, table, Partitioner::Murmur3).unwrap());
        let opened = attached(&*index).open_sstable(env, base, rows).unwrap();
        println!(
            "{column}: {:.2} bytes and {nanos} ns a row (row numbers {} MB)",
            opened.size_bytes() as f64 / keys.len() as f64,
            sizes.numbers_bytes >> 20
        );
        let mut random = Seeded::new(values);
        let present: Vec<u64> = (0..1000).map(|_| random.below(values)).collect();
        let equal: Vec<Predicate> = present
            .iter()
            .map(|number| Predicate::Equal(value(ty, *number)))
            .collect();
        time_search(&opened, "equal, first time", &equal[..1], 10);
        time_search(&opened, "equal", &equal, 10);
        if *ty == CqlType::Int {
            let part = |share: u64| -> Vec<Predicate> {
                let starts = (0..20).map(|_| random_start(values, share));
                starts
                    .map(|from| range(ty, from, from + values / share))
                    .collect()
            };
            time_search(&opened, "a thousandth, 10 rows", &part(1000), 10);
            time_search(&opened, "a third, 10 rows", &part(3), 10);
            time_search(&opened, "a third, 10000 rows", &part(3), 10_000);
        }
    }
}

fn random_start(values: u64, share: u64) -> u64 {
    // A fixed seed, so that every build is measured on the same searches.
    let mut random = Seeded::new(values ^ share);
    random.below(values - values / share)
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, target, rows] = &arguments[..] else {
        println!("sai_cost (DIR | memtable) ROWS");
        return;
    };
    let rows: u64 = rows.parse().unwrap();
    if target == "memtable" {
        return apply_to_memtable(rows);
    }
    let env: Arc<dyn Env> = RealEnv::new();
    env.create_dir_all(Path::new(target)).unwrap();
    let base = format!("{target}/nb-1-big-");
    let table = table();
    let mut keys: Vec<DecoratedKey> = (0..rows).map(key).collect();
    keys.sort();
    let sizes = write_rows(&env, &base, &table, &keys);
    measure(&env, &base, &table, &keys, &sizes);
    let numbers = RowNumbersFile::open(&env, &base, &table, Partitioner::Murmur3).unwrap();
    let start = Instant::now();
    for key in keys.iter().step_by(1009) {
        let place = Place::start_of(key.clone());
        let number = ilion_index::RowNumbers::number_from(&numbers, &place).unwrap();
        assert_eq!(
            ilion_index::RowNumbers::place(&numbers, number).unwrap().key,
            *key
        );
    }
    let looked_up = rows.div_ceil(1009).max(1);
    println!(
        "there and back: {} ns",
        start.elapsed().as_nanos() / u128::from(looked_up)
    );
}
