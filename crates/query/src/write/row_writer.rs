//! From operations to the columns of one row.
//!
//! Compat: `Lists`, `Sets`, `Maps`, `UserTypes` and `Constants` of Cassandra 5.0. When a whole collection is written, its old cells
//! are deleted one microsecond before the new ones. List cells are ordered by time UUIDs; those of prepended elements count
//! backwards.

use bytes::Bytes;
use ilion_rows::{Cell, ColumnData, ComplexColumn, Data, DeletionTime, Row, counter, paths};
use ilion_schema::ColumnId;
use ilion_types::{
    CqlType, Uuid, collection_elements, map_entries, ticks_of_unix_micros, time_uuid_from_ticks,
    time_uuid_ticks, tuple_components,
};

use super::current::Reading;
use super::operation::{Action, Operation};
use super::timing::WriteTime;
use crate::context::Execution;
use crate::term::Term;
use crate::{Error, Value};

/// 2010-01-01: the times of prepended list elements are mirrored around it (`Lists.PrecisionTime`).
const REFERENCE_MICROS: i64 = 1_262_304_000_000_000;

/// Writes the columns of one row.
pub(super) struct RowWriter<'a> {
    pub execution: &'a Execution<'a>,
    pub time: &'a WriteTime,
    pub reading: Reading,
    /// The stored row, if an operation needs it.
    pub existing: Option<&'a Row>,
}

impl RowWriter<'_> {
    /// The columns that the operations write. Requires: operations are sorted by column.
    #[inline]
    pub(super) fn columns(&self, operations: &[Operation]) -> Result<Vec<ColumnData>, Error> {
        let mut columns: Vec<ColumnData> = Vec::with_capacity(operations.len());
        for operation in operations {
            if operation.column.is_complex() {
                self.write_complex(operation, &mut columns)?;
                continue;
            }
            let Some(cell) = self.simple_cell(operation)? else {
                continue;
            };
            match columns.last_mut() {
                Some(ColumnData {
                    column,
                    data: Data::Simple(last),
                }) if *column == operation.column.id => reconcile(operation, last, cell),
                _ => columns.push(ColumnData {
                    column: operation.column.id,
                    data: Data::Simple(cell),
                }),
            }
        }
        Ok(columns)
    }

    /// The cell of a simple column; `None` if the value is unset.
    #[inline]
    fn simple_cell(&self, operation: &Operation) -> Result<Option<Cell>, Error> {
        match &operation.action {
            Action::Set(term) => Ok(match term.evaluate(self.execution)? {
                Value::Bytes(bytes) => Some(self.time.cell(bytes)),
                Value::Null => Some(self.time.tombstone()),
                Value::Unset => None,
            }),
            Action::Delete => Ok(Some(self.time.tombstone())),
            Action::Increment(term) => self.counter_cell(term, Ok),
            Action::Decrement(term) => self.counter_cell(term, |delta| {
                delta.checked_neg().ok_or_else(|| {
                    Error::Invalid(format!(
                        "The negation of {delta} overflows supported counter precision (signed 8 bytes integer)"
                    ))
                })
            }),
            _ => Err(misplaced(operation)),
        }
    }

    fn counter_cell(
        &self,
        term: &Term,
        delta_of: impl FnOnce(i64) -> Result<i64, Error>,
    ) -> Result<Option<Cell>, Error> {
        let bytes = match term.evaluate(self.execution)? {
            Value::Bytes(bytes) => bytes,
            Value::Unset => return Ok(None),
            Value::Null => return Err(Error::invalid("Invalid null value for counter increment")),
        };
        let delta = <[u8; 8]>::try_from(&*bytes).map(i64::from_be_bytes);
        let delta = delta.map_err(|_| Error::invalid("Invalid empty value for counter increment"))?;
        Ok(Some(self.time.counter_cell(counter::update(delta_of(delta)?))))
    }

    fn write_complex(&self, operation: &Operation, columns: &mut Vec<ColumnData>) -> Result<(), Error> {
        let id = operation.column.id;
        let mut complex = take_complex(columns, id);
        self.act(operation, &mut complex)?;
        sort_cells(&operation.column.ty, &mut complex.cells);
        if !complex.deletion.is_live() || !complex.cells.is_empty() {
            columns.push(ColumnData {
                column: id,
                data: Data::Complex(complex),
            });
        }
        Ok(())
    }

    fn act(&self, operation: &Operation, out: &mut ComplexColumn) -> Result<(), Error> {
        let ty = &operation.column.ty;
        match &operation.action {
            Action::Set(term) => match term.evaluate(self.execution)? {
                Value::Unset => Ok(()),
                Value::Null => {
                    out.deletion = self.time.overwrite_deletion();
                    Ok(())
                }
                Value::Bytes(value) => {
                    out.deletion = self.time.overwrite_deletion();
                    self.add(ty, &value, out)
                }
            },
            Action::Append(term) | Action::Add(term) => match term.evaluate(self.execution)? {
                Value::Bytes(value) => self.add(ty, &value, out),
                _ => Ok(()),
            },
            Action::Prepend(term) => match term.evaluate(self.execution)? {
                Value::Bytes(value) => self.prepend(&value, out),
                _ => Ok(()),
            },
            Action::RemoveKeys(term) => match term.evaluate(self.execution)? {
                Value::Bytes(keys) => {
                    for key in collection_elements(&keys)? {
                        out.cells.push((keys.slice_ref(key?), self.time.tombstone()));
                    }
                    Ok(())
                }
                _ => Ok(()),
            },
            Action::SetKey(key, value) => {
                let path = self.key(key, "map key")?;
                self.set_path(path, value.evaluate(self.execution)?, out);
                Ok(())
            }
            Action::SetField(index, value) => {
                self.set_path(paths::field_path(*index), value.evaluate(self.execution)?, out);
                Ok(())
            }
            Action::DeleteKey(key) => {
                let what = if matches!(ty, CqlType::Set { .. }) {
                    "set element"
                } else {
                    "map key"
                };
                out.cells.push((self.key(key, what)?, self.time.tombstone()));
                Ok(())
            }
            Action::Delete => {
                out.deletion = out.deletion.max(self.time.deletion());
                Ok(())
            }
            Action::SetIndex(..) | Action::DeleteIndex(_) | Action::RemoveValues(_) => match self.reading {
                Reading::Stored => self.act_on_list(operation, out),
                Reading::Nothing => self.foresee_on_list(operation, out),
            },
            Action::Increment(_) | Action::Decrement(_) => Err(misplaced(operation)),
        }
    }

    fn set_path(&self, path: Bytes, value: Value, out: &mut ComplexColumn) {
        match value {
            Value::Unset => {}
            Value::Null => out.cells.push((path, self.time.tombstone())),
            Value::Bytes(value) => out.cells.push((path, self.time.cell(value))),
        }
    }

    /// A map's key, a set's element or a list's index.
    fn key(&self, term: &Term, what: &str) -> Result<Bytes, Error> {
        let key = term.evaluate_set(self.execution, || format!("Invalid unset {what}"))?;
        key.ok_or_else(|| Error::Invalid(format!("Invalid null {what}")))
    }

    /// Appends the cells of all elements or fields of a serialized value.
    fn add(&self, ty: &CqlType, value: &Bytes, out: &mut ComplexColumn) -> Result<(), Error> {
        match ty {
            CqlType::List { .. } => {
                for element in collection_elements(value)? {
                    let path = uuid_path(self.execution.store.time_uuid());
                    out.cells.push((path, self.time.cell(value.slice_ref(element?))));
                }
            }
            CqlType::Set { .. } => {
                for element in collection_elements(value)? {
                    out.cells
                        .push((value.slice_ref(element?), self.time.cell(Bytes::new())));
                }
            }
            CqlType::Map { .. } => {
                for entry in map_entries(value)? {
                    let (key, element) = entry?;
                    let cell = self.time.cell(value.slice_ref(element));
                    out.cells.push((value.slice_ref(key), cell));
                }
            }
            _ => {
                for (index, component) in (0..).zip(tuple_components(value)) {
                    if let Some(field) = component? {
                        let cell = self.time.cell(value.slice_ref(field));
                        out.cells.push((paths::field_path(index), cell));
                    }
                }
            }
        }
        Ok(())
    }

    fn prepend(&self, list: &Bytes, out: &mut ComplexColumn) -> Result<(), Error> {
        let elements = collection_elements(list)?.collect::<Result<Vec<_>, _>>()?;
        // A later UUID has an earlier mirror image, so the last element gets the first UUID.
        for element in elements.into_iter().rev() {
            let path = uuid_path(mirrored(self.execution.store.time_uuid()));
            out.cells.push((path, self.time.cell(list.slice_ref(element))));
        }
        Ok(())
    }

    /// Applies operations that depend on the stored list.
    fn act_on_list(&self, operation: &Operation, out: &mut ComplexColumn) -> Result<(), Error> {
        let current = self.current_list(operation, out);
        match &operation.action {
            Action::SetIndex(index, value) => {
                let index = self.index(index)?;
                let value = value.evaluate(self.execution)?;
                if current.is_empty() {
                    return Err(Error::invalid(
                        "Attempted to set an element on a list which is null",
                    ));
                }
                self.set_path(path_at(&current, index)?, value, out);
            }
            Action::DeleteIndex(index) => {
                if index.evaluate(self.execution)? == Value::Unset {
                    return Ok(());
                }
                let index = self.index(index)?;
                if current.is_empty() {
                    return Err(Error::invalid(
                        "Attempted to delete an element from a list which is null",
                    ));
                }
                out.cells.push((path_at(&current, index)?, self.time.tombstone()));
            }
            Action::RemoveValues(term) => {
                let Value::Bytes(values) = term.evaluate(self.execution)? else {
                    return Ok(());
                };
                let values = collection_elements(&values)?.collect::<Result<Vec<_>, _>>()?;
                for (path, cell) in current {
                    if values.contains(&&*cell.value) {
                        out.cells.push((path, self.time.tombstone()));
                    }
                }
            }
            _ => return Err(misplaced(operation)),
        }
        Ok(())
    }

    /// Writes the values of operations that depend on the stored list, without that list: a new element is known, but not its position.
    fn foresee_on_list(&self, operation: &Operation, out: &mut ComplexColumn) -> Result<(), Error> {
        match &operation.action {
            Action::SetIndex(index, value) => {
                index.evaluate(self.execution)?;
                let path = uuid_path(self.execution.store.time_uuid());
                self.set_path(path, value.evaluate(self.execution)?, out);
            }
            Action::DeleteIndex(term) | Action::RemoveValues(term) => drop(term.evaluate(self.execution)?),
            _ => return Err(misplaced(operation)),
        }
        Ok(())
    }

    fn index(&self, term: &Term) -> Result<i32, Error> {
        let unset = || "Invalid unset value for list index".to_owned();
        let index = term.evaluate_set(self.execution, unset)?;
        let index = index.ok_or_else(|| Error::invalid("Invalid null value for list index"))?;
        <[u8; 4]>::try_from(&*index)
            .map(i32::from_be_bytes)
            .map_err(|_| Error::invalid("Invalid empty value for list index"))
    }

    /// The live cells of the list, including those that this statement wrote so far.
    fn current_list(&self, operation: &Operation, written: &ComplexColumn) -> Vec<(Bytes, Cell)> {
        let stored = self.existing.and_then(|row| row.column(operation.column.id));
        let mut cells: Vec<(Bytes, Cell)> = match stored {
            Some(Data::Complex(complex)) => complex
                .cells
                .iter()
                .filter(|(_, cell)| !written.deletion.deletes(cell.timestamp_micros))
                .cloned()
                .collect(),
            _ => Vec::new(),
        };
        cells.extend(written.cells.iter().cloned());
        sort_cells(&operation.column.ty, &mut cells);
        cells.retain(|(_, cell)| !cell.is_tombstone());
        cells
    }
}

fn misplaced(operation: &Operation) -> Error {
    Error::ServerError(format!(
        "column {} cannot do {:?}",
        operation.column.name, operation.action
    ))
}

/// Merges two cells of one statement for one column.
fn reconcile(operation: &Operation, last: &mut Cell, cell: Cell) {
    if operation.column.ty == CqlType::Counter {
        last.reconcile_counter(cell);
    } else {
        last.reconcile(cell);
    }
}

/// Removes the cells written to the column so far from `columns`, and returns them.
fn take_complex(columns: &mut Vec<ColumnData>, id: ColumnId) -> Box<ComplexColumn> {
    let is_last = columns.last().is_some_and(|last| last.column == id);
    match is_last.then(|| columns.pop()).flatten() {
        Some(ColumnData {
            data: Data::Complex(complex),
            ..
        }) => complex,
        _ => Box::new(ComplexColumn {
            deletion: DeletionTime::LIVE,
            cells: Vec::new(),
        }),
    }
}

/// Sorts cells by path, and merges those with equal paths.
fn sort_cells(ty: &CqlType, cells: &mut Vec<(Bytes, Cell)>) {
    let compare = |a: &(Bytes, Cell), b: &(Bytes, Cell)| paths::compare_paths(ty, &a.0, &b.0);
    if cells.is_sorted_by(|a, b| compare(a, b).is_lt()) {
        return;
    }
    cells.sort_by(compare);
    cells.dedup_by(|next, kept| {
        let is_same = compare(next, kept).is_eq();
        if is_same {
            kept.1.reconcile(next.1.clone());
        }
        is_same
    });
}

fn path_at(cells: &[(Bytes, Cell)], index: i32) -> Result<Bytes, Error> {
    let found = usize::try_from(index).ok().and_then(|index| cells.get(index));
    found.map(|(path, _)| path.clone()).ok_or_else(|| {
        Error::Invalid(format!(
            "List index {index} out of bound, list has size {}",
            cells.len()
        ))
    })
}

fn uuid_path(uuid: Uuid) -> Bytes {
    Bytes::copy_from_slice(uuid.as_bytes())
}

/// The UUID that is as long before the reference time as the given one is after it.
fn mirrored(uuid: Uuid) -> Uuid {
    let reference = ticks_of_unix_micros(REFERENCE_MICROS);
    let ticks = (2 * reference).saturating_sub(time_uuid_ticks(&uuid));
    let (_, clock_and_node) = uuid.as_u64_pair();
    time_uuid_from_ticks(ticks, clock_and_node)
}
