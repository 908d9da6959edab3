//! The bind values of a statement.

use ilion_query::{ColumnSpec, Values};
use ilion_types::Value;

use crate::tuples::for_tuples;
use crate::{Error, ToValue};

/// Rust values for all bind markers of a statement, by position: `()` for none, a tuple of up to 12, or a slice, array or vector
/// of values of one type. By name: a struct of your own with `#[derive(ToValues)]`.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let database = ilion::Database::open(directory.path())?;
/// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
/// # database.execute("CREATE TABLE k.t (id int PRIMARY KEY, name text)", ())?;
/// database.execute("INSERT INTO k.t (id, name) VALUES (?, ?)", (1, "one"))?;
/// database.execute("DELETE FROM k.t WHERE id IN (?, ?)", [1, 2])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Arguments {
    #[doc(hidden)]
    fn to_values(&self, markers: &[ColumnSpec]) -> Result<Values, Error>;

    #[doc(hidden)]
    fn count(&self) -> usize;
}

fn encode(index: usize, marker: &ColumnSpec, argument: &dyn ToValue) -> Result<ilion_query::Value, Error> {
    let refuse = |problem: String| Error::Argument {
        index,
        name: marker.name.to_string(),
        ty: marker.ty.to_string(),
        problem,
    };
    match argument.to_value(&marker.ty).map_err(refuse)? {
        Value::Null => Ok(ilion_query::Value::Null),
        value => {
            let bytes = value
                .to_bytes(&marker.ty)
                .map_err(|error| refuse(error.to_string()))?;
            Ok(ilion_query::Value::Bytes(bytes.into()))
        }
    }
}

/// Values for all markers, each from the field of its name; for `#[derive(ToValues)]`.
///
/// # Errors
/// A marker has no field, a field has no marker, or a value does not fit.
pub fn by_name(fields: &[(&str, &dyn ToValue)], markers: &[ColumnSpec]) -> Result<Values, Error> {
    let has_marker = |name: &str| markers.iter().any(|marker| &*marker.name == name);
    if let Some((unbound, _)) = fields.iter().find(|(name, _)| !has_marker(name)) {
        let refused =
            format!("no bind marker of the statement is named {unbound}: rename the field, or skip it");
        return Err(ilion_query::Error::Invalid(refused).into());
    }
    let value = |(index, marker): (usize, &ColumnSpec)| {
        let field = fields.iter().find(|(name, _)| *name == &*marker.name);
        let (_, field) = field.ok_or_else(|| Error::Argument {
            index,
            name: marker.name.to_string(),
            ty: marker.ty.to_string(),
            problem: "no field has this name".to_owned(),
        })?;
        encode(index, marker, *field)
    };
    let values: Result<Vec<_>, Error> = markers.iter().enumerate().map(value).collect();
    Ok(Values::Positional(values?))
}

/// Values for all markers, in order.
///
/// # Errors
/// There are more or fewer markers than values, or a value does not fit.
pub fn by_position(arguments: &[&dyn ToValue], markers: &[ColumnSpec]) -> Result<Values, Error> {
    if arguments.len() != markers.len() {
        return Err(ilion_query::Error::Invalid(format!(
            "the statement has {} bind markers, {} values were given",
            markers.len(),
            arguments.len()
        ))
        .into());
    }
    let pairs = arguments.iter().zip(markers).enumerate();
    let values: Result<Vec<_>, Error> = pairs
        .map(|(index, (argument, marker))| encode(index, marker, *argument))
        .collect();
    Ok(Values::Positional(values?))
}

impl Arguments for () {
    fn to_values(&self, markers: &[ColumnSpec]) -> Result<Values, Error> {
        by_position(&[], markers)
    }

    fn count(&self) -> usize {
        0
    }
}

impl<T: ToValue> Arguments for [T] {
    fn to_values(&self, markers: &[ColumnSpec]) -> Result<Values, Error> {
        let arguments: Vec<&dyn ToValue> = self.iter().map(|argument| argument as &dyn ToValue).collect();
        by_position(&arguments, markers)
    }

    fn count(&self) -> usize {
        self.len()
    }
}

impl<T: ToValue> Arguments for Vec<T> {
    fn to_values(&self, markers: &[ColumnSpec]) -> Result<Values, Error> {
        self.as_slice().to_values(markers)
    }

    fn count(&self) -> usize {
        self.len()
    }
}

impl<T: ToValue, const N: usize> Arguments for [T; N] {
    fn to_values(&self, markers: &[ColumnSpec]) -> Result<Values, Error> {
        self.as_slice().to_values(markers)
    }

    fn count(&self) -> usize {
        N
    }
}

impl<A: Arguments + ?Sized> Arguments for &A {
    fn to_values(&self, markers: &[ColumnSpec]) -> Result<Values, Error> {
        (**self).to_values(markers)
    }

    fn count(&self) -> usize {
        (**self).count()
    }
}

macro_rules! tuple_arguments {
    ($($name:ident $index:tt),+) => {
        impl<$($name: ToValue),+> Arguments for ($($name,)+) {
            fn to_values(&self, markers: &[ColumnSpec]) -> Result<Values, Error> {
                by_position(&[$(&self.$index as &dyn ToValue),+], markers)
            }

            fn count(&self) -> usize {
                [$($index),+].len()
            }
        }
    };
}

for_tuples!(tuple_arguments);
