//! The class `Statement`.

use std::sync::Arc;

use ilion::ColumnSpec;
use pyo3::prelude::*;

use crate::errors::{self, Refused};
use crate::shared::SharedRef;

/// A prepared statement.
#[pyclass(frozen, module = "ilion._engine")]
pub struct Statement {
    shared: SharedRef,
    /// Its number in `shared`.
    pub(crate) number: u64,
    pub(crate) markers: Vec<ColumnSpec>,
}

impl Statement {
    pub fn prepare(py: Python<'_>, shared: &SharedRef, cql: &str) -> PyResult<Self> {
        let (number, statement) = shared.prepare(py, cql)?;
        Ok(Self {
            shared: shared.clone(),
            number,
            markers: statement.markers().to_vec(),
        })
    }

    /// Refuses a statement of another database.
    pub fn check(&self, py: Python<'_>, shared: &SharedRef) -> PyResult<()> {
        match Arc::ptr_eq(&self.shared, shared) {
            true => Ok(()),
            false => Err(errors::refused(py, Refused::ForeignStatement)),
        }
    }
}

#[pymethods]
impl Statement {
    /// Names and CQL types of the bind markers.
    #[getter]
    fn markers(&self) -> Vec<(String, String)> {
        let markers = self.markers.iter();
        markers
            .map(|marker| (marker.name.to_string(), marker.ty.to_string()))
            .collect()
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        self.shared.forget(self.number);
    }
}
