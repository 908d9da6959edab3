//! A row in the form of CQL: partition key, clustering, static and regular columns side by side.

use bytes::Bytes;
use ilion_rows::{Cell, Clustering, ComplexColumn, Data, Row, counter};
use ilion_schema::{Column, ColumnKind, TableSchema};
use ilion_types::{CqlType, decode_composite, encode_list, encode_map, encode_tuple};
use smallvec::{SmallVec, smallvec};

use crate::Error;

/// A row before selection. It has only live data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowView<'a> {
    /// Components of the partition key.
    pub key: &'a [Bytes],
    /// The static row of the partition.
    pub static_row: Option<&'a Row>,
    /// The row; `None` if the partition has only its static row.
    pub row: Option<&'a Row>,
}

impl<'a> RowView<'a> {
    /// The clustering; `None` without a row.
    pub fn clustering(&self) -> Option<&'a Clustering> {
        self.row.map(|row| &row.clustering)
    }

    /// The data of a static or regular column.
    #[inline]
    pub fn data(&self, column: &Column) -> Option<&'a Data> {
        match column.kind {
            ColumnKind::Static => self.static_row?.column(column.id),
            ColumnKind::Regular => self.row?.column(column.id),
            ColumnKind::PartitionKey | ColumnKind::Clustering => None,
        }
    }

    /// The serialized value as clients see it; `None` if it is null.
    pub fn value(&self, column: &Column) -> Option<Bytes> {
        match column.kind {
            ColumnKind::PartitionKey => self.key.get(usize::from(column.position)).cloned(),
            ColumnKind::Clustering => self.clustering_value(column).cloned(),
            ColumnKind::Static | ColumnKind::Regular => match self.data(column)? {
                Data::Simple(cell) => Some(cell_value(column, cell)),
                Data::Complex(complex) => complex_value(&column.ty, complex).map(Bytes::from),
            },
        }
    }

    /// The value of a clustering column.
    #[inline]
    pub fn clustering_value(&self, column: &Column) -> Option<&'a Bytes> {
        let values = self.row?.clustering.values();
        values.get(usize::from(column.position))?.as_ref()
    }
}

/// A copy of a row that outlives the scan.
#[derive(Clone, Debug)]
pub(super) struct OwnedRow {
    key: Vec<Bytes>,
    static_row: Option<Row>,
    row: Option<Row>,
}

impl OwnedRow {
    pub fn of(view: RowView<'_>) -> Self {
        Self {
            key: view.key.to_vec(),
            static_row: view.static_row.cloned(),
            row: view.row.cloned(),
        }
    }

    pub fn view(&self) -> RowView<'_> {
        RowView {
            key: &self.key,
            static_row: self.static_row.as_ref(),
            row: self.row.as_ref(),
        }
    }
}

/// The value of a simple cell as clients see it.
pub(crate) fn cell_value(column: &Column, cell: &Cell) -> Bytes {
    if column.ty == CqlType::Counter {
        return Bytes::copy_from_slice(&counter::total(&cell.value).to_be_bytes());
    }
    cell.value.clone()
}

/// The serialized value of an unfrozen collection or user type; `None` if it has no cells.
pub(crate) fn complex_value(ty: &CqlType, complex: &ComplexColumn) -> Option<Vec<u8>> {
    let cells = &complex.cells;
    if cells.is_empty() {
        return None;
    }
    Some(match ty {
        CqlType::Set { .. } => encode_list(cells.iter().map(|(path, _)| &**path)),
        CqlType::Map { .. } => encode_map(cells.iter().map(|(path, cell)| (&**path, &*cell.value))),
        CqlType::Udt { definition, .. } => {
            let field = |index: usize| {
                let found = cells.iter().find(|(path, _)| field_index(path) == Some(index));
                found.map(|(_, cell)| &*cell.value)
            };
            encode_tuple((0..definition.fields.len()).map(field))
        }
        _ => encode_list(cells.iter().map(|(_, cell)| &*cell.value)),
    })
}

/// The index of the field that a cell path stands for.
pub(crate) fn field_index(path: &[u8]) -> Option<usize> {
    path.first_chunk::<2>()
        .map(|bytes| usize::from(u16::from_be_bytes(*bytes)))
}

pub(crate) type KeyComponents = SmallVec<[Bytes; 1]>;

/// The components of a partition key, as slices of it.
pub(crate) fn key_components(table: &TableSchema, key: &Bytes) -> Result<KeyComponents, Error> {
    if table.partition_key().len() == 1 {
        return Ok(smallvec![key.clone()]);
    }
    let components = decode_composite(key)?;
    Ok(components.into_iter().map(|part| key.slice_ref(part)).collect())
}
