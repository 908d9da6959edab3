//! Grants that follow from schema changes: the creator of an object gets all permissions on it; the grants on a dropped object end.
//!
//! Compat: `AlterSchemaStatement.createdResources` and `AuthSchemaChangeListener` of Cassandra 5.0. Unlike there, grants on a view end when
//! it is dropped, and the next start removes grants that a crash left ([`AccessControl::sweep`]).

use std::collections::BTreeSet;

use ilion_auth::Resource;
use ilion_schema::{ChangeKind, Diff, Schema, TableKind};
use ilion_types::CqlType;

use super::resource::function_resource;
use super::tables::Changes;
use super::{AccessControl, Identity, SetupError};
use crate::{Awaited, Error};

impl AccessControl {
    /// Grants and revokes permissions after a schema change that `client` made.
    ///
    /// # Errors
    /// `system_auth` cannot be read or written; the schema has changed all the same.
    pub(crate) fn follow(&self, diffs: &[Diff], client: &Identity) -> Result<Option<Awaited>, Error> {
        if !self.options.checks_permissions() || diffs.is_empty() {
            return Ok(None);
        }
        let of = |kind: ChangeKind| diffs.iter().filter(move |diff| diff.kind() == kind);
        let dropped: Vec<Resource> = of(ChangeKind::Dropped).flat_map(of_dropped).collect();
        let created: Vec<Resource> = of(ChangeKind::Created).flat_map(of_created).collect();
        self.in_turn(|turn| {
            let mut changes = Changes::default();
            self.revoke_all_on(&dropped, &mut changes)?;
            if let Identity::User(login) = client {
                self.grant_to_creator(&login.role, &created, &mut changes)?;
            }
            turn.write(changes)
        })
    }

    /// Grants all permissions on new objects to their creator, unless the creator's role was dropped meanwhile. Requires: the turn is held.
    pub(super) fn grant_to_creator(
        &self,
        role: &str,
        resources: &[Resource],
        changes: &mut Changes,
    ) -> Result<(), Error> {
        if self.options.checks_permissions() && self.tables.role(role)?.is_some() {
            for resource in resources {
                changes.grant(role, resource, resource.applicable());
            }
        }
        Ok(())
    }

    /// Removes grants on objects and roles that do not exist: a crash may come between a DROP and the removal of its grants.
    ///
    /// # Errors
    /// `system_auth` cannot be read or written.
    pub fn sweep(&self, schema: &Schema) -> Result<(), SetupError> {
        if !self.options.checks_permissions() {
            return Ok(());
        }
        self.in_turn(|turn| {
            let granted = self.tables.all_granted()?;
            let names: BTreeSet<&String> = granted.iter().map(|granted| &granted.resource).collect();
            let mut gone = BTreeSet::new();
            for name in names {
                if let Some(resource) = Resource::parse(name)
                    && !self.tables.has(&resource, schema)?
                {
                    gone.insert(name.clone());
                }
            }
            let mut changes = Changes::default();
            for one in granted.iter().filter(|granted| gone.contains(&granted.resource)) {
                changes.revoke_all(&one.role, &one.resource);
            }
            turn.write(changes)
        })?;
        Ok(())
    }
}

fn of_created(diff: &Diff) -> Vec<Resource> {
    match diff {
        Diff::Keyspace(it) => {
            let name = &it.object().name;
            vec![
                Resource::Keyspace(name.clone()),
                Resource::AllFunctionsIn(name.clone()),
            ]
        }
        // Compat: a view is governed by the permissions on its base table.
        Diff::Table(it) if it.object().kind == TableKind::View => Vec::new(),
        _ => of_object(diff).into_iter().collect(),
    }
}

fn of_dropped(diff: &Diff) -> Vec<Resource> {
    match diff {
        Diff::Keyspace(it) => {
            let name = &it.object().name;
            vec![
                Resource::Keyspace(name.clone()),
                Resource::AllTables(name.clone()),
                Resource::AllFunctionsIn(name.clone()),
            ]
        }
        _ => of_object(diff).into_iter().collect(),
    }
}

/// The resource of a table, view, function or aggregate.
fn of_object(diff: &Diff) -> Option<Resource> {
    match diff {
        Diff::Table(it) => Some(Resource::table(&it.object().keyspace, &it.object().name)),
        Diff::Function(keyspace, it) => {
            let types: Vec<CqlType> = it.object().argument_types().cloned().collect();
            Some(function_resource(keyspace, &it.object().name, &types))
        }
        Diff::Aggregate(keyspace, it) => Some(function_resource(
            keyspace,
            &it.object().name,
            &it.object().argument_types,
        )),
        Diff::Keyspace(_) | Diff::View(..) | Diff::Type(_) | Diff::Index(..) | Diff::Trigger(..) => None,
    }
}
