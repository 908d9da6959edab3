//! Prints the liveness and the cells of a row.

use ilion_rows::{Cell, ColumnData, ComplexColumn, Data, Liveness, Row, paths};
use ilion_schema::Column;
use ilion_types::{CqlType, hex, quote_name};

use super::{Dump, value_text};

impl Dump {
    pub(super) fn liveness(&mut self, liveness: Liveness) {
        if liveness.is_none() {
            return;
        }
        self.json.name("liveness_info");
        self.json.compact_objects = true;
        self.json.begin_object();
        self.timestamp(liveness.timestamp_micros);
        if liveness.ttl_secs != 0 {
            // Compat: at the exact second, a row has not expired, but a cell has.
            let expires = i64::from(liveness.expires_secs);
            let is_expired = self.options.now_secs.map(|now| expires < now);
            self.expiry(liveness.ttl_secs, liveness.expires_secs, is_expired);
        }
        self.json.end_object();
        self.json.compact_objects = false;
    }

    fn timestamp(&mut self, micros: i64) {
        self.json.name("tstamp");
        self.json.string(&self.options.times.micros(micros));
    }

    fn expiry(&mut self, ttl_secs: u32, expires_secs: u32, is_expired: Option<bool>) {
        self.json.name("ttl");
        self.json.number(ttl_secs);
        self.json.name("expires_at");
        self.json.string(&self.options.times.secs(expires_secs));
        if let Some(is_expired) = is_expired {
            self.json.name("expired");
            self.json.boolean(is_expired);
        }
    }

    pub(super) fn cells(&mut self, row: &Row) {
        let table = self.table.clone();
        for ColumnData { column, data } in &row.columns {
            let Some(column) = table.column(*column) else {
                continue;
            };
            match data {
                Data::Simple(cell) => {
                    self.begin_cell(column);
                    self.cell(&column.ty, cell, row.liveness);
                }
                Data::Complex(complex) => self.complex(column, complex, row.liveness),
            }
        }
    }

    fn begin_cell(&mut self, column: &Column) {
        self.json.element();
        self.json.begin_object();
        self.json.compact_objects = true;
        self.json.name("name");
        self.json.string(&quote_name(&column.name));
    }

    fn end_cell(&mut self) {
        self.json.end_object();
        self.json.compact_objects = false;
    }

    fn complex(&mut self, column: &Column, complex: &ComplexColumn, liveness: Liveness) {
        if !complex.deletion.is_live() {
            self.begin_cell(column);
            self.deletion(complex.deletion);
            self.json.compact_objects = true;
            self.end_cell();
        }
        for (path, cell) in &complex.cells {
            self.begin_cell(column);
            self.json.name("path");
            self.json.compact_arrays = true;
            self.json.begin_array();
            self.json.element();
            self.json.string(&path_text(&column.ty, path));
            self.json.end_array();
            self.json.compact_arrays = false;
            let ty = paths::value_type(&column.ty, path).unwrap_or(&CqlType::Empty);
            self.cell(ty, cell, liveness);
        }
    }

    fn cell(&mut self, ty: &CqlType, cell: &Cell, liveness: Liveness) {
        if cell.is_tombstone() {
            self.json.name("deletion_info");
            self.json.compact_objects = true;
            self.json.begin_object();
            self.json.name("local_delete_time");
            self.json
                .string(&self.options.times.secs(cell.local_deletion_secs));
            self.json.end_object();
            // Compat: each of the members that follow is on its own line.
            self.json.compact_objects = false;
        } else {
            self.json.name("value");
            self.cell_value(ty, &cell.value);
        }
        if liveness.is_none() || cell.timestamp_micros != liveness.timestamp_micros {
            self.timestamp(cell.timestamp_micros);
        }
        if cell.is_expiring() && (liveness.is_none() || cell.ttl_secs != liveness.ttl_secs) {
            let expires = i64::from(cell.local_deletion_secs);
            let is_expired = self.options.now_secs.map(|now| expires <= now);
            self.expiry(cell.ttl_secs, cell.local_deletion_secs, is_expired);
        }
        self.end_cell();
    }

    fn cell_value(&mut self, ty: &CqlType, value: &[u8]) {
        match (ty, value.first_chunk::<8>()) {
            // Compat: prints the first eight bytes of the context, not the count.
            (CqlType::Counter, Some(first)) => self.json.number(i64::from_be_bytes(*first)),
            _ => self.value(ty, value),
        }
    }

    pub(super) fn value(&mut self, ty: &CqlType, value: &[u8]) {
        let start = self.json.out.len();
        if ty.print_json_into(value, &mut self.json.out).is_err() {
            self.json.out.truncate(start);
            self.json.string(&hex::print(value));
        }
    }
}

/// The path as text: the name of a field, or the element, map key or time UUID of a list.
pub(super) fn path_text(ty: &CqlType, path: &[u8]) -> String {
    match ty {
        CqlType::Udt { definition, .. } => {
            let index = path
                .first_chunk()
                .map(|bytes| usize::from(u16::from_be_bytes(*bytes)));
            let field = index.and_then(|index| definition.fields.get(index));
            field.map_or_else(|| hex::print(path), |(name, _)| name.clone())
        }
        CqlType::List { .. } => value_text(&CqlType::TimeUuid, path),
        CqlType::Set { element, .. } => value_text(element, path),
        CqlType::Map { key, .. } => value_text(key, path),
        _ => hex::print(path),
    }
}
