//! Random tables whose rows are read, or written, in two ways.

use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::random::{Dice, NOW_SECS, random_clustering, random_update};
use ilion_rows::{Cell, Clustering, ClusteringComparator, ColumnData, Data, Liveness, PartitionUpdate, Row};
use ilion_schema::{ClusteringOrder, TableBuilder, TableSchema};
use ilion_types::CqlType;

/// The name of a table in which most rows have the same layout.
pub const EVEN: &str = "even";
/// The timestamp of the oldest rows.
pub const MICROS: i64 = NOW_SECS as i64 * 1_000_000;

/// The number in an environment variable.
pub fn number_of(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

/// Some clustering columns of these types, possibly a static one, possibly a complex one.
pub fn with_clustering(mut table: TableBuilder, types: &[CqlType], dice: &mut Dice) -> TableBuilder {
    for index in 0..1 + dice.below(3) {
        let order = *dice.pick(&[ClusteringOrder::Asc, ClusteringOrder::Desc]);
        table = table.clustering(format!("c{index}"), dice.pick(types).clone(), order);
    }
    if dice.one_in(3) {
        table = table.static_column("s", CqlType::Text);
    }
    if dice.one_in(4) {
        let element = Arc::new(CqlType::Int);
        let frozen = false;
        table = table.regular("m", CqlType::Set { element, frozen });
    }
    table
}

fn value(table: &TableSchema, ty: &CqlType, dice: &mut Dice) -> Bytes {
    let len = match (ty, dice.below(60)) {
        (_, 0) => 0,
        (CqlType::Int, _) => 4,
        (CqlType::BigInt, _) => 8,
        (_, 3..) if table.name == EVEN => 11,
        (_, 1) => 126 + dice.below(4),
        (_, 2) => 1000 + dice.below(4000),
        (_, _) => dice.below(40),
    };
    (0..len).map(|_| b'a' + dice.byte() % 16).collect()
}

/// A row, which is plain most of the time; it may be empty.
pub fn random_row(table: &TableSchema, clustering: Clustering, dice: &mut Dice) -> Row {
    let mut row = Row::empty(clustering);
    let micros = MICROS + dice.below(1000) as i64;
    row.liveness = match dice.below(20) {
        0 => Liveness::NONE,
        1 => Liveness::expiring(micros, 60, NOW_SECS + 60),
        _ => Liveness::live(micros),
    };
    let has_all = table.name == EVEN || dice.one_in(2);
    for column in table.regulars().filter(|column| !column.is_complex()) {
        if !has_all && dice.one_in(3) {
            continue;
        }
        let value = value(table, &column.ty, dice);
        let cell = match dice.below(60) {
            0 => Cell::live(micros - 1, value),
            1 => Cell::tombstone(micros, NOW_SECS - 10),
            2 => Cell::expiring(micros, 60, NOW_SECS + 60, value),
            _ => Cell::live(micros, value),
        };
        row.columns.push(ColumnData {
            column: column.id,
            data: Data::Simple(cell),
        });
    }
    row
}

/// Rows of a table with clustering, of which most are plain, and deletions.
pub fn random_rows(table: &TableSchema, dice: &mut Dice) -> PartitionUpdate {
    let mut update = match dice.one_in(3) {
        true => random_update(table, dice),
        false => PartitionUpdate::default(),
    };
    let count = *dice.pick(&[1, 3, 20, 200]);
    for _ in 0..1 + dice.below(count) {
        let clustering = match dice.one_in(8) {
            true => random_clustering(table, dice),
            false => Clustering::of(table.clustering().map(|column| value(table, &column.ty, dice))),
        };
        update.rows.push(random_row(table, clustering, dice));
    }
    let comparator = ClusteringComparator::of(table);
    let rows = &mut update.rows;
    rows.sort_by(|a, b| comparator.compare(&a.clustering, &b.clustering));
    rows.retain(|row| !row.is_empty());
    rows.dedup_by(|a, b| comparator.compare(&a.clustering, &b.clustering).is_eq());
    update
}
