//! The guarantees of this crate.
//!
//! | file | |
//! | --- | --- |
//! | `statements` | `testdata/*.txt`: CQL in, printed tree or error out; `REWRITE=1` writes the answers |
//! | `round_trip` | a printed tree parses to the same tree |
//! | `robustness` | no text panics or hangs, however mangled or nested |
//! | `fixtures` | statements that a real Cassandra accepted or printed are parsed |

#![expect(clippy::expect_used, reason = "a test that cannot go on fails")]

mod fixtures;
mod generator;
mod random;
mod robustness;
mod round_trip;
mod statements;
