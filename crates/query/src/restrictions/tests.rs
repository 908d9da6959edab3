//! Slices of mixed orders.

use bytes::Bytes;
use ilion_rows::{Clustering, ClusteringComparator, Slice, Values};
use ilion_schema::ClusteringOrder::{Asc, Desc};
use ilion_schema::{ClusteringOrder, Column, TableBuilder, TableId, TableSchema};
use ilion_types::{CqlType, Uuid};
use std::sync::Arc;

use super::slices::{EdgeValues, Side, slices_below};

fn table(orders: &[ClusteringOrder]) -> Arc<TableSchema> {
    let mut builder = TableBuilder::new("ks", "t", TableId(Uuid::nil())).partition_key("k", CqlType::Int);
    for (index, order) in orders.iter().enumerate() {
        builder = builder.clustering(format!("c{index}"), CqlType::Int, *order);
    }
    builder.build()
}

fn value(number: i32) -> Option<Bytes> {
    Some(Bytes::copy_from_slice(&number.to_be_bytes()))
}

/// The rows of a small grid that are in the slices, in stored order.
fn rows(comparator: &ClusteringComparator, slices: &[Slice]) -> Vec<(i32, i32)> {
    let mut grid: Vec<((i32, i32), Clustering)> = Vec::new();
    for a in 0..4 {
        for b in 0..4 {
            let values: Values = [value(a), value(b)].into_iter().collect();
            grid.push(((a, b), Clustering::new(values)));
        }
    }
    let mut found = Vec::new();
    for slice in slices {
        let mut inside: Vec<_> = grid
            .iter()
            .filter(|(_, clustering)| slice.contains(comparator, clustering))
            .collect();
        inside.sort_by(|a, b| comparator.compare(&a.1, &b.1));
        found.extend(inside.into_iter().map(|(pair, _)| *pair));
    }
    found
}

fn edge(side: Side, values: &[i32], is_inclusive: bool) -> EdgeValues {
    EdgeValues {
        side,
        values: values.iter().map(|number| value(*number)).collect(),
        is_inclusive,
    }
}

#[test]
fn tuples_are_sliced_whatever_the_directions() {
    for orders in [[Asc, Asc], [Asc, Desc], [Desc, Asc], [Desc, Desc]] {
        let table = table(&orders);
        let comparator = ClusteringComparator::of(&table);
        let columns: Vec<Column> = table.clustering().cloned().collect();
        for (low_inclusive, high_inclusive) in [(false, false), (true, false), (false, true), (true, true)] {
            let edges = [
                edge(Side::Above, &[1, 2], low_inclusive),
                edge(Side::Below, &[3, 1], high_inclusive),
            ];
            let slices = slices_below(&comparator, &Values::new(), &columns, &edges);
            let found = rows(&comparator, &slices);
            let mut wanted: Vec<(i32, i32)> = (0..4)
                .flat_map(|a| (0..4).map(move |b| (a, b)))
                .filter(|pair| {
                    (*pair > (1, 2) || (low_inclusive && *pair == (1, 2)))
                        && (*pair < (3, 1) || (high_inclusive && *pair == (3, 1)))
                })
                .collect();
            let direction = |order: ClusteringOrder| if order == Asc { 1 } else { -1 };
            wanted.sort_by_key(|(a, b)| (a * direction(orders[0]), b * direction(orders[1])));
            assert_eq!(found, wanted, "{orders:?}");
        }
    }
}

#[test]
fn a_slice_that_excludes_itself_is_empty() {
    let table = table(&[Asc, Asc]);
    let comparator = ClusteringComparator::of(&table);
    let columns: Vec<Column> = table.clustering().take(1).cloned().collect();
    let edges = [edge(Side::Above, &[2], true), edge(Side::Below, &[2], false)];
    assert_eq!(slices_below(&comparator, &Values::new(), &columns, &edges), []);
}
