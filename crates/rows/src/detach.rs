//! Copies of mutations that own their bytes: all values in one allocation, so that a small value kept for long does
//! not keep the network frame or log record alive that it came in.

use bytes::Bytes;

use crate::{
    Bound, Cell, Clustering, ColumnData, ComplexColumn, Data, DecoratedKey, Mutation, RangeTombstone, Row,
    Values,
};

/// Gives out consecutive slices of one allocation. Invariant: asked for the same lengths in the same order as they
/// were put in.
#[derive(Debug)]
pub struct Detacher(Bytes);

impl Detacher {
    /// Copies every byte of `mutation`.
    pub fn of(mutation: &Mutation) -> Self {
        let mut len = 0;
        visit_mutation(mutation, &mut |bytes| len += bytes.len());
        let mut copy = Vec::with_capacity(len);
        visit_mutation(mutation, &mut |bytes| copy.extend_from_slice(bytes));
        Self(Bytes::from(copy))
    }

    #[inline]
    fn bytes(&mut self, original: &Bytes) -> Bytes {
        if original.is_empty() {
            return Bytes::new();
        }
        self.0.split_to(original.len())
    }

    /// A copy of the key.
    pub fn key(&mut self, key: &DecoratedKey) -> DecoratedKey {
        DecoratedKey {
            token: key.token.clone(),
            key: self.bytes(&key.key),
        }
    }

    fn values(&mut self, values: &Values) -> Values {
        values
            .iter()
            .map(|value| value.as_ref().map(|value| self.bytes(value)))
            .collect()
    }

    fn cell(&mut self, cell: &Cell) -> Cell {
        Cell {
            value: self.bytes(&cell.value),
            ..*cell
        }
    }

    /// A copy of a row.
    pub fn row(&mut self, row: &Row) -> Row {
        Row {
            clustering: Clustering::new(self.values(row.clustering.values())),
            liveness: row.liveness,
            deletion: row.deletion,
            columns: row
                .columns
                .iter()
                .map(|entry| ColumnData {
                    column: entry.column,
                    data: self.data(&entry.data),
                })
                .collect(),
        }
    }

    #[inline]
    fn data(&mut self, data: &Data) -> Data {
        match data {
            Data::Simple(cell) => Data::Simple(self.cell(cell)),
            Data::Complex(complex) => {
                let cells = complex.cells.iter();
                Data::Complex(Box::new(ComplexColumn {
                    deletion: complex.deletion,
                    cells: cells
                        .map(|(path, cell)| (self.bytes(path), self.cell(cell)))
                        .collect(),
                }))
            }
        }
    }

    /// A copy of a range.
    pub fn range(&mut self, range: &RangeTombstone) -> RangeTombstone {
        RangeTombstone {
            start: Bound::new(range.start.kind, self.values(&range.start.values)),
            end: Bound::new(range.end.kind, self.values(&range.end.values)),
            deletion: range.deletion,
        }
    }
}

/// Shows every byte string in the order key, static row, rows, ranges.
#[inline]
fn visit_mutation(mutation: &Mutation, see: &mut impl FnMut(&Bytes)) {
    see(&mutation.key.key);
    for row in mutation.update.static_row.iter().chain(&mutation.update.rows) {
        visit_row(row, see);
    }
    for range in &mutation.update.ranges {
        range.start.values.iter().flatten().for_each(&mut *see);
        range.end.values.iter().flatten().for_each(&mut *see);
    }
}

#[inline]
fn visit_row(row: &Row, see: &mut impl FnMut(&Bytes)) {
    row.clustering.values().iter().flatten().for_each(&mut *see);
    for entry in &row.columns {
        match &entry.data {
            Data::Simple(cell) => see(&cell.value),
            Data::Complex(complex) => {
                for (path, cell) in &complex.cells {
                    see(path);
                    see(&cell.value);
                }
            }
        }
    }
}

impl Row {
    /// A copy that owns its bytes.
    #[must_use]
    pub fn detached(&self) -> Self {
        let mut copy = Vec::new();
        visit_row(self, &mut |bytes| copy.extend_from_slice(bytes));
        Detacher(Bytes::from(copy)).row(self)
    }
}
