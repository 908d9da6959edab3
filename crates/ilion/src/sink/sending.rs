//! Sends rounds into the topic, and commits their positions to the node.

use std::sync::Arc;
use std::time::Duration;

use ilion_env::Env;
use ilion_kafka::Topic;
use ilion_server::admin::{AdminClient, ClientError};

use super::handover::{Handover, Taken};
use super::line::ConsumerProgress;
use super::source::{Source, tell};
use crate::Failure;
use crate::ask::path;

/// Time between two commits of a busy table. After a kill, the sink sends the changes since the last commit again.
const COMMIT_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two messages about the same problem.
const TELL_INTERVAL: Duration = Duration::from_secs(10);

/// Sends the changes of a table.
pub struct Sending {
    /// The client of the node.
    pub client: AdminClient,
    /// The clock.
    pub env: Arc<dyn Env>,
    /// The table.
    pub source: Source,
    /// The topic of the table.
    pub topic: Topic,
    /// After each commit, ask the node to remove segments that all consumers have processed.
    pub releases: bool,
}

/// How far the sink is.
#[derive(Default)]
struct Progress {
    sent: Option<ConsumerProgress>,
    committed: Option<ConsumerProgress>,
    committed_nanos: u64,
}

impl Sending {
    /// Sends until the reader ends, or until a permanent failure.
    pub fn run(mut self, handover: &Handover) -> Result<(), Failure> {
        let outcome = self.send_all(handover);
        handover.abandon();
        outcome
    }

    fn send_all(&mut self, handover: &Handover) -> Result<(), Failure> {
        let mut progress = Progress::default();
        let mut last_told: Option<(String, u64)> = None;
        loop {
            match handover.take(COMMIT_INTERVAL) {
                Taken::Round(records, place) => {
                    let env = Arc::clone(&self.env);
                    let sent = self.topic.send(records, &mut |problem| {
                        let now_nanos = env.monotonic_nanos();
                        let is_known = last_told.as_ref().is_some_and(|(told, at_nanos)| {
                            told == problem && !has_passed(TELL_INTERVAL, *at_nanos, now_nanos)
                        });
                        if !is_known {
                            tell(problem);
                            last_told = Some((problem.to_owned(), now_nanos));
                        }
                    });
                    sent.map_err(Failure::of)?;
                    progress.sent = place;
                    if has_passed(
                        COMMIT_INTERVAL,
                        progress.committed_nanos,
                        self.env.monotonic_nanos(),
                    ) {
                        self.commit(&mut progress)?;
                    }
                }
                Taken::Quiet => self.commit(&mut progress)?,
                Taken::End(outcome) => {
                    self.commit(&mut progress)?;
                    return outcome;
                }
            }
        }
    }

    /// Commits the position of the last round to the node. If the node does not answer, or fails, a later commit does it.
    fn commit(&self, progress: &mut Progress) -> Result<(), Failure> {
        let Some(place) = progress
            .sent
            .clone()
            .filter(|_| progress.sent != progress.committed)
        else {
            return Ok(());
        };
        progress.committed_nanos = self.env.monotonic_nanos();
        let logged_millis = place.logged_millis.to_string();
        let parts = [
            ("consumer", Some(self.source.consumer.as_str())),
            ("keyspace", Some(self.source.keyspace.as_str())),
            ("table", Some(self.source.table.as_str())),
            ("position", Some(place.position.as_str())),
            ("logged_ms", Some(logged_millis.as_str())),
        ];
        match self.client.post(&path("changes/commit", &parts)) {
            Ok(_) => progress.committed = Some(place),
            Err(ClientError::Failed(_)) => return Ok(()),
            Err(error) if error.is_absence() => return Ok(()),
            Err(error) => return Err(Failure::of(error)),
        }
        if self.releases {
            match self.client.post(&path("changes/release", &[])) {
                Ok(_) => {}
                Err(error) if error.is_absence() => {}
                Err(error) => tell(&format!("segments of changes cannot be released: {error}")),
            }
        }
        Ok(())
    }
}

fn has_passed(interval: Duration, since_nanos: u64, now_nanos: u64) -> bool {
    u128::from(now_nanos.saturating_sub(since_nanos)) >= interval.as_nanos()
}
