//! Appends: records gather while a request to their broker is under way, as in `ilion_kafka_log::sending`.

use super::machine::Nanos;
use super::state::{Batch, Event, Request};
use super::world::World;

/// After a request with this many records, the next one waits for others; and how long at most.
pub(super) const CROWD: usize = 4;
pub(super) const GATHER: Nanos = 1_000_000;

impl World {
    /// A record is ready to be sent.
    pub fn append(&mut self, request: Request) {
        let broker = self.shape.brokers_of(self.shape.partition_of(request.tablet))[0];
        let sender = &mut self.nodes[request.node].senders[broker];
        sender.waiting.push(request);
        if !sender.is_under_way && sender.crowd.is_there(sender.waiting.len()) {
            self.send(request.node, broker);
        }
    }

    pub fn stop_gathering(&mut self, node: usize, broker: usize, number: u64) {
        if self.nodes[node].senders[broker].crowd.is_waiting(number) {
            self.send(node, broker);
        }
    }

    fn send(&mut self, node: usize, broker: usize) {
        let sender = &mut self.nodes[node].senders[broker];
        sender.crowd.end();
        if sender.waiting.is_empty() {
            return;
        }
        sender.is_under_way = true;
        let requests = std::mem::take(&mut sender.waiting);
        let mut parts: Vec<(usize, Vec<Request>)> = Vec::new();
        for request in requests {
            let partition = self.shape.partition_of(request.tablet);
            match parts.iter_mut().find(|(other, _)| *other == partition) {
                Some((_, requests)) => requests.push(request),
                None => parts.push((partition, vec![request])),
            }
        }
        self.to_brokers[0] += 1;
        let done = self.work_of_node(node, self.costs.node_request);
        let batch = Batch {
            node,
            broker,
            parts,
            bases: Vec::new(),
        };
        self.later(done + self.costs.network, Event::Produces(batch));
    }

    /// The records of a request are in the log: the node applies those that it need not wait for, and sends the next request.
    pub fn acknowledge(&mut self, batch: Batch) {
        let (node, broker) = (batch.node, batch.broker);
        let sent = batch.count();
        let (mut ends, mut own) = (Vec::new(), 0);
        for ((partition, requests), base) in batch.parts.into_iter().zip(batch.bases) {
            let end = base + requests.len() as u64;
            let progress = &mut self.nodes[node].progress[partition];
            progress.known = progress.known.max(end);
            progress.waiting.extend((base..).zip(requests));
            if progress.read == base {
                // Nobody else wrote in between: the node has the records.
                progress.read = end;
                own += end - base;
                ends.push((partition, end));
            } else {
                // Records that have come already answer those who wait for them.
                ends.push((partition, progress.applied));
            }
        }
        let done = self.work_of_node(node, own * self.costs.apply);
        self.later(done, Event::Applies(node, ends));
        self.end_rest(node, broker);

        let sender = &mut self.nodes[node].senders[broker];
        sender.is_under_way = false;
        let enough = (sent + sender.waiting.len()) * 7 / 8;
        if sent < CROWD || sender.waiting.len() >= enough {
            return self.send(node, broker);
        }
        let number = sender.crowd.wait_for(enough);
        self.later(self.now + GATHER, Event::StopsGathering(node, broker, number));
    }
}
