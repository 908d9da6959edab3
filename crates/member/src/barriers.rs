//! Barriers: ends of logs, shared by the reads that wait at the same time.
//!
//! A read needs the end of a log as it is after the read began. If the logs cannot tell it for sure, a no-op is appended: its offset is
//! such an end, too.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender as Channel, bounded, unbounded};
use ilion_commitlog::{AppendError, Kind};
use ilion_coordinator::{BarrierError, Barriers};
use ilion_engine::TabletPosition;
use parking_lot::Mutex;

use crate::facts::{Counting, WaitHistogram, add_one};
use crate::progress::NotHere;
use crate::sender::Unsent;
use crate::shared::{Shared, nanos};
use crate::waiting::receive_until;

type Raised = Result<u64, BarrierError>;

/// A question for the end of a tablet's log that is on its way, and the reads that came after it was sent: they need the next one.
#[derive(Default)]
struct Flight {
    waiting: Vec<Channel<Raised>>,
    next: Vec<Channel<Raised>>,
}

/// The barriers of a node.
pub(crate) struct LogBarriers {
    shared: Arc<Shared>,
    flights: Arc<Mutex<BTreeMap<u32, Flight>>>,
}

impl LogBarriers {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            flights: Arc::default(),
        }
    }

    fn timed(&self, times: impl FnOnce(&Counting) -> &WaitHistogram) -> Timed<'_> {
        Timed {
            shared: &self.shared,
            times: times(&self.shared.counting),
            begun_nanos: self.shared.now_nanos(),
        }
    }

    /// The offset of a record that is not below any that was acknowledged before this call.
    fn raise_one(&self, tablet: u32, ends_nanos: u64) -> Receiver<Raised> {
        let (sender, receiver) = bounded(1);
        {
            let mut flights = self.flights.lock();
            if let Some(flight) = flights.get_mut(&tablet) {
                flight.next.push(sender);
                return receiver;
            }
            let flight = Flight {
                waiting: vec![sender],
                next: Vec::new(),
            };
            flights.insert(tablet, flight);
        }
        ask(&self.shared, &self.flights, tablet, ends_nanos);
        receiver
    }
}

/// Counts the time until it is dropped, whatever the outcome.
struct Timed<'a> {
    shared: &'a Shared,
    times: &'a WaitHistogram,
    begun_nanos: u64,
}

impl Drop for Timed<'_> {
    fn drop(&mut self) {
        let elapsed = self.shared.now_nanos().saturating_sub(self.begun_nanos);
        self.times.count(elapsed);
    }
}

/// Asks for the end of a log, for one flight and then for the next one. Appends a no-op if the end is not known, or the log is empty.
fn ask(shared: &Arc<Shared>, flights: &Arc<Mutex<BTreeMap<u32, Flight>>>, tablet: u32, ends_nanos: u64) {
    let (of_end, of_flights) = (shared.clone(), flights.clone());
    let asked = move |end: Option<u64>| match end.and_then(|end| end.checked_sub(1)) {
        Some(last) => land(&of_end, &of_flights, tablet, Ok(last)),
        None => append(&of_end, &of_flights, tablet, ends_nanos),
    };
    shared.sender.logs().find_end(tablet, Box::new(asked));
}

fn append(shared: &Arc<Shared>, flights: &Arc<Mutex<BTreeMap<u32, Flight>>>, tablet: u32, ends_nanos: u64) {
    let schema_epoch = shared.know(|known| {
        known
            .topology
            .as_ref()
            .map_or(0, |topology| topology.schema_epoch())
    });
    let unsent = Unsent {
        log: tablet,
        kind: Kind::Noop,
        schema_epoch,
        body: Bytes::new(),
        ends_nanos,
    };
    add_one(&shared.counting.barriers_appended);
    let (of_done, of_flights) = (shared.clone(), flights.clone());
    let done = move |sent: Result<u64, AppendError>| land(&of_done, &of_flights, tablet, sent);
    if let Err(error) = shared.sender.send(unsent, |_| {}, Box::new(done)) {
        land(shared, flights, tablet, Err(error));
    }
}

fn land(
    shared: &Arc<Shared>,
    flights: &Arc<Mutex<BTreeMap<u32, Flight>>>,
    tablet: u32,
    sent: Result<u64, AppendError>,
) {
    let raised = sent.map_err(|error| match error {
        AppendError::Refused(reason) => BarrierError::Unavailable(reason),
        AppendError::Unknown(_) => BarrierError::TimedOut,
    });
    let (landed, has_next) = {
        let mut flights = flights.lock();
        let Some(flight) = flights.get_mut(&tablet) else {
            return;
        };
        let next = std::mem::take(&mut flight.next);
        let has_next = !next.is_empty();
        let landed = std::mem::replace(&mut flight.waiting, next);
        if !has_next {
            flights.remove(&tablet);
        }
        (landed, has_next)
    };
    for waiting in landed {
        drop(waiting.send(raised.clone()));
    }
    if has_next {
        let ends_nanos = shared.now_nanos() + nanos(shared.write_timeout());
        ask(shared, flights, tablet, ends_nanos);
    }
}

impl Barriers for LogBarriers {
    fn raise(&self, tablets: &[u32], deadline_nanos: u64) -> Result<Vec<TabletPosition>, BarrierError> {
        let _timed = self.timed(|counting| &counting.barriers_raised);
        let raised: Vec<(u32, Receiver<Raised>)> = tablets
            .iter()
            .map(|tablet| (*tablet, self.raise_one(*tablet, deadline_nanos)))
            .collect();
        let position = |(tablet, receiver): (u32, Receiver<Raised>)| {
            let offset = receive_until(&self.shared, &receiver, deadline_nanos)
                .map_err(|_| BarrierError::TimedOut)??;
            Ok(TabletPosition { tablet, offset })
        };
        raised.into_iter().map(position).collect()
    }

    fn wait_applied(&self, reached: &[TabletPosition], deadline_nanos: u64) -> Result<(), BarrierError> {
        let _timed = self.timed(|counting| &counting.barriers_applied);
        let (sender, receiver) = unbounded();
        for position in reached {
            let sender = sender.clone();
            let callback = Box::new(move |applied: Result<(), NotHere>| drop(sender.send(applied)));
            let progress = &self.shared.progress;
            if progress
                .on_applied(position.tablet, position.offset, callback)
                .is_some()
            {
                let tablet = position.tablet;
                return Err(BarrierError::Unavailable(format!(
                    "this node does not follow tablet {tablet}"
                )));
            }
        }
        for _ in reached {
            let applied = receive_until(&self.shared, &receiver, deadline_nanos);
            let applied = applied.map_err(|_| BarrierError::TimedOut)?;
            applied.map_err(|NotHere(reason)| BarrierError::Unavailable(reason))?;
        }
        Ok(())
    }
}
