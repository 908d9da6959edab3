//! From values of CQL to Lua.
//!
//! Integers become integers, and so do `timestamp` (milliseconds since 1970) and `time` (nanoseconds of the day). `float` and
//! `double` become numbers, a text a string, a blob the string of its bytes. A value of a type without a counterpart becomes the
//! string that CQL prints (`varint`, `decimal`, `uuid`, `inet`, `date`). Lists, sets, tuples and vectors become tables with indexes
//! from 1, maps tables by key, user types tables by field name; a duration has `months`, `days` and `nanoseconds`. Null is `nil`, and
//! so is an empty value of a type without empty values.

use ilion_types::{CqlType, Value};
use mlua::{IntoLua, Lua, Table};

use crate::fuel::Fuel;

/// The Lua value of a serialized value.
pub(crate) fn value(lua: &Lua, fuel: &Fuel, ty: &CqlType, bytes: Option<&[u8]>) -> mlua::Result<mlua::Value> {
    let Some(bytes) = bytes else {
        return Ok(mlua::Value::Nil);
    };
    fuel.check_bytes(bytes.len())?;
    fuel.burn_bytes(bytes.len())?;
    let decoded = Value::decode(ty, bytes).map_err(mlua::Error::external)?;
    of(lua, fuel, ty, decoded)
}

fn of(lua: &Lua, fuel: &Fuel, ty: &CqlType, value: Value) -> mlua::Result<mlua::Value> {
    fuel.burn(1)?;
    Ok(match value {
        Value::Null | Value::Empty => mlua::Value::Nil,
        Value::Text(text) => text.into_lua(lua)?,
        Value::Blob(bytes) => mlua::Value::String(lua.create_string(bytes)?),
        Value::Boolean(value) => mlua::Value::Boolean(value),
        Value::TinyInt(value) => mlua::Value::Integer(value.into()),
        Value::SmallInt(value) => mlua::Value::Integer(value.into()),
        Value::Int(value) => mlua::Value::Integer(value.into()),
        Value::BigInt(value) | Value::Counter(value) | Value::Time(value) | Value::Timestamp(value) => {
            mlua::Value::Integer(value)
        }
        Value::Float(value) => mlua::Value::Number(value.into()),
        Value::Double(value) => mlua::Value::Number(value),
        Value::Varint(_)
        | Value::Decimal(_)
        | Value::Date(_)
        | Value::Uuid(_)
        | Value::TimeUuid(_)
        | Value::Inet(_) => {
            let bytes = value.to_bytes(ty).map_err(mlua::Error::external)?;
            // A byte has about two and a half digits.
            fuel.burn_digits(bytes.len().saturating_mul(5) / 2)?;
            ty.print_plain(&bytes)
                .map_err(mlua::Error::external)?
                .into_lua(lua)?
        }
        Value::Duration(duration) => {
            let table = lua.create_table()?;
            table.raw_set("months", duration.months())?;
            table.raw_set("days", duration.days())?;
            table.raw_set("nanoseconds", duration.nanos())?;
            mlua::Value::Table(table)
        }
        Value::List(values) | Value::Set(values) | Value::Vector(values) => {
            let element = element_type(ty);
            let members = values.into_iter().map(|value| (element, value));
            mlua::Value::Table(sequence(lua, fuel, members)?)
        }
        Value::Tuple(values) => {
            let types: &[CqlType] = match ty {
                CqlType::Tuple(types) => types,
                _ => &[],
            };
            mlua::Value::Table(sequence(lua, fuel, types.iter().zip(values))?)
        }
        Value::Map(entries) => mlua::Value::Table(map(lua, fuel, ty, entries)?),
        Value::Udt(values) => mlua::Value::Table(fields(lua, fuel, ty, values)?),
    })
}

fn element_type(ty: &CqlType) -> &CqlType {
    match ty {
        CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
            element
        }
        other => other,
    }
}

fn sequence<'t>(
    lua: &Lua,
    fuel: &Fuel,
    members: impl Iterator<Item = (&'t CqlType, Value)>,
) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    for (index, (ty, value)) in members.enumerate() {
        table.raw_set(index + 1, of(lua, fuel, ty, value)?)?;
    }
    Ok(table)
}

fn map(lua: &Lua, fuel: &Fuel, ty: &CqlType, entries: Vec<(Value, Value)>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let CqlType::Map { key, value, .. } = ty else {
        return Ok(table);
    };
    for (entry_key, entry_value) in entries {
        table.raw_set(of(lua, fuel, key, entry_key)?, of(lua, fuel, value, entry_value)?)?;
    }
    Ok(table)
}

fn fields(lua: &Lua, fuel: &Fuel, ty: &CqlType, values: Vec<Value>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let CqlType::Udt { definition, .. } = ty else {
        return Ok(table);
    };
    for ((name, ty), value) in definition.fields.iter().zip(values) {
        table.raw_set(name.as_str(), of(lua, fuel, ty, value)?)?;
    }
    Ok(table)
}
