//! Tables and views to rows: one row in `tables` or `views`, one in `columns` for each column, one in `column_masks` for each mask,
//! one in `dropped_columns` for each dropped column.

use std::collections::BTreeSet;

use bytes::Bytes;
use ilion_types::{encode_list, encode_map};

use super::SchemaRow;
use super::values::{boolean, key, text, text_list, text_map, type_list};
use crate::{
    ClusteringOrder, Column, ColumnKind, DroppedColumn, MaskArgument, TableId, TableOptions, TableSchema,
    ViewSchema,
};

type Cells = Vec<(&'static str, Option<Bytes>)>;

pub(super) fn table_row(table: &TableSchema) -> SchemaRow {
    let mut cells = option_cells(&table.options);
    let flags: BTreeSet<String> = table.flags.iter().cloned().collect();
    cells.push(("flags", text_list(flags.into_iter())));
    cells.push(("id", uuid(table.id)));
    row("tables", table, cells)
}

pub(super) fn view_row(view: &ViewSchema, table: &TableSchema) -> SchemaRow {
    let mut cells = option_cells(&table.options);
    cells.extend([
        ("base_table_id", uuid(view.base_table_id)),
        ("base_table_name", text(&view.base_table)),
        ("id", uuid(table.id)),
        ("include_all_columns", boolean(view.include_all_columns)),
        ("where_clause", text(&view.where_clause)),
    ]);
    row("views", table, cells)
}

fn row(name: &'static str, table: &TableSchema, mut cells: Cells) -> SchemaRow {
    cells.sort_by_key(|(column, _)| *column);
    SchemaRow {
        table: name,
        keyspace: table.keyspace.clone(),
        clustering: vec![key(&table.name)],
        cells,
    }
}

/// The rows of the columns, present and dropped.
pub(super) fn table_rows(table: &TableSchema) -> impl Iterator<Item = SchemaRow> {
    let columns = table
        .every_column()
        .into_iter()
        .flat_map(|column| [Some(column_row(table, column)), mask_row(table, column)])
        .flatten();
    columns.chain(table.dropped.values().map(|dropped| dropped_row(table, dropped)))
}

fn column_row(table: &TableSchema, column: &Column) -> SchemaRow {
    let position = if column.is_primary_key() {
        i32::from(column.position)
    } else {
        -1
    };
    let order = match (column.kind, column.order) {
        (ColumnKind::Clustering, ClusteringOrder::Asc) => "asc",
        (ColumnKind::Clustering, ClusteringOrder::Desc) => "desc",
        _ => "none",
    };
    SchemaRow {
        table: "columns",
        keyspace: table.keyspace.clone(),
        clustering: vec![key(&table.name), key(&column.name)],
        cells: vec![
            ("clustering_order", text(order)),
            ("column_name_bytes", text(&column.name)),
            ("kind", text(column.kind.name())),
            ("position", int(position)),
            ("type", text(&column.ty.to_string())),
        ],
    }
}

/// The row of the mask of a column; `None` if the column has no mask.
///
/// Compat: lists have no null elements, so another list marks the arguments that are null.
fn mask_row(table: &TableSchema, column: &Column) -> Option<SchemaRow> {
    let mask = column.mask.as_ref()?;
    let arguments = || mask.arguments.iter();
    let nulls: Vec<[u8; 1]> = arguments()
        .map(|argument| [u8::from(argument.value.is_none())])
        .collect();
    // The values can be printed: they are checked when a mask is made.
    let plain = |argument: &MaskArgument| match &argument.value {
        Some(value) => {
            let text = MaskArgument::text_type(&argument.ty).print_plain(value);
            text.unwrap_or_default()
        }
        None => String::new(),
    };
    Some(SchemaRow {
        table: "column_masks",
        keyspace: table.keyspace.clone(),
        clustering: vec![key(&table.name), key(&column.name)],
        cells: vec![
            (
                "function_argument_nulls",
                Some(encode_list(nulls.iter().map(|null| &null[..])).into()),
            ),
            (
                "function_argument_types",
                Some(type_list(arguments().map(|argument| &argument.ty))),
            ),
            ("function_argument_values", text_list(arguments().map(plain))),
            ("function_keyspace", text(&mask.keyspace)),
            ("function_name", text(&mask.function)),
        ],
    })
}

fn dropped_row(table: &TableSchema, dropped: &DroppedColumn) -> SchemaRow {
    // Compat: Cassandra stores milliseconds.
    let dropped_millis = dropped.dropped_micros.div_euclid(1000);
    SchemaRow {
        table: "dropped_columns",
        keyspace: table.keyspace.clone(),
        clustering: vec![key(&table.name), key(&dropped.name)],
        cells: vec![
            (
                "dropped_time",
                Some(Bytes::copy_from_slice(&dropped_millis.to_be_bytes())),
            ),
            ("kind", text(dropped.kind.name())),
            ("type", text(&dropped.ty.to_string())),
        ],
    }
}

/// The cells that tables and views share. Options of newer releases are written only if they are not the default.
fn option_cells(options: &TableOptions) -> Cells {
    let unless = |is_default: bool, cell: Option<Bytes>| if is_default { None } else { cell };
    vec![
        ("additional_write_policy", text(&options.additional_write_policy)),
        (
            "allow_auto_snapshot",
            unless(options.allow_auto_snapshot, boolean(false)),
        ),
        ("bloom_filter_fp_chance", double(options.bloom_filter_fp_chance)),
        ("caching", text_map(&options.caching.to_map())),
        ("cdc", unless(!options.cdc, boolean(true))),
        ("comment", text(&options.comment)),
        ("compaction", text_map(&options.compaction)),
        ("compression", text_map(&options.compression_map())),
        ("crc_check_chance", double(options.crc_check_chance)),
        // Cassandra has not used this option for years, but drivers read it.
        ("dclocal_read_repair_chance", double(0.0)),
        (
            "default_time_to_live",
            unsigned(options.default_time_to_live_secs),
        ),
        ("extensions", extensions(options)),
        ("gc_grace_seconds", unsigned(options.gc_grace_secs)),
        (
            "incremental_backups",
            unless(options.incremental_backups, boolean(false)),
        ),
        ("max_index_interval", unsigned(options.max_index_interval)),
        (
            "memtable",
            unless(options.memtable == "default", text(&options.memtable)),
        ),
        (
            "memtable_flush_period_in_ms",
            unsigned(options.memtable_flush_period_ms),
        ),
        ("min_index_interval", unsigned(options.min_index_interval)),
        ("read_repair", text(&options.read_repair)),
        ("read_repair_chance", double(0.0)),
        ("speculative_retry", text(&options.speculative_retry)),
    ]
}

fn extensions(options: &TableOptions) -> Option<Bytes> {
    Some(
        encode_map(
            options
                .extensions
                .iter()
                .map(|(name, value)| (name.as_bytes(), &value[..])),
        )
        .into(),
    )
}

fn uuid(id: TableId) -> Option<Bytes> {
    Some(Bytes::copy_from_slice(id.0.as_bytes()))
}

fn int(value: i32) -> Option<Bytes> {
    Some(Bytes::copy_from_slice(&value.to_be_bytes()))
}

/// Serializes a numeric option. Options are `int` columns; parsing keeps their values in that range.
fn unsigned(value: u32) -> Option<Bytes> {
    int(i32::try_from(value).unwrap_or(i32::MAX))
}

fn double(value: f64) -> Option<Bytes> {
    Some(Bytes::copy_from_slice(&value.to_be_bytes()))
}
