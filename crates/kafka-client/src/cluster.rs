//! [`Cluster`]: which broker leads which partition, kept up to date by a task.
//!
//! Several brokers are asked at a time, each some moments after the one before it, and the first answer counts: a broker that hangs costs
//! these moments and no more. A leader with an older epoch than one that was seen already is not believed, so a broker that was cut off
//! cannot call clients back to it. If an answer has no news though somebody had asked for some, the next question goes to another broker.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use crate::messages::{Metadata, MetadataAnswer};
use crate::{Connection, Connector, Error, Options, codes};

/// The next broker is asked this much later than the one before it.
const STAGGER: Duration = Duration::from_millis(150);
/// The view is renewed at most once in `RENEW_MIN`, and at least once in `RENEW_MAX`.
const RENEW_MIN: Duration = Duration::from_millis(50);
const RENEW_MAX: Duration = Duration::from_secs(60);
/// While a broker is silent for this time, others are asked for the leaders. Longer than brokers hold back an answer without records.
const RENEW_WAITING: Duration = Duration::from_millis(350);
/// A view without all leaders is renewed at least this often.
const RENEW_INCOMPLETE_MAX: Duration = Duration::from_secs(1);

/// Brokers and partitions at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Grows with each view.
    pub number: u64,
    /// `host:port` by the broker's number.
    pub brokers: BTreeMap<i32, String>,
    /// The broker that takes requests for the controller.
    pub controller: i32,
    /// Partitions by their topic and number. Unknown topics are left out.
    pub topics: BTreeMap<String, BTreeMap<i32, Partition>>,
    /// Topics that this login may not see.
    pub denied: Vec<String>,
    /// Why the last renewal failed: then the rest is the view before it. `None` if it succeeded.
    pub trouble: Option<Error>,
}

/// A partition at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its leader; `None` during an election.
    pub leader: Option<i32>,
    /// Grows with each election.
    pub epoch: i32,
    /// The brokers that have it.
    pub replicas: Vec<i32>,
}

impl View {
    /// A partition; `None` if it is not known.
    pub fn partition(&self, topic: &str, partition: i32) -> Option<&Partition> {
        self.topics.get(topic)?.get(&partition)
    }

    /// The leader of a partition; `None` if there is none, or the partition is not known.
    pub fn leader(&self, topic: &str, partition: i32) -> Option<i32> {
        self.partition(topic, partition)?.leader
    }

    /// Whether another view has the same brokers, partitions and leaders.
    fn has_same(&self, other: &Self) -> bool {
        self.brokers == other.brokers && self.topics == other.topics
    }

    /// The next view: the answer of a broker, except where that is older than this view. Pure.
    fn renewed(&self, answer: MetadataAnswer) -> Self {
        let brokers = answer.brokers.into_iter();
        let mut next = Self {
            number: self.number + 1,
            brokers: brokers
                .map(|broker| (broker.id, format!("{}:{}", broker.host, broker.port)))
                .collect(),
            controller: answer.controller_id,
            ..Self::default()
        };
        for topic in answer.topics {
            if topic.error == codes::TOPIC_AUTHORIZATION_FAILED {
                next.denied.push(topic.name);
                continue;
            }
            if topic.error != codes::NONE {
                continue;
            }
            let known = self.topics.get(&topic.name);
            let partitions = topic.partitions.into_iter().map(|found| {
                let fresh = Partition {
                    leader: Some(found.leader).filter(|leader| *leader >= 0),
                    epoch: found.leader_epoch,
                    replicas: found.replicas,
                };
                let old = known
                    .and_then(|known| known.get(&found.index))
                    .filter(|old| old.epoch > fresh.epoch);
                (found.index, old.cloned().unwrap_or(fresh))
            });
            next.topics.insert(topic.name, partitions.collect());
        }
        next
    }
}

/// Knows which broker leads which partition.
pub struct Cluster {
    connector: Connector,
    topics: Vec<String>,
    view: watch::Sender<Arc<View>>,
    wanted: Notify,
}

impl Cluster {
    /// Asks for these topics. [`Cluster::run`] keeps the view up to date.
    ///
    /// # Errors
    /// The certificates are wrong, no broker answers, or they refuse the login.
    pub async fn connect(options: Options, topics: Vec<String>) -> Result<Arc<Self>, Error> {
        let cluster = Self {
            connector: Connector::new(options)?,
            topics,
            view: watch::Sender::new(Arc::default()),
            wanted: Notify::new(),
        };
        cluster.renew_now(&mut None).await?;
        Ok(Arc::new(cluster))
    }

    /// How brokers are spoken to.
    pub fn options(&self) -> &Options {
        self.connector.options()
    }

    /// The newest view.
    pub fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.borrow())
    }

    /// A channel that always has the newest view.
    pub fn views(&self) -> watch::Receiver<Arc<View>> {
        self.view.subscribe()
    }

    /// Asks for a newer view; does not wait for it.
    pub fn renew(&self) {
        self.wanted.notify_one();
    }

    /// Waits for an answer, and asks for newer views while there is none.
    pub async fn renewing<T>(&self, asking: impl Future<Output = T>) -> T {
        let mut asking = std::pin::pin!(asking);
        loop {
            match timeout(RENEW_WAITING, &mut asking).await {
                Ok(answer) => return answer,
                Err(_) => self.renew(),
            }
        }
    }

    /// Keeps the view up to date; never returns.
    pub async fn run(&self) {
        let mut connection = None;
        let mut pause = RENEW_MIN;
        loop {
            // Without a request the view is renewed now and then, so that brokers that are replaced one after another stay known; and
            // soon while a partition has no leader.
            pause = match self.is_complete(&self.view()) {
                true => RENEW_MIN,
                false => (2 * pause).min(RENEW_INCOMPLETE_MAX),
            };
            let at_most = if pause == RENEW_MIN { RENEW_MAX } else { pause };
            let is_wanted = timeout(at_most, self.wanted.notified()).await.is_ok();
            let before = self.view();
            if let Err(trouble) = self.renew_now(&mut connection).await {
                self.view.send_modify(|view| {
                    let mut next = View::clone(view);
                    next.number += 1;
                    next.trouble = Some(trouble);
                    *view = Arc::new(next);
                });
            }
            // Somebody has trouble with a broker, and this one knows of no change: it may be cut off itself, so another one is asked next.
            if is_wanted && self.view().has_same(&before) {
                connection = None;
            }
            sleep(RENEW_MIN).await;
        }
    }

    fn is_complete(&self, view: &View) -> bool {
        let has_leaders = |topic| {
            let partitions = view.topics.get(topic);
            partitions
                .is_some_and(|partitions| partitions.values().all(|partition| partition.leader.is_some()))
        };
        view.trouble.is_none() && self.topics.iter().all(has_leaders)
    }

    async fn renew_now(&self, connection: &mut Option<Connection>) -> Result<(), Error> {
        let view = self.view();
        let request = Metadata {
            topics: Some(self.topics.clone()),
            allow_auto_topic_creation: false,
        };
        let (answer, answered) = self.first_answer(&view, connection.take(), &request).await?;
        *connection = Some(answered);
        self.view
            .send_modify(|view| *view = Arc::new(view.renewed(answer)));
        Ok(())
    }

    /// The first answer, and the connection that it came over. The error is that of the last broker.
    async fn first_answer(
        &self,
        view: &View,
        open: Option<Connection>,
        request: &Metadata,
    ) -> Result<(MetadataAnswer, Connection), Error> {
        let mut addresses: Vec<&String> = view.brokers.values().collect();
        for address in &self.options().brokers {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        // Begins with another broker each time: the first one may be the one that hangs.
        let first = usize::try_from(view.number).unwrap_or(0) % addresses.len().max(1);
        addresses.rotate_left(first);
        let ask = |address: String, open: Option<Connection>| async move {
            let mut connection = match open {
                Some(connection) => connection,
                None => self.connector.open(&address).await?,
            };
            let answer = connection.ask(request, self.options().request_timeout).await?;
            // A broker that has just started, and knows nobody, is no help.
            match answer.brokers.is_empty() {
                false => Ok((answer, connection)),
                true => Err(Error::Unreachable(format!(
                    "broker {address} knows no brokers yet"
                ))),
            }
        };
        let mut asked = FuturesUnordered::new();
        if let Some(open) = open.filter(Connection::is_usable) {
            asked.push(ask(open.address().to_owned(), Some(open)));
        }
        let mut others = addresses.into_iter();
        let mut last = Error::Refused("no address of a broker is given".to_owned());
        loop {
            let answer = match asked.is_empty() {
                true => None,
                false => timeout(STAGGER, asked.next()).await.ok().flatten(),
            };
            match answer {
                Some(Ok(answer)) => return Ok(answer),
                Some(Err(error)) if !error.may_pass() => return Err(error),
                Some(Err(error)) => last = error,
                None => {}
            }
            match others.next() {
                Some(address) => asked.push(ask(address.clone(), None)),
                None if asked.is_empty() => return Err(last),
                None => {}
            }
        }
    }

    /// Opens a connection to a broker of the newest view.
    ///
    /// # Errors
    /// The broker is not known, or does not answer.
    pub async fn connect_to(&self, broker: i32) -> Result<Connection, Error> {
        let view = self.view();
        match view.brokers.get(&broker) {
            Some(address) => self.connector.open(address).await,
            None => Err(Error::Unreachable(format!("broker {broker} is down"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{MetadataPartition, MetadataTopic};

    fn answer(leader: i32, leader_epoch: i32) -> MetadataAnswer {
        MetadataAnswer {
            topics: vec![MetadataTopic {
                name: "t".to_owned(),
                partitions: vec![MetadataPartition {
                    leader,
                    leader_epoch,
                    replicas: vec![1, 2],
                    ..MetadataPartition::default()
                }],
                ..MetadataTopic::default()
            }],
            ..MetadataAnswer::default()
        }
    }

    #[test]
    fn an_older_leader_is_not_believed() {
        let view = View::default().renewed(answer(1, 5));
        assert_eq!(view.leader("t", 0), Some(1));
        assert_eq!(view.renewed(answer(2, 4)).leader("t", 0), Some(1));
        assert_eq!(view.renewed(answer(2, 6)).leader("t", 0), Some(2));
        assert_eq!(view.renewed(answer(-1, 6)).leader("t", 0), None);
        assert_eq!(view.leader("t", 1), None);
    }

    #[test]
    fn a_topic_that_is_not_known_or_may_not_be_seen_has_no_partitions() {
        let mut denied = answer(1, 5);
        denied.topics[0].error = codes::TOPIC_AUTHORIZATION_FAILED;
        let view = View::default().renewed(denied);
        assert_eq!((view.denied, view.topics.len()), (vec!["t".to_owned()], 0));
        let mut unknown = answer(1, 5);
        unknown.topics[0].error = codes::UNKNOWN_TOPIC_OR_PARTITION;
        assert_eq!(View::default().renewed(unknown).topics.len(), 0);
    }
}
