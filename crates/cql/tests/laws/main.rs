//! What users of the crate may rely on.
//!
//! | file | |
//! | --- | --- |
//! | `statements` | `testdata/*.txt`: CQL in, printed tree or error out; `REWRITE=1` writes the answers |
//! | `round_trip` | any tree, printed and parsed, is the same tree |
//! | `robustness` | no text panics or hangs, however mangled or nested |
//! | `fixtures` | what a real Cassandra took and printed is parsed |

#![expect(clippy::expect_used, reason = "a test that cannot go on fails")]

mod fixtures;
mod generator;
mod random;
mod robustness;
mod round_trip;
mod statements;
