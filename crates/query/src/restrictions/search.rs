//! Which indexes are asked for what.
//!
//! Every restriction that an index serves is a lead. The lead with the fewest rows is followed; storage-attached indexes are
//! intersected with it as long as that is cheaper than reading the rows that they would leave out (`choose`, pure). What
//! comes back is checked row by row all the same.

use std::cmp::Reverse;
use std::sync::Arc;

use ilion_engine::OpenIndex;
use ilion_env::trace;
use ilion_index::{Candidates, Estimate, Intersection, Limit, Predicate as Asked, SecondaryIndex};
use ilion_rows::ClusteringComparator;
use ilion_schema::{Column, TableSchema};

use super::expression::supported;
use super::indexes::{Indexes, is_table_index};
use super::like;
use super::restriction::{Contained, Edge, Predicate, Restriction};
use super::{Restrictions, filter};
use crate::context::Execution;
use crate::guardrails::{check_index_files, ensure};
use crate::{Error, FailureReason};

/// Longest value that a table index is asked for.
const TABLE_VALUE_LEN_MAX: usize = 0xFFFF;
/// A lead of fewer rows is not worth another one.
const ROWS_READ_ANYWAY: u64 = 8;
/// How many entries of an index cost as much as one row of the table.
const ENTRIES_OF_ROW: u64 = 32;

/// An index and what it can be asked.
#[derive(Clone)]
pub(crate) struct Lead {
    open: OpenIndex,
    asked: Asked,
    estimate: Estimate,
}

/// What was chosen: leads to be intersected, the one with the fewest rows first. None: nothing can be found by an index.
#[derive(Clone, Default)]
pub(crate) struct SearchPlan {
    leads: Vec<Lead>,
}

/// Candidates of the rows that a WHERE asks for.
pub(crate) type Search = Box<dyn Candidates>;

/// What a lead is to the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offer {
    rows: u64,
    /// Several such leads can be followed at once.
    is_attached: bool,
}

/// Which offers are taken, the best first. Pure.
fn choose(offers: &[Offer]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..offers.len()).collect();
    // Of equal ones an attached index, which can be intersected.
    order.sort_by_key(|index| (offers[*index].rows, Reverse(offers[*index].is_attached)));
    let Some(best) = order.first().map(|index| offers[*index]) else {
        return order;
    };
    let mut is_first = true;
    order.retain(|index| {
        let pays = best.is_attached
            && offers[*index].is_attached
            && best.rows > ROWS_READ_ANYWAY
            && offers[*index].rows / ENTRIES_OF_ROW <= best.rows;
        std::mem::take(&mut is_first) || pays
    });
    order
}

impl Restrictions {
    /// Chooses how the rows are found; nothing if no index is to be asked.
    ///
    /// # Errors
    /// An index that is needed is not built yet; a value is null; a limit of the operator is passed.
    pub fn search_plan(
        &self,
        table: &Arc<TableSchema>,
        execution: &Execution<'_>,
    ) -> Result<Option<SearchPlan>, Error> {
        if !self.uses_index() || self.is_one_row() {
            return Ok(None);
        }
        let leads = self.leads(table, execution)?;
        let offers: Vec<Offer> = leads
            .iter()
            .map(|lead| Offer {
                rows: lead.estimate.rows,
                is_attached: !is_table_index(&*lead.open.index),
            })
            .collect();
        let chosen = choose(&offers).into_iter().map(|index| leads[index].clone());
        let plan = SearchPlan {
            leads: chosen.collect(),
        };
        if plan.leads.is_empty() {
            return Ok(None);
        }
        plan.check(self.restricts_partition(), execution)?;
        Ok(Some(plan))
    }

    /// The index that finds the nearest vectors of a column.
    ///
    /// # Errors
    /// It is not built yet.
    pub fn ranking_index(
        &self,
        column: &Column,
        execution: &Execution<'_>,
    ) -> Result<Arc<dyn SecondaryIndex>, Error> {
        let indexes = Indexes::now(self.table, execution);
        let mut ranking = indexes.of_column(column).filter(|open| open.index.ranks());
        match ranking.next() {
            Some(open) if open.is_built => Ok(open.index.clone()),
            Some(open) => Err(not_available(open, execution)),
            None => Err(Error::invalid(super::usage::NEEDS_INDEX)),
        }
    }

    /// What indexes can be asked.
    fn leads(&self, table: &Arc<TableSchema>, execution: &Execution<'_>) -> Result<Vec<Lead>, Error> {
        let mut leads = Vec::new();
        let indexes = Indexes::now(self.table, execution);
        for restriction in self.filtered.iter().chain(&self.clustering.sliced) {
            let serving: Vec<&OpenIndex> = restriction
                .columns
                .iter()
                .flat_map(|column| indexes.of_column(column))
                .collect();
            if serving.is_empty() {
                continue;
            }
            for (column, asked) in asked(restriction, execution)? {
                let of_column = serving
                    .iter()
                    .filter(|open| open.index.definition().column.id == column.id);
                let able: Vec<&&OpenIndex> = of_column.filter(|open| open.index.serves(&asked)).collect();
                if able.is_empty() && restriction.needs_index() {
                    return Err(Error::Invalid(format!(
                        "{} {} is only supported on properly indexed columns",
                        column.name,
                        like::describe(&asked)
                    )));
                }
                self.check_built(&able, execution)?;
                for open in able.into_iter().filter(|open| open.is_built) {
                    leads.push(lead(table, open, asked.clone(), execution)?);
                }
            }
        }
        Ok(leads)
    }

    /// Refuses a query that waits for an index, unless it may filter instead.
    fn check_built(&self, able: &[&&OpenIndex], execution: &Execution<'_>) -> Result<(), Error> {
        let is_waiting = !able.is_empty() && able.iter().all(|open| !open.is_built);
        match able.first().filter(|_| is_waiting && !self.allows_filtering) {
            Some(open) => Err(not_available(open, execution)),
            None => Ok(()),
        }
    }
}

/// Compat: `IndexNotAvailableException` of Cassandra 5.0.
pub(crate) fn not_available(open: &OpenIndex, execution: &Execution<'_>) -> Error {
    Error::ReadFailure {
        consistency: execution.options.consistency,
        reason: FailureReason::IndexNotAvailable,
        message: format!(
            "The secondary index '{}' is not yet available",
            open.index.definition().schema.name
        ),
    }
}

fn lead(
    table: &Arc<TableSchema>,
    open: &OpenIndex,
    asked: Asked,
    execution: &Execution<'_>,
) -> Result<Lead, Error> {
    if is_table_index(&*open.index) && is_too_long(&asked) {
        return Err(Error::invalid(
            "Index expression values may not be larger than 64K",
        ));
    }
    let name = &open.index.definition().schema.name;
    let estimate = execution
        .store
        .index_estimate(table, name, &asked)
        .map_err(|refused| refused.of_read(execution.options.consistency))?;
    Ok(Lead {
        open: open.clone(),
        asked,
        estimate,
    })
}

fn is_too_long(asked: &Asked) -> bool {
    match asked {
        Asked::Equal(value) | Asked::Contains(value) | Asked::ContainsKey(value) => {
            value.len() > TABLE_VALUE_LEN_MAX
        }
        Asked::Entry(key, value) => key.len() + value.len() > TABLE_VALUE_LEN_MAX,
        _ => false,
    }
}

impl SearchPlan {
    /// Begins the search.
    ///
    /// # Errors
    /// A source cannot be read.
    pub fn begin(&self, table: &Arc<TableSchema>, execution: &Execution<'_>) -> Result<Search, Error> {
        let search = |lead: &Lead| {
            let name = &lead.open.index.definition().schema.name;
            trace::note(|| format!("Searching index {name}"));
            execution
                .store
                .index_search(table, name, &lead.asked)
                .map_err(|refused| refused.of_read(execution.options.consistency))
        };
        if let [only] = self.leads.as_slice() {
            return search(only);
        }
        let inputs = self.leads.iter().map(search).collect::<Result<_, _>>()?;
        Ok(Box::new(Intersection::of(
            inputs,
            ClusteringComparator::of(table),
        )))
    }

    /// How many rows may be found.
    pub fn estimated_rows(&self) -> u64 {
        self.leads.first().map_or(0, |lead| lead.estimate.rows)
    }

    /// Each index that is asked, what it is asked, and what that may cost, in words.
    pub fn describe(&self) -> Vec<IndexUse> {
        let of = |lead: &Lead| IndexUse {
            index: lead.open.index.definition().schema.name.clone(),
            asked: filter::describe(&lead.open.index.definition().column, &lead.asked),
            estimate: lead.estimate,
        };
        self.leads.iter().map(of).collect()
    }

    /// Refuses what the operator does not allow.
    fn check(&self, restricts_partition: bool, execution: &Execution<'_>) -> Result<(), Error> {
        let guardrails = &execution.query_options.guardrails;
        let is_allowed = restricts_partition || guardrails.non_partition_restricted_index_query_enabled;
        ensure(
            "non_partition_restricted_index_query",
            is_allowed,
            "Non-partition key restricted query",
        )?;
        for lead in self
            .leads
            .iter()
            .filter(|lead| !is_table_index(&*lead.open.index))
        {
            let name = &lead.open.index.definition().schema.name;
            check_index_files(lead.estimate.files, name, execution)?;
        }
        Ok(())
    }
}

/// One index that a query asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexUse {
    /// Its name.
    pub index: String,
    /// What it is asked, as CQL.
    pub asked: String,
    /// What it may give, and how many files it may read.
    pub estimate: Estimate,
}

/// What a restriction asks, column by column; all of it must hold.
fn asked<'r>(
    restriction: &'r Restriction,
    execution: &Execution<'_>,
) -> Result<Vec<(&'r Column, Asked)>, Error> {
    let columns = &restriction.columns;
    let column = restriction.first();
    let value = |term: &crate::term::Term, what: &str| supported(term.evaluate(execution)?, what, column);
    Ok(match &restriction.predicate {
        Predicate::Equal(expression) => {
            let values = expression.evaluate_supported(columns, execution)?;
            let pairs = columns.iter().zip(values);
            pairs
                .filter_map(|(column, value)| Some((column, Asked::Equal(value?))))
                .collect()
        }
        Predicate::In(_) if restriction.is_multi => Vec::new(),
        Predicate::In(expressions) => {
            let members = expressions.evaluate_supported(columns, execution)?;
            let values = members
                .into_iter()
                .filter_map(|values| values.into_iter().flatten().next());
            vec![(column, Asked::AnyOf(values.collect()))]
        }
        Predicate::Slice { .. } if restriction.is_multi => Vec::new(),
        Predicate::Slice { start, end } => {
            let limit = |edge: &Option<Edge>| limit(edge.as_ref(), columns, execution);
            vec![(
                column,
                Asked::Range {
                    from: limit(start)?,
                    to: limit(end)?,
                },
            )]
        }
        Predicate::Contains(contained) => contained
            .iter()
            .map(|contained| {
                let asked = match contained {
                    Contained::Value(term) => Asked::Contains(value(term, "value")?),
                    Contained::Key(term) => Asked::ContainsKey(value(term, "value")?),
                    Contained::Entry(key, term) => {
                        Asked::Entry(value(key, "map key")?, value(term, "map value")?)
                    }
                };
                Ok((column, asked))
            })
            .collect::<Result<_, Error>>()?,
        Predicate::Like(term) => vec![(column, like::pattern(&value(term, "value")?)?)],
        Predicate::Matches(term) => vec![(column, Asked::Matches(value(term, "value")?))],
    })
}

fn limit(edge: Option<&Edge>, columns: &[Column], execution: &Execution<'_>) -> Result<Option<Limit>, Error> {
    let Some(edge) = edge else {
        return Ok(None);
    };
    let values = edge.expression.evaluate_supported(columns, execution)?;
    Ok(values.into_iter().flatten().next().map(|value| Limit {
        value,
        is_inclusive: edge.is_inclusive,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(offers: &[(u64, bool)]) -> Vec<usize> {
        let offers: Vec<Offer> = offers
            .iter()
            .map(|(rows, is_attached)| Offer {
                rows: *rows,
                is_attached: *is_attached,
            })
            .collect();
        choose(&offers)
    }

    #[test]
    fn of_table_indexes_the_one_with_the_fewest_rows_is_asked() {
        assert_eq!(chosen(&[(100, false), (10, false), (50, false)]), [1]);
        assert_eq!(chosen(&[(100, true), (10, false)]), [1]);
        assert!(chosen(&[]).is_empty());
    }

    #[test]
    fn attached_indexes_are_intersected_the_cheapest_first() {
        assert_eq!(chosen(&[(1000, true), (100, true), (500, true)]), [1, 2, 0]);
        assert_eq!(chosen(&[(100, true), (10, false), (100, true)]), [1]);
    }

    #[test]
    fn an_index_that_costs_more_than_the_rows_it_spares_is_left_out() {
        assert_eq!(chosen(&[(5, true), (6, true)]), [0]);
        assert_eq!(chosen(&[(100, true), (100_000, true)]), [0]);
        assert_eq!(chosen(&[(100, true), (3200, true)]), [0, 1]);
    }
}
