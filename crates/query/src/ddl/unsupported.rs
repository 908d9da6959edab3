//! Statements that Ilion understands but cannot carry out yet.

use ilion_cql::ast::Statement;

use crate::Error;

/// The refusal of this statement.
pub(super) fn refusal(statement: &Statement) -> Error {
    const NOT_LOGGED_IN: &str = "You have to be logged in and not anonymous to perform this request";
    match statement {
        // There is no JVM that could load it.
        Statement::CreateTrigger(trigger) => {
            Error::Invalid(format!("Trigger class '{}' couldn't be loaded", trigger.class))
        }
        Statement::CreateRole(_)
        | Statement::AlterRole(_)
        | Statement::DropRole(_)
        | Statement::GrantRole(_)
        | Statement::RevokeRole(_)
        | Statement::ListRoles(_)
        | Statement::ListUsers
        | Statement::ListSuperusers
        | Statement::AddIdentity(_)
        | Statement::DropIdentity(_)
        | Statement::GrantPermissions(_)
        | Statement::RevokePermissions(_)
        | Statement::ListPermissions(_) => Error::Unauthorized(NOT_LOGGED_IN.to_owned()),
        _ => Error::ServerError("not a schema statement".into()),
    }
}
