//! The class `Batch`.

use std::sync::Arc;

use ilion::{BatchKind, Bound as BoundValue, StatementError};
use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::bind::serialize;
use crate::cursor::Cursor;
use crate::database::Database;
use crate::errors::{self, Refused};
use crate::shared::SharedRef;
use crate::statement::Statement;

/// A statement is forgotten when its object is, and a batch keeps the objects.
const GONE: &str = "a prepared statement of the batch is gone";

/// Writes that are executed together.
#[pyclass(frozen, module = "ilion._engine")]
pub struct Batch {
    shared: SharedRef,
    kind: BatchKind,
    /// Held only to add and to copy.
    members: Mutex<Vec<Member>>,
}

#[derive(Clone)]
enum Member {
    Text(String),
    Prepared(Arc<Py<Statement>>, Vec<BoundValue>),
}

#[pymethods]
impl Batch {
    #[new]
    fn new(py: Python<'_>, database: &Database, kind: &str) -> PyResult<Self> {
        let kind = match kind {
            "logged" => BatchKind::Logged,
            "unlogged" => BatchKind::Unlogged,
            "counter" => BatchKind::Counter,
            _ => return Err(errors::refused(py, Refused::BatchKind)),
        };
        Ok(Self {
            shared: database.shared.clone(),
            kind,
            members: Mutex::default(),
        })
    }

    /// Adds a statement without bind markers.
    fn add(&self, cql: String) {
        self.members.lock().push(Member::Text(cql));
    }

    /// Adds a prepared statement.
    #[pyo3(signature = (statement, parameters=None))]
    fn add_prepared(
        &self,
        statement: &Bound<'_, Statement>,
        parameters: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (py, prepared) = (statement.py(), statement.get());
        prepared.check(py, &self.shared)?;
        let values = serialize(py, &prepared.markers, parameters)?;
        let member = Member::Prepared(Arc::new(statement.clone().unbind()), values);
        self.members.lock().push(member);
        Ok(())
    }

    fn clear(&self) {
        self.members.lock().clear();
    }

    fn __len__(&self) -> usize {
        self.members.lock().len()
    }

    fn execute(&self, py: Python<'_>) -> PyResult<Cursor> {
        let members = self.members.lock().clone();
        let page = self.shared.call_with_statements(py, |database, statement| {
            let mut batch = database.batch(self.kind);
            for member in members {
                match member {
                    Member::Text(cql) => batch.add_cql(&cql, ())?,
                    Member::Prepared(prepared, values) => {
                        let found = statement(prepared.get().number);
                        let found = found.ok_or_else(|| StatementError::Invalid(GONE.to_owned()))?;
                        batch.add_bound(&found, values)?
                    }
                };
            }
            batch.execute_page()
        })?;
        Ok(Cursor::of_batch(self.shared.clone(), page))
    }
}
