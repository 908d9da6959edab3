//! Reads changes from the node. If the connection breaks, connects again, and goes on after the last change that came.

use std::time::Duration;

use ilion_server::admin::{AdminClient, ClientError};

use super::handover::Handover;
use super::line::{Line, parse};
use super::source::{Source, tell};
use super::wire::Wire;
use crate::Failure;
use crate::ask::path;

/// A node sends a line every few seconds. If no line comes for this long, the connection counts as broken.
pub const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Pauses between attempts to reach the node.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Reads the changes of a table.
pub struct Reading {
    /// The client of the node.
    pub client: AdminClient,
    /// The table.
    pub source: Source,
    /// Position to begin at; `None` begins where the consumer stopped.
    pub from: Option<String>,
    /// End after the changes that exist at the beginning.
    pub is_once: bool,
    /// The format of the records.
    pub wire: Wire,
}

impl Reading {
    /// Hands changes over until the stream has ended, a failure is permanent, or the sender has ended.
    pub fn run(mut self, handover: &Handover) -> Result<(), Failure> {
        let (mut came_upto, mut pause): (Option<String>, _) = (None, PAUSE_MIN);
        loop {
            let mut outcome = None;
            let before = came_upto.clone();
            let path = self.path(before.as_deref());
            let wire = &mut self.wire;
            let read = self.client.lines(&path, &mut |line| {
                let (is_wanted, place) = match parse(line) {
                    None => (false, None),
                    Some(Line::Change { place, key, envelope }) => match wire.record(key, envelope) {
                        Ok((key, value)) => {
                            let position = place.position.clone();
                            let is_wanted = handover.put(|round| round.add(place, key, value));
                            (is_wanted, Some(position))
                        }
                        Err(failure) => {
                            outcome = Some(Err(failure));
                            (false, None)
                        }
                    },
                    Some(Line::Schemas(schemas)) => match wire.adopt(&schemas) {
                        Ok(()) => (true, None),
                        Err(failure) => {
                            outcome = Some(Err(failure));
                            (false, None)
                        }
                    },
                    Some(Line::At(place)) => {
                        let position = place.position.clone();
                        (handover.put(|round| round.advance(place)), Some(position))
                    }
                    Some(Line::End(_)) => {
                        outcome = Some(Ok(()));
                        (false, None)
                    }
                    Some(Line::Failed(problem)) => {
                        outcome = Some(Err(Failure::Failed(problem)));
                        (false, None)
                    }
                };
                came_upto = place.or(came_upto.take());
                is_wanted
            });
            if let Some(outcome) = outcome {
                return outcome;
            }
            let problem = match read {
                Ok(()) => "the stream of changes broke off".to_owned(),
                Err(error) if error.is_absence() => error.to_string(),
                Err(error @ ClientError::Failed(_)) => error.to_string(),
                Err(error) => return Err(Failure::of(error)),
            };
            let table = format!("{}.{}", self.source.keyspace, self.source.table);
            tell(&format!("{table}: {problem}; trying again"));
            pause = match came_upto == before {
                true => (2 * pause).min(PAUSE_MAX),
                false => PAUSE_MIN,
            };
            std::thread::sleep(pause);
        }
    }

    fn path(&self, came_upto: Option<&str>) -> String {
        let from = came_upto.or(self.from.as_deref()).unwrap_or("stored");
        let begins = came_upto.is_none() && self.from.is_some();
        let given = |is_given| Some(if is_given { "true" } else { "false" });
        let parts = [
            ("keyspace", Some(self.source.keyspace.as_str())),
            ("table", Some(self.source.table.as_str())),
            ("consumer", Some(self.source.consumer.as_str())),
            ("format", Some(self.wire.format())),
            ("from", Some(from)),
            ("begins", given(begins)),
            ("once", given(self.is_once)),
        ];
        path("changes", &parts)
    }
}
