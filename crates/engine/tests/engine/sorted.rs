//! Sorted views change what a read costs and nothing else: two engines take the same writes, flushes and compactions, and only one of them has
//! memory for views.

use std::sync::Arc;

use ilion_engine::{CompactionRequest, Engine, EngineOptions, MajorOutput};
use ilion_env::{MemEnv, Seeded};
use ilion_rows::notation::{parse_mutations, print_cursor};
use ilion_rows::{ClusteringFilter, Cursor, DecoratedKey, Flow, KeyBound, KeyRange, PlainRow, PlainVisitor};
use ilion_schema::{CreateTable, NewColumn, PropertyValue, SchemaChange, TableSchema};
use ilion_types::{CqlType, Partitioner};

use crate::support::{create_keyspace, small_options};

const PARTITIONERS: [Partitioner; 3] = [
    Partitioner::Murmur3,
    Partitioner::Random,
    Partitioner::ByteOrdered,
];

/// With views, and without.
struct Pair {
    engines: [Engine; 2],
    partitioner: Partitioner,
    is_wide: bool,
}

fn create_table(is_wide: bool) -> SchemaChange {
    let column = |name: &str, ty, is_static| NewColumn {
        name: name.to_owned(),
        ty,
        is_static,
        mask: None,
    };
    let mut columns = vec![
        column("k", CqlType::Text, false),
        column("v", CqlType::Text, false),
    ];
    if is_wide {
        columns.push(column("c", CqlType::Int, false));
        columns.push(column("s", CqlType::Text, true));
    }
    SchemaChange::CreateTable(Box::new(CreateTable {
        keyspace: "ks".to_owned(),
        name: "t".to_owned(),
        columns,
        partition_key: vec!["k".to_owned()],
        clustering: is_wide.then(|| "c".to_owned()).into_iter().collect(),
        // Small chunks, so that many partitions cross the end of one.
        properties: [(
            "compression",
            PropertyValue::from([("class", "LZ4Compressor"), ("chunk_length_in_kb", "1")]),
        )]
        .into_iter()
        .collect(),
        ..CreateTable::default()
    }))
}

impl Pair {
    fn new(seed: u64, partitioner: Partitioner, is_wide: bool) -> Self {
        let engine = |sorted_view_bytes| {
            let options = EngineOptions {
                partitioner,
                sorted_view_bytes,
                ..small_options()
            };
            let engine = Engine::open(MemEnv::new(seed).shared(), options).unwrap();
            engine.alter_schema(&create_keyspace("ks")).unwrap();
            engine.alter_schema(&create_table(is_wide)).unwrap();
            engine
        };
        Self {
            engines: [engine(1 << 20), engine(0)],
            partitioner,
            is_wide,
        }
    }

    fn table(&self, engine: &Engine) -> Arc<TableSchema> {
        let schema = engine.schema();
        schema.table("ks", "t").unwrap().clone()
    }

    fn each(&self, mut act: impl FnMut(&Engine, &Arc<TableSchema>)) {
        self.engines
            .iter()
            .for_each(|engine| act(engine, &self.table(engine)));
    }

    fn key(&self, random: &mut Seeded) -> String {
        // Some are the start of others, and some have much in common.
        match random.below(4) {
            0 => format!("k{}", random.below(30)),
            1 => format!(
                "a long way to the first byte that differs {:03}",
                random.below(200)
            ),
            2 => "z".repeat(1 + random.below(12) as usize),
            _ => format!("{:04x}", random.below(300)),
        }
    }

    fn write(&self, random: &mut Seeded) {
        let key = self.key(random);
        let (at, value) = (random.below(1000), "v".repeat(1 + random.below(200) as usize));
        let row = match self.is_wide {
            true => format!("row {}", random.below(6)),
            false => "row".to_owned(),
        };
        let text = match (random.below(12), self.is_wide) {
            (0, _) => format!("partition '{key}' del@{at}"),
            (1, _) => format!("partition '{key}'\n  {row} del@{at}"),
            (2, true) => format!("partition '{key}'\n  [1, {}) del@{at}", 2 + random.below(4)),
            (3, true) => format!("partition '{key}'\n  static s='{value}'@{at}"),
            (4, _) => format!("partition '{key}'\n  {row} live@{at} v='{value}'@{at} ttl=60"),
            (5, _) => format!("partition '{key}'\n  {row} v=del@{at}"),
            _ => format!("partition '{key}'\n  {row} live@{at} v='{value}'@{at}"),
        };
        self.each(|engine, table| {
            for mutation in parse_mutations(&text, table, self.partitioner).unwrap() {
                engine.apply(&[mutation]).unwrap();
            }
        });
    }

    fn range(&self, random: &mut Seeded) -> KeyRange {
        let mut bound = |edge: KeyBound| {
            let key = DecoratedKey::new(self.partitioner, self.key(random).into());
            match random.below(6) {
                0 => edge,
                1 => KeyBound::BeforeToken(key.token),
                2 => KeyBound::AfterToken(key.token),
                3 => KeyBound::Before(key),
                _ => KeyBound::After(key),
            }
        };
        KeyRange {
            start: bound(KeyBound::Start),
            end: bound(KeyBound::End),
        }
    }

    fn compare(&self, random: &mut Seeded) {
        let range = self.range(random);
        let filter = ClusteringFilter {
            reversed: self.is_wide && random.one_in(2),
            ..ClusteringFilter::all()
        };
        let read = |engine: &Engine| {
            let mut cursor = engine.read_range(&self.table(engine), &range, &filter).unwrap();
            print_cursor(&mut cursor, &self.table(engine)).unwrap()
        };
        let [with, without] = self.engines.each_ref().map(read);
        assert_eq!(with, without, "{range:?}");
        let key = DecoratedKey::new(self.partitioner, self.key(random).into());
        let read = |engine: &Engine| {
            let mut cursor = engine.read_partition(&self.table(engine), &key, &filter).unwrap();
            let printed = print_cursor(&mut cursor, &self.table(engine)).unwrap();
            // A partition without content is the same as none.
            let is_empty = printed.trim_end().lines().count() == 1 && !printed.contains(" del@");
            if is_empty { String::new() } else { printed }
        };
        let [with, without] = self.engines.each_ref().map(read);
        assert_eq!(with, without, "{key:?}");
        if !self.is_wide {
            let [with, without] = self.engines.each_ref().map(|engine| {
                let table = self.table(engine);
                let cursor = engine
                    .read_range(&table, &range, &ClusteringFilter::all())
                    .unwrap();
                plain_keys(cursor, 1 + with.len() % 7)
            });
            assert_eq!(with, without, "{range:?}");
        }
    }
}

/// Takes plain rows, this many at once.
struct Keys {
    seen: Vec<Vec<u8>>,
    left: usize,
}

impl PlainVisitor for Keys {
    fn row(&mut self, row: &PlainRow<'_>) -> Flow {
        if self.left == 0 {
            self.left = 3;
            return Flow::Leave;
        }
        self.seen.push(row.key.to_vec());
        self.left -= 1;
        match self.left {
            0 if self.seen.len().is_multiple_of(2) => Flow::Last,
            _ => Flow::Next,
        }
    }
}

/// The keys of all partitions, of those that are plain as they are shown.
fn plain_keys(mut cursor: Box<dyn Cursor>, left: usize) -> Vec<Vec<u8>> {
    let mut keys = Keys {
        seen: Vec::new(),
        left,
    };
    loop {
        if let Some(run) = cursor.plain_partitions(None, &mut keys).unwrap() {
            assert_eq!(Some(&run.last.key[..]), keys.seen.last().map(|key| &key[..]));
        }
        match cursor.next_partition().unwrap() {
            Some(head) => keys.seen.push(head.key.key.to_vec()),
            None => return keys.seen,
        }
        if keys.seen.len().is_multiple_of(3) {
            let _ = cursor.next_unfiltered().unwrap();
        }
    }
}

#[test]
fn reads_by_a_sorted_view_find_what_reads_without_find() {
    let mut by_view = 0;
    for seed in 0..9 {
        let random = &mut Seeded::new(seed);
        let partitioner = PARTITIONERS[seed as usize % 3];
        let pair = Pair::new(seed, partitioner, seed % 2 == 0);
        for _ in 0..40 {
            match random.below(12) {
                0 => pair.each(|engine, table| {
                    engine
                        .compact_as(table.id, &CompactionRequest::Major(MajorOutput::AsUsual))
                        .unwrap();
                }),
                1 | 2 => pair.each(|engine, table| engine.sort(table.id).unwrap()),
                3 => pair.each(|engine, table| {
                    // Two that are no sources of the view.
                    engine.flush(table.id).unwrap();
                }),
                _ => {
                    let count = random.below(60);
                    (0..count).for_each(|_| pair.write(random));
                    if random.one_in(2) {
                        pair.each(|engine, table| engine.flush(table.id).unwrap());
                    }
                }
            }
            (0..4).for_each(|_| pair.compare(random));
            let [with, without] = pair
                .engines
                .each_ref()
                .map(|engine| engine.has_sorted_view(pair.table(engine).id));
            assert!(!without, "there was no memory for it");
            by_view += u32::from(with);
        }
    }
    assert!(by_view > 100, "a view was used {by_view} times");
}
