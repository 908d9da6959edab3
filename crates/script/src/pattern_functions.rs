//! `string.find`, `match`, `gsub`, and the base of `gmatch` in `library.lua`. They pay for each step, and their memory outside
//! of Lua is at most as large as Lua's.

use std::sync::Arc;

use mlua::{Function, Lua, LuaString, MultiValue, Table, Value};

use crate::fuel::Fuel;
use crate::pattern::{Capture, Matcher};

/// Adds the functions to a table.
pub(crate) fn add(lua: &Lua, table: &Table, fuel: &Arc<Fuel>) -> mlua::Result<()> {
    table.raw_set("find", find(lua, fuel.clone())?)?;
    table.raw_set("match", match_function(lua, fuel.clone())?)?;
    table.raw_set("gsub", substitute(lua, fuel.clone())?)
}

/// A match: start, end and captures.
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
        let end = matcher.match_at(start, usize::from(is_anchored))?;
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

/// The values of a match: its captures, or the whole match.
fn captured(lua: &Lua, text: &[u8], found: &Match, fuel: &Fuel) -> mlua::Result<Vec<Value>> {
    fuel.burn_bytes((found.to - found.from).saturating_mul(found.captures.len().max(1)))?;
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

/// The start index, from 0, for a position that counts from 1 or, if negative, from the end; `None` if it is after the end.
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
        move |lua, (text, pattern, init, plain): (LuaString, LuaString, Option<i64>, Option<bool>)| {
            let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
            let Some(start) = start_of(init, text.len()) else {
                return Ok(MultiValue::from_vec(vec![Value::Nil]));
            };
            let found = if plain.unwrap_or(false) {
                plain_search(&text, &pattern, start, &fuel)?
            } else {
                search(&text, &pattern, start, &fuel)?
            };
            let Some(found) = found else {
                return Ok(MultiValue::from_vec(vec![Value::Nil]));
            };
            let mut values = vec![to_integer(found.from + 1), to_integer(found.to)];
            if !found.captures.is_empty() {
                values.extend(captured(lua, &text, &found, &fuel)?);
            }
            Ok(MultiValue::from_vec(values))
        },
    )
}

fn plain_search(text: &[u8], wanted: &[u8], start: usize, fuel: &Fuel) -> mlua::Result<Option<Match>> {
    for from in start..=text.len() {
        let alike = text[from..].iter().zip(wanted).take_while(|(a, b)| a == b);
        let alike_len = alike.count();
        fuel.burn_bytes(alike_len.saturating_mul(16))?;
        if alike_len == wanted.len() {
            return Ok(Some(Match {
                from,
                to: from + wanted.len(),
                captures: Vec::new(),
            }));
        }
    }
    Ok(None)
}

fn match_function(lua: &Lua, fuel: Arc<Fuel>) -> mlua::Result<Function> {
    lua.create_function(
        move |lua, (text, pattern, init): (LuaString, LuaString, Option<i64>)| {
            let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
            let found = match start_of(init, text.len()) {
                Some(start) => search(&text, &pattern, start, &fuel)?,
                None => None,
            };
            Ok(MultiValue::from_vec(match found {
                Some(found) => captured(lua, &text, &found, &fuel)?,
                None => vec![Value::Nil],
            }))
        },
    )
}

/// `next_match(text, pattern, init, place)` of `library.lua`: returns where to continue (from 0), and the values of the next match.
/// `place` is nil at first, then the end of the last match; no empty match may follow there.
pub(crate) fn next_match(lua: &Lua, fuel: &Arc<Fuel>) -> mlua::Result<Function> {
    let fuel = fuel.clone();
    lua.create_function(
        move |lua, (text, pattern, init, place): (LuaString, LuaString, Option<i64>, Option<usize>)| {
            let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
            let mut from = match place {
                Some(place) => place,
                None => start_of(init, text.len()).unwrap_or(text.len() + 1),
            };
            while let Some(found) = search_from(&text, &pattern, from, &fuel)? {
                if Some(found.to) != place {
                    let mut given = captured(lua, &text, &found, &fuel)?;
                    given.insert(0, to_integer(found.to));
                    return Ok(MultiValue::from_vec(given));
                }
                from = found.from + 1;
            }
            Ok(MultiValue::from_vec(vec![to_integer(text.len() + 1), Value::Nil]))
        },
    )
}

fn to_integer(place: usize) -> Value {
    Value::Integer(i64::try_from(place).unwrap_or(i64::MAX))
}

/// Like [`search`], but `None` if `from` is after the end.
fn search_from(text: &[u8], pattern: &[u8], from: usize, fuel: &Fuel) -> mlua::Result<Option<Match>> {
    if from > text.len() {
        return Ok(None);
    }
    search(text, pattern, from, fuel)
}

fn substitute(lua: &Lua, fuel: Arc<Fuel>) -> mlua::Result<Function> {
    lua.create_function(
        move |lua, (text, pattern, by, count_max): (LuaString, LuaString, Value, Option<i64>)| {
            let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
            let is_anchored = pattern.first() == Some(&b'^');
            let mut out = Output {
                bytes: Vec::new(),
                fuel: &fuel,
            };
            let (mut at, mut count) = (0, 0);
            let mut last = None;
            let mut matcher = Matcher::new(&text, &pattern, &fuel);
            while count < count_max.unwrap_or(i64::MAX) {
                let end = matcher.match_at(at, usize::from(is_anchored))?;
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
                        out.add(&text[at..=at])?;
                        at += 1;
                    }
                    None => break,
                }
                if at > text.len() || is_anchored {
                    break;
                }
            }
            out.add(&text[at.min(text.len())..])?;
            Ok((lua.create_string(out.bytes)?, count))
        },
    )
}

/// The result text of `gsub`.
struct Output<'f> {
    bytes: Vec<u8>,
    fuel: &'f Fuel,
}

impl Output<'_> {
    fn add(&mut self, bytes: &[u8]) -> mlua::Result<()> {
        self.fuel.check_bytes(self.bytes.len() + bytes.len())?;
        self.fuel.burn_bytes(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn add_value(&mut self, lua: &Lua, value: &Value) -> mlua::Result<()> {
        match lua.coerce_string(value.clone())? {
            Some(text) => self.add(&text.as_bytes()),
            None => Err(mlua::Error::runtime(format!(
                "invalid replacement value (a {})",
                value.type_name()
            ))),
        }
    }
}

fn append_replacement(
    lua: &Lua,
    text: &[u8],
    found: &Match,
    by: &Value,
    out: &mut Output<'_>,
) -> mlua::Result<()> {
    let values = captured(lua, text, found, out.fuel)?;
    let first = values.first().cloned().unwrap_or(Value::Nil);
    let replacement = match by {
        Value::String(template) => {
            return append_template(lua, &template.as_bytes(), text, found, &values, out);
        }
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
        Value::Nil | Value::Boolean(false) => out.add(&text[found.from..found.to]),
        other => out.add_value(lua, other),
    }
}

/// Appends the template. In it, `%0` is the whole match, `%1` the first capture, and `%%` a percent sign.
fn append_template(
    lua: &Lua,
    template: &[u8],
    text: &[u8],
    found: &Match,
    values: &[Value],
    out: &mut Output<'_>,
) -> mlua::Result<()> {
    let mut rest = template;
    while !rest.is_empty() {
        let plain_len = rest.iter().take_while(|byte| **byte != b'%').count();
        if plain_len > 0 {
            out.add(&rest[..plain_len])?;
            rest = &rest[plain_len..];
            continue;
        }
        match rest.get(1) {
            Some(b'%') => out.add(b"%")?,
            Some(b'0') => out.add(&text[found.from..found.to])?,
            Some(digit) if digit.is_ascii_digit() => match values.get(usize::from(digit - b'1')) {
                Some(value) => out.add_value(lua, value)?,
                None => {
                    return Err(mlua::Error::runtime(format!(
                        "invalid capture index %{} in replacement string",
                        char::from(*digit)
                    )));
                }
            },
            _ => return Err(mlua::Error::runtime("invalid use of '%' in replacement string")),
        }
        rest = &rest[2..];
    }
    Ok(())
}
