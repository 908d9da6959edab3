//! Statements that Ilion understands but cannot carry out yet.

use ilion_cql::ast::Statement;

use crate::Error;

/// Why this statement is refused.
pub(super) fn refusal(statement: &Statement) -> Error {
    const NOT_LOGGED_IN: &str = "You have to be logged in and not anonymous to perform this request";
    Error::invalid(match statement {
        Statement::CreateIndex(_) => "Secondary indexes are not supported by Ilion yet",
        // There is no JVM that could load it.
        Statement::CreateTrigger(trigger) => {
            return Error::Invalid(format!("Trigger class '{}' couldn't be loaded", trigger.class));
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
        | Statement::ListPermissions(_) => return Error::Unauthorized(NOT_LOGGED_IN.to_owned()),
        _ => return Error::ServerError("this is no schema statement".into()),
    })
}
