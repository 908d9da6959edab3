//! Barriers: a read needs the end of a log as it is after the read began.
//!
//! The logs tell it, and ask their servers once for all reads that wait. If they cannot tell it for sure, a no-op is appended: its offset
//! is such an end, too. Reads that wait at the same time share a no-op.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use crossbeam_channel::{Receiver, bounded, unbounded};
use ilion_commitlog::{AppendError, Kind};
use ilion_coordinator::{AppliedCallback, BarrierError, Barriers};
use ilion_engine::TabletPosition;
use parking_lot::Mutex;

use crate::facts::{Counting, WaitHistogram, add_one};
use crate::pending::PendingRead;
use crate::progress::NotHere;
use crate::sender::Unsent;
use crate::shared::{Shared, nanos};
use crate::waiting::receive_until;

type Raised = Result<u64, BarrierError>;
/// Called once, on any thread.
type RaisedCallback = Box<dyn FnOnce(Raised) + Send>;

/// A no-op that is on its way to a tablet's log, and the reads that came after it was sent: they need the next one.
#[derive(Default)]
struct Flight {
    waiting: Vec<RaisedCallback>,
    next: Vec<RaisedCallback>,
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

    /// Calls back with the offset of a record that is not below any that was acknowledged before this call.
    fn raise_one(&self, tablet: u32, ends_nanos: u64, raised: RaisedCallback) {
        let (shared, flights) = (self.shared.clone(), self.flights.clone());
        let asked = move |end: Option<u64>| match end.and_then(|end| end.checked_sub(1)) {
            Some(last) => raised(Ok(last)),
            // It is not known, or the log is empty.
            None => join(&shared, &flights, tablet, ends_nanos, raised),
        };
        self.shared.sender.logs().find_end(tablet, Box::new(asked));
    }
}

/// Calls back when this node has applied a record of a tablet, at once if it does not follow the tablet.
fn on_applied(
    shared: &Shared,
    position: &TabletPosition,
    done: impl FnOnce(Result<(), BarrierError>) + Send + 'static,
) {
    let applied = |applied: Result<(), NotHere>| {
        done(applied.map_err(|NotHere(reason)| BarrierError::Unavailable(reason)));
    };
    let TabletPosition { tablet, offset } = *position;
    if let Some(applied) = shared.progress.on_applied(tablet, offset, Box::new(applied)) {
        applied(Err(NotHere(format!("this node does not follow tablet {tablet}"))));
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

/// Calls back with the offset of a no-op that is sent after this call.
fn join(
    shared: &Arc<Shared>,
    flights: &Arc<Mutex<BTreeMap<u32, Flight>>>,
    tablet: u32,
    ends_nanos: u64,
    raised: RaisedCallback,
) {
    {
        let mut flights = flights.lock();
        if let Some(flight) = flights.get_mut(&tablet) {
            return flight.next.push(raised);
        }
        let flight = Flight {
            waiting: vec![raised],
            next: Vec::new(),
        };
        flights.insert(tablet, flight);
    }
    append(shared, flights, tablet, ends_nanos);
}

/// Appends a no-op for the reads of a flight.
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
        waiting(raised.clone());
    }
    if has_next {
        let ends_nanos = shared.now_nanos() + nanos(shared.write_timeout());
        append(shared, flights, tablet, ends_nanos);
    }
}

impl Barriers for LogBarriers {
    fn raise(&self, tablets: &[u32], deadline_nanos: u64) -> Result<Vec<TabletPosition>, BarrierError> {
        let _timed = self.timed(|counting| &counting.barriers_raised);
        let raise_one = |tablet: &u32| {
            let (sender, receiver) = bounded(1);
            let raised = Box::new(move |raised| drop(sender.send(raised)));
            self.raise_one(*tablet, deadline_nanos, raised);
            (*tablet, receiver)
        };
        let raised: Vec<(u32, Receiver<Raised>)> = tablets.iter().map(raise_one).collect();
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
            on_applied(&self.shared, position, move |applied| drop(sender.send(applied)));
        }
        for _ in reached {
            let applied = receive_until(&self.shared, &receiver, deadline_nanos);
            applied.map_err(|_| BarrierError::TimedOut)??;
        }
        Ok(())
    }

    fn on_applied(&self, tablet: u32, deadline_nanos: u64, done: AppliedCallback) {
        let pending = PendingRead::new(done);
        self.shared.overdue_reads.watch(deadline_nanos, &pending);
        let (shared, begun_nanos) = (self.shared.clone(), self.shared.now_nanos());
        let raised = move |raised: Raised| {
            let raised_nanos = shared.now_nanos();
            let counting = &shared.counting;
            counting
                .barriers_raised
                .count(raised_nanos.saturating_sub(begun_nanos));
            let offset = match raised {
                Ok(offset) => offset,
                Err(error) => return pending.settle(Err(error)),
            };
            let of_done = shared.clone();
            on_applied(&shared, &TabletPosition { tablet, offset }, move |applied| {
                let waited = of_done.now_nanos().saturating_sub(raised_nanos);
                of_done.counting.barriers_applied.count(waited);
                pending.settle(Ok(applied));
            });
        };
        self.raise_one(tablet, deadline_nanos, Box::new(raised));
    }
}
