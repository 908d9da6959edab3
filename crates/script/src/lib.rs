//! User-defined functions: Lua 5.4 that can compute and nothing else.
//!
//! A [`Script`] is the body of one `CREATE FUNCTION`. [`Script::compile`] checks it, [`Script::call`] turns serialized
//! arguments into Lua values, runs the body within its [`Limits`], and turns what it returns into a serialized value.
//! A script has no files, clock, chance, modules, or memory of earlier calls. Law: no call outlives its deadline, whatever
//! it calls (`fuel` says why); and should one do so, its caller does not wait for it (`threads`).
//!
//! | module | what |
//! | --- | --- |
//! | `script` | [`Script`]: compile, call, machines that are kept for the next call |
//! | `budget` | what the calls of one statement may take together |
//! | `fuel` | what a call may still use up, and how much happens between two looks at the clock |
//! | `machine` | an interpreter with a compiled body |
//! | `threads` | threads of their own for calls that take long |
//! | `sandbox`, `library.lua` | which names a script sees, and the functions of the library that are in Lua here |
//! | `pattern`, `pattern_functions`, `format_function` | Lua patterns that pay for each step; `string.find` and its siblings |
//! | `to_lua`, `from_lua` | values of CQL to Lua and back |
//! | `message` | what a client is told when a script fails |
//!
//! When you add a CQL type: `to_lua`, `from_lua`, and the table in docs/functions.md.

mod budget;
mod format_function;
mod from_lua;
mod fuel;
#[cfg(test)]
mod law;
mod machine;
mod message;
mod pattern;
mod pattern_functions;
mod sandbox;
mod script;
mod threads;
mod to_lua;

pub use budget::CallBudget;
pub use fuel::Limits;
pub use script::{Error, Script};
