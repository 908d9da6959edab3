//! [`Queue`]: records on their way to the brokers, in their order. Pure: the clock is a parameter, and it sends nothing.
//!
//! A partition has at most one batch with a broker at a time, so its records never overtake each other. A batch that comes back goes to the front
//! again. Invariant: `bytes` and `count` cover each record from [`Queue::push`] until [`Queue::settle`], with a broker or not.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use bytes::Bytes;
use ilion_commitlog::{AppendCallback, AppendError};

/// A batch of a partition has about this many bytes.
const BATCH_BYTES: usize = 1 << 20;

/// A record on its way. It calls back once, at the latest when it is dropped.
pub(crate) struct Pending {
    pub value: Bytes,
    pub deadline: Instant,
    /// Whether a broker may have it.
    pub may_be_there: bool,
    /// How many attempts got no answer in their time.
    pub late_attempts: u32,
    done: Option<AppendCallback>,
}

impl Pending {
    pub(crate) fn new(value: Bytes, deadline: Instant, done: AppendCallback) -> Self {
        Self {
            value,
            deadline,
            may_be_there: false,
            late_attempts: 0,
            done: Some(done),
        }
    }

    /// Reports that the record is in the log, at this offset.
    pub(crate) fn acknowledge(mut self, offset: u64) {
        self.call(Ok(offset));
    }

    /// Reports that the record is given up.
    pub(crate) fn give_up(mut self, problem: &str) {
        self.fail(problem);
    }

    fn fail(&mut self, problem: &str) {
        let problem = problem.to_owned();
        self.call(Err(match self.may_be_there {
            true => AppendError::Unknown(problem),
            false => AppendError::Refused(problem),
        }));
    }

    fn call(&mut self, outcome: Result<u64, AppendError>) {
        if let Some(done) = self.done.take() {
            shielded(|| done(outcome));
        }
    }
}

/// Calls a callback. One that panics must not end the task that works for others, too.
pub(crate) fn shielded(callback: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(callback)).is_err() {
        tracing::error!("a callback of the log panicked; please report it");
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.fail("the log was closed");
    }
}

#[derive(Default)]
struct Waiting {
    records: VecDeque<Pending>,
    /// Records that are not settled, those with a broker included.
    count: usize,
    is_with_broker: bool,
    /// The partition is sent no records before this time: the last attempt failed.
    not_before: Option<Instant>,
}

/// Records on their way, by partition.
#[derive(Default)]
pub(crate) struct Queue {
    partitions: BTreeMap<u32, Waiting>,
    bytes: usize,
    /// The partition that was taken last; the next call begins with the one after it.
    last_taken: u32,
}

/// Records of one partition that go to a broker together.
pub(crate) struct Taken {
    pub partition: u32,
    pub records: Vec<Pending>,
}

impl Queue {
    /// Bytes of all records that are not settled.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Records of a partition that are not settled.
    pub(crate) fn count(&self, partition: u32) -> usize {
        self.partitions.get(&partition).map_or(0, |waiting| waiting.count)
    }

    pub(crate) fn push(&mut self, partition: u32, record: Pending) {
        self.bytes += record.value.len();
        let waiting = self.partitions.entry(partition).or_default();
        waiting.count += 1;
        waiting.records.push_back(record);
    }

    /// Takes the records that can be sent now to the broker that leads `is_led` partitions.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        bytes_max: usize,
        is_led: impl Fn(u32) -> bool,
    ) -> Vec<Taken> {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        let first = self.last_taken.wrapping_add(1);
        let order: Vec<u32> = self
            .partitions
            .range(first..)
            .chain(self.partitions.range(..first))
            .filter(|(partition, waiting)| waiting.is_ready(now) && is_led(**partition))
            .map(|(partition, _)| *partition)
            .collect();
        for partition in order {
            let Some(waiting) = self.partitions.get_mut(&partition) else {
                continue;
            };
            let records = waiting.take_batch();
            bytes += records.iter().map(|record| record.value.len()).sum::<usize>();
            self.last_taken = partition;
            taken.push(Taken { partition, records });
            if bytes >= bytes_max {
                break;
            }
        }
        taken
    }

    /// Number of records that wait for the broker that leads `is_led` partitions.
    pub(crate) fn waiting(&self, is_led: impl Fn(u32) -> bool) -> usize {
        let led = self
            .partitions
            .iter()
            .filter(|(partition, _)| is_led(**partition));
        led.map(|(_, waiting)| waiting.records.len()).sum()
    }

    /// When [`Queue::take`] may have something for the broker that leads `is_led` partitions: `None` if there is nothing to wait for.
    pub(crate) fn ready_at(&self, now: Instant, is_led: impl Fn(u32) -> bool) -> Option<Instant> {
        let waiting = self.partitions.iter().filter(|(partition, waiting)| {
            !waiting.is_with_broker && !waiting.records.is_empty() && is_led(**partition)
        });
        waiting
            .map(|(_, waiting)| waiting.not_before.unwrap_or(now))
            .min()
    }

    /// Settles this number of records and bytes that were taken from a partition, whose next batch may then be sent.
    pub(crate) fn settle(&mut self, partition: u32, count: usize, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        if let Some(waiting) = self.partitions.get_mut(&partition) {
            waiting.count = waiting.count.saturating_sub(count);
            waiting.is_with_broker = false;
            waiting.not_before = None;
            if waiting.count == 0 {
                self.partitions.remove(&partition);
            }
        }
    }

    /// Puts records back that were taken; they are not sent before `not_before`. Settles and returns the records that are too late by now.
    pub(crate) fn put_back(&mut self, taken: Taken, now: Instant, not_before: Instant) -> Vec<Pending> {
        let Some(waiting) = self.partitions.get_mut(&taken.partition) else {
            return taken.records;
        };
        waiting.is_with_broker = false;
        waiting.not_before = Some(not_before);
        for record in taken.records.into_iter().rev() {
            waiting.records.push_front(record);
        }
        self.expire(now)
    }

    /// Settles and returns the waiting records that are too late.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<Pending> {
        let mut expired = Vec::new();
        for waiting in self.partitions.values_mut() {
            // Deadlines ascend: all records have the same time limit.
            while waiting
                .records
                .front()
                .is_some_and(|record| record.deadline <= now)
            {
                expired.extend(waiting.records.pop_front());
                waiting.count = waiting.count.saturating_sub(1);
            }
        }
        self.partitions.retain(|_, waiting| waiting.count > 0);
        let bytes: usize = expired.iter().map(|record| record.value.len()).sum();
        self.bytes = self.bytes.saturating_sub(bytes);
        expired
    }

    /// Takes out everything that waits.
    pub(crate) fn drain(&mut self) -> Vec<Pending> {
        let partitions = self.partitions.values_mut();
        partitions.flat_map(|waiting| waiting.records.drain(..)).collect()
    }
}

impl Waiting {
    fn is_ready(&self, now: Instant) -> bool {
        !self.is_with_broker
            && !self.records.is_empty()
            && self.not_before.is_none_or(|not_before| not_before <= now)
    }

    /// The first records, at least one.
    fn take_batch(&mut self) -> Vec<Pending> {
        self.is_with_broker = true;
        let mut bytes = 0;
        let fitting = self
            .records
            .iter()
            .take_while(|record| {
                bytes += record.value.len();
                bytes <= BATCH_BYTES
            })
            .count();
        self.records
            .drain(..fitting.clamp(1, self.records.len().max(1)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use parking_lot::Mutex;

    use super::*;

    type Outcomes = Arc<Mutex<Vec<(u8, Result<u64, AppendError>)>>>;

    struct World {
        queue: Queue,
        start: Instant,
        outcomes: Outcomes,
    }

    impl World {
        fn new() -> Self {
            Self {
                queue: Queue::default(),
                start: Instant::now(),
                outcomes: Outcomes::default(),
            }
        }

        fn at(&self, secs: u64) -> Instant {
            self.start + Duration::from_secs(secs)
        }

        fn push(&mut self, partition: u32, number: u8, deadline_secs: u64) {
            let outcomes = Arc::clone(&self.outcomes);
            let done: AppendCallback = Box::new(move |outcome| outcomes.lock().push((number, outcome)));
            let value = Bytes::copy_from_slice(&[number]);
            self.queue
                .push(partition, Pending::new(value, self.at(deadline_secs), done));
        }

        fn take(&mut self, secs: u64) -> Vec<Taken> {
            let now = self.at(secs);
            self.queue.take(now, 1 << 20, |_| true)
        }
    }

    fn numbers(taken: &[Taken]) -> Vec<(u32, Vec<u8>)> {
        let of_one = |taken: &Taken| {
            (
                taken.partition,
                taken.records.iter().map(|record| record.value[0]).collect(),
            )
        };
        taken.iter().map(of_one).collect()
    }

    #[test]
    fn a_partition_has_one_batch_with_a_broker_and_keeps_its_order() {
        let mut world = World::new();
        world.push(1, 1, 5);
        world.push(2, 9, 5);
        let mut first = world.take(0);
        assert_eq!(numbers(&first), [(1, vec![1]), (2, vec![9])]);
        world.push(1, 2, 5);
        world.push(1, 3, 5);
        assert!(world.take(0).is_empty());
        let (now, later) = (world.at(1), world.at(2));
        assert!(world.queue.put_back(first.remove(0), now, later).is_empty());
        assert!(world.take(1).is_empty(), "not yet");
        assert_eq!(world.queue.ready_at(world.at(1), |_| true), Some(world.at(2)));
        assert_eq!(numbers(&world.take(2)), [(1, vec![1, 2, 3])]);
    }

    #[test]
    fn what_is_led_by_another_broker_is_left() {
        let mut world = World::new();
        world.push(1, 1, 5);
        let now = world.at(0);
        assert!(
            world
                .queue
                .take(now, 1 << 20, |partition| partition == 2)
                .is_empty()
        );
        assert_eq!(world.queue.ready_at(now, |partition| partition == 2), None);
        assert_eq!(world.queue.ready_at(now, |_| true), Some(now));
    }

    #[test]
    fn a_full_request_leaves_the_other_partitions_to_the_next_one() {
        let mut world = World::new();
        for partition in 0..3 {
            world.push(partition, 0, 5);
        }
        let now = world.at(0);
        let mut order = Vec::new();
        for _ in 0..3 {
            let taken = world.queue.take(now, 1, |_| true);
            order.extend(numbers(&taken).into_iter().map(|(partition, _)| partition));
        }
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2], "no partition comes twice before another comes");
    }

    #[test]
    fn what_is_too_late_is_refused_or_unknown_as_it_was_sent_or_not() {
        let mut world = World::new();
        world.push(1, 1, 5);
        let mut taken = world.take(0);
        taken[0].records[0].may_be_there = true;
        world.push(1, 2, 5);
        world.push(1, 3, 6);
        let now = world.at(5);
        for record in world.queue.put_back(taken.remove(0), now, now) {
            record.give_up("too late");
        }
        let outcomes = world.outcomes.lock().clone();
        assert_eq!(
            outcomes,
            [
                (1, Err(AppendError::Unknown("too late".to_owned()))),
                (2, Err(AppendError::Refused("too late".to_owned())))
            ]
        );
        assert_eq!((world.queue.bytes(), world.queue.count(1)), (1, 1));
    }

    #[test]
    fn accounts_end_with_zero_and_who_is_dropped_calls_back() {
        let mut world = World::new();
        world.push(1, 1, 5);
        world.push(1, 2, 5);
        let mut taken = world.take(0).remove(0);
        world.queue.settle(1, 2, 2);
        taken.records.remove(0).acknowledge(7);
        drop(taken);
        assert_eq!((world.queue.bytes(), world.queue.count(1)), (0, 0));
        let outcomes = world.outcomes.lock().clone();
        assert_eq!(outcomes[0], (1, Ok(7)));
        assert_eq!(
            outcomes[1],
            (2, Err(AppendError::Refused("the log was closed".to_owned())))
        );
    }

    #[test]
    fn a_callback_that_panics_ends_nothing() {
        let done: AppendCallback = Box::new(|_| panic!("of a caller"));
        Pending::new(Bytes::new(), Instant::now(), done).acknowledge(1);
    }

    #[test]
    fn a_batch_is_bounded_and_has_at_least_one_record() {
        let mut world = World::new();
        for number in 0..3 {
            let done: AppendCallback = Box::new(|_| ());
            let value = Bytes::from(vec![number; BATCH_BYTES * 2 / 3]);
            let deadline = world.at(5);
            world.queue.push(1, Pending::new(value, deadline, done));
        }
        for expected in 0..3 {
            assert_eq!(numbers(&world.take(0)), [(1, vec![expected])]);
            world.queue.settle(1, 1, 0);
        }
    }
}
