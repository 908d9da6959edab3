//! CQL values as objects of Python, as the stock driver returns them. Where Python's own classes do not suffice, classes of this package
//! have the same attributes as the driver's.

use std::collections::HashMap;
use std::sync::Arc;

use ilion::{CqlType, Decimal, UserType, Uuid, Value};
use ilion_types::EPOCH_DAY;
use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFrozenSet, PyList, PySet, PyTuple};

use crate::classes::Classes;
use crate::errors::Problem;
use crate::times::datetime;

/// Whether a value is an element of a set or a key of a dict. Then lists are tuples, sets frozen, and dicts `FrozenMap`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Hashable {
    Yes,
    No,
}

/// Makes objects of Python.
pub struct Objects<'c> {
    classes: &'c Classes,
    /// Classes of user types, by the address of their definitions, which the columns keep.
    user_types: HashMap<*const UserType, Py<PyAny>>,
}

type Object<'py> = Result<Bound<'py, PyAny>, Problem>;

/// The decimal with the same digits and scale.
pub fn decimal_text(decimal: &Decimal) -> String {
    format!("{}e{}", decimal.unscaled, -i64::from(decimal.scale))
}

impl<'c> Objects<'c> {
    pub fn new(classes: &'c Classes) -> Self {
        Self {
            classes,
            user_types: HashMap::new(),
        }
    }

    /// The object for a value of this type.
    pub fn object<'py>(
        &mut self,
        py: Python<'py>,
        ty: &CqlType,
        value: Value,
        hashable: Hashable,
    ) -> Object<'py> {
        Ok(match value {
            Value::Null | Value::Empty => py.None().into_bound(py),
            Value::Text(text) => text.into_bound_py_any(py)?,
            Value::Blob(bytes) => PyBytes::new(py, &bytes).into_any(),
            Value::Boolean(value) => value.into_bound_py_any(py)?,
            Value::TinyInt(value) => value.into_bound_py_any(py)?,
            Value::SmallInt(value) => value.into_bound_py_any(py)?,
            Value::Int(value) => value.into_bound_py_any(py)?,
            Value::BigInt(value) | Value::Counter(value) => value.into_bound_py_any(py)?,
            Value::Varint(value) => value.into_bound_py_any(py)?,
            Value::Float(value) => f64::from(value).into_bound_py_any(py)?,
            Value::Double(value) => value.into_bound_py_any(py)?,
            Value::Decimal(decimal) => self.classes.decimal.bind(py).call1((decimal_text(&decimal),))?,
            Value::Date(days) => {
                let days = i64::from(days) - EPOCH_DAY;
                self.classes.date.bind(py).call1((days,))?
            }
            Value::Time(nanos) => self.classes.time.bind(py).call1((nanos,))?,
            Value::Timestamp(millis) => datetime(py, millis)?.into_any(),
            Value::Uuid(uuid) | Value::TimeUuid(uuid) => self.uuid(py, uuid)?,
            Value::Inet(address) => address.to_string().into_bound_py_any(py)?,
            Value::Duration(duration) => {
                let parts = (duration.months(), duration.days(), duration.nanos());
                self.classes.duration.bind(py).call1(parts)?
            }
            Value::List(_) | Value::Set(_) | Value::Map(_) | Value::Vector(_) => {
                return self.collection(py, ty, value, hashable);
            }
            Value::Tuple(values) => match ty {
                CqlType::Tuple(types) => self.components(py, types.iter(), values, hashable)?.into_any(),
                _ => return Err(mismatch(ty)),
            },
            Value::Udt(values) => match ty {
                CqlType::Udt { definition, .. } => self.user_type(py, definition, values, hashable)?,
                _ => return Err(mismatch(ty)),
            },
        })
    }

    fn uuid<'py>(&self, py: Python<'py>, uuid: Uuid) -> Object<'py> {
        let named = PyDict::new(py);
        named.set_item("bytes", PyBytes::new(py, uuid.as_bytes()))?;
        Ok(self.classes.uuid.bind(py).call((), Some(&named))?)
    }

    fn collection<'py>(
        &mut self,
        py: Python<'py>,
        ty: &CqlType,
        value: Value,
        hashable: Hashable,
    ) -> Object<'py> {
        Ok(match (value, ty) {
            (Value::List(values), CqlType::List { element, .. })
            | (Value::Vector(values), CqlType::Vector { element, .. }) => {
                let objects = self.all(py, element, values, hashable)?;
                match hashable {
                    Hashable::No => PyList::new(py, objects)?.into_any(),
                    Hashable::Yes => PyTuple::new(py, objects)?.into_any(),
                }
            }
            (Value::Set(values), CqlType::Set { element, .. }) => {
                let objects = self.all(py, element, values, Hashable::Yes)?;
                match hashable {
                    Hashable::No => PySet::new(py, objects)?.into_any(),
                    Hashable::Yes => PyFrozenSet::new(py, objects)?.into_any(),
                }
            }
            (Value::Map(entries), CqlType::Map { key, value, .. }) => {
                let map = PyDict::new(py);
                for (one, other) in entries {
                    let one = self.object(py, key, one, Hashable::Yes)?;
                    map.set_item(one, self.object(py, value, other, hashable)?)?;
                }
                match hashable {
                    Hashable::No => map.into_any(),
                    Hashable::Yes => self.classes.frozen_map.bind(py).call1((map,))?,
                }
            }
            _ => return Err(mismatch(ty)),
        })
    }

    fn all<'py>(
        &mut self,
        py: Python<'py>,
        ty: &CqlType,
        values: Vec<Value>,
        hashable: Hashable,
    ) -> Result<Vec<Bound<'py, PyAny>>, Problem> {
        let object = |value| self.object(py, ty, value, hashable);
        values.into_iter().map(object).collect()
    }

    fn components<'py, 't>(
        &mut self,
        py: Python<'py>,
        types: impl Iterator<Item = &'t CqlType>,
        values: Vec<Value>,
        hashable: Hashable,
    ) -> Result<Bound<'py, PyTuple>, Problem> {
        let object = |(ty, value)| self.object(py, ty, value, hashable);
        let objects: Result<Vec<_>, Problem> = types.zip(values).map(object).collect();
        Ok(PyTuple::new(py, objects?)?)
    }

    /// A named tuple with the fields.
    fn user_type<'py>(
        &mut self,
        py: Python<'py>,
        definition: &Arc<UserType>,
        values: Vec<Value>,
        hashable: Hashable,
    ) -> Object<'py> {
        let types = definition.fields.iter().map(|(_, ty)| ty);
        let objects = self.components(py, types, values, hashable)?;
        let class = match self.user_types.get(&Arc::as_ptr(definition)) {
            Some(class) => class.bind(py).clone(),
            None => {
                let names: Vec<&str> = definition.fields.iter().map(|(name, _)| &**name).collect();
                let names = PyTuple::new(py, names)?;
                let class = self
                    .classes
                    .named_tuple
                    .bind(py)
                    .call1((&*definition.name, names))?;
                self.user_types
                    .insert(Arc::as_ptr(definition), class.clone().unbind());
                class
            }
        };
        Ok(class.call1(objects)?)
    }
}

/// Cannot happen: `Value::decode` has made the value for this type.
fn mismatch(ty: &CqlType) -> Problem {
    Problem::Unfit(format!("the value is none of type {ty}"))
}
