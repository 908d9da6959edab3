//! The class `Cursor`.

use std::sync::Arc;

use ilion::{Bound as BoundValue, ColumnSpec, Page, PageOptions};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::bind::seconds;
use crate::classes::Classes;
use crate::errors;
use crate::shared::SharedRef;
use crate::statement::Statement;
use crate::to_arrow::{describe, to_arrow};
use crate::to_python::{Hashable, Objects};

/// What is executed for each page.
#[derive(Clone)]
pub enum Source {
    Text(Arc<str>),
    Prepared {
        statement: Arc<Py<Statement>>,
        values: Vec<BoundValue>,
    },
    /// Its result is one page.
    Batch,
}

/// A page of a result.
#[pyclass(frozen, module = "ilion._engine")]
pub struct Cursor {
    shared: SharedRef,
    source: Source,
    rows: Option<u32>,
    page: Page,
}

fn decode(column: &ColumnSpec, bytes: Option<&[u8]>) -> Result<ilion::Value, String> {
    bytes.map_or(Ok(ilion::Value::Null), |bytes| {
        ilion::Value::decode(&column.ty, bytes).map_err(|error| error.to_string())
    })
}

impl Cursor {
    /// Executes, and keeps the first page.
    pub fn read(py: Python<'_>, shared: SharedRef, source: Source, options: PageOptions) -> PyResult<Self> {
        let rows = options.rows;
        let page = match &source {
            Source::Text(cql) => shared.call(py, |database| database.execute_page(cql, options)),
            Source::Prepared { statement, values } => {
                let (number, values) = (statement.get().number, values.clone());
                shared.call_statement(py, number, |statement| statement.execute_page(values, options))
            }
            Source::Batch => Err(errors::bug(py, "a batch has no other page")),
        }?;
        Ok(Self {
            shared,
            source,
            rows,
            page,
        })
    }

    /// The result of a batch.
    pub fn of_batch(shared: SharedRef, page: Page) -> Self {
        Self {
            shared,
            source: Source::Batch,
            rows: None,
            page,
        }
    }
}

#[pymethods]
impl Cursor {
    /// Names and CQL types of the columns.
    #[getter]
    fn columns(&self) -> Vec<(String, String)> {
        let columns = self.page.columns().iter();
        columns
            .map(|column| (column.name.to_string(), column.ty.to_string()))
            .collect()
    }

    /// The types of the columns, as tuples that describe arrays of Arrow.
    #[getter]
    fn types<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let columns = self.page.columns().iter();
        columns.map(|column| describe(py, &column.ty)).collect()
    }

    /// The rows of the page, as tuples.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let mut objects = Objects::new(Classes::of(py)?);
        let rows = PyList::empty(py);
        let mut values = Vec::with_capacity(self.page.columns().len());
        for cells in self.page.rows() {
            for (column, bytes) in self.page.columns().iter().zip(cells) {
                let value = decode(column, bytes)
                    .map_err(|problem| problem.into())
                    .and_then(|value| objects.object(py, &column.ty, value, Hashable::No));
                values.push(value.map_err(|problem| errors::of_column(py, &column.name, problem))?);
            }
            rows.append(PyTuple::new(py, values.drain(..))?)?;
        }
        Ok(rows)
    }

    /// The columns of the page: for each a list that an array of Arrow can be built from.
    fn arrow_columns<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyList>>> {
        let columns = self.page.columns();
        let lists: Vec<_> = columns.iter().map(|_| PyList::empty(py)).collect();
        for cells in self.page.rows() {
            for ((column, bytes), list) in columns.iter().zip(cells).zip(&lists) {
                let value = decode(column, bytes)
                    .map_err(|problem| problem.into())
                    .and_then(|value| to_arrow(py, value));
                list.append(value.map_err(|problem| errors::of_column(py, &column.name, problem))?)?;
            }
        }
        Ok(lists)
    }

    #[getter]
    fn has_more_pages(&self) -> bool {
        self.page.paging_state().is_some()
    }

    #[getter]
    fn paging_state<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.page.paging_state().map(|state| PyBytes::new(py, state))
    }

    /// Reads the page after this one; `None` after the last one.
    #[pyo3(signature = (timeout=None))]
    fn next_page(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Self>> {
        let Some(paging_state) = self.page.paging_state() else {
            return Ok(None);
        };
        let options = PageOptions {
            rows: self.rows,
            timeout: seconds(timeout)?,
            paging_state: Some(paging_state.to_vec()),
        };
        Self::read(py, self.shared.clone(), self.source.clone(), options).map(Some)
    }
}
