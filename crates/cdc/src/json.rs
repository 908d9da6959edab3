//! A change as JSON, in the envelope of Debezium's connector for Cassandra.
//!
//! ```text
//! change := {"op", "ts_ms", "source", "after"}
//! op     := "i" (INSERT), "u" (UPDATE), "d" (a row or partition is deleted), "r" (a range is deleted), "t" (TRUNCATE)
//! source := {"version", "connector", "keyspace", "table", "position", "event", "resume", "cluster_position"?}
//! after  := null (TRUNCATE) | {"_row"?, "_range_start"?, "_range_end"?, name: column*}
//! column := {"value", "deletion_ts", "set": true, "ts_us"?, "ttl"?}
//! ```
//! As there, `before` is absent, columns that were not written are absent, and columns of the key have `set` and no time. `deletion_ts`
//! is the local time of a deletion, or when the column expires, in microseconds. Ilion's own: `ts_us` (the timestamp that decides who
//! wins) and `ttl` of each column, `_row` (the same of the row itself), `position`, `event`, `resume` and `cluster_position`.
//!
//! The value of a column of several cells is an array of its elements that were written or deleted, each a column with its `key`: the
//! UUID of the place in a list, the element of a set, the key of a map, the name of a field. Its own `deletion_ts` and `ts_us` are
//! those of the deletion of all its older elements, if there is one. Numbers are printed with all their digits.

use std::fmt::Write as _;

use ilion_rows::{
    Bound, BoundKind, Cell, Data, DecoratedKey, DeletionTime, Liveness, NO_DELETION_TIME, Row, Values,
    counter,
};
use ilion_schema::{Column, TableSchema};
use ilion_types::{CqlType, decode_composite};

use crate::{Change, Changed};

/// `version` and `connector` of `source`.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
pub(crate) const CONNECTOR: &str = "ilion";

/// Appends a change as one line of JSON, without the end of the line.
///
/// # Errors
/// A value is invalid for its column's type; the text is for people.
pub fn print_json(change: &Change, out: &mut String) -> Result<(), String> {
    let table = &*change.table;
    let op = op(&change.changed);
    let millis = change.logged_micros.div_euclid(1000);
    put(
        out,
        format_args!(
            "{{\"op\":\"{op}\",\"ts_ms\":{millis},\"source\":{{\"version\":\"{VERSION}\",\"connector\":\"{CONNECTOR}\""
        ),
    );
    out.push_str(",\"keyspace\":");
    string(&table.keyspace, out);
    out.push_str(",\"table\":");
    string(&table.name, out);
    let Change {
        position,
        number,
        resume,
        ..
    } = change;
    put(
        out,
        format_args!(",\"position\":\"{position}\",\"event\":{number},\"resume\":\"{resume}\""),
    );
    if let Some(shared) = &change.shared {
        put(out, format_args!(",\"cluster_position\":\"{shared}\""));
    }
    out.push_str("},\"after\":");
    let Some(key) = &change.key else {
        out.push_str("null}");
        return Ok(());
    };
    let mut fields = Fields { table, out, count: 0 };
    fields.out.push('{');
    fields.key(key)?;
    match &change.changed {
        Changed::Table => {}
        Changed::Partition(deletion) => fields.deleted(*deletion),
        Changed::Range(range) => {
            fields.deleted(range.deletion);
            fields.bound("_range_start", &range.start)?;
            fields.bound("_range_end", &range.end)?;
        }
        Changed::Static(row) => fields.columns(row)?,
        Changed::DeletedRow(row) => {
            fields.clustering(row)?;
            fields.deleted(row.deletion);
        }
        Changed::Row(row) => {
            fields.clustering(row)?;
            fields.inserted(row.liveness);
            fields.columns(row)?;
        }
    }
    out.push_str("}}");
    Ok(())
}

/// Appends the partition key of a change as an object of its columns. Returns false, and appends `null`, for a change of all partitions.
///
/// # Errors
/// A value is invalid for its column's type; the text is for people.
pub fn print_key(change: &Change, out: &mut String) -> Result<bool, String> {
    let Some(key) = &change.key else {
        out.push_str("null");
        return Ok(false);
    };
    for (index, (column, part)) in key_columns(&change.table, key)?.into_iter().enumerate() {
        out.push(if index == 0 { '{' } else { ',' });
        string(&column.name, out);
        out.push(':');
        optional(&column.ty, Some(part), out)?;
    }
    out.push('}');
    Ok(true)
}

/// The columns of a partition key with their values.
pub(crate) fn key_columns<'a>(
    table: &'a TableSchema,
    key: &'a DecoratedKey,
) -> Result<Vec<(&'a Column, &'a [u8])>, String> {
    let columns = table.partition_key();
    let parts = match columns.len() {
        1 => vec![&key.key[..]],
        _ => decode_composite(&key.key).map_err(|error| error.to_string())?,
    };
    Ok(columns.zip(parts).collect())
}

/// The fields of `after`.
struct Fields<'a> {
    table: &'a TableSchema,
    out: &'a mut String,
    count: usize,
}

impl Fields<'_> {
    fn name(&mut self, name: &str) {
        if self.count > 0 {
            self.out.push(',');
        }
        self.count += 1;
        string(name, self.out);
        self.out.push(':');
    }

    fn key(&mut self, key: &DecoratedKey) -> Result<(), String> {
        for (column, part) in key_columns(self.table, key)? {
            self.key_column(column, Some(part))?;
        }
        Ok(())
    }

    fn clustering(&mut self, row: &Row) -> Result<(), String> {
        let values = row.clustering.values();
        for (column, value) in self.table.clustering().zip(values) {
            self.key_column(column, value.as_deref())?;
        }
        Ok(())
    }

    fn key_column(&mut self, column: &Column, value: Option<&[u8]>) -> Result<(), String> {
        self.name(&column.name);
        self.out.push_str("{\"value\":");
        optional(&column.ty, value, self.out)?;
        self.out.push_str(",\"deletion_ts\":null,\"set\":true}");
        Ok(())
    }

    fn deleted(&mut self, deletion: DeletionTime) {
        self.name("_row");
        let DeletionTime {
            marked_at_micros,
            local_secs,
        } = deletion;
        put(
            self.out,
            format_args!(
                "{{\"ts_us\":{marked_at_micros},\"deletion_ts\":{}}}",
                micros(local_secs)
            ),
        );
    }

    fn inserted(&mut self, liveness: Liveness) {
        if liveness.is_none() {
            return;
        }
        self.name("_row");
        put(
            self.out,
            format_args!("{{\"ts_us\":{},\"deletion_ts\":", liveness.timestamp_micros),
        );
        ends(liveness.expires_secs, liveness.ttl_secs, self.out);
        self.out.push('}');
    }

    fn bound(&mut self, name: &str, bound: &Bound) -> Result<(), String> {
        self.name(name);
        let method = method(bound.kind)?;
        put(self.out, format_args!("{{\"method\":\"{method}\",\"values\":{{"));
        let values: &Values = &bound.values;
        for (index, (column, value)) in self.table.clustering().zip(values).enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            string(&column.name, self.out);
            self.out.push(':');
            optional(&column.ty, value.as_deref(), self.out)?;
        }
        self.out.push_str("}}");
        Ok(())
    }

    fn columns(&mut self, row: &Row) -> Result<(), String> {
        for entry in &row.columns {
            // The record was decoded with this table.
            let Some(column) = self.table.column(entry.column) else {
                continue;
            };
            self.name(&column.name);
            match &entry.data {
                Data::Simple(cell) => {
                    self.out.push('{');
                    simple(&column.ty, cell, self.out)?;
                }
                Data::Complex(complex) => {
                    self.out.push_str("{\"value\":[");
                    for (index, (path, cell)) in complex.cells.iter().enumerate() {
                        self.out
                            .push_str(if index > 0 { ",{\"key\":" } else { "{\"key\":" });
                        element(&column.ty, path, cell, self.out)?;
                    }
                    self.out.push_str("],\"deletion_ts\":");
                    match complex.deletion.is_live() {
                        true => self.out.push_str("null,\"set\":true}"),
                        false => put(
                            self.out,
                            format_args!(
                                "{},\"set\":true,\"ts_us\":{}}}",
                                micros(complex.deletion.local_secs),
                                complex.deletion.marked_at_micros
                            ),
                        ),
                    }
                }
            }
        }
        Ok(())
    }
}

/// Prints an element of a column of several cells behind `{"key":`.
fn element(ty: &CqlType, path: &[u8], cell: &Cell, out: &mut String) -> Result<(), String> {
    let value_type = match ty {
        CqlType::List { element, .. } => {
            optional(&CqlType::TimeUuid, Some(path), out)?;
            &**element
        }
        CqlType::Set { element, .. } => {
            optional(element, Some(path), out)?;
            &CqlType::Empty
        }
        CqlType::Map { key, value, .. } => {
            optional(key, Some(path), out)?;
            &**value
        }
        CqlType::Udt { definition, .. } => {
            let index = path
                .first_chunk()
                .map(|bytes| usize::from(u16::from_be_bytes(*bytes)));
            let field = index.and_then(|index| definition.fields.get(index));
            let (name, ty) = field.ok_or_else(|| format!("a field of {}", definition.name))?;
            string(name, out);
            ty
        }
        _ => return Err("a column of several cells".to_owned()),
    };
    out.push(',');
    simple(value_type, cell, out)
}

/// Prints a cell behind `{`.
fn simple(ty: &CqlType, cell: &Cell, out: &mut String) -> Result<(), String> {
    out.push_str("\"value\":");
    match ty {
        _ if cell.is_tombstone() => out.push_str("null"),
        CqlType::Empty => out.push_str("null"),
        CqlType::Counter => put(out, format_args!("{}", counter::total(&cell.value))),
        _ => optional(ty, Some(&cell.value), out)?,
    }
    out.push_str(",\"deletion_ts\":");
    ends(cell.local_deletion_secs, cell.ttl_secs, out);
    put(
        out,
        format_args!(",\"set\":true,\"ts_us\":{}}}", cell.timestamp_micros),
    );
    Ok(())
}

/// Prints the time at which the cell was deleted or expires, and its time to live.
fn ends(local_secs: u32, ttl_secs: u32, out: &mut String) {
    match local_secs {
        NO_DELETION_TIME => out.push_str("null"),
        _ => put(out, format_args!("{}", micros(local_secs))),
    }
    if ttl_secs > 0 {
        put(out, format_args!(",\"ttl\":{ttl_secs}"));
    }
}

/// `op` of a change.
pub(crate) fn op(changed: &Changed) -> &'static str {
    match changed {
        Changed::Table => "t",
        Changed::Partition(_) | Changed::DeletedRow(_) => "d",
        Changed::Range(_) => "r",
        Changed::Row(row) if !row.liveness.is_none() => "i",
        Changed::Row(_) | Changed::Static(_) => "u",
    }
}

/// `method` of an end of a range.
pub(crate) fn method(kind: BoundKind) -> Result<&'static str, String> {
    match kind {
        BoundKind::InclStart => Ok("INCL_START"),
        BoundKind::ExclStart => Ok("EXCL_START"),
        BoundKind::InclEnd => Ok("INCL_END"),
        BoundKind::ExclEnd => Ok("EXCL_END"),
        BoundKind::ExclEndInclStart | BoundKind::InclEndExclStart => {
            Err("a range that ends with a boundary".to_owned())
        }
    }
}

pub(crate) fn micros(secs: u32) -> i64 {
    i64::from(secs) * 1_000_000
}

fn optional(ty: &CqlType, value: Option<&[u8]>, out: &mut String) -> Result<(), String> {
    match value {
        None => out.push_str("null"),
        Some(value) => ty
            .print_json_into(value, out)
            .map_err(|error| error.to_string())?,
    }
    Ok(())
}

fn string(text: &str, out: &mut String) {
    put(out, format_args!("{}", serde_json::Value::from(text)));
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(text);
}
