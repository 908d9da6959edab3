//! A table with columns of every kind that can be indexed, and searches in it by index and by scan.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use ilion_engine::Engine;
use ilion_env::{Env, MemEnv};
use ilion_index::{Candidate, Limit, Place, Predicate, RowPart};
use ilion_rows::{
    Cell, Clustering, ClusteringComparator, ClusteringFilter, ColumnData, Cursor, Data, DecoratedKey,
    KeyRange, Liveness, Mutation, PartitionUpdate, ReadLaw, ReadPurge, Row, Slice, Unfiltered,
};
use ilion_schema::{
    CreateIndex, CreateTable, DropObject, IndexPart, IndexTarget, NewColumn, Properties, SchemaChange,
    TableSchema,
};
use ilion_types::{CqlType, Partitioner, encode_composite};

pub const TABLE: &str = "indexed";

/// Column, part, name of the index; `sai_` are storage-attached.
pub const INDEXES: [(&str, IndexPart, &str); 20] = [
    ("v", IndexPart::Simple, "by_v"),
    ("s", IndexPart::Simple, "by_s"),
    ("c", IndexPart::Simple, "by_c"),
    ("q", IndexPart::Simple, "by_q"),
    ("l", IndexPart::Values, "by_l"),
    ("n", IndexPart::Values, "by_n"),
    ("m", IndexPart::Keys, "by_m_keys"),
    ("m", IndexPart::Values, "by_m_values"),
    ("m", IndexPart::Entries, "by_m_entries"),
    ("v", IndexPart::Simple, "sai_v"),
    ("s", IndexPart::Simple, "sai_s"),
    ("c", IndexPart::Simple, "sai_c"),
    ("l", IndexPart::Values, "sai_l"),
    ("n", IndexPart::Values, "sai_n"),
    ("m", IndexPart::Values, "sai_m_values"),
    ("m", IndexPart::Entries, "sai_m_entries"),
    ("m", IndexPart::Keys, "sai_m_keys"),
    ("q", IndexPart::Simple, "sai_q"),
    ("f", IndexPart::Full, "by_f"),
    ("f", IndexPart::Full, "sai_f"),
];

/// Writes `v` of a row, durably.
pub fn write_row(engine: &Engine, key: DecoratedKey, c: i32, v: i32, timestamp: i64) {
    let table = table(engine);
    let row = Row {
        liveness: Liveness::live(timestamp),
        columns: vec![ColumnData {
            column: table.column_named("v").unwrap().id,
            data: Data::Simple(Cell::live(timestamp, int(v))),
        }],
        ..Row::empty(Clustering::of([int(c)]))
    };
    let update = PartitionUpdate {
        rows: vec![row],
        ..PartitionUpdate::default()
    };
    let position = engine.apply(&[Mutation { table, key, update }]).unwrap().unwrap();
    engine.wait_durable(position).unwrap();
}

/// `(k text, q int, c int desc, s int static, v int, l list<int>, n set<int>, m map<int, int>, f frozen<list<int>>, primary key ((k, q), c))`
pub fn create_table() -> SchemaChange {
    let int = || Arc::new(CqlType::Int);
    let column = |name: &str, ty, is_static| NewColumn {
        name: name.to_owned(),
        ty,
        is_static,
        mask: None,
    };
    SchemaChange::CreateTable(Box::new(CreateTable {
        keyspace: "ks".to_owned(),
        name: TABLE.to_owned(),
        columns: vec![
            column("k", CqlType::Text, false),
            column("q", CqlType::Int, false),
            column("c", CqlType::Int, false),
            column("s", CqlType::Int, true),
            column("v", CqlType::Int, false),
            column(
                "l",
                CqlType::List {
                    element: int(),
                    frozen: false,
                },
                false,
            ),
            column(
                "n",
                CqlType::Set {
                    element: int(),
                    frozen: false,
                },
                false,
            ),
            column(
                "m",
                CqlType::Map {
                    key: int(),
                    value: int(),
                    frozen: false,
                },
                false,
            ),
            column(
                "f",
                CqlType::List {
                    element: int(),
                    frozen: true,
                },
                false,
            ),
        ],
        partition_key: vec!["k".to_owned(), "q".to_owned()],
        clustering: vec!["c".to_owned()],
        clustering_order: vec![("c".to_owned(), ilion_schema::ClusteringOrder::Desc)],
        ..CreateTable::default()
    }))
}

pub fn create_index((column, part, name): (&str, IndexPart, &str)) -> SchemaChange {
    let is_attached = name.starts_with("sai_");
    SchemaChange::CreateIndex(Box::new(CreateIndex {
        keyspace: "ks".to_owned(),
        table: TABLE.to_owned(),
        name: Some(name.to_owned()),
        if_not_exists: false,
        is_custom: is_attached,
        class: is_attached.then(|| "sai".to_owned()),
        targets: vec![IndexTarget {
            column: column.to_owned(),
            part,
        }],
        properties: Properties::default(),
    }))
}

pub fn drop_index(name: &str) -> SchemaChange {
    SchemaChange::DropIndex(DropObject {
        keyspace: "ks".to_owned(),
        name: name.to_owned(),
        if_exists: false,
    })
}

pub fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

pub fn key(k: &str, q: i32) -> DecoratedKey {
    let mut key = Vec::new();
    encode_composite([k.as_bytes(), &int(q)[..]], &mut key).unwrap();
    DecoratedKey::new(Partitioner::Murmur3, key.into())
}

pub fn table(engine: &Engine) -> Arc<TableSchema> {
    engine.schema().table("ks", TABLE).unwrap().clone()
}

/// A list of one number.
pub fn list_of(value: i32) -> Bytes {
    [&int(1)[..], &int(4)[..], &int(value)[..]].concat().into()
}

/// What an index is asked for values from `value` on; `None` if it has no order.
fn from_on((column, _, name): (&str, IndexPart, &str), value: i32) -> Option<Predicate> {
    let is_ordered = name.starts_with("sai_") && matches!(column, "v" | "s" | "c" | "q");
    is_ordered.then(|| Predicate::Range {
        from: Some(Limit {
            value: int(value),
            is_inclusive: true,
        }),
        to: None,
    })
}

/// What an index is asked for a value.
pub fn predicate((column, part, _): (&str, IndexPart, &str), value: i32) -> Predicate {
    match (column, part) {
        ("l" | "n", _) | ("m", IndexPart::Values) => Predicate::Contains(int(value)),
        ("m", IndexPart::Keys) => Predicate::ContainsKey(int(value)),
        ("m", _) => Predicate::Entry(int(value % 3), int(value)),
        ("f", _) => Predicate::Equal(list_of(value)),
        _ => Predicate::Equal(int(value)),
    }
}

/// A row, as it is told: partition key, clustering (nothing: static).
pub type Spot = (Bytes, Option<Bytes>);

fn spot(key: &DecoratedKey, row: &Row) -> Spot {
    (
        key.key.clone(),
        row.clustering.values().first().cloned().flatten(),
    )
}

/// Reads as a query does.
pub struct Reader<'a> {
    pub engine: &'a Engine,
    pub env: &'a MemEnv,
}

impl Reader<'_> {
    fn law(&self) -> ReadLaw {
        ReadLaw::without_limits(u32::try_from(self.env.now_secs()).unwrap())
    }

    fn rows(&self, source: Box<dyn Cursor>) -> Vec<(DecoratedKey, Row)> {
        let mut cursor = ReadPurge::new(source, table(self.engine), self.law());
        let mut rows = Vec::new();
        while let Some(head) = cursor.next_partition().unwrap() {
            rows.extend(head.static_row.map(|row| (head.key.clone(), row)));
            while let Some(unfiltered) = cursor.next_unfiltered().unwrap() {
                if let Unfiltered::Row(row) = unfiltered {
                    rows.push((head.key.clone(), row));
                }
            }
        }
        rows
    }

    fn scan(&self) -> Vec<(DecoratedKey, Row)> {
        let all = self
            .engine
            .read_range(&table(self.engine), &KeyRange::all(), &ClusteringFilter::all());
        self.rows(all.unwrap())
    }

    fn at(&self, place: &Place) -> Vec<(DecoratedKey, Row)> {
        let slices = match &place.row {
            RowPart::Static => vec![Slice::all()],
            RowPart::Row(clustering) => vec![Slice::exactly(clustering)],
        };
        let filter = ClusteringFilter {
            slices,
            ..ClusteringFilter::all()
        };
        let table = table(self.engine);
        self.rows(self.engine.read_partition(&table, &place.key, &filter).unwrap())
    }

    /// Rows that match, of those that a scan gave.
    fn scanned(
        &self,
        rows: &[(DecoratedKey, Row)],
        index: (&str, IndexPart, &str),
        value: i32,
    ) -> BTreeSet<Spot> {
        let matching = rows
            .iter()
            .filter(|(key, row)| self.matches(index, value, key, row));
        matching.map(|(key, row)| spot(key, row)).collect()
    }

    /// Rows that match, by the index.
    pub fn searched(&self, index: (&str, IndexPart, &str), value: i32) -> BTreeSet<Spot> {
        self.searched_for(index, &predicate(index, value), &[value])
    }

    /// Rows that match one of the values, by what the index gives for a predicate.
    fn searched_for(
        &self,
        index: (&str, IndexPart, &str),
        predicate: &Predicate,
        values: &[i32],
    ) -> BTreeSet<Spot> {
        let table = table(self.engine);
        let comparator = ClusteringComparator::of(&table);
        let mut candidates = self.engine.index_search(&table, index.2, predicate).unwrap();
        let mut found = BTreeSet::new();
        let mut last: Option<Candidate> = None;
        while let Some(candidate) = candidates.next().unwrap() {
            if let Some(last) = &last {
                assert_eq!(
                    last.place.compare(&candidate.place, &comparator),
                    Ordering::Less,
                    "{index:?}: {last:?} {candidate:?}"
                );
            }
            let rows = self.at(&candidate.place);
            let is_met = |row: &&Row| match &candidate.place.row {
                RowPart::Static => row.clustering.is_empty(),
                RowPart::Row(clustering) => row.clustering == *clustering,
            };
            candidates.met(&candidate, rows.iter().map(|(_, row)| row).find(is_met));
            let is_wanted = |key: &DecoratedKey, row: &Row| {
                let mut values = values.iter();
                values.any(|value| self.matches(index, *value, key, row))
            };
            let matching = rows.iter().filter(|(key, row)| is_wanted(key, row));
            found.extend(matching.map(|(key, row)| spot(key, row)));
            last = Some(candidate);
        }
        found
    }

    fn matches(
        &self,
        (column, part, name): (&str, IndexPart, &str),
        value: i32,
        key: &DecoratedKey,
        row: &Row,
    ) -> bool {
        let table = table(self.engine);
        let column = table.column_named(column).unwrap();
        match column.name.as_str() {
            "q" => return *key == super::table::key(&partition_text(key), value),
            "c" => return row.clustering == Clustering::of([int(value)]),
            _ => {}
        }
        match row.column(column.id) {
            None => false,
            Some(Data::Simple(cell)) if column.name == "f" => cell.value == list_of(value),
            Some(Data::Simple(cell)) => cell.value == int(value),
            Some(Data::Complex(complex)) => complex.cells.iter().any(|(path, cell)| match part {
                IndexPart::Keys => *path == int(value),
                IndexPart::Entries => *path == int(value % 3) && cell.value == int(value),
                _ if name.ends_with("_n") => *path == int(value),
                _ => cell.value == int(value),
            }),
        }
    }

    /// Asserts that every index finds what a scan finds.
    pub fn check(&self, context: &str, indexes: &[(&str, IndexPart, &str)], values: i32) {
        let rows = self.scan();
        for index in indexes {
            for value in 0..values {
                let scanned = self.scanned(&rows, *index, value);
                let searched = self.searched(*index, value);
                assert_eq!(searched, scanned, "{context}: {index:?} = {value}");
            }
            let Some(range) = from_on(*index, values / 2) else {
                continue;
            };
            let wanted: Vec<i32> = (values / 2..values).collect();
            let scanned = wanted
                .iter()
                .flat_map(|value| self.scanned(&rows, *index, *value));
            let scanned: BTreeSet<Spot> = scanned.collect();
            let searched = self.searched_for(*index, &range, &wanted);
            assert_eq!(searched, scanned, "{context}: {index:?} {range:?}");
        }
    }
}

fn partition_text(key: &DecoratedKey) -> String {
    let len = usize::from(u16::from_be_bytes([key.key[0], key.key[1]]));
    String::from_utf8(key.key[2..2 + len].to_vec()).unwrap()
}
