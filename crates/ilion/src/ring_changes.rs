//! `ilion decommission`, `remove-node`, `rebalance`, `cancel-ring-change`, `cleanup`: changes of the ring of a cluster. Each shows a bar,
//! and waits until the nodes have copied what they need.

use std::thread;
use std::time::Duration;

use ilion_server::admin::{AdminClient, NodeReport, RingReport, RingStarted};
use ilion_tools::Bar;

use crate::Failure;
use crate::ask::{client, path, say};
use crate::bar::{Shown, while_node_works};
use crate::cli::{AdminArguments, DecommissionArguments, RemoveNodeArguments};

/// Time between two requests for the progress of a change.
const LOOK_PAUSE: Duration = Duration::from_millis(500);

/// Takes the node out of the cluster.
pub fn decommission(arguments: &DecommissionArguments) -> Result<(), Failure> {
    let node = client(&arguments.admin)?;
    let force = arguments.force.to_string();
    let started = begin(&node, &[("kind", "leave"), ("force", &force)])?;
    wait(&node, "the others copy", started)?;
    match ring(&node)?.has_left {
        true => Ok(()),
        false => Err(cancelled()),
    }
}

/// Takes a lost node out of the cluster, or prints the current change of the ring (`status`).
pub fn remove_node(arguments: &RemoveNodeArguments) -> Result<(), Failure> {
    let node = client(&arguments.admin)?;
    match arguments.node.as_str() {
        "status" => {
            say(&status_of(&ring(&node)?));
            Ok(())
        }
        "force" => Err(Failure::Failed(
            "a removal cannot be finished before the others have copied the data: cancel-ring-change gives it up, and leaves the ring as it was"
                .to_owned(),
        )),
        host => {
            let started = begin(&node, &[("kind", "remove"), ("host", host)])?;
            wait(&node, "the others copy", started)?;
            let report: NodeReport = node.get("/admin/node").map_err(Failure::of)?;
            match report.members.iter().any(|member| member.host_id == host) {
                true => Err(cancelled()),
                false => Ok(()),
            }
        }
    }
}

/// Spreads the slices of the ring evenly over the nodes.
pub fn rebalance(arguments: &AdminArguments) -> Result<(), Failure> {
    let node = client(arguments)?;
    let started = begin(&node, &[("kind", "rebalance")])?;
    if started.number.is_none() {
        say("The slices are spread evenly.");
        return Ok(());
    }
    wait(&node, "nodes copy", started)?;
    say("Done. Nodes still have the data of slices that they have given away, until: ilion cleanup");
    Ok(())
}

/// Gives up the current change of the ring.
pub fn cancel(arguments: &AdminArguments) -> Result<(), Failure> {
    begin(&client(arguments)?, &[("kind", "cancel")]).map(drop)
}

/// Removes the data of slices that the node has given away.
pub fn cleanup(arguments: &AdminArguments) -> Result<(), Failure> {
    let node = client(arguments)?;
    let done = while_node_works("cleanup", &node, Shown::Compactions, || {
        node.post("/admin/cleanup")
    });
    done.map(drop).map_err(Failure::of)
}

fn begin(node: &AdminClient, order: &[(&str, &str)]) -> Result<RingStarted, Failure> {
    let order: Vec<(&str, Option<&str>)> = order.iter().map(|(name, value)| (*name, Some(*value))).collect();
    let started = node.post(&path("ring-change", &order)).map_err(Failure::of)?;
    serde_json::from_value(started).map_err(Failure::of)
}

fn ring(node: &AdminClient) -> Result<RingReport, Failure> {
    node.get("/admin/ring-change").map_err(Failure::of)
}

fn cancelled() -> Failure {
    Failure::Failed("the change was cancelled: the ring is as it was".to_owned())
}

/// Waits until the change has ended, or was cancelled.
fn wait(node: &AdminClient, label: &str, started: RingStarted) -> Result<(), Failure> {
    let Some(number) = started.number else {
        return Ok(());
    };
    let bar = Bar::of_operations(label, 1);
    loop {
        let report = ring(node)?;
        let Some(change) = report.change.filter(|change| change.number == number) else {
            return Ok(());
        };
        if report.has_left {
            return Ok(());
        }
        bar.of(change.copying.len() as u64);
        bar.at(change.copying.iter().filter(|node| node.is_ready).count() as u64);
        thread::sleep(LOOK_PAUSE);
    }
}

fn status_of(ring: &RingReport) -> String {
    let Some(change) = &ring.change else {
        return "RemovalStatus: No token removals in process.".to_owned();
    };
    let copying = change.copying.iter().map(|node| match node.is_ready {
        true => format!("{} has copied", node.address),
        false => format!("{} copies", node.address),
    });
    let copying: Vec<String> = copying.collect();
    format!(
        "RemovalStatus: {} ({} slices): {}.",
        change.what,
        change.slices,
        copying.join(", ")
    )
}
