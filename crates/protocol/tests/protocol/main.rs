//! The laws of the protocol, over every message.
//!
//! | module | law |
//! | --- | --- |
//! | `round_trip` | what is encoded comes back, in each version, however the bytes arrive |
//! | `golden` | bytes as drivers write and read them, in `testdata/` |
//! | `versions` | what older versions get instead |
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
