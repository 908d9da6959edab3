//! Checks of histories: the requests of clients to a database, their times and answers. For tests only.
//!
//! A history is recorded while clients run, and checked afterwards. Times are any clock that all clients share; a simulation counts its
//! steps.
//!
//! | module | what lives there |
//! | --- | --- |
//! | `operation` | [`Operation`]: a request to a register, and its answer |
//! | `register` | [`check_registers`]: registers with compare-and-set are linearizable, key by key |
//! | `search` | the search for an order of the operations of one key |
//! | `shrink` | the shortest part of a history that is wrong by itself |
//! | `laws` | [`check_fresh`], [`check_monotonic`], [`check_counter`], [`check_batches`]: laws that need no search |

mod laws;
mod operation;
mod register;
mod search;
mod shrink;

pub use laws::{
    Add, Batch, CounterRead, Read, Violation, Write, check_batches, check_counter, check_fresh,
    check_monotonic,
};
pub use operation::{Action, Operation, Outcome, Value};
pub use register::{Verdict, check_registers};
