//! One value of Python as a CQL value of the type of its marker.
//!
//! What fits is what the stock driver takes for prepared statements. Classes with a counterpart in the driver (`Date`, `Time`, `Duration`)
//! are recognized by their attributes, so objects of either package fit.

use std::net::IpAddr;

use ilion::{BigInt, CqlType, Decimal, Duration, UserType, Uuid, Value};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyMapping, PyString, PyTuple};

use crate::classes::Classes;
use crate::errors::{Converted, Problem, unfit};
use crate::times::{date, time, timestamp};

/// Largest number of digits of a decimal; more would take quadratic time.
const DIGITS_MAX: usize = 100_000;

/// Converts a value for a marker of this type; `None` of Python is null.
pub fn to_value(classes: &Classes, ty: &CqlType, value: &Bound<'_, PyAny>) -> Converted<Value> {
    if value.is_none() {
        return Ok(Value::Null);
    }
    Ok(match ty {
        CqlType::Ascii | CqlType::Text => Value::Text(text(value)?),
        CqlType::Blob | CqlType::Custom(_) => Value::Blob(bytes(classes, value)?),
        CqlType::Boolean => match value.extract() {
            Ok(value) => Value::Boolean(value),
            Err(_) => return unfit("bool", value),
        },
        CqlType::TinyInt => Value::TinyInt(small(value)?),
        CqlType::SmallInt => Value::SmallInt(small(value)?),
        CqlType::Int => Value::Int(small(value)?),
        CqlType::BigInt => Value::BigInt(small(value)?),
        CqlType::Counter => Value::Counter(small(value)?),
        CqlType::Varint => Value::Varint(integer(value)?),
        CqlType::Decimal => Value::Decimal(decimal(classes, value)?),
        CqlType::Float => Value::Float(single(float(value)?)?),
        CqlType::Double => Value::Double(float(value)?),
        CqlType::Date => Value::Date(date(classes, value)?),
        CqlType::Time => Value::Time(time(classes, value)?),
        CqlType::Timestamp => Value::Timestamp(timestamp(classes, value)?),
        CqlType::Uuid => Value::Uuid(uuid(classes, value)?),
        CqlType::TimeUuid => Value::TimeUuid(uuid(classes, value)?),
        CqlType::Inet => Value::Inet(address(value)?),
        CqlType::Duration => Value::Duration(duration(value)?),
        CqlType::Empty => Value::Empty,
        CqlType::List { element, .. } => Value::List(elements(classes, element, value)?),
        CqlType::Set { element, .. } => Value::Set(elements(classes, element, value)?),
        CqlType::Vector { element, dimension } => vector(classes, element, *dimension, value)?,
        CqlType::Map {
            key, value: mapped, ..
        } => map(classes, key, mapped, value)?,
        CqlType::Tuple(types) => tuple(classes, types, value)?,
        CqlType::Udt { definition, .. } => user_type(classes, definition, value)?,
    })
}

fn text(value: &Bound<'_, PyAny>) -> Converted<String> {
    match value.cast::<PyString>() {
        Ok(text) => match text.to_cow() {
            Ok(text) => Ok(text.into_owned()),
            Err(_) => Err(Problem::Unfit(
                "it has surrogates, which UTF-8 cannot encode".to_owned(),
            )),
        },
        Err(_) => unfit("str", value),
    }
}

fn bytes(classes: &Classes, value: &Bound<'_, PyAny>) -> Converted<Vec<u8>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    if let Ok(bytes) = value.cast::<PyByteArray>() {
        return Ok(bytes.to_vec());
    }
    if value.is_instance(classes.memoryview.bind(value.py()))? {
        return Ok(value.call_method0("tobytes")?.extract()?);
    }
    unfit("bytes", value)
}

/// An integer of any size.
fn integer(value: &Bound<'_, PyAny>) -> Converted<BigInt> {
    value.extract().or_else(|_| unfit("int", value))
}

/// An integer of the size of the column.
fn small<T: TryFrom<i64>>(value: &Bound<'_, PyAny>) -> Converted<T> {
    let fits = value
        .extract::<i64>()
        .ok()
        .and_then(|small| small.try_into().ok());
    match fits {
        Some(fits) => Ok(fits),
        None => {
            let integer = integer(value)?;
            // Printing a number of a million digits takes long.
            let shown = match integer.bits() {
                ..=128 => integer.to_string(),
                bits => format!("an int of {bits} bits"),
            };
            Err(Problem::Unfit(format!("{shown} is too large for it")))
        }
    }
}

fn float(value: &Bound<'_, PyAny>) -> Converted<f64> {
    value.extract().or_else(|_| unfit("float", value))
}

fn single(value: f64) -> Converted<f32> {
    #[expect(clippy::cast_possible_truncation, reason = "the column holds no more digits")]
    let single = value as f32;
    match single.is_finite() || !value.is_finite() {
        true => Ok(single),
        false => Err(Problem::Unfit(format!("{value} is too large for it"))),
    }
}

fn decimal(classes: &Classes, value: &Bound<'_, PyAny>) -> Converted<Decimal> {
    let py = value.py();
    let class = classes.decimal.bind(py);
    let value = match value.is_instance(class)? {
        true => value.clone(),
        false => class.call1((value,)).or_else(|_| unfit("Decimal", value))?,
    };
    let (sign, digits, exponent): (u8, Bound<'_, PyTuple>, Bound<'_, PyAny>) =
        value.call_method0("as_tuple")?.extract()?;
    let Ok(exponent) = exponent.extract::<i64>() else {
        return Err(Problem::Unfit(format!("{value} is not a finite number")));
    };
    let Ok(scale) = i32::try_from(-exponent) else {
        return Err(Problem::Unfit(format!(
            "the exponent {exponent} is too large for it"
        )));
    };
    if digits.len() > DIGITS_MAX {
        return Err(Problem::Unfit(format!("it has more than {DIGITS_MAX} digits")));
    }
    let digits: Vec<u8> = digits.extract()?;
    let sign = if sign == 1 {
        ilion::Sign::Minus
    } else {
        ilion::Sign::Plus
    };
    let unscaled = BigInt::from_radix_be(sign, &digits, 10).unwrap_or_default();
    Ok(Decimal { unscaled, scale })
}

fn uuid(classes: &Classes, value: &Bound<'_, PyAny>) -> Converted<Uuid> {
    if !value.is_instance(classes.uuid.bind(value.py()))? {
        return unfit("UUID", value);
    }
    let bytes: [u8; 16] = value.getattr("bytes")?.extract()?;
    Ok(Uuid::from_bytes(bytes))
}

/// An address as text, or an object of the module ipaddress.
fn address(value: &Bound<'_, PyAny>) -> Converted<IpAddr> {
    let is_text = value.is_instance_of::<PyString>();
    if !is_text && !value.hasattr("packed")? {
        return unfit("str with an IP address", value);
    }
    let text = value.str()?;
    let parsed = text.to_cow()?.parse();
    parsed.map_err(|_| Problem::Unfit(format!("{text:?} is no IP address")))
}

fn duration(value: &Bound<'_, PyAny>) -> Converted<Duration> {
    let names = ["months", "days", "nanoseconds"];
    if !names.iter().all(|name| value.hasattr(*name).unwrap_or(false)) {
        return unfit("Duration", value);
    }
    let months = small(&value.getattr("months")?)?;
    let days = small(&value.getattr("days")?)?;
    let nanos = small(&value.getattr("nanoseconds")?)?;
    Duration::new(months, days, nanos)
        .ok_or_else(|| Problem::Unfit("its parts have different signs".to_owned()))
}

/// Adds the place to the reason.
fn inside(place: &str) -> impl Fn(Problem) -> Problem {
    move |problem| match problem {
        Problem::Unfit(reason) => Problem::Unfit(format!("{place}: {reason}")),
        raised @ Problem::Raised(_) => raised,
    }
}

/// The elements of any iterable but text, bytes and dict.
fn elements(classes: &Classes, ty: &CqlType, value: &Bound<'_, PyAny>) -> Converted<Vec<Value>> {
    let is_other = value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyBytes>()
        || value.is_instance(classes.mapping.bind(value.py()))?;
    let Some(iterated) = value.try_iter().ok().filter(|_| !is_other) else {
        return unfit("a list, a set or another iterable", value);
    };
    let one = |(index, element): (usize, PyResult<Bound<'_, PyAny>>)| {
        let value = to_value(classes, ty, &element?).and_then(not_null);
        value.map_err(inside(&format!("element {index}")))
    };
    iterated.enumerate().map(one).collect()
}

fn not_null(value: Value) -> Converted<Value> {
    match value {
        Value::Null => Err(Problem::Unfit("None is no element of a collection".to_owned())),
        value => Ok(value),
    }
}

fn vector(classes: &Classes, ty: &CqlType, dimension: u32, value: &Bound<'_, PyAny>) -> Converted<Value> {
    let values = elements(classes, ty, value)?;
    match values.len() == dimension as usize {
        true => Ok(Value::Vector(values)),
        false => Err(Problem::Unfit(format!(
            "it has {dimension} elements, {} were given",
            values.len()
        ))),
    }
}

fn map(classes: &Classes, key: &CqlType, mapped: &CqlType, value: &Bound<'_, PyAny>) -> Converted<Value> {
    if !value.is_instance_of::<PyDict>() && !value.hasattr("items")? {
        return unfit("dict", value);
    }
    let items = value.call_method0("items")?;
    let one = |item: PyResult<Bound<'_, PyAny>>| {
        let (one, other): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item?.extract()?;
        let key = to_value(classes, key, &one).and_then(not_null);
        let mapped = to_value(classes, mapped, &other).and_then(not_null);
        let place = |problem| inside(&format!("value of {one}"))(problem);
        Ok((key.map_err(inside("key"))?, mapped.map_err(place)?))
    };
    items
        .try_iter()?
        .map(one)
        .collect::<Converted<_>>()
        .map(Value::Map)
}

/// Components by position; missing ones at the end are null.
fn components<'t>(
    classes: &Classes,
    types: impl ExactSizeIterator<Item = &'t CqlType>,
    value: &Bound<'_, PyAny>,
) -> Converted<Vec<Value>> {
    let given: Vec<Bound<'_, PyAny>> = value.try_iter()?.collect::<PyResult<_>>()?;
    if given.len() > types.len() {
        let (has, given) = (types.len(), given.len());
        return Err(Problem::Unfit(format!(
            "it has {has} components, {given} were given"
        )));
    }
    let one = |(index, ty): (usize, &CqlType)| match given.get(index) {
        Some(value) => to_value(classes, ty, value).map_err(inside(&format!("component {index}"))),
        None => Ok(Value::Null),
    };
    types.enumerate().map(one).collect()
}

/// True for tuples and lists, named tuples too.
fn is_sequence(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyTuple>() || value.is_instance_of::<pyo3::types::PyList>()
}

fn tuple(classes: &Classes, types: &[CqlType], value: &Bound<'_, PyAny>) -> Converted<Value> {
    match is_sequence(value) {
        true => components(classes, types.iter(), value).map(Value::Tuple),
        false => unfit("tuple", value),
    }
}

/// A tuple with the fields in their order, a dict with their names, or an object that has them as attributes.
fn user_type(classes: &Classes, definition: &UserType, value: &Bound<'_, PyAny>) -> Converted<Value> {
    let fields = &definition.fields;
    if is_sequence(value) {
        let types: Vec<&CqlType> = fields.iter().map(|(_, ty)| ty).collect();
        return components(classes, types.into_iter(), value).map(Value::Udt);
    }
    let field = |(name, ty): &(String, CqlType), found: Option<Bound<'_, PyAny>>| match found {
        Some(value) => to_value(classes, ty, &value).map_err(inside(&format!("field {name}"))),
        None => Ok(Value::Null),
    };
    if let Ok(named) = value.cast::<PyMapping>() {
        for key in named.keys()? {
            let known = |name: &str| fields.iter().any(|(field, _)| field == name);
            if !key.extract::<String>().is_ok_and(|key| known(&key)) {
                return Err(Problem::Unfit(format!("it has no field {key}")));
            }
        }
        let value = |of: &(String, CqlType)| {
            let found = named.contains(&of.0)?.then(|| named.get_item(&of.0));
            field(of, found.transpose()?)
        };
        return fields.iter().map(value).collect::<Converted<_>>().map(Value::Udt);
    }
    if !fields
        .iter()
        .any(|(name, _)| value.hasattr(name).unwrap_or(false))
    {
        return unfit(
            "a tuple, a dict, or an object with the fields as attributes",
            value,
        );
    }
    let value = |of: &(String, CqlType)| field(of, value.getattr_opt(&of.0)?);
    fields.iter().map(value).collect::<Converted<_>>().map(Value::Udt)
}
