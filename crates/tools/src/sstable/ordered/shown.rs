//! Visitors that forward plain partitions and rows as long as they are in order.

use ilion_rows::{AlikeRows, Flow, PlainRow, PlainVisitor, RowLayout};
use ilion_types::Partitioner;

use super::order::Order;

/// Forwards plain partitions.
pub(super) struct OrderedPartitions<'v> {
    pub(super) order: &'v mut Order,
    pub(super) partitioner: Partitioner,
    pub(super) visitor: &'v mut dyn PlainVisitor,
}

impl PlainVisitor for OrderedPartitions<'_> {
    fn row(&mut self, row: &PlainRow<'_>) -> Flow {
        let token = row.token_by(self.partitioner);
        if !self.order.admits_key(&token, row.key) {
            return Flow::Leave;
        }
        let flow = self.visitor.row(&PlainRow {
            token: Some(&token),
            ..*row
        });
        if flow != Flow::Leave {
            self.order.begin(&token, row.key);
        }
        flow
    }
}

/// Forwards plain rows of a partition.
pub(super) struct OrderedRows<'v> {
    pub(super) order: &'v mut Order,
    pub(super) visitor: &'v mut dyn PlainVisitor,
}

impl OrderedRows<'_> {
    /// Number of leading rows that are in order.
    fn in_order(&self, rows: &AlikeRows<'_>) -> usize {
        let mut before = None;
        for (index, row) in rows.iter().enumerate() {
            let is_in_order = match before {
                Some(before) => {
                    let (a, b) = (clustering(rows, before), clustering(rows, row));
                    self.order.comparator().compare_leading(a, b).is_lt()
                }
                None => {
                    let values: Vec<_> = clustering(rows, row).collect();
                    self.order.admits_row(&values)
                }
            };
            if !is_in_order {
                return index;
            }
            before = Some(row);
        }
        rows.count()
    }
}

/// The clustering values of one of the rows.
fn clustering<'r>(rows: &AlikeRows<'r>, row: &'r [u8]) -> impl Iterator<Item = Option<&'r [u8]>> {
    let places = rows.layout().clustering.iter();
    places.map(move |place| Some(RowLayout::part(row, place)))
}

impl PlainVisitor for OrderedRows<'_> {
    fn row(&mut self, row: &PlainRow<'_>) -> Flow {
        if !self.order.admits_row(row.clustering) {
            return Flow::Leave;
        }
        let flow = self.visitor.row(row);
        if flow != Flow::Leave {
            self.order.pass_row(row.clustering.iter().copied());
        }
        flow
    }

    fn rows(&mut self, rows: &AlikeRows<'_>) -> (usize, Flow) {
        let in_order = rows.first(self.in_order(rows));
        if in_order.is_empty() {
            return (0, Flow::Leave);
        }
        let (taken, flow) = self.visitor.rows(&in_order);
        if let Some(last) = taken.checked_sub(1).and_then(|last| in_order.iter().nth(last)) {
            self.order.pass_row(clustering(rows, last));
        }
        match flow {
            Flow::Next if taken < rows.count() => (taken, Flow::Leave),
            flow => (taken, flow),
        }
    }
}
