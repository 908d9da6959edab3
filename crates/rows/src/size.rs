//! Memory of data: the size of its structures and the length of its bytes. A shared allocation counts for each owner.

use bytes::Bytes;

use crate::{Cell, Clustering, ColumnData, Data, DecoratedKey, RangeTombstone, Row};

impl Clustering {
    /// Bytes of the values, and of their list if that is on the heap.
    #[inline]
    pub fn size_bytes(&self) -> usize {
        let spilled = if self.values().spilled() {
            self.values().capacity() * size_of::<Option<Bytes>>()
        } else {
            0
        };
        spilled + self.values().iter().flatten().map(Bytes::len).sum::<usize>()
    }
}

impl DecoratedKey {
    /// Memory in bytes.
    #[inline]
    pub fn size_bytes(&self) -> usize {
        size_of::<Self>() + self.key.len()
    }
}

pub(crate) fn path_cell_bytes(path: &Bytes, cell: &Cell) -> usize {
    size_of::<(Bytes, Cell)>() + path.len() + cell.value.len()
}

impl ColumnData {
    /// Memory in bytes.
    #[inline]
    pub fn size_bytes(&self) -> usize {
        let content = match &self.data {
            Data::Simple(cell) => cell.value.len(),
            Data::Complex(complex) => {
                let cells = complex.cells.iter();
                size_of::<crate::ComplexColumn>()
                    + cells
                        .map(|(path, cell)| path_cell_bytes(path, cell))
                        .sum::<usize>()
            }
        };
        size_of::<Self>() + content
    }
}

impl Row {
    /// Memory in bytes.
    pub fn size_bytes(&self) -> usize {
        let columns = self.columns.iter().map(ColumnData::size_bytes).sum::<usize>();
        size_of::<Self>() + self.clustering.size_bytes() + columns
    }
}

impl RangeTombstone {
    /// Memory in bytes.
    pub fn size_bytes(&self) -> usize {
        let values = self.start.values.iter().chain(&self.end.values);
        size_of::<Self>() + values.flatten().map(Bytes::len).sum::<usize>()
    }
}
