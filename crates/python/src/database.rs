//! The class `Database`.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;

use crate::bind::{options, serialize};
use crate::cursor::{Cursor, Source};
use crate::shared::{Shared, SharedRef};
use crate::statement::Statement;

/// An open database. Threads may use it at the same time.
#[pyclass(frozen, module = "ilion._engine")]
pub struct Database {
    pub(crate) shared: SharedRef,
}

#[pymethods]
impl Database {
    #[new]
    fn open(py: Python<'_>, directory: PathBuf, settings: Vec<(String, String)>) -> PyResult<Self> {
        let shared = py.detach(|| Shared::open(&directory, &settings));
        match shared {
            Ok(shared) => Ok(Self {
                shared: Arc::new(shared),
            }),
            Err(error) => Err(crate::errors::raised(py, &error)),
        }
    }

    /// Executes a statement without bind markers.
    #[pyo3(signature = (cql, fetch_size=None, timeout=None, paging_state=None))]
    fn execute(
        &self,
        py: Python<'_>,
        cql: String,
        fetch_size: Option<u32>,
        timeout: Option<f64>,
        paging_state: Option<Vec<u8>>,
    ) -> PyResult<Cursor> {
        let options = options(fetch_size, timeout, paging_state)?;
        Cursor::read(py, self.shared.clone(), Source::Text(cql.into()), options)
    }

    fn prepare(&self, py: Python<'_>, cql: &str) -> PyResult<Statement> {
        Statement::prepare(py, &self.shared, cql)
    }

    /// Executes a prepared statement of this database.
    #[pyo3(signature = (statement, parameters=None, fetch_size=None, timeout=None, paging_state=None))]
    fn execute_prepared(
        &self,
        statement: &Bound<'_, Statement>,
        parameters: Option<&Bound<'_, PyAny>>,
        fetch_size: Option<u32>,
        timeout: Option<f64>,
        paging_state: Option<Vec<u8>>,
    ) -> PyResult<Cursor> {
        let py = statement.py();
        let options = options(fetch_size, timeout, paging_state)?;
        let prepared = statement.get();
        prepared.check(py, &self.shared)?;
        let source = Source::Prepared {
            statement: Arc::new(statement.clone().unbind()),
            values: serialize(py, &prepared.markers, parameters)?,
        };
        Cursor::read(py, self.shared.clone(), source, options)
    }

    /// Flushes everything to SSTables.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.call(py, ilion::Database::flush)
    }

    /// The keyspace of names without one.
    #[getter]
    fn keyspace(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.shared.call(py, |database| Ok(database.keyspace()))
    }

    #[getter]
    fn is_open(&self) -> bool {
        self.shared.is_open()
    }

    fn close(&self, py: Python<'_>) {
        self.shared.close(py);
    }
}
