//! Parameters of Python as serialized values, and options of an execution.

use std::time::Duration;

use ilion::{Bound as BoundValue, ColumnSpec, PageOptions, Value};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::classes::Classes;
use crate::errors::{self, Problem};
use crate::from_python::to_value;

/// Longest timeout, in seconds: some centuries.
const SECONDS_MAX: f64 = 1e10;

/// A time limit in seconds.
pub fn seconds(timeout: Option<f64>) -> PyResult<Option<Duration>> {
    match timeout {
        None => Ok(None),
        Some(seconds) if seconds > 0.0 => Ok(Some(Duration::from_secs_f64(seconds.min(SECONDS_MAX)))),
        Some(_) => Err(PyValueError::new_err(
            "timeout must be more than 0 seconds, or None",
        )),
    }
}

/// How a page is read.
pub fn options(
    rows: Option<u32>,
    timeout: Option<f64>,
    paging_state: Option<Vec<u8>>,
) -> PyResult<PageOptions> {
    Ok(PageOptions {
        rows,
        timeout: seconds(timeout)?,
        paging_state,
    })
}

/// Serializes the parameters of a statement: a list or tuple by position, or a dict by the names of the markers.
pub fn serialize(
    py: Python<'_>,
    markers: &[ColumnSpec],
    parameters: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<BoundValue>> {
    let classes = Classes::of(py)?;
    let count = |given: usize| errors::wrong_count(py, markers.len(), given);
    let Some(parameters) = parameters else {
        return match markers.is_empty() {
            true => Ok(Vec::new()),
            false => Err(count(0)),
        };
    };
    let one = |index: usize, marker: &ColumnSpec, value: &Bound<'_, PyAny>| {
        serialize_one(classes, marker, value)
            .map_err(|problem| errors::of_parameter(py, index, marker, problem))
    };
    if let Ok(named) = parameters.cast::<PyDict>() {
        let value = |(index, marker): (usize, &ColumnSpec)| match named.get_item(&*marker.name)? {
            Some(value) => one(index, marker, &value),
            None => Err(errors::of_parameter(
                py,
                index,
                marker,
                Problem::Unfit("no parameter has this name".to_owned()),
            )),
        };
        return markers.iter().enumerate().map(value).collect();
    }
    let is_sequence = parameters.is_instance_of::<PyTuple>() || parameters.is_instance_of::<PyList>();
    if !is_sequence {
        return Err(errors::no_parameters(py, parameters));
    }
    let given = parameters.len()?;
    if given != markers.len() {
        return Err(count(given));
    }
    let value = |(index, marker): (usize, &ColumnSpec)| one(index, marker, &parameters.get_item(index)?);
    markers.iter().enumerate().map(value).collect()
}

fn serialize_one(
    classes: &Classes,
    marker: &ColumnSpec,
    value: &Bound<'_, PyAny>,
) -> Result<BoundValue, Problem> {
    if value.is(&classes.unset) {
        return Ok(BoundValue::Unset);
    }
    match to_value(classes, &marker.ty, value)? {
        Value::Null => Ok(BoundValue::Null),
        value => {
            let bytes = value
                .to_bytes(&marker.ty)
                .map_err(|error| Problem::Unfit(error.to_string()))?;
            Ok(BoundValue::Bytes(bytes.into()))
        }
    }
}
