//! Several nodes over a simulated log in one process, with faults that a seed chooses. For tests only.
//!
//! One seed decides a whole run: the scheduler always chooses the next step, and no thread or clock goes on by itself. A run that breaks a law
//! is repeated by its seed. Clients ask three nodes, steps deliver, apply, flush, crash and trim in any order, and then the laws of
//! `histories` are checked.
//!
//! There are two kinds of nodes. [`run_members`] has real ones: `ilion_member`, engines and CQL, on disks in memory; their threads are tasks
//! of `ilion_env::turns`. [`run`] has toys, which are fast, and have defects ([`Mutant`]) built in, to see that the laws find them.
//!
//! | module | what lives there |
//! | --- | --- |
//! | `log` | a shared log that loses answers, repeats records, has an isolated leader, and is trimmed |
//! | `request` | what clients ask for and get |
//! | `command` | the changes that they ask for |
//! | `history` | the requests and answers of clients, and the laws |
//! | `plan` | [`Plan`]: what a run is; [`shrink`]: a shorter one that breaks the same law |
//! | `members` | [`run_members`]: a run of real nodes |
//! | `toys` | [`run`]: a run of toys |
//! | `growth` | [`grow`]: a model of the throughput of many nodes; not of faults |

mod command;
mod growth;
mod history;
mod log;
mod members;
mod plan;
mod request;
mod toys;

pub use growth::{Costs, Grown, Load, Setting, Shape, grow};
pub use history::Ran;
pub use members::run_members;
pub use plan::{Fault, Plan, shrink};
pub use toys::{Mutant, run};
