//! Large values, and what a read of some columns is to give.

use bytes::Bytes;
use ilion_rows::random::Dice;
use ilion_rows::{Cell, ClusteringFilter, Data, Partition, Row, Unfiltered, paths};
use ilion_schema::{ColumnId, TableSchema};
use ilion_types::CqlType;

/// Gives some of the values of texts and blobs any length.
pub fn enlarge(partitions: &mut [Partition], table: &TableSchema, dice: &mut Dice) {
    for partition in partitions {
        let statics = partition.head.static_row.iter_mut();
        let rows = partition
            .unfiltereds
            .iter_mut()
            .filter_map(|unfiltered| match unfiltered {
                Unfiltered::Row(row) => Some(row),
                Unfiltered::Marker(_) => None,
            });
        statics.chain(rows).for_each(|row| enlarge_row(row, table, dice));
    }
}

fn enlarge_row(row: &mut Row, table: &TableSchema, dice: &mut Dice) {
    for entry in &mut row.columns {
        let Some(column) = table.column(entry.column) else {
            continue;
        };
        match &mut entry.data {
            Data::Simple(cell) => enlarge_cell(cell, &column.ty, dice),
            Data::Complex(complex) => {
                for (path, cell) in &mut complex.cells {
                    if let Some(ty) = paths::value_type(&column.ty, path) {
                        enlarge_cell(cell, ty, dice);
                    }
                }
            }
        }
    }
}

fn enlarge_cell(cell: &mut Cell, ty: &CqlType, dice: &mut Dice) {
    if cell.value.is_empty() || !matches!(ty, CqlType::Text | CqlType::Blob) || dice.one_in(3) {
        return;
    }
    let most = *dice.pick(&[10, 300, 3000, 3000, 20_000, 100_000]);
    let len = 1 + dice.below(most);
    // Neither one byte again and again, nor too many numbers.
    let pattern = dice.next_u64().to_be_bytes();
    cell.value = pattern.iter().cycle().map(|byte| byte & 0x7F).take(len).collect();
}

/// Some of the static and regular columns.
pub fn random_columns(table: &TableSchema, dice: &mut Dice) -> Vec<ColumnId> {
    let sides = *dice.pick(&[2, 2, 10, 100]);
    let columns = table.statics().chain(table.regulars());
    columns
        .filter(|_| dice.one_in(sides))
        .map(|column| column.id)
        .collect()
}

/// The partitions without the values that are not wanted.
pub fn without_unwanted(partitions: &[Partition], filter: &ClusteringFilter) -> Vec<Partition> {
    let mut partitions = partitions.to_vec();
    for partition in &mut partitions {
        let rows = partition
            .unfiltereds
            .iter_mut()
            .filter_map(|unfiltered| match unfiltered {
                Unfiltered::Row(row) => Some(row),
                Unfiltered::Marker(_) => None,
            });
        for row in rows.chain(&mut partition.head.static_row) {
            let unwanted = row.columns.iter_mut().filter(|entry| !filter.wants(entry.column));
            unwanted.for_each(|entry| blank(&mut entry.data));
        }
    }
    partitions
}

fn blank(data: &mut Data) {
    match data {
        Data::Simple(cell) => cell.value = Bytes::new(),
        Data::Complex(complex) => {
            let cells = complex.cells.iter_mut();
            cells.for_each(|(_, cell)| cell.value = Bytes::new());
        }
    }
}
