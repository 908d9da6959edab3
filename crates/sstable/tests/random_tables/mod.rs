//! Random tables whose rows are read, or written, in two ways.

use std::sync::Arc;

use ilion_rows::random::Dice;
use ilion_schema::{ClusteringOrder, TableBuilder};
use ilion_types::CqlType;

/// The name of a table in which most rows have the same layout.
pub const EVEN: &str = "even";

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
