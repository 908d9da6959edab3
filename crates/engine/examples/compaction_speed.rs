//! How fast compactions merge: `cargo run --release -p ilion-engine --example compaction_speed -- DIR ROWS SSTABLES`.
//!
//! Writes rows of five 34-byte columns under random keys into SSTables, merges them on one thread, and prints bytes and rows per
//! second. Run it under `perf stat -e instructions` with and without rows: the difference is the number of instructions per row.
//!
//! With `wide N` at the end every partition has N rows, all SSTables have all partitions, and each SSTable continues where the
//! previous one ended; with `mixed N` they take turns, row by row. With `load MIB` the rows are only written, with this much memory
//! for memtables and as much for chunks; the program then prints the peak of resident memory beside the budgets.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a tool for developers")]

use std::path::PathBuf;
use std::time::Instant;

use bytes::Bytes;
use ilion_engine::{Engine, EngineOptions};
use ilion_env::RealEnv;
use ilion_rows::{
    Cell, Clustering, ColumnData, Data, DecoratedKey, Liveness, Mutation, PartitionUpdate, Row,
};
use ilion_schema::{CreateTable, NewColumn, Properties, PropertyValue, SchemaChange};
use ilion_types::{CqlType, Partitioner};

const VALUE: &[u8; 34] = b"0123456789012345678901234567890123";

/// How rows are spread.
#[derive(Clone, Copy)]
enum Spread {
    /// Each row is alone in its partition.
    Narrow,
    /// Each partition has this many rows; an SSTable has a contiguous stretch of them.
    Wide(u64),
    /// Each partition has this many rows; an SSTable has every n-th of them.
    Mixed(u64),
}

impl Spread {
    /// The number of the partition, and the clustering, for a row of an SSTable.
    fn place(self, row: u64, sstable: u64, sstables: u64) -> (Option<u64>, Option<u64>) {
        match self {
            Self::Narrow => (None, None),
            Self::Wide(rows) => {
                let here = (rows / sstables).max(1);
                (Some(row / here), Some(sstable * here + row % here))
            }
            Self::Mixed(rows) => {
                let here = (rows / sstables).max(1);
                (Some(row / here), Some(row % here * sstables + sstable))
            }
        }
    }
}

fn create(engine: &Engine, spread: Spread) {
    let replication = [("class", "SimpleStrategy"), ("replication_factor", "1")];
    let keyspace = SchemaChange::CreateKeyspace {
        name: "ks".to_owned(),
        properties: [("replication", PropertyValue::from(replication))]
            .into_iter()
            .collect(),
        if_not_exists: true,
    };
    engine.alter_schema(&keyspace).unwrap();
    let column = |name: &str, ty| NewColumn {
        name: name.to_owned(),
        ty,
        is_static: false,
        mask: None,
    };
    let mut columns = vec![column("k", CqlType::Blob)];
    let clustering = match spread {
        Spread::Narrow => Vec::new(),
        Spread::Wide(_) | Spread::Mixed(_) => {
            columns.push(column("t", CqlType::BigInt));
            vec!["t".to_owned()]
        }
    };
    columns.extend(["a", "b", "c", "d", "e"].map(|name| column(name, CqlType::Blob)));
    let table = CreateTable {
        keyspace: "ks".to_owned(),
        name: "t".to_owned(),
        columns,
        partition_key: vec!["k".to_owned()],
        clustering,
        properties: Properties::default(),
        ..CreateTable::default()
    };
    engine
        .alter_schema(&SchemaChange::CreateTable(Box::new(table)))
        .unwrap();
}

/// The line of `/proc/self/status` with the peak of resident memory.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.unwrap_or_default().to_owned()
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().unwrap());
    let rows: u64 = arguments.next().unwrap().parse().unwrap();
    let sstables: u64 = arguments.next().unwrap().parse().unwrap();
    let kind = arguments.next();
    let number: Option<u64> = arguments.next().map(|number| number.parse().unwrap());
    let is_load = kind.as_deref() == Some("load");
    let mib = number.filter(|_| is_load).unwrap_or(8 << 10);
    let spread = match (kind.as_deref(), number) {
        (Some("wide"), Some(rows)) => Spread::Wide(rows),
        (Some("mixed"), Some(rows)) => Spread::Mixed(rows),
        _ => Spread::Narrow,
    };
    let options = EngineOptions {
        is_compacting: is_load,
        compaction_bytes_per_sec: None,
        memtable_bytes_max: usize::try_from(mib << 20).unwrap(),
        chunk_cache_bytes: mib << 20,
        ..EngineOptions::below(&directory)
    };
    let engine = Engine::open(RealEnv::new(), options).unwrap();
    create(&engine, spread);
    let table = engine.schema().table("ks", "t").unwrap().clone();
    let names = ["a", "b", "c", "d", "e"];
    let ids: Vec<_> = names
        .iter()
        .map(|name| table.column_named(name).unwrap().id)
        .collect();
    let mut seed = 1_u64;
    for sstable in 0..sstables {
        for row in 0..rows / sstables {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (partition, place) = spread.place(row, sstable, sstables);
            let key = format!("{:016x}", partition.unwrap_or(seed));
            let key = Bytes::copy_from_slice(key.as_bytes());
            let place = place.map(|place| Bytes::copy_from_slice(&place.to_be_bytes()));
            let cell = |id: &_| ColumnData {
                column: *id,
                data: Data::Simple(Cell::live(10, Bytes::from_static(VALUE))),
            };
            let row = Row {
                liveness: Liveness::live(10),
                columns: ids.iter().map(cell).collect(),
                ..Row::empty(Clustering::of(place))
            };
            let mutation = Mutation {
                key: DecoratedKey::new(Partitioner::Murmur3, key),
                table: table.clone(),
                update: PartitionUpdate {
                    rows: vec![row],
                    ..PartitionUpdate::default()
                },
            };
            engine.apply(&[mutation]).unwrap();
        }
        engine.flush(table.id).unwrap();
    }
    if is_load {
        println!(
            "{rows} rows, {mib} MiB for memtables and {mib} for chunks; {}",
            peak()
        );
        return;
    }
    let bytes: u64 = engine.table_facts().iter().map(|facts| facts.sstable_bytes).sum();
    let started = Instant::now();
    engine.compact(table.id).unwrap();
    let secs = started.elapsed().as_secs_f64();
    println!(
        "{rows} rows in {sstables} SSTables of {} MiB: {secs:.2} s, {:.0} MiB/s, {:.0} rows/s",
        bytes >> 20,
        bytes as f64 / secs / f64::from(1 << 20),
        rows as f64 / secs
    );
}
