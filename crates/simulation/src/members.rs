//! [`run_members`]: one run of a cluster of real nodes. Their threads, the deliveries of their logs, flushes, crashes and clients take turns
//! in an order that the seed chooses.
//!
//! | module | what lives there |
//! | --- | --- |
//! | `logs` | the logs of a cluster, with faults |
//! | `world` | a run: its nodes, clients and steps |
//! | `outages` | nodes that are down, and full disks |
//! | `ring`, `ring_work` | nodes that join, leave, and are replaced |
//! | `node` | a node: its disk, and the process on it |
//! | `shown` | what a node has, as text |
//! | `statements` | requests as CQL |

mod logs;
mod node;
mod outages;
mod ring;
mod ring_work;
mod shown;
mod statements;
mod world;

use ilion_histories::Violation;

use self::world::World;
use crate::history::Ran;
use crate::plan::Plan;

/// Runs a cluster of real nodes, whose clients send CQL.
///
/// # Errors
/// The law that does not hold.
pub fn run_members(plan: &Plan) -> Result<Ran, Violation> {
    let mut world = World::new(plan.clone());
    world.begin()?;
    for _ in 0..plan.steps {
        world.step()?;
    }
    world.settle()?;
    world.finish()
}
