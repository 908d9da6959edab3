//! The facts of cells beside their values: `writetime`, `maxwritetime` and `ttl`.
//!
//! Of an unfrozen collection, `writetime` and `ttl` are lists with one member for each element; of an unfrozen user type,
//! one for each field.

use bytes::Bytes;
use ilion_rows::{Cell, ComplexColumn, Data};
use ilion_schema::Column;
use ilion_types::CqlType;

use super::RowView;
use super::collection_parts::{element_key, is_within, list_with_nulls, slice_end};
use super::row_view::field_index;
use crate::Error;
use crate::context::Execution;
use crate::term::Term;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    Writetime,
    MaxWritetime,
    Ttl,
}

/// The part of a column whose cells a fact is about.
#[derive(Debug)]
pub(super) enum FactTarget {
    Whole,
    Element(Term),
    Slice(Option<Term>, Option<Term>),
    Field(usize),
}

impl Fact {
    pub fn name(self) -> &'static str {
        match self {
            Self::Writetime => "writetime",
            Self::MaxWritetime => "maxwritetime",
            Self::Ttl => "ttl",
        }
    }

    /// The type of the fact for one cell.
    fn scalar_type(self) -> CqlType {
        match self {
            Self::Writetime | Self::MaxWritetime => CqlType::BigInt,
            Self::Ttl => CqlType::Int,
        }
    }

    /// The type of the fact for a part of a column.
    pub fn result_type(self, column: &Column, part: &FactTarget) -> CqlType {
        let is_one = match part {
            FactTarget::Whole | FactTarget::Slice(..) => !column.is_complex(),
            FactTarget::Element(_) | FactTarget::Field(_) => true,
        };
        if is_one || self == Self::MaxWritetime {
            return self.scalar_type();
        }
        CqlType::List {
            element: self.scalar_type().into(),
            frozen: false,
        }
    }

    /// The value of the fact for a row.
    pub fn of(
        self,
        row: RowView<'_>,
        column: &Column,
        part: &FactTarget,
        execution: &Execution<'_>,
    ) -> Result<Option<Bytes>, Error> {
        match row.data(column) {
            None => Ok(None),
            Some(Data::Simple(cell)) => Ok(self.of_cell(cell, execution)),
            Some(Data::Complex(complex)) => self.of_cells(complex, column, part, execution),
        }
    }

    fn of_cell(self, cell: &Cell, execution: &Execution<'_>) -> Option<Bytes> {
        match self {
            Self::Writetime | Self::MaxWritetime => {
                Some(Bytes::copy_from_slice(&cell.timestamp_micros.to_be_bytes()))
            }
            Self::Ttl => {
                let left = i64::from(cell.local_deletion_secs) - execution.now_secs;
                let left = i32::try_from(left.max(0)).unwrap_or(i32::MAX);
                cell.is_expiring()
                    .then(|| Bytes::copy_from_slice(&left.to_be_bytes()))
            }
        }
    }

    fn of_cells(
        self,
        complex: &ComplexColumn,
        column: &Column,
        part: &FactTarget,
        execution: &Execution<'_>,
    ) -> Result<Option<Bytes>, Error> {
        let wanted = wanted_paths(column, part, execution)?;
        let cells = complex.cells.iter().filter(|(path, _)| wanted.has(path));
        if self == Self::MaxWritetime {
            let newest = cells.max_by_key(|(_, cell)| cell.timestamp_micros);
            return Ok(newest.and_then(|(_, cell)| self.of_cell(cell, execution)));
        }
        if matches!(part, FactTarget::Element(_) | FactTarget::Field(_)) {
            let mut cells = cells;
            return Ok(cells.next().and_then(|(_, cell)| self.of_cell(cell, execution)));
        }
        let facts: Vec<Option<Bytes>> = match &column.ty {
            CqlType::Udt { definition, .. } => (0..definition.fields.len())
                .map(|index| {
                    let mut cells = complex.cells.iter();
                    let found = cells.find(|(path, _)| field_index(path) == Some(index));
                    found.and_then(|(_, cell)| self.of_cell(cell, execution))
                })
                .collect(),
            _ => cells.map(|(_, cell)| self.of_cell(cell, execution)).collect(),
        };
        Ok((!facts.is_empty()).then(|| list_with_nulls(&facts)))
    }
}

/// The cell paths of a part.
enum Paths<'c> {
    All,
    Field(usize),
    Between(&'c CqlType, Option<Bytes>, Option<Bytes>),
}

impl Paths<'_> {
    fn has(&self, path: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::Field(index) => field_index(path) == Some(*index),
            Self::Between(ty, from, to) => is_within(ty, path, from.as_deref(), to.as_deref()),
        }
    }
}

fn wanted_paths<'c>(
    column: &'c Column,
    part: &FactTarget,
    execution: &Execution<'_>,
) -> Result<Paths<'c>, Error> {
    let key_type = match &column.ty {
        CqlType::Map { key, .. } => &**key,
        CqlType::Set { element, .. } | CqlType::List { element, .. } => &**element,
        other => other,
    };
    Ok(match part {
        FactTarget::Whole => Paths::All,
        FactTarget::Field(index) => Paths::Field(*index),
        FactTarget::Element(key) => {
            let key = element_key(key, &column.name, execution)?;
            Paths::Between(key_type, Some(key.clone()), Some(key))
        }
        FactTarget::Slice(from, to) => Paths::Between(
            key_type,
            slice_end(from.as_ref(), &column.name, execution)?,
            slice_end(to.as_ref(), &column.name, execution)?,
        ),
    })
}
