//! Brokers: a leader appends, the two next brokers copy, and then the records are acknowledged. A broker copies from another one all
//! that has come since it asked last, in one request.

use super::state::{Batch, Event};
use super::world::World;

impl World {
    pub fn produce(&mut self, batch: Batch) {
        let nanos = self.costs.produce
            + batch.parts.len() as u64 * self.costs.partition
            + batch.count() as u64 * self.costs.record;
        let done = self.work_of_broker(batch.broker, nanos);
        self.later(done, Event::Appends(batch));
    }

    pub fn add_to_log(&mut self, mut batch: Batch) {
        for (partition, requests) in &batch.parts {
            let log = &mut self.logs[*partition];
            batch.bases.push(log.end);
            log.end += requests.len() as u64;
        }
        let leader = batch.broker;
        let place = self.free.pop().unwrap_or_else(|| {
            self.batches.push(None);
            self.batches.len() - 1
        });
        self.batches[place] = Some((batch, 2));
        for copier in 0..2 {
            self.copiers[leader][copier].waiting.push(place);
            self.ask_for_copies(leader, copier);
        }
    }

    fn ask_for_copies(&mut self, leader: usize, copier: usize) {
        let state = &mut self.copiers[leader][copier];
        if state.is_busy || state.waiting.is_empty() {
            return;
        }
        state.is_busy = true;
        let batches = std::mem::take(&mut state.waiting);
        let done = self.work_of_broker(leader, self.costs.copy[0]);
        self.later(
            done + self.costs.network,
            Event::Copies {
                leader,
                copier,
                batches,
            },
        );
    }

    pub fn copy(&mut self, leader: usize, copier: usize, batches: Vec<usize>) {
        let of = |place: &usize| {
            self.batches[*place]
                .as_ref()
                .map_or(0, |(batch, _)| batch.count())
        };
        let records = batches.iter().map(of).sum::<usize>() as u64;
        let broker = (leader + 1 + copier) % self.copiers.len();
        let done = self.work_of_broker(broker, self.costs.copy[1] + records * self.costs.record);
        self.later(
            done + self.costs.network,
            Event::AreCopied {
                leader,
                copier,
                batches,
            },
        );
    }

    pub fn note_copies(&mut self, leader: usize, copier: usize, batches: Vec<usize>) {
        for place in batches {
            let Some((_, missing)) = &mut self.batches[place] else {
                continue;
            };
            *missing -= 1;
            if *missing > 0 {
                continue;
            }
            if let Some((batch, _)) = self.batches[place].take() {
                self.free.push(place);
                self.confirm(batch);
            }
        }
        self.copiers[leader][copier].is_busy = false;
        self.ask_for_copies(leader, copier);
    }

    fn confirm(&mut self, batch: Batch) {
        for ((partition, requests), base) in batch.parts.iter().zip(&batch.bases) {
            self.logs[*partition].confirmed = base + requests.len() as u64;
            for reader in self.logs[*partition].readers.clone() {
                self.has_news(reader, batch.broker, *partition);
            }
        }
        self.later(self.now + self.costs.network, Event::IsAcknowledged(batch));
    }
}
