//! User-defined aggregates.
//!
//! Compat: `UDAggregate` of Cassandra 5.0. A state function that is not called on null skips rows with a null argument, and
//! returns null for a null state. A final function that is not called on null returns null for a null state.

use std::iter;
use std::sync::Arc;

use bytes::Bytes;
use ilion_schema::{AggregateSchema, Keyspace};
use ilion_types::CqlType;

use crate::context::{Execution, PlanContext};
use crate::term::functions::{ScalarFunction, exact_user_function};
use crate::term::plan_constant;
use crate::{ColumnSpec, Error};

/// A user-defined aggregate with its functions.
#[derive(Debug)]
pub(super) struct UserAggregate {
    pub keyspace: String,
    pub schema: Arc<AggregateSchema>,
    state: Arc<ScalarFunction>,
    is_null_taken: bool,
    last: Option<Arc<ScalarFunction>>,
    initial: Option<Bytes>,
}

impl UserAggregate {
    /// Resolves the functions of an aggregate.
    ///
    /// # Errors
    /// A function does not exist any more.
    pub fn of(
        keyspace: &Keyspace,
        schema: &Arc<AggregateSchema>,
        context: &PlanContext<'_>,
    ) -> Result<Self, Error> {
        context.calls(&keyspace.name, &schema.name);
        context.executes(&keyspace.name, &schema.name, &schema.argument_types);
        let types: Vec<CqlType> = iter::once(&schema.state_type)
            .chain(&schema.argument_types)
            .cloned()
            .collect();
        let state = exact_user_function(keyspace, &schema.state_func, &types, context)?;
        let declared = keyspace.find_function(&schema.state_func, &types);
        let last = match &schema.final_func {
            Some(name) => Some(exact_user_function(keyspace, name, &types[..1], context)?),
            None => None,
        };
        Ok(Self {
            keyspace: keyspace.name.clone(),
            state,
            is_null_taken: declared.is_some_and(|function| function.called_on_null_input),
            last,
            initial: initial_state(keyspace, schema, context)?,
            schema: schema.clone(),
        })
    }
}

fn initial_state(
    keyspace: &Keyspace,
    schema: &AggregateSchema,
    context: &PlanContext<'_>,
) -> Result<Option<Bytes>, Error> {
    let Some(text) = &schema.initcond else {
        return Ok(None);
    };
    let receiver = ColumnSpec {
        keyspace: keyspace.name.as_str().into(),
        table: "--dummy--".into(),
        name: "(aggregate_initcond)".into(),
        ty: schema.state_type.clone(),
    };
    plan_constant(&ilion_cql::parse_term(text)?, &receiver, context)
}

/// The state of a user-defined aggregate while rows are added.
pub(super) struct RunningUserAggregate<'p> {
    plan: &'p UserAggregate,
    state: Option<Bytes>,
}

impl<'p> RunningUserAggregate<'p> {
    /// An aggregate without rows so far.
    pub fn new(plan: &'p UserAggregate) -> Self {
        Self {
            plan,
            state: plan.initial.clone(),
        }
    }

    /// Adds the arguments of a row.
    ///
    /// # Errors
    /// The state function failed.
    pub fn add(&mut self, values: Vec<Option<Bytes>>, execution: &Execution<'_>) -> Result<(), Error> {
        if !self.plan.is_null_taken && values.iter().any(Option::is_none) {
            return Ok(());
        }
        let arguments: Vec<Option<Bytes>> = iter::once(self.state.take()).chain(values).collect();
        self.state = self.plan.state.call(&arguments, execution)?;
        Ok(())
    }

    /// The result.
    ///
    /// # Errors
    /// The final function failed.
    pub fn result(&self, execution: &Execution<'_>) -> Result<Option<Bytes>, Error> {
        match &self.plan.last {
            Some(last) => last.call(std::slice::from_ref(&self.state), execution),
            None => Ok(self.state.clone()),
        }
    }
}
