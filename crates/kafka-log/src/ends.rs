//! [`Ends`]: asks the brokers where logs end, for all callers that wait at the same time ([`crate::confirmed`] says when an end is believed).
//!
//! There is one round of questions at a time. A caller that comes during a round waits for the next one, since the questions must be asked
//! after it came. After a round for a [`CROWD`], the next one waits a moment for half as many callers ([`crowd::gather`]).
//!
//! At first a round asks the leader, and as few other replicas as are needed: those that answered last. If one of them does not answer in
//! [`PATIENCE`], or does not confirm, the others are asked, too. A round ends as soon as the answers suffice. A broker that owes two answers is
//! not asked a third question: a leader that hangs makes at most two rounds last for `end_timeout`, and then its logs have no known end.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ilion_commitlog::EndCallback;
use ilion_kafka_client::messages::{
    ANYBODY, CONSUMER, LATEST, ListOffsets, ListOffsetsPartition, ListOffsetsTopic, ListedOffsets,
};
use ilion_kafka_client::{Connection, codes};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::mpsc::{self, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use crate::confirmed::{Role, Round, Witness};
use crate::counts::add_one;
use crate::crowd::{self, CROWD};
use crate::queue::shielded;
use crate::shared::Shared;

/// Pause after a failed attempt.
const PAUSE: Duration = Duration::from_millis(50);
/// After this time a round asks all replicas.
const PATIENCE: Duration = Duration::from_millis(20);

/// Callers, and the task that asks for them.
pub(crate) struct Ends {
    shared: Arc<Shared>,
    /// Never held while a broker is asked, or a callback is called.
    state: Mutex<State>,
    /// Notified when `State::enough` callers wait.
    filled: Notify,
}

#[derive(Default)]
struct State {
    waiting: Waiting,
    /// How many callers are waiting, and for how many the task that asks should be woken.
    count: usize,
    enough: usize,
    is_closed: bool,
}

/// By partition.
type Waiting = BTreeMap<u32, Vec<Caller>>;

impl State {
    /// Takes all callers that are waiting, and their number.
    fn take(&mut self) -> (Waiting, usize) {
        (std::mem::take(&mut self.waiting), std::mem::take(&mut self.count))
    }
}

/// A callback that is called once, at the latest when it is dropped.
struct Caller(Option<EndCallback>);

impl Caller {
    fn answer(mut self, end: Option<u64>) {
        self.call(end);
    }

    fn call(&mut self, end: Option<u64>) {
        if let Some(done) = self.0.take() {
            shielded(|| done(end));
        }
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.call(None);
    }
}

/// The epochs of leaders that this node knows, by partition.
type Epochs = BTreeMap<u32, i32>;

/// What brokers are asked in one round.
type Questions = BTreeMap<Witness, Epochs>;

/// What a broker is asked in one round, and where its answers go.
struct Ask {
    epochs: Epochs,
    answers: UnboundedSender<Answers>,
}

impl Ask {
    /// Answers for a broker that cannot be asked.
    fn fail(self, witness: Witness) {
        let ends = self
            .epochs
            .into_keys()
            .map(|partition| (partition, None))
            .collect();
        // Fails if the round has ended.
        let _ = self.answers.send(Answers { witness, ends });
    }
}

/// By partition; `None` if the broker does not confirm the epoch.
struct Answers {
    witness: Witness,
    ends: Vec<(u32, Option<u64>)>,
}

impl Ends {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            state: Mutex::default(),
            filled: Notify::new(),
        }
    }

    /// See [`ilion_commitlog::SharedLogs::find_end`].
    pub(crate) fn ask(&self, log: u32, done: EndCallback) {
        let caller = Caller(Some(done));
        let Some(partition) = self.shared.topics.sharing.partition_of(log) else {
            return caller.answer(None);
        };
        let mut state = self.state.lock();
        if state.is_closed {
            drop(state);
            return caller.answer(None);
        }
        state.waiting.entry(partition).or_default().push(caller);
        state.count += 1;
        let is_enough = state.count >= state.enough;
        drop(state);
        if is_enough {
            self.filled.notify_one();
        }
    }

    /// Answers `None` to all callers that wait, and to those that come later.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        let (waiting, _) = state.take();
        drop(state);
        drop(waiting);
    }

    /// Asks for those who wait; never returns.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut lines = Lines::default();
        let mut last_count = 0;
        loop {
            // For half of them only: if callers come at any time, waiting for all would make each round wait for the limit.
            if last_count >= CROWD {
                crowd::gather(&self.filled, || self.has(last_count / 2)).await;
            }
            crowd::wait_for(&self.filled, || self.has(1)).await;
            let (waiting, count) = self.state.lock().take();
            self.round(&mut lines, waiting).await;
            last_count = count;
        }
    }

    /// Whether this many callers are waiting. If not, the task is woken once they are.
    fn has(&self, enough: usize) -> bool {
        let mut state = self.state.lock();
        state.enough = enough;
        state.count >= enough
    }

    /// Asks for the ends that these callers wait for, and answers them.
    async fn round(self: &Arc<Self>, lines: &mut Lines, mut waiting: Waiting) {
        let begun = Instant::now();
        let deadline = begun + self.shared.options.end_timeout;
        let (sender, mut answers) = unbounded_channel();
        let (mut round, first, mut others) = self.questions(lines, &mut waiting);
        self.ask_all(lines, first, &sender);
        while !round.is_over() {
            let until = match others.is_empty() {
                true => deadline,
                false => deadline.min(begun + PATIENCE),
            };
            let Ok(answer) = timeout_at(until, answers.recv()).await else {
                if others.is_empty() {
                    return;
                }
                self.ask_all(lines, std::mem::take(&mut others), &sender);
                continue;
            };
            let Some(Answers { witness, ends }) = answer else {
                return;
            };
            match ends.iter().all(|(_, end)| end.is_some()) {
                true => lines.note(witness),
                false => self.ask_all(lines, std::mem::take(&mut others), &sender),
            }
            for (partition, end) in ends {
                if let Some(outcome) = round.take(partition, witness.1, end) {
                    if let Some(end) = outcome {
                        self.shared.tails.reach(partition, end);
                    }
                    let callers = waiting.remove(&partition).unwrap_or_default();
                    callers.into_iter().for_each(|caller| caller.answer(outcome));
                }
            }
        }
    }

    /// The questions of a round: those that may be enough, and the others. Callers of partitions that have no leader are dropped, and so get
    /// `None`.
    fn questions(&self, lines: &Lines, waiting: &mut Waiting) -> (Round, Questions, Questions) {
        let view = self.shared.cluster.view();
        let (mut round, mut first, mut others) = (Round::default(), Questions::new(), Questions::new());
        waiting.retain(|number, _| {
            let place = self.shared.topics.place(*number);
            let Some(partition) = place.and_then(|(topic, index)| view.partition(topic, index)) else {
                return false;
            };
            let mut witnesses = round.add(*number, partition, self.shared.options.min_in_sync());
            // The leader stays in front. Of the others: who is asked anyway, then who answered last.
            if let Some((_, followers)) = witnesses.split_first_mut() {
                followers.sort_by_key(|witness| {
                    (!first.contains_key(witness), Reverse(lines.last_answer(*witness)))
                });
            }
            let needed = round.needed(*number);
            for (place, witness) in witnesses.iter().enumerate() {
                let questions = if place < needed { &mut first } else { &mut others };
                let epochs = questions.entry(*witness).or_default();
                epochs.insert(*number, partition.epoch);
            }
            !witnesses.is_empty()
        });
        (round, first, others)
    }

    /// Asks brokers that are not busy with earlier rounds.
    fn ask_all(
        self: &Arc<Self>,
        lines: &mut Lines,
        questions: Questions,
        answers: &UnboundedSender<Answers>,
    ) {
        for (witness, epochs) in questions {
            let ask = Ask {
                epochs,
                answers: answers.clone(),
            };
            if let Err(busy) = lines.to(witness, self).try_send(ask) {
                busy.into_inner().fail(witness);
            }
        }
    }

    /// Asks one broker in one role, until its queue is closed.
    async fn ask_broker(self: Arc<Self>, witness: Witness, mut asks: mpsc::Receiver<Ask>) {
        let (broker, role) = witness;
        let mut connection: Option<Connection> = None;
        while let Some(ask) = asks.recv().await {
            // The round ended while the question waited.
            if ask.answers.is_closed() {
                continue;
            }
            let open = match connection.take().filter(Connection::is_usable) {
                Some(open) => Ok(open),
                None => self.shared.cluster.connect_to(broker).await,
            };
            let limit = self.shared.options.client.request_timeout;
            let answer = match open {
                Ok(open) => {
                    let request = self.request(role, &ask.epochs);
                    connection.insert(open).ask(&request, limit).await
                }
                Err(trouble) => Err(trouble),
            };
            let Ok(answer) = answer else {
                add_one(&self.shared.counting.end_errors);
                self.shared.cluster.renew();
                ask.fail(witness);
                sleep(PAUSE).await;
                continue;
            };
            add_one(&self.shared.counting.end_requests);
            let ends = self.ends_in(&answer, &ask.epochs);
            // Whether the brokers have a newer leader. A follower with another error may be late, or never answer such questions.
            let is_newer = |end: &Result<u64, i16>| {
                end.is_err_and(|error| role == Role::Leader || error == codes::FENCED_LEADER_EPOCH)
            };
            if ends.values().any(is_newer) {
                self.shared.cluster.renew();
            }
            let ends = ends
                .into_iter()
                .map(|(partition, end)| (partition, end.ok()))
                .collect();
            // Fails if the round has ended.
            let _ = ask.answers.send(Answers { witness, ends });
        }
    }

    fn request(&self, role: Role, epochs: &Epochs) -> ListOffsets {
        let partitions = epochs.iter().map(|(number, epoch)| {
            let partition = |index| ListOffsetsPartition {
                index,
                current_leader_epoch: *epoch,
                timestamp: LATEST,
            };
            (*number, partition)
        });
        let topic = |name, partitions| ListOffsetsTopic { name, partitions };
        ListOffsets {
            replica_id: match role {
                Role::Leader => CONSUMER,
                Role::Follower => ANYBODY,
            },
            isolation_level: 0,
            topics: self.shared.topics.group(partitions, topic),
        }
    }

    /// For each partition, the end that an answer gives, or the code of the error why it does not.
    fn ends_in(&self, answer: &ListedOffsets, epochs: &Epochs) -> BTreeMap<u32, Result<u64, i16>> {
        let unknown = |partition: &u32| (*partition, Err(codes::UNKNOWN_TOPIC_OR_PARTITION));
        let mut ends: BTreeMap<u32, Result<u64, i16>> = epochs.keys().map(unknown).collect();
        for topic in &answer.topics {
            for partition in &topic.partitions {
                let number = self.shared.topics.number(&topic.name, partition.index);
                let Some((number, epoch)) = number.and_then(|number| epochs.get_key_value(&number)) else {
                    continue;
                };
                let end = match partition.error {
                    codes::NONE if partition.leader_epoch != *epoch => Err(codes::UNKNOWN_LEADER_EPOCH),
                    codes::NONE => u64::try_from(partition.offset).map_err(|_| codes::OFFSET_NOT_AVAILABLE),
                    error => Err(error),
                };
                ends.insert(*number, end);
            }
        }
        ends
    }
}

/// The tasks that ask brokers. They end when this is dropped.
#[derive(Default)]
struct Lines {
    senders: BTreeMap<Witness, mpsc::Sender<Ask>>,
    tasks: JoinSet<()>,
    /// The number of the last good answer of each, counted over all of them.
    answers: BTreeMap<Witness, u64>,
    count: u64,
}

impl Lines {
    /// The queue to a broker in a role. It has room for one question besides the one that the broker is answering.
    fn to(&mut self, witness: Witness, ends: &Arc<Ends>) -> &mpsc::Sender<Ask> {
        self.senders.entry(witness).or_insert_with(|| {
            let (sender, asks) = mpsc::channel(1);
            self.tasks.spawn(Arc::clone(ends).ask_broker(witness, asks));
            sender
        })
    }

    /// A good answer has come.
    fn note(&mut self, witness: Witness) {
        self.count += 1;
        self.answers.insert(witness, self.count);
    }

    /// The number of the last good answer; 0 if there was none.
    fn last_answer(&self, witness: Witness) -> u64 {
        self.answers.get(&witness).copied().unwrap_or_default()
    }
}
