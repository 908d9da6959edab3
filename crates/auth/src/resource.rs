//! What permissions are granted on.
//!
//! Compat: `DataResource`, `RoleResource`, `FunctionResource` and `JMXResource` of Cassandra 5.0. Names in `system_auth`:
//!
//! ```text
//! data        data/ks       data/ks/*       data/ks/t
//! roles       roles/r
//! functions   functions/ks  functions/ks/f[org...Int32Type^org...UTF8Type]
//! mbean       mbean/name or pattern
//! ```

use std::fmt;

use crate::{Permission, Permissions};

/// A resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resource {
    /// All keyspaces.
    AllKeyspaces,
    /// A keyspace.
    Keyspace(String),
    /// All tables of a keyspace.
    AllTables(String),
    /// A table or view of a keyspace.
    Table(String, String),
    /// All roles.
    AllRoles,
    /// A role.
    Role(String),
    /// All functions.
    AllFunctions,
    /// All functions of a keyspace.
    AllFunctionsIn(String),
    /// A function or aggregate.
    Function {
        /// Its keyspace.
        keyspace: String,
        /// Its name.
        name: String,
        /// The types of its arguments, as names of Cassandra's classes.
        classes: Vec<String>,
        /// The types of its arguments in CQL; empty if the resource was parsed from its name.
        types: Vec<String>,
    },
    /// All MBeans.
    AllMbeans,
    /// An MBean, or a pattern of MBeans. Ilion has no MBeans: the grant is only stored.
    Mbean(String),
}

impl Resource {
    /// A table.
    pub fn table(keyspace: &str, table: &str) -> Self {
        Self::Table(keyspace.to_owned(), table.to_owned())
    }

    /// The name in `system_auth`.
    pub fn name(&self) -> String {
        match self {
            Self::AllKeyspaces => "data".to_owned(),
            Self::Keyspace(keyspace) => format!("data/{keyspace}"),
            Self::AllTables(keyspace) => format!("data/{keyspace}/*"),
            Self::Table(keyspace, table) => format!("data/{keyspace}/{table}"),
            Self::AllRoles => "roles".to_owned(),
            Self::Role(role) => format!("roles/{role}"),
            Self::AllFunctions => "functions".to_owned(),
            Self::AllFunctionsIn(keyspace) => format!("functions/{keyspace}"),
            Self::Function {
                keyspace,
                name,
                classes,
                ..
            } => format!("functions/{keyspace}/{name}[{}]", classes.join("^")),
            Self::AllMbeans => "mbean".to_owned(),
            Self::Mbean(name) => format!("mbean/{name}"),
        }
    }

    /// The resource of a name in `system_auth`; `None` if the name is invalid.
    pub fn parse(name: &str) -> Option<Self> {
        let (root, rest) = match name.split_once('/') {
            Some((root, rest)) => (root, Some(rest)),
            None => (name, None),
        };
        Some(match (root, rest) {
            ("data", None) => Self::AllKeyspaces,
            ("data", Some(rest)) => match rest.split_once('/') {
                None => Self::Keyspace(rest.to_owned()),
                Some((keyspace, "*")) => Self::AllTables(keyspace.to_owned()),
                Some((keyspace, table)) => Self::table(keyspace, table),
            },
            ("roles", None) => Self::AllRoles,
            ("roles", Some(role)) => Self::Role(role.to_owned()),
            ("functions", None) => Self::AllFunctions,
            ("functions", Some(rest)) => match rest.split_once('/') {
                None => Self::AllFunctionsIn(rest.to_owned()),
                Some((keyspace, function)) => Self::parse_function(keyspace, function)?,
            },
            ("mbean", None) => Self::AllMbeans,
            ("mbean", Some(name)) => Self::Mbean(name.to_owned()),
            _ => return None,
        })
    }

    fn parse_function(keyspace: &str, function: &str) -> Option<Self> {
        // A name may contain `[`, types do not, so the types begin at the last one.
        let (name, classes) = function.strip_suffix(']')?.rsplit_once('[')?;
        let classes = classes.split('^').filter(|class| !class.is_empty());
        Some(Self::Function {
            keyspace: keyspace.to_owned(),
            name: name.to_owned(),
            classes: classes.map(str::to_owned).collect(),
            types: Vec::new(),
        })
    }

    /// The resource that contains this one.
    pub fn parent(&self) -> Option<Self> {
        match self {
            Self::AllKeyspaces | Self::AllRoles | Self::AllFunctions | Self::AllMbeans => None,
            Self::Keyspace(_) => Some(Self::AllKeyspaces),
            Self::AllTables(keyspace) => Some(Self::Keyspace(keyspace.clone())),
            Self::Table(keyspace, _) => Some(Self::AllTables(keyspace.clone())),
            Self::Role(_) => Some(Self::AllRoles),
            Self::AllFunctionsIn(_) => Some(Self::AllFunctions),
            Self::Function { keyspace, .. } => Some(Self::AllFunctionsIn(keyspace.clone())),
            Self::Mbean(_) => Some(Self::AllMbeans),
        }
    }

    /// This resource and those that contain it, the smallest first.
    pub fn chain(&self) -> impl Iterator<Item = Self> {
        std::iter::successors(Some(self.clone()), Self::parent)
    }

    /// The permissions that can be granted on it.
    pub fn applicable(&self) -> Permissions {
        use Permission as P;
        let all: &[P] = match self {
            Self::AllKeyspaces | Self::Keyspace(_) | Self::AllTables(_) => &[
                P::Create,
                P::Alter,
                P::Drop,
                P::Select,
                P::Modify,
                P::Authorize,
                P::Unmask,
                P::SelectMasked,
            ],
            Self::Table(..) => &[
                P::Alter,
                P::Drop,
                P::Select,
                P::Modify,
                P::Authorize,
                P::Unmask,
                P::SelectMasked,
            ],
            Self::AllRoles => &[P::Create, P::Alter, P::Drop, P::Authorize, P::Describe],
            Self::Role(_) => &[P::Alter, P::Drop, P::Authorize, P::Describe],
            Self::AllFunctions | Self::AllFunctionsIn(_) => {
                &[P::Create, P::Alter, P::Drop, P::Authorize, P::Execute]
            }
            Self::Function { .. } => &[P::Alter, P::Drop, P::Authorize, P::Execute],
            Self::AllMbeans | Self::Mbean(_) => {
                &[P::Authorize, P::Describe, P::Execute, P::Modify, P::Select]
            }
        };
        all.iter().copied().collect()
    }
}

/// As in Cassandra's messages and in the answer to LIST PERMISSIONS.
impl fmt::Display for Resource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllKeyspaces => out.write_str("<all keyspaces>"),
            Self::Keyspace(keyspace) => write!(out, "<keyspace {keyspace}>"),
            Self::AllTables(keyspace) => write!(out, "<all tables in {keyspace}>"),
            Self::Table(keyspace, table) => write!(out, "<table {keyspace}.{table}>"),
            Self::AllRoles => out.write_str("<all roles>"),
            Self::Role(role) => write!(out, "<role {role}>"),
            Self::AllFunctions => out.write_str("<all functions>"),
            Self::AllFunctionsIn(keyspace) => write!(out, "<all functions in {keyspace}>"),
            Self::Function {
                keyspace,
                name,
                classes,
                types,
            } => {
                let shown = if types.is_empty() { classes } else { types };
                write!(out, "<function {keyspace}.{name}({})>", shown.join(", "))
            }
            Self::AllMbeans => out.write_str("<all mbeans>"),
            Self::Mbean(name) => write!(out, "<mbean {name}>"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every() -> Vec<Resource> {
        let function = |classes: &[&str]| Resource::Function {
            keyspace: "ks".into(),
            name: "f[odd".into(),
            classes: classes.iter().map(|class| (*class).to_owned()).collect(),
            types: Vec::new(),
        };
        vec![
            Resource::AllKeyspaces,
            Resource::Keyspace("ks".into()),
            Resource::AllTables("ks".into()),
            Resource::table("ks", "t"),
            Resource::AllRoles,
            Resource::Role("a/b".into()),
            Resource::AllFunctions,
            Resource::AllFunctionsIn("ks".into()),
            function(&[]),
            function(&["org.apache.cassandra.db.marshal.Int32Type", "x"]),
            Resource::AllMbeans,
            Resource::Mbean("org:type=*".into()),
        ]
    }

    #[test]
    fn names_are_parsed_back() {
        for resource in every() {
            assert_eq!(Resource::parse(&resource.name()), Some(resource));
        }
        for bad in ["", "date", "data2/ks", "functions/ks/f", "functions/ks/f]"] {
            assert_eq!(Resource::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_table_is_in_all_tables_of_its_keyspace() {
        let names: Vec<String> = Resource::table("ks", "t").chain().map(|one| one.name()).collect();
        assert_eq!(names, ["data/ks/t", "data/ks/*", "data/ks", "data"]);
    }

    #[test]
    fn what_applies_to_a_part_applies_to_the_whole() {
        for resource in every() {
            let Some(parent) = resource.parent() else { continue };
            assert!(
                resource.applicable().without(parent.applicable()).is_empty(),
                "{resource}"
            );
        }
    }
}
