//! Which names a script sees. What is not listed here does not exist for it.
//!
//! Left out on purpose: all that reaches outside (`io`, `os`, `debug`, `require`, `load`), that differs from call to call
//! (`math.random`), that could catch the end of the fuel (`pcall`) or run where fuel is not counted (`coroutine`,
//! metatables with `__gc`), and functions in C that may run for long without an instruction of Lua (`table.move`,
//! `string.rep`, patterns): the last two are there in forms that pay.

use std::sync::Arc;

use mlua::{Lua, Table, Value};

use crate::fuel::Fuel;
use crate::pattern_functions;

const BASE: [&str; 9] = [
    "assert", "error", "ipairs", "next", "pairs", "select", "tonumber", "tostring", "type",
];
const STRING: [&str; 8] = [
    "byte", "char", "format", "len", "lower", "reverse", "sub", "upper",
];
const TABLE: [&str; 6] = ["concat", "insert", "pack", "remove", "sort", "unpack"];
const MATH: [&str; 22] = [
    "abs",
    "acos",
    "asin",
    "atan",
    "ceil",
    "cos",
    "deg",
    "exp",
    "floor",
    "fmod",
    "huge",
    "log",
    "max",
    "maxinteger",
    "min",
    "mininteger",
    "modf",
    "pi",
    "rad",
    "sin",
    "sqrt",
    "tan",
];
const MATH_MORE: [&str; 3] = ["tointeger", "type", "ult"];
const UTF8: [&str; 6] = ["char", "charpattern", "codepoint", "codes", "len", "offset"];

/// The read-only table in which a script finds its globals.
pub(crate) fn environment(lua: &Lua, fuel: &Arc<Fuel>) -> mlua::Result<Table> {
    let globals = lua.globals();
    let string: Table = globals.get("string")?;
    let own = lua.create_table()?;
    copy(&string, &own, &STRING)?;
    own.set("rep", repeat(lua, fuel)?)?;
    pattern_functions::add(lua, &own, fuel)?;
    // Methods of strings, `("x"):rep(3)`, are looked for in the library's own table.
    string.clear()?;
    for pair in own.pairs::<String, Value>() {
        let (name, function) = pair?;
        string.raw_set(name, function)?;
    }
    let visible = lua.create_table()?;
    copy(&globals, &visible, &BASE)?;
    visible.set("string", read_only(lua, own)?)?;
    for (name, members) in [("table", &TABLE[..]), ("math", &MATH), ("utf8", &UTF8)] {
        let library: Table = globals.get(name)?;
        let members_of = lua.create_table()?;
        copy(&library, &members_of, members)?;
        if name == "math" {
            copy(&library, &members_of, &MATH_MORE)?;
        }
        visible.set(name, read_only(lua, members_of)?)?;
    }
    read_only(lua, visible)
}

fn copy(from: &Table, to: &Table, names: &[&str]) -> mlua::Result<()> {
    names
        .iter()
        .try_for_each(|&name| to.raw_set(name, from.raw_get::<Value>(name)?))
}

/// An empty table that shows `content` and takes nothing.
fn read_only(lua: &Lua, content: Table) -> mlua::Result<Table> {
    let refuse = lua.create_function(|_, (_, name): (Value, Value)| -> mlua::Result<()> {
        Err(mlua::Error::runtime(format!(
            "'{}' cannot be set outside of the function: use local variables",
            name.to_string().unwrap_or_default()
        )))
    })?;
    let meta = lua.create_table()?;
    meta.raw_set("__index", content)?;
    meta.raw_set("__newindex", refuse)?;
    let shown = lua.create_table()?;
    shown.set_metatable(Some(meta))?;
    Ok(shown)
}

/// `string.rep(text, count [, separator])`.
fn repeat(lua: &Lua, fuel: &Arc<Fuel>) -> mlua::Result<mlua::Function> {
    let fuel = fuel.clone();
    lua.create_function(
        move |lua, (text, count, separator): (mlua::LuaString, i64, Option<mlua::LuaString>)| {
            let count = usize::try_from(count).unwrap_or(0);
            let text = text.as_bytes();
            let separator = separator.as_ref().map(mlua::LuaString::as_bytes);
            let separator: &[u8] = separator.as_deref().unwrap_or_default();
            let len = (text.len() + separator.len()).saturating_mul(count);
            if count == 0 || len == 0 {
                return lua.create_string("");
            }
            if len > fuel.memory_bytes() {
                return Err(mlua::Error::runtime("resulting string too large"));
            }
            let mut out = Vec::with_capacity(len);
            for index in 0..count {
                if index > 0 {
                    out.extend_from_slice(separator);
                }
                out.extend_from_slice(&text);
            }
            lua.create_string(out)
        },
    )
}
