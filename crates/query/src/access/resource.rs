//! The resources of statements: names get their keyspaces, and must exist.

use ilion_auth::{Permission, Permissions, Resource};
use ilion_cql::ast;
use ilion_schema::Schema;
use ilion_types::CqlType;

use crate::Error;
use crate::type_name::resolve_type;

/// The resource of a function or aggregate.
pub(crate) fn function_resource(keyspace: &str, name: &str, types: &[CqlType]) -> Resource {
    // Compat: signatures ignore whether collections are frozen.
    let frozen = || types.iter().map(|ty| ty.clone().freeze());
    Resource::Function {
        keyspace: keyspace.to_owned(),
        name: name.to_owned(),
        classes: types.iter().map(CqlType::to_class).collect(),
        types: frozen().map(|ty| ty.to_string()).collect(),
    }
}

/// The resource of a statement in `keyspace`.
///
/// # Errors
/// A keyspace or type is missing.
pub(super) fn resolve(
    resource: &ast::Resource,
    keyspace: Option<&str>,
    schema: &Schema,
) -> Result<Resource, Error> {
    Ok(match resource {
        ast::Resource::AllKeyspaces => Resource::AllKeyspaces,
        ast::Resource::Keyspace(keyspace) => Resource::Keyspace(keyspace.clone()),
        ast::Resource::AllTables(keyspace) => Resource::AllTables(keyspace.clone()),
        ast::Resource::Table(table) => {
            let keyspace = table
                .keyspace
                .as_deref()
                .or(keyspace)
                .ok_or_else(Error::no_keyspace)?;
            Resource::table(keyspace, &table.name)
        }
        ast::Resource::AllRoles => Resource::AllRoles,
        ast::Resource::Role(role) => Resource::Role(role.clone()),
        ast::Resource::AllFunctions => Resource::AllFunctions,
        ast::Resource::AllFunctionsIn(keyspace) => Resource::AllFunctionsIn(keyspace.clone()),
        ast::Resource::Function { name, argument_types } => {
            let Some(keyspace) = name.keyspace.as_deref() else {
                return Err(Error::invalid(
                    "In this context function name must be explicitly qualified by a keyspace",
                ));
            };
            let types = argument_types
                .iter()
                .map(|ty| resolve_type(ty, Some(keyspace), schema))
                .collect::<Result<Vec<_>, _>>()?;
            stored_function(keyspace, &name.name, &types, schema)
        }
        ast::Resource::AllMbeans => Resource::AllMbeans,
        ast::Resource::Mbean(name) | ast::Resource::Mbeans(name) => Resource::Mbean(name.clone()),
    })
}

/// The function with the argument types in the schema, since grants and calls use these. The statement may write collections frozen or not.
pub(super) fn stored_function(keyspace: &str, name: &str, types: &[CqlType], schema: &Schema) -> Resource {
    let found = schema.keyspace(keyspace);
    let function = found.and_then(|found| found.find_function(name, types));
    let aggregate = found.and_then(|found| found.find_aggregate(name, types));
    match (function, aggregate) {
        (Some(function), _) => {
            let types: Vec<CqlType> = function.argument_types().cloned().collect();
            function_resource(keyspace, name, &types)
        }
        (None, Some(aggregate)) => function_resource(keyspace, name, &aggregate.argument_types),
        (None, None) => function_resource(keyspace, name, types),
    }
}

/// The permissions of a statement on this resource; `ALL` stands for those that apply to it.
pub(super) fn permissions_of(permissions: &ast::Permissions, resource: &Resource) -> Permissions {
    match permissions {
        ast::Permissions::All => resource.applicable(),
        ast::Permissions::Only(list) => list.iter().copied().filter_map(permission_of).collect(),
    }
}

pub(super) fn permission_of(permission: ast::Permission) -> Option<Permission> {
    Permission::parse(permission.name())
}
