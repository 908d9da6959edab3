//! The Avro schema of the changes of a table, as JSON.
//!
//! ```text
//! Envelope := op: string, ts_ms: long, source: Source, after: After?          (T? is a union of null and T)
//! Source   := version, connector, keyspace, table, position: string, event: int, resume: string, cluster_position: string?
//! After    := _row: Row?, _range_start: Range?, _range_end: Range?, one cell? for each column
//! Row      := ts_us: long, deletion_ts: long?, ttl: int?
//! Range    := method: string, values: Bounds, which has one value for each clustering column
//! cell     := value: T?, deletion_ts: long?, set: boolean, ts_us: long?, ttl: int?
//! ```
//! The value of an unfrozen collection is an array of cells that have a `key`, too; of a set they have no `value`. That of an unfrozen
//! user type is a record with one cell for each field. Full names of records follow the path to them, so that a new column, or a new
//! field at the end of a type, renames none, and registries of schemas see a compatible change.

use ilion_schema::{Column, TableSchema};
use ilion_types::CqlType;
use serde_json::{Value as Json, json};

use super::names::{permitted, udt_fields};
use super::value::{self, optional, record};

/// Fields of `after` that are no columns.
pub(super) const ROW: &str = "_row";
pub(super) const RANGE_START: &str = "_range_start";
pub(super) const RANGE_END: &str = "_range_end";
/// Parts of the paths to records in the partition key and in ends of ranges.
const KEY: &str = "_key";
const BOUNDS: &str = "_bounds";

/// Names that no column may have as a field.
pub(super) const TAKEN: [&str; 5] = [ROW, RANGE_START, RANGE_END, KEY, BOUNDS];

/// The schema of the envelope; `fields` are the names of all columns.
pub(super) fn envelope(table: &TableSchema, fields: &[String]) -> Json {
    let namespace = namespace(table);
    let named = |name: &str, ty: &str| json!({"name": name, "type": ty});
    let source = ["version", "connector", "keyspace", "table", "position"];
    let mut source: Vec<Json> = source.iter().map(|name| named(name, "string")).collect();
    source.push(named("event", "int"));
    source.push(named("resume", "string"));
    source.push(optional("cluster_position", json!("string"), None));
    let fields = [
        named("op", "string"),
        named("ts_ms", "long"),
        json!({"name": "source", "type": record(&namespace, "Source", source)}),
        optional("after", after(table, fields, &namespace), None),
    ];
    record(&namespace, "Envelope", fields.into())
}

/// The schema of the partition key; `fields` are the names of its columns.
pub(super) fn key(table: &TableSchema, fields: &[String]) -> Json {
    let namespace = namespace(table);
    let columns = table.partition_key().zip(fields);
    let values = columns.map(|(column, field)| value_field(column, field, &namespace, KEY));
    let fields = values.collect();
    record(&namespace, "Key", fields)
}

fn namespace(table: &TableSchema) -> String {
    format!("{}.{}", permitted(&table.keyspace), permitted(&table.name))
}

fn after(table: &TableSchema, fields: &[String], namespace: &str) -> Json {
    let row = [
        json!({"name": "ts_us", "type": "long"}),
        optional("deletion_ts", json!("long"), None),
        optional("ttl", json!("int"), None),
    ];
    let columns = table.every_column();
    let of_clustering = columns.iter().zip(fields).filter(|(column, _)| {
        let mut clustering = table.clustering();
        clustering.any(|other| other.id == column.id)
    });
    let bounds = of_clustering.map(|(column, field)| value_field(column, field, namespace, BOUNDS));
    let bounds = record(namespace, "Bounds", bounds.collect());
    let range = [
        json!({"name": "method", "type": "string"}),
        json!({"name": "values", "type": bounds}),
    ];
    let mut after = vec![
        optional(ROW, record(namespace, "Row", row.into()), None),
        optional(RANGE_START, record(namespace, "Range", range.into()), None),
        optional(RANGE_END, json!(format!("{namespace}.Range")), None),
    ];
    after.extend(columns.into_iter().zip(fields).map(|(column, field)| {
        let path = format!("{namespace}.{field}");
        optional(field, column_cell(&column.ty, &path), was(&column.name, field))
    }));
    record(namespace, "After", after)
}

/// A field with a plain value of a column.
fn value_field(column: &Column, field: &str, namespace: &str, of: &str) -> Json {
    let path = format!("{namespace}.{of}.{field}");
    let ty = value::schema(&column.ty, &path);
    optional(field, ty, was(&column.name, field))
}

/// The doc text of a field that does not have the name of its column; `None` if it has that name.
fn was(name: &str, field: &str) -> Option<String> {
    (name != field).then(|| format!("CQL name: {name}"))
}

fn column_cell(ty: &CqlType, path: &str) -> Json {
    let value = match ty {
        CqlType::List {
            element,
            frozen: false,
        } => elements(&CqlType::TimeUuid, Some(element), path),
        CqlType::Set {
            element,
            frozen: false,
        } => elements(element, None, path),
        CqlType::Map {
            key,
            value,
            frozen: false,
        } => elements(key, Some(value), path),
        CqlType::Udt {
            definition,
            frozen: false,
        } => {
            let names = udt_fields(definition.fields.iter());
            let fields = definition.fields.iter().zip(&names);
            let fields = fields.map(|((name, ty), field)| {
                let path = format!("{path}.{field}");
                optional(field, cell(value::schema(ty, &path), &path), was(name, field))
            });
            record(path, "Fields", fields.collect())
        }
        _ => value::schema(ty, path),
    };
    cell(value, path)
}

fn elements(key: &CqlType, element: Option<&CqlType>, path: &str) -> Json {
    let key = value::schema(key, &format!("{path}.key"));
    let mut fields = vec![optional("key", key, None)];
    if let Some(element) = element {
        let value = value::schema(element, &format!("{path}.element"));
        fields.push(optional("value", value, None));
    }
    fields.extend(times());
    json!({"type": "array", "items": record(path, "Element", fields)})
}

fn cell(value: Json, path: &str) -> Json {
    let mut fields = vec![optional("value", value, None)];
    fields.extend(times());
    record(path, "Cell", fields)
}

fn times() -> [Json; 4] {
    [
        optional("deletion_ts", json!("long"), None),
        json!({"name": "set", "type": "boolean"}),
        optional("ts_us", json!("long"), None),
        optional("ttl", json!("int"), None),
    ]
}
