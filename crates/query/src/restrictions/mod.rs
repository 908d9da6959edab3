//! WHERE: which partitions, which slices of them, and what is left to check row by row.

use std::sync::Arc;

use ilion_cql::ast;
use ilion_rows::{Clustering, DecoratedKey, KeyRange, Slice};
use ilion_schema::TableSchema;

use crate::Error;
use crate::context::{Execution, PlanContext};

/// Which statement the WHERE belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RestrictionUse {
    Select { allow_filtering: bool },
    Update,
    Delete,
}

/// A planned WHERE.
#[derive(Debug)]
pub(crate) struct Restrictions;

impl Restrictions {
    /// Resolves the relations.
    pub fn plan(
        _table: &Arc<TableSchema>,
        _relations: &[ast::Relation],
        _use_for: RestrictionUse,
        _context: &PlanContext<'_>,
    ) -> Result<Self, Error> {
        Err(not_built())
    }

    /// True if the whole partition key is given by `=` or `IN`.
    pub fn is_by_key(&self) -> bool {
        false
    }

    /// The partitions, if [`Self::is_by_key`].
    pub fn partition_keys(&self, _execution: &Execution<'_>) -> Result<Vec<DecoratedKey>, Error> {
        Err(not_built())
    }

    /// The partitions, by token, if not [`Self::is_by_key`].
    pub fn key_range(&self, _execution: &Execution<'_>) -> Result<KeyRange, Error> {
        Err(not_built())
    }

    /// The clusterings, in stored order, not overlapping.
    pub fn slices(&self, _execution: &Execution<'_>) -> Result<Vec<Slice>, Error> {
        Err(not_built())
    }

    /// The exact rows, if every clustering column is given by `=` or `IN`.
    pub fn clusterings(&self, _execution: &Execution<'_>) -> Result<Option<Vec<Clustering>>, Error> {
        Err(not_built())
    }

    /// Which markers make the partition key, in key order; empty if they do not make all of it.
    pub fn partition_key_markers(&self) -> Vec<u16> {
        Vec::new()
    }
}

fn not_built() -> Error {
    Error::ServerError("WHERE is not built yet".into())
}
