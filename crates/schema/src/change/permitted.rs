//! The statements that may change the server's own keyspaces.
//!
//! Compat: `ClientState.preventSystemKSSchemaModification`. Not here: the user's permissions (`query`).

use crate::names::{LOCAL_KEYSPACES, REPLICATED_KEYSPACES};
use crate::{Error, Schema, SchemaChange};

/// Stands for every table of a keyspace.
const ALL_TABLES: &str = "*";

/// The permission that a statement needs, and its resource.
struct Need<'a> {
    permission: &'static str,
    keyspace: &'a str,
    /// A table; empty for the keyspace itself, `ALL_TABLES` for every table of it.
    table: &'a str,
}

impl Schema {
    /// Refuses changes that nobody may make, whatever permissions were granted.
    ///
    /// # Errors
    /// The keyspace is one of the server's.
    pub fn permit(&self, change: &SchemaChange) -> Result<(), Error> {
        let need = need(change);
        if LOCAL_KEYSPACES.contains(&need.keyspace) {
            return Err(Error::Unauthorized(format!(
                "{} keyspace is not user-modifiable.",
                need.keyspace
            )));
        }
        let alters_replication = matches!(change, SchemaChange::AlterKeyspace { .. });
        let creates_it = matches!(change, SchemaChange::CreateKeyspace { .. });
        if REPLICATED_KEYSPACES.contains(&need.keyspace) && !alters_replication && !creates_it {
            return Err(Error::Unauthorized(format!(
                "Cannot {} {}",
                need.permission,
                need.resource()
            )));
        }
        Ok(())
    }
}

impl Need<'_> {
    fn resource(&self) -> String {
        match self.table {
            "" => format!("<keyspace {}>", self.keyspace),
            ALL_TABLES => format!("<all tables in {}>", self.keyspace),
            table => format!("<table {}.{table}>", self.keyspace),
        }
    }
}

fn need(change: &SchemaChange) -> Need<'_> {
    let (permission, keyspace, table): (_, &str, &str) = match change {
        SchemaChange::CreateKeyspace { name, .. } => ("CREATE", name, ""),
        SchemaChange::AlterKeyspace { name, .. } => ("ALTER", name, ""),
        SchemaChange::DropKeyspace { name, .. } => ("DROP", name, ""),
        SchemaChange::CreateTable(create) => ("CREATE", &create.keyspace, ALL_TABLES),
        SchemaChange::CopyTable(copy) => ("CREATE", &copy.keyspace, ALL_TABLES),
        SchemaChange::AlterTable { keyspace, table, .. } => ("ALTER", keyspace, table),
        SchemaChange::DropTable(drop) | SchemaChange::DropView(drop) => ("DROP", &drop.keyspace, &drop.name),
        SchemaChange::CreateType { keyspace, .. } => ("CREATE", keyspace, ""),
        SchemaChange::AlterType { keyspace, .. } => ("ALTER", keyspace, ""),
        SchemaChange::DropType(drop) => ("DROP", &drop.keyspace, ""),
        SchemaChange::CreateIndex(create) => ("ALTER", &create.keyspace, &create.table),
        SchemaChange::DropIndex(drop) => ("ALTER", &drop.keyspace, ""),
        SchemaChange::CreateView(create) => ("ALTER", &create.keyspace, &create.base),
        SchemaChange::AlterView { keyspace, view, .. } => ("ALTER", keyspace, view),
        SchemaChange::CreateFunction(create) => ("CREATE", &create.keyspace, ""),
        SchemaChange::CreateAggregate(create) => ("CREATE", &create.keyspace, ""),
        SchemaChange::DropFunction(drop) | SchemaChange::DropAggregate(drop) => ("DROP", &drop.keyspace, ""),
        SchemaChange::CreateTrigger { keyspace, table, .. } => ("CREATE", keyspace, table),
        SchemaChange::DropTrigger { keyspace, table, .. } => ("DROP", keyspace, table),
    };
    Need {
        permission,
        keyspace,
        table,
    }
}
