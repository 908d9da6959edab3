//! [`Sender`]: appends the records of this process, numbered for each log.
//!
//! A record whose acknowledgement is lost is sent again as it was, so that replicas drop the second one. A number is not given before the
//! one [`WINDOW`] below is settled: that is the rule of [`ilion_cluster::Windows`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ilion_cluster::{Node, WINDOW};
use ilion_commitlog::{AppendError, Envelope, Kind, Origin, SharedLogs};
use ilion_env::{Env, turns};
use parking_lot::{Condvar, Mutex};

use crate::facts::{Counting, add_one};

/// Called once with the outcome of a record.
pub(crate) type SentCallback = Box<dyn FnOnce(Result<u64, AppendError>) + Send>;

/// A new number is less than this above the oldest unsettled one. Replicas remember twice as many, so they recognise a record that is sent
/// again.
const UNSETTLED_MAX: u64 = WINDOW / 2;
/// How many times a record is sent again.
const RETRIES: u32 = 3;

#[derive(Default)]
struct Log {
    /// The number of the last record.
    last: u64,
    unsettled: BTreeSet<u64>,
}

impl Log {
    fn is_full(&self) -> bool {
        let first = self.unsettled.first().copied().unwrap_or(self.last + 1);
        self.last + 1 - first >= UNSETTLED_MAX
    }
}

#[derive(Default)]
struct Numbers {
    /// This process, once it is in the meta log.
    process: Option<(Node, u32)>,
    logs: BTreeMap<u32, Log>,
}

/// See the module.
pub(crate) struct Sender {
    env: Arc<dyn Env>,
    logs: Arc<dyn SharedLogs>,
    numbers: Mutex<Numbers>,
    settled: Condvar,
    counting: Arc<Counting>,
}

/// A record without its number.
pub(crate) struct Unsent {
    pub log: u32,
    pub kind: Kind,
    pub schema_epoch: u64,
    pub body: Bytes,
    /// When it is not sent again any more.
    pub ends_nanos: u64,
}

impl Sender {
    pub fn new(env: Arc<dyn Env>, logs: Arc<dyn SharedLogs>) -> Self {
        Self {
            env,
            logs,
            numbers: Mutex::default(),
            settled: Condvar::new(),
            counting: Arc::default(),
        }
    }

    pub fn counting(&self) -> &Arc<Counting> {
        &self.counting
    }

    pub fn logs(&self) -> &Arc<dyn SharedLogs> {
        &self.logs
    }

    /// Called when the process has its number. Requires: it has sent nothing before.
    pub fn begin(&self, node: Node, incarnation: u32) {
        self.numbers.lock().process = Some((node, incarnation));
    }

    /// Sends a record. `number` gets its origin before it is sent. Waits while too many are on their way.
    ///
    /// # Errors
    /// It is not sent: the process is no member yet, or too many records are on their way.
    pub fn send(
        self: &Arc<Self>,
        unsent: Unsent,
        number: impl FnOnce(Origin),
        done: SentCallback,
    ) -> Result<(), AppendError> {
        let origin = self.number(unsent.log, unsent.ends_nanos)?;
        number(origin);
        self.send_as(unsent, origin, done);
        Ok(())
    }

    /// The next number in a log; it is used, or given back. Waits until this time while too many are on their way.
    ///
    /// # Errors
    /// The process is no member yet, or too many records are on their way.
    pub fn number(&self, log: u32, ends_nanos: u64) -> Result<Origin, AppendError> {
        let refused = |reason: &str| Err(AppendError::Refused(reason.to_owned()));
        let mut numbers = self.numbers.lock();
        loop {
            let Some((node, incarnation)) = numbers.process else {
                return refused("this node has not joined the cluster yet");
            };
            let log = numbers.logs.entry(log).or_default();
            if !log.is_full() {
                log.last += 1;
                log.unsettled.insert(log.last);
                return Ok(Origin {
                    node,
                    incarnation,
                    seq: log.last,
                });
            }
            let left = ends_nanos.saturating_sub(self.env.monotonic_nanos());
            if left == 0 {
                return refused("too many records are on their way to it");
            }
            turns::wait_for(&self.settled, &mut numbers, Duration::from_nanos(left));
        }
    }

    /// Sends a record under a number of [`Self::number`].
    pub fn send_as(self: &Arc<Self>, unsent: Unsent, origin: Origin, done: SentCallback) {
        self.clone().append(Arc::new(unsent), origin, RETRIES, done);
    }

    /// Gives back a number whose record is not sent.
    pub fn give_back(&self, log: u32, origin: Origin) {
        self.settle(log, origin.seq);
    }

    fn append(self: Arc<Self>, unsent: Arc<Unsent>, origin: Origin, retries: u32, done: SentCallback) {
        let envelope = Envelope {
            kind: unsent.kind,
            tablet: unsent.log,
            schema_epoch: unsent.schema_epoch,
            origin,
            time_micros: 0,
            is_captured: false,
            body: &unsent.body,
        };
        let (sender, again) = (self.clone(), unsent.clone());
        self.logs.append(
            &envelope,
            Box::new(move |sent| {
                let is_worth_it = retries > 0 && sender.env.monotonic_nanos() < again.ends_nanos;
                if matches!(sent, Err(AppendError::Unknown(_))) && is_worth_it {
                    add_one(&sender.counting.repeated);
                    return sender.append(again, origin, retries - 1, done);
                }
                sender.settle(again.log, origin.seq);
                add_one(match &sent {
                    Ok(_) => &sender.counting.appended,
                    Err(_) => &sender.counting.not_appended,
                });
                // The log may have a refused record from an earlier attempt.
                let sent = match sent {
                    Err(AppendError::Refused(reason)) if retries < RETRIES => {
                        Err(AppendError::Unknown(reason))
                    }
                    other => other,
                };
                done(sent);
            }),
        );
    }

    fn settle(&self, log: u32, seq: u64) {
        let mut numbers = self.numbers.lock();
        if let Some(log) = numbers.logs.get_mut(&log) {
            log.unsettled.remove(&seq);
        }
        self.settled.notify_all();
    }
}
