//! The aggregates of a selection: their arguments, and adding rows.

use std::sync::Arc;

use bytes::Bytes;
use ilion_schema::Column;
use ilion_types::CqlType;

use super::expression::{Expr, Scope};
use super::user_aggregate::{RunningUserAggregate, UserAggregate};
use crate::Error;
use crate::aggregate::{AggregateKind, Running};

/// A planned aggregate.
#[derive(Debug)]
pub(super) enum AggregatePlan {
    Native {
        kind: AggregateKind,
        /// `None` counts rows.
        argument: Option<Expr>,
        /// Type of the argument.
        ty: CqlType,
    },
    User {
        aggregate: Arc<UserAggregate>,
        arguments: Vec<Expr>,
    },
}

impl AggregatePlan {
    /// Its name with its keyspace.
    pub fn printed_name(&self) -> String {
        match self {
            Self::Native { kind, .. } => format!("system.{}", kind.name()),
            Self::User { aggregate, .. } => format!("{}.{}", aggregate.keyspace, aggregate.schema.name),
        }
    }

    /// The argument of a native aggregate: a column that is used unchanged, or `Some(None)` if the aggregate counts rows. `None` for
    /// all other aggregates.
    pub fn plain_argument(&self) -> Option<Option<&Column>> {
        match self {
            Self::Native { argument: None, .. } => Some(None),
            Self::Native {
                argument: Some(Expr::Column(column)),
                ..
            } => Some(Some(column)),
            Self::Native { .. } | Self::User { .. } => None,
        }
    }
}

/// The state of an aggregate while rows are added.
pub(super) enum RunningAggregate<'p> {
    Native {
        argument: Option<&'p Expr>,
        running: Running<'p>,
    },
    User {
        arguments: &'p [Expr],
        running: RunningUserAggregate<'p>,
    },
}

impl<'p> RunningAggregate<'p> {
    /// An aggregate without rows so far.
    pub fn new(plan: &'p AggregatePlan) -> Self {
        match plan {
            AggregatePlan::Native { kind, argument, ty } => Self::Native {
                argument: argument.as_ref(),
                running: Running::new(*kind, ty),
            },
            AggregatePlan::User { aggregate, arguments } => Self::User {
                arguments,
                running: RunningUserAggregate::new(aggregate),
            },
        }
    }

    /// Adds a row.
    pub fn add(&mut self, scope: Scope<'_>) -> Result<(), Error> {
        match self {
            Self::Native {
                argument: None,
                running,
            } => {
                running.add_rows(1);
                Ok(())
            }
            Self::Native {
                argument: Some(argument),
                running,
            } => match argument.evaluate(scope)? {
                None => Ok(()),
                Some(value) => running.add(&value),
            },
            Self::User { arguments, running } => {
                let values = arguments
                    .iter()
                    .map(|argument| argument.evaluate(scope))
                    .collect::<Result<Vec<_>, Error>>()?;
                running.add(values, scope.execution)
            }
        }
    }

    /// The state of a native aggregate; `None` for a user-defined one.
    pub fn native(&mut self) -> Option<&mut Running<'p>> {
        match self {
            Self::Native { running, .. } => Some(running),
            Self::User { .. } => None,
        }
    }

    /// The result.
    pub fn result(&self, scope: Scope<'_>) -> Result<Option<Bytes>, Error> {
        match self {
            Self::Native { running, .. } => Ok(running.result()),
            Self::User { running, .. } => running.result(scope.execution),
        }
    }
}
