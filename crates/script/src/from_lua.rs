//! From the Lua value that a script returns to a value of CQL: the reverse of `to_lua`. Every type that is not text also accepts a
//! string that CQL could parse. A number with a fraction is not an integer. A table may contain another table a thousand times, and
//! that one a third table, and so on. So every step is paid for, and the size of the result counts against the memory of the call.

use ilion_types::{CqlType, Duration, Value};
use mlua::Table;

use crate::fuel::Fuel;

/// The serialized value; `None` is null.
pub(crate) fn value(returned: &mlua::Value, ty: &CqlType, fuel: &Fuel) -> mlua::Result<Option<Vec<u8>>> {
    match of(returned, ty, fuel)? {
        Value::Null => Ok(None),
        value => {
            let bytes = value.to_bytes(ty).map_err(mlua::Error::external)?;
            ty.validate(&bytes).map_err(mlua::Error::external)?;
            Ok(Some(bytes))
        }
    }
}

fn of(returned: &mlua::Value, ty: &CqlType, fuel: &Fuel) -> mlua::Result<Value> {
    use mlua::Value as Lua;
    let text_bytes = match returned {
        Lua::String(text) => text.as_bytes().len(),
        _ => 0,
    };
    fuel.give_back(size_of::<Value>() + text_bytes)?;
    if matches!(ty, CqlType::Varint | CqlType::Decimal) {
        fuel.burn_digits(text_bytes)?;
    }
    match (returned, ty) {
        (Lua::Nil, _) => Ok(Value::Null),
        (Lua::String(text), CqlType::Ascii | CqlType::Text) => Ok(Value::Text(text.to_str()?.to_owned())),
        (Lua::String(bytes), CqlType::Blob | CqlType::Custom(_)) => {
            Ok(Value::Blob(bytes.as_bytes().to_vec()))
        }
        (Lua::Boolean(value), CqlType::Boolean) => Ok(Value::Boolean(*value)),
        (Lua::Integer(value), _) if is_integer(ty) => integer(*value, ty),
        (Lua::Number(value), _) if is_integer(ty) => match exact(*value) {
            Some(value) => integer(value, ty),
            None => Err(no_value(&value.to_string(), ty)),
        },
        (Lua::Number(value), CqlType::Double) => Ok(Value::Double(*value)),
        (Lua::Number(value), CqlType::Float) => Ok(Value::Float(narrow(*value))),
        (Lua::Integer(value), CqlType::Double) => Ok(Value::Double(widen(*value))),
        (Lua::Integer(value), CqlType::Float) => Ok(Value::Float(narrow(widen(*value)))),
        (Lua::Integer(value), CqlType::Varint | CqlType::Decimal) => parsed(&value.to_string(), ty),
        (Lua::Number(value), CqlType::Varint) => match exact(*value) {
            Some(value) => parsed(&value.to_string(), ty),
            None => Err(no_value(&value.to_string(), ty)),
        },
        (Lua::Number(value), CqlType::Decimal) => parsed(&value.to_string(), ty),
        (Lua::String(text), _) if !is_compound(ty) => parsed(&text.to_str()?, ty),
        (Lua::Table(table), _) => compound(table, ty, fuel),
        (other, ty) => Err(no_value(other.type_name(), ty)),
    }
}

fn is_integer(ty: &CqlType) -> bool {
    matches!(
        ty,
        CqlType::TinyInt
            | CqlType::SmallInt
            | CqlType::Int
            | CqlType::BigInt
            | CqlType::Counter
            | CqlType::Time
            | CqlType::Timestamp
    )
}

fn is_compound(ty: &CqlType) -> bool {
    ty.is_collection()
        || matches!(
            ty,
            CqlType::Tuple(_) | CqlType::Udt { .. } | CqlType::Vector { .. }
        )
}

fn integer(value: i64, ty: &CqlType) -> mlua::Result<Value> {
    let fitting = match ty {
        CqlType::TinyInt => i8::try_from(value).ok().map(Value::TinyInt),
        CqlType::SmallInt => i16::try_from(value).ok().map(Value::SmallInt),
        CqlType::Int => i32::try_from(value).ok().map(Value::Int),
        CqlType::Counter => Some(Value::Counter(value)),
        CqlType::Time => Some(Value::Time(value)),
        CqlType::Timestamp => Some(Value::Timestamp(value)),
        _ => Some(Value::BigInt(value)),
    };
    fitting.ok_or_else(|| no_value(&value.to_string(), ty))
}

/// The integer that equals a number; `None` if the number has a fraction or is too large.
fn exact(value: f64) -> Option<i64> {
    const END: f64 = 9_223_372_036_854_775_808.0;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and inside the range")]
    (value.fract() == 0.0 && (-END..END).contains(&value)).then_some(value as i64)
}

#[expect(clippy::cast_possible_truncation, reason = "the nearest float is meant")]
fn narrow(value: f64) -> f32 {
    value as f32
}

#[expect(clippy::cast_precision_loss, reason = "the nearest double is meant")]
fn widen(value: i64) -> f64 {
    value as f64
}

fn parsed(text: &str, ty: &CqlType) -> mlua::Result<Value> {
    let bytes = ty.parse_plain(text).map_err(mlua::Error::external)?;
    Value::decode(ty, &bytes).map_err(mlua::Error::external)
}

fn compound(table: &Table, ty: &CqlType, fuel: &Fuel) -> mlua::Result<Value> {
    match ty {
        CqlType::List { element, .. } => Ok(Value::List(members(table, element, fuel)?)),
        CqlType::Set { element, .. } => Ok(Value::Set(members(table, element, fuel)?)),
        CqlType::Vector { element, .. } => Ok(Value::Vector(members(table, element, fuel)?)),
        CqlType::Map { key, value, .. } => {
            let entry = |pair: mlua::Result<(mlua::Value, mlua::Value)>| {
                let (entry_key, entry_value) = pair?;
                Ok((of(&entry_key, key, fuel)?, of(&entry_value, value, fuel)?))
            };
            table
                .pairs()
                .map(entry)
                .collect::<mlua::Result<_>>()
                .map(Value::Map)
        }
        CqlType::Tuple(types) => {
            let member = |(index, ty): (usize, &CqlType)| of(&table.raw_get(index + 1)?, ty, fuel);
            types
                .iter()
                .enumerate()
                .map(member)
                .collect::<mlua::Result<_>>()
                .map(Value::Tuple)
        }
        CqlType::Udt { definition, .. } => {
            let field = |(name, ty): &(String, CqlType)| of(&table.raw_get(name.as_str())?, ty, fuel);
            definition
                .fields
                .iter()
                .map(field)
                .collect::<mlua::Result<_>>()
                .map(Value::Udt)
        }
        CqlType::Duration => duration(table),
        other => Err(no_value("table", other)),
    }
}

fn members(table: &Table, element: &CqlType, fuel: &Fuel) -> mlua::Result<Vec<Value>> {
    let member = |member: mlua::Result<mlua::Value>| of(&member?, element, fuel);
    table.sequence_values().map(member).collect()
}

fn duration(table: &Table) -> mlua::Result<Value> {
    let part = |name: &str| -> mlua::Result<i64> { Ok(table.raw_get::<Option<i64>>(name)?.unwrap_or(0)) };
    let (months, days, nanoseconds) = (part("months")?, part("days")?, part("nanoseconds")?);
    i32::try_from(months)
        .ok()
        .zip(i32::try_from(days).ok())
        .and_then(|(months, days)| Duration::new(months, days, nanoseconds))
        .map(Value::Duration)
        .ok_or_else(|| no_value("this table", &CqlType::Duration))
}

fn no_value(what: &str, ty: &CqlType) -> mlua::Error {
    mlua::Error::runtime(format!("it returned {what}, which is not a value of type {ty}"))
}
