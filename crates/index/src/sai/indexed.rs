//! The terms of a row, and the ranges of terms that a predicate needs. Pure.

use ilion_rows::{Cell, ColumnData, Data, DecoratedKey, Row};
use ilion_schema::{ColumnId, ColumnKind, IndexPart};
use ilion_types::{CqlType, decode_composite};

use super::analyzer::Analyzer;
use super::lookup::{TermRange, after_prefix};
use super::options::INDEX_ANALYZER;
use super::patterns::Patterns;
use super::sasi;
use super::term::{TermType, cut, encode_entry, encode_entry_key};
use crate::{Definition, Limit, Predicate};

/// The source of a row's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A component of the partition key; `None` if the key has one column.
    PartitionKey(Option<usize>),
    Clustering(usize),
    /// The value of a cell.
    Cell,
    /// The paths of the cells of a set.
    Elements,
    /// The paths of the cells of a map.
    Keys,
    /// The values of the cells: elements of a list, values of a map.
    Values,
    /// Keys and values of a map, together.
    Entries,
}

/// The indexed values of a table, and how they become terms.
#[derive(Clone, Debug)]
pub(super) struct Indexed {
    source: Source,
    column: ColumnId,
    is_static: bool,
    /// The type of the keys of entries.
    key_type: TermType,
    /// The type of values.
    ty: TermType,
    /// True if the index serves ranges of values.
    is_ordered: bool,
    /// True if texts are only found by their tokens, with `:`.
    is_matching: bool,
    analyzer: Analyzer,
    patterns: Patterns,
}

impl Indexed {
    /// For a storage-attached index.
    pub(super) fn of(definition: &Definition, analyzer: Analyzer, patterns: Patterns) -> Self {
        let column = &definition.column;
        let (source, ty) = match (column.kind, &column.ty) {
            (ColumnKind::PartitionKey, ty) => {
                let is_composite = definition.table.partition_key().len() > 1;
                let position = is_composite.then_some(usize::from(column.position));
                (Source::PartitionKey(position), ty)
            }
            (ColumnKind::Clustering, ty) => (Source::Clustering(usize::from(column.position)), ty),
            (_, ty) => source_of(ty, definition.part),
        };
        let key_type = match &column.ty {
            CqlType::Map { key, .. } if source == Source::Entries => TermType::of(key),
            _ => TermType::Bytes,
        };
        Self {
            source,
            column: column.id,
            is_static: definition.is_of_static(),
            key_type,
            ty: TermType::of(ty),
            is_ordered: is_ordered(ty),
            is_matching: definition.option(INDEX_ANALYZER).is_some(),
            analyzer,
            patterns,
        }
    }

    /// For a SASI index: all types are ordered, except literal text.
    pub(super) fn of_sasi(definition: &Definition, options: &sasi::Options) -> Self {
        let indexed = Self::of(definition, options.analyzer.clone(), options.patterns);
        Self {
            is_ordered: !options.is_literal && options.analyzer.is_none(),
            ..indexed
        }
    }

    /// True if each partition has one entry, which stands for all its rows.
    pub(super) fn is_of_partitions(&self) -> bool {
        matches!(self.source, Source::PartitionKey(_))
    }

    /// True if a row has at most one term.
    pub(super) fn has_one_term(&self) -> bool {
        matches!(
            self.source,
            Source::PartitionKey(_) | Source::Clustering(_) | Source::Cell
        ) && self.analyzer.is_none()
            && self.patterns == Patterns::None
    }

    /// The column whose cell has the only term of a row, unanalyzed; `None` if terms have another source.
    #[inline]
    pub(super) fn only_cell(&self) -> Option<ColumnId> {
        (self.source == Source::Cell && self.has_one_term()).then_some(self.column)
    }

    /// Appends the whole term of a value that is not analyzed.
    #[inline]
    pub(super) fn encode_term(&self, value: &[u8], out: &mut Vec<u8>) {
        self.ty.encode(value, out);
    }

    /// True if static rows are indexed, and no others.
    pub(super) fn is_of_static(&self) -> bool {
        self.is_static
    }

    /// A description of the terms. A file with another description is built again.
    pub(super) fn words(&self) -> String {
        let Self {
            source,
            key_type,
            ty,
            analyzer,
            patterns,
            ..
        } = self;
        format!("{source:?} {key_type:?} {ty:?} {analyzer:?} {patterns:?}")
    }

    /// The cells that may have terms; `None` if the index does not cover the row.
    fn data<'r>(&self, row: &'r Row) -> Option<&'r Data> {
        let index = row
            .columns
            .binary_search_by_key(&self.column, |entry: &ColumnData| entry.column)
            .ok()?;
        Some(&row.columns[index].data)
    }

    /// True if two versions of a row certainly have the same terms.
    #[inline]
    pub(super) fn is_same(&self, before: &Row, after: &Row) -> bool {
        match self.source {
            Source::PartitionKey(_) => has_content(before) || !has_content(after),
            Source::Clustering(_) => has_content(before) == has_content(after),
            _ => self.data(before) == self.data(after),
        }
    }

    /// Passes every term of a row to `take`; a term may come more than once. `buffer` is reused memory.
    #[inline]
    pub(super) fn each_term<E>(
        &self,
        key: &DecoratedKey,
        row: &Row,
        is_static_row: bool,
        buffer: &mut Vec<u8>,
        take: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.source {
            Source::PartitionKey(_) if !has_content(row) => Ok(()),
            Source::PartitionKey(None) => self.each_of_value(&key.key, buffer, take),
            Source::PartitionKey(Some(position)) => {
                let parts = decode_composite(&key.key).unwrap_or_default();
                let part = parts.get(position).copied().unwrap_or_default();
                self.each_of_value(part, buffer, take)
            }
            _ if is_static_row != self.is_static => Ok(()),
            Source::Clustering(position) => match row.clustering.values().get(position) {
                Some(Some(value)) if has_content(row) => self.each_of_value(value, buffer, take),
                _ => Ok(()),
            },
            _ => match self.data(row) {
                Some(Data::Simple(cell)) if !cell.is_tombstone() => {
                    self.each_of_value(&cell.value, buffer, take)
                }
                Some(Data::Complex(complex)) => complex
                    .cells
                    .iter()
                    .filter(|(_, cell)| !cell.is_tombstone())
                    .try_for_each(|(path, cell)| self.each_of_cell(path, cell, buffer, take)),
                _ => Ok(()),
            },
        }
    }

    fn each_of_cell<E>(
        &self,
        path: &[u8],
        cell: &Cell,
        buffer: &mut Vec<u8>,
        take: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.source {
            Source::Elements | Source::Keys => self.each_of_value(path, buffer, take),
            Source::Entries => {
                buffer.clear();
                encode_entry(&self.key_type, path, &self.ty, &cell.value, buffer);
                take(cut(buffer))
            }
            _ => self.each_of_value(&cell.value, buffer, take),
        }
    }

    #[inline]
    fn each_of_value<E>(
        &self,
        value: &[u8],
        buffer: &mut Vec<u8>,
        take: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.analyzer.is_none() && self.patterns == Patterns::None {
            buffer.clear();
            self.ty.encode(value, buffer);
            return take(cut(buffer));
        }
        self.analyzer.each_token(value, &mut |token| {
            self.patterns
                .each_term(token, buffer, &mut |term| take(cut(term)))
        })
    }

    /// The ranges of terms that every matching row has a term in; `None` if the predicate is not served.
    pub(super) fn lookup(&self, predicate: &Predicate) -> Option<Vec<TermRange>> {
        let is_simple = matches!(
            self.source,
            Source::PartitionKey(_) | Source::Clustering(_) | Source::Cell
        );
        let is_values = matches!(self.source, Source::Elements | Source::Values);
        match predicate {
            Predicate::Matches(text) if is_simple && self.is_matching => Some(self.equal(text)),
            _ if self.is_matching => None,
            // Compat: SASI finds tokens by LIKE only.
            Predicate::Equal(_) | Predicate::AnyOf(_) if self.analyzer.splits() => None,
            Predicate::Equal(value) if is_simple => Some(self.equal(value)),
            Predicate::AnyOf(values) if is_simple => {
                Some(values.iter().flat_map(|value| self.equal(value)).collect())
            }
            Predicate::Range { from, to } if is_simple && self.is_ordered => {
                Some(vec![self.range(&[], from.as_ref(), to.as_ref())])
            }
            Predicate::Contains(value) if is_values => Some(self.equal(value)),
            Predicate::ContainsKey(key) if self.source == Source::Keys => Some(self.equal(key)),
            Predicate::Entry(key, value) if self.source == Source::Entries => {
                let mut term = Vec::new();
                encode_entry(&self.key_type, key, &self.ty, value, &mut term);
                Some(vec![TermRange::one(term)])
            }
            Predicate::EntryRange { key, from, to } if self.source == Source::Entries && self.is_ordered => {
                let mut prefix = Vec::new();
                encode_entry_key(&self.key_type, key, &mut prefix);
                Some(vec![self.range(&prefix, from.as_ref(), to.as_ref())])
            }
            like if is_simple => self.patterns.lookup(like, &self.analyzer),
            _ => None,
        }
    }

    /// Looks up a value. Of several tokens, any one is enough, since a matching row has all of them.
    fn equal(&self, value: &[u8]) -> Vec<TermRange> {
        if self.analyzer.is_none() && self.patterns == Patterns::None {
            let mut term = Vec::new();
            self.ty.encode(value, &mut term);
            return vec![TermRange::one(term)];
        }
        let token = self.analyzer.longest_token(value);
        token
            .map(|token| self.patterns.whole(&token))
            .into_iter()
            .collect()
    }

    fn range(&self, prefix: &[u8], from: Option<&Limit>, to: Option<&Limit>) -> TermRange {
        let term = |limit: &Limit| {
            let mut term = prefix.to_vec();
            self.ty.encode(&limit.value, &mut term);
            (term, limit.is_inclusive)
        };
        let after = || after_prefix(prefix).map(|after| (after, false));
        TermRange::between(
            Some(from.map_or_else(|| (prefix.to_vec(), true), term)),
            to.map(term).or_else(after),
        )
    }

    /// Whether a value matches; `None` means CQL's comparison.
    pub(super) fn passes(&self, predicate: &Predicate, value: &[u8]) -> Option<bool> {
        if self.is_matching {
            return match predicate {
                Predicate::Matches(wanted) => Some(self.analyzer.is_same(wanted, value)),
                _ => None,
            };
        }
        if self.analyzer.is_none() {
            return None;
        }
        let is_same = |wanted: &[u8]| self.analyzer.is_same(wanted, value);
        match predicate {
            Predicate::Equal(wanted) | Predicate::Contains(wanted) | Predicate::ContainsKey(wanted) => {
                Some(is_same(wanted))
            }
            Predicate::AnyOf(wanted) => Some(wanted.iter().any(|wanted| is_same(wanted))),
            like => self.patterns.passes(like, value, &self.analyzer),
        }
    }
}

/// The source and type of the terms of a column that is not part of the primary key.
fn source_of(ty: &CqlType, part: IndexPart) -> (Source, &CqlType) {
    match (ty, part) {
        (
            CqlType::List {
                element,
                frozen: false,
            },
            _,
        ) => (Source::Values, element),
        (
            CqlType::Set {
                element,
                frozen: false,
            },
            _,
        ) => (Source::Elements, element),
        (
            CqlType::Map {
                key, frozen: false, ..
            },
            IndexPart::Keys,
        ) => (Source::Keys, key),
        (
            CqlType::Map {
                value, frozen: false, ..
            },
            IndexPart::Entries,
        ) => (Source::Entries, value),
        (
            CqlType::Map {
                value, frozen: false, ..
            },
            _,
        ) => (Source::Values, value),
        _ => (Source::Cell, ty),
    }
}

/// Compat: `IndexTermType` of Cassandra 5.0: text, booleans, UUIDs and frozen values only serve equality.
fn is_ordered(ty: &CqlType) -> bool {
    !matches!(
        ty,
        CqlType::Text | CqlType::Ascii | CqlType::Boolean | CqlType::Uuid
    ) && !ty.is_collection()
        && !matches!(
            ty,
            CqlType::Tuple(_) | CqlType::Udt { .. } | CqlType::Vector { .. }
        )
}

/// True if the row may be live: it has more than a deletion.
fn has_content(row: &Row) -> bool {
    !row.liveness.is_none() || !row.columns.is_empty()
}
