//! Random statements about roles and permissions.

use ilion_cql::ast::{
    Access, AddIdentity, AlterRole, CreateRole, DropIdentity, DropRole, ListPermissions, ListRoles, Password,
    PermissionChange, Permissions, Resource, RoleMembership, RoleOptions, Statement,
};

use super::Generator;

impl Generator {
    pub(super) fn role_statement(&mut self) -> Statement {
        match self.random.below(13) {
            0 => Statement::CreateRole(Box::new(CreateRole {
                if_not_exists: self.coin(),
                role: self.role(),
                options: self.role_options(),
            })),
            1 => Statement::AlterRole(Box::new(AlterRole {
                if_exists: self.coin(),
                role: self.role(),
                options: self.role_options(),
            })),
            2 => Statement::DropRole(DropRole {
                if_exists: self.coin(),
                role: self.role(),
            }),
            3 => Statement::GrantPermissions(self.permission_change()),
            4 => Statement::RevokePermissions(self.permission_change()),
            5 => Statement::GrantRole(self.membership()),
            6 => Statement::RevokeRole(self.membership()),
            7 => Statement::ListRoles(ListRoles {
                of: self.maybe(Self::role),
                recursive: self.coin(),
            }),
            8 => Statement::ListUsers,
            9 => Statement::ListSuperusers,
            10 => self.list_permissions(),
            11 => Statement::AddIdentity(AddIdentity {
                if_not_exists: self.coin(),
                identity: self.string(),
                role: self.string(),
            }),
            _ => Statement::DropIdentity(DropIdentity {
                if_exists: self.coin(),
                identity: self.string(),
            }),
        }
    }

    fn role(&mut self) -> String {
        if self.coin() { self.name() } else { self.string() }
    }

    fn membership(&mut self) -> RoleMembership {
        RoleMembership {
            role: self.role(),
            member: self.role(),
        }
    }

    fn role_options(&mut self) -> RoleOptions {
        RoleOptions {
            password: self.maybe(|this| match this.coin() {
                true => Password::Plain(this.string()),
                false => Password::Hashed(this.string()),
            }),
            superuser: self.maybe(Self::coin),
            login: self.maybe(Self::coin),
            custom: self.maybe(Self::text_map),
            datacenters: self.maybe(Self::access),
            cidr_groups: self.maybe(Self::access),
        }
    }

    fn access(&mut self) -> Access {
        if self.coin() {
            Access::All
        } else {
            Access::Only(self.several(1, Self::string))
        }
    }

    fn resource(&mut self) -> Resource {
        match self.random.below(12) {
            0 => Resource::AllKeyspaces,
            1 => Resource::Keyspace(self.name()),
            2 => Resource::AllTables(self.name()),
            3 => Resource::Table(self.qualified()),
            4 => Resource::AllRoles,
            5 => Resource::Role(self.role()),
            6 => Resource::AllFunctions,
            7 => Resource::AllFunctionsIn(self.name()),
            8 => {
                let mut name = self.qualified();
                name.keyspace = Some(self.name());
                Resource::Function {
                    name,
                    argument_types: self.several(0, |this| this.type_name(2)),
                }
            }
            9 => Resource::AllMbeans,
            10 => Resource::Mbean("a:type=b".into()),
            _ => Resource::Mbeans("a:*".into()),
        }
    }

    fn permissions(&mut self, resource: &Resource) -> Permissions {
        if self.coin() {
            return Permissions::All;
        }
        let applicable = resource.applicable_permissions();
        Permissions::Only(self.several(1, |this| *this.random.pick(applicable)))
    }

    fn permission_change(&mut self) -> PermissionChange {
        let resource = self.resource();
        PermissionChange {
            permissions: self.permissions(&resource),
            resource,
            role: self.role(),
        }
    }

    fn list_permissions(&mut self) -> Statement {
        let resource = self.resource();
        Statement::ListPermissions(ListPermissions {
            permissions: self.permissions(&resource),
            resource: self.coin().then_some(resource),
            of: self.maybe(Self::role),
            recursive: self.coin(),
        })
    }
}
