//! A change as a value of the schema of its table.

use apache_avro::types::Value as Avro;
use ilion_rows::{
    Bound, Cell, ComplexColumn, Data, DecoratedKey, DeletionTime, Liveness, NO_DELETION_TIME, Row, counter,
};
use ilion_schema::{Column, ColumnId, TableSchema};
use ilion_types::CqlType;

use super::names::udt_fields;
use super::schema::{RANGE_END, RANGE_START, ROW};
use super::value::{none, of_bytes, some};
use crate::json::{CONNECTOR, VERSION, key_columns, method, micros, op};
use crate::{Change, Changed};

type Fields = Vec<(String, Avro)>;

/// The envelope; `fields` are the names of all columns of the table.
pub(super) fn of_change(change: &Change, fields: &[String]) -> Result<Avro, String> {
    let table = &*change.table;
    let text = |text: &str| Avro::String(text.to_owned());
    let number = i32::try_from(change.number).map_err(|_| "too many changes in one record".to_owned())?;
    let source = record([
        ("version", text(VERSION)),
        ("connector", text(CONNECTOR)),
        ("keyspace", text(&table.keyspace)),
        ("table", text(&table.name)),
        ("position", text(&change.position.to_string())),
        ("event", Avro::Int(number)),
        ("resume", text(&change.resume.to_string())),
        (
            "cluster_position",
            change
                .shared
                .map_or_else(none, |shared| some(text(&shared.to_string()))),
        ),
    ]);
    let after = match &change.key {
        Some(key) => some(after(change, key, fields)?),
        None => none(),
    };
    Ok(record([
        ("op", text(op(&change.changed))),
        ("ts_ms", Avro::Long(change.logged_micros.div_euclid(1000))),
        ("source", source),
        ("after", after),
    ]))
}

fn after(change: &Change, key: &DecoratedKey, fields: &[String]) -> Result<Avro, String> {
    let mut after = After::empty(&change.table, fields);
    for (column, part) in key_columns(&change.table, key)? {
        after.key_column(column, Some(part))?;
    }
    match &change.changed {
        Changed::Table => {}
        Changed::Partition(deletion) => after.deleted(*deletion),
        Changed::Range(range) => {
            after.deleted(range.deletion);
            after.bound(RANGE_START, &range.start)?;
            after.bound(RANGE_END, &range.end)?;
        }
        Changed::Static(row) => after.columns(row)?,
        Changed::DeletedRow(row) => {
            after.clustering(row)?;
            after.deleted(row.deletion);
        }
        Changed::Row(row) => {
            after.clustering(row)?;
            after.inserted(row.liveness);
            after.columns(row)?;
        }
    }
    Ok(Avro::Record(after.fields))
}

/// The fields of `after`, in the order of the schema.
struct After<'a> {
    table: &'a TableSchema,
    fields: Fields,
}

impl<'a> After<'a> {
    fn empty(table: &'a TableSchema, columns: &[String]) -> Self {
        let others = [ROW, RANGE_START, RANGE_END].map(str::to_owned);
        let names = others.into_iter().chain(columns.iter().cloned());
        let fields = names.map(|name| (name, none())).collect();
        Self { table, fields }
    }

    fn set(&mut self, name: &str, value: Avro) {
        let found = self.fields.iter_mut().find(|(other, _)| other == name);
        if let Some((_, field)) = found {
            *field = some(value);
        }
    }

    /// The field of a column.
    fn field(&mut self, id: ColumnId) -> Option<&mut (String, Avro)> {
        let columns = self.table.every_column();
        let index = columns.iter().position(|column| column.id == id)?;
        // The first three fields are not columns.
        self.fields.get_mut(3 + index)
    }

    fn set_column(&mut self, id: ColumnId, value: Avro) {
        if let Some((_, field)) = self.field(id) {
            *field = some(value);
        }
    }

    fn key_column(&mut self, column: &Column, value: Option<&[u8]>) -> Result<(), String> {
        let value = of_bytes(&column.ty, value)?;
        let times = times(NO_DELETION_TIME, None, 0);
        self.set_column(column.id, with(("value", value), times));
        Ok(())
    }

    fn clustering(&mut self, row: &Row) -> Result<(), String> {
        let table = self.table;
        for (column, value) in table.clustering().zip(row.clustering.values()) {
            self.key_column(column, value.as_deref())?;
        }
        Ok(())
    }

    fn deleted(&mut self, deletion: DeletionTime) {
        self.row(deletion.marked_at_micros, deletion.local_secs, 0);
    }

    fn inserted(&mut self, liveness: Liveness) {
        if !liveness.is_none() {
            self.row(
                liveness.timestamp_micros,
                liveness.expires_secs,
                liveness.ttl_secs,
            );
        }
    }

    fn row(&mut self, timestamp_micros: i64, local_secs: u32, ttl_secs: u32) {
        let row = [
            ("ts_us", Avro::Long(timestamp_micros)),
            ("deletion_ts", deletion_ts(local_secs)),
            ("ttl", ttl(ttl_secs)),
        ];
        self.set(ROW, record(row));
    }

    fn bound(&mut self, name: &str, bound: &Bound) -> Result<(), String> {
        let method = method(bound.kind)?;
        let table = self.table;
        let mut given = bound.values.iter();
        let mut values = Fields::new();
        for column in table.clustering() {
            let value = given.next().and_then(|value| value.as_deref());
            let value = of_bytes(&column.ty, value)?;
            let field = self.field(column.id).map(|(name, _)| name.clone());
            values.extend(field.map(|field| (field, value)));
        }
        let range = [
            ("method", Avro::String(method.to_owned())),
            ("values", Avro::Record(values)),
        ];
        self.set(name, record(range));
        Ok(())
    }

    fn columns(&mut self, row: &Row) -> Result<(), String> {
        let table = self.table;
        for entry in &row.columns {
            // The record was decoded with this table.
            let Some(column) = table.column(entry.column) else {
                continue;
            };
            let value = match &entry.data {
                Data::Simple(cell) => {
                    let value = simple(&column.ty, cell)?;
                    with(("value", value), of_cell(cell))
                }
                Data::Complex(complex) => several(&column.ty, complex)?,
            };
            self.set_column(column.id, value);
        }
        Ok(())
    }
}

/// A column of several cells.
fn several(ty: &CqlType, complex: &ComplexColumn) -> Result<Avro, String> {
    let value = match ty {
        CqlType::Udt { definition, .. } => {
            let names = udt_fields(definition.fields.iter());
            let mut fields: Fields = names.into_iter().map(|name| (name, none())).collect();
            for (path, cell) in &complex.cells {
                let index = path
                    .first_chunk()
                    .map(|bytes| usize::from(u16::from_be_bytes(*bytes)));
                let found =
                    index.and_then(|index| Some((fields.get_mut(index)?, definition.fields.get(index)?)));
                let (field, (_, ty)) = found.ok_or_else(|| format!("a field of {}", definition.name))?;
                field.1 = some(with(("value", simple(ty, cell)?), of_cell(cell)));
            }
            Avro::Record(fields)
        }
        _ => {
            let cells = complex.cells.iter();
            let elements: Result<_, String> = cells.map(|(path, cell)| element(ty, path, cell)).collect();
            Avro::Array(elements?)
        }
    };
    let deletion = complex.deletion;
    let times = match deletion.is_live() {
        true => times(NO_DELETION_TIME, None, 0),
        false => times(deletion.local_secs, Some(deletion.marked_at_micros), 0),
    };
    Ok(with(("value", some(value)), times))
}

fn element(ty: &CqlType, path: &[u8], cell: &Cell) -> Result<Avro, String> {
    let (key_type, value_type) = match ty {
        CqlType::List { element, .. } => (&CqlType::TimeUuid, Some(element)),
        CqlType::Set { element, .. } => (&**element, None),
        CqlType::Map { key, value, .. } => (&**key, Some(value)),
        _ => return Err("a column of several cells".to_owned()),
    };
    let mut fields = vec![("key".to_owned(), of_bytes(key_type, Some(path))?)];
    if let Some(value_type) = value_type {
        fields.push(("value".to_owned(), simple(value_type, cell)?));
    }
    fields.extend(named(of_cell(cell)));
    Ok(Avro::Record(fields))
}

/// The value of a cell.
fn simple(ty: &CqlType, cell: &Cell) -> Result<Avro, String> {
    match ty {
        _ if cell.is_tombstone() => Ok(none()),
        CqlType::Counter => Ok(some(Avro::Long(counter::total(&cell.value)))),
        _ => of_bytes(ty, Some(&cell.value)),
    }
}

type TimeFields = [(&'static str, Avro); 4];

fn of_cell(cell: &Cell) -> TimeFields {
    times(
        cell.local_deletion_secs,
        Some(cell.timestamp_micros),
        cell.ttl_secs,
    )
}

fn times(local_secs: u32, timestamp_micros: Option<i64>, ttl_secs: u32) -> TimeFields {
    [
        ("deletion_ts", deletion_ts(local_secs)),
        ("set", Avro::Boolean(true)),
        (
            "ts_us",
            timestamp_micros.map_or_else(none, |micros| some(Avro::Long(micros))),
        ),
        ("ttl", ttl(ttl_secs)),
    ]
}

fn deletion_ts(local_secs: u32) -> Avro {
    match local_secs {
        NO_DELETION_TIME => none(),
        _ => some(Avro::Long(micros(local_secs))),
    }
}

fn ttl(secs: u32) -> Avro {
    match i32::try_from(secs) {
        Ok(secs @ 1..) => some(Avro::Int(secs)),
        _ => none(),
    }
}

fn with(value: (&str, Avro), times: TimeFields) -> Avro {
    let value = [(value.0.to_owned(), value.1)].into_iter();
    Avro::Record(value.chain(named(times)).collect())
}

fn record<const N: usize>(fields: [(&str, Avro); N]) -> Avro {
    Avro::Record(named(fields).collect())
}

fn named<const N: usize>(fields: [(&str, Avro); N]) -> impl Iterator<Item = (String, Avro)> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value))
}
