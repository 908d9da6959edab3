//! Secondary indexes: `system_views.indexes` (all indexes) and `system_views.sai_column_indexes` (as in Cassandra).

use bytes::Bytes;
use ilion_engine::{Engine, IndexBuildFacts, OpenIndex, VirtualRow};
use ilion_index::Definition;
use ilion_schema::IndexPart;
use ilion_types::CqlType;

use crate::values::{bigint, boolean, cell, text};

/// Cassandra's name for the class of an index that was created without a class.
const TABLE_INDEX: &str = "legacy_local_table";

/// `indexes`: all indexes, with the progress of their builds.
pub(super) fn all(engine: &Engine) -> Vec<VirtualRow> {
    let builds = engine.index_builds();
    let open = open_indexes(engine);
    open.iter().map(|open| row_of(open, &builds)).collect()
}

/// `sai_column_indexes`: storage-attached indexes.
pub(super) fn attached(engine: &Engine) -> Vec<VirtualRow> {
    let builds = engine.index_builds();
    let row = |open: &OpenIndex| {
        let definition = open.index.definition();
        let is_building = build_of(definition, &builds).is_some();
        named(
            definition,
            vec![
                cell("analyzer", text(&analyzer(definition))),
                cell("column_name", text(&definition.column.name)),
                cell("is_building", boolean(is_building)),
                cell("is_queryable", boolean(open.is_built)),
                cell("is_string", boolean(is_string(definition))),
                cell("table_name", text(&definition.table.name)),
            ],
        )
    };
    attached_indexes(engine).iter().map(row).collect()
}

pub(super) fn attached_indexes(engine: &Engine) -> Vec<OpenIndex> {
    let mut open = open_indexes(engine);
    open.retain(|open| open.index.definition().schema.is_storage_attached());
    open
}

fn open_indexes(engine: &Engine) -> Vec<OpenIndex> {
    let schema = engine.schema();
    let indexed = schema
        .keyspaces
        .values()
        .filter(|keyspace| !keyspace.indexes.is_empty());
    indexed
        .flat_map(|keyspace| keyspace.tables.values())
        .flat_map(|table| engine.indexes_of(table.id))
        .collect()
}

fn row_of(open: &OpenIndex, builds: &[IndexBuildFacts]) -> VirtualRow {
    let definition = open.index.definition();
    let build = build_of(definition, builds);
    let optional = |name: &str, value: Option<u64>| (name.to_owned(), value.map(bigint));
    let class = definition.schema.class_name().unwrap_or(TABLE_INDEX);
    named(
        definition,
        vec![
            optional("build_bytes_done", build.map(|build| build.done_bytes)),
            optional("build_bytes_total", build.map(|build| build.total_bytes)),
            cell("class_name", text(class)),
            cell("column_name", text(&definition.column.name)),
            cell("is_building", boolean(build.is_some())),
            cell("is_queryable", boolean(open.is_built)),
            cell("table_name", text(&definition.table.name)),
            cell("target", text(definition.option("target").unwrap_or_default())),
        ],
    )
}

fn named(definition: &Definition, cells: Vec<(String, Option<Bytes>)>) -> VirtualRow {
    VirtualRow {
        partition_key: vec![text(&definition.table.keyspace)],
        clustering: vec![text(&definition.schema.name)],
        cells,
    }
}

fn build_of<'b>(definition: &Definition, builds: &'b [IndexBuildFacts]) -> Option<&'b IndexBuildFacts> {
    builds
        .iter()
        .find(|build| build.keyspace == definition.table.keyspace && build.index == definition.schema.name)
}

/// Compat: the text that Cassandra's analyzers print.
fn analyzer(definition: &Definition) -> String {
    let option = |name: &str, default: bool| match definition.option(name) {
        Some(given) => given.eq_ignore_ascii_case("true"),
        None => default,
    };
    let given = ["case_sensitive", "normalize", "ascii"];
    if given.iter().all(|name| definition.option(name).is_none()) {
        return "NoOpAnalyzer".to_owned();
    }
    format!(
        "NonTokenizingAnalyzer{{caseSensitive={}, normalized={}, ascii={}}}",
        option("case_sensitive", true),
        option("normalize", false),
        option("ascii", false)
    )
}

/// Compat: true for types that a storage-attached index treats as literals, without an order.
fn is_string(definition: &Definition) -> bool {
    let ty = match (&definition.column.ty, definition.part) {
        (CqlType::Map { key, .. }, IndexPart::Keys) => &**key,
        (CqlType::Map { value, .. }, IndexPart::Values) => &**value,
        (CqlType::List { element, .. } | CqlType::Set { element, .. }, IndexPart::Values) => &**element,
        (ty, _) => ty,
    };
    matches!(
        ty,
        CqlType::Text | CqlType::Ascii | CqlType::Boolean | CqlType::Tuple(_) | CqlType::Udt { .. }
    ) || ty.is_collection()
}
