//! The classes of Python that values are made of.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// Classes and functions of Python, imported once.
pub struct Classes {
    pub date: Py<PyAny>,
    pub time: Py<PyAny>,
    pub duration: Py<PyAny>,
    /// A dict that can be an element of a set or a key.
    pub frozen_map: Py<PyAny>,
    pub unset: Py<PyAny>,
    /// Makes the class of a user type, of its name and the names of its fields.
    pub named_tuple: Py<PyAny>,
    pub decimal: Py<PyAny>,
    pub uuid: Py<PyAny>,
    pub utc: Py<PyAny>,
    pub mapping: Py<PyAny>,
    pub memoryview: Py<PyAny>,
}

impl Classes {
    pub fn of(py: Python<'_>) -> PyResult<&Self> {
        static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();
        CLASSES.get_or_try_init(py, || {
            let get = |module: &str, name: &str| {
                let found = py.import(module)?.getattr(name)?;
                PyResult::Ok(found.unbind())
            };
            Ok(Self {
                date: get("ilion.types", "Date")?,
                time: get("ilion.types", "Time")?,
                duration: get("ilion.types", "Duration")?,
                frozen_map: get("ilion.types", "FrozenMap")?,
                unset: get("ilion.types", "UNSET_VALUE")?,
                named_tuple: get("ilion.rows", "named_tuple")?,
                decimal: get("decimal", "Decimal")?,
                uuid: get("uuid", "UUID")?,
                utc: py
                    .import("datetime")?
                    .getattr("timezone")?
                    .getattr("utc")?
                    .unbind(),
                mapping: get("collections.abc", "Mapping")?,
                memoryview: get("builtins", "memoryview")?,
            })
        })
    }
}
