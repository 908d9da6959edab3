//! The names that a script sees.
//!
//! Left out on purpose: everything that reaches outside (`io`, `os`, `debug`, `require`, `load`), that gives other results in each call
//! (`math.random`), that could catch the end of the fuel (`pcall`), or that runs where fuel is not counted (`coroutine`,
//! metatables with `__gc`).
//!
//! Invariant: a function in C is in the lists here only if one call of it goes through its arguments or its result at most
//! once. All others are in Rust and pay for their steps, or in Lua (`library.lua`), where instructions are counted:
//! - `table.sort`, `insert` and `remove` take as many steps as the length `#`, which may be 2^62 in a table with sixty entries and holes;
//! - `string.rep` of an empty text loops without output;
//! - patterns may backtrack for ever;
//! - `string.format` may cut off a large text a thousand times; with `tostring`, `error` and `assert` it prints addresses.

use std::sync::Arc;

use mlua::chunk::ChunkMode;
use mlua::{Lua, Table, Value};

use crate::fuel::Fuel;
use crate::{format_function, pattern_functions};

const BASE: [&str; 6] = ["ipairs", "next", "pairs", "select", "tonumber", "type"];
const STRING: [&str; 7] = ["byte", "char", "len", "lower", "reverse", "sub", "upper"];
const TABLE: [&str; 3] = ["concat", "pack", "unpack"];
const MATH: [&str; 25] = [
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
    "tointeger",
    "type",
    "ult",
];
const UTF8: [&str; 6] = ["char", "charpattern", "codepoint", "codes", "len", "offset"];

/// The functions of Lua that `library.lua` uses: their table (empty for the globals), their name, and their name in `library.lua`.
const UNDERNEATH: [(&str, &str, &str); 6] = [
    ("", "type", "type"),
    ("", "select", "select"),
    ("", "error", "error"),
    ("", "tostring", "tostring"),
    ("math", "tointeger", "tointeger"),
    ("string", "rep", "rep"),
];

/// The read-only table with the globals of a script.
pub(crate) fn environment(lua: &Lua, fuel: &Arc<Fuel>) -> mlua::Result<Table> {
    let globals = lua.globals();
    let string: Table = globals.get("string")?;
    let (base, tables, strings) = library(lua, fuel)?;
    copy(&string, &strings, &STRING)?;
    pattern_functions::add(lua, &strings, fuel)?;
    strings.raw_set("format", format_function::make(lua, &string, fuel)?)?;
    // Lua looks up methods of strings, `("x"):rep(3)`, in the library's own table, so its content is replaced.
    string.clear()?;
    for pair in strings.pairs::<String, Value>() {
        let (name, function) = pair?;
        string.raw_set(name, function)?;
    }
    copy(&globals, &base, &BASE)?;
    copy(&globals.get("table")?, &tables, &TABLE)?;
    base.raw_set("string", read_only(lua, strings)?)?;
    base.raw_set("table", read_only(lua, tables)?)?;
    for (name, members) in [("math", &MATH[..]), ("utf8", &UTF8)] {
        let shown = lua.create_table()?;
        copy(&globals.get(name)?, &shown, members)?;
        base.raw_set(name, read_only(lua, shown)?)?;
    }
    read_only(lua, base)
}

/// The functions that are written in Lua: those of the globals, of `table` and of `string`.
fn library(lua: &Lua, fuel: &Arc<Fuel>) -> mlua::Result<(Table, Table, Table)> {
    let globals = lua.globals();
    let underneath = lua.create_table()?;
    for (library, name, known_by) in UNDERNEATH {
        let table = match library {
            "" => globals.clone(),
            library => globals.get(library)?,
        };
        underneath.raw_set(known_by, table.raw_get::<Value>(name)?)?;
    }
    underneath.raw_set("next_match", pattern_functions::next_match(lua, fuel)?)?;
    lua.load(include_str!("library.lua"))
        .set_name("=library")
        .set_mode(ChunkMode::Text)
        .call(underneath)
}

fn copy(from: &Table, to: &Table, names: &[&str]) -> mlua::Result<()> {
    names
        .iter()
        .try_for_each(|&name| to.raw_set(name, from.raw_get::<Value>(name)?))
}

/// An empty table through which a script can read `content`, but not change it.
fn read_only(lua: &Lua, content: Table) -> mlua::Result<Table> {
    let refuse = lua.create_function(|_, (_, name): (Value, Value)| -> mlua::Result<()> {
        let name = match &name {
            Value::String(name) => name.to_string_lossy(),
            other => other.type_name().to_owned(),
        };
        Err(mlua::Error::runtime(format!(
            "'{name}' cannot be set outside of the function: use local variables"
        )))
    })?;
    let meta = lua.create_table()?;
    meta.raw_set("__index", content)?;
    meta.raw_set("__newindex", refuse)?;
    let shown = lua.create_table()?;
    shown.set_metatable(Some(meta))?;
    Ok(shown)
}
