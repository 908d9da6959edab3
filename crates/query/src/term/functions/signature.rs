//! Overload resolution: choosing among functions of one name by their arguments (`FunctionResolver`).

use ilion_types::CqlType;

use super::ScalarFunction;
use super::lookup::Lookup;
use crate::term::{Assignment, test_type_assignment};
use crate::{ColumnSpec, Error};

/// Limit on resolutions per statement: a nested call is resolved again for each candidate of the outer one.
const RESOLUTIONS_MAX: u32 = 2_000;

impl Lookup<'_> {
    /// The only function among `candidates` that takes the arguments.
    pub(super) fn pick(&self, mut candidates: Vec<ScalarFunction>) -> Result<ScalarFunction, Error> {
        if candidates.len() == 1 {
            let only = candidates.remove(0);
            self.check(&only)?;
            return Ok(only);
        }
        self.context.resolutions.set(self.context.resolutions.get() + 1);
        self.check_depth()?;
        let mut fitting = Vec::new();
        for (index, candidate) in candidates.iter().enumerate() {
            let suits = |receiver| test_type_assignment(receiver, candidate.result_type()) != Assignment::No;
            if !self.receiver.is_none_or(suits) {
                continue;
            }
            match self.fit(candidate) {
                Assignment::Exact => return Ok(candidates.swap_remove(index)),
                Assignment::Weak => fitting.push(index),
                Assignment::No => {}
            }
        }
        self.check_depth()?;
        match fitting.as_slice() {
            [only] => Ok(candidates.swap_remove(*only)),
            [] => Err(Error::Invalid(format!(
                "Invalid call to function {}, none of its type signatures match (known type signatures: {})",
                self.printed_name(&candidates),
                signatures(&candidates)
            ))),
            _ => {
                candidates = keep(candidates, &fitting);
                Err(Error::Invalid(format!(
                    "Ambiguous call to function {} (can be matched by following signatures: {}): \
                     use type casts to disambiguate",
                    self.printed_name(&candidates),
                    signatures(&candidates)
                )))
            }
        }
    }

    fn check_depth(&self) -> Result<(), Error> {
        if self.context.resolutions.get() <= RESOLUTIONS_MAX {
            return Ok(());
        }
        Err(Error::invalid(
            "Function calls are nested too deep to tell which functions are meant: use type casts to disambiguate",
        ))
    }

    fn fit(&self, candidate: &ScalarFunction) -> Assignment {
        if candidate.argument_types().len() != self.arguments.len() {
            return Assignment::No;
        }
        Assignment::all(
            self.arguments
                .iter()
                .zip(candidate.argument_types())
                .map(|(argument, ty)| argument.test(&self.spec(ty), self.context)),
        )
    }

    fn check(&self, function: &ScalarFunction) -> Result<(), Error> {
        let (wanted, given) = (function.argument_types().len(), self.arguments.len());
        if wanted != given {
            return Err(Error::Invalid(format!(
                "Invalid number of arguments in call to function {}: {wanted} required but {given} provided",
                function.qualified_name()
            )));
        }
        for (index, (argument, ty)) in self.arguments.iter().zip(function.argument_types()).enumerate() {
            if argument.test(&self.spec(ty), self.context) == Assignment::No {
                return Err(Error::Invalid(format!(
                    "Type error: {argument} cannot be passed as argument {index} of function {} of type {ty}",
                    function.qualified_name()
                )));
            }
        }
        Ok(())
    }

    fn spec(&self, ty: &CqlType) -> ColumnSpec {
        let (keyspace, table) = self.table.unwrap_or_default();
        ColumnSpec {
            keyspace: keyspace.into(),
            table: table.into(),
            name: self.name.into(),
            ty: ty.clone(),
        }
    }
}

fn keep(functions: Vec<ScalarFunction>, wanted: &[usize]) -> Vec<ScalarFunction> {
    let all = functions.into_iter().enumerate();
    all.filter(|(index, _)| wanted.contains(index))
        .map(|(_, function)| function)
        .collect()
}

fn signatures(functions: &[ScalarFunction]) -> String {
    functions
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}
