//! Copies of rows that own their bytes. All short values share one allocation, separate from the network frame or log record that
//! they came in: a small value that is kept for long must not keep these alive. Each long value has its own allocation, so that the
//! rest of a row does not keep a blob alive after the blob was replaced.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::{Bound, Cell, Clustering, ColumnData, ComplexColumn, Data, RangeTombstone, Row, Values};

/// Values of at least this length have an allocation of their own.
const LONG_BYTES: usize = 16 << 10;

/// Cuts consecutive slices from one allocation, and returns the long values between them. Invariant: values are requested with
/// the same lengths and in the same order as they were added.
#[derive(Debug)]
struct Detacher {
    short: Bytes,
    long: VecDeque<Bytes>,
}

impl Detacher {
    #[inline]
    fn bytes(&mut self, original: &Bytes) -> Bytes {
        if original.is_empty() {
            return Bytes::new();
        }
        if original.len() >= LONG_BYTES {
            // By the invariant, `long` is never empty here.
            return self.long.pop_front().unwrap_or_else(|| original.clone());
        }
        self.short.split_to(original.len())
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
    fn row(&mut self, row: &Row) -> Row {
        Row {
            clustering: Clustering::new(self.values(row.clustering.values())),
            columns: row
                .columns
                .iter()
                .map(|entry| ColumnData {
                    column: entry.column,
                    data: self.data(&entry.data),
                })
                .collect(),
            ..*row
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
}

#[inline]
fn gather(bytes: &Bytes, short: &mut Vec<u8>, long: &mut VecDeque<Bytes>) {
    if bytes.len() < LONG_BYTES {
        short.extend_from_slice(bytes);
    } else {
        long.push_back(Bytes::copy_from_slice(bytes));
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
        let mut long = VecDeque::new();
        visit_row(self, &mut |bytes| gather(bytes, &mut copy, &mut long));
        let short = Bytes::from(copy);
        Detacher { short, long }.row(self)
    }
}

impl RangeTombstone {
    /// A copy that owns its bytes.
    #[must_use]
    pub fn detached(&self) -> Self {
        let copy = |bound: &Bound| {
            let values = bound.values.iter();
            let values = values.map(|value| value.as_deref().map(Bytes::copy_from_slice));
            Bound::new(bound.kind, values.collect())
        };
        Self {
            start: copy(&self.start),
            end: copy(&self.end),
            deletion: self.deletion,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Cell, Clustering, ColumnData};
    use ilion_schema::ColumnId;

    use super::*;

    #[test]
    fn a_long_value_does_not_share_its_memory_with_its_neighbours() {
        let cell = |column: u16, value: Vec<u8>| ColumnData {
            column: ColumnId(column),
            data: Data::Simple(Cell::live(1, Bytes::from(value))),
        };
        let mut row = Row::empty(Clustering::empty());
        row.columns = vec![
            cell(0, vec![1; 10]),
            cell(1, vec![2; LONG_BYTES]),
            cell(2, vec![3; 20]),
            cell(3, vec![4; LONG_BYTES + 1]),
        ];
        let mut copy = row.detached();
        assert_eq!(copy, row);
        for entry in copy.columns.drain(..) {
            let Data::Simple(Cell { value, .. }) = entry.data else {
                panic!("a simple cell");
            };
            // A unique value owns its whole allocation; the short ones share one.
            assert_eq!(
                value.is_unique(),
                value.len() >= LONG_BYTES || entry.column.0 == 2
            );
        }
    }
}
