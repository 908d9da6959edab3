//! Calls of user-defined aggregates: resolving the aggregate and its arguments.

use std::sync::Arc;

use ilion_cql::ast::QualifiedName;
use ilion_schema::{AggregateSchema, Keyspace};

use super::aggregate::AggregatePlan;
use super::compile::{Compiled, Compiler, Operand};
use super::expression::Expr;
use super::user_aggregate::UserAggregate;
use crate::Error;
use crate::term::functions::{Argument, USER_FUNCTIONS_DISABLED};
use crate::term::{Assignment, Term, print_name};

impl Compiler<'_> {
    /// True if a user-defined aggregate has this name.
    pub(super) fn has_user_aggregate(&self, name: &QualifiedName) -> bool {
        self.user_aggregates(name)
            .is_some_and(|(_, found)| !found.is_empty())
    }

    fn user_aggregates(&self, name: &QualifiedName) -> Option<(&Keyspace, Vec<&Arc<AggregateSchema>>)> {
        let keyspace = name.keyspace.as_deref().unwrap_or(&self.table.keyspace);
        let keyspace = self.context.schema.keyspace(keyspace)?;
        let named = keyspace.aggregates.iter().filter(|known| known.name == name.name);
        Some((keyspace, named.collect()))
    }

    /// A call of a user-defined aggregate.
    pub(super) fn user_aggregate(
        &mut self,
        name: &QualifiedName,
        operands: Vec<Operand>,
    ) -> Result<Compiled, Error> {
        if !self.context.options.user_functions_enabled {
            return Err(Error::invalid(USER_FUNCTIONS_DISABLED));
        }
        let is_nested =
            |operand: &Operand| matches!(operand, Operand::Compiled(compiled) if compiled.is_aggregate);
        if operands.iter().any(is_nested) {
            return Err(Error::invalid(
                "aggregate functions cannot be used as arguments of aggregate functions",
            ));
        }
        let aggregate = {
            let (keyspace, named) = self
                .user_aggregates(name)
                .ok_or_else(|| Error::invalid(format!("Unknown function '{}'", print_name(name))))?;
            let arguments: Vec<Argument<'_>> = operands.iter().map(Operand::argument).collect();
            let meant = self.pick_aggregate(name, &named, &arguments)?;
            Arc::new(UserAggregate::of(keyspace, meant, self.context)?)
        };
        let texts: Vec<String> = operands.iter().map(Operand::text).collect();
        let keyspace = name.keyspace.as_deref().unwrap_or(&self.table.keyspace);
        let text = format!("{keyspace}.{}({})", name.name, texts.join(", "));
        let arguments = self.arguments_of(&aggregate.schema, operands)?;
        let result = aggregate.schema.return_type.clone();
        Ok(self.push_aggregate(AggregatePlan::User { aggregate, arguments }, result, text))
    }

    fn arguments_of(&self, schema: &AggregateSchema, operands: Vec<Operand>) -> Result<Vec<Expr>, Error> {
        operands
            .into_iter()
            .zip(&schema.argument_types)
            .map(|(operand, ty)| match operand {
                Operand::Compiled(compiled) => Ok(compiled.expr),
                Operand::Term(term) => {
                    let spec = self.spec(&schema.name, ty.clone());
                    Ok(Expr::Term(Term::plan(&term, &spec, self.context)?))
                }
            })
            .collect()
    }

    /// Compat: `FunctionResolver`: an exact match comes before a weak one. If only one aggregate has the name, the error says which
    /// argument does not fit.
    fn pick_aggregate<'s>(
        &self,
        name: &QualifiedName,
        named: &[&'s Arc<AggregateSchema>],
        arguments: &[Argument<'_>],
    ) -> Result<&'s Arc<AggregateSchema>, Error> {
        let fit =
            |aggregate: &AggregateSchema| {
                if aggregate.argument_types.len() != arguments.len() {
                    return Assignment::No;
                }
                let each = arguments.iter().zip(&aggregate.argument_types);
                Assignment::all(each.map(|(argument, ty)| {
                    argument.test(&self.spec(&aggregate.name, ty.clone()), self.context)
                }))
            };
        if let Some(exact) = named.iter().find(|aggregate| fit(aggregate) == Assignment::Exact) {
            return Ok(exact);
        }
        let mut fitting = named
            .iter()
            .filter(|aggregate| fit(aggregate) == Assignment::Weak);
        let signatures = || {
            let printed = |aggregate: &&Arc<AggregateSchema>| {
                let types: Vec<String> = aggregate.argument_types.iter().map(ToString::to_string).collect();
                format!(
                    "{}({}) -> {}",
                    print_name(name),
                    types.join(", "),
                    aggregate.return_type
                )
            };
            named.iter().map(printed).collect::<Vec<_>>().join(", ")
        };
        if let ([only], None) = (named, fitting.clone().next()) {
            return Err(self.misfit(name, only, arguments));
        }
        match (fitting.next(), fitting.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err(Error::Invalid(format!(
                "Invalid call to function {}, none of its type signatures match (known type signatures: {})",
                print_name(name),
                signatures()
            ))),
            _ => Err(Error::Invalid(format!(
                "Ambiguous call to function {} (can be matched by following signatures: {}): \
                 use type casts to disambiguate",
                print_name(name),
                signatures()
            ))),
        }
    }

    /// The error for arguments that do not fit the only aggregate of a name.
    fn misfit(&self, name: &QualifiedName, only: &AggregateSchema, arguments: &[Argument<'_>]) -> Error {
        let keyspace = name.keyspace.as_deref().unwrap_or(&self.table.keyspace);
        let called = format!("{keyspace}.{}", only.name);
        let (wanted, given) = (only.argument_types.len(), arguments.len());
        let mut each = arguments.iter().zip(&only.argument_types).enumerate();
        let wrong = each.find(|(_, (argument, ty))| {
            let spec = self.spec(&only.name, (*ty).clone());
            argument.test(&spec, self.context) == Assignment::No
        });
        Error::Invalid(match wrong.filter(|_| wanted == given) {
            Some((index, (argument, ty))) => format!(
                "Type error: {argument} cannot be passed as argument {index} of function {called} of type {ty}"
            ),
            None => format!(
                "Invalid number of arguments in call to function {called}: {wanted} required but {given} provided"
            ),
        })
    }
}
