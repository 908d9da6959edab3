//! User-defined functions: Lua 5.4 that can compute and nothing else.
//!
//! A [`Script`] is the body of one `CREATE FUNCTION`. [`Script::compile`] checks it, [`Script::call`] turns serialized
//! arguments into Lua values, runs the body within its [`Limits`], and turns what it returns into a serialized value.
//! A script has no files, clock, chance, modules, or memory of earlier calls: the same arguments give the same result.
//!
//! | module | what |
//! | --- | --- |
//! | `script` | [`Script`]: compile, call, machines that are kept for the next call |
//! | `fuel` | what a call may still use up |
//! | `sandbox` | which names a script sees |
//! | `pattern`, `pattern_functions` | Lua patterns that pay for each step; `string.find` and its siblings |
//! | `to_lua`, `from_lua` | values of CQL to Lua and back |
//!
//! When you add a CQL type: `to_lua`, `from_lua`, and the table in docs/functions.md.

mod from_lua;
mod fuel;
mod pattern;
mod pattern_functions;
mod sandbox;
mod script;
mod to_lua;

pub use fuel::Limits;
pub use script::{Error, Script};
