//! [`AccessPlan`]: a statement about roles or permissions.

use ilion_cql::ast::Statement;

/// A statement about roles or permissions; names are looked up when it is executed.
#[derive(Debug)]
pub(crate) struct AccessPlan {
    pub(super) statement: Statement,
    /// The keyspace of unqualified names.
    pub(super) keyspace: Option<String>,
}

impl AccessPlan {
    /// The plan of a statement; `None` if the statement is not about roles or permissions.
    pub fn of(statement: &Statement, keyspace: Option<&str>) -> Option<Self> {
        let is_about_access = matches!(
            statement,
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
                | Statement::ListPermissions(_)
        );
        is_about_access.then(|| Self {
            statement: statement.clone(),
            keyspace: keyspace.map(str::to_owned),
        })
    }
}
