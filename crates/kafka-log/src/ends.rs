//! [`Ends`]: asks the brokers where logs end, for all callers that wait at the same time ([`crate::confirmed`] says when an end is believed).
//!
//! One round after another: callers that come during a round wait for the next one, since its questions are asked after they came. A round
//! ends without the brokers that it does not need any more. A broker that has not answered two questions is not asked a third one, so
//! one that hangs costs one or two rounds their time limit, and then its logs have no known end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ilion_commitlog::EndCallback;
use ilion_kafka_client::messages::{
    ANYBODY, CONSUMER, LATEST, ListOffsets, ListOffsetsPartition, ListOffsetsTopic, ListedOffsets,
};
use ilion_kafka_client::{Cluster, Connection, codes};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use crate::Options;
use crate::confirmed::{Question, Role, Round, Witness};
use crate::counts::{Counting, add_one};
use crate::queue::shielded;
use crate::topics::Topics;

/// Pause after a failed attempt.
const PAUSE: Duration = Duration::from_millis(50);

/// Callers, and the task that asks for them.
pub(crate) struct Ends {
    cluster: Arc<Cluster>,
    topics: Arc<Topics>,
    options: Arc<Options>,
    counting: Arc<Counting>,
    /// Never held while a broker is asked, or a callback is called.
    state: Mutex<State>,
    /// Notified when somebody waits.
    filled: Notify,
}

#[derive(Default)]
struct State {
    waiting: Waiting,
    is_closed: bool,
}

type Waiting = BTreeMap<u32, Vec<Caller>>;

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

/// What a broker is asked in one round, and where its answers go.
struct Ask {
    questions: Vec<Question>,
    answers: UnboundedSender<Answers>,
}

/// By log; `None` if the broker does not confirm the epoch.
struct Answers {
    role: Role,
    ends: Vec<(u32, Option<u64>)>,
}

impl Ends {
    pub(crate) fn new(
        cluster: Arc<Cluster>,
        topics: Arc<Topics>,
        options: Arc<Options>,
        counting: Arc<Counting>,
    ) -> Self {
        Self {
            cluster,
            topics,
            options,
            counting,
            state: Mutex::default(),
            filled: Notify::new(),
        }
    }

    /// See [`ilion_commitlog::SharedLogs::find_end`].
    pub(crate) fn ask(&self, log: u32, done: EndCallback) {
        let caller = Caller(Some(done));
        let mut state = self.state.lock();
        if state.is_closed {
            drop(state);
            return caller.answer(None);
        }
        state.waiting.entry(log).or_default().push(caller);
        drop(state);
        self.filled.notify_one();
    }

    /// Gives up those who wait.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        drop(waiting);
    }

    /// Asks for those who wait; never returns.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut lines = Lines::default();
        loop {
            self.filled.notified().await;
            let waiting = std::mem::take(&mut self.state.lock().waiting);
            self.round(&mut lines, waiting).await;
        }
    }

    async fn round(self: &Arc<Self>, lines: &mut Lines, mut waiting: Waiting) {
        let deadline = Instant::now() + self.options.end_timeout;
        let (mut round, mut answers) = self.begin(lines, waiting.keys().copied());
        // Callers of logs that are not in the round are dropped, and so told that the end is not known.
        let asked: Vec<u32> = round.logs().collect();
        waiting.retain(|log, _| asked.contains(log));
        while round.logs().next().is_some() {
            let Ok(Some(Answers { role, ends })) = timeout_at(deadline, answers.recv()).await else {
                return;
            };
            for (log, end) in ends {
                if let Some(outcome) = round.take(log, role, end) {
                    let callers = waiting.remove(&log).unwrap_or_default();
                    callers.into_iter().for_each(|caller| caller.answer(outcome));
                }
            }
        }
    }

    /// Asks all replicas of these logs that are not busy with earlier rounds.
    fn begin(
        self: &Arc<Self>,
        lines: &mut Lines,
        logs: impl Iterator<Item = u32>,
    ) -> (Round, UnboundedReceiver<Answers>) {
        let view = self.cluster.view();
        let (mut round, mut questions) = (Round::default(), BTreeMap::<Witness, Vec<Question>>::new());
        for log in logs {
            let place = self.topics.place(log);
            let Some(partition) = place.and_then(|(topic, index)| view.partition(topic, index)) else {
                continue;
            };
            let (question, witnesses) = round.add(log, partition, self.options.min_in_sync());
            for witness in witnesses {
                questions.entry(witness).or_default().push(question);
            }
        }
        let (sender, answers) = unbounded_channel();
        for (witness, questions) in questions {
            let ask = Ask {
                questions,
                answers: sender.clone(),
            };
            if let Err(busy) = lines.to(witness, self).try_send(ask) {
                ask_failed(witness.1, busy.into_inner());
            }
        }
        (round, answers)
    }

    /// Asks one broker in one role; never returns.
    async fn ask_broker(self: Arc<Self>, (broker, role): Witness, mut asks: mpsc::Receiver<Ask>) {
        let mut connection: Option<Connection> = None;
        while let Some(ask) = asks.recv().await {
            // The round ended while the question waited.
            if ask.answers.is_closed() {
                continue;
            }
            let open = match connection.take().filter(Connection::is_usable) {
                Some(open) => Ok(open),
                None => self.cluster.connect_to(broker).await,
            };
            let limit = self.options.client.request_timeout;
            let answer = match open {
                Ok(open) => {
                    let request = self.request(role, &ask.questions);
                    connection.insert(open).ask(&request, limit).await
                }
                Err(trouble) => Err(trouble),
            };
            let Ok(answer) = answer else {
                add_one(&self.counting.end_errors);
                self.cluster.renew();
                ask_failed(role, ask);
                sleep(PAUSE).await;
                continue;
            };
            add_one(&self.counting.end_requests);
            let mut is_view_old = false;
            let ends = ask.questions.iter().map(|question| {
                let end = self.end_in(&answer, question);
                // A follower that does not know the epoch yet is late, or never answers such questions.
                is_view_old |= match end {
                    Err(error) => role == Role::Leader || error == codes::FENCED_LEADER_EPOCH,
                    Ok(_) => false,
                };
                (question.log, end.ok())
            });
            let ends = ends.collect();
            if is_view_old {
                self.cluster.renew();
            }
            // Nobody waits for it if the round has ended.
            let _ = ask.answers.send(Answers { role, ends });
        }
    }

    fn request(&self, role: Role, questions: &[Question]) -> ListOffsets {
        let mut topics: Vec<ListOffsetsTopic> = Vec::new();
        for question in questions {
            let Some((name, index)) = self.topics.place(question.log) else {
                continue;
            };
            let partition = ListOffsetsPartition {
                index,
                current_leader_epoch: question.epoch,
                timestamp: LATEST,
            };
            match topics.iter_mut().find(|topic| topic.name == name) {
                Some(topic) => topic.partitions.push(partition),
                None => topics.push(ListOffsetsTopic {
                    name: name.to_owned(),
                    partitions: vec![partition],
                }),
            }
        }
        ListOffsets {
            replica_id: match role {
                Role::Leader => CONSUMER,
                Role::Follower => ANYBODY,
            },
            isolation_level: 0,
            topics,
        }
    }

    /// The end that an answer gives, or the code of the error why it does not.
    fn end_in(&self, answer: &ListedOffsets, question: &Question) -> Result<u64, i16> {
        let found = self.topics.place(question.log).and_then(|(name, index)| {
            let topic = answer.topics.iter().find(|topic| topic.name == name)?;
            topic.partitions.iter().find(|partition| partition.index == index)
        });
        let Some(partition) = found else {
            return Err(codes::UNKNOWN_TOPIC_OR_PARTITION);
        };
        match partition.error {
            codes::NONE if partition.leader_epoch != question.epoch => Err(codes::UNKNOWN_LEADER_EPOCH),
            codes::NONE => u64::try_from(partition.offset).map_err(|_| codes::OFFSET_NOT_AVAILABLE),
            error => Err(error),
        }
    }
}

/// Answers for a broker that cannot be asked.
fn ask_failed(role: Role, ask: Ask) {
    let ends = ask
        .questions
        .iter()
        .map(|question| (question.log, None))
        .collect();
    // Nobody waits for it if the round has ended.
    let _ = ask.answers.send(Answers { role, ends });
}

/// The tasks that ask brokers. They end when this is dropped.
#[derive(Default)]
struct Lines {
    senders: BTreeMap<Witness, mpsc::Sender<Ask>>,
    tasks: JoinSet<()>,
}

impl Lines {
    /// To a broker in a role. There is room for one question beside that which the broker is asked.
    fn to(&mut self, witness: Witness, ends: &Arc<Ends>) -> &mpsc::Sender<Ask> {
        self.senders.entry(witness).or_insert_with(|| {
            let (sender, asks) = mpsc::channel(1);
            self.tasks.spawn(Arc::clone(ends).ask_broker(witness, asks));
            sender
        })
    }
}
