//! User-defined functions: Lua 5.4 that can only compute.
//!
//! A [`Script`] is the body of one `CREATE FUNCTION`. [`Script::compile`] checks it. [`Script::call`] converts serialized
//! arguments to Lua values, runs the body within its [`Limits`], and serializes the result. A script has no access to files,
//! clock, randomness, modules, or memory of earlier calls. Law: no call runs on after its deadline, whatever functions it calls
//! (`fuel` has the reasons). Even if one did, its caller would not wait for it (`threads`).
//!
//! | module | what |
//! | --- | --- |
//! | `script` | [`Script`]: compile, call; machines are kept for later calls |
//! | `budget` | the time that the calls of one statement may take together |
//! | `fuel` | the limits of a call, and how much work is done between two checks of the clock |
//! | `machine` | an interpreter with a compiled body |
//! | `threads` | threads of their own for calls that take long |
//! | `sandbox`, `library.lua` | the names that a script sees; library functions written in Lua |
//! | `pattern`, `pattern_functions`, `format_function` | Lua patterns that pay for each step; `string.find` and its siblings |
//! | `to_lua`, `from_lua` | values of CQL to Lua and back |
//! | `message` | the message for the client when a script fails |
//!
//! When you add a CQL type, also change `to_lua`, `from_lua`, and the table in docs/functions.md.

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
