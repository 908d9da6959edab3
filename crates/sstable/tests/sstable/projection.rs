//! The expected result of a read of some columns.

use bytes::Bytes;
use ilion_rows::random::Dice;
use ilion_rows::{ClusteringFilter, Data, Partition, Row, Unfiltered, WantedElements};
use ilion_schema::{ColumnId, TableSchema};
use ilion_types::CqlType;

/// Some of the static and regular columns.
pub fn random_columns(table: &TableSchema, dice: &mut Dice) -> Vec<ColumnId> {
    let sides = *dice.pick(&[2, 2, 10, 100]);
    let columns = table.statics().chain(table.regulars());
    columns
        .filter(|_| dice.one_in(sides))
        .map(|column| column.id)
        .collect()
}

/// Some elements of some of the maps, whose keys are small numbers.
pub fn random_elements(table: &TableSchema, dice: &mut Dice) -> Vec<WantedElements> {
    let columns = table.statics().chain(table.regulars());
    let maps = columns.filter(|column| matches!(column.ty, CqlType::Map { .. }));
    let maps: Vec<ColumnId> = maps.map(|column| column.id).collect();
    let mut elements = Vec::new();
    for column in maps {
        if dice.one_in(2) {
            let keys = (0..6_u32).filter(|_| dice.one_in(3));
            let paths = keys.map(|key| Bytes::copy_from_slice(&key.to_be_bytes()));
            elements.push(WantedElements {
                column,
                paths: paths.collect(),
            });
        }
    }
    elements
}

/// All rows, including static ones.
pub fn rows_of(partitions: &mut [Partition]) -> impl Iterator<Item = &mut Row> {
    partitions.iter_mut().flat_map(|partition| {
        let rows = partition
            .unfiltereds
            .iter_mut()
            .filter_map(|unfiltered| match unfiltered {
                Unfiltered::Row(row) => Some(row),
                Unfiltered::Marker(_) => None,
            });
        rows.chain(&mut partition.head.static_row)
    })
}

/// The partitions without values that are not selected.
pub fn without_unwanted(partitions: &[Partition], filter: &ClusteringFilter) -> Vec<Partition> {
    let mut partitions = partitions.to_vec();
    for row in rows_of(&mut partitions) {
        for entry in &mut row.columns {
            if !filter.wants(entry.column) {
                blank(&mut entry.data, &[]);
            } else if let (Some(_), Some(paths)) = (&filter.columns, filter.paths_of(entry.column)) {
                blank(&mut entry.data, paths);
            }
        }
    }
    partitions
}

/// Removes all values except those with these paths.
fn blank(data: &mut Data, but: &[Bytes]) {
    match data {
        Data::Simple(cell) => cell.value = Bytes::new(),
        Data::Complex(complex) => {
            let cells = complex.cells.iter_mut().filter(|(path, _)| !but.contains(path));
            cells.for_each(|(_, cell)| cell.value = Bytes::new());
        }
    }
}
