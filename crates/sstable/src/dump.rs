//! Partitions as JSON, one a line: what Cassandra's `sstabledump -l -t` prints, without positions and without saying
//! what has expired. Times are numbers as they are stored.

use std::fmt::Write as _;

use ilion_rows::{
    Bound, BoundKind, Cell, ColumnData, ComplexColumn, Cursor, Data, DeletionTime, Liveness, Marker,
    PartitionHead, ReadError, Row, Unfiltered, Values, paths,
};
use ilion_schema::{Column, TableSchema};
use ilion_types::json::print_string;
use ilion_types::{CqlType, decode_composite, hex};

/// Appends the next partition and a line break; false at the end.
///
/// # Errors
/// The cursor's.
pub fn dump_partition(
    cursor: &mut dyn Cursor,
    table: &TableSchema,
    out: &mut String,
) -> Result<bool, ReadError> {
    let Some(head) = cursor.next_partition()? else {
        return Ok(false);
    };
    let mut dump = Dump { table, out };
    dump.head(&head);
    let mut rows = 0;
    if let Some(row) = &head.static_row {
        dump.out.push_str("{\"type\":\"static_block\"");
        dump.row(row);
        rows += 1;
    }
    while let Some(unfiltered) = cursor.next_unfiltered()? {
        if rows > 0 {
            dump.out.push(',');
        }
        rows += 1;
        match &unfiltered {
            Unfiltered::Row(row) => {
                dump.out.push_str("{\"type\":\"row\"");
                if !row.clustering.is_empty() {
                    dump.out.push_str(",\"clustering\":");
                    dump.clustering(row.clustering.values(), row.clustering.values().len());
                }
                dump.row(row);
            }
            Unfiltered::Marker(marker) => dump.marker(marker),
        }
    }
    dump.out.push_str("]}\n");
    Ok(true)
}

struct Dump<'d> {
    table: &'d TableSchema,
    out: &'d mut String,
}

impl Dump<'_> {
    fn write(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Strings take all that is written to them.
        let _ = self.out.write_fmt(arguments);
    }

    fn string(&mut self, text: &str) {
        print_string(text, self.out);
    }

    fn head(&mut self, head: &PartitionHead) {
        self.out
            .push_str("{\"table kind\":\"REGULAR\",\"partition\":{\"key\":[");
        let types: Vec<&CqlType> = self.table.partition_key().map(|column| &column.ty).collect();
        let key = &head.key.key[..];
        let parts = match types.len() {
            1 => vec![key],
            _ => decode_composite(key).unwrap_or_default(),
        };
        for (index, (ty, part)) in types.into_iter().zip(parts).enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            self.string(&plain(ty, part));
        }
        self.out.push(']');
        self.deletion(head.deletion);
        self.out.push_str("},\"rows\":[");
    }

    fn deletion(&mut self, deletion: DeletionTime) {
        if !deletion.is_live() {
            self.out.push(',');
            self.deletion_info(deletion);
        }
    }

    fn deletion_info(&mut self, deletion: DeletionTime) {
        let (marked, local) = (deletion.marked_at_micros, deletion.local_secs);
        self.write(format_args!(
            "\"deletion_info\":{{\"marked_deleted\":\"{marked}\",\"local_delete_time\":\"{local}\"}}"
        ));
    }

    /// Values of a clustering; those up to `len` that are not given are stars.
    fn clustering(&mut self, values: &Values, len: usize) {
        self.out.push('[');
        let types: Vec<&CqlType> = self.table.clustering().map(|column| &column.ty).collect();
        for (index, ty) in types.into_iter().take(len).enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            match values.get(index) {
                Some(Some(value)) => self.value(ty, value),
                Some(None) => self.out.push_str("null"),
                None => self.out.push_str("\"*\""),
            }
        }
        self.out.push(']');
    }

    /// From the row's liveness on.
    fn row(&mut self, row: &Row) {
        if !row.liveness.is_none() {
            let timestamp = row.liveness.timestamp_micros;
            self.write(format_args!(",\"liveness_info\":{{\"tstamp\":\"{timestamp}\""));
            self.expiry(row.liveness.ttl_secs, row.liveness.expires_secs);
            self.out.push('}');
        }
        self.deletion(row.deletion);
        self.out.push_str(",\"cells\":[");
        let mut cells = CellList { count: 0 };
        for ColumnData { column, data } in &row.columns {
            let Some(column) = self.table.column(*column) else {
                continue;
            };
            match data {
                Data::Simple(cell) => {
                    self.begin_cell(column, &mut cells);
                    self.cell(&column.ty, cell, row.liveness);
                }
                Data::Complex(complex) => self.complex(column, complex, row.liveness, &mut cells),
            }
        }
        self.out.push_str("]}");
    }

    fn expiry(&mut self, ttl_secs: u32, expires_secs: u32) {
        if ttl_secs != 0 {
            self.write(format_args!(
                ",\"ttl\":{ttl_secs},\"expires_at\":\"{expires_secs}\""
            ));
        }
    }

    fn begin_cell(&mut self, column: &Column, cells: &mut CellList) {
        if cells.count > 0 {
            self.out.push(',');
        }
        cells.count += 1;
        self.out.push_str("{\"name\":");
        self.string(&column.name);
    }

    fn complex(
        &mut self,
        column: &Column,
        complex: &ComplexColumn,
        liveness: Liveness,
        cells: &mut CellList,
    ) {
        if !complex.deletion.is_live() {
            self.begin_cell(column, cells);
            self.deletion(complex.deletion);
            self.out.push('}');
        }
        for (path, cell) in &complex.cells {
            self.begin_cell(column, cells);
            self.out.push_str(",\"path\":[");
            self.string(&path_text(&column.ty, path));
            self.out.push(']');
            match paths::value_type(&column.ty, path) {
                Some(ty) => self.cell(ty, cell, liveness),
                None => self.cell(&CqlType::Empty, cell, liveness),
            }
        }
    }

    fn cell(&mut self, ty: &CqlType, cell: &Cell, liveness: Liveness) {
        if cell.is_tombstone() {
            let local = cell.local_deletion_secs;
            self.write(format_args!(
                ",\"deletion_info\":{{\"local_delete_time\":\"{local}\"}}"
            ));
        } else {
            self.out.push_str(",\"value\":");
            self.cell_value(ty, &cell.value);
        }
        if liveness.is_none() || cell.timestamp_micros != liveness.timestamp_micros {
            let timestamp = cell.timestamp_micros;
            self.write(format_args!(",\"tstamp\":\"{timestamp}\""));
        }
        if cell.is_expiring() && (liveness.is_none() || cell.ttl_secs != liveness.ttl_secs) {
            self.expiry(cell.ttl_secs, cell.local_deletion_secs);
        }
        self.out.push('}');
    }

    fn cell_value(&mut self, ty: &CqlType, value: &[u8]) {
        match (ty, value.first_chunk::<8>()) {
            // Compat: the first eight bytes of the context, not the count.
            (CqlType::Counter, Some(first)) => self.write(format_args!("{}", i64::from_be_bytes(*first))),
            _ => self.value(ty, value),
        }
    }

    fn value(&mut self, ty: &CqlType, value: &[u8]) {
        let start = self.out.len();
        if ty.print_json_into(value, self.out).is_err() {
            self.out.truncate(start);
            self.string(&hex::print(value));
        }
    }

    fn marker(&mut self, marker: &Marker) {
        let kind = marker.bound.kind;
        let name = if kind.is_boundary() { "boundary" } else { "bound" };
        self.write(format_args!("{{\"type\":\"range_tombstone_{name}\""));
        if let Some(start) = marker.start {
            self.marker_side("start", &marker.bound, kind.opening_side(), start);
        }
        if let Some(end) = marker.end {
            self.marker_side("end", &marker.bound, kind.closing_side(), end);
        }
        self.out.push('}');
    }

    fn marker_side(&mut self, side: &str, bound: &Bound, kind: BoundKind, deletion: DeletionTime) {
        let inclusive = match kind {
            BoundKind::InclStart | BoundKind::InclEnd => "inclusive",
            _ => "exclusive",
        };
        self.write(format_args!(",\"{side}\":{{\"type\":\"{inclusive}\""));
        if !bound.values.is_empty() {
            self.out.push_str(",\"clustering\":");
            self.clustering(&bound.values, usize::MAX);
        }
        self.deletion(deletion);
        self.out.push('}');
    }
}

struct CellList {
    count: usize,
}

fn plain(ty: &CqlType, value: &[u8]) -> String {
    ty.print_plain(value).unwrap_or_else(|_| hex::print(value))
}

/// Fields of user types by name; elements and keys by value.
fn path_text(ty: &CqlType, path: &[u8]) -> String {
    match ty {
        CqlType::Udt { definition, .. } => {
            let index = path
                .first_chunk()
                .map(|bytes| usize::from(u16::from_be_bytes(*bytes)));
            let field = index.and_then(|index| definition.fields.get(index));
            field.map_or_else(|| hex::print(path), |(name, _)| name.clone())
        }
        CqlType::List { .. } => plain(&CqlType::TimeUuid, path),
        CqlType::Set { element, .. } => plain(element, path),
        CqlType::Map { key, .. } => plain(key, path),
        _ => hex::print(path),
    }
}
