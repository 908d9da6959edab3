//! From a plan and values to mutations.

use bytes::Bytes;
use ilion_rows::{
    Clustering, ClusteringComparator, ColumnData, Data, DecoratedKey, Liveness, Mutation, PartitionUpdate,
    RangeTombstone, Row, Slice, Values,
};
use ilion_schema::{Column, TableId, TableSchema};
use ilion_types::{CqlType, KEY_LEN_MAX};
use smallvec::SmallVec;

use super::current::{Current, Reading, Rows};
use super::json;
use super::modify::{Kind, ModifyPlan, Target};
use super::operation::Operation;
use super::row_writer::RowWriter;
use super::timing::WriteTime;
use crate::context::Execution;
use crate::restrictions::partition::{compose, decorate};
use crate::term::Term;
use crate::{Error, Value};

/// Appends the mutations of a plan.
pub(super) fn mutations(
    plan: &ModifyPlan,
    execution: &Execution<'_>,
    timestamp_micros: i64,
    reading: Reading,
    out: &mut Vec<Mutation>,
) -> Result<(), Error> {
    if let Target::Json(source) = &plan.target {
        let bound = json::bind(plan, source, execution)?;
        return mutations(&bound, execution, timestamp_micros, reading, out);
    }
    // Compat: the timestamp is checked before the key, so if both are invalid, the error names the timestamp.
    let timestamp_micros = plan
        .timing
        .timestamp_micros(&plan.table, timestamp_micros, execution)?;
    let keys = keys(plan, execution)?;
    let rows = rows(plan, execution)?;
    let time = plan.timing.evaluate(&plan.table, timestamp_micros, execution)?;
    let time = match reading {
        Reading::Stored => time,
        Reading::Nothing => time.with_older_deletions(),
    };
    for key in keys {
        let update = partition_update(plan, &key, &rows, &time, reading, execution)?;
        push(plan, key, update, out);
    }
    Ok(())
}

/// Appends a mutation with this update, unless the update is empty.
pub(super) fn push(plan: &ModifyPlan, key: DecoratedKey, update: PartitionUpdate, out: &mut Vec<Mutation>) {
    let is_empty = update.deletion.is_none()
        && update.static_row.is_none()
        && update.rows.is_empty()
        && update.ranges.is_empty();
    if !is_empty {
        out.push(Mutation {
            table: plan.table.clone(),
            key,
            update,
        });
    }
}

/// The partitions that a plan writes, in the form that the lock takes.
pub(super) fn partitions(
    plan: &ModifyPlan,
    execution: &Execution<'_>,
) -> Result<Vec<(TableId, DecoratedKey)>, Error> {
    let keys = keys(plan, execution)?;
    Ok(keys.into_iter().map(|key| (plan.table.id, key)).collect())
}

/// The partitions that a plan writes.
pub(super) fn keys(plan: &ModifyPlan, execution: &Execution<'_>) -> Result<Vec<DecoratedKey>, Error> {
    match &plan.target {
        Target::Where(restrictions) => restrictions.partition_keys(execution),
        Target::Values { partition_key, .. } => {
            let partitioner = plan.table.partitioner(execution.store.partitioner());
            let mut columns = plan.table.partition_key();
            let key = match partition_key.as_slice() {
                [only] => key_value(only, columns.next(), execution)?,
                terms => {
                    let values = terms
                        .iter()
                        .map(|term| key_value(term, columns.next(), execution));
                    compose(&values.collect::<Result<SmallVec<[Bytes; 4]>, _>>()?)?
                }
            };
            Ok(vec![decorate(partitioner, key)?])
        }
        Target::Json(source) => keys(&json::bind(plan, source, execution)?, execution),
    }
}

/// A value of the primary key, which must not be null or unset.
fn key_value(term: &Term, column: Option<&Column>, execution: &Execution<'_>) -> Result<Bytes, Error> {
    let name = || column.map_or("", |column| column.name.as_str());
    match term.evaluate(execution)? {
        Value::Bytes(bytes) => Ok(bytes),
        Value::Null => Err(Error::Invalid(format!(
            "Invalid null value in condition for column {}",
            name()
        ))),
        Value::Unset => Err(Error::Invalid(format!(
            "Invalid unset value for column {}",
            name()
        ))),
    }
}

/// The clustering that starts with these values. Compat: rows of dense compact tables may lack values of the last columns.
fn padded(table: &TableSchema, mut values: Values) -> Clustering {
    values.resize(table.clustering().len(), None);
    Clustering::new(values)
}

/// Compat: a single clustering column of a compact table is not stored as a composite, so its value must not be
/// empty.
fn check_not_empty(table: &TableSchema, clustering: &Clustering) -> Result<(), Error> {
    let is_by_itself = table.is_compact() && table.clustering().len() == 1;
    let is_empty = || clustering.values().iter().flatten().any(Bytes::is_empty);
    match table.clustering().next().filter(|_| is_by_itself && is_empty()) {
        Some(column) => Err(Error::Invalid(format!(
            "Invalid empty or null value for column {}",
            column.name
        ))),
        None => Ok(()),
    }
}

/// The rows that a plan writes. They are the same in each of its partitions.
pub(super) fn rows(plan: &ModifyPlan, execution: &Execution<'_>) -> Result<Rows, Error> {
    let rows = match &plan.target {
        Target::Values { clustering: None, .. } => return Ok(Rows::Static),
        Target::Values {
            clustering: Some(terms),
            ..
        } => {
            let mut columns = plan.table.clustering();
            let mut values = Values::with_capacity(terms.len());
            for term in terms {
                let column = columns.next();
                values.push(Some(key_value(term, column, execution)?));
            }
            Rows::Each(vec![padded(&plan.table, values)])
        }
        Target::Where(restrictions) => {
            let is_of_whole_partition =
                plan.table.clustering().len() > 0 && !restrictions.restricts_clustering();
            if is_of_whole_partition && (plan.kind != Kind::Delete || !plan.operations.is_empty()) {
                return Ok(Rows::Static);
            }
            if restrictions.gives_rows() {
                Rows::Each(restrictions.clusterings(execution)?.unwrap_or_default())
            } else if plan.kind == Kind::Update {
                // Only in compact tables: values of the first columns are given, the others are null.
                let slices = restrictions.slices(execution)?;
                let rows = slices
                    .into_iter()
                    .map(|slice| padded(&plan.table, slice.start.values));
                Rows::Each(rows.collect())
            } else {
                restrictions.check_edges(execution)?;
                Rows::Slices(restrictions.slices(execution)?)
            }
        }
        Target::Json(_) => return Err(Error::ServerError("the JSON was not bound".to_owned())),
    };
    if let Rows::Each(clusterings) = &rows {
        clusterings.iter().try_for_each(check_len)?;
        // A deletion of whole rows writes no row, so it may name an empty clustering.
        if plan.kind != Kind::Delete || !plan.operations.is_empty() {
            clusterings
                .iter()
                .try_for_each(|clustering| check_not_empty(&plan.table, clustering))?;
        }
    }
    Ok(rows)
}

fn check_len(clustering: &Clustering) -> Result<(), Error> {
    let len: usize = clustering.values().iter().flatten().map(Bytes::len).sum();
    if len <= KEY_LEN_MAX {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "Key length of {len} is longer than maximum of {KEY_LEN_MAX}"
    )))
}

/// The update of one partition.
pub(super) fn partition_update(
    plan: &ModifyPlan,
    key: &DecoratedKey,
    rows: &Rows,
    time: &WriteTime,
    reading: Reading,
    execution: &Execution<'_>,
) -> Result<PartitionUpdate, Error> {
    let mut update = PartitionUpdate::default();
    let current = if plan.reads() && reading == Reading::Stored {
        Some(Current::read(&plan.table, key, rows, execution)?)
    } else {
        None
    };
    let writer = |existing| RowWriter {
        execution,
        time,
        reading,
        existing,
    };
    match rows {
        Rows::Static => {}
        Rows::Slices(slices) => delete_slices(&plan.table, slices, time, &mut update),
        Rows::Each(clusterings) if plan.kind == Kind::Delete && plan.operations.is_empty() => {
            delete_rows(&plan.table, clusterings, time, &mut update);
        }
        Rows::Each(clusterings) => {
            update.rows.reserve_exact(clusterings.len());
            for clustering in clusterings {
                let existing = current.as_ref().and_then(|current| current.row(clustering));
                let columns = writer(existing).columns(&plan.operations.regular)?;
                let mut row = Row::empty(clustering.clone());
                row.columns = columns;
                if plan.kind == Kind::Insert {
                    insert(&plan.table, time, &mut row);
                }
                if !row.is_empty() {
                    update.rows.push(row);
                }
            }
        }
    }
    if !plan.operations.statics.is_empty() {
        let existing = current.as_ref().and_then(Current::static_row);
        update.static_row = static_row(&plan.operations.statics, &writer(existing))?;
    }
    Ok(update)
}

/// Marks the row as inserted. Compat: a row of a compact table lives by its columns; if the table has none, a cell without a
/// value stands for them.
fn insert(table: &TableSchema, time: &WriteTime, row: &mut Row) {
    if !table.is_compact() {
        row.liveness = time.liveness();
        return;
    }
    let stand_in = table.regulars().find(|column| column.ty == CqlType::Empty);
    row.columns.extend(stand_in.map(|column| ColumnData {
        column: column.id,
        data: Data::Simple(time.cell(Bytes::new())),
    }));
}

fn static_row(operations: &[Operation], writer: &RowWriter<'_>) -> Result<Option<Row>, Error> {
    let mut row = Row::empty(Clustering::empty());
    row.liveness = Liveness::NONE;
    row.columns = writer.columns(operations)?;
    Ok((!row.is_empty()).then_some(row))
}

fn delete_rows(
    table: &TableSchema,
    clusterings: &[Clustering],
    time: &WriteTime,
    update: &mut PartitionUpdate,
) {
    if table.clustering().len() == 0 {
        update.deletion = Some(time.deletion());
        return;
    }
    for clustering in clusterings {
        let mut row = Row::empty(clustering.clone());
        if table.is_compact() {
            row.columns = table.regulars().map(|column| deleted(column, time)).collect();
            row.columns.sort_by_key(|deleted| deleted.column);
        } else {
            row.deletion = time.deletion();
        }
        update.rows.push(row);
    }
}

fn deleted(column: &Column, time: &WriteTime) -> ColumnData {
    ColumnData {
        column: column.id,
        data: Data::Simple(time.tombstone()),
    }
}

fn delete_slices(table: &TableSchema, slices: &[Slice], time: &WriteTime, update: &mut PartitionUpdate) {
    let comparator = ClusteringComparator::of(table);
    for slice in slices {
        if slice.start.values.is_empty() && slice.end.values.is_empty() {
            update.deletion = Some(time.deletion());
        } else if !slice.is_empty(&comparator) {
            update.ranges.push(RangeTombstone {
                start: slice.start.clone(),
                end: slice.end.clone(),
                deletion: time.deletion(),
            });
        }
    }
}
