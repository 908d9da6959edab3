//! [`Following`]: which partitions a tail reads, and what has arrived. Pure: it asks no broker, and the clock is a parameter.
//!
//! When a partition is read from another offset, it gets a new turn. So an answer to a request from before the change is recognised and dropped.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ilion_commitlog::Record;
use ilion_kafka_client::batch::{self, Batch};
use uuid::Uuid;

use crate::frame;
use crate::topics::Sharing;

/// A call of [`Following::take`] returns about this many bytes.
const CALL_BYTES: usize = 2 << 20;

/// A partition that is read.
#[derive(Clone, Debug)]
struct Followed {
    next: i64,
    turn: u64,
    /// The partition is not requested before this time, since it failed.
    not_before: Option<Instant>,
    /// When a broker last answered for it, or when it was first asked for.
    answered: Instant,
    /// True if an answer did not have the next batch of the partition, although the partition has one.
    is_left_out: bool,
    /// The partition has records up to here, as far as this node knows.
    end: i64,
}

/// Records of one partition that this node has appended, and a broker acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    pub partition: u32,
    /// The offset of the first one; the others follow without a gap.
    pub base_offset: i64,
    /// When the broker appended them; negative if it does not say.
    pub time_millis: i64,
    pub values: Vec<Bytes>,
}

impl Own {
    /// The offset behind the last one.
    pub(crate) fn end(&self) -> i64 {
        let count = i64::try_from(self.values.len()).unwrap_or(i64::MAX);
        self.base_offset.saturating_add(count)
    }
}

/// A request for the records of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub partition: u32,
    pub next: i64,
    turn: u64,
}

/// Records of one partition that have arrived.
enum Records {
    /// Those of the batch from this offset on.
    Fetched {
        partition: u32,
        from: i64,
        batch: Batch,
    },
    Own(Own),
}

enum Come {
    Records(Records),
    Failed(Failed),
}

/// A record at its place in a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub partition: u32,
    pub offset: u64,
    pub record: Record,
}

/// Why a partition is not read any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    pub partition: u32,
    pub failure: Failure,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The records below this offset are deleted, and the next one was among them.
    Deleted { start: u64 },
    /// The record at this offset cannot be read.
    Unreadable { offset: u64, reason: String },
    /// The partition is not what it was.
    Refused(String),
}

/// The partitions that a tail reads, and the batches that have arrived.
pub(crate) struct Following {
    frames: Frames,
    partitions: BTreeMap<u32, Followed>,
    come: VecDeque<Come>,
    bytes: usize,
    turns: u64,
    /// The partition that the last requests began with; the next ones begin with the one after it.
    first: u32,
    /// The last failure, for messages.
    trouble: Option<String>,
    told: Option<Instant>,
}

/// Where an offset that a broker does not have is, according to the start and the end of the partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Range {
    /// It was deleted; the partition starts here.
    Deleted(u64),
    /// The partition ends here, below the offset.
    Shorter(i64),
    /// The partition has it, after all.
    Within,
}

/// Where an offset is. Pure.
pub(crate) fn judge_range(offset: i64, start: i64, end: i64) -> Range {
    match u64::try_from(start) {
        Ok(start_offset) if offset < start => Range::Deleted(start_offset),
        _ if offset > end => Range::Shorter(end),
        _ => Range::Within,
    }
}

impl Following {
    pub(crate) fn new(cluster: Uuid, sharing: Sharing) -> Self {
        Self {
            frames: Frames { cluster, sharing },
            partitions: BTreeMap::new(),
            come: VecDeque::new(),
            bytes: 0,
            turns: 0,
            first: 0,
            trouble: None,
            told: None,
        }
    }

    /// Bytes that have arrived and were not taken yet.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn follow(&mut self, partition: u32, from: u64, now: Instant) {
        self.leave(partition);
        self.turns += 1;
        let followed = Followed {
            next: i64::try_from(from).unwrap_or(i64::MAX),
            turn: self.turns,
            not_before: None,
            answered: now,
            is_left_out: false,
            end: 0,
        };
        self.partitions.insert(partition, followed);
    }

    pub(crate) fn leave(&mut self, partition: u32) {
        self.partitions.remove(&partition);
        self.come.retain(|come| come.partition() != partition);
        self.bytes = self.come.iter().map(Come::bytes).sum();
    }

    /// The requests for the broker that leads `is_led` partitions. They begin with another one each time, since most of an answer is of the
    /// first one.
    pub(crate) fn ask(&mut self, now: Instant, is_led: impl Fn(u32) -> bool) -> Vec<Asked> {
        let first = self.first;
        let all = self
            .partitions
            .range(first..)
            .chain(self.partitions.range(..first));
        let ready = all.filter(|(partition, followed)| {
            is_led(**partition) && followed.not_before.is_none_or(|not_before| not_before <= now)
        });
        let (left_out, others): (Vec<_>, Vec<_>) = ready.partition(|(_, followed)| followed.is_left_out);
        let asked: Vec<Asked> = left_out
            .into_iter()
            .chain(others)
            .map(|(partition, followed)| Asked {
                partition: *partition,
                next: followed.next,
                turn: followed.turn,
            })
            .collect();
        if let Some(asked) = asked.first() {
            self.first = asked.partition.wrapping_add(1);
        }
        asked
    }

    /// When [`Following::ask`] will return a partition that it does not return now; `None` if no time changes that.
    pub(crate) fn ready_at(&self, is_led: impl Fn(u32) -> bool) -> Option<Instant> {
        let led = self
            .partitions
            .iter()
            .filter(|(partition, _)| is_led(**partition));
        led.filter_map(|(_, followed)| followed.not_before).min()
    }

    fn current(&mut self, asked: Asked) -> Option<&mut Followed> {
        let followed = self.partitions.get_mut(&asked.partition)?;
        (followed.turn == asked.turn && followed.next == asked.next).then_some(followed)
    }

    /// Notes that a partition has records below `end`.
    pub(crate) fn reach(&mut self, partition: u32, end: i64) {
        if let Some(followed) = self.partitions.get_mut(&partition) {
            followed.end = followed.end.max(end);
        }
    }

    /// Whether `is_led` partitions are known to have records that have not come.
    pub(crate) fn is_behind(&self, is_led: impl Fn(u32) -> bool) -> bool {
        let mut led = self
            .partitions
            .iter()
            .filter(|(partition, _)| is_led(**partition));
        led.any(|(_, followed)| followed.next < followed.end)
    }

    /// Takes records that this node has appended itself, so that they need not be fetched, if they are the next ones of their
    /// partition. Otherwise notes that the partition has them.
    pub(crate) fn receive_own(&mut self, own: Own) {
        let Some(followed) = self.partitions.get_mut(&own.partition) else {
            return;
        };
        followed.end = followed.end.max(own.end());
        if followed.next == own.base_offset && own.time_millis >= 0 {
            followed.next = own.end();
            followed.is_left_out = false;
            self.arrive(Records::Own(own));
        }
    }

    /// Takes batches from a broker, where the partition ends at `end`. The last batch may be incomplete.
    pub(crate) fn receive(&mut self, asked: Asked, mut bytes: Bytes, end: i64, now: Instant) {
        let Some(followed) = self.current(asked) else {
            return;
        };
        (followed.answered, followed.not_before) = (now, None);
        followed.end = followed.end.max(end);
        let mut from = asked.next;
        loop {
            match batch::split(&mut bytes) {
                Ok(Some(batch)) if batch.last_offset < from => {}
                Ok(Some(batch)) => {
                    let next = batch.last_offset + 1;
                    if !batch.is_control {
                        let partition = asked.partition;
                        self.arrive(Records::Fetched {
                            partition,
                            from,
                            batch,
                        });
                    }
                    from = next;
                }
                Ok(None) => break,
                Err(error) => {
                    let reason = format!("Kafka's batch there is damaged: expected {}", error.expected);
                    let offset = u64::try_from(from).unwrap_or(0);
                    return self.fail(asked, Failure::Unreadable { offset, reason });
                }
            }
        }
        // The next batch may be too large for what the partitions before this one left of the answer.
        let is_left_out = from == asked.next && from < end;
        if let Some(followed) = self.partitions.get_mut(&asked.partition) {
            (followed.next, followed.is_left_out) = (from, is_left_out);
        }
    }

    fn arrive(&mut self, records: Records) {
        self.bytes += records.bytes();
        self.come.push_back(Come::Records(records));
    }

    /// Notes a failure that does not pass: the partition is not read any more. Records that came before are still delivered.
    pub(crate) fn fail(&mut self, asked: Asked, failure: Failure) {
        let partition = asked.partition;
        let followed = self.partitions.get(&partition);
        if followed.is_some_and(|followed| followed.turn == asked.turn) {
            self.partitions.remove(&partition);
            self.come.push_back(Come::Failed(Failed { partition, failure }));
        }
    }

    /// Notes a failure that may pass: the partition is requested again after `until`.
    pub(crate) fn put_off(&mut self, asked: Asked, trouble: &str, until: Instant) {
        self.note(trouble);
        if let Some(followed) = self.current(asked) {
            followed.not_before = Some(until);
        }
    }

    /// Notes a failure, for messages.
    pub(crate) fn note(&mut self, trouble: &str) {
        self.trouble = Some(trouble.to_owned());
    }

    /// Whether [`Following::take`] has records or a failure to return.
    pub(crate) fn has_come(&self) -> bool {
        !self.come.is_empty()
    }

    /// The next records, or a failure. Records before a failure are returned first.
    pub(crate) fn take(&mut self) -> Result<Vec<Placed>, Failed> {
        let (mut placed, mut bytes) = (Vec::new(), 0);
        while bytes < CALL_BYTES {
            match self.come.pop_front() {
                None => break,
                Some(Come::Failed(failed)) if placed.is_empty() => return Err(failed),
                Some(failed @ Come::Failed(_)) => {
                    self.come.push_front(failed);
                    break;
                }
                Some(Come::Records(records)) => {
                    self.bytes = self.bytes.saturating_sub(records.bytes());
                    bytes += records.bytes();
                    if let Err(failed) = records.deliver(self.frames, &mut placed) {
                        self.leave(records.partition());
                        self.come.push_front(Come::Failed(failed));
                    }
                }
            }
        }
        Ok(placed)
    }

    /// What is wrong with the partitions that no broker has answered for within the time `after`; at most once in this time.
    pub(crate) fn unreachable(&mut self, now: Instant, after: Duration) -> Option<String> {
        let is_silent = |since: Instant| now.saturating_duration_since(since) >= after;
        if self.told.is_some_and(|told| !is_silent(told)) {
            return None;
        }
        let silent: Vec<u32> = self
            .partitions
            .iter()
            .filter(|(_, followed)| is_silent(followed.answered))
            .map(|(partition, _)| *partition)
            .collect();
        let log = self.frames.sharing.logs_in(*silent.first()?).next()?;
        self.told = Some(now);
        let trouble = self.trouble.as_deref().unwrap_or("it has no leader");
        Some(format!(
            "{} of {} partitions, such as that of log {log}, for more than {after:?}: {trouble}",
            silent.len(),
            self.partitions.len()
        ))
    }
}

impl Come {
    fn partition(&self) -> u32 {
        match self {
            Self::Records(records) => records.partition(),
            Self::Failed(failed) => failed.partition,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Records(records) => records.bytes(),
            Self::Failed(_) => 0,
        }
    }
}

impl Records {
    fn partition(&self) -> u32 {
        match self {
            Self::Fetched { partition, .. } => *partition,
            Self::Own(own) => own.partition,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Fetched { batch, .. } => batch.size_bytes(),
            Self::Own(own) => own.values.iter().map(Bytes::len).sum(),
        }
    }

    fn deliver(&self, frames: Frames, placed: &mut Vec<Placed>) -> Result<(), Failed> {
        let (partition, from, batch) = match self {
            Self::Fetched {
                partition,
                from,
                batch,
            } => (*partition, *from, batch),
            Self::Own(own) => {
                for (value, offset) in own.values.iter().zip(own.base_offset..) {
                    placed.push(frames.read((own.partition, offset), own.time_millis, value)?);
                }
                return Ok(());
            }
        };
        let records = batch.records().map_err(|error| {
            let reason = format!("Kafka's batch there is damaged: expected {}", error.expected);
            unreadable(partition, from.max(batch.base_offset), reason)
        })?;
        for record in records.into_iter().filter(|record| record.offset >= from) {
            let value = record.value.unwrap_or_default();
            placed.push(frames.read((partition, record.offset), batch.max_time_millis, &value)?);
        }
        Ok(())
    }
}

/// What the records of a cluster have in common.
#[derive(Clone, Copy, Debug)]
struct Frames {
    cluster: Uuid,
    sharing: Sharing,
}

impl Frames {
    /// Reads a record at its place: a partition and an offset.
    fn read(
        self,
        (partition, offset): (u32, i64),
        time_millis: i64,
        value: &Bytes,
    ) -> Result<Placed, Failed> {
        let time_micros = time_millis.saturating_mul(1000);
        let record = frame::decode(self.cluster, self.sharing, partition, time_micros, value);
        Ok(Placed {
            partition,
            offset: u64::try_from(offset).unwrap_or(0),
            record: record.map_err(|reason| unreadable(partition, offset, reason))?,
        })
    }
}

fn unreadable(partition: u32, offset: i64, reason: String) -> Failed {
    let offset = u64::try_from(offset).unwrap_or(0);
    let failure = Failure::Unreadable { offset, reason };
    Failed { partition, failure }
}

#[cfg(test)]
mod tests {
    use ilion_commitlog::Envelope;
    use ilion_kafka_client::batch::Entry;

    use super::*;

    const CLUSTER: Uuid = Uuid::from_u128(7);
    const SHARING: Sharing = Sharing {
        tablets: 9,
        partitions: 9,
        meta_log: u32::MAX,
    };

    fn value(cluster: Uuid, log: u32, body: u8) -> Bytes {
        let body = [body];
        let envelope = Envelope {
            tablet: log,
            ..Envelope::mutation(&body)
        };
        frame::encode(cluster, SHARING, &envelope)
    }

    fn batch_at(base_offset: i64, values: &[Bytes]) -> Vec<u8> {
        let entries = values.iter().map(|value| Entry {
            key: None,
            value,
            headers: &[],
            created_millis: 0,
        });
        let mut batch = batch::encode(entries);
        batch::place(&mut batch, base_offset, base_offset);
        batch
    }

    fn good(base_offset: i64, count: u8) -> Vec<u8> {
        let values: Vec<Bytes> = (0..count).map(|body| value(CLUSTER, 1, body)).collect();
        batch_at(base_offset, &values)
    }

    struct World {
        following: Following,
        now: Instant,
    }

    impl World {
        fn new(from: u64) -> Self {
            let (mut following, now) = (Following::new(CLUSTER, SHARING), Instant::now());
            following.follow(1, from, now);
            Self { following, now }
        }

        fn asked(&mut self) -> Asked {
            self.following.ask(self.now, |_| true)[0]
        }

        fn receive(&mut self, batches: &[Vec<u8>]) {
            let asked = self.asked();
            self.following
                .receive(asked, batches.concat().into(), 0, self.now);
        }

        fn offsets(&mut self) -> Vec<u64> {
            let delivered = self.following.take().unwrap();
            delivered.iter().map(|delivered| delivered.offset).collect()
        }
    }

    #[test]
    fn records_come_in_order_from_the_offset_on_with_the_time_of_the_log() {
        let mut world = World::new(1);
        // A fetch begins with the whole batch that has the offset, and ends with a cut one. There is a gap.
        world.receive(&[good(0, 3), good(7, 2), good(9, 2)[..80].to_vec()]);
        assert_eq!(world.asked().next, 9);
        let delivered = world.following.take().unwrap();
        let seen: Vec<_> = delivered
            .iter()
            .map(|one| {
                (
                    one.partition,
                    one.offset,
                    one.record.time_micros,
                    one.record.body[0],
                )
            })
            .collect();
        assert_eq!(
            seen,
            [(1, 1, 0, 1), (1, 2, 0, 2), (1, 7, 7000, 0), (1, 8, 7000, 1)]
        );
        assert_eq!(world.following.bytes(), 0);
    }

    #[test]
    fn an_answer_to_an_old_question_is_dropped() {
        let mut world = World::new(0);
        let old = world.asked();
        world.following.follow(1, 5, world.now);
        world.following.receive(old, good(0, 3).into(), 3, world.now);
        assert!(!world.following.has_come());
        world.receive(&[good(5, 1)]);
        world.following.leave(1);
        assert!(!world.following.has_come());
        assert_eq!(world.following.bytes(), 0);
        assert!(world.following.ask(world.now, |_| true).is_empty());
    }

    fn own(base_offset: i64, time_millis: i64) -> Own {
        Own {
            partition: 1,
            base_offset,
            time_millis,
            values: (0..2).map(|body| value(CLUSTER, 1, body)).collect(),
        }
    }

    #[test]
    fn own_records_come_in_their_place_only() {
        let mut world = World::new(3);
        let asked = world.asked();
        world.following.receive_own(own(3, 7));
        // The broker answers with the same records.
        world.following.receive(asked, good(3, 2).into(), 5, world.now);
        assert!(!world.following.is_behind(|_| true));
        let delivered = world.following.take().unwrap();
        let seen: Vec<_> = delivered
            .iter()
            .map(|one| (one.offset, one.record.time_micros, one.record.body[0]))
            .collect();
        assert_eq!(seen, [(3, 7000, 0), (4, 7000, 1)]);
        assert_eq!(world.following.bytes(), 0);
        // Others wrote before, the broker does not tell the time, or they came already.
        for other in [own(6, 7), own(5, -1), own(3, 7)] {
            world.following.receive_own(other);
            assert!(!world.following.has_come());
        }
        assert!(world.following.is_behind(|_| true));
        world.receive(&[good(5, 3)]);
        assert!(!world.following.is_behind(|_| true));
        assert_eq!(world.offsets(), [5, 6, 7]);
    }

    #[test]
    fn a_partition_is_behind_up_to_its_known_end() {
        let mut world = World::new(0);
        assert!(!world.following.is_behind(|_| true));
        world.following.reach(1, 3);
        world.following.reach(1, 2);
        world.following.reach(2, 9);
        assert!(world.following.is_behind(|_| true));
        assert!(
            !world.following.is_behind(|partition| partition == 2),
            "it is not followed"
        );
        world.receive(&[good(0, 2)]);
        assert!(world.following.is_behind(|_| true));
        world.receive(&[good(2, 1)]);
        assert!(!world.following.is_behind(|_| true));
    }

    #[test]
    fn an_unreadable_record_stops_its_partition_after_the_records_before_it() {
        let mut world = World::new(0);
        let foreign = batch_at(3, &[value(CLUSTER, 1, 0), value(Uuid::nil(), 1, 0)]);
        world.receive(&[good(0, 3), foreign, good(5, 1)]);
        assert_eq!(world.offsets(), [0, 1, 2, 3]);
        let error = world.following.take().unwrap_err();
        assert!(
            matches!(error.failure, Failure::Unreadable { offset: 4, ref reason } if reason.contains("two clusters")),
            "{error:?}"
        );
        assert!(
            world.following.ask(world.now, |_| true).is_empty(),
            "not read any more"
        );
        assert_eq!(world.offsets(), [0_u64; 0], "what is behind it does not come");
    }

    #[test]
    fn a_damaged_batch_is_unreadable() {
        let mut world = World::new(0);
        let mut damaged = good(3, 2);
        let last = damaged.len() - 1;
        damaged[last] ^= 1;
        world.receive(&[good(0, 3), damaged]);
        assert_eq!(world.offsets(), [0, 1, 2]);
        let error = world.following.take().unwrap_err();
        assert!(
            matches!(error.failure, Failure::Unreadable { offset: 3, .. }),
            "{error:?}"
        );
        let mut world = World::new(0);
        world.receive(&[vec![0xff; 100]]);
        let error = world.following.take().unwrap_err();
        assert!(
            matches!(error.failure, Failure::Unreadable { offset: 0, .. }),
            "{error:?}"
        );
    }

    #[test]
    fn partitions_take_turns_at_the_front_and_failed_ones_rest() {
        let mut world = World::new(0);
        world.following.follow(2, 0, world.now);
        let firsts: Vec<u32> = (0..3).map(|_| world.asked().partition).collect();
        assert_eq!(firsts, [1, 2, 1]);
        let later = world.now + Duration::from_secs(1);
        let asked = world.following.ask(world.now, |partition| partition == 2)[0];
        world.following.put_off(asked, "no leader", later);
        let numbers = |asked: Vec<Asked>| asked.iter().map(|asked| asked.partition).collect::<Vec<_>>();
        assert_eq!(numbers(world.following.ask(world.now, |_| true)), [1]);
        assert_eq!(world.following.ready_at(|_| true), Some(later));
        assert_eq!(world.following.ask(later, |_| true).len(), 2);
    }

    #[test]
    fn a_batch_that_did_not_fit_is_asked_for_first() {
        let mut world = World::new(0);
        for partition in 2..9 {
            world.following.follow(partition, 0, world.now);
        }
        let asked = world.following.ask(world.now, |partition| partition == 5)[0];
        world.following.receive(asked, Bytes::new(), 1, world.now);
        assert_eq!(world.asked().partition, 5);
        assert_eq!(world.asked().partition, 5, "until it comes");
        let asked = world.following.ask(world.now, |partition| partition == 5)[0];
        world.following.receive(asked, Bytes::new(), 0, world.now);
        assert_ne!(world.asked().partition, 5, "it has no news");
    }

    #[test]
    fn silence_is_told_once_in_its_time() {
        let mut world = World::new(0);
        let after = Duration::from_secs(5);
        assert_eq!(world.following.unreachable(world.now + after / 2, after), None);
        world.following.note("a broker is down");
        let told = world.following.unreachable(world.now + after, after).unwrap();
        assert_eq!(
            told,
            "1 of 1 partitions, such as that of log 1, for more than 5s: a broker is down"
        );
        assert_eq!(world.following.unreachable(world.now + after, after), None);
        assert!(
            world
                .following
                .unreachable(world.now + 2 * after, after)
                .is_some()
        );
    }

    #[test]
    fn an_offset_outside_of_the_log_is_deleted_or_never_was() {
        assert_eq!(judge_range(4, 5, 9), Range::Deleted(5));
        assert_eq!(judge_range(10, 5, 9), Range::Shorter(9));
        assert_eq!(judge_range(9, 5, 9), Range::Within);
        assert_eq!(judge_range(5, 5, 5), Range::Within);
    }
}
