//! Several nodes over a simulated log in one process, with faults that a seed chooses. For tests only.
//!
//! One seed decides a whole run: the next step is always chosen by the scheduler, and nothing has a thread or a clock of its own. A run
//! that breaks a law is repeated by its seed. [`run`] is the main path: clients ask three nodes, steps deliver, apply, flush, crash and
//! trim in any order, and then the laws of `histories` are checked.
//!
//! The engine is a map today ([`ToyEngine`]). [`Engine`] is where the real one comes in; nodes, log, faults and laws stay.
//!
//! | module | what lives there |
//! | --- | --- |
//! | `log` | [`SimLog`]: a shared log that loses answers, repeats records, has an isolated leader, and is trimmed |
//! | `engine` | [`Engine`], [`Command`]: what a replica keeps, and what it applies |
//! | `node` | [`Node`]: coordinator and replica, step by step; [`Mutant`]: defects to see that laws notice them |
//! | `world` | [`run`]: one run of a seed |
//!
//! # What `commitlog::Log` lacks for a log elsewhere
//!
//! Its `append` returns a position at once, and a shared log knows it only with the answer. One method more is enough, with a default for
//! the local log, whose paths stay as they are: `append_then(envelope, callback)`, which calls back with the position once the record is as
//! durable as promised, or with an error after which the outcome is unknown. `tail` ends at what is written now; a follower needs
//! `on_grown(position, callback)` beside it, called when there is a record above the position. Positions for each tablet need
//! nothing: a tablet has a `Log` of its own. A barrier is an appended `Noop`; `Log::barrier` of a shared log must do the same.

mod engine;
mod log;
mod node;
mod world;

pub use engine::{Command, Engine, ToyEngine};
pub use log::{Answer, Deleted, LogFaults, Side, SimLog, Ticket};
pub use node::{Mutant, Node, Reply, Request};
pub use world::{Ran, run};
