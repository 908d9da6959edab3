//! Statements that Ilion understands but cannot carry out yet.

use ilion_cql::ast::Statement;

use crate::Error;

/// Why this statement is refused.
pub(super) fn refusal(statement: &Statement) -> Error {
    let what = match statement {
        Statement::CreateIndex(_) => "Secondary indexes (CREATE INDEX)",
        Statement::CreateView(_) => "Materialized views (CREATE MATERIALIZED VIEW)",
        Statement::CreateTrigger(_) => "Triggers (CREATE TRIGGER)",
        Statement::CreateFunction(_) => "User-defined functions (CREATE FUNCTION)",
        Statement::CreateAggregate(_) => "User-defined aggregates (CREATE AGGREGATE)",
        Statement::CreateRole(_) | Statement::AlterRole(_) | Statement::DropRole(_) => {
            "Roles (CREATE, ALTER and DROP of ROLE and USER)"
        }
        Statement::GrantRole(_) | Statement::RevokeRole(_) => "Roles (GRANT and REVOKE of roles)",
        Statement::GrantPermissions(_) | Statement::RevokePermissions(_) => "Permissions (GRANT and REVOKE)",
        Statement::ListRoles(_) | Statement::ListUsers | Statement::ListSuperusers => {
            "Authentication is not enabled: roles (LIST ROLES, LIST USERS)"
        }
        Statement::ListPermissions(_) => "Authorization is not enabled: permissions (LIST)",
        Statement::AddIdentity(_) | Statement::DropIdentity(_) => "Identities (ADD and DROP IDENTITY)",
        _ => return Error::ServerError("this is no schema statement".into()),
    };
    Error::invalid(format!("{what} are not supported by Ilion yet"))
}
