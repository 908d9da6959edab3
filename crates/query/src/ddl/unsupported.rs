//! Statements that Ilion understands but cannot carry out yet.

use ilion_cql::ast::Statement;

use crate::Error;

/// The refusal of this statement.
pub(super) fn refusal(statement: &Statement) -> Error {
    match statement {
        // A trigger is a Java class, and Ilion has no JVM to load it.
        Statement::CreateTrigger(trigger) => {
            Error::Invalid(format!("Trigger class '{}' couldn't be loaded", trigger.class))
        }
        _ => Error::ServerError("not a schema statement".into()),
    }
}
