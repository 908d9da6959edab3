//! Several nodes over a simulated log in one process, with faults that a seed chooses. For tests only.
//!
//! One seed decides a whole run: the scheduler chooses each next step, and no clock goes on by itself. A run that breaks a law is repeated
//! by its seed. Clients ask three nodes, steps deliver, apply, flush, crash and trim in any order, and then the laws of `histories` are
//! checked.
//!
//! There are three kinds of nodes. [`run_members`] has whole ones: engines and `ilion_member::Member`, whose threads take turns.
//! [`run_cql`] has engines, replicas and CQL, on disks in memory, without threads. [`run`] has toys ([`Node`] with a [`ToyEngine`]), which
//! are fast, and have defects built in, to see that the laws notice them.
//!
//! | module | what lives there |
//! | --- | --- |
//! | `log` | [`SimLog`]: a shared log that loses answers, repeats records, has an isolated leader, and is trimmed |
//! | `member` | [`Member`]: a node of `world`, as the scheduler sees it |
//! | `cql` | [`Machine`]: a node with a real engine |
//! | `engine` | [`Engine`], [`Command`]: what a toy keeps, and what it applies |
//! | `node` | [`Node`]: a toy, step by step; [`Mutant`]: its defects |
//! | `history` | the requests and answers of clients, and the laws |
//! | `world` | [`run`], [`run_cql`]: one run of a seed |
//! | `members` | [`run_members`]: one run of a seed with whole nodes |
//!
//! # What `commitlog::Log` lacks for a log elsewhere
//!
//! Its `append` returns a position at once, and a shared log knows it only with the answer. One method more is enough, with a default for
//! the local log, whose paths stay as they are: `append_then(envelope, callback)`, which calls back with the position once the record is as
//! durable as promised, or with an error after which the outcome is unknown. `tail` ends at what is written now; a follower needs
//! `on_grown(position, callback)` beside it, called when there is a record above the position. Positions for each tablet need
//! nothing: a tablet has a `Log` of its own. A barrier is an appended `Noop`; `Log::barrier` of a shared log must do the same.

mod cql;
mod engine;
mod history;
mod log;
mod member;
mod members;
mod node;
mod world;

pub use cql::Machine;
pub use engine::{Command, Engine, ToyEngine};
pub use history::Ran;
pub use log::{Answer, Deleted, LogFaults, Side, SimLog, Ticket};
pub use member::{Member, Reply, Request, Tailed};
pub use members::run_members;
pub use node::{Mutant, Node};
pub use world::{run, run_cql};
