//! The source of the values of a table index.

use ilion_schema::{ColumnKind, IndexPart};
use ilion_types::CqlType;

use crate::{Definition, Error};

/// The source of indexed values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A component of the partition key.
    PartitionKey(usize),
    /// A clustering column.
    Clustering(usize),
    /// The whole value of a column, including frozen collections.
    Whole,
    /// Elements of a set, keys of a map.
    Paths,
    /// Elements of a list, values of a map.
    Elements,
    /// Keys of a map with their values.
    Entries,
}

impl Source {
    pub(super) fn of(definition: &Definition) -> Result<Self, Error> {
        let column = &definition.column;
        if !column.ty.is_multi_cell() {
            return Ok(match column.kind {
                ColumnKind::PartitionKey => Self::PartitionKey(usize::from(column.position)),
                ColumnKind::Clustering => Self::Clustering(usize::from(column.position)),
                ColumnKind::Static | ColumnKind::Regular => Self::Whole,
            });
        }
        match (&column.ty, definition.part) {
            (CqlType::Set { .. }, _) | (CqlType::Map { .. }, IndexPart::Keys) => Ok(Self::Paths),
            (CqlType::Map { .. }, IndexPart::Entries) => Ok(Self::Entries),
            (CqlType::List { .. } | CqlType::Map { .. }, _) => Ok(Self::Elements),
            _ => Err(Error::Invalid(format!(
                "Cannot create index on non-frozen UDT column {}",
                column.name
            ))),
        }
    }

    /// True if an entry stands for a whole row, not for a cell.
    pub(super) fn is_of_rows(self) -> bool {
        matches!(self, Self::PartitionKey(_) | Self::Clustering(_))
    }
}
