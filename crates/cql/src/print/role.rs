//! Prints roles, permissions and identities.

use std::fmt::{Display, Formatter, Result};

use super::definition::text_map;
use super::{List, QualifiedFunction, separated, when};
use crate::ast::{
    Access, AddIdentity, AlterRole, CreateRole, DropIdentity, ListPermissions, ListRoles, Password,
    Permission, Permissions, Resource, RoleOptions,
};
use crate::quote::{Name, Role, Text};

impl Display for CreateRole {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let if_not_exists = when(self.if_not_exists, "IF NOT EXISTS ");
        write!(
            out,
            "CREATE ROLE {if_not_exists}{}{}",
            Role(&self.role),
            self.options
        )
    }
}

impl Display for AlterRole {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let if_exists = when(self.if_exists, "IF EXISTS ");
        write!(out, "ALTER ROLE {if_exists}{}{}", Role(&self.role), self.options)
    }
}

impl Display for RoleOptions {
    /// Prints the options with ` WITH` in front, or nothing if there are none.
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let mut lead = " WITH ";
        let mut next = || std::mem::replace(&mut lead, " AND ");
        match &self.password {
            Some(Password::Plain(text)) => write!(out, "{}PASSWORD = {}", next(), Text(text))?,
            Some(Password::Hashed(text)) => write!(out, "{}HASHED PASSWORD = {}", next(), Text(text))?,
            None => {}
        }
        if let Some(value) = self.superuser {
            write!(out, "{}SUPERUSER = {value}", next())?;
        }
        if let Some(value) = self.login {
            write!(out, "{}LOGIN = {value}", next())?;
        }
        if let Some(custom) = &self.custom {
            write!(out, "{}OPTIONS = ", next())?;
            text_map(out, custom)?;
        }
        if let Some(access) = &self.datacenters {
            write!(out, "{}ACCESS TO ", next())?;
            write_access(out, access, "DATACENTERS")?;
        }
        if let Some(access) = &self.cidr_groups {
            write!(out, "{}ACCESS FROM ", next())?;
            write_access(out, access, "CIDRS")?;
        }
        Ok(())
    }
}

fn write_access(out: &mut Formatter<'_>, access: &Access, what: &str) -> Result {
    match access {
        Access::All => write!(out, "ALL {what}"),
        Access::Only(names) => {
            write!(out, "{what} {{")?;
            separated(out, names, ", ", |out, name| Text(name).fmt(out))?;
            out.write_str("}")
        }
    }
}

impl Display for Permission {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        out.write_str(self.name())
    }
}

impl Display for Permissions {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::All => out.write_str("ALL PERMISSIONS"),
            Self::Only(permissions) => List(permissions).fmt(out),
        }
    }
}

impl Display for Resource {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::AllKeyspaces => out.write_str("ALL KEYSPACES"),
            Self::Keyspace(keyspace) => write!(out, "KEYSPACE {}", Name(keyspace)),
            Self::AllTables(keyspace) => write!(out, "ALL TABLES IN KEYSPACE {}", Name(keyspace)),
            Self::Table(table) => write!(out, "TABLE {table}"),
            Self::AllRoles => out.write_str("ALL ROLES"),
            Self::Role(role) => write!(out, "ROLE {}", Role(role)),
            Self::AllFunctions => out.write_str("ALL FUNCTIONS"),
            Self::AllFunctionsIn(keyspace) => write!(out, "ALL FUNCTIONS IN KEYSPACE {}", Name(keyspace)),
            Self::Function { name, argument_types } => {
                write!(
                    out,
                    "FUNCTION {}({})",
                    QualifiedFunction(name),
                    List(argument_types)
                )
            }
            Self::AllMbeans => out.write_str("ALL MBEANS"),
            Self::Mbean(name) => write!(out, "MBEAN {}", Text(name)),
            Self::Mbeans(pattern) => write!(out, "MBEANS {}", Text(pattern)),
        }
    }
}

fn of_and_norecursive(out: &mut Formatter<'_>, of: Option<&String>, recursive: bool) -> Result {
    if let Some(role) = of {
        write!(out, " OF {}", Role(role))?;
    }
    out.write_str(when(!recursive, " NORECURSIVE"))
}

impl Display for ListRoles {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        out.write_str("LIST ROLES")?;
        of_and_norecursive(out, self.of.as_ref(), self.recursive)
    }
}

impl Display for ListPermissions {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(out, "LIST {}", self.permissions)?;
        if let Some(resource) = &self.resource {
            write!(out, " ON {resource}")?;
        }
        of_and_norecursive(out, self.of.as_ref(), self.recursive)
    }
}

impl Display for AddIdentity {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let if_not_exists = when(self.if_not_exists, "IF NOT EXISTS ");
        let (identity, role) = (Text(&self.identity), Text(&self.role));
        write!(out, "ADD IDENTITY {if_not_exists}{identity} TO ROLE {role}")
    }
}

impl Display for DropIdentity {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(
            out,
            "DROP IDENTITY {}{}",
            when(self.if_exists, "IF EXISTS "),
            Text(&self.identity)
        )
    }
}
