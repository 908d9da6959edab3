//! Reads at QUORUM: a node asks brokers for the ends of logs, once for all readers that wait, as in `ilion_kafka_log::ends`.

use std::collections::BTreeMap;

use super::sending::{CROWD, GATHER};
use super::state::{Ends, Event, Open, Request, Round};
use super::world::World;

impl World {
    pub fn ask_for_end(&mut self, request: Request) {
        let partition = self.shape.partition_of(request.tablet);
        let asking = &mut self.nodes[request.node].asking;
        asking.waiting.entry(partition).or_default().push(request);
        asking.count += 1;
        if asking.round.is_none() && asking.crowd.is_there(asking.count) {
            self.begin_round(request.node);
        }
    }

    pub fn stop_waiting(&mut self, node: usize, number: u64) {
        if self.nodes[node].asking.crowd.is_waiting(number) {
            self.begin_round(node);
        }
    }

    fn begin_round(&mut self, node: usize) {
        let asking = &mut self.nodes[node].asking;
        asking.crowd.end();
        if asking.count == 0 {
            return;
        }
        asking.last_count = std::mem::take(&mut asking.count);
        asking.rounds += 1;
        let number = asking.rounds;
        let waiting = std::mem::take(&mut asking.waiting);
        // By broker, and whether it is asked as a leader.
        let mut questions: BTreeMap<(usize, bool), Vec<usize>> = BTreeMap::new();
        let mut round = Round::default();
        for (partition, readers) in waiting {
            let [leader, followers @ ..] = self.shape.brokers_of(partition);
            let asked_already = followers
                .iter()
                .find(|broker| questions.contains_key(&(**broker, false)));
            let follower = *asked_already.unwrap_or(&followers[0]);
            for witness in [(leader, true), (follower, false)] {
                questions.entry(witness).or_default().push(partition);
            }
            round.open.insert(
                partition,
                Open {
                    readers,
                    ..Open::default()
                },
            );
        }
        self.nodes[node].asking.round = Some(round);
        for ((broker, is_leader), partitions) in questions {
            self.to_brokers[2] += 1;
            self.work_of_node(node, self.costs.node_request);
            let done = self.work_of_broker(broker, self.costs.end);
            let ends: Ends = partitions
                .into_iter()
                .map(|partition| (partition, self.logs[partition].confirmed))
                .collect();
            let event = Event::TellsEnds {
                node,
                round: number,
                is_leader,
                ends,
            };
            self.later(done + 2 * self.costs.network, event);
        }
    }

    /// A broker has answered.
    pub fn take_ends(&mut self, node: usize, number: u64, is_leader: bool, ends: &[(usize, u64)]) {
        let asking = &mut self.nodes[node].asking;
        let Some(round) = asking.round.as_mut().filter(|_| asking.rounds == number) else {
            return;
        };
        let mut known = Vec::new();
        for (partition, end) in ends {
            let Some(open) = round.open.get_mut(partition) else {
                continue;
            };
            open.answers += 1;
            if is_leader {
                open.end = Some(*end);
            }
            // The leader, and one more.
            if let Some(end) = open.end.filter(|_| open.answers >= 2) {
                let readers = round.open.remove(partition).map(|open| open.readers);
                known.push((*partition, end, readers.unwrap_or_default()));
            }
        }
        let is_over = round.open.is_empty();
        for (partition, end, readers) in known {
            self.settle(node, partition, end, readers);
        }
        if is_over {
            self.end_round(node);
        }
    }

    /// The end of a log is known: its readers wait until it is applied.
    fn settle(&mut self, node: usize, partition: usize, end: u64, readers: Vec<Request>) {
        let progress = &mut self.nodes[node].progress[partition];
        progress.known = progress.known.max(end);
        if progress.applied >= end {
            return readers.into_iter().for_each(|reader| self.answer(reader));
        }
        progress
            .waiting
            .extend(readers.into_iter().map(|reader| (end - 1, reader)));
        self.end_rest(node, self.shape.brokers_of(partition)[0]);
    }

    fn end_round(&mut self, node: usize) {
        let asking = &mut self.nodes[node].asking;
        asking.round = None;
        let enough = asking.last_count / 2;
        if asking.last_count < CROWD || asking.count >= enough {
            return self.begin_round(node);
        }
        let number = asking.crowd.wait_for(enough);
        self.later(self.now + GATHER, Event::StopsWaiting(node, number));
    }
}
