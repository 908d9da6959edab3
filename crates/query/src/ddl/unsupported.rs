//! Statements that Ilion understands but cannot carry out yet.

use ilion_cql::ast::Statement;

use crate::Error;

/// Why this statement is refused.
pub(super) fn refusal(statement: &Statement) -> Error {
    Error::invalid(match statement {
        Statement::CreateIndex(_) => "Secondary indexes are not supported by Ilion yet",
        Statement::CreateView(_) => "Materialized views are not supported by Ilion yet",
        Statement::CreateTrigger(_) => "Triggers are not supported by Ilion yet",
        Statement::CreateRole(_)
        | Statement::AlterRole(_)
        | Statement::DropRole(_)
        | Statement::GrantRole(_)
        | Statement::RevokeRole(_)
        | Statement::ListRoles(_)
        | Statement::ListUsers
        | Statement::ListSuperusers
        | Statement::AddIdentity(_)
        | Statement::DropIdentity(_) => {
            "Roles are not supported by Ilion yet: authentication cannot be enabled"
        }
        Statement::GrantPermissions(_) | Statement::RevokePermissions(_) | Statement::ListPermissions(_) => {
            "Permissions are not supported by Ilion yet: authorization cannot be enabled"
        }
        _ => return Error::ServerError("this is no schema statement".into()),
    })
}
