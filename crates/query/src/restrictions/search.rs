//! Which indexes are searched, and for which predicates.
//!
//! Every restriction that an index serves is a lead, and so is an `OR` in which each branch has a lead. The search follows the
//! lead with the fewest rows, and intersects storage-attached indexes with it as long as that pays ([`choose`]). All
//! restrictions are checked on the rows that are found.
//!
//! | module | what |
//! | --- | --- |
//! | `asked` | the predicates of a restriction |
//! | `choose` | which leads are followed |

mod asked;
mod choose;

use std::cell::OnceCell;
use std::sync::Arc;

use ilion_engine::OpenIndex;
use ilion_env::trace;
use ilion_index::{Candidates, Estimate, Intersection, Predicate as Asked, SecondaryIndex, Union};
use ilion_rows::{ClusteringComparator, KeyRange};
use ilion_schema::{Column, TableSchema};

use super::alternatives::Alternatives;
use super::indexes::{Indexes, is_table_index};
use super::like;
use super::restriction::Restriction;
use super::{Restrictions, filter};
use crate::context::Execution;
use crate::guardrails::{check_index_files, ensure};
use crate::{Error, FailureReason};
use asked::{asked, is_too_long};
use choose::{Offer, choose};

/// A way to find rows.
#[derive(Clone)]
struct Lead {
    way: Way,
    /// The estimated cost; computed only where there is a choice.
    estimate: OnceCell<Estimate>,
}

#[derive(Clone)]
enum Way {
    /// An index and the predicate to search for.
    Index { open: OpenIndex, asked: Asked },
    /// The branches of an `OR`, each with its own leads.
    AnyOf(Vec<SearchPlan>),
}

/// The leads that were chosen, to be intersected; the one with the fewest rows comes first.
#[derive(Clone, Default)]
pub(crate) struct SearchPlan {
    leads: Vec<Lead>,
}

/// The candidates for the rows of a WHERE.
pub(crate) type Search = Box<dyn Candidates>;

impl Restrictions {
    /// Chooses how indexes find the rows; `None` if no index is used.
    ///
    /// # Errors
    /// A needed index is not built yet, a value is null, or a limit of the operator is exceeded.
    pub fn search_plan(
        &self,
        table: &Arc<TableSchema>,
        execution: &Execution<'_>,
    ) -> Result<Option<SearchPlan>, Error> {
        if !self.uses_index() || self.is_one_row() {
            return Ok(None);
        }
        let finder = LeadFinder {
            table,
            indexes: Indexes::now(self.table, execution),
            allows_filtering: self.allows_filtering,
            execution,
        };
        let restrictions = self.filtered.iter().chain(&self.clustering.sliced);
        let plan = finder.plan(restrictions, &self.alternatives)?;
        if let Some(plan) = &plan {
            plan.check(self.restricts_partition(), table, execution)?;
        }
        Ok(plan)
    }

    /// The index that ranks the vectors of a column.
    ///
    /// # Errors
    /// The index is not built yet.
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
}

/// Collects leads.
struct LeadFinder<'f> {
    table: &'f Arc<TableSchema>,
    indexes: Indexes,
    allows_filtering: bool,
    execution: &'f Execution<'f>,
}

impl LeadFinder<'_> {
    /// The best leads to the rows that match all restrictions; `None` if no index leads to them.
    fn plan<'r>(
        &self,
        restrictions: impl Iterator<Item = &'r Restriction>,
        alternatives: &[Alternatives],
    ) -> Result<Option<SearchPlan>, Error> {
        let mut leads = Vec::new();
        for restriction in restrictions {
            self.leads(restriction, &mut leads)?;
        }
        for alternatives in alternatives {
            leads.extend(self.lead_of_any(alternatives)?);
        }
        if leads.len() > 1 {
            leads = self.chosen(leads)?;
        }
        Ok((!leads.is_empty()).then_some(SearchPlan { leads }))
    }

    fn chosen(&self, leads: Vec<Lead>) -> Result<Vec<Lead>, Error> {
        let offer = |lead: &Lead| {
            Ok(Offer {
                rows: lead.estimate(self.table, self.execution)?.rows,
                is_attached: lead.way.is_attached(),
            })
        };
        let offers: Vec<Offer> = leads.iter().map(offer).collect::<Result<_, Error>>()?;
        let chosen = choose(&offers).into_iter().map(|index| leads[index].clone());
        Ok(chosen.collect())
    }

    /// A lead to the rows of all branches, if each branch has one.
    fn lead_of_any(&self, alternatives: &Alternatives) -> Result<Option<Lead>, Error> {
        let mut plans = Vec::new();
        for branch in &alternatives.0 {
            let Some(plan) = self.plan(branch.restrictions.iter(), &branch.alternatives)? else {
                return Ok(None);
            };
            plans.push(plan);
        }
        Ok(Some(Way::AnyOf(plans).into()))
    }

    /// Appends the leads of a restriction.
    fn leads(&self, restriction: &Restriction, leads: &mut Vec<Lead>) -> Result<(), Error> {
        let serving: Vec<&OpenIndex> = restriction
            .columns
            .iter()
            .flat_map(|column| self.indexes.of_column(column))
            .collect();
        if serving.is_empty() {
            return Ok(());
        }
        for (column, asked) in asked(restriction, self.execution)? {
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
            self.check_built(&able)?;
            for open in able.into_iter().filter(|open| open.is_built) {
                leads.push(lead(open, asked.clone())?);
            }
        }
        Ok(())
    }

    /// Refuses a query if none of the indexes that serve a predicate is built, unless the query may filter instead.
    fn check_built(&self, able: &[&&OpenIndex]) -> Result<(), Error> {
        let is_waiting = !able.is_empty() && able.iter().all(|open| !open.is_built);
        match able.first().filter(|_| is_waiting && !self.allows_filtering) {
            Some(open) => Err(not_available(open, self.execution)),
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

fn lead(open: &OpenIndex, asked: Asked) -> Result<Lead, Error> {
    if is_table_index(&*open.index) && is_too_long(&asked) {
        return Err(Error::invalid(
            "Index expression values may not be larger than 64K",
        ));
    }
    let open = open.clone();
    Ok(Way::Index { open, asked }.into())
}

impl From<Way> for Lead {
    fn from(way: Way) -> Self {
        Self {
            way,
            estimate: OnceCell::new(),
        }
    }
}

impl Way {
    /// True if the search can be intersected with others.
    fn is_attached(&self) -> bool {
        match self {
            Self::Index { open, .. } => !is_table_index(&*open.index),
            Self::AnyOf(plans) => {
                let mut leads = plans.iter().flat_map(|plan| &plan.leads);
                leads.all(|lead| lead.way.is_attached())
            }
        }
    }
}

impl Lead {
    /// How many rows the lead may return, and how many files it may read.
    fn estimate(&self, table: &Arc<TableSchema>, execution: &Execution<'_>) -> Result<Estimate, Error> {
        if let Some(known) = self.estimate.get() {
            return Ok(*known);
        }
        let estimate = match &self.way {
            Way::Index { open, asked } => execution
                .store
                .index_estimate(table, &open.index.definition().schema.name, asked)
                .map_err(|refused| refused.of_read(execution.options.consistency))?,
            Way::AnyOf(plans) => {
                let mut sum = Estimate::default();
                for plan in plans {
                    let branch = plan.estimate(table, execution)?;
                    sum.rows += branch.rows;
                    sum.files += branch.files;
                }
                sum
            }
        };
        Ok(*self.estimate.get_or_init(|| estimate))
    }

    fn search(
        &self,
        table: &Arc<TableSchema>,
        range: &KeyRange,
        execution: &Execution<'_>,
    ) -> Result<Search, Error> {
        match &self.way {
            Way::Index { open, asked } => {
                let name = &open.index.definition().schema.name;
                trace::note(|| format!("Searching index {name}"));
                execution
                    .store
                    .index_search(table, name, asked, range)
                    .map_err(|refused| refused.of_read(execution.options.consistency))
            }
            Way::AnyOf(plans) => {
                let branches = plans.iter().map(|plan| plan.begin(table, range, execution));
                Ok(Box::new(Union::of(
                    branches.collect::<Result<_, _>>()?,
                    ClusteringComparator::of(table),
                )))
            }
        }
    }

    /// Calls `show` for every index.
    fn each_index(&self, show: &mut dyn FnMut(&Self, &OpenIndex, &Asked)) {
        match &self.way {
            Way::Index { open, asked } => show(self, open, asked),
            Way::AnyOf(plans) => {
                let leads = plans.iter().flat_map(|plan| &plan.leads);
                leads.for_each(|lead| lead.each_index(show));
            }
        }
    }
}

impl SearchPlan {
    /// Starts the search in a range of partitions.
    ///
    /// # Errors
    /// A source cannot be read.
    pub fn begin(
        &self,
        table: &Arc<TableSchema>,
        range: &KeyRange,
        execution: &Execution<'_>,
    ) -> Result<Search, Error> {
        if let [only] = self.leads.as_slice() {
            return only.search(table, range, execution);
        }
        let inputs = self.leads.iter().map(|lead| lead.search(table, range, execution));
        Ok(Box::new(Intersection::of(
            inputs.collect::<Result<_, _>>()?,
            ClusteringComparator::of(table),
        )))
    }

    /// How many rows the search may return, and how many files it may read.
    pub fn estimate(&self, table: &Arc<TableSchema>, execution: &Execution<'_>) -> Result<Estimate, Error> {
        let mut all = Estimate::default();
        for (place, lead) in self.leads.iter().enumerate() {
            let one = lead.estimate(table, execution)?;
            all.files += one.files;
            // The first lead has the fewest rows.
            all.rows = if place == 0 { one.rows } else { all.rows };
        }
        Ok(all)
    }

    /// True if the search unites the branches of an `OR`.
    pub fn unites(&self) -> bool {
        self.leads.iter().any(|lead| matches!(lead.way, Way::AnyOf(_)))
    }

    /// Each index that is searched, with its predicate and estimated cost as text.
    pub fn describe(
        &self,
        table: &Arc<TableSchema>,
        execution: &Execution<'_>,
    ) -> Result<Vec<IndexUse>, Error> {
        let mut uses = Vec::new();
        for lead in &self.leads {
            lead.each_index(&mut |lead, open, asked| {
                let definition = open.index.definition();
                uses.push(lead.estimate(table, execution).map(|estimate| IndexUse {
                    index: definition.schema.name.clone(),
                    asked: filter::describe(&definition.column, asked),
                    estimate,
                }));
            });
        }
        uses.into_iter().collect()
    }

    /// Refuses a search without a restricted partition key, or of too many files, if the operator does not allow it.
    fn check(
        &self,
        restricts_partition: bool,
        table: &Arc<TableSchema>,
        execution: &Execution<'_>,
    ) -> Result<(), Error> {
        let guardrails = &execution.query_options.guardrails;
        let is_allowed = restricts_partition || guardrails.non_partition_restricted_index_query_enabled;
        ensure(
            "non_partition_restricted_index_query_enabled",
            is_allowed,
            "Non-partition key restricted query",
        )?;
        let threshold = guardrails.sai_sstable_indexes_per_query;
        let limit = threshold.warn.into_iter().chain(threshold.fail).min();
        let mut checked = Ok(());
        for lead in &self.leads {
            lead.each_index(&mut |lead, open, _| {
                // An estimate asks the index, so it is made only if the limit may be exceeded.
                let may_pass = limit.is_some_and(|limit| open.sstables > limit);
                if may_pass && checked.is_ok() && lead.way.is_attached() {
                    let name = &open.index.definition().schema.name;
                    let estimate = lead.estimate(table, execution);
                    checked =
                        estimate.and_then(|estimate| check_index_files(estimate.files, name, execution));
                }
            });
        }
        checked
    }
}

/// An index that a query searches, for EXPLAIN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexUse {
    /// Name of the index.
    pub index: String,
    /// The predicate, as CQL.
    pub asked: String,
    /// How many rows the index may return, and how many files it may read.
    pub estimate: Estimate,
}
