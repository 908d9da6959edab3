//! User-defined functions and aggregates.

use super::{CqlTypeName, Identifier, QualifiedName, Term};

/// How to treat an object that already exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CreateMode {
    /// `OR REPLACE`
    pub or_replace: bool,
    /// `IF NOT EXISTS`. The schema refuses both together.
    pub if_not_exists: bool,
}

/// `CREATE FUNCTION`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateFunction {
    /// `OR REPLACE`, `IF NOT EXISTS`
    pub mode: CreateMode,
    /// The function.
    pub name: QualifiedName,
    /// Names and types of the arguments.
    pub arguments: Vec<(Identifier, CqlTypeName)>,
    /// `CALLED ON NULL INPUT` instead of `RETURNS NULL ON NULL INPUT`
    pub called_on_null_input: bool,
    /// `RETURNS`
    pub return_type: CqlTypeName,
    /// `LANGUAGE`, lower case
    pub language: Identifier,
    /// `AS`
    pub body: String,
}

/// `DROP FUNCTION` or `DROP AGGREGATE`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropFunction {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The function.
    pub name: QualifiedName,
    /// The argument types; `None` if the text has none: then only one function or aggregate may have the name.
    pub argument_types: Option<Vec<CqlTypeName>>,
}

/// `CREATE AGGREGATE`
#[derive(Clone, Debug, PartialEq)]
pub struct CreateAggregate {
    /// `OR REPLACE`, `IF NOT EXISTS`
    pub mode: CreateMode,
    /// The aggregate.
    pub name: QualifiedName,
    /// The types of its arguments.
    pub argument_types: Vec<CqlTypeName>,
    /// `SFUNC`
    pub state_function: Identifier,
    /// `STYPE`
    pub state_type: CqlTypeName,
    /// `FINALFUNC`
    pub final_function: Option<Identifier>,
    /// `INITCOND`
    pub initial_state: Option<Term>,
}
