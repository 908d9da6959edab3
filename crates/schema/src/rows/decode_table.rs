//! Rows of `tables`, `views`, `columns`, `column_masks` and `dropped_columns` to tables.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use ilion_types::CqlType;

use super::SchemaRow;
use crate::options::caching;
use crate::{
    ClusteringOrder, ColumnKind, ColumnMask, DroppedColumn, Error, Keyspace, MaskArgument, TableBuilder,
    TableId, TableKind, TableOptions, TableSchema, ViewSchema,
};

/// The rows of columns, present and dropped, and of masks, by table.
pub(super) struct Columns<'a> {
    present: BTreeMap<String, Vec<&'a SchemaRow>>,
    masks: BTreeMap<String, Vec<&'a SchemaRow>>,
    dropped: BTreeMap<String, Vec<&'a SchemaRow>>,
}

impl<'a> Columns<'a> {
    pub(super) fn of(rows: &'a [SchemaRow]) -> Result<Self, Error> {
        let mut columns = Self {
            present: BTreeMap::new(),
            masks: BTreeMap::new(),
            dropped: BTreeMap::new(),
        };
        for row in rows {
            let map = match row.table {
                "columns" => &mut columns.present,
                "column_masks" => &mut columns.masks,
                "dropped_columns" => &mut columns.dropped,
                _ => continue,
            };
            map.entry(row.key_text(0)?).or_default().push(row);
        }
        Ok(columns)
    }
}

pub(super) fn decode_table(
    row: &SchemaRow,
    columns: &Columns<'_>,
    keyspace: &Keyspace,
) -> Result<Arc<TableSchema>, Error> {
    let mut builder = begin(row, keyspace)?;
    let flags: BTreeSet<String> = row.texts("flags")?.unwrap_or_default().into_iter().collect();
    builder.flags = flags.into_iter().collect();
    finish(row, builder, columns, keyspace)
}

pub(super) fn decode_view(
    row: &SchemaRow,
    columns: &Columns<'_>,
    keyspace: &Keyspace,
) -> Result<(Arc<ViewSchema>, Arc<TableSchema>), Error> {
    let mut builder = begin(row, keyspace)?;
    builder.kind = TableKind::View;
    let table = finish(row, builder, columns, keyspace)?;
    let view = ViewSchema {
        name: table.name.clone(),
        base_table: row.required("base_table_name", row.text("base_table_name")?)?,
        base_table_id: TableId(row.required("base_table_id", row.uuid("base_table_id")?)?),
        include_all_columns: row.boolean("include_all_columns").unwrap_or_default(),
        where_clause: row.text("where_clause")?.unwrap_or_default(),
    };
    Ok((Arc::new(view), table))
}

fn begin(row: &SchemaRow, keyspace: &Keyspace) -> Result<TableBuilder, Error> {
    let id = TableId(row.required("id", row.uuid("id")?)?);
    let mut builder = TableBuilder::new(&keyspace.name, row.key_text(0)?, id);
    builder.options = decode_options(row)?;
    Ok(builder)
}

fn finish(
    row: &SchemaRow,
    mut builder: TableBuilder,
    columns: &Columns<'_>,
    keyspace: &Keyspace,
) -> Result<Arc<TableSchema>, Error> {
    let rows_of = |map: &BTreeMap<String, Vec<&'_ SchemaRow>>| {
        map.get(&builder.name)
            .into_iter()
            .flatten()
            .map(|row| (*row).clone())
            .collect::<Vec<_>>()
    };
    let (present, dropped) = (rows_of(&columns.present), rows_of(&columns.dropped));
    let masks = rows_of(&columns.masks);
    if present.len() > usize::from(u16::MAX) {
        return Err(row.corrupt("fewer than 65536 columns"));
    }
    for row in &dropped {
        let column = decode_dropped(row, keyspace)?;
        builder.dropped.insert(column.name.clone(), column);
    }
    let mut sorted = present
        .iter()
        .map(|row| Ok((place(row)?, row)))
        .collect::<Result<Vec<_>, Error>>()?;
    sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (place, row) in sorted {
        let text = row.required("type", row.text("type")?)?;
        let order = match (place.kind(), row.text("clustering_order")?.as_deref()) {
            (ColumnKind::Clustering, Some("desc")) => ClusteringOrder::Desc,
            _ => ClusteringOrder::Asc,
        };
        let kind = place.kind();
        builder = builder.add(place.name, kind, row.parse_type(&text, keyspace)?, order);
    }
    for row in &masks {
        let column = row.key_text(1)?;
        // Compat: Cassandra leaves behind the rows of columns that were dropped or renamed.
        if builder.has(&column) {
            let mask = decode_mask(row, keyspace)?;
            builder = builder.mask(&column, Some(Arc::new(mask)));
        }
    }
    let table = builder.build();
    if table.partition_key().len() == 0 {
        return Err(row.corrupt("columns of a partition key"));
    }
    Ok(table)
}

/// The position of a column: key columns by position, then the others by name, as in CREATE TABLE.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ColumnPlace {
    rank: u8,
    position: i32,
    name: String,
    is_static: bool,
}

impl ColumnPlace {
    fn kind(&self) -> ColumnKind {
        match (self.rank, self.is_static) {
            (0, _) => ColumnKind::PartitionKey,
            (1, _) => ColumnKind::Clustering,
            (_, true) => ColumnKind::Static,
            _ => ColumnKind::Regular,
        }
    }
}

fn place(row: &SchemaRow) -> Result<ColumnPlace, Error> {
    let kind = decode_kind(row)?;
    let rank = match kind {
        ColumnKind::PartitionKey => 0,
        ColumnKind::Clustering => 1,
        _ => 2,
    };
    let position = if rank < 2 {
        row.required("position", row.int("position")?)?
    } else {
        -1
    };
    Ok(ColumnPlace {
        rank,
        position,
        name: row.key_text(1)?,
        is_static: kind == ColumnKind::Static,
    })
}

fn decode_kind(row: &SchemaRow) -> Result<ColumnKind, Error> {
    let kind = row.text("kind")?.as_deref().and_then(ColumnKind::named);
    kind.ok_or_else(|| row.corrupt("partition_key, clustering, static or regular in kind"))
}

fn decode_mask(row: &SchemaRow, keyspace: &Keyspace) -> Result<ColumnMask, Error> {
    let types = row.texts("function_argument_types")?.unwrap_or_default();
    let values = row.texts("function_argument_values")?.unwrap_or_default();
    let nulls = row.booleans("function_argument_nulls")?.unwrap_or_default();
    if types.len() != values.len() || types.len() != nulls.len() {
        return Err(row.corrupt("as many types as values and nulls of arguments"));
    }
    let given = types.iter().zip(values.iter().zip(&nulls));
    let arguments = given.map(|(ty, (value, is_null))| {
        let ty = row.parse_type(ty, keyspace)?;
        let value = match is_null {
            true => None,
            false => Some(decode_argument(row, value, &ty)?),
        };
        Ok(MaskArgument { ty, value })
    });
    Ok(ColumnMask {
        keyspace: row.required("function_keyspace", row.text("function_keyspace")?)?,
        function: row.required("function_name", row.text("function_name")?)?,
        arguments: arguments.collect::<Result<_, Error>>()?,
    })
}

fn decode_argument(row: &SchemaRow, text: &str, ty: &CqlType) -> Result<Bytes, Error> {
    let decoded = MaskArgument::text_type(ty).parse_printed(text).and_then(|value| {
        ty.validate(&value)?;
        Ok(value)
    });
    match decoded {
        Ok(value) => Ok(value.into()),
        Err(refused) => Err(row.corrupt(format!("a value of type {ty}, not {text} ({refused})"))),
    }
}

fn decode_dropped(row: &SchemaRow, keyspace: &Keyspace) -> Result<DroppedColumn, Error> {
    let text = row.required("type", row.text("type")?)?;
    let kind = if row.text("kind")?.is_some() {
        decode_kind(row)?
    } else {
        ColumnKind::Regular
    };
    let dropped_millis = row.required("dropped_time", row.bigint("dropped_time")?)?;
    Ok(DroppedColumn {
        name: row.key_text(1)?,
        kind,
        ty: row.parse_type(&text, keyspace)?,
        dropped_micros: dropped_millis.saturating_mul(1000),
    })
}

/// Decodes the options of a table or view. A missing option gets its default.
fn decode_options(row: &SchemaRow) -> Result<TableOptions, Error> {
    let mut options = TableOptions::default();
    let count = |target: &mut u32, name| match row.int(name)?.map(u32::try_from) {
        None => Ok(()),
        Some(Ok(value)) => {
            *target = value;
            Ok(())
        }
        Some(Err(_)) => Err(row.corrupt(format!("{name} of at least 0"))),
    };
    count(&mut options.default_time_to_live_secs, "default_time_to_live")?;
    count(&mut options.gc_grace_secs, "gc_grace_seconds")?;
    count(&mut options.max_index_interval, "max_index_interval")?;
    count(
        &mut options.memtable_flush_period_ms,
        "memtable_flush_period_in_ms",
    )?;
    count(&mut options.min_index_interval, "min_index_interval")?;
    let text = |target: &mut String, name| {
        if let Some(value) = row.text(name)? {
            *target = value;
        }
        Ok::<_, Error>(())
    };
    text(&mut options.additional_write_policy, "additional_write_policy")?;
    text(&mut options.comment, "comment")?;
    text(&mut options.memtable, "memtable")?;
    text(&mut options.read_repair, "read_repair")?;
    text(&mut options.speculative_retry, "speculative_retry")?;
    options.allow_auto_snapshot = row.boolean("allow_auto_snapshot").unwrap_or(true);
    options.incremental_backups = row.boolean("incremental_backups").unwrap_or(true);
    options.cdc = row.boolean("cdc").unwrap_or(false);
    options.bloom_filter_fp_chance = row
        .double("bloom_filter_fp_chance")?
        .unwrap_or(options.bloom_filter_fp_chance);
    options.crc_check_chance = row
        .double("crc_check_chance")?
        .unwrap_or(options.crc_check_chance);
    if let Some(map) = row.text_map("caching")? {
        options.caching = caching::parse(&map).map_err(|refused| row.corrupt(refused.to_string()))?;
    }
    if let Some(map) = row.text_map("compaction")? {
        options.compaction = map;
    }
    if let Some(map) = row.text_map("compression")? {
        let is_disabled = map.get("enabled").is_some_and(|text| text == "false");
        options.compression = if is_disabled { BTreeMap::new() } else { map };
    }
    options.extensions = row.blob_map("extensions")?.unwrap_or_default();
    Ok(options)
}
