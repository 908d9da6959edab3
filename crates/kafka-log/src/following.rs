//! [`Following`]: which logs a tail reads, and what has arrived. Pure: it asks no broker, and the clock is a parameter.
//!
//! When a log is read from another offset, it gets a new turn. So an answer to a request from before the change is recognised and dropped.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ilion_commitlog::{Delivered, TailError};
use ilion_kafka_client::batch::{self, Batch};
use uuid::Uuid;

use crate::frame;

/// A call of [`Following::take`] returns about this many bytes.
const CALL_BYTES: usize = 2 << 20;

/// A log that is read.
#[derive(Clone, Debug)]
struct Followed {
    next: i64,
    turn: u64,
    /// The log is not requested before this time, since it failed.
    not_before: Option<Instant>,
    /// When a broker last answered for it, or when it was first asked for.
    answered: Instant,
    /// True if an answer did not have the next batch of the log, although the log has one.
    is_left_out: bool,
    /// The log has records up to here, as far as this node knows.
    end: i64,
}

/// Records of one log that this node has appended, and a broker acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    pub log: u32,
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

/// A request for the records of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub log: u32,
    pub next: i64,
    turn: u64,
}

/// Records of one log that have arrived.
enum Records {
    /// Those of the batch from this offset on.
    Fetched {
        log: u32,
        from: i64,
        batch: Batch,
    },
    Own(Own),
}

enum Come {
    Records(Records),
    Failed(TailError),
}

/// The logs that a tail reads, and the batches that have arrived.
pub(crate) struct Following {
    cluster: Uuid,
    logs: BTreeMap<u32, Followed>,
    come: VecDeque<Come>,
    bytes: usize,
    turns: u64,
    /// The log that the last requests began with; the next ones begin with the log after it.
    first: u32,
    /// The last failure, for messages.
    trouble: Option<String>,
    told: Option<Instant>,
}

/// Where an offset that a broker does not have is, according to the start and the end of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Range {
    /// It was deleted; the log starts here.
    Deleted(u64),
    /// The log ends here, below the offset.
    Shorter(i64),
    /// The log has it, after all.
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
    pub(crate) fn new(cluster: Uuid) -> Self {
        Self {
            cluster,
            logs: BTreeMap::new(),
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

    pub(crate) fn follow(&mut self, log: u32, from: u64, now: Instant) {
        self.leave(log);
        self.turns += 1;
        let followed = Followed {
            next: i64::try_from(from).unwrap_or(i64::MAX),
            turn: self.turns,
            not_before: None,
            answered: now,
            is_left_out: false,
            end: 0,
        };
        self.logs.insert(log, followed);
    }

    pub(crate) fn leave(&mut self, log: u32) {
        self.logs.remove(&log);
        let is_kept = |come: &Come| match come {
            Come::Records(records) => records.log() != log,
            Come::Failed(error) => log_of(error) != Some(log),
        };
        self.come.retain(is_kept);
        self.bytes = self.come.iter().map(Come::bytes).sum();
    }

    /// The requests for the broker that leads `is_led` logs. They begin with another log each time, since most of an answer is of the
    /// first log.
    pub(crate) fn ask(&mut self, now: Instant, is_led: impl Fn(u32) -> bool) -> Vec<Asked> {
        let first = self.first;
        let logs = self.logs.range(first..).chain(self.logs.range(..first));
        let ready = logs.filter(|(log, followed)| {
            is_led(**log) && followed.not_before.is_none_or(|not_before| not_before <= now)
        });
        let (left_out, others): (Vec<_>, Vec<_>) = ready.partition(|(_, followed)| followed.is_left_out);
        let asked: Vec<Asked> = left_out
            .into_iter()
            .chain(others)
            .map(|(log, followed)| Asked {
                log: *log,
                next: followed.next,
                turn: followed.turn,
            })
            .collect();
        if let Some(asked) = asked.first() {
            self.first = asked.log.wrapping_add(1);
        }
        asked
    }

    /// When [`Following::ask`] will return a log that it does not return now; `None` if no time changes that.
    pub(crate) fn ready_at(&self, is_led: impl Fn(u32) -> bool) -> Option<Instant> {
        let led = self.logs.iter().filter(|(log, _)| is_led(**log));
        led.filter_map(|(_, followed)| followed.not_before).min()
    }

    fn current(&mut self, asked: Asked) -> Option<&mut Followed> {
        let followed = self.logs.get_mut(&asked.log)?;
        (followed.turn == asked.turn && followed.next == asked.next).then_some(followed)
    }

    /// Notes that a log has records below `end`.
    pub(crate) fn reach(&mut self, log: u32, end: i64) {
        if let Some(followed) = self.logs.get_mut(&log) {
            followed.end = followed.end.max(end);
        }
    }

    /// Whether `is_led` logs are known to have records that have not come.
    pub(crate) fn is_behind(&self, is_led: impl Fn(u32) -> bool) -> bool {
        let mut led = self.logs.iter().filter(|(log, _)| is_led(**log));
        led.any(|(_, followed)| followed.next < followed.end)
    }

    /// Takes records that this node has appended itself, so that they need not be fetched, if they are the next ones of their log. Otherwise
    /// notes that the log has them.
    pub(crate) fn receive_own(&mut self, own: Own) {
        let Some(followed) = self.logs.get_mut(&own.log) else {
            return;
        };
        followed.end = followed.end.max(own.end());
        if followed.next == own.base_offset && own.time_millis >= 0 {
            followed.next = own.end();
            followed.is_left_out = false;
            self.arrive(Records::Own(own));
        }
    }

    /// Takes batches from a broker, where the log ends at `end`. The last batch may be incomplete.
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
                        let log = asked.log;
                        self.arrive(Records::Fetched { log, from, batch });
                    }
                    from = next;
                }
                Ok(None) => break,
                Err(error) => {
                    let reason = format!("Kafka's batch there is damaged: expected {}", error.expected);
                    let offset = u64::try_from(from).unwrap_or(0);
                    let log = asked.log;
                    return self.fail(asked, TailError::Unreadable { log, offset, reason });
                }
            }
        }
        // The next batch may be too large for what the logs before this one left of the answer.
        let is_left_out = from == asked.next && from < end;
        if let Some(followed) = self.logs.get_mut(&asked.log) {
            (followed.next, followed.is_left_out) = (from, is_left_out);
        }
    }

    fn arrive(&mut self, records: Records) {
        self.bytes += records.bytes();
        self.come.push_back(Come::Records(records));
    }

    /// Notes a failure that does not pass: the log is not read any more. Records that came before are still delivered.
    pub(crate) fn fail(&mut self, asked: Asked, error: TailError) {
        if self
            .logs
            .get(&asked.log)
            .is_some_and(|log| log.turn == asked.turn)
        {
            self.logs.remove(&asked.log);
            self.come.push_back(Come::Failed(error));
        }
    }

    /// Notes a failure that may pass: the log is requested again after `until`.
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
    pub(crate) fn take(&mut self) -> Result<Vec<Delivered>, TailError> {
        let (mut delivered, mut bytes) = (Vec::new(), 0);
        while bytes < CALL_BYTES {
            match self.come.pop_front() {
                None => break,
                Some(Come::Failed(error)) if delivered.is_empty() => return Err(error),
                Some(failed @ Come::Failed(_)) => {
                    self.come.push_front(failed);
                    break;
                }
                Some(Come::Records(records)) => {
                    self.bytes = self.bytes.saturating_sub(records.bytes());
                    bytes += records.bytes();
                    if let Err(error) = records.deliver(self.cluster, &mut delivered) {
                        self.leave(records.log());
                        self.come.push_front(Come::Failed(error));
                    }
                }
            }
        }
        Ok(delivered)
    }

    /// An error about the logs that no broker has answered for within the time `after`; at most once in this time.
    pub(crate) fn unreachable(&mut self, now: Instant, after: Duration) -> Option<TailError> {
        let is_silent = |since: Instant| now.saturating_duration_since(since) >= after;
        if self.told.is_some_and(|told| !is_silent(told)) {
            return None;
        }
        let silent: Vec<u32> = self
            .logs
            .iter()
            .filter(|(_, followed)| is_silent(followed.answered))
            .map(|(log, _)| *log)
            .collect();
        let first = silent.first()?;
        self.told = Some(now);
        let trouble = self.trouble.as_deref().unwrap_or("it has no leader");
        Some(TailError::Unreachable(format!(
            "{} of {} logs, such as log {first}, for more than {after:?}: {trouble}",
            silent.len(),
            self.logs.len()
        )))
    }
}

impl Come {
    fn bytes(&self) -> usize {
        match self {
            Self::Records(records) => records.bytes(),
            Self::Failed(_) => 0,
        }
    }
}

fn log_of(error: &TailError) -> Option<u32> {
    match error {
        TailError::Deleted { log, .. } | TailError::Unreadable { log, .. } => Some(*log),
        TailError::Unreachable(_) | TailError::Refused(_) => None,
    }
}

impl Records {
    fn log(&self) -> u32 {
        match self {
            Self::Fetched { log, .. } => *log,
            Self::Own(own) => own.log,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Fetched { batch, .. } => batch.size_bytes(),
            Self::Own(own) => own.values.iter().map(Bytes::len).sum(),
        }
    }

    fn deliver(&self, cluster: Uuid, delivered: &mut Vec<Delivered>) -> Result<(), TailError> {
        let (log, from, batch) = match self {
            Self::Fetched { log, from, batch } => (*log, *from, batch),
            Self::Own(own) => {
                for (value, offset) in own.values.iter().zip(own.base_offset..) {
                    delivered.push(read(cluster, (own.log, offset), own.time_millis, value)?);
                }
                return Ok(());
            }
        };
        let records = batch.records().map_err(|error| {
            let reason = format!("Kafka's batch there is damaged: expected {}", error.expected);
            unreadable(log, from.max(batch.base_offset), reason)
        })?;
        for record in records.into_iter().filter(|record| record.offset >= from) {
            let value = record.value.unwrap_or_default();
            delivered.push(read(
                cluster,
                (log, record.offset),
                batch.max_time_millis,
                &value,
            )?);
        }
        Ok(())
    }
}

/// Reads a record at its place: a log and an offset.
fn read(
    cluster: Uuid,
    (log, offset): (u32, i64),
    time_millis: i64,
    value: &Bytes,
) -> Result<Delivered, TailError> {
    let time_micros = time_millis.saturating_mul(1000);
    let record = frame::decode(cluster, log, time_micros, value);
    Ok(Delivered {
        log,
        offset: u64::try_from(offset).unwrap_or(0),
        record: record.map_err(|reason| unreadable(log, offset, reason))?,
    })
}

fn unreadable(log: u32, offset: i64, reason: String) -> TailError {
    TailError::Unreadable {
        log,
        offset: u64::try_from(offset).unwrap_or(0),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use ilion_commitlog::Envelope;
    use ilion_kafka_client::batch::Entry;

    use super::*;

    const CLUSTER: Uuid = Uuid::from_u128(7);

    fn value(cluster: Uuid, log: u32, body: u8) -> Bytes {
        let body = [body];
        let envelope = Envelope {
            tablet: log,
            ..Envelope::mutation(&body)
        };
        frame::encode(cluster, &envelope)
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
            let (mut following, now) = (Following::new(CLUSTER), Instant::now());
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
            .map(|one| (one.log, one.offset, one.record.time_micros, one.record.body[0]))
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
            log: 1,
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
    fn a_log_is_behind_up_to_its_known_end() {
        let mut world = World::new(0);
        assert!(!world.following.is_behind(|_| true));
        world.following.reach(1, 3);
        world.following.reach(1, 2);
        world.following.reach(2, 9);
        assert!(world.following.is_behind(|_| true));
        assert!(!world.following.is_behind(|log| log == 2), "it is not followed");
        world.receive(&[good(0, 2)]);
        assert!(world.following.is_behind(|_| true));
        world.receive(&[good(2, 1)]);
        assert!(!world.following.is_behind(|_| true));
    }

    #[test]
    fn an_unreadable_record_stops_its_log_after_the_records_before_it() {
        let mut world = World::new(0);
        let foreign = batch_at(3, &[value(CLUSTER, 1, 0), value(Uuid::nil(), 1, 0)]);
        world.receive(&[good(0, 3), foreign, good(5, 1)]);
        assert_eq!(world.offsets(), [0, 1, 2, 3]);
        let error = world.following.take().unwrap_err();
        assert!(
            matches!(error, TailError::Unreadable { log: 1, offset: 4, ref reason } if reason.contains("two clusters")),
            "{error}"
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
            matches!(error, TailError::Unreadable { offset: 3, .. }),
            "{error}"
        );
        let mut world = World::new(0);
        world.receive(&[vec![0xff; 100]]);
        let error = world.following.take().unwrap_err();
        assert!(
            matches!(error, TailError::Unreadable { offset: 0, .. }),
            "{error}"
        );
    }

    #[test]
    fn logs_take_turns_at_the_front_and_failed_ones_rest() {
        let mut world = World::new(0);
        world.following.follow(2, 0, world.now);
        let firsts: Vec<u32> = (0..3).map(|_| world.asked().log).collect();
        assert_eq!(firsts, [1, 2, 1]);
        let later = world.now + Duration::from_secs(1);
        let asked = world.following.ask(world.now, |log| log == 2)[0];
        world.following.put_off(asked, "no leader", later);
        let logs = |asked: Vec<Asked>| asked.iter().map(|asked| asked.log).collect::<Vec<_>>();
        assert_eq!(logs(world.following.ask(world.now, |_| true)), [1]);
        assert_eq!(world.following.ready_at(|_| true), Some(later));
        assert_eq!(world.following.ask(later, |_| true).len(), 2);
    }

    #[test]
    fn a_batch_that_did_not_fit_is_asked_for_first() {
        let mut world = World::new(0);
        for log in 2..9 {
            world.following.follow(log, 0, world.now);
        }
        let asked = world.following.ask(world.now, |log| log == 5)[0];
        world.following.receive(asked, Bytes::new(), 1, world.now);
        assert_eq!(world.asked().log, 5);
        assert_eq!(world.asked().log, 5, "until it comes");
        let asked = world.following.ask(world.now, |log| log == 5)[0];
        world.following.receive(asked, Bytes::new(), 0, world.now);
        assert_ne!(world.asked().log, 5, "it has no news");
    }

    #[test]
    fn silence_is_told_once_in_its_time() {
        let mut world = World::new(0);
        let after = Duration::from_secs(5);
        assert_eq!(world.following.unreachable(world.now + after / 2, after), None);
        world.following.note("a broker is down");
        let told = world.following.unreachable(world.now + after, after).unwrap();
        assert_eq!(
            told.to_string(),
            "the log cannot be reached: 1 of 1 logs, such as log 1, for more than 5s: a broker is down"
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
