//! `string.find`, `match`, `gmatch` and `gsub`.

use std::sync::Arc;

use mlua::{Function, Lua, MultiValue, Table, Value};
use parking_lot::Mutex;

use crate::fuel::Fuel;
use crate::pattern::{Capture, Matcher};

type Bytes = Vec<u8>;

/// Puts the four functions into a table.
pub(crate) fn add(lua: &Lua, table: &Table, fuel: &Arc<Fuel>) -> mlua::Result<()> {
    table.raw_set("find", find(lua, fuel.clone())?)?;
    table.raw_set("match", match_function(lua, fuel.clone())?)?;
    table.raw_set("gmatch", each_match(lua, fuel.clone())?)?;
    table.raw_set("gsub", substitute(lua, fuel.clone())?)
}

/// A match: from, to, and what the parentheses took.
struct Match {
    from: usize,
    to: usize,
    captures: Vec<Capture>,
}

/// The first match at or after `from`.
fn search(text: &[u8], pattern: &[u8], from: usize, fuel: &Fuel) -> mlua::Result<Option<Match>> {
    let is_anchored = pattern.first() == Some(&b'^');
    let mut matcher = Matcher::new(text, pattern, fuel);
    for start in from..=text.len() {
        let end = matcher
            .match_at(start, usize::from(is_anchored))
            .map_err(mlua::Error::runtime)?;
        if let Some(to) = end {
            return Ok(Some(Match {
                from: start,
                to,
                captures: matcher.captures().to_vec(),
            }));
        }
        if is_anchored {
            break;
        }
    }
    Ok(None)
}

/// What a match gives: its captures, or all of it.
fn captured(lua: &Lua, text: &[u8], found: &Match) -> mlua::Result<Vec<Value>> {
    if found.captures.is_empty() {
        return Ok(vec![Value::String(
            lua.create_string(&text[found.from..found.to])?,
        )]);
    }
    let value = |capture: &Capture| match *capture {
        Capture::Text(from, to) => Ok(Value::String(lua.create_string(&text[from..to])?)),
        Capture::Place(at) => Ok(Value::Integer(i64::try_from(at).unwrap_or(i64::MAX) + 1)),
        Capture::Open(_) => Err(mlua::Error::runtime("unfinished capture")),
    };
    found.captures.iter().map(value).collect()
}

/// Where to begin, from 0, of a place that counts from 1 or, if negative, from the end; nothing is behind the end.
fn start_of(init: Option<i64>, len: usize) -> Option<usize> {
    let len_signed = i64::try_from(len).unwrap_or(i64::MAX);
    let start = match init.unwrap_or(1) {
        init if init > 0 => init - 1,
        0 => 0,
        init => len_signed.saturating_add(init).max(0),
    };
    usize::try_from(start).ok().filter(|start| *start <= len)
}

fn find(lua: &Lua, fuel: Arc<Fuel>) -> mlua::Result<Function> {
    lua.create_function(
        move |lua, (text, pattern, init, plain): (mlua::LuaString, mlua::LuaString, Option<i64>, Option<bool>)| {
            let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
            let Some(start) = start_of(init, text.len()) else {
                return Ok(MultiValue::from_vec(vec![Value::Nil]));
            };
            let found = if plain.unwrap_or(false) {
                let cost = text.len().saturating_mul(pattern.len().max(1)) / 16;
                fuel.burn(u32::try_from(cost).unwrap_or(u32::MAX))
                    .map_err(mlua::Error::runtime)?;
                plain_search(&text, &pattern, start)
            } else {
                search(&text, &pattern, start, &fuel)?
            };
            let Some(found) = found else {
                return Ok(MultiValue::from_vec(vec![Value::Nil]));
            };
            let place = |at: usize| Value::Integer(i64::try_from(at).unwrap_or(i64::MAX));
            let mut values = vec![place(found.from + 1), place(found.to)];
            if !found.captures.is_empty() {
                values.extend(captured(lua, &text, &found)?);
            }
            Ok(MultiValue::from_vec(values))
        },
    )
}

fn plain_search(text: &[u8], wanted: &[u8], start: usize) -> Option<Match> {
    let from = (start..=text.len()).find(|from| text[*from..].starts_with(wanted))?;
    Some(Match {
        from,
        to: from + wanted.len(),
        captures: Vec::new(),
    })
}

fn match_function(lua: &Lua, fuel: Arc<Fuel>) -> mlua::Result<Function> {
    lua.create_function(
        move |lua, (text, pattern, init): (mlua::LuaString, mlua::LuaString, Option<i64>)| {
            let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
            let found = match start_of(init, text.len()) {
                Some(start) => search(&text, &pattern, start, &fuel)?,
                None => None,
            };
            Ok(MultiValue::from_vec(match found {
                Some(found) => captured(lua, &text, &found)?,
                None => vec![Value::Nil],
            }))
        },
    )
}

fn each_match(lua: &Lua, fuel: Arc<Fuel>) -> mlua::Result<Function> {
    lua.create_function(move |lua, (text, pattern): (mlua::LuaString, mlua::LuaString)| {
        let (text, pattern): (Bytes, Bytes) = (text.as_bytes().to_vec(), pattern.as_bytes().to_vec());
        let fuel = fuel.clone();
        // Where to go on, and where the last match ended: an empty match does not stand there again.
        let place = Mutex::new((0, None));
        lua.create_function(move |lua, _: MultiValue| {
            let (mut from, last) = *place.lock();
            while let Some(found) = search_from(&text, &pattern, from, &fuel)? {
                if Some(found.to) != last {
                    *place.lock() = (found.to, Some(found.to));
                    return Ok(MultiValue::from_vec(captured(lua, &text, &found)?));
                }
                from = found.from + 1;
            }
            *place.lock() = (text.len() + 1, last);
            Ok(MultiValue::from_vec(vec![Value::Nil]))
        })
    })
}

/// As [`search`]; behind the end is nothing.
fn search_from(text: &[u8], pattern: &[u8], from: usize, fuel: &Fuel) -> mlua::Result<Option<Match>> {
    if from > text.len() {
        return Ok(None);
    }
    search(text, pattern, from, fuel)
}

fn substitute(lua: &Lua, fuel: Arc<Fuel>) -> mlua::Result<Function> {
    lua.create_function(
        move |lua, (text, pattern, by, count_max): (mlua::LuaString, mlua::LuaString, Value, Option<i64>)| {
            let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
            let is_anchored = pattern.first() == Some(&b'^');
            let mut out: Bytes = Vec::new();
            let (mut at, mut count) = (0, 0);
            let mut last = None;
            let mut matcher = Matcher::new(&text, &pattern, &fuel);
            while count < count_max.unwrap_or(i64::MAX) {
                let end = matcher
                    .match_at(at, usize::from(is_anchored))
                    .map_err(mlua::Error::runtime)?;
                match end.filter(|end| Some(*end) != last) {
                    Some(to) => {
                        count += 1;
                        let found = Match {
                            from: at,
                            to,
                            captures: matcher.captures().to_vec(),
                        };
                        append_replacement(lua, &text, &found, &by, &mut out)?;
                        at = to;
                        last = Some(to);
                    }
                    None if at < text.len() => {
                        out.push(text[at]);
                        at += 1;
                    }
                    None => break,
                }
                if out.len() > fuel.memory_bytes() {
                    return Err(mlua::Error::runtime("resulting string too large"));
                }
                if at > text.len() || is_anchored {
                    break;
                }
            }
            out.extend_from_slice(&text[at.min(text.len())..]);
            Ok((lua.create_string(out)?, count))
        },
    )
}

fn append_replacement(
    lua: &Lua,
    text: &[u8],
    found: &Match,
    by: &Value,
    out: &mut Bytes,
) -> mlua::Result<()> {
    let values = captured(lua, text, found)?;
    let first = values.first().cloned().unwrap_or(Value::Nil);
    let replacement = match by {
        Value::String(template) => return append_template(&template.as_bytes(), text, found, &values, out),
        Value::Integer(_) | Value::Number(_) => by.clone(),
        Value::Table(table) => table.get(first)?,
        Value::Function(function) => function.call(MultiValue::from_vec(values))?,
        other => {
            return Err(mlua::Error::runtime(format!(
                "bad argument #3 to 'gsub' (string/function/table expected, got {})",
                other.type_name()
            )));
        }
    };
    match &replacement {
        Value::Nil | Value::Boolean(false) => out.extend_from_slice(&text[found.from..found.to]),
        other => append_value(other, out)?,
    }
    Ok(())
}

/// `%0` is the whole match, `%1` the first capture, `%%` a percent sign.
fn append_template(
    template: &[u8],
    text: &[u8],
    found: &Match,
    values: &[Value],
    out: &mut Bytes,
) -> mlua::Result<()> {
    let mut bytes = template.iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'%') => out.push(b'%'),
            Some(b'0') => out.extend_from_slice(&text[found.from..found.to]),
            Some(digit) if digit.is_ascii_digit() => match values.get(usize::from(digit - b'1')) {
                Some(value) => append_value(value, out)?,
                None => {
                    return Err(mlua::Error::runtime(format!(
                        "invalid capture index %{} in replacement string",
                        char::from(*digit)
                    )));
                }
            },
            _ => return Err(mlua::Error::runtime("invalid use of '%' in replacement string")),
        }
    }
    Ok(())
}

fn append_value(value: &Value, out: &mut Bytes) -> mlua::Result<()> {
    match value {
        Value::String(text) => out.extend_from_slice(&text.as_bytes()),
        Value::Integer(_) | Value::Number(_) => out.extend_from_slice(value.to_string()?.as_bytes()),
        other => {
            return Err(mlua::Error::runtime(format!(
                "invalid replacement value (a {})",
                other.type_name()
            )));
        }
    }
    Ok(())
}
