//! CQL scripts with the answers that a real Cassandra gave (`tests/cql/*.cql`), and what runs them against any server.
//!
//! A script is CQL that a person can read; below each statement stand its answers as comments:
//!
//! ```text
//! // Comments are for people. A directive is one, too: `// page 2`.
//! SELECT k, v FROM t;
//! -- k int | v text
//! -- 1 | 'one'
//! --! what Ilion answers instead, if it differs on purpose
//! ```
//!
//! `record` asks a server (a real Cassandra) and writes the `--` lines anew; `check` asks a server (Ilion) and compares.
//! Lines with `--!` are written by `differ` only, which asks Ilion; each of them belongs into `docs/compatibility.md`.
//!
//! | module | what |
//! | --- | --- |
//! | `script` | the text of a script: statements, directives, answers |
//! | `client` | one connection, protocol v5, with timestamps and clock given by the script |
//! | `show` | an answer as lines |
//! | `run` | a script against a server |

mod client;
mod run;
mod script;
mod show;

pub use run::{Difference, Tally, check, differ, record};
pub use script::{Clock, Directives, Script, Statement, all_scripts};
