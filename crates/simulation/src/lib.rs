//! Several nodes over a simulated log in one process, with faults that a seed chooses. For tests only.
//!
//! One seed decides a whole run: the next step is always chosen by the scheduler, and nothing has a thread or a clock of its own. A run
//! that breaks a law is repeated by its seed.
//!
//! | module | what lives there |
//! | --- | --- |
//! | `log` | [`SimLog`]: a shared log that loses answers, repeats records, has an isolated leader, and is trimmed |

mod log;

pub use log::{Answer, Deleted, LogFaults, Side, SimLog, Ticket};
