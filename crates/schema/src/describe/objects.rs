//! Keyspaces, types, indexes, views, functions and aggregates.

use ilion_types::{CqlType, UserType, quote_name, quote_type_name};

use super::options::with_clause;
use super::table::primary_key;
use super::{Internals, map_literal, qualified, quoted};
use crate::{
    AggregateSchema, FunctionSchema, IndexKind, IndexSchema, Keyspace, TableKind, TableSchema, ViewSchema,
};

/// CREATE KEYSPACE, without the objects in it.
pub fn describe_keyspace(keyspace: &Keyspace) -> String {
    let name = quote_name(&keyspace.name);
    if keyspace
        .tables
        .values()
        .any(|table| table.kind == TableKind::Virtual)
    {
        return format!(
            "/*\nWarning: Keyspace {name} is a virtual keyspace and cannot be recreated with CQL.\n\
             Structure, for reference:\nVIRTUAL KEYSPACE {name};\n*/"
        );
    }
    let mut replication = format!("'class': {}", quoted(keyspace.replication.class()));
    for (option, value) in keyspace.replication.factors() {
        replication.push_str(&format!(", {}: {}", quoted(option), quoted(value)));
    }
    // Compat: Cassandra prints two blanks before AND.
    format!(
        "CREATE KEYSPACE {name} WITH replication = {{{replication}}}  AND durable_writes = {};",
        keyspace.durable_writes
    )
}

/// CREATE TYPE.
pub fn describe_type(definition: &UserType) -> String {
    let fields: Vec<String> = definition
        .fields
        .iter()
        .map(|(name, ty)| format!("    {} {ty}", quote_name(name)))
        .collect();
    let name = format!(
        "{}.{}",
        quote_name(&definition.keyspace),
        quote_type_name(&definition.name)
    );
    format!("CREATE TYPE {name} (\n{}\n);", fields.join(",\n"))
}

/// CREATE INDEX.
pub fn describe_index(keyspace: &str, index: &IndexSchema) -> String {
    let mut options = index.options.clone();
    let target = options.remove("target").unwrap_or_default();
    let class = options.remove("class_name");
    let name = quote_name(&index.name);
    let table = qualified(keyspace, &index.table);
    match (index.kind, class) {
        (IndexKind::Custom, Some(class)) => {
            let with = match options.is_empty() {
                true => String::new(),
                false => format!(" WITH OPTIONS = {}", map_literal(&options)),
            };
            format!(
                "CREATE CUSTOM INDEX {name} ON {table} ({target}) USING {}{with};",
                quoted(&class)
            )
        }
        _ => format!("CREATE INDEX {name} ON {table} ({target});"),
    }
}

/// CREATE MATERIALIZED VIEW. `table` is the table of the view, not its base.
pub fn describe_view(view: &ViewSchema, table: &TableSchema, internals: Internals) -> String {
    let selected = if view.include_all_columns {
        "*".to_owned()
    } else {
        let names = table
            .select_order()
            .into_iter()
            .map(|column| quote_name(&column.name));
        names.collect::<Vec<_>>().join(", ")
    };
    // Compat: Cassandra prints a blank before WITH.
    format!(
        "CREATE MATERIALIZED VIEW {} AS\n    SELECT {selected}\n    FROM {}\n    WHERE {}\n    {}\n WITH {};",
        qualified(&table.keyspace, &view.name),
        qualified(&table.keyspace, &view.base_table),
        view.where_clause,
        primary_key(table),
        with_clause(table, internals)
    )
}

/// CREATE FUNCTION.
pub fn describe_function(keyspace: &str, function: &FunctionSchema) -> String {
    let arguments: Vec<String> = function
        .arguments
        .iter()
        .map(|(name, ty)| format!("{} {}", quote_name(name), without_outer_frozen(ty)))
        .collect();
    let null = if function.called_on_null_input {
        "CALLED"
    } else {
        "RETURNS NULL"
    };
    format!(
        "CREATE FUNCTION {}({})\n    {null} ON NULL INPUT\n    RETURNS {}\n    LANGUAGE {}\n    AS $${}$$;",
        qualified(keyspace, &function.name),
        arguments.join(", "),
        without_outer_frozen(&function.return_type),
        function.language,
        function.body
    )
}

/// CREATE AGGREGATE.
pub fn describe_aggregate(keyspace: &str, aggregate: &AggregateSchema) -> String {
    let types: Vec<String> = aggregate
        .argument_types
        .iter()
        .map(without_outer_frozen)
        .collect();
    let mut lines = vec![
        format!(
            "CREATE AGGREGATE {}({})",
            qualified(keyspace, &aggregate.name),
            types.join(", ")
        ),
        format!("SFUNC {}", quote_name(&aggregate.state_func)),
        format!("STYPE {}", without_outer_frozen(&aggregate.state_type)),
    ];
    if let Some(name) = &aggregate.final_func {
        lines.push(format!("FINALFUNC {}", quote_name(name)));
    }
    if let Some(value) = &aggregate.initcond {
        lines.push(format!("INITCOND {value}"));
    }
    format!("{};", lines.join("\n    "))
}

/// The type without the outer `frozen` of a tuple or user type: a function cannot declare a frozen type.
fn without_outer_frozen(ty: &CqlType) -> String {
    let text = ty.to_string();
    match ty {
        CqlType::Tuple(_) | CqlType::Udt { .. } => {
            let inner = text
                .strip_prefix("frozen<")
                .and_then(|rest| rest.strip_suffix('>'));
            inner.map(str::to_owned).unwrap_or(text)
        }
        _ => text,
    }
}
