//! Prints partitions as text.

use std::cmp::Ordering;
use std::fmt::Write as _;

use bytes::Bytes;
use ilion_schema::{Column, TableSchema};
use ilion_types::{CqlType, decode_composite, hex};

use super::{default_end_secs, default_secs, uuid_of_ticks};
use crate::{
    Bound, BoundKind, Cell, ClusteringComparator, ColumnData, ComplexColumn, Cursor, Data, DecoratedKey,
    DeletionTime, Liveness, Marker, Mutation, NO_TTL, Partition, RangeTombstone, ReadError, Row, Unfiltered,
    Values, counter, paths,
};

/// Prints all partitions of a cursor.
///
/// # Errors
/// The cursor fails.
pub fn print_cursor(cursor: &mut dyn Cursor, table: &TableSchema) -> Result<String, ReadError> {
    let mut text = String::new();
    while let Some(partition) = Partition::read_next(cursor)? {
        text.push_str(&print_partition(&partition, table));
    }
    Ok(text)
}

/// Prints a partition: a line for its head, and one for each unfiltered.
pub fn print_partition(partition: &Partition, table: &TableSchema) -> String {
    let mut printer = Printer::of(table);
    let head = &partition.head;
    printer.head(&head.key, head.deletion, head.static_row.as_ref());
    for (index, unfiltered) in partition.unfiltereds.iter().enumerate() {
        match unfiltered {
            Unfiltered::Row(row) => printer.row(row),
            Unfiltered::Marker(marker) => printer.marker(marker, &partition.unfiltereds[index + 1..]),
        }
    }
    printer.text
}

/// Prints a mutation.
pub fn print_mutation(mutation: &Mutation) -> String {
    let update = &mutation.update;
    let mut printer = Printer::of(&mutation.table);
    let deletion = update.deletion.unwrap_or(DeletionTime::LIVE);
    printer.head(&mutation.key, deletion, update.static_row.as_ref());
    update.rows.iter().for_each(|row| printer.row(row));
    update.ranges.iter().for_each(|range| printer.range(range));
    printer.text
}

struct Printer<'t> {
    table: &'t TableSchema,
    comparator: ClusteringComparator,
    text: String,
}

impl<'t> Printer<'t> {
    fn of(table: &'t TableSchema) -> Self {
        Self {
            comparator: ClusteringComparator::of(table),
            table,
            text: String::new(),
        }
    }

    fn push(&mut self, text: impl AsRef<str>) {
        self.text.push_str(text.as_ref());
    }

    fn head(&mut self, key: &DecoratedKey, deletion: DeletionTime, static_row: Option<&Row>) {
        self.push("partition ");
        self.key(&key.key);
        let _ = write!(self.text, " token={}", key.token);
        if !deletion.is_live() {
            self.push(" ");
            self.deletion(deletion);
        }
        self.push("\n");
        if let Some(row) = static_row {
            self.push("  static");
            self.contents(row);
        }
    }

    fn key(&mut self, key: &Bytes) {
        let mut types = self.table.partition_key().map(|column| &column.ty);
        if types.len() == 1 {
            if let Some(ty) = types.next() {
                self.push(print_value(ty, key));
            }
            return;
        }
        match decode_composite(key) {
            Ok(parts) if parts.len() == types.len() => {
                let values: Vec<String> = types.zip(parts).map(|(ty, part)| print_value(ty, part)).collect();
                self.push(values.join(":"));
            }
            _ => self.push(print_hex(key)),
        }
    }

    fn row(&mut self, row: &Row) {
        self.push("  row");
        if !row.clustering.is_empty() {
            self.push(" ");
            self.values(row.clustering.values());
        }
        self.contents(row);
    }

    fn values(&mut self, values: &Values) {
        let columns = self.table.clustering().zip(values);
        let printed: Vec<String> = columns
            .map(|(column, value)| match value {
                Some(value) => print_value(&column.ty, value),
                None => "null".to_owned(),
            })
            .collect();
        self.push(printed.join(":"));
    }

    fn contents(&mut self, row: &Row) {
        if !row.liveness.is_none() {
            self.liveness(&row.liveness);
        }
        if !row.deletion.is_live() {
            self.push(" ");
            self.deletion(row.deletion);
        }
        row.columns.iter().for_each(|entry| self.column(entry));
        self.push("\n");
    }

    fn liveness(&mut self, liveness: &Liveness) {
        let Liveness {
            timestamp_micros,
            ttl_secs,
            expires_secs,
        } = *liveness;
        let _ = write!(self.text, " live@{timestamp_micros}");
        self.ttl(timestamp_micros, ttl_secs, expires_secs);
    }

    fn ttl(&mut self, micros: i64, ttl_secs: u32, end_secs: u32) {
        if ttl_secs != NO_TTL {
            let _ = write!(self.text, " ttl={ttl_secs}");
            if end_secs != default_end_secs(micros, ttl_secs) {
                let _ = write!(self.text, "/{end_secs}");
            }
        }
    }

    fn deletion(&mut self, deletion: DeletionTime) {
        let micros = deletion.marked_at_micros;
        let _ = write!(self.text, "del@{micros}");
        if deletion.local_secs != default_secs(micros) {
            let _ = write!(self.text, "/{}", deletion.local_secs);
        }
    }

    fn column(&mut self, entry: &ColumnData) {
        let Some(column) = self.table.column(entry.column) else {
            let _ = write!(self.text, " (column {} that was dropped)", entry.column.0);
            return;
        };
        let name = print_name(&column.name);
        match &entry.data {
            Data::Simple(cell) => self.cell(&name, Some(&column.ty), cell),
            Data::Complex(complex) => self.complex(&name, column, complex),
        }
    }

    fn complex(&mut self, name: &str, column: &Column, complex: &ComplexColumn) {
        if !complex.deletion.is_live() {
            let _ = write!(self.text, " {name}=");
            self.deletion(complex.deletion);
        }
        for (path, cell) in &complex.cells {
            let place = format!("{name}{}", print_path(&column.ty, path));
            self.cell(&place, paths::value_type(&column.ty, path), cell);
        }
    }

    /// Prints a cell. `ty` is `None` where a cell has no value (sets).
    fn cell(&mut self, place: &str, ty: Option<&CqlType>, cell: &Cell) {
        let _ = write!(self.text, " {place}");
        if cell.is_tombstone() {
            self.push("=");
            self.deletion(DeletionTime::new(cell.timestamp_micros, cell.local_deletion_secs));
            return;
        }
        match ty {
            None if cell.value.is_empty() => {}
            None => self.push(format!("={}", print_hex(&cell.value))),
            Some(CqlType::Counter) => self.push(format!("={}", print_counter(&cell.value))),
            Some(ty) => self.push(format!("={}", print_value(ty, &cell.value))),
        }
        let _ = write!(self.text, "@{}", cell.timestamp_micros);
        self.ttl(cell.timestamp_micros, cell.ttl_secs, cell.local_deletion_secs);
    }

    fn range(&mut self, range: &RangeTombstone) {
        self.push("  ");
        let start = (&range.start.values, range.start.kind == BoundKind::InclStart);
        let end = (&range.end.values, range.end.kind == BoundKind::InclEnd);
        self.push(if start.1 { "[" } else { "(" });
        self.bound(start.0);
        self.push(", ");
        self.bound(end.0);
        self.push(if end.1 { "] " } else { ") " });
        self.deletion(range.deletion);
        self.push("\n");
    }

    fn bound(&mut self, values: &Values) {
        match values.is_empty() {
            true => self.push("*"),
            false => self.values(values),
        }
    }

    /// The range between two markers, in either direction.
    fn between(&self, first: &Bound, last: &Bound, deletion: DeletionTime) -> RangeTombstone {
        let side = |bound: &Bound, kind: BoundKind| Bound::new(kind, bound.values.clone());
        let (start, end) = match self.comparator.compare_bounds(first, last) {
            Ordering::Less => (first, last),
            _ => (last, first),
        };
        RangeTombstone {
            start: side(start, start.kind.opening_side()),
            end: side(end, end.kind.closing_side()),
            deletion,
        }
    }

    /// Prints the range that this marker opens, if it opens a range; `after` are the unfiltereds that follow.
    fn marker(&mut self, marker: &Marker, after: &[Unfiltered]) {
        let Some(deletion) = marker.start else {
            return;
        };
        let next = after.iter().find_map(|unfiltered| match unfiltered {
            Unfiltered::Marker(marker) => Some(marker),
            Unfiltered::Row(_) => None,
        });
        match next {
            Some(close) if close.end == Some(deletion) => {
                let range = self.between(&marker.bound, &close.bound, deletion);
                self.range(&range);
            }
            _ => {
                let _ = writeln!(self.text, "  ({:?} is never closed)", marker.bound);
            }
        }
    }
}

fn print_name(name: &str) -> String {
    let is_word = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match is_word && !name.is_empty() && !matches!(name, "live" | "del" | "ttl") {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

fn print_hex(bytes: &[u8]) -> String {
    format!("0x{}", hex::print(bytes))
}

fn print_value(ty: &CqlType, bytes: &[u8]) -> String {
    let is_text = matches!(ty, CqlType::Text | CqlType::Ascii);
    let is_scalar = !ty.is_collection()
        && !matches!(
            ty,
            CqlType::Tuple(_)
                | CqlType::Udt { .. }
                | CqlType::Vector { .. }
                | CqlType::Custom(_)
                | CqlType::Empty
                | CqlType::Counter
        );
    if is_scalar
        && (is_text || !bytes.is_empty())
        && let Ok(literal) = ty.print_literal(bytes)
        && !literal.contains(char::is_control)
    {
        return literal;
    }
    print_hex(bytes)
}

fn print_path(ty: &CqlType, path: &Bytes) -> String {
    match ty {
        CqlType::List { .. } => match short_uuid(path) {
            Some(ticks) => format!("[#{ticks}]"),
            None => format!("[{}]", print_value(&CqlType::TimeUuid, path)),
        },
        CqlType::Set { element, .. } => format!("[{}]", print_value(element, path)),
        CqlType::Map { key, .. } => format!("[{}]", print_value(key, path)),
        CqlType::Udt { definition, .. } => path
            .as_ref()
            .try_into()
            .ok()
            .and_then(|index| definition.fields.get(usize::from(u16::from_be_bytes(index))))
            .map_or_else(
                || format!("[{}]", print_hex(path)),
                |(field, _)| format!(".{}", print_name(field)),
            ),
        _ => format!("[{}]", print_hex(path)),
    }
}

fn short_uuid(path: &Bytes) -> Option<u64> {
    let uuid = ilion_types::Uuid::from_slice(path).ok()?;
    let ticks = ilion_types::time_uuid_ticks(&uuid);
    (uuid_of_ticks(ticks) == path[..]).then_some(ticks)
}

fn print_counter(context: &Bytes) -> String {
    if let Some(delta) = counter::update_delta(context) {
        return format!("{delta:+}");
    }
    let shards: Vec<counter::Shard> = counter::shards(context).into_iter().flatten().collect();
    if shards.is_empty() || counter::encode(&shards) != *context {
        return print_hex(context);
    }
    let printed: Vec<String> = shards.iter().map(print_shard).collect();
    printed.join(",")
}

fn print_shard(shard: &counter::Shard) -> String {
    let kind = match shard.kind {
        counter::ShardKind::Global => "",
        counter::ShardKind::Local => "L",
        counter::ShardKind::Remote => "R",
    };
    let id = match shard.id.iter().all(|byte| *byte == shard.id[0]) {
        true => hex::print(&shard.id[..1]),
        false => hex::print(&shard.id),
    };
    format!("{kind}{id}:{}:{}", shard.clock, shard.count)
}
