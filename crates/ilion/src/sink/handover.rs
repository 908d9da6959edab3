//! Hands rounds from the thread that reads to the thread that sends.

use std::time::Duration;

use ilion_kafka::Record;
use parking_lot::{Condvar, Mutex};

use super::line::ConsumerProgress;
use super::round::Round;
use crate::Failure;

/// The round that the reader fills, which the sender takes.
pub struct Handover {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    round: Round,
    /// The outcome of the reader, once it has ended.
    ended: Option<Result<(), Failure>>,
    /// The sender has ended, so the reader must end, too.
    is_abandoned: bool,
}

/// What [`Handover::take`] returns.
pub enum Taken {
    /// Records by partition of the topic, and the position of the consumer once they are sent.
    Round(Vec<(usize, Vec<Record>)>, Option<ConsumerProgress>),
    /// No change came within the time.
    Quiet,
    /// The reader has ended, and all rounds were taken.
    End(Result<(), Failure>),
}

impl Handover {
    /// For a topic with `partitions` partitions.
    pub fn new(partitions: usize) -> Self {
        Self {
            state: Mutex::new(State {
                round: Round::new(partitions),
                ended: None,
                is_abandoned: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// Waits until the round is not full, and changes it. Returns false if the sender has ended.
    pub fn put(&self, change: impl FnOnce(&mut Round)) -> bool {
        let mut state = self.state.lock();
        self.changed
            .wait_while(&mut state, |state| state.round.is_full() && !state.is_abandoned);
        change(&mut state.round);
        self.changed.notify_all();
        !state.is_abandoned
    }

    /// The reader calls this when it ends.
    pub fn close(&self, outcome: Result<(), Failure>) {
        self.state.lock().ended = Some(outcome);
        self.changed.notify_all();
    }

    /// The sender calls this when it ends.
    pub fn abandon(&self) {
        self.state.lock().is_abandoned = true;
        self.changed.notify_all();
    }

    /// Takes the round as soon as it is not empty. Waits at most for `wait`.
    pub fn take(&self, wait: Duration) -> Taken {
        let mut state = self.state.lock();
        let is_idle = |state: &mut State| state.round.is_empty() && state.ended.is_none();
        self.changed.wait_while_for(&mut state, is_idle, wait);
        if !state.round.is_empty() {
            let (records, place) = state.round.take();
            self.changed.notify_all();
            return Taken::Round(records, place);
        }
        match state.ended.take() {
            Some(outcome) => Taken::End(outcome),
            None => Taken::Quiet,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    const WAIT: Duration = Duration::from_secs(60);

    fn place(number: usize) -> ConsumerProgress {
        ConsumerProgress {
            position: format!("7:{number}"),
            logged_millis: 0,
        }
    }

    #[test]
    fn the_reader_waits_for_the_sender_and_nothing_is_lost_or_overtaken() {
        let handover = Arc::new(Handover::new(1));
        let reader = Arc::clone(&handover);
        let reading = thread::spawn(move || {
            for number in 0..5000 {
                let envelope = format!("{number:1000}").into_bytes();
                assert!(reader.put(|round| round.add(place(number), Some(b"1".to_vec()), envelope)));
            }
            reader.close(Ok(()));
        });
        let mut next = 0;
        loop {
            match handover.take(WAIT) {
                Taken::Round(records, last) => {
                    let records: Vec<Record> = records.into_iter().flat_map(|(_, records)| records).collect();
                    assert!(records.len() <= 1100, "a round has 1 MiB");
                    for record in &records {
                        assert_eq!(String::from_utf8_lossy(&record.value).trim(), next.to_string());
                        next += 1;
                    }
                    assert_eq!(last, Some(place(next - 1)));
                }
                Taken::Quiet => panic!("the reader is too slow"),
                Taken::End(outcome) => break assert!(outcome.is_ok()),
            }
        }
        assert_eq!(next, 5000);
        reading.join().unwrap();
    }

    #[test]
    fn a_reader_whose_sender_ended_ends() {
        let handover = Handover::new(1);
        handover.abandon();
        assert!(!handover.put(|round| round.advance(place(1))));
    }
}
