//! Parses text to mutations.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use ilion_schema::{Column, ColumnKind, TableSchema};
use ilion_types::{CqlType, Partitioner, encode_composite};

use super::scan::{NotationError, Scanner};
use super::{default_end_secs, default_secs, uuid_of_ticks};
use crate::{
    Bound, BoundKind, Cell, Clustering, ClusteringComparator, ColumnData, ComplexColumn, Data, DecoratedKey,
    DeletionTime, Liveness, Mutation, NO_TTL, Partition, PartitionUpdate, RangeTombstone, Row, Values,
    counter, paths,
};

/// Parses partitions, and returns them in the order of their keys.
///
/// # Errors
/// As [`parse_mutations`].
pub fn parse_partitions(
    text: &str,
    table: &Arc<TableSchema>,
    partitioner: Partitioner,
) -> Result<Vec<Partition>, NotationError> {
    let comparator = ClusteringComparator::of(table);
    let mutations = parse_mutations(text, table, partitioner)?.into_iter();
    let mut partitions: Vec<Partition> = mutations
        .map(|mutation| Partition::of(mutation.key, mutation.update, &comparator))
        .collect();
    partitions.sort_by(|a, b| a.head.key.cmp(&b.head.key));
    Ok(partitions)
}

/// Parses partitions. Rows, columns and cells may be written in any order.
///
/// # Errors
/// The first place that does not follow the notation, or that repeats a row, column or path.
pub fn parse_mutations(
    text: &str,
    table: &Arc<TableSchema>,
    partitioner: Partitioner,
) -> Result<Vec<Mutation>, NotationError> {
    let parser = Parser {
        table,
        comparator: ClusteringComparator::of(table),
        partitioner,
    };
    let mut mutations: Vec<Mutation> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut line = Scanner::new(index + 1, line);
        if line.is_end() {
            continue;
        }
        if line.eat("partition ") {
            mutations.push(parser.partition(&mut line)?);
        } else {
            let last = mutations.last_mut();
            let mutation = last.ok_or_else(|| line.error("`partition` before anything else"))?;
            parser.content(&mut line, &mut mutation.update)?;
        }
        if !line.is_end() {
            return Err(line.error("the end of the line"));
        }
    }
    for mutation in &mut mutations {
        let compare = |a: &Row, b: &Row| parser.comparator.compare(&a.clustering, &b.clustering);
        mutation.update.rows.sort_by(compare);
    }
    Ok(mutations)
}

struct Parser<'t> {
    table: &'t Arc<TableSchema>,
    comparator: ClusteringComparator,
    partitioner: Partitioner,
}

impl Parser<'_> {
    fn partition(&self, line: &mut Scanner<'_>) -> Result<Mutation, NotationError> {
        line.skip_blanks();
        let key = DecoratedKey::new(self.partitioner, self.key(line)?);
        line.skip_blanks();
        if line.eat("token=") {
            line.expect(&key.token.to_string())?;
        }
        let mut update = PartitionUpdate::default();
        line.skip_blanks();
        if line.eat("del@") {
            update.deletion = Some(deletion(line)?);
        }
        Ok(Mutation {
            table: self.table.clone(),
            key,
            update,
        })
    }

    fn key(&self, line: &mut Scanner<'_>) -> Result<Bytes, NotationError> {
        let mut values = Vec::new();
        for (index, column) in self.table.partition_key().enumerate() {
            if index > 0 {
                line.expect(":")?;
            }
            values.push(line.value(&column.ty)?);
        }
        if let [only] = &values[..] {
            return Ok(only.clone());
        }
        let mut key = Vec::new();
        encode_composite(values.iter().map(|value| &value[..]), &mut key)
            .map_err(|error| line.error(error.to_string()))?;
        Ok(Bytes::from(key))
    }

    fn content(&self, line: &mut Scanner<'_>, update: &mut PartitionUpdate) -> Result<(), NotationError> {
        let starts_inside = line.eat("[");
        if starts_inside || line.eat("(") {
            update.ranges.push(self.range(line, starts_inside)?);
            return Ok(());
        }
        let word = line.name()?;
        line.skip_blanks();
        match word.as_str() {
            "static" if update.static_row.is_some() => Err(line.error("one static row")),
            "static" => {
                let row = self.row(Clustering::empty(), ColumnKind::Static, line)?;
                update.static_row = Some(row);
                Ok(())
            }
            "row" => {
                let clustering = Clustering::new(self.values(self.comparator.len(), line)?);
                let same = |row: &Row| self.comparator.compare(&row.clustering, &clustering).is_eq();
                if update.rows.iter().any(same) {
                    return Err(line.error("each row once"));
                }
                update.rows.push(self.row(clustering, ColumnKind::Regular, line)?);
                Ok(())
            }
            _ => Err(line.error("`static`, `row` or a range before this")),
        }
    }

    /// Parses up to `count` clustering values.
    fn values(&self, count: usize, line: &mut Scanner<'_>) -> Result<Values, NotationError> {
        let mut values = Values::new();
        for column in self.table.clustering().take(count) {
            if !values.is_empty() && !line.eat(":") {
                break;
            }
            values.push(match line.eat("null") {
                true => None,
                false => Some(line.value(&column.ty)?),
            });
        }
        Ok(values)
    }

    fn range(&self, line: &mut Scanner<'_>, starts_inside: bool) -> Result<RangeTombstone, NotationError> {
        let start = self.bound_values(line)?;
        line.expect(",")?;
        line.skip_blanks();
        let end = self.bound_values(line)?;
        let ends_inside = line.eat("]");
        if !ends_inside {
            line.expect(")")?;
        }
        line.skip_blanks();
        line.expect("del@")?;
        let start_kind = if starts_inside {
            BoundKind::InclStart
        } else {
            BoundKind::ExclStart
        };
        let end_kind = if ends_inside {
            BoundKind::InclEnd
        } else {
            BoundKind::ExclEnd
        };
        Ok(RangeTombstone {
            start: Bound::new(start_kind, start),
            end: Bound::new(end_kind, end),
            deletion: deletion(line)?,
        })
    }

    fn bound_values(&self, line: &mut Scanner<'_>) -> Result<Values, NotationError> {
        match line.eat("*") {
            true => Ok(Values::new()),
            false => self.values(self.comparator.len(), line),
        }
    }

    fn row(
        &self,
        clustering: Clustering,
        kind: ColumnKind,
        line: &mut Scanner<'_>,
    ) -> Result<Row, NotationError> {
        let mut row = Row::empty(clustering);
        while !line.is_end() {
            if line.eat("live@") {
                row.liveness = liveness(line)?;
            } else if line.eat("del@") {
                row.deletion = deletion(line)?;
            } else {
                self.column(kind, line, &mut row)?;
            }
        }
        row.columns.sort_by_key(|entry| entry.column);
        Ok(row)
    }

    fn column(&self, kind: ColumnKind, line: &mut Scanner<'_>, row: &mut Row) -> Result<(), NotationError> {
        let name = line.name()?;
        let column = self
            .table
            .column_named(&name)
            .filter(|column| column.kind == kind);
        let column =
            column.ok_or_else(|| line.error(format!("a column of this kind named {name} before this")))?;
        let known = row.columns.iter_mut().find(|entry| entry.column == column.id);
        if !column.is_complex() {
            if known.is_some() {
                return Err(line.error("each column once"));
            }
            row.columns.push(ColumnData {
                column: column.id,
                data: Data::Simple(cell(Some(&column.ty), line)?),
            });
            return Ok(());
        }
        let data = match known {
            Some(entry) => &mut entry.data,
            None => {
                row.columns.push(ColumnData {
                    column: column.id,
                    data: Data::Complex(Box::new(ComplexColumn {
                        deletion: DeletionTime::LIVE,
                        cells: Vec::new(),
                    })),
                });
                let last = row.columns.len() - 1;
                &mut row.columns[last].data
            }
        };
        match data {
            Data::Complex(complex) => part_of_complex(column, complex, line),
            Data::Simple(_) => Err(line.error("a simple column")),
        }
    }
}

fn part_of_complex(
    column: &Column,
    complex: &mut ComplexColumn,
    line: &mut Scanner<'_>,
) -> Result<(), NotationError> {
    if line.eat("=del@") {
        complex.deletion = deletion(line)?;
        return Ok(());
    }
    let path = path(&column.ty, line)?;
    let cell = cell(paths::value_type(&column.ty, &path), line)?;
    let at = complex
        .cells
        .partition_point(|(known, _)| paths::compare_paths(&column.ty, known, &path) == Ordering::Less);
    if complex.cells.get(at).is_some_and(|(known, _)| *known == path) {
        return Err(line.error("each path once"));
    }
    complex.cells.insert(at, (path, cell));
    Ok(())
}

fn path(ty: &CqlType, line: &mut Scanner<'_>) -> Result<Bytes, NotationError> {
    if let CqlType::Udt { definition, .. } = ty
        && line.eat(".")
    {
        let name = line.name()?;
        let index = definition
            .field(&name)
            .and_then(|(index, _)| u16::try_from(index).ok());
        return index
            .map(paths::field_path)
            .ok_or_else(|| line.error(format!("a field of {} before this", definition.name)));
    }
    line.expect("[")?;
    let path = match ty {
        CqlType::List { .. } => match line.number_after("#", "ticks")? {
            Some(ticks) => Bytes::copy_from_slice(&uuid_of_ticks(ticks)),
            None => line.value(&CqlType::TimeUuid)?,
        },
        CqlType::Set { element, .. } => line.value(element)?,
        CqlType::Map { key, .. } => line.value(key)?,
        _ => line.value(&CqlType::Blob)?,
    };
    line.expect("]")?;
    Ok(path)
}

/// Parses the text behind `del@`.
fn deletion(line: &mut Scanner<'_>) -> Result<DeletionTime, NotationError> {
    let micros = line.number("a timestamp")?;
    if micros == i64::MIN {
        // The timestamp of `DeletionTime::LIVE`: such a deletion deletes no data, and is not printed.
        return Err(line.error("a timestamp above -2^63 before this"));
    }
    let local_secs = line.number_after("/", "a local time in seconds")?;
    Ok(DeletionTime::new(
        micros,
        local_secs.unwrap_or_else(|| default_secs(micros)),
    ))
}

/// Parses the text behind `live@`.
fn liveness(line: &mut Scanner<'_>) -> Result<Liveness, NotationError> {
    let micros = line.number("a timestamp")?;
    Ok(match ttl(micros, line)? {
        Some((ttl_secs, expires_secs)) => Liveness::expiring(micros, ttl_secs, expires_secs),
        None => Liveness::live(micros),
    })
}

/// Parses TTL and expiration, if the next word is a TTL.
fn ttl(micros: i64, line: &mut Scanner<'_>) -> Result<Option<(u32, u32)>, NotationError> {
    line.skip_blanks();
    let Some(ttl_secs) = line.number_after("ttl=", "seconds")? else {
        return Ok(None);
    };
    if ttl_secs == NO_TTL {
        return Err(line.error("a TTL above 0 before this"));
    }
    let end_secs = line.number_after("/", "the second of its end")?;
    let end_secs = end_secs.unwrap_or_else(|| default_end_secs(micros, ttl_secs));
    Ok(Some((ttl_secs, end_secs)))
}

/// Parses the cell behind its column or path. `ty` is `None` where a cell has no value (sets).
fn cell(ty: Option<&CqlType>, line: &mut Scanner<'_>) -> Result<Cell, NotationError> {
    if line.eat("=del@") {
        let DeletionTime {
            marked_at_micros,
            local_secs,
        } = deletion(line)?;
        return Ok(Cell::tombstone(marked_at_micros, local_secs));
    }
    let value = match (ty, line.eat("=")) {
        (None, false) => Bytes::new(),
        (None, true) => line.value(&CqlType::Blob)?,
        (Some(_), false) => return Err(line.error("`=`")),
        (Some(CqlType::Counter), true) => context(line)?,
        (Some(ty), true) => line.value(ty)?,
    };
    line.expect("@")?;
    let micros = line.number("a timestamp")?;
    Ok(match ttl(micros, line)? {
        Some((ttl_secs, end_secs)) => Cell::expiring(micros, ttl_secs, end_secs, value),
        None => Cell::live(micros, value),
    })
}

fn context(line: &mut Scanner<'_>) -> Result<Bytes, NotationError> {
    if line.rest().starts_with(['+', '-']) {
        return line.number("an increment").map(counter::update);
    }
    if line.eat("0x") {
        return line.hex().map(Bytes::from);
    }
    let mut shards = vec![shard(line)?];
    while line.eat(",") {
        shards.push(shard(line)?);
    }
    shards.sort_by_key(|shard| shard.id);
    Ok(counter::encode(&shards))
}

fn shard(line: &mut Scanner<'_>) -> Result<counter::Shard, NotationError> {
    let kind = match (line.eat("L"), line.eat("R")) {
        (true, _) => counter::ShardKind::Local,
        (_, true) => counter::ShardKind::Remote,
        _ => counter::ShardKind::Global,
    };
    let id = line.hex()?;
    let id = match id[..] {
        [byte] => Ok([byte; 16]),
        _ => id[..]
            .try_into()
            .map_err(|_| line.error("an id of 2 or 32 digits before this")),
    }?;
    line.expect(":")?;
    let clock = line.number("a clock")?;
    line.expect(":")?;
    let count = line.number("a count")?;
    Ok(counter::Shard {
        id,
        clock,
        count,
        kind,
    })
}
