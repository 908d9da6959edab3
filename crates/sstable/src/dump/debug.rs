//! Prints rows like the `toString` of Cassandra's classes (`sstabledump -d`), one line each.
//!
//! ```text
//! [key]@position deletedAt=.., localDeletion=..                              a deleted partition
//! [key]@position Row[info=[ts=.. ttl=.., let=..] del=.. ]: clustering | [column=value ts=..], ..
//! [key]@position Marker INCL_START_BOUND(clustering=value)@timestamp/seconds
//! ```

use std::fmt::Write as _;

use ilion_rows::{
    Bound, BoundKind, Cell, ColumnData, ComplexColumn, Data, DeletionTime, Liveness, Marker, PartitionHead,
    Row, Unfiltered, counter, paths,
};
use ilion_schema::{Column, TableSchema};
use ilion_types::{CqlType, hex};

use super::{key_texts, path_text, value_text};

/// The start of every line of a partition.
fn begin_line(table: &TableSchema, head: &PartitionHead, position: u64, out: &mut String) {
    let key = key_texts(table, &head.key.key).join(":");
    let _ = write!(out, "[{key}]@{position} ");
}

/// Appends lines for the deletion and the static row of a partition, if it has them; its rows start at `position`.
pub fn debug_head(table: &TableSchema, head: &PartitionHead, position: u64, out: &mut String) {
    if !head.deletion.is_live() {
        begin_line(table, head, position, out);
        deletion(head.deletion, out);
        out.push('\n');
    }
    if let Some(row) = &head.static_row {
        begin_line(table, head, position, out);
        row_text(table, row, "STATIC", out);
        out.push('\n');
    }
}

/// Appends the line of a row or marker at `position`.
pub fn debug_unfiltered(
    table: &TableSchema,
    head: &PartitionHead,
    unfiltered: &Unfiltered,
    position: u64,
    out: &mut String,
) {
    begin_line(table, head, position, out);
    match unfiltered {
        Unfiltered::Row(row) => row_text(table, row, &clustering(table, row), out),
        Unfiltered::Marker(marker) => marker_text(table, marker, out),
    }
    out.push('\n');
}

fn deletion(deletion: DeletionTime, out: &mut String) {
    let DeletionTime {
        marked_at_micros,
        local_secs,
    } = deletion;
    let _ = write!(out, "deletedAt={marked_at_micros}, localDeletion={local_secs}");
}

/// The clustering values of a row as CQL literals.
fn clustering(table: &TableSchema, row: &Row) -> String {
    let values = row.clustering.values().iter().zip(table.clustering());
    let texts = values.map(|(value, column)| match value {
        None => "null".to_owned(),
        Some(value) => column
            .ty
            .print_literal(value)
            .unwrap_or_else(|_| format!("0x{}", hex::print(value))),
    });
    texts.collect::<Vec<_>>().join(", ")
}

fn row_text(table: &TableSchema, row: &Row, clustering: &str, out: &mut String) {
    out.push_str("Row[info=");
    liveness(row.liveness, out);
    if !row.deletion.is_live() {
        out.push_str(" del=");
        deletion(row.deletion, out);
    }
    let _ = write!(out, " ]: {clustering} | ");
    for (index, ColumnData { column, data }) in row.columns.iter().enumerate() {
        let Some(column) = table.column(*column) else {
            continue;
        };
        if index > 0 {
            out.push_str(", ");
        }
        match data {
            Data::Simple(cell) => simple(column, cell, out),
            Data::Complex(complex) => complex_text(column, complex, out),
        }
    }
}

fn liveness(liveness: Liveness, out: &mut String) {
    // Compat: a row without liveness has the lowest timestamp.
    let timestamp = if liveness.is_none() {
        i64::MIN
    } else {
        liveness.timestamp_micros
    };
    let _ = write!(out, "[ts={timestamp}");
    if liveness.ttl_secs != 0 {
        let _ = write!(out, " ttl={}, let={}", liveness.ttl_secs, liveness.expires_secs);
    }
    out.push(']');
}

fn simple(column: &Column, cell: &Cell, out: &mut String) {
    if column.ty == CqlType::Counter && !cell.is_tombstone() {
        let count = counter::total(&cell.value);
        let _ = write!(out, "[{}={count} ts={}]", column.name, cell.timestamp_micros);
        return;
    }
    let value = match cell.is_tombstone() {
        true => "<tombstone>".to_owned(),
        false => value_text(&column.ty, &cell.value),
    };
    let _ = write!(out, "[{}={value} ", column.name);
    times(cell, out);
}

fn complex_text(column: &Column, complex: &ComplexColumn, out: &mut String) {
    if !complex.deletion.is_live() {
        let _ = write!(out, "del({})=", column.name);
        deletion(complex.deletion, out);
    }
    for (path, cell) in &complex.cells {
        let value = match paths::value_type(&column.ty, path) {
            Some(ty) if !cell.is_tombstone() => value_text(ty, &cell.value),
            _ => String::new(),
        };
        // Compat: a comma comes even before the first element.
        let _ = write!(
            out,
            ", [{}[{}]={value} ",
            column.name,
            path_text(&column.ty, path)
        );
        times(cell, out);
    }
}

fn times(cell: &Cell, out: &mut String) {
    let _ = write!(out, "ts={}", cell.timestamp_micros);
    if cell.is_expiring() {
        let _ = write!(out, " ttl={}", cell.ttl_secs);
    }
    if cell.is_expiring() || cell.is_tombstone() {
        let _ = write!(out, " ldt={}", cell.local_deletion_secs);
    }
    out.push(']');
}

fn marker_text(table: &TableSchema, marker: &Marker, out: &mut String) {
    let _ = write!(out, "Marker {}@", bound(table, &marker.bound));
    let time = |deletion: DeletionTime| format!("{}/{}", deletion.marked_at_micros, deletion.local_secs);
    let times = [marker.end, marker.start].into_iter().flatten().map(time);
    out.push_str(&times.collect::<Vec<_>>().join("-"));
}

fn bound(table: &TableSchema, bound: &Bound) -> String {
    let kind = match bound.kind {
        BoundKind::ExclEnd => "EXCL_END_BOUND",
        BoundKind::InclStart => "INCL_START_BOUND",
        BoundKind::ExclEndInclStart => "EXCL_END_INCL_START_BOUNDARY",
        BoundKind::InclEndExclStart => "INCL_END_EXCL_START_BOUNDARY",
        BoundKind::InclEnd => "INCL_END_BOUND",
        BoundKind::ExclStart => "EXCL_START_BOUND",
    };
    let values = bound.values.iter().zip(table.clustering());
    let texts = values.map(|(value, column)| match value {
        None => "null".to_owned(),
        Some(value) => value_text(&column.ty, value),
    });
    format!("{kind}({})", texts.collect::<Vec<_>>().join(", "))
}
