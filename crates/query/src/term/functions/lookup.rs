//! [`Lookup`]: a call whose function is to be resolved.

use ilion_types::CqlType;

use super::argument::Argument;
use crate::Error;
use crate::context::PlanContext;

/// A call whose function is to be resolved.
pub(super) struct Lookup<'a> {
    pub name: &'a str,
    /// The keyspace of the function's name in the statement.
    pub keyspace: Option<&'a str>,
    pub arguments: &'a [Argument<'a>],
    pub receiver: Option<&'a CqlType>,
    pub table: Option<(&'a str, &'a str)>,
    pub context: &'a PlanContext<'a>,
}

impl Lookup<'_> {
    /// The argument types of a function that takes any types. Fails if one of them is not known.
    pub fn known_types(&self) -> Result<Vec<CqlType>, Error> {
        let known = |argument: &Argument<'_>| {
            argument.known_type(self.context).ok_or_else(|| {
                Error::Invalid(format!(
                    "Cannot infer type of argument {argument} in call to function {}: use type casts to disambiguate",
                    self.name
                ))
            })
        };
        self.arguments.iter().map(known).collect()
    }

    pub fn one_argument(&self) -> Result<CqlType, Error> {
        if self.arguments.len() != 1 {
            return Err(Error::Invalid(format!(
                "Invalid number of arguments for function system.{}({})",
                self.name,
                self.arguments
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(", ")
            )));
        }
        Ok(self.known_types()?.remove(0))
    }
}
