//! Index searches by looking at every row, for tests of their callers. They also return rows that do not match.

use std::cmp::Ordering;

use bytes::Bytes;
use ilion_index::{
    Candidate, Candidates, Estimate, Limit, Place, Predicate, Ranked, RowPart, SecondaryIndex,
};
use ilion_rows::{ClusteringComparator, Cursor, Data, DecoratedKey, ReadError, Row, Unfiltered};
use ilion_schema::{ColumnKind, IndexPart};
use ilion_types::{CqlType, decode_composite};

struct Found {
    places: std::vec::IntoIter<Place>,
    comparator: ClusteringComparator,
    peeked: Option<Place>,
}

impl Candidates for Found {
    fn next(&mut self) -> Result<Option<Candidate>, ReadError> {
        let place = self.peeked.take().or_else(|| self.places.next());
        Ok(place.map(|place| Candidate { place, entry: None }))
    }

    fn seek(&mut self, wanted: &Place) -> Result<(), ReadError> {
        while let Some(place) = self.peeked.take().or_else(|| self.places.next()) {
            if place.compare(wanted, &self.comparator) != Ordering::Less {
                self.peeked = Some(place);
                break;
            }
        }
        Ok(())
    }
}

/// Places that match, and every fourth that does not.
pub fn search(
    index: &dyn SecondaryIndex,
    predicate: &Predicate,
    cursor: &mut dyn Cursor,
) -> Box<dyn Candidates> {
    let mut others = 0;
    let places = places(index, cursor, |values| {
        let is_match = values.iter().any(|value| matches(index, predicate, value));
        others += usize::from(!is_match);
        is_match || others % 4 == 0
    });
    Box::new(Found {
        places: places
            .into_iter()
            .map(|(place, _)| place)
            .collect::<Vec<_>>()
            .into_iter(),
        comparator: ClusteringComparator::of(&index.definition().table),
        peeked: None,
    })
}

pub fn estimate(index: &dyn SecondaryIndex, predicate: &Predicate, cursor: &mut dyn Cursor) -> Estimate {
    let matching = places(index, cursor, |values| {
        values.iter().any(|value| matches(index, predicate, value))
    });
    Estimate {
        rows: matching.len() as u64,
        files: 1,
    }
}

struct Listed(std::vec::IntoIter<(Place, f32)>);

impl Ranked for Listed {
    fn next(&mut self) -> Result<Option<(Place, f32)>, ReadError> {
        Ok(self.0.next())
    }
}

/// Places by nearness; some also come too early.
pub fn nearest(index: &dyn SecondaryIndex, vector: &[f32], cursor: &mut dyn Cursor) -> Box<dyn Ranked> {
    let name = index
        .definition()
        .option("similarity_function")
        .unwrap_or("cosine");
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let score = |other: &[f32]| match name {
        "euclidean" => {
            let far: f32 = vector.iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum();
            1.0 / (1.0 + far)
        }
        "dot_product" => (1.0 + dot(vector, other)) / 2.0,
        _ => (1.0 + dot(vector, other) / (dot(vector, vector) * dot(other, other)).sqrt()) / 2.0,
    };
    let floats = |bytes: &[u8]| -> Vec<f32> {
        let chunks = bytes.chunks_exact(4);
        chunks
            .map(|chunk| f32::from_be_bytes(chunk.try_into().unwrap()))
            .collect()
    };
    let mut ranked = Vec::new();
    for (number, (place, values)) in places(index, cursor, |_| true).into_iter().enumerate() {
        for value in values {
            let score = score(&floats(&value));
            if number % 3 == 0 {
                ranked.push((place.clone(), score + 0.5));
            }
            ranked.push((place.clone(), score));
        }
    }
    ranked.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    Box::new(Listed(ranked.into_iter()))
}

/// The places whose values are wanted, with the values.
fn places(
    index: &dyn SecondaryIndex,
    cursor: &mut dyn Cursor,
    mut is_wanted: impl FnMut(&[Bytes]) -> bool,
) -> Vec<(Place, Vec<Bytes>)> {
    let mut found = Vec::new();
    while let Some(head) = cursor.next_partition().unwrap() {
        let mut add = |row: &Row, part: RowPart| {
            let values = values_of(index, &head.key, row, part == RowPart::Static);
            if !values.is_empty() && is_wanted(&values) {
                let key = head.key.clone();
                found.push((Place { key, row: part }, values));
            }
        };
        if let Some(row) = &head.static_row {
            add(row, RowPart::Static);
        }
        while let Some(unfiltered) = cursor.next_unfiltered().unwrap() {
            if let Unfiltered::Row(row) = unfiltered {
                add(&row, RowPart::Row(row.clustering.clone()));
            }
        }
    }
    found
}

fn values_of(index: &dyn SecondaryIndex, key: &DecoratedKey, row: &Row, is_static: bool) -> Vec<Bytes> {
    let definition = index.definition();
    let column = &definition.column;
    match column.kind {
        ColumnKind::PartitionKey => {
            let components = decode_composite(&key.key).unwrap();
            vec![Bytes::copy_from_slice(components[usize::from(column.position)])]
        }
        ColumnKind::Clustering if is_static => Vec::new(),
        ColumnKind::Clustering => {
            let value = &row.clustering.values()[usize::from(column.position)];
            value.iter().cloned().collect()
        }
        ColumnKind::Static | ColumnKind::Regular if (column.kind == ColumnKind::Static) != is_static => {
            Vec::new()
        }
        ColumnKind::Static | ColumnKind::Regular => match row.column(column.id) {
            None => Vec::new(),
            Some(Data::Simple(cell)) if cell.is_tombstone() => Vec::new(),
            Some(Data::Simple(cell)) => vec![cell.value.clone()],
            Some(Data::Complex(complex)) => {
                let is_set = matches!(column.ty, CqlType::Set { .. });
                let live = complex.cells.iter().filter(|(_, cell)| !cell.is_tombstone());
                live.map(|(path, cell)| match definition.part {
                    IndexPart::Keys => path.clone(),
                    IndexPart::Entries => entry(path, &cell.value),
                    _ if is_set => path.clone(),
                    _ => cell.value.clone(),
                })
                .collect()
            }
        },
    }
}

fn entry(key: &[u8], value: &[u8]) -> Bytes {
    let len = u32::try_from(key.len()).unwrap().to_be_bytes();
    Bytes::from([&len, key, value].concat())
}

fn element_type(definition: &ilion_index::Definition) -> CqlType {
    match (&definition.column.ty, definition.part) {
        (CqlType::Map { key, .. }, IndexPart::Keys) => (**key).clone(),
        (CqlType::Map { value, .. }, IndexPart::Values) => (**value).clone(),
        (CqlType::List { element, .. } | CqlType::Set { element, .. }, IndexPart::Values) => {
            (**element).clone()
        }
        (ty, _) => ty.clone(),
    }
}

fn matches(index: &dyn SecondaryIndex, predicate: &Predicate, value: &[u8]) -> bool {
    if let Some(passes) = index.passes(predicate, value) {
        return passes;
    }
    let ty = element_type(index.definition());
    let within = |from: &Option<Limit>, to: &Option<Limit>| {
        let holds = |limit: &Option<Limit>, wanted: Ordering| {
            limit.as_ref().is_none_or(|limit| {
                let order = ty.compare(value, &limit.value);
                order == wanted || (limit.is_inclusive && order.is_eq())
            })
        };
        holds(from, Ordering::Greater) && holds(to, Ordering::Less)
    };
    match predicate {
        Predicate::Equal(wanted) | Predicate::Contains(wanted) | Predicate::ContainsKey(wanted) => {
            ty.compare(value, wanted).is_eq()
        }
        Predicate::AnyOf(wanted) => wanted.iter().any(|wanted| ty.compare(value, wanted).is_eq()),
        Predicate::Range { from, to } => within(from, to),
        Predicate::Entry(key, wanted) => value == entry(key, wanted),
        Predicate::LikePrefix(word) => value.starts_with(word),
        Predicate::LikeSuffix(word) => value.ends_with(word),
        Predicate::LikeContains(word) => value.windows(word.len()).any(|part| part == &**word),
        Predicate::LikeEqual(word) => value == &**word,
        Predicate::EntryRange { .. } | Predicate::Matches(_) => false,
    }
}
