//! Aggregates of a selection: what each is of, and adding rows.

use bytes::Bytes;
use ilion_types::CqlType;

use super::expression::{Expr, Scope};
use crate::Error;
use crate::aggregate::{Kind, Running};

/// A planned aggregate.
#[derive(Debug)]
pub(super) struct AggregatePlan {
    pub kind: Kind,
    /// Nothing counts rows.
    pub argument: Option<Expr>,
    /// Type of the argument.
    pub ty: CqlType,
}

/// An aggregate while rows are added.
#[derive(Debug)]
pub(super) struct RunningAggregate<'p> {
    argument: Option<&'p Expr>,
    running: Running<'p>,
}

impl<'p> RunningAggregate<'p> {
    /// Over nothing yet.
    pub fn new(plan: &'p AggregatePlan) -> Self {
        Self {
            argument: plan.argument.as_ref(),
            running: Running::new(plan.kind, &plan.ty),
        }
    }

    /// Adds a row.
    pub fn add(&mut self, scope: Scope<'_>) -> Result<(), Error> {
        let Some(argument) = self.argument else {
            self.running.add_row();
            return Ok(());
        };
        match argument.evaluate(scope)? {
            None => Ok(()),
            Some(value) => self.running.add(value),
        }
    }

    /// The result.
    pub fn result(&self) -> Option<Bytes> {
        self.running.result()
    }
}
