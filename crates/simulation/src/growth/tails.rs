//! Delivery: each node asks each broker for new records of the partitions that it reads, as in `ilion_kafka_log::reading`.

use super::machine::Nanos;
use super::state::Event;
use super::world::World;

/// After records a node rests for this time, unless it knows that the broker has more.
const REST: Nanos = 5_000_000;

impl World {
    /// A node asks for new records.
    pub fn poll(&mut self, node: usize, broker: usize) {
        self.to_brokers[1] += 1;
        let done = self.work_of_node(node, self.costs.node_request);
        self.later(done + self.costs.network, Event::Polls(node, broker));
    }

    /// The request has reached the broker.
    pub fn take_poll(&mut self, node: usize, broker: usize) {
        let tail = &mut self.nodes[node].tails[broker];
        tail.is_parked = true;
        if !tail.news.is_empty() {
            self.answer_poll(node, broker);
        }
    }

    /// A partition has new records.
    pub fn has_news(&mut self, node: usize, broker: usize, partition: usize) {
        let tail = &mut self.nodes[node].tails[broker];
        if !tail.news.contains(&partition) {
            tail.news.push(partition);
        }
        if tail.is_parked {
            self.answer_poll(node, broker);
        }
    }

    fn answer_poll(&mut self, node: usize, broker: usize) {
        let tail = &mut self.nodes[node].tails[broker];
        tail.is_parked = false;
        let named = tail.followed.len() as u64;
        let news = std::mem::take(&mut tail.news);
        let ends = news
            .into_iter()
            .map(|partition| (partition, self.logs[partition].confirmed));
        let ends = ends.collect();
        let done = self.work_of_broker(broker, self.costs.fetch + named * self.costs.partition);
        self.later(done + self.costs.network, Event::Delivers(node, broker, ends));
    }

    /// New records have come.
    pub fn deliver(&mut self, node: usize, broker: usize, ends: &[(usize, u64)]) {
        let mut nanos = 0.0;
        for (partition, end) in ends {
            let progress = &mut self.nodes[node].progress[*partition];
            let each =
                progress.held * self.costs.apply as f64 + (1.0 - progress.held) * self.costs.skip as f64;
            nanos += end.saturating_sub(progress.read) as f64 * each;
            progress.read = progress.read.max(*end);
        }
        let done = self.work_of_node(node, nanos as u64);
        self.later(done, Event::Applies(node, ends.to_vec()));
        if self.is_behind(node, broker) {
            return self.poll(node, broker);
        }
        let tail = &mut self.nodes[node].tails[broker];
        tail.is_resting = true;
        tail.number += 1;
        let number = tail.number;
        self.later(self.now + REST, Event::StopsResting(node, broker, number));
    }

    fn is_behind(&self, node: usize, broker: usize) -> bool {
        let node = &self.nodes[node];
        let is_behind = |partition: &usize| node.progress[*partition].known > node.progress[*partition].read;
        node.tails[broker].followed.iter().any(is_behind)
    }

    pub fn stop_resting(&mut self, node: usize, broker: usize, number: u64) {
        let tail = &mut self.nodes[node].tails[broker];
        if tail.is_resting && tail.number == number {
            tail.is_resting = false;
            self.poll(node, broker);
        }
    }

    /// Ends the rest of a node that knows of more records.
    pub fn end_rest(&mut self, node: usize, broker: usize) {
        if self.nodes[node].tails[broker].is_resting && self.is_behind(node, broker) {
            self.nodes[node].tails[broker].is_resting = false;
            self.poll(node, broker);
        }
    }

    /// A node has applied records: answers those who waited for them.
    pub fn apply(&mut self, node: usize, ends: &[(usize, u64)]) {
        for (partition, end) in ends {
            let progress = &mut self.nodes[node].progress[*partition];
            progress.applied = progress.applied.max(*end);
            let mut ready = Vec::new();
            let applied = progress.applied;
            progress.waiting.retain(|(offset, request)| {
                let is_ready = *offset < applied;
                if is_ready {
                    ready.push(*request);
                }
                !is_ready
            });
            for request in ready {
                self.answer(request);
            }
        }
    }
}
