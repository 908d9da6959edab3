//! Decides whether indexes find the rows, and whether the rows they find need filtering. Pure.
//!
//! Compat: `StatementRestrictions`, `IndexRestrictions` and `SelectStatement.checkNeedsFiltering` of Cassandra 5.0.

use ilion_schema::{Column, TableSchema};
use ilion_types::CqlType;

use super::clustering;
use super::indexes::Indexes;
use super::restriction::Restriction;
use super::rules::needs_filtering;
use super::sorted::{RestrictionUse, Sorted, gives_keys};
use crate::Error;
use crate::context::PlanContext;

pub(crate) const NEEDS_VECTOR: &str = "ANN ordering is only supported on float vector indexes";
pub(super) const NEEDS_INDEX: &str = "ANN ordering by vector requires the column to be indexed";
const NEEDS_INDEXED: &str = "ANN ordering by vector requires all restricted column(s) to be indexed";

/// How a SELECT uses indexes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// True if indexes find the rows.
    pub uses_index: bool,
    /// True if ALLOW FILTERING is needed.
    pub needs_filtering: bool,
}

/// True if an index serves a part of the WHERE, or its order.
pub(super) fn has_index(sorted: &Sorted, ordered_by: Option<&Column>, indexes: &Indexes) -> bool {
    let serves = |restrictions: &[Restriction]| restrictions.iter().any(|known| indexes.serve(known));
    serves(&sorted.clustering)
        || serves(&sorted.partition)
        || serves(&sorted.others)
        || sorted.alternatives.iter().any(|known| known.are_served(indexes))
        || ordered_by.is_some_and(|column| indexes.rank(column))
}

/// Decides whether indexes are used. `ordered_by` is the column of `ORDER BY .. ANN OF`.
///
/// # Errors
/// The WHERE is not possible with these indexes.
pub(super) fn decide(
    table: &TableSchema,
    sorted: &Sorted,
    use_for: RestrictionUse,
    ordered_by: Option<&Column>,
    indexes: &Indexes,
    context: &PlanContext<'_>,
) -> Result<Usage, Error> {
    let groups = indexes.groups();
    let has_clustering_index = sorted.clustering.iter().any(|known| indexes.serve(known));
    let has_index = has_index(sorted, ordered_by, indexes);
    let has_keys = gives_keys(table, &sorted.partition);
    let is_range = sorted.token.is_some() || !has_keys;
    let filters_partition = !sorted.partition.is_empty() && !has_keys;
    let filters_clustering = clustering::needs_filtering(&sorted.clustering);

    let mut uses_index =
        has_index && (filters_partition || (sorted.partition.is_empty() && sorted.token.is_none()));
    let mut filtered: Vec<&Restriction> = Vec::new();
    if uses_index || filters_partition {
        filtered.extend(&sorted.partition);
    }
    uses_index |= has_index && filters_clustering;
    uses_index |= is_range && has_clustering_index;
    if uses_index || filters_clustering {
        filtered.extend(&sorted.clustering);
    }
    if let Some(column) = ordered_by {
        check_ordering(column, table, sorted, filters_partition, indexes)?;
    } else {
        check_vectors(sorted, indexes)?;
    }
    let alternatives = &sorted.alternatives;
    if !sorted.others.is_empty() || ordered_by.is_some() || !alternatives.is_empty() {
        uses_index |= has_index;
        if !has_index && !use_for.allows_filtering() {
            return Err(needs_filtering(context));
        }
        filtered.extend(&sorted.others);
    }
    if uses_index && sorted.partition.iter().any(Restriction::is_in) {
        return Err(Error::invalid(
            "Select on indexed columns and with IN clause for the PRIMARY KEY are not supported",
        ));
    }
    let is_covered = |filtered: &[&Restriction]| {
        if let ([], [only], None) = (filtered, &alternatives[..], ordered_by) {
            return only.are_covered(&groups);
        }
        groups.iter().any(|group| {
            let group_alone = std::slice::from_ref(group);
            filtered.iter().all(|restriction| group.covers(restriction))
                && alternatives.iter().all(|known| known.are_covered(group_alone))
                && ordered_by.is_none_or(|column| group.ranks(column))
        })
    };
    let leaves_some = match filtered.is_empty() && ordered_by.is_none() && alternatives.is_empty() {
        true => !sorted.clustering.is_empty(),
        false => !is_covered(&filtered),
    };
    Ok(Usage {
        uses_index,
        needs_filtering: (is_range || uses_index) && leaves_some,
    })
}

/// Refuses an ordering by nearness that no index supports.
fn check_ordering(
    column: &Column,
    table: &TableSchema,
    sorted: &Sorted,
    filters_partition: bool,
    indexes: &Indexes,
) -> Result<(), Error> {
    if !matches!(&column.ty, CqlType::Vector { element, .. } if **element == CqlType::Float) {
        return Err(Error::invalid(NEEDS_VECTOR));
    }
    if !indexes.rank(column) {
        return Err(Error::invalid(NEEDS_INDEX));
    }
    let restricted = |restrictions: &[Restriction]| -> Vec<Column> {
        let columns = restrictions.iter().flat_map(|known| &known.columns);
        let is_alone = |column: &&Column| indexes.of_column(column).next().is_none();
        columns.filter(is_alone).cloned().collect()
    };
    let has_keys = gives_keys(table, &sorted.partition);
    let clustering_is_found = has_keys && !clustering::needs_filtering(&sorted.clustering);
    let is_left = !sorted.alternatives.iter().all(|known| known.are_served(indexes))
        || !restricted(&sorted.others).is_empty()
        || (!restricted(&sorted.clustering).is_empty() && !clustering_is_found);
    match filters_partition || is_left {
        true => Err(Error::invalid(NEEDS_INDEXED)),
        false => Ok(()),
    }
}

fn check_vectors(sorted: &Sorted, indexes: &Indexes) -> Result<(), Error> {
    let vectors = sorted
        .others
        .iter()
        .map(Restriction::first)
        .filter(|column| matches!(column.ty, CqlType::Vector { .. }));
    for column in vectors {
        if indexes.rank(column) {
            return Err(Error::invalid("Vector indexes only support ANN queries"));
        }
    }
    Ok(())
}
