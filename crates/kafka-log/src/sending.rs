//! [`Sending`]: takes records to the brokers that lead their partitions, with a task for each broker.
//!
//! A task sends what has gathered while its last request was on its way, so a lonely record leaves at once, and many share a request.
//! A request that is not answered in the time of an attempt may still arrive: its connection is given up, its records may be in the
//! log, and they are sent again until their deadline. So a record may be in a log more than once; readers recognise it by its origin. The
//! attempts after a failed one are shorter at first: a leader that was just elected may leave the first request without an answer.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ilion_commitlog::{AppendCallback, AppendError, Envelope};
use ilion_env::handover;
use ilion_kafka_client::batch::{self, Entry};
use ilion_kafka_client::messages::{Produce, ProducePartition, ProduceTopic, Produced, ProducedPartition};
use ilion_kafka_client::{Connection, Error, View, codes};
use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until};

use crate::counts::add_one;
use crate::crowd::{self, CROWD};
use crate::following::Own;
use crate::frame;
use crate::queue::{Pending, Queue, Taken};
use crate::shared::Shared;

/// A request has about this many bytes.
const REQUEST_BYTES: usize = 2 << 20;
/// Pause after a failed attempt.
const PAUSE: Duration = Duration::from_millis(50);
/// Time of the first attempt after a failed one. It doubles with each attempt that gets no answer, up to the time of a usual request.
const AGAIN: Duration = Duration::from_millis(500);
/// Records that are too late are looked for this often.
const EXPIRE_EVERY: Duration = Duration::from_millis(100);

/// Records on their way, and the tasks that send them.
pub(crate) struct Sending {
    shared: Arc<Shared>,
    /// Never held while a broker is asked, or a callback is called.
    state: Mutex<State>,
    /// Notified when records were settled.
    room: Condvar,
    /// Notified when the queue is not empty any more.
    filled: Notify,
}

#[derive(Default)]
struct State {
    queue: Queue,
    leaders: HashMap<u32, i32>,
    wakers: BTreeMap<i32, Arc<Notify>>,
    /// The brokers whose tasks wait for more records.
    gathering: BTreeMap<i32, Gathering>,
    /// The last failure, for messages.
    trouble: Option<String>,
    is_closed: bool,
}

/// A task that waits for more records.
#[derive(Clone, Copy, Debug)]
struct Gathering {
    /// How many records are waiting.
    waiting: usize,
    /// The task is woken when so many are.
    enough: usize,
}

impl State {
    /// Wakes the task that sends the records of a partition, unless it waits for more than there are.
    fn wake_leader(&mut self, partition: u32) {
        let Some(broker) = self.leaders.get(&partition) else {
            return;
        };
        let is_enough = self.gathering.get_mut(broker).is_none_or(|gathering| {
            gathering.waiting += 1;
            gathering.waiting >= gathering.enough
        });
        if let Some(waker) = self.wakers.get(broker).filter(|_| is_enough) {
            waker.notify_one();
        }
    }
}

/// What became of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    /// It is in the log from this offset on. The time is that of the log; -1 if the broker does not tell it.
    There { base_offset: u64, time_millis: i64 },
    /// It is not in the log, and trying again does not help.
    Refused(String),
    /// It is not in the log; trying again may help.
    NotThere(String),
    /// It may be in the log; trying again may help.
    Perhaps(String),
}

impl Sending {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            state: Mutex::default(),
            room: Condvar::new(),
            filled: Notify::new(),
        }
    }

    /// See [`ilion_commitlog::SharedLogs::append`].
    pub(crate) fn append(&self, envelope: &Envelope<'_>, done: AppendCallback) {
        let (log, sharing) = (envelope.tablet, self.shared.topics.sharing);
        let refuse = |done: AppendCallback, problem: String| done(Err(AppendError::Refused(problem)));
        let Some(partition) = sharing.partition_of(log) else {
            return refuse(done, format!("there is no log {log}"));
        };
        let bytes = frame::payload_bytes(envelope);
        let bytes_max = self.shared.options.record_bytes_max;
        if bytes > bytes_max as usize {
            return refuse(
                done,
                format!("it has {bytes} bytes, and {bytes_max} are permitted"),
            );
        }
        let value = frame::encode(self.shared.options.cluster, sharing, envelope);
        let deadline = Instant::now() + self.shared.options.append_timeout;
        let mut state = self.state.lock();
        while !state.is_closed && !self.has_room(&state.queue, partition, value.len()) {
            let has_handed_over = MutexGuard::unlocked(&mut state, handover::before_wait);
            if !has_handed_over && self.room.wait_until(&mut state, deadline).timed_out() {
                let problem = self.too_late(&state);
                drop(state);
                return refuse(done, format!("too many records are on their way: {problem}"));
            }
        }
        if state.is_closed {
            drop(state);
            return refuse(done, "the log was closed".to_owned());
        }
        // The time of a record begins after it waited for room, so that deadlines ascend.
        let deadline = Instant::now() + self.shared.options.append_timeout;
        let was_empty = state.queue.bytes() == 0;
        state.queue.push(partition, Pending::new(value, deadline, done));
        state.wake_leader(partition);
        drop(state);
        if was_empty {
            self.filled.notify_one();
        }
    }

    fn has_room(&self, queue: &Queue, partition: u32, bytes: usize) -> bool {
        let fits = queue.bytes() == 0 || queue.bytes() + bytes <= self.shared.options.append_bytes_max;
        fits && queue.count(partition) < self.shared.options.append_records_max
    }

    /// Gives up the records that wait; records that are with a broker are given up when its task ends.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        let waiting = state.queue.drain();
        drop(state);
        drop(waiting);
        self.room.notify_all();
    }

    /// Starts a task for each broker, and follows the leaders; never returns.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&self).expire());
        let mut views = self.shared.cluster.views();
        loop {
            let view = Arc::clone(&views.borrow_and_update());
            for (broker, waker) in self.adopt(&view) {
                tasks.spawn(Arc::clone(&self).send_to(broker, waker));
            }
            if views.changed().await.is_err() {
                return;
            }
        }
    }

    /// Takes the leaders of a view over. Returns the brokers that are new, each with what wakes its task.
    fn adopt(&self, view: &View) -> Vec<(i32, Arc<Notify>)> {
        let mut state = self.state.lock();
        state.leaders = self.shared.topics.leaders(view);
        let mut added = Vec::new();
        for broker in view.brokers.keys() {
            let waker = state.wakers.entry(*broker).or_insert_with(|| {
                let waker = Arc::new(Notify::new());
                added.push((*broker, Arc::clone(&waker)));
                waker
            });
            waker.notify_one();
        }
        added
    }

    /// Gives up what is too late; never returns.
    async fn expire(self: Arc<Self>) {
        loop {
            match self.expire_once() {
                true => self.filled.notified().await,
                false => sleep(EXPIRE_EVERY).await,
            }
        }
    }

    /// Gives up the records that are too late. Returns true if no records are left.
    fn expire_once(&self) -> bool {
        let mut state = self.state.lock();
        let expired = state.queue.expire(Instant::now());
        let problem = self.too_late(&state);
        let is_empty = state.queue.bytes() == 0;
        drop(state);
        self.give_up(expired, &problem);
        is_empty
    }

    fn too_late(&self, state: &State) -> String {
        let trouble = state.trouble.as_deref().unwrap_or("the brokers are slow");
        format!("not within {:?}: {trouble}", self.shared.options.append_timeout)
    }

    fn give_up(&self, records: Vec<Pending>, problem: &str) {
        if !records.is_empty() {
            self.room.notify_all();
        }
        for record in records {
            record.give_up(problem);
        }
    }

    /// Sends the records of the partitions that a broker leads; never returns.
    async fn send_to(self: Arc<Self>, broker: i32, waker: Arc<Notify>) {
        let mut connection: Option<Connection> = None;
        let mut is_failing = false;
        loop {
            let now = Instant::now();
            match self.ready_at(now, broker) {
                None => {
                    waker.notified().await;
                    continue;
                }
                Some(ready_at) if ready_at > now => {
                    tokio::select! {
                        () = waker.notified() => {}
                        () = sleep_until(ready_at.into()) => {}
                    }
                    continue;
                }
                Some(_) => {}
            }
            // Records stay in the queue until there is a connection: by then, another broker may lead their partitions.
            let open = match connection.take().filter(Connection::is_usable) {
                Some(open) => Ok(open),
                None => {
                    self.shared
                        .cluster
                        .renewing(self.shared.cluster.connect_to(broker))
                        .await
                }
            };
            let sent = match open {
                Ok(open) => self.send(connection.insert(open), broker).await,
                Err(trouble) => {
                    add_one(&self.shared.counting.produce_errors);
                    Err(trouble)
                }
            };
            if let Some(records) = sent.as_ref().ok().filter(|records| **records >= CROWD) {
                self.gather(broker, &waker, *records).await;
            }
            let trouble = sent.err();
            match trouble {
                None if is_failing => tracing::info!("broker {broker} takes records again"),
                Some(ref trouble) if !is_failing => {
                    tracing::warn!("broker {broker} does not take records: {trouble}; trying again");
                }
                _ => {}
            }
            is_failing = trouble.is_some();
            if let Some(trouble) = trouble {
                self.note(trouble.to_string());
                sleep(PAUSE).await;
            }
        }
    }

    /// Waits until nearly as many records are waiting as were under way: those that were `sent`, whose senders were answered just now, and those
    /// that came meanwhile. Not for all of them, since a sender may have no more, and not for long.
    async fn gather(&self, broker: i32, waker: &Notify, sent: usize) {
        {
            let mut state = self.state.lock();
            let State { queue, leaders, .. } = &mut *state;
            let waiting = queue.waiting(|partition| leaders.get(&partition) == Some(&broker));
            let gathering = Gathering {
                waiting,
                enough: (sent + waiting) * 7 / 8,
            };
            state.gathering.insert(broker, gathering);
        }
        let is_enough = || {
            let state = self.state.lock();
            let gathering = state.gathering.get(&broker);
            gathering.is_none_or(|gathering| gathering.waiting >= gathering.enough)
        };
        crowd::gather(waker, is_enough).await;
        self.state.lock().gathering.remove(&broker);
    }

    fn ready_at(&self, now: Instant, broker: i32) -> Option<Instant> {
        let state = self.state.lock();
        let is_led = |partition| state.leaders.get(&partition) == Some(&broker);
        state.queue.ready_at(now, is_led)
    }

    fn take(&self, now: Instant, broker: i32) -> Vec<Taken> {
        let mut state = self.state.lock();
        let State { queue, leaders, .. } = &mut *state;
        queue.take(now, REQUEST_BYTES, |partition| {
            leaders.get(&partition) == Some(&broker)
        })
    }

    fn note(&self, trouble: String) {
        self.state.lock().trouble = Some(trouble);
        self.shared.cluster.renew();
    }

    /// Sends one request, and settles or puts back its records. Returns their number. The error is one of the connection.
    async fn send(&self, connection: &mut Connection, broker: i32) -> Result<usize, Error> {
        let now = Instant::now();
        let mut taken = self.take(now, broker);
        if taken.is_empty() {
            return Ok(0);
        }
        let records = taken.iter().map(|taken| taken.records.len()).sum();
        let at_most = self.attempt_time(&taken);
        let request = self.request(&taken, at_most);
        let sent_before: Vec<bool> = taken
            .iter()
            .map(|taken| taken.records.iter().any(|record| record.may_be_there))
            .collect();
        let under_way = taken.iter_mut().flat_map(|taken| &mut taken.records);
        under_way.for_each(|record| record.may_be_there = true);
        let answer = self
            .shared
            .cluster
            .renewing(connection.ask(&request, at_most))
            .await;
        if now.elapsed() >= at_most {
            let under_way = taken.iter_mut().flat_map(|taken| &mut taken.records);
            under_way.for_each(|record| record.late_attempts += 1);
        }
        let (verdicts, trouble): (Vec<Verdict>, _) = match &answer {
            Ok(answer) => {
                add_one(&self.shared.counting.produce_requests);
                let of = |taken: &Taken| self.verdict(answer, taken.partition);
                (taken.iter().map(of).collect(), None)
            }
            Err(trouble) => {
                let perhaps = Verdict::Perhaps(trouble.to_string());
                (vec![perhaps; taken.len()], Some(trouble.clone()))
            }
        };
        let own: Vec<Own> = taken
            .iter()
            .zip(&verdicts)
            .filter_map(|(taken, verdict)| own(taken, verdict))
            .collect();
        for own in &own {
            self.shared.counting.reach(own.partition, own.end());
        }
        self.shared.tails.receive_own(&own);
        for ((taken, sent_before), verdict) in taken.into_iter().zip(sent_before).zip(verdicts) {
            self.finish(taken, sent_before, verdict);
        }
        trouble.map_or(Ok(records), Err)
    }

    /// The time of an attempt with these records. A record that is given up before does not shorten it: that would end the attempt for all
    /// records of the request, and each attempt that ends without an answer may leave copies.
    fn attempt_time(&self, taken: &[Taken]) -> Duration {
        let all = || taken.iter().flat_map(|taken| &taken.records);
        attempt_time(
            all().any(|record| record.may_be_there),
            all().map(|record| record.late_attempts).max().unwrap_or_default(),
            self.shared.options.client.request_timeout,
        )
    }

    fn request(&self, taken: &[Taken], at_most: Duration) -> Produce {
        let partitions = taken.iter().map(|taken| {
            // Readers use the time of the log. If a topic keeps the sender's time, it is 0, which depends on no clock.
            let entries = taken.records.iter().map(|record| Entry {
                key: None,
                value: &record.value,
                headers: &[],
                created_millis: 0,
            });
            let records = batch::encode(entries).into();
            (taken.partition, move |index| ProducePartition { index, records })
        });
        let topic = |name, partitions| ProduceTopic { name, partitions };
        let topics = self.shared.topics.group(partitions, topic);
        Produce {
            transactional_id: None,
            acks: -1,
            timeout_millis: i32::try_from(at_most.as_millis()).unwrap_or(i32::MAX),
            topics,
        }
    }

    fn verdict(&self, answer: &Produced, partition: u32) -> Verdict {
        let found = self.shared.topics.place(partition).and_then(|(name, index)| {
            let topic = answer.topics.iter().find(|topic| topic.name == name)?;
            topic.partitions.iter().find(|partition| partition.index == index)
        });
        match found {
            Some(partition) => judge(partition),
            None => Verdict::Perhaps(format!("the broker said nothing of partition {partition}")),
        }
    }

    /// Settles or puts back what was sent. `sent_before`: an attempt before this one may have succeeded.
    fn finish(&self, mut taken: Taken, sent_before: bool, verdict: Verdict) {
        let count = taken.records.len();
        let bytes = taken.records.iter().map(|record| record.value.len()).sum();
        if !matches!(verdict, Verdict::There { .. }) {
            add_one(&self.shared.counting.produce_errors);
        }
        let (settled, trouble) = match verdict {
            Verdict::There { base_offset, .. } => {
                self.state.lock().queue.settle(taken.partition, count, bytes);
                self.room.notify_all();
                for (record, offset) in taken.records.into_iter().zip(base_offset..) {
                    record.acknowledge(offset);
                }
                return;
            }
            Verdict::Refused(problem) => {
                for record in &mut taken.records {
                    record.may_be_there = sent_before;
                }
                self.state.lock().queue.settle(taken.partition, count, bytes);
                return self.give_up(taken.records, &problem);
            }
            Verdict::NotThere(problem) => {
                for record in &mut taken.records {
                    record.may_be_there = sent_before;
                }
                (taken, problem)
            }
            Verdict::Perhaps(problem) => (taken, problem),
        };
        self.note(trouble);
        let now = Instant::now();
        let mut state = self.state.lock();
        let expired = state.queue.put_back(settled, now, now + PAUSE);
        let problem = self.too_late(&state);
        drop(state);
        self.give_up(expired, &problem);
    }
}

/// How long an attempt waits for the answer of the broker. `may_be_there`: an earlier attempt failed that may have appended some of these records.
/// `late`: how many attempts got no answer in their time. Pure.
fn attempt_time(may_be_there: bool, late: u32, usual: Duration) -> Duration {
    match may_be_there {
        true => usual.min(AGAIN.saturating_mul(1 << late.min(10))),
        false => usual,
    }
}

/// What readers on this node are given, so that they need not fetch it; `None` if the batch may not be in the log. Pure.
fn own(taken: &Taken, verdict: &Verdict) -> Option<Own> {
    let &Verdict::There {
        base_offset,
        time_millis,
    } = verdict
    else {
        return None;
    };
    Some(Own {
        partition: taken.partition,
        base_offset: i64::try_from(base_offset).ok()?,
        time_millis,
        values: taken.records.iter().map(|record| record.value.clone()).collect(),
    })
}

/// What an answer says about a batch. Pure.
///
/// A leader that loses its role answers `NOT_LEADER_OR_FOLLOWER` both before it appends and while it waits for the replicas, so that
/// leaves open whether the batch is there.
fn judge(answer: &ProducedPartition) -> Verdict {
    let name = codes::name(answer.error);
    let problem = match &answer.error_message {
        Some(message) => format!("{name}: {message}"),
        None => name,
    };
    match answer.error {
        codes::NONE => match u64::try_from(answer.base_offset) {
            Ok(base_offset) => Verdict::There {
                base_offset,
                time_millis: answer.log_append_time_millis,
            },
            Err(_) => Verdict::Perhaps("the broker acknowledged the record without an offset".to_owned()),
        },
        codes::MESSAGE_TOO_LARGE | codes::RECORD_LIST_TOO_LARGE => Verdict::Refused(format!(
            "{problem}: raise max.message.bytes of the topic (Ilion checks it at the start)"
        )),
        codes::TOPIC_AUTHORIZATION_FAILED | codes::CLUSTER_AUTHORIZATION_FAILED => Verdict::Refused(format!(
            "{problem}: grant the login of Ilion the permission Write on the topic"
        )),
        codes::INVALID_RECORD
        | codes::INVALID_TIMESTAMP
        | codes::POLICY_VIOLATION
        | codes::UNSUPPORTED_VERSION => Verdict::Refused(problem),
        codes::UNKNOWN_TOPIC_OR_PARTITION | codes::LEADER_NOT_AVAILABLE | codes::NOT_ENOUGH_REPLICAS => {
            Verdict::NotThere(problem)
        }
        _ => Verdict::Perhaps(problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_after_a_failed_one_are_short_at_first() {
        let millis =
            |may_be_there, late| attempt_time(may_be_there, late, Duration::from_secs(3)).as_millis();
        assert_eq!(millis(false, 0), 3000);
        assert_eq!(
            [0, 1, 2, 3, 4, u32::MAX].map(|late| millis(true, late)),
            [500, 1000, 2000, 3000, 3000, 3000]
        );
    }

    fn answer(error: i16, base_offset: i64) -> Verdict {
        judge(&ProducedPartition {
            error,
            base_offset,
            ..ProducedPartition::default()
        })
    }

    #[test]
    fn only_what_a_broker_surely_did_not_append_is_refused() {
        let there = Verdict::There {
            base_offset: 7,
            time_millis: 0,
        };
        assert_eq!(answer(codes::NONE, 7), there);
        assert!(matches!(answer(codes::NONE, -1), Verdict::Perhaps(_)));
        for code in [
            codes::MESSAGE_TOO_LARGE,
            codes::TOPIC_AUTHORIZATION_FAILED,
            codes::INVALID_RECORD,
        ] {
            assert!(matches!(answer(code, -1), Verdict::Refused(_)), "{code}");
        }
        for code in [codes::NOT_ENOUGH_REPLICAS, codes::UNKNOWN_TOPIC_OR_PARTITION] {
            assert!(matches!(answer(code, -1), Verdict::NotThere(_)), "{code}");
        }
        for code in [
            codes::NOT_LEADER_OR_FOLLOWER,
            codes::REQUEST_TIMED_OUT,
            codes::NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            codes::KAFKA_STORAGE_ERROR,
            999,
        ] {
            assert!(matches!(answer(code, -1), Verdict::Perhaps(_)), "{code}");
        }
    }
}
