//! Prints definitions of functions and aggregates.

use std::fmt::{Display, Formatter, Result};

use super::definition::names_and_types;
use super::{List, QualifiedFunction, when};
use crate::ast::{CreateAggregate, CreateFunction, DropFunction};
use crate::quote::{FunctionName, Text};

impl Display for CreateFunction {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let or_replace = when(self.mode.or_replace, "OR REPLACE ");
        let if_not_exists = when(self.mode.if_not_exists, "IF NOT EXISTS ");
        write!(
            out,
            "CREATE {or_replace}FUNCTION {if_not_exists}{} (",
            QualifiedFunction(&self.name)
        )?;
        names_and_types(out, &self.arguments)?;
        let on_null = if self.called_on_null_input {
            "CALLED"
        } else {
            "RETURNS NULL"
        };
        write!(out, ") {on_null} ON NULL INPUT RETURNS {}", self.return_type)?;
        write!(out, " LANGUAGE {} AS {}", self.language, Text(&self.body))
    }
}

impl Display for CreateAggregate {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let or_replace = when(self.mode.or_replace, "OR REPLACE ");
        let if_not_exists = when(self.mode.if_not_exists, "IF NOT EXISTS ");
        let (name, types) = (QualifiedFunction(&self.name), List(&self.argument_types));
        write!(
            out,
            "CREATE {or_replace}AGGREGATE {if_not_exists}{name} ({types})"
        )?;
        write!(
            out,
            " SFUNC {} STYPE {}",
            FunctionName(&self.state_function),
            self.state_type
        )?;
        if let Some(function) = &self.final_function {
            write!(out, " FINALFUNC {}", FunctionName(function))?;
        }
        match &self.initial_state {
            Some(term) => write!(out, " INITCOND {term}"),
            None => Ok(()),
        }
    }
}

impl Display for DropFunction {
    /// Prints what follows the words `DROP FUNCTION` or `DROP AGGREGATE`.
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(
            out,
            "{}{}",
            when(self.if_exists, "IF EXISTS "),
            QualifiedFunction(&self.name)
        )?;
        match &self.argument_types {
            Some(types) => write!(out, "({})", List(types)),
            None => Ok(()),
        }
    }
}
