//! Properties of the protocol, for every message.
//!
//! | module | property |
//! | --- | --- |
//! | `round_trip` | an encoded message decodes to the same message, in each version, in whatever pieces the bytes arrive |
//! | `golden` | bytes as drivers write and read them, in `testdata/` |
//! | `versions` | what older versions get in place of messages that they do not know |
//! | `framing` | limits, skipping, refusals, compression, segments |
//! | `hostile` | truncated and mutated bytes give errors, never panics |
//!
//! `generate` makes random messages; every failure prints the seed that made it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod framing;
mod generate;
mod golden;
mod hostile;
mod round_trip;
mod versions;
