//! `OR`: several branches, one of which a row must match.
//!
//! Indexes find the rows if each branch has one: the union of their candidates is read. Otherwise every row is checked, which needs
//! ALLOW FILTERING. An extension of Ilion: Cassandra has no OR in WHERE, so there is no behaviour to copy.

use ilion_cql::ast::{Relation, Subject};
use ilion_schema::{Column, ColumnKind, TableSchema};

use super::indexes::{IndexGroup, Indexes};
use super::relation::{self, Resolved};
use super::restriction::{self, Restriction};
use super::rules;
use super::sorted::RestrictionUse;
use crate::Error;
use crate::context::PlanContext;

/// Branches, one of which must hold.
#[derive(Debug)]
pub(crate) struct Alternatives(pub(super) Vec<Branch>);

/// Restrictions that must all hold.
#[derive(Debug, Default)]
pub(crate) struct Branch {
    pub(super) restrictions: Vec<Restriction>,
    pub(super) alternatives: Vec<Alternatives>,
}

impl Alternatives {
    /// Resolves branches.
    ///
    /// # Errors
    /// A relation is not possible, or is on the token.
    pub(super) fn plan(
        branches: &[Vec<Relation>],
        table: &TableSchema,
        use_for: RestrictionUse,
        indexes: &Indexes,
        context: &PlanContext<'_>,
    ) -> Result<Self, Error> {
        let branch = |relations: &Vec<Relation>| {
            let mut branch = Branch::default();
            for relation in relations {
                branch.add(relation, table, use_for, indexes, context)?;
            }
            rules::check_filtered(&branch.restrictions)?;
            Ok(branch)
        };
        branches.iter().map(branch).collect::<Result<_, _>>().map(Self)
    }

    /// All restrictions of all branches.
    pub(super) fn restrictions(&self) -> Vec<&Restriction> {
        let mut all = Vec::new();
        for branch in &self.0 {
            all.extend(&branch.restrictions);
            for nested in &branch.alternatives {
                all.extend(nested.restrictions());
            }
        }
        all
    }

    /// The columns that the branches check.
    pub(super) fn columns(&self) -> impl Iterator<Item = &Column> {
        self.restrictions()
            .into_iter()
            .flat_map(|restriction| &restriction.columns)
    }

    /// True if all restrictions are on the partition key or static columns.
    pub(super) fn is_of_partitions(&self) -> bool {
        self.columns()
            .all(|column| matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Static))
    }

    /// True if each branch has an index that can find its rows.
    pub(super) fn are_served(&self, indexes: &Indexes) -> bool {
        self.0.iter().all(|branch| {
            branch.restrictions.iter().any(|known| indexes.serve(known))
                || branch.alternatives.iter().any(|known| known.are_served(indexes))
        })
    }

    /// True if all rows that the indexes return match a branch, so that rows need no check. Each branch must be covered by one group.
    pub(super) fn are_covered(&self, groups: &[IndexGroup<'_>]) -> bool {
        self.0
            .iter()
            .all(|branch| groups.iter().any(|group| branch.is_covered(group)))
    }
}

impl Branch {
    fn add(
        &mut self,
        relation: &Relation,
        table: &TableSchema,
        use_for: RestrictionUse,
        indexes: &Indexes,
        context: &PlanContext<'_>,
    ) -> Result<(), Error> {
        if let Subject::AnyOf(branches) = &relation.subject {
            let nested = Alternatives::plan(branches, table, use_for, indexes, context)?;
            self.alternatives.push(nested);
            return Ok(());
        }
        rules::check_operator(relation, use_for)?;
        match relation::resolve(relation, table, context)? {
            Resolved::Token(_) => Err(Error::invalid("token() cannot be restricted in a branch of OR")),
            Resolved::Columns(restriction) => {
                rules::check_served(&restriction, relation, indexes)?;
                restriction::add(&mut self.restrictions, restriction)
            }
        }
    }

    fn is_covered(&self, group: &IndexGroup<'_>) -> bool {
        self.restrictions.iter().all(|known| group.covers(known))
            && self
                .alternatives
                .iter()
                .all(|known| known.are_covered(std::slice::from_ref(group)))
    }
}
