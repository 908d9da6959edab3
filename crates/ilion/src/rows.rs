//! Results, read page by page.

use std::sync::Arc;
use std::vec;

use ilion_query::{ColumnSpec, ResultSet};
use ilion_types::Value;

use crate::database::Paged;
use crate::{Error, FromValue};

/// The rows of a result; further pages are read when the iteration comes to them. A statement without a result has none.
pub struct Rows {
    columns: Arc<[ColumnSpec]>,
    page: vec::IntoIter<Row>,
    /// Where the rest comes from.
    next: Option<Paged>,
}

/// One row.
#[derive(Clone, Debug)]
pub struct Row {
    columns: Arc<[ColumnSpec]>,
    cells: Vec<Option<Vec<u8>>>,
}

impl Rows {
    pub(crate) fn none() -> Self {
        Self {
            columns: Arc::new([]),
            page: Vec::new().into_iter(),
            next: None,
        }
    }

    pub(crate) fn new(result: ResultSet, next: impl FnOnce(Vec<u8>) -> Paged) -> Self {
        let columns = result.columns.clone();
        let page = rows_of(&result).into_iter();
        Self {
            columns,
            page,
            next: result.paging_state.map(next),
        }
    }

    /// Names of the columns.
    pub fn column_names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| &*column.name)
    }
}

impl Iterator for Rows {
    type Item = Result<Row, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.page.next() {
                return Some(Ok(row));
            }
            // A page may be empty although there are more.
            match self.next.take()?.read() {
                Ok(rows) => *self = rows,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Cuts the cells: each is a length and its bytes, a negative length is null.
fn rows_of(result: &ResultSet) -> Vec<Row> {
    let mut rest = result.cells.as_slice();
    let mut row = || Row {
        columns: result.columns.clone(),
        cells: result.columns.iter().map(|_| take_cell(&mut rest)).collect(),
    };
    (0..result.row_count).map(|_| row()).collect()
}

fn take_cell(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let (length, tail) = rest.split_first_chunk::<4>()?;
    *rest = tail;
    let length = usize::try_from(i32::from_be_bytes(*length)).ok()?;
    let (cell, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(cell.to_vec())
}

impl Row {
    /// A column as a Rust value.
    ///
    /// # Errors
    /// There is no such column, or it holds something else (null, if `T` is no `Option`).
    pub fn get<T: FromValue>(&self, name: &str) -> Result<T, Error> {
        let refuse = |problem: String| Error::Column {
            name: name.to_owned(),
            problem,
        };
        let index = self
            .columns
            .iter()
            .position(|column| &*column.name == name)
            .ok_or_else(|| refuse("the result has no such column".to_owned()))?;
        let value = self.value_at(index)?;
        T::from_value(value)
            .map_err(|value| refuse(format!("{value:?} is no {}", std::any::type_name::<T>())))
    }

    /// The cells as they are stored: serialized as the native protocol has them, nothing for null.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = Option<&[u8]>> {
        self.cells.iter().map(Option::as_deref)
    }

    /// The values of all columns, in order.
    ///
    /// # Errors
    /// A cell is no value of its type; the data is damaged.
    pub fn values(&self) -> Result<Vec<Value>, Error> {
        (0..self.columns.len())
            .map(|index| self.value_at(index))
            .collect()
    }

    fn value_at(&self, index: usize) -> Result<Value, Error> {
        let column = &self.columns[index];
        let Some(bytes) = &self.cells[index] else {
            return Ok(Value::Null);
        };
        Value::decode(&column.ty, bytes).map_err(|error| Error::Column {
            name: column.name.to_string(),
            problem: error.to_string(),
        })
    }
}
