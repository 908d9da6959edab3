//! The rules of a WHERE, with Cassandra's messages. Pure.
//!
//! Compat: `StatementRestrictions`, `ClusteringColumnRestrictions` of Cassandra 5.0.

use ilion_cql::ast::{Operator, Relation};
use ilion_schema::{Column, TableSchema};

use super::indexes::Indexes;
use super::names::names;
use super::partition;
use super::restriction::{Predicate, Restriction};
use super::sorted::{RestrictionUse, Sorted, gives_keys};
use crate::Error;
use crate::context::PlanContext;

/// The message for a query that needs ALLOW FILTERING.
pub(crate) const NEEDS_FILTERING: &str = "Cannot execute this query as it might involve data filtering and thus may \
                                          have unpredictable performance. If you want to execute this query despite \
                                          the performance unpredictability, use ALLOW FILTERING";

const CANNOT_FILTER: &str = "Cannot execute this query as it might involve data filtering and thus may have unpredictable performance";

impl RestrictionUse {
    pub(super) fn allows_filtering(self) -> bool {
        matches!(
            self,
            Self::Select {
                allow_filtering: true,
                ..
            }
        )
    }

    pub(super) fn is_select(self) -> bool {
        matches!(self, Self::Select { .. })
    }

    fn only_statics(self) -> bool {
        match self {
            Self::Select { only_statics, .. }
            | Self::Update { only_statics }
            | Self::Delete { only_statics } => only_statics,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Select { .. } => "SELECT",
            Self::Update { .. } => "UPDATE",
            Self::Delete { .. } => "DELETE",
        }
    }
}

pub(super) fn needs_filtering(context: &PlanContext<'_>) -> Error {
    Error::invalid(if context.options.allow_filtering {
        NEEDS_FILTERING
    } else {
        CANNOT_FILTER
    })
}

/// Refuses operators that the statement does not support.
pub(super) fn check_operator(relation: &Relation, use_for: RestrictionUse) -> Result<(), Error> {
    let is_of_indexes = matches!(
        relation.operator,
        Operator::Contains | Operator::ContainsKey | Operator::AnalyzerMatches
    );
    if is_of_indexes && !use_for.is_select() {
        return Err(Error::invalid(format!(
            "Cannot use {} with {}",
            use_for.name(),
            relation.operator
        )));
    }
    Ok(())
}

/// Refuses a restriction on a clustering column that follows one restricted by a range.
pub(super) fn check_clustering_order(
    known: &[Restriction],
    new: &Restriction,
    use_for: RestrictionUse,
    indexes: &Indexes,
) -> Result<(), Error> {
    let is_free = use_for.allows_filtering() || indexes.serve(new);
    let Some(last) = known.last().filter(|_| !is_free) else {
        return Ok(());
    };
    let (new_first, last_first) = (new.first(), last.first());
    if last.is_slice() && new_first.position > last_first.position {
        return Err(Error::invalid(format!(
            "Clustering column \"{}\" cannot be restricted (preceding column \"{}\" is restricted by a non-EQ relation)",
            new_first.name, last_first.name
        )));
    }
    if new.is_slice() && new_first.position < last_first.position {
        let later = known.iter().map(Restriction::first);
        let next = later
            .into_iter()
            .find(|column| column.position > new_first.position);
        let next = next.unwrap_or(last_first);
        return Err(Error::invalid(format!(
            "PRIMARY KEY column \"{}\" cannot be restricted (preceding column \"{}\" is restricted by a non-EQ relation)",
            next.name, new_first.name
        )));
    }
    Ok(())
}

/// Refuses predicates that only an index can evaluate, if none serves them.
pub(super) fn check_served(
    restriction: &Restriction,
    relation: &Relation,
    indexes: &Indexes,
) -> Result<(), Error> {
    let word = match restriction.predicate {
        Predicate::Like(_) => "LIKE",
        Predicate::Matches(_) => ":",
        _ => return Ok(()),
    };
    match indexes.serve(restriction) {
        true => Ok(()),
        false => Err(Error::Invalid(format!(
            "{word} restriction is only supported on properly indexed columns. {relation} is not valid."
        ))),
    }
}

/// Refuses restrictions that the statement does not support without an index. `usage` has the rules with an index.
pub(super) fn check(
    table: &TableSchema,
    sorted: &Sorted,
    use_for: RestrictionUse,
    has_index: bool,
    context: &PlanContext<'_>,
) -> Result<(), Error> {
    if has_index {
        return check_statics(sorted, use_for);
    }
    check_partition(table, sorted, use_for, context)?;
    check_statics(sorted, use_for)?;
    check_clustering(table, sorted, use_for)?;
    check_others(sorted, use_for)
}

fn check_partition(
    table: &TableSchema,
    sorted: &Sorted,
    use_for: RestrictionUse,
    context: &PlanContext<'_>,
) -> Result<(), Error> {
    if use_for.is_select() {
        let is_filtering = !sorted.partition.is_empty() && !gives_keys(table, &sorted.partition);
        if is_filtering && !use_for.allows_filtering() {
            return Err(needs_filtering(context));
        }
        return Ok(());
    }
    if sorted.token.is_some() {
        return Err(Error::invalid(format!(
            "The token function cannot be used in WHERE clauses for {} statements",
            use_for.name()
        )));
    }
    if let Some(missing) = partition::unrestricted(table, &sorted.partition) {
        return Err(Error::invalid(format!(
            "Some partition key parts are missing: {missing}"
        )));
    }
    if sorted.partition.iter().any(Restriction::is_slice) {
        return Err(Error::invalid(format!(
            "Only EQ and IN relation are supported on the partition key (unless you use the token() function) for {} \
             statements",
            use_for.name()
        )));
    }
    Ok(())
}

fn check_statics(sorted: &Sorted, use_for: RestrictionUse) -> Result<(), Error> {
    if !use_for.only_statics() || sorted.clustering.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(if use_for.is_select() {
        "Cannot restrict clustering columns when selecting only static columns".to_owned()
    } else {
        format!(
            "Invalid restrictions on clustering columns since the {} statement modifies only static columns",
            use_for.name()
        )
    }))
}

fn check_clustering(table: &TableSchema, sorted: &Sorted, use_for: RestrictionUse) -> Result<(), Error> {
    let restrictions = &sorted.clustering;
    if let RestrictionUse::Update { only_statics } = use_for {
        if restrictions.iter().any(Restriction::is_slice) {
            return Err(Error::invalid(
                "Slice restrictions are not supported on the clustering columns in UPDATE statements",
            ));
        }
        return if only_statics {
            Ok(())
        } else {
            check_all_clustering(table, restrictions)
        };
    }
    if use_for.allows_filtering() {
        return Ok(());
    }
    if restrictions.iter().any(Restriction::is_contains) {
        return Err(Error::invalid(
            "Clustering columns can only be restricted with CONTAINS with a secondary index or filtering",
        ));
    }
    check_no_gap(table, restrictions)
}

fn check_all_clustering(table: &TableSchema, restrictions: &[Restriction]) -> Result<(), Error> {
    let missing: Vec<&Column> = table
        .clustering()
        .filter(|column| restricted(restrictions).all(|known| known.id != column.id))
        .collect();
    let is_dense = table.is_compact() && !table.is_static_compact();
    if missing.is_empty() {
        return Ok(());
    }
    if is_dense && !restrictions.is_empty() {
        return check_no_gap(table, restrictions);
    }
    Err(Error::invalid(format!(
        "Some clustering keys are missing: {}",
        names(missing)
    )))
}

fn check_no_gap(table: &TableSchema, restrictions: &[Restriction]) -> Result<(), Error> {
    for (column, restricted) in table.clustering().zip(restricted(restrictions)) {
        if column.id != restricted.id {
            return Err(Error::invalid(format!(
                "PRIMARY KEY column \"{}\" cannot be restricted as preceding column \"{}\" is not restricted",
                restricted.name, column.name
            )));
        }
    }
    Ok(())
}

fn restricted(restrictions: &[Restriction]) -> impl Iterator<Item = &Column> {
    restrictions.iter().flat_map(|restriction| &restriction.columns)
}

fn check_others(sorted: &Sorted, use_for: RestrictionUse) -> Result<(), Error> {
    if sorted.others.is_empty() || use_for.is_select() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "Non PRIMARY KEY columns found in where clause: {} ",
        names(restricted(&sorted.others))
    )))
}

/// Refuses multi-column ranges that would need filtering: they must be slices.
pub(super) fn check_filtered(filtered: &[Restriction]) -> Result<(), Error> {
    if filtered.iter().any(|known| known.is_multi && known.is_slice()) {
        return Err(Error::invalid(
            "Multi-column slice restrictions cannot be used for filtering.",
        ));
    }
    Ok(())
}
