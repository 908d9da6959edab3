//! Finds the partitions of the hidden table for a predicate, decodes their rows to candidates, and finds stale entries.

use std::cmp::Ordering;
use std::path::PathBuf;

use bytes::Bytes;
use ilion_rows::{
    Bound, BoundKind, Cell, Clustering, Data, DecoratedKey, KeyBound, KeyRange, ReadError, Row, Values,
};
use ilion_types::{CqlType, decode_composite, encode_composite};

use super::TableIndex;
use super::hidden::{element_type, path_type};
use super::source::Source;
use crate::{Candidate, EntryMark, Place, Predicate, RowPart};

impl TableIndex {
    /// The indexed values that match a predicate; `None` if the index does not serve it.
    pub(super) fn values_of(&self, predicate: &Predicate) -> Option<Vec<Bytes>> {
        let is_set = matches!(self.definition.column.ty, CqlType::Set { .. });
        match (self.source, predicate) {
            (Source::PartitionKey(_) | Source::Clustering(_) | Source::Whole, Predicate::Equal(value)) => {
                Some(vec![value.clone()])
            }
            (Source::PartitionKey(_) | Source::Clustering(_) | Source::Whole, Predicate::AnyOf(values)) => {
                Some(values.clone())
            }
            (Source::Elements, Predicate::Contains(value)) => Some(vec![value.clone()]),
            (Source::Paths, Predicate::Contains(value)) if is_set => Some(vec![value.clone()]),
            (Source::Paths, Predicate::ContainsKey(key)) if !is_set => Some(vec![key.clone()]),
            (Source::Entries, Predicate::Entry(key, value)) => {
                let mut composite = Vec::new();
                match encode_composite([&key[..], &value[..]], &mut composite) {
                    Ok(()) => Some(vec![composite.into()]),
                    // Values that are too long for a key are not indexed.
                    Err(_) => Some(Vec::new()),
                }
            }
            _ => None,
        }
    }

    pub(super) fn ranges_of(&self, predicate: &Predicate) -> Option<Vec<KeyRange>> {
        let mut keys: Vec<DecoratedKey> = self
            .values_of(predicate)?
            .into_iter()
            .map(|value| self.value_key(value))
            .collect();
        keys.sort_unstable();
        keys.dedup_by(|a, b| a.token == b.token);
        Some(keys.into_iter().map(|key| self.range_of(key)).collect())
    }

    /// The range of all keys that are equal by the type: 1.0 and 1.00 are equal.
    fn range_of(&self, key: DecoratedKey) -> KeyRange {
        if !self
            .hidden
            .partition_key()
            .any(|column| is_spelled_in_ways(&column.ty))
        {
            return KeyRange::exactly(&key);
        }
        KeyRange {
            start: KeyBound::BeforeToken(key.token.clone()),
            end: KeyBound::AfterToken(key.token),
        }
    }

    pub(super) fn candidate_of(&self, value: &DecoratedKey, entry: &Row) -> Result<Candidate, ReadError> {
        let mut values = entry.clustering.values().iter().cloned();
        let key = values
            .next()
            .flatten()
            .ok_or_else(|| self.damage("a partition key"))?;
        let mut row = Values::new();
        for (position, _) in self.definition.table.clustering().enumerate() {
            row.push(match self.source {
                Source::Clustering(indexed) if indexed == position => Some(value.key.clone()),
                _ => values
                    .next()
                    .ok_or_else(|| self.damage("as many clusterings as its table"))?,
            });
        }
        let is_static = !row.is_empty() && row.iter().all(Option::is_none);
        Ok(Candidate {
            place: Place {
                key: DecoratedKey::new(self.definition.partitioner, key),
                row: match is_static || self.definition.is_of_static() {
                    true => RowPart::Static,
                    false => RowPart::Row(Clustering::new(row)),
                },
            },
            entry: Some(EntryMark {
                value: value.clone(),
                clustering: entry.clustering.clone(),
                timestamp_micros: entry.liveness.timestamp_micros,
                is_expiring: entry.liveness.ttl_secs != ilion_rows::NO_TTL,
            }),
        })
    }

    fn damage(&self, expected: &str) -> ReadError {
        ReadError::Corrupt {
            file: PathBuf::from(&self.hidden.name),
            offset: 0,
            expected: expected.to_owned(),
        }
    }

    pub(super) fn bound_before(&self, place: &Place) -> Bound {
        let mut values = Values::new();
        values.push(Some(place.key.key.clone()));
        if let RowPart::Row(clustering) = &place.row {
            let kept = clustering.values().iter().enumerate();
            values.extend(
                kept.filter(|(position, _)| self.source != Source::Clustering(*position))
                    .map(|(_, value)| value.clone()),
            );
        }
        Bound::new(BoundKind::InclStart, values)
    }

    pub(super) fn is_entry_stale(&self, entry: &EntryMark, row: Option<&Row>) -> bool {
        let Some(row) = row else {
            return true;
        };
        let column = &self.definition.column;
        let value = &entry.value.key;
        match self.source {
            Source::PartitionKey(_) | Source::Clustering(_) => false,
            Source::Whole => match row.column(column.id) {
                Some(Data::Simple(cell)) => column.ty.compare(&cell.value, value) != Ordering::Equal,
                _ => true,
            },
            Source::Paths => cell_at(row, column, value).is_none(),
            Source::Elements => {
                let has_value =
                    |cell: &Cell| element_type(&column.ty).compare(&cell.value, value) == Ordering::Equal;
                match entry.clustering.values().last() {
                    Some(Some(path)) => !cell_at(row, column, path).is_some_and(has_value),
                    // Compat: Cassandra does not record the element of a static collection.
                    _ => !cells_of(row, column).iter().any(|(_, cell)| has_value(cell)),
                }
            }
            Source::Entries => match decode_composite(value).as_deref() {
                Ok([path, element]) => {
                    let is_same = |cell: &Cell| {
                        element_type(&column.ty).compare(&cell.value, element) == Ordering::Equal
                    };
                    !cell_at(row, column, path).is_some_and(is_same)
                }
                _ => true,
            },
        }
    }
}

fn cells_of<'r>(row: &'r Row, column: &ilion_schema::Column) -> &'r [(Bytes, Cell)] {
    match row.column(column.id) {
        Some(Data::Complex(complex)) => &complex.cells,
        _ => &[],
    }
}

fn cell_at<'r>(row: &'r Row, column: &ilion_schema::Column, path: &[u8]) -> Option<&'r Cell> {
    let ty = path_type(&column.ty);
    let found = cells_of(row, column)
        .iter()
        .find(|(known, _)| ty.compare(known, path) == Ordering::Equal)?;
    Some(&found.1).filter(|cell| !cell.is_tombstone())
}

/// True if values with different bytes may be equal by the type.
fn is_spelled_in_ways(ty: &CqlType) -> bool {
    match ty {
        CqlType::Ascii
        | CqlType::BigInt
        | CqlType::Blob
        | CqlType::Date
        | CqlType::Inet
        | CqlType::Int
        | CqlType::SmallInt
        | CqlType::Text
        | CqlType::Time
        | CqlType::Timestamp
        | CqlType::TimeUuid
        | CqlType::TinyInt
        | CqlType::Uuid => false,
        CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
            is_spelled_in_ways(element)
        }
        CqlType::Map { key, value, .. } => is_spelled_in_ways(key) || is_spelled_in_ways(value),
        _ => true,
    }
}
