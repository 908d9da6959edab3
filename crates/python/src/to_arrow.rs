//! CQL values in the form that arrays of Arrow are built from: numbers for dates and times, text for types without a counterpart, pairs
//! for maps.

use ilion::{CqlType, Value};
use ilion_types::EPOCH_DAY;
use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::errors::Problem;
use crate::to_python::decimal_text;

/// The object that `pyarrow.array` takes for a value of the type in `python/src/ilion/arrow.py`.
pub fn to_arrow(py: Python<'_>, value: Value) -> Result<Bound<'_, PyAny>, Problem> {
    let all = |values: Vec<Value>| -> Result<Vec<_>, Problem> {
        values.into_iter().map(|value| to_arrow(py, value)).collect()
    };
    Ok(match value {
        Value::Null | Value::Empty => py.None().into_bound(py),
        Value::Text(text) => text.into_bound_py_any(py)?,
        Value::Blob(bytes) => PyBytes::new(py, &bytes).into_any(),
        Value::Boolean(value) => value.into_bound_py_any(py)?,
        Value::TinyInt(value) => value.into_bound_py_any(py)?,
        Value::SmallInt(value) => value.into_bound_py_any(py)?,
        Value::Int(value) => value.into_bound_py_any(py)?,
        Value::BigInt(value) | Value::Counter(value) | Value::Time(value) | Value::Timestamp(value) => {
            value.into_bound_py_any(py)?
        }
        Value::Date(days) => (i64::from(days) - EPOCH_DAY).into_bound_py_any(py)?,
        Value::Float(value) => f64::from(value).into_bound_py_any(py)?,
        Value::Double(value) => value.into_bound_py_any(py)?,
        Value::Varint(value) => value.to_string().into_bound_py_any(py)?,
        Value::Decimal(decimal) => {
            // As Python prints it: the same text in rows and in columns.
            let classes = crate::classes::Classes::of(py)?;
            let decimal = classes.decimal.bind(py).call1((decimal_text(&decimal),))?;
            decimal.str()?.into_any()
        }
        Value::Uuid(uuid) | Value::TimeUuid(uuid) => uuid.to_string().into_bound_py_any(py)?,
        Value::Inet(address) => address.to_string().into_bound_py_any(py)?,
        Value::Duration(duration) => {
            (duration.months(), duration.days(), duration.nanos()).into_bound_py_any(py)?
        }
        Value::List(values) | Value::Set(values) | Value::Vector(values) => {
            PyList::new(py, all(values)?)?.into_any()
        }
        Value::Tuple(values) | Value::Udt(values) => PyTuple::new(py, all(values)?)?.into_any(),
        Value::Map(entries) => {
            let pair = |(key, value)| Ok((to_arrow(py, key)?, to_arrow(py, value)?));
            let pairs: Result<Vec<_>, Problem> = entries.into_iter().map(pair).collect();
            PyList::new(py, pairs?)?.into_any()
        }
    })
}

/// A type as `python/src/ilion/arrow.py` reads it: a tuple that begins with its kind.
pub fn describe<'py>(py: Python<'py>, ty: &CqlType) -> PyResult<Bound<'py, PyTuple>> {
    let strukt = |fields: Vec<(String, &CqlType)>| {
        let field = |(name, ty): (String, &CqlType)| PyResult::Ok((name, describe(py, ty)?));
        let fields: Vec<_> = fields.into_iter().map(field).collect::<PyResult<_>>()?;
        ("struct", fields).into_pyobject(py)
    };
    match ty {
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            ("list", describe(py, element)?).into_pyobject(py)
        }
        CqlType::Vector { element, dimension } => {
            ("vector", describe(py, element)?, *dimension).into_pyobject(py)
        }
        CqlType::Map { key, value, .. } => {
            ("map", describe(py, key)?, describe(py, value)?).into_pyobject(py)
        }
        CqlType::Tuple(types) => {
            let types = types.iter().enumerate();
            strukt(types.map(|(index, ty)| (index.to_string(), ty)).collect())
        }
        CqlType::Udt { definition, .. } => {
            let fields = definition.fields.iter();
            strukt(fields.map(|(name, ty)| (name.clone(), ty)).collect())
        }
        CqlType::Custom(_) => ("custom",).into_pyobject(py),
        scalar => (scalar.to_string(),).into_pyobject(py),
    }
}
