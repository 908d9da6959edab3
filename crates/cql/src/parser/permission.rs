//! `GRANT`, `REVOKE` and `LIST`.

use super::{Parser, Result};
use crate::ast::{
    ListPermissions, ListRoles, Permission, PermissionChange, Permissions, Resource, RoleMembership,
    Statement,
};
use crate::fault::Fault;
use crate::keyword::Keyword;
use crate::token::Kind;

impl Parser<'_> {
    pub(super) fn grant(&mut self) -> Result<Statement> {
        self.refuse_all_of_nothing(Keyword::To)?;
        self.advance();
        if self.is_role_before(Keyword::To) {
            return self.membership_change(Keyword::To).map(Statement::GrantRole);
        }
        self.permission_change(Keyword::To)
            .map(Statement::GrantPermissions)
    }

    pub(super) fn revoke(&mut self) -> Result<Statement> {
        self.refuse_all_of_nothing(Keyword::From)?;
        self.advance();
        if self.is_role_before(Keyword::From) {
            return self.membership_change(Keyword::From).map(Statement::RevokeRole);
        }
        self.permission_change(Keyword::From)
            .map(Statement::RevokePermissions)
    }

    /// Compat: the token after `ALL` is checked to distinguish roles from permissions, so the message is about the whole
    /// statement.
    fn refuse_all_of_nothing(&self, word: Keyword) -> Result<()> {
        let can_follow = self.peek_word(2, Keyword::On)
            || self.peek_word(2, Keyword::Permissions)
            || self.peek_word(2, word);
        if self.peek_word(1, Keyword::All) && !can_follow {
            return self.unexpected_at(2);
        }
        Ok(())
    }

    /// True if a role starts here, not permissions.
    fn is_role_before(&self, word: Keyword) -> bool {
        self.permission(0).is_none() && !self.at_word(Keyword::All) || self.peek_word(1, word)
    }

    fn membership_change(&mut self, word: Keyword) -> Result<RoleMembership> {
        let role = self.role()?;
        self.expect_word(word)?;
        Ok(RoleMembership {
            role,
            member: self.role()?,
        })
    }

    fn permission_change(&mut self, word: Keyword) -> Result<PermissionChange> {
        let permissions = self.permissions()?;
        self.expect_word(Keyword::On)?;
        let resource = self.resource()?;
        self.expect_word(word)?;
        let role = self.role()?;
        refuse_inapplicable(&permissions, &resource)?;
        Ok(PermissionChange {
            permissions,
            resource,
            role,
        })
    }

    /// The permission in the token `ahead`.
    fn permission(&self, ahead: usize) -> Option<Permission> {
        let Kind::Keyword(word) = self.peek(ahead) else {
            return None;
        };
        Some(match word {
            Keyword::Create => Permission::Create,
            Keyword::Alter => Permission::Alter,
            Keyword::Drop => Permission::Drop,
            Keyword::Select => Permission::Select,
            Keyword::Modify => Permission::Modify,
            Keyword::Authorize => Permission::Authorize,
            Keyword::Describe => Permission::Describe,
            Keyword::Execute => Permission::Execute,
            Keyword::Unmask => Permission::Unmask,
            Keyword::SelectMasked => Permission::SelectMasked,
            _ => return None,
        })
    }

    fn permissions(&mut self) -> Result<Permissions> {
        if self.eat_word(Keyword::All) {
            self.eat_word(Keyword::Permissions);
            return Ok(Permissions::All);
        }
        self.list(|parser| {
            let Some(permission) = parser.permission(0) else {
                return parser.unexpected();
            };
            parser.advance();
            parser.eat_word(Keyword::Permission);
            Ok(permission)
        })
        .map(Permissions::Only)
    }

    fn resource(&mut self) -> Result<Resource> {
        match self.kind() {
            Kind::Keyword(Keyword::All) if self.is_kind_of_resource(1) => {
                self.advance();
                self.all_resources()
            }
            Kind::Keyword(Keyword::Keyspace) => {
                self.advance();
                self.keyspace().map(Resource::Keyspace)
            }
            Kind::Keyword(Keyword::Table) => {
                self.advance();
                self.table_name().map(Resource::Table)
            }
            Kind::Keyword(Keyword::Role) if self.is_name_or_string(1) => {
                self.advance();
                self.role().map(Resource::Role)
            }
            Kind::Keyword(Keyword::Function) if self.is_name_or_string(1) => self.function_resource(),
            Kind::Keyword(Keyword::Mbean) if self.is_string(1) => {
                self.advance();
                self.mbean().map(Resource::Mbean)
            }
            Kind::Keyword(Keyword::Mbeans) if self.is_string(1) => {
                self.advance();
                self.mbean().map(Resource::Mbeans)
            }
            _ => self.table_name().map(Resource::Table),
        }
    }

    fn is_kind_of_resource(&self, ahead: usize) -> bool {
        matches!(
            self.peek(ahead),
            Kind::Keyword(
                Keyword::Keyspaces | Keyword::Tables | Keyword::Roles | Keyword::Functions | Keyword::Mbeans
            )
        )
    }

    fn is_string(&self, ahead: usize) -> bool {
        matches!(self.peek(ahead), Kind::String | Kind::DollarString)
    }

    fn is_name_or_string(&self, ahead: usize) -> bool {
        self.is_string(ahead) || self.is_any_name(ahead)
    }

    /// The text after `ALL`.
    fn all_resources(&mut self) -> Result<Resource> {
        let word = self.advance().kind;
        Ok(match word {
            Kind::Keyword(Keyword::Keyspaces) => Resource::AllKeyspaces,
            Kind::Keyword(Keyword::Roles) => Resource::AllRoles,
            Kind::Keyword(Keyword::Mbeans) => Resource::AllMbeans,
            Kind::Keyword(Keyword::Functions) if !self.at_word(Keyword::In) => Resource::AllFunctions,
            _ => {
                self.expect_word(Keyword::In)?;
                self.expect_word(Keyword::Keyspace)?;
                let keyspace = self.keyspace()?;
                match word {
                    Kind::Keyword(Keyword::Functions) => Resource::AllFunctionsIn(keyspace),
                    _ => Resource::AllTables(keyspace),
                }
            }
        })
    }

    fn function_resource(&mut self) -> Result<Resource> {
        self.advance();
        if self.peek(1) != Kind::OpenParen && self.peek(1) != Kind::Dot {
            return self.unexpected_at(1);
        }
        let name = self.function_name()?;
        let argument_types = self.parenthesized_or_empty(Self::type_name)?;
        if name.keyspace.is_none() {
            return Err(Fault::Invalid(
                "In this context function name must be explictly qualified by a keyspace".into(),
            ));
        }
        Ok(Resource::Function { name, argument_types })
    }

    fn mbean(&mut self) -> Result<String> {
        let name = self.string()?;
        match name.as_str() {
            "" => Err(Fault::Rule("Empty JMX object name supplied".into())),
            "*:*" => Err(Fault::Rule(
                "Please use ALL MBEANS instead of wildcard pattern".into(),
            )),
            _ => Ok(name),
        }
    }

    pub(super) fn list_statement(&mut self) -> Result<Statement> {
        match self.peek(1) {
            Kind::Keyword(Keyword::Roles) => {
                self.advance();
                self.advance();
                let of = self.optional_of()?;
                Ok(Statement::ListRoles(ListRoles {
                    of,
                    recursive: self.is_recursive(),
                }))
            }
            Kind::Keyword(Keyword::Users) => {
                self.advance();
                self.advance();
                Ok(Statement::ListUsers)
            }
            Kind::Keyword(Keyword::Superusers) => {
                self.advance();
                self.advance();
                Ok(Statement::ListSuperusers)
            }
            _ if self.permission(1).is_some() || self.peek_word(1, Keyword::All) => self.list_permissions(),
            _ => self.unexpected_at(1),
        }
    }

    fn list_permissions(&mut self) -> Result<Statement> {
        self.advance();
        let permissions = self.permissions()?;
        let resource = if self.eat_word(Keyword::On) {
            Some(self.resource()?)
        } else {
            None
        };
        let of = self.optional_of()?;
        let recursive = self.is_recursive();
        Ok(Statement::ListPermissions(ListPermissions {
            permissions,
            resource,
            of,
            recursive,
        }))
    }

    fn optional_of(&mut self) -> Result<Option<String>> {
        if self.eat_word(Keyword::Of) {
            self.role().map(Some)
        } else {
            Ok(None)
        }
    }

    fn is_recursive(&mut self) -> bool {
        !self.eat_word(Keyword::Norecursive)
    }
}

fn refuse_inapplicable(permissions: &Permissions, resource: &Resource) -> Result<()> {
    let Permissions::Only(wanted) = permissions else {
        return Ok(());
    };
    let applicable = resource.applicable_permissions();
    if wanted.iter().any(|permission| applicable.contains(permission)) {
        return Ok(());
    }
    Err(Fault::Rule(format!(
        "Resource type {} does not support any of the requested permissions",
        resource.kind_name()
    )))
}
