//! CQL scripts with the answers of a real Cassandra (`tests/cql/*.cql`), and a runner for any server.
//!
//! A script is readable CQL, with the answer below each statement as comments:
//!
//! ```text
//! // Comments are for people. Directives are comments, too: `// page 2`.
//! SELECT k, v FROM t;
//! -- k int | v text
//! -- 1 | 'one'
//! --! the answer of Ilion, if it differs on purpose
//! ```
//!
//! Scripts in `tests/cql/logins` are for servers on which roles log in; `// by ROLE` says who sends the next statement.
//!
//! `record` runs the scripts against a real Cassandra and rewrites the `--` lines. `check` runs them against Ilion and compares.
//! `differ` runs them against Ilion and rewrites the `--!` lines; document each of these differences in
//! `docs/compatibility.md`.
//!
//! | module | what |
//! | --- | --- |
//! | `script` | the text of a script: statements, directives, answers |
//! | `client` | a connection over protocol v5, with timestamps and clock from the script |
//! | `show` | prints an answer as lines |
//! | `run` | runs a script against a server |

mod client;
mod run;
mod script;
mod show;

pub use run::{Difference, Replicas, Tally, check, check_replicas, differ, record};
pub use script::{Clock, Directives, Script, Statement, all_scripts, scripts_with_logins};
