//! A model: rows in a list, columns of every kind, and the rows that match a predicate by CQL's comparison.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use ilion_env::Seeded;
use ilion_rows::{
    Cell, Clustering, ClusteringComparator, ColumnData, ComplexColumn, Data, DecoratedKey, DeletionTime,
    Liveness, Row,
};
use ilion_schema::{
    ClusteringOrder, ColumnId, ColumnKind, IndexKind, IndexSchema, TableBuilder, TableId, TableSchema,
};
use ilion_types::{CqlType, Partitioner, decode_composite, encode_composite};

use super::super::indexed::Indexed;
use super::super::options;
use super::super::patterns::Patterns;
use crate::{Definition, IndexClass, Limit, Place, Predicate, RowPart, Sai, SecondaryIndex};

fn ty(name: &str) -> CqlType {
    CqlType::parse_cql(name, "ks", &|_| None).unwrap()
}

pub(super) fn table() -> Arc<TableSchema> {
    let mut builder = TableBuilder::new("ks", "t", TableId::of_system_table("ks", "t"))
        .partition_key("p", CqlType::Int)
        .partition_key("q", CqlType::Text)
        .clustering("a", CqlType::Int, ClusteringOrder::Desc)
        .clustering("b", CqlType::Text, ClusteringOrder::Asc)
        .static_column("s", CqlType::BigInt);
    for (name, type_name) in REGULARS {
        builder = builder.regular(name, ty(type_name));
    }
    builder.build()
}

const REGULARS: [(&str, &str); 12] = [
    ("i", "int"),
    ("t", "text"),
    ("d", "decimal"),
    ("f", "double"),
    ("v", "varint"),
    ("u", "uuid"),
    ("ip", "inet"),
    ("bo", "boolean"),
    ("l", "list<int>"),
    ("st", "set<text>"),
    ("m", "map<text, int>"),
    ("fl", "frozen<list<int>>"),
];

/// The indexed column, as in the `target` option.
#[derive(Clone, Debug)]
pub(super) struct Target(&'static str);

const TARGETS: [&str; 19] = [
    "p",
    "q",
    "a",
    "b",
    "s",
    "i",
    "t",
    "d",
    "f",
    "v",
    "u",
    "ip",
    "bo",
    "values(l)",
    "values(st)",
    "keys(m)",
    "values(m)",
    "entries(m)",
    "full(fl)",
];

impl Target {
    pub(super) fn all() -> Vec<Self> {
        TARGETS.into_iter().map(Self).collect()
    }

    pub(super) fn named(name: &'static str) -> Self {
        Self(name)
    }

    pub(super) fn is_of_partitions(&self) -> bool {
        matches!(self.0, "p" | "q")
    }

    pub(super) fn definition(&self, table: &Arc<TableSchema>) -> Definition {
        let options = BTreeMap::from([("target".to_owned(), self.0.to_owned())]);
        let schema = IndexSchema {
            name: "idx".to_owned(),
            table: "t".to_owned(),
            kind: IndexKind::Custom,
            options,
        };
        Definition::of(&Arc::new(schema), table).unwrap()
    }

    pub(super) fn indexed(&self, table: &Arc<TableSchema>) -> Indexed {
        let definition = self.definition(table);
        let analyzer = options::check(&definition).unwrap();
        Indexed::of(&definition, analyzer, Patterns::None)
    }

    pub(super) fn open(&self, table: &Arc<TableSchema>) -> Arc<dyn SecondaryIndex> {
        Sai.open(self.definition(table)).unwrap()
    }

    fn column_and_type(&self) -> (&'static str, CqlType) {
        let name = self.0;
        let inner = name
            .split_once('(')
            .map_or(name, |(_, rest)| &rest[..rest.len() - 1]);
        let table = table();
        (inner, table.column_named(inner).unwrap().ty.clone())
    }

    pub(super) fn random_predicate(&self, random: &mut Seeded) -> Predicate {
        let (_, ty) = self.column_and_type();
        let (text, int) = (CqlType::Text, CqlType::Int);
        match self.0 {
            "values(l)" | "values(m)" => Predicate::Contains(random_value(&int, random)),
            "values(st)" => Predicate::Contains(random_value(&text, random)),
            "keys(m)" => Predicate::ContainsKey(random_value(&text, random)),
            "entries(m)" if random.one_in(2) => {
                Predicate::Entry(random_value(&text, random), random_value(&int, random))
            }
            "entries(m)" => {
                let (from, to) = random_limits(&int, random);
                Predicate::EntryRange {
                    key: random_value(&text, random),
                    from,
                    to,
                }
            }
            "full(fl)" | "t" | "q" | "b" | "u" | "bo" => Predicate::Equal(random_value(&ty, random)),
            _ => match random.below(5) {
                0 => Predicate::Equal(random_value(&ty, random)),
                1 => Predicate::AnyOf((0..3).map(|_| random_value(&ty, random)).collect()),
                _ => {
                    let (from, to) = random_limits(&ty, random);
                    Predicate::Range { from, to }
                }
            },
        }
    }
}

fn random_limits(ty: &CqlType, random: &mut Seeded) -> (Option<Limit>, Option<Limit>) {
    let mut limit = || Limit {
        value: random_value(ty, random),
        is_inclusive: random.one_in(2),
    };
    let limits = (limit(), limit());
    match random.below(3) {
        0 => (Some(limits.0), None),
        1 => (None, Some(limits.1)),
        _ => (Some(limits.0), Some(limits.1)),
    }
}

fn random_value(ty: &CqlType, random: &mut Seeded) -> Bytes {
    let small = random.below(12) as i64 - 6;
    let number = if random.one_in(2) {
        small
    } else {
        random.next_u64() as i64 >> random.below(64)
    };
    let bytes = match ty {
        CqlType::Int => (number as i32).to_be_bytes().to_vec(),
        CqlType::BigInt => number.to_be_bytes().to_vec(),
        CqlType::Boolean => vec![random.below(2) as u8],
        CqlType::Varint => ilion_types::encode_varint_i64(number),
        CqlType::Decimal => {
            let scale = (random.below(4) as i32 - 1).to_be_bytes();
            [&scale[..], &ilion_types::encode_varint_i64(small)].concat()
        }
        CqlType::Double if random.one_in(20) => (-f64::NAN).to_be_bytes().to_vec(),
        CqlType::Double => (small as f64 / 4.0).to_be_bytes().to_vec(),
        CqlType::Uuid => (0..16).map(|_| random.below(2) as u8).collect(),
        CqlType::Inet => {
            let len = if random.one_in(2) { 4 } else { 16 };
            (0..len).map(|_| random.below(2) as u8 * 200).collect()
        }
        CqlType::List { element, .. } => {
            let elements: Vec<Bytes> = (0..random.below(3))
                .map(|_| random_value(element, random))
                .collect();
            ilion_types::encode_list(elements.iter().map(|element| &element[..]))
        }
        _ if random.one_in(30) => vec![b'x'; 1015],
        _ => (0..random.below(4))
            .map(|_| b'a' + random.below(3) as u8)
            .collect(),
    };
    bytes.into()
}

pub(super) struct Model {
    pub(super) table: Arc<TableSchema>,
    /// In table order.
    pub(super) rows: Vec<(Place, Row)>,
}

type Change = (Place, Option<Row>, Row);

impl Model {
    pub(super) fn new(count: usize, random: &mut Seeded) -> Self {
        let mut model = Self {
            table: table(),
            rows: Vec::new(),
        };
        for _ in 0..count {
            let place = model.random_place(random);
            let row = model.random_row(&place, random);
            model.put(place, row);
        }
        model
    }

    pub(super) fn random_place(&self, random: &mut Seeded) -> Place {
        let p = (random.below(15) as i32 - 5).to_be_bytes();
        let q = [b'x', b'y'][random.below(2) as usize];
        let mut key = Vec::new();
        encode_composite([&p[..], &[q]], &mut key).unwrap();
        let row = if random.one_in(6) {
            RowPart::Static
        } else {
            let b = random_value(&CqlType::Text, random);
            RowPart::Row(Clustering::of([random_value(&CqlType::Int, random), b]))
        };
        Place {
            key: DecoratedKey::new(Partitioner::Murmur3, key.into()),
            row,
        }
    }

    fn random_row(&self, place: &Place, random: &mut Seeded) -> Row {
        let (clustering, kind) = match &place.row {
            RowPart::Static => (Clustering::empty(), ColumnKind::Static),
            RowPart::Row(clustering) => (clustering.clone(), ColumnKind::Regular),
        };
        let mut row = Row::empty(clustering);
        if kind == ColumnKind::Regular && random.one_in(2) {
            row.liveness = Liveness::live(1);
        }
        if random.one_in(10) {
            // Only a deletion: such a row cannot be live.
            row.liveness = Liveness::NONE;
            row.deletion = DeletionTime::new(5, 5);
            return row;
        }
        let columns = if kind == ColumnKind::Static {
            self.table.statics().collect::<Vec<_>>()
        } else {
            self.table.regulars().collect()
        };
        for column in columns {
            if random.one_in(3) {
                continue;
            }
            let data = random_data(&column.ty, random);
            row.columns.push(ColumnData {
                column: column.id,
                data,
            });
        }
        row.columns.sort_by_key(|data| data.column);
        row
    }

    fn find(&self, place: &Place) -> Result<usize, usize> {
        let comparator = ClusteringComparator::of(&self.table);
        self.rows
            .binary_search_by(|(known, _)| known.compare(place, &comparator))
    }

    fn put(&mut self, place: Place, row: Row) -> Option<Row> {
        match self.find(&place) {
            Ok(index) => Some(std::mem::replace(&mut self.rows[index].1, row)),
            Err(index) => {
                self.rows.insert(index, (place, row));
                None
            }
        }
    }

    /// Writes or removes a row.
    pub(super) fn random_change(&mut self, random: &mut Seeded) -> Change {
        let mut place = self.random_place(random);
        if random.one_in(2) && !self.rows.is_empty() {
            place = self.rows[random.below(self.rows.len() as u64) as usize].0.clone();
        }
        let mut after = self.random_row(&place, random);
        if random.one_in(5) {
            after = Row::empty(after.clustering);
        }
        let before = self.put(place.clone(), after.clone());
        (place, before, after)
    }

    /// Gives one of the rows that are not static another text; returns its place and the new row.
    pub(super) fn set_text(&mut self, which: usize, text: Bytes) -> (Place, Row) {
        let column = self.table.column_named("t").unwrap().id;
        let mut rows: Vec<&mut (Place, Row)> = self
            .rows
            .iter_mut()
            .filter(|(_, row)| !row.clustering.is_empty())
            .collect();
        let which = which % rows.len();
        let (place, row) = &mut *rows[which];
        row.columns.retain(|data| data.column != column);
        row.columns.push(ColumnData {
            column,
            data: Data::Simple(Cell::live(3, text)),
        });
        row.columns.sort_by_key(|data| data.column);
        (place.clone(), row.clone())
    }

    /// The places that an index of the target must return.
    pub(super) fn matching(&self, target: &Target, predicate: &Predicate) -> Vec<Place> {
        let (name, ty) = target.column_and_type();
        let column = self.table.column_named(name).unwrap().id;
        let is_match =
            |(place, row): &&(Place, Row)| self.is_match(target, predicate, (name, column, &ty), place, row);
        let matching = self.rows.iter().filter(is_match);
        let mut places: Vec<Place> = matching
            .map(|(place, _)| {
                if target.is_of_partitions() {
                    Place::start_of(place.key.clone())
                } else {
                    place.clone()
                }
            })
            .collect();
        places.dedup();
        places
    }

    fn is_match(
        &self,
        target: &Target,
        predicate: &Predicate,
        (name, column, ty): (&str, ColumnId, &CqlType),
        place: &Place,
        row: &Row,
    ) -> bool {
        let has_content = !row.liveness.is_none() || !row.columns.is_empty();
        let parts = decode_composite(&place.key.key).unwrap();
        let clustering = |index: usize| match &place.row {
            RowPart::Static => None,
            RowPart::Row(clustering) => clustering.values()[index].as_deref(),
        };
        let value = match name {
            "p" => has_content.then_some(parts[0]),
            "q" => has_content.then_some(parts[1]),
            "a" => clustering(0).filter(|_| has_content),
            "b" => clustering(1).filter(|_| has_content),
            _ => match row.column(column) {
                Some(Data::Simple(cell)) if !cell.is_tombstone() => Some(&cell.value[..]),
                Some(Data::Complex(complex)) => {
                    return complex
                        .cells
                        .iter()
                        .filter(|(_, cell)| !cell.is_tombstone())
                        .any(|(path, cell)| is_cell_match(target, predicate, path, &cell.value));
                }
                _ => None,
            },
        };
        value.is_some_and(|value| is_value_match(ty, predicate, value))
    }
}

fn is_cell_match(target: &Target, predicate: &Predicate, path: &[u8], value: &[u8]) -> bool {
    match predicate {
        Predicate::Contains(wanted) if target.0 == "values(st)" => path == wanted,
        Predicate::Contains(wanted) => value == wanted,
        Predicate::ContainsKey(wanted) => path == wanted,
        Predicate::Entry(key, wanted) => path == key && value == wanted,
        Predicate::EntryRange { key, from, to } => {
            let range = Predicate::Range {
                from: from.clone(),
                to: to.clone(),
            };
            path == key && is_value_match(&CqlType::Int, &range, value)
        }
        _ => false,
    }
}

fn is_value_match(ty: &CqlType, predicate: &Predicate, value: &[u8]) -> bool {
    let is_equal = |wanted: &Bytes| ty.compare(value, wanted).is_eq();
    match predicate {
        Predicate::Equal(wanted) => is_equal(wanted),
        Predicate::AnyOf(wanted) => wanted.iter().any(is_equal),
        Predicate::Range { from, to } => {
            let above = from.as_ref().is_none_or(|limit| {
                let order = ty.compare(value, &limit.value);
                order.is_gt() || (limit.is_inclusive && order.is_eq())
            });
            let below = to.as_ref().is_none_or(|limit| {
                let order = ty.compare(value, &limit.value);
                order.is_lt() || (limit.is_inclusive && order.is_eq())
            });
            above && below
        }
        _ => false,
    }
}

fn random_cell(ty: &CqlType, random: &mut Seeded) -> Cell {
    if random.one_in(8) {
        return Cell::tombstone(3, 3);
    }
    Cell::live(3, random_value(ty, random))
}

fn random_data(ty: &CqlType, random: &mut Seeded) -> Data {
    if !ty.is_multi_cell() {
        return Data::Simple(random_cell(ty, random));
    }
    let count = random.below(4);
    let mut cells: BTreeMap<Bytes, Cell> = BTreeMap::new();
    for number in 0..count {
        let (path, value) = match ty {
            CqlType::List { element, .. } => {
                (Bytes::from(vec![number as u8; 16]), random_cell(element, random))
            }
            CqlType::Set { element, .. } => {
                let mut cell = random_cell(element, random);
                cell.value = Bytes::new();
                (random_value(element, random), cell)
            }
            CqlType::Map { key, value, .. } => (random_value(key, random), random_cell(value, random)),
            _ => panic!("a collection"),
        };
        cells.insert(path, value);
    }
    Data::Complex(Box::new(ComplexColumn {
        deletion: DeletionTime::LIVE,
        cells: cells.into_iter().collect(),
    }))
}
