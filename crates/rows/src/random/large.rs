//! Values of random length, for rows that span several chunks of a file.

use ilion_schema::TableSchema;
use ilion_types::CqlType;

use super::Dice;
use crate::{Cell, Data, Row, paths};

/// Upper limits of lengths; one is picked for each value.
const LENGTHS: [usize; 6] = [10, 300, 3000, 3000, 20_000, 100_000];

/// Replaces some texts and blobs by values of random length.
pub fn enlarge(row: &mut Row, table: &TableSchema, dice: &mut Dice) {
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
    let most = *dice.pick(&LENGTHS);
    let len = 1 + dice.below(most);
    let pattern = dice.next_u64().to_be_bytes();
    cell.value = pattern.iter().cycle().map(|byte| byte & 0x7F).take(len).collect();
}
