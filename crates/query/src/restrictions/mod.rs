//! WHERE: the partitions and slices to read, and the checks that are left for each row.
//!
//! Planning resolves each relation (`relation`) and merges those on the same column (`restriction`). Then it decides how
//! partitions are found (`partition`, `token`), how rows are found (`clustering`, `slices`), and what is filtered (`filter`,
//! and `alternatives` for `OR`). If the table has indexes, `indexes` decides which restrictions they serve, `usage` whether they find
//! the rows, and `search` which of them are searched. Compat: `StatementRestrictions` of Cassandra 5.0.

mod alternatives;
mod clustering;
mod expression;
mod filter;
mod indexes;
mod like;
mod names;
pub(crate) mod partition;
pub(crate) mod relation;
mod restriction;
mod rules;
mod search;
mod slices;
mod sorted;
#[cfg(test)]
mod tests;
mod token;
mod token_relation;
mod tuple_relation;
mod usage;

use std::sync::Arc;

use ilion_cql::ast;
use ilion_rows::{Clustering, ClusteringComparator, DecoratedKey, KeyRange, Slice};
use ilion_schema::{Column, ColumnKind, TableId, TableKind, TableSchema};
use ilion_types::Partitioner;

use self::alternatives::Alternatives;
use self::clustering::ClusteringRestrictions;
use self::names::names;
use self::partition::PartitionRestrictions;
use self::relation::Resolved;
use self::restriction::Restriction;
use self::sorted::{Sorted, gives_keys};
use self::usage::Usage;
use crate::Error;
use crate::context::{Execution, PlanContext};

pub(crate) use self::filter::RowFilter;
pub(crate) use self::indexes::Indexes;
pub(crate) use self::search::{Search, SearchPlan};
pub(crate) use self::sorted::RestrictionUse;
pub(crate) use self::usage::NEEDS_VECTOR;

/// A planned WHERE.
#[derive(Debug)]
pub(crate) struct Restrictions {
    partition: PartitionRestrictions,
    clustering: ClusteringRestrictions,
    /// The restrictions to check row by row.
    filtered: Vec<Restriction>,
    /// The `OR`s to check row by row.
    alternatives: Vec<Alternatives>,
    restricts_partition: bool,
    restricts_clustering: bool,
    usage: Usage,
    allows_filtering: bool,
    table: TableId,
    indexes: Indexes,
}

impl Restrictions {
    /// Resolves the relations.
    pub fn plan(
        table: &Arc<TableSchema>,
        relations: &[ast::Relation],
        use_for: RestrictionUse,
        context: &PlanContext<'_>,
    ) -> Result<Self, Error> {
        Self::plan_ordered(table, relations, use_for, None, context)
    }

    /// Resolves the relations of a SELECT that may be ordered by nearness to a vector.
    pub fn plan_ordered(
        table: &Arc<TableSchema>,
        relations: &[ast::Relation],
        use_for: RestrictionUse,
        ordered_by: Option<&Column>,
        context: &PlanContext<'_>,
    ) -> Result<Self, Error> {
        let use_for = with_implied_filtering(use_for, table);
        let indexes = match use_for.is_select() {
            true => Indexes::of(table, context),
            false => Indexes::default(),
        };
        let sorted = sort(table, relations, use_for, &indexes, context)?;
        let has_index = usage::has_index(&sorted, ordered_by, &indexes);
        rules::check(table, &sorted, use_for, has_index, context)?;
        let usage = match use_for.is_select() {
            true => usage::decide(table, &sorted, use_for, ordered_by, &indexes, context)?,
            false => Usage::default(),
        };
        let partitioner = table.partitioner(context.store.partitioner());
        let decided = Self::decide(table, sorted, partitioner);
        Ok(Self {
            usage,
            allows_filtering: use_for.allows_filtering(),
            indexes,
            ..decided
        })
    }

    fn decide(table: &TableSchema, sorted: Sorted, partitioner: Partitioner) -> Self {
        let restricts_clustering = !sorted.clustering.is_empty();
        let restricts_partition = !sorted.partition.is_empty() || sorted.token.is_some();
        let mut filtered = Vec::new();
        let mut keys = None;
        if gives_keys(table, &sorted.partition) {
            keys = Some(sorted.partition);
        } else {
            filtered.extend(sorted.partition);
        }
        let (sliced, unsliced) = clustering::split(sorted.clustering);
        filtered.extend(unsliced);
        filtered.extend(sorted.others);
        Self {
            partition: PartitionRestrictions {
                keys,
                token: sorted.token,
                partitioner,
            },
            clustering: ClusteringRestrictions {
                comparator: ClusteringComparator::of(table),
                sliced,
            },
            filtered,
            alternatives: sorted.alternatives,
            restricts_partition,
            restricts_clustering,
            usage: Usage::default(),
            allows_filtering: false,
            table: table.id,
            indexes: Indexes::default(),
        }
    }

    /// True if the partition key or its token is restricted.
    pub fn restricts_partition(&self) -> bool {
        self.restricts_partition
    }

    /// True if indexes find the rows.
    pub fn uses_index(&self) -> bool {
        self.usage.uses_index
    }

    /// Refuses a WHERE that needs ALLOW FILTERING, unless that is given: clustering restrictions on many partitions, and restrictions
    /// that no index serves. Refuses restrictions that cannot be filtered.
    pub fn check_filtering(&self, context: &PlanContext<'_>) -> Result<(), Error> {
        if self.usage.needs_filtering && !self.allows_filtering {
            return Err(rules::needs_filtering(context));
        }
        rules::check_filtered(&self.filtered)
    }

    /// True if `=` or `IN` gives the whole partition key.
    pub fn is_by_key(&self) -> bool {
        self.partition.keys.is_some()
    }

    /// True if `IN` restricts the partition key.
    pub fn has_key_in(&self) -> bool {
        let filtered = self.filtered.iter();
        let filtered = filtered.filter(|restriction| restriction.kind() == ColumnKind::PartitionKey);
        let mut keys = self.partition.keys.iter().flatten().chain(filtered);
        keys.any(Restriction::is_in)
    }

    /// True if `IN` may give several clusterings.
    pub fn has_clustering_in(&self) -> bool {
        self.clustering.sliced.iter().any(Restriction::is_in)
    }

    /// True if some clustering column is restricted.
    pub fn restricts_clustering(&self) -> bool {
        self.restricts_clustering
    }

    /// True if some regular column is restricted.
    pub fn restricts_regular(&self) -> bool {
        self.filtered
            .iter()
            .any(|restriction| restriction.kind() == ColumnKind::Regular)
            || !self.alternatives.iter().all(Alternatives::is_of_partitions)
    }

    /// True if `=` gives one value for this column of the primary key.
    pub fn is_equal_on(&self, column: &Column) -> bool {
        let keys = self.partition.keys.iter().flatten();
        keys.chain(&self.clustering.sliced)
            .chain(&self.filtered)
            .any(|restriction| {
                restriction.is_equal() && restriction.columns.iter().any(|known| known.id == column.id)
            })
    }

    /// True if `=` or `IN` gives every clustering column.
    pub fn gives_rows(&self) -> bool {
        self.clustering.are_all_given()
    }

    /// True if `=` gives the whole primary key, so that at most one row matches.
    pub fn is_one_row(&self) -> bool {
        self.is_by_key() && self.clustering.are_all_given() && !self.has_key_in() && !self.has_clustering_in()
    }

    /// The partitions, each once, in the order of the types of the key columns. Requires: [`Self::is_by_key`].
    pub fn partition_keys(&self, execution: &Execution<'_>) -> Result<Vec<DecoratedKey>, Error> {
        self.partition.partition_keys(execution)
    }

    /// The partition; `None` if the token restriction excludes it. Requires: [`Self::is_one_row`].
    pub fn only_key(&self, execution: &Execution<'_>) -> Result<Option<DecoratedKey>, Error> {
        self.partition.only_key(execution)
    }

    /// True if all rows of a partition match.
    pub fn wants_all_rows(&self) -> bool {
        self.clustering.sliced.is_empty()
    }

    /// The range of partitions by token; `None` if it is empty. Requires: not [`Self::is_by_key`].
    pub fn key_range(&self, execution: &Execution<'_>) -> Result<Option<KeyRange>, Error> {
        self.partition.key_range(execution)
    }

    /// Refuses null and unset values of the partition key. Other errors of these values are not found.
    pub fn check_key_values(&self, execution: &Execution<'_>) -> Result<(), Error> {
        self.partition.check_values(execution)
    }

    /// Refuses null and unset ends of slices.
    pub fn check_edges(&self, execution: &Execution<'_>) -> Result<(), Error> {
        self.clustering.check_edges(execution)
    }

    /// The slices, in stored order, not overlapping.
    pub fn slices(&self, execution: &Execution<'_>) -> Result<Vec<Slice>, Error> {
        self.clustering.slices(execution)
    }

    /// The clusterings of the rows, if `=` or `IN` gives every clustering column.
    pub fn clusterings(&self, execution: &Execution<'_>) -> Result<Option<Vec<Clustering>>, Error> {
        self.clustering.clusterings(execution)
    }

    /// True if rows must be checked one by one.
    pub fn is_filtering(&self) -> bool {
        !self.filtered.is_empty() || !self.alternatives.is_empty()
    }

    /// True if rows are checked by several mutable columns, which writes may change at different times.
    ///
    /// Compat: `RowFilter.isMutableIntersection`.
    pub fn is_mutable_intersection(&self) -> bool {
        let mut columns: Vec<&Column> = self.checked_columns().collect();
        columns.sort_by_key(|column| column.id);
        columns.dedup_by_key(|column| column.id);
        let of_kind = |kind| columns.iter().filter(|column| column.kind == kind).count();
        let (others, statics) = (of_kind(ColumnKind::Regular), of_kind(ColumnKind::Static));
        others + statics > 1 || (statics == 1 && columns.len() > 1)
    }

    /// The columns that the checks read.
    pub fn checked_columns(&self) -> impl Iterator<Item = &Column> {
        let alternatives = self.alternatives.iter().flat_map(Alternatives::columns);
        let filtered = self.filtered.iter();
        filtered
            .flat_map(|restriction| &restriction.columns)
            .chain(alternatives)
    }

    /// The checks for this execution.
    pub fn row_filter(&self, execution: &Execution<'_>) -> Result<RowFilter, Error> {
        RowFilter::of(&self.filtered, &self.alternatives, &self.indexes, execution)
    }
}

/// The checks of relations on any columns, for rows that were not found by these relations (materialized views).
///
/// # Errors
/// A relation is not possible for the table, or is on the token.
pub(crate) fn row_filter(
    table: &TableSchema,
    relations: &[ast::Relation],
    context: &PlanContext<'_>,
    execution: &Execution<'_>,
) -> Result<RowFilter, Error> {
    let mut restrictions = Vec::new();
    for relation in relations {
        match relation::resolve(relation, table, context)? {
            Resolved::Columns(restriction) => restriction::add(&mut restrictions, restriction)?,
            Resolved::Token(_) => {
                return Err(Error::invalid(
                    "The token of the partition key cannot be restricted in a materialized view",
                ));
            }
        }
    }
    RowFilter::of(&restrictions, &[], &Indexes::default(), execution)
}

/// Virtual tables are small: they may be filtered without ALLOW FILTERING.
fn with_implied_filtering(use_for: RestrictionUse, table: &TableSchema) -> RestrictionUse {
    match use_for {
        RestrictionUse::Select { only_statics, .. } if table.kind == TableKind::Virtual => {
            RestrictionUse::Select {
                allow_filtering: true,
                only_statics,
            }
        }
        other => other,
    }
}

fn sort(
    table: &TableSchema,
    relations: &[ast::Relation],
    use_for: RestrictionUse,
    indexes: &Indexes,
    context: &PlanContext<'_>,
) -> Result<Sorted, Error> {
    let mut sorted = Sorted::default();
    for relation in relations {
        if let ast::Subject::AnyOf(branches) = &relation.subject
            && use_for.is_select()
        {
            let planned = Alternatives::plan(branches, table, use_for, indexes, context)?;
            sorted.alternatives.push(planned);
            continue;
        }
        rules::check_operator(relation, use_for)?;
        let restriction = match relation::resolve(relation, table, context)? {
            Resolved::Columns(restriction) => restriction,
            Resolved::Token(token) => {
                match &mut sorted.token {
                    None => sorted.token = Some(token),
                    Some(known) => known.merge(token, &names(table.partition_key()))?,
                }
                continue;
            }
        };
        rules::check_served(&restriction, relation, indexes)?;
        match restriction.kind() {
            ColumnKind::PartitionKey => restriction::add(&mut sorted.partition, restriction)?,
            ColumnKind::Clustering => {
                let order = rules::check_clustering_order(&sorted.clustering, &restriction, use_for, indexes);
                // If both fail, the client gets the error of `add`, which merges.
                restriction::add(&mut sorted.clustering, restriction)?;
                order?;
            }
            _ => restriction::add(&mut sorted.others, restriction)?,
        }
    }
    Ok(sorted)
}
