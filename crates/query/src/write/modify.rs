//! [`ModifyPlan`]: a planned INSERT, UPDATE or DELETE, as a value.

use std::sync::Arc;

use ilion_schema::{TableKind, TableSchema};

use super::condition::Condition;
use super::json::JsonSource;
use super::operation::Operations;
use super::timing::Timing;
use crate::context::Execution;
use crate::masking::Masks;
use crate::restrictions::Restrictions;
use crate::term::Term;

/// A planned INSERT, UPDATE or DELETE.
#[derive(Debug)]
pub(crate) struct ModifyPlan {
    pub(super) table: Arc<TableSchema>,
    pub(super) kind: Kind,
    pub(super) target: Target,
    pub(super) operations: Operations,
    pub(super) timing: Timing,
    pub(super) condition: Condition,
    /// True if the table has materialized views.
    pub(super) has_views: bool,
    /// The masks for the answer of a conditional statement, if masks apply.
    pub(super) masks: Option<Masks>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Insert,
    Update,
    Delete,
}

impl Kind {
    /// The statement's name in messages about conditions.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Insert | Self::Update => "updates",
            Self::Delete => "deletions",
        }
    }
}

/// The rows that a statement changes.
#[derive(Debug)]
pub(super) enum Target {
    /// The values of an INSERT's primary key; `clustering` is `None` if only static columns are set.
    Values {
        partition_key: Vec<Term>,
        clustering: Option<Vec<Term>>,
    },
    /// INSERT JSON: columns and values are known at execution.
    Json(JsonSource),
    /// The rows of a WHERE.
    Where(Box<Restrictions>),
}

impl ModifyPlan {
    /// The table.
    pub fn table(&self) -> &Arc<TableSchema> {
        &self.table
    }

    /// True if the statement has an IF.
    pub fn is_conditional(&self) -> bool {
        !self.condition.is_none()
    }

    /// True if the statement's answer is masked for roles without UNMASK.
    pub fn has_masks(&self) -> bool {
        self.masks.is_some()
    }

    /// True if the statement changes counters.
    pub fn is_counter(&self) -> bool {
        self.table.is_counter()
    }

    /// True if the table is virtual: computed when it is read.
    pub fn is_virtual(&self) -> bool {
        self.table.kind == TableKind::Virtual
    }

    /// True if the statement has its own timestamp.
    pub fn has_timestamp(&self) -> bool {
        self.timing.has_timestamp()
    }

    /// True if an operation of the statement needs a stored list. Conditions do not count here.
    pub fn reads(&self) -> bool {
        self.operations.reads()
    }

    /// True if the partitions must be locked, since the statement or the table's views read stored data.
    pub fn is_locking(&self) -> bool {
        self.reads() || self.has_views
    }
}

/// A member of a batch with its own values.
pub(crate) struct BatchMember<'a> {
    pub plan: &'a ModifyPlan,
    pub execution: Execution<'a>,
}
