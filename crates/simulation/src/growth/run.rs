//! [`grow`]: runs a cluster for some simulated time.

use std::cmp::Reverse;

use ilion_cluster::Halt;

use super::costs::Costs;
use super::machine::{Machine, Nanos};
use super::ring::{Layout, Shape};
use super::state::{Event, Node};
use super::world::{Load, Setting, World};

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub struct Grown {
    /// Requests a second.
    pub per_second: f64,
    /// Times from a request to its answer, in microseconds: the median, and the 99th percentile.
    pub waits_micros: [f64; 2],
    /// The work that came for nodes, in parts of what their cores can do: on average, and for the busiest node. Above 1 if work has to wait.
    pub nodes_busy: [f64; 2],
    /// The same of brokers.
    pub brokers_busy: [f64; 2],
    /// Tablets of the node that has most, compared with the average.
    pub most_tablets: f64,
    /// Brokers that a node reads from, on average.
    pub brokers_of_node: f64,
    /// How many times more records a node reads than it needs, on average.
    pub reads_times: f64,
    /// Requests of nodes to brokers, for each request of a client: with records, for records, for ends.
    pub to_brokers: [f64; 3],
}

/// Simulates a cluster.
///
/// # Errors
/// The cluster cannot be made.
pub fn grow(shape: Shape, setting: Setting, costs: &Costs, seed: u64) -> Result<Grown, Halt> {
    let layout = Layout::new(shape)?;
    let mut world = World::new(shape, setting, costs.clone(), layout, seed);
    world.begin();
    world.run_until(setting.warm_millis * 1_000_000);
    world.forget();
    let busy_before = world.busy();
    world.run_until((setting.warm_millis + setting.millis) * 1_000_000);
    Ok(world.result(&busy_before))
}

impl World {
    fn run_until(&mut self, end: Nanos) {
        while self.due.peek().is_some_and(|due| due.0.at < end) {
            if let Some(Reverse(due)) = self.due.pop() {
                self.now = due.at;
                self.happen(due.event);
            }
        }
        self.now = end;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrives(request) => {
                let costs = &self.costs;
                let nanos = match self.setting.load {
                    _ if request.is_write => costs.write,
                    Load::ReadsOfOne => costs.read,
                    Load::Writes | Load::QuorumReads | Load::Mixed => costs.read + costs.wait_for_end,
                };
                let done = self.work_of_node(request.node, nanos);
                self.later(done, Event::IsRead(request));
            }
            Event::IsRead(request) if request.is_write => self.append(request),
            Event::IsRead(request) if self.setting.load == Load::ReadsOfOne => self.answer(request),
            Event::IsRead(request) => self.ask_for_end(request),
            Event::StopsGathering(node, broker, number) => self.stop_gathering(node, broker, number),
            Event::Produces(batch) => self.produce(batch),
            Event::Appends(batch) => self.add_to_log(batch),
            Event::Copies {
                leader,
                copier,
                batches,
            } => self.copy(leader, copier, batches),
            Event::AreCopied {
                leader,
                copier,
                batches,
            } => self.note_copies(leader, copier, batches),
            Event::IsAcknowledged(batch) => self.acknowledge(batch),
            Event::Polls(node, broker) => self.take_poll(node, broker),
            Event::Delivers(node, broker, ends) => self.deliver(node, broker, &ends),
            Event::StopsResting(node, broker, number) => self.stop_resting(node, broker, number),
            Event::Applies(node, ends) => self.apply(node, &ends),
            Event::StopsWaiting(node, number) => self.stop_waiting(node, number),
            Event::TellsEnds {
                node,
                round,
                is_leader,
                ends,
            } => self.take_ends(node, round, is_leader, &ends),
            Event::IsAnswered(request) => {
                self.waits.push(self.now - request.sent_at);
                self.ask();
            }
        }
    }

    fn forget(&mut self) {
        self.waits.clear();
        self.to_brokers = [0; 3];
    }

    fn busy(&self) -> Vec<u64> {
        self.machines.iter().map(Machine::worked).collect()
    }

    fn result(mut self, busy_before: &[u64]) -> Grown {
        let nanos = self.setting.millis as f64 * 1e6;
        self.waits.sort_unstable();
        let count = self.waits.len();
        let wait = |part: f64| {
            let at = (count as f64 * part) as usize;
            self.waits.get(at).map_or(0.0, |nanos| *nanos as f64 / 1e3)
        };
        let busy: Vec<f64> = self
            .busy()
            .iter()
            .zip(busy_before)
            .zip(&self.machines)
            .map(|((now, before), machine)| (now - before) as f64 / nanos / machine.cores() as f64)
            .collect();
        let (of_nodes, of_brokers) = busy.split_at(self.nodes.len().min(busy.len()));
        let brokers_of =
            |node: &Node| node.tails.iter().filter(|tail| !tail.followed.is_empty()).count() as f64;
        let times = |node: &Node| {
            let followed = node.progress.iter().filter(|progress| progress.held > 0.0);
            let (read, needed) = followed.fold((0.0, 0.0), |(read, needed), progress| {
                (read + 1.0, needed + progress.held)
            });
            read / f64::max(needed, f64::MIN_POSITIVE)
        };
        let mut tablets = vec![0.0; self.nodes.len()];
        let replicas = self.layout.replicas.iter().flatten();
        replicas.for_each(|node| tablets[*node] += 1.0);
        let [tablets, most_tablets] = mean_and_max(tablets.into_iter());
        Grown {
            most_tablets: most_tablets / tablets,
            per_second: count as f64 * 1e9 / nanos,
            waits_micros: [wait(0.5), wait(0.99)],
            nodes_busy: mean_and_max(of_nodes.iter().copied()),
            brokers_busy: mean_and_max(of_brokers.iter().copied()),
            brokers_of_node: mean_and_max(self.nodes.iter().map(brokers_of))[0],
            reads_times: mean_and_max(self.nodes.iter().map(times))[0],
            to_brokers: self
                .to_brokers
                .map(|requests| requests as f64 / count.max(1) as f64),
        }
    }
}

fn mean_and_max(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let (sum, max, count) = values.fold((0.0, 0.0, 0.0), |(sum, max, count), value| {
        (sum + value, f64::max(max, value), count + 1.0)
    });
    [sum / f64::max(count, 1.0), max]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTING: Setting = Setting {
        load: Load::Writes,
        in_flight: 64,
        cores: 2,
        is_one_machine: false,
        warm_millis: 20,
        millis: 30,
    };

    fn shape(nodes: u32, brokers: u32, partitions: u32) -> Shape {
        Shape {
            nodes,
            brokers,
            tablets: nodes * 40,
            partitions,
        }
    }

    fn run(shape: Shape, setting: Setting) -> Grown {
        grow(shape, setting, &Costs::MEASURED, 1).unwrap()
    }

    #[test]
    fn one_read_at_a_time_takes_its_work_and_two_messages() {
        let setting = Setting {
            load: Load::ReadsOfOne,
            in_flight: 1,
            ..SETTING
        };
        let grown = run(shape(3, 3, 1), setting);
        let costs = Costs::MEASURED;
        let wanted = (costs.read + 2 * costs.network) as f64 / 1e3;
        assert_eq!(grown.waits_micros[0], wanted);
        assert!(
            (grown.per_second / (3e6 / wanted) - 1.0).abs() < 0.01,
            "{grown:?}"
        );
    }

    #[test]
    fn each_record_is_applied_by_three_nodes() {
        let grown = run(shape(6, 3, 6), SETTING);
        let costs = Costs::MEASURED;
        let requests = (grown.to_brokers[0] + grown.to_brokers[1]) * costs.node_request as f64;
        let least = (costs.write + 3 * costs.apply) as f64 + requests;
        let seen = grown.nodes_busy[0] * 12.0 * 1e9 / grown.per_second;
        // Some records are read by nodes that have no replica of them.
        assert!(
            seen > least * 0.97 && seen < least * 1.3,
            "{seen} ns of nodes a write, at least {least}"
        );
    }

    #[test]
    fn twice_the_nodes_write_nearly_twice_as_much() {
        let setting = Setting {
            in_flight: 512,
            ..SETTING
        };
        let [three, six] = [shape(3, 3, 12), shape(6, 3, 24)].map(|shape| run(shape, setting).per_second);
        assert!(six / three > 1.8, "{three} and {six}");
    }

    #[test]
    fn reads_at_quorum_ask_two_brokers_for_each_partition() {
        let setting = Setting {
            load: Load::QuorumReads,
            in_flight: 1,
            ..SETTING
        };
        let asked = run(shape(3, 3, 1), setting).to_brokers[2];
        // A read may be under way when the count begins or ends.
        assert!((1.9..2.1).contains(&asked), "{asked}");
    }
}
