//! Logged batches over several tablets, as their coordinator sends them: first the whole batch to the log of one tablet, its home, then
//! each other part to the log of its own tablet. A replica of the home sends the parts that the coordinator did not send
//! (`follower/batches`).
//!
//! The numbers of all records are taken before the first one is sent, since nothing may wait where acknowledgements come in.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use bytes::Bytes;
use ilion_commitlog::{AppendError, Kind, Origin};
use ilion_replica::{BatchId, LoggedBatch};

use crate::pending::PendingWrite;
use crate::sender::Unsent;
use crate::settling::{of_append, settle_when_applied, unknown};
use crate::shared::Shared;

/// The part of a batch in one tablet: its mutations, and how many they are.
pub(crate) type TabletBatch = (Bytes, u32);

/// The kind of a record with this many mutations of one tablet.
pub(crate) fn kind_of(mutations: u32) -> Kind {
    match mutations {
        0 | 1 => Kind::Mutation,
        _ => Kind::Batch,
    }
}

/// The parts of a batch that are on their way to their logs.
struct Underway {
    shared: Arc<Shared>,
    home: u32,
    id: BatchId,
    /// Parts whose logs do not have them yet.
    left: AtomicUsize,
}

impl Underway {
    fn new(shared: &Arc<Shared>, home: u32, id: BatchId, parts: usize) -> Arc<Self> {
        Arc::new(Self {
            shared: shared.clone(),
            home,
            id,
            left: AtomicUsize::new(parts),
        })
    }

    /// Counts a part that is in its log. With the last one the batch is finished, and the follower reports that to its home.
    fn arrive(&self) {
        if self.left.fetch_sub(1, SeqCst) == 1 {
            self.shared.finished.lock().push((self.home, self.id));
        }
    }
}

/// Sends a batch. `write` is settled once for each part. Requires: at least two parts.
///
/// # Errors
/// Nothing was sent.
pub(crate) fn send(
    shared: &Arc<Shared>,
    schema_epoch: u64,
    parts: &BTreeMap<u32, TabletBatch>,
    write: &Arc<PendingWrite>,
    ends_nanos: u64,
) -> Result<(), AppendError> {
    let bodies = parts.iter().map(|(tablet, (body, _))| (*tablet, body.clone()));
    let batch = LoggedBatch {
        parts: bodies.collect(),
    };
    let mut records = parts.iter().map(|(tablet, (body, mutations))| Unsent {
        log: *tablet,
        kind: kind_of(*mutations),
        schema_epoch,
        body: body.clone(),
        ends_nanos,
    });
    let Some(home) = records.next() else {
        return Ok(());
    };
    let home = Unsent {
        kind: Kind::LoggedBatch,
        body: batch.encode().into(),
        ..home
    };
    let others: Vec<Unsent> = records.collect();
    let logs = std::iter::once(home.log).chain(others.iter().map(|other| other.log));
    let mut origins = take_numbers(shared, logs, ends_nanos)?;
    let of_others = origins.split_off(1);
    let Some(of_home) = origins.pop() else {
        return Ok(());
    };
    let id = (of_home.node, of_home.incarnation, of_home.seq);
    let underway = Underway::new(shared, home.log, id, others.len());
    let write = write.clone();
    let done = move |sent: Result<u64, AppendError>| match sent {
        Ok(offset) => {
            settle_when_applied(&underway.shared, &write, underway.home, offset);
            for (other, origin) in others.into_iter().zip(of_others) {
                send_part(&underway, &write, other, origin);
            }
        }
        Err(error) => {
            write.settle(Err(of_append(error)));
            for (other, origin) in others.iter().zip(of_others) {
                underway.shared.sender.give_back(other.log, origin);
                write.settle(Ok(()));
            }
        }
    };
    shared.sender.send_as(home, of_home, Box::new(done));
    Ok(())
}

fn send_part(underway: &Arc<Underway>, write: &Arc<PendingWrite>, part: Unsent, origin: Origin) {
    let (tablet, of_done, write) = (part.log, underway.clone(), write.clone());
    let done = move |sent: Result<u64, AppendError>| match sent {
        Ok(offset) => {
            settle_when_applied(&of_done.shared, &write, tablet, offset);
            of_done.arrive();
        }
        // The home has the batch, so a replica will finish it.
        Err(error) => {
            tracing::debug!(tablet, %error, "a part of a batch is sent by a replica later");
            write.settle(Err(unknown()));
        }
    };
    underway.shared.sender.send_as(part, origin, Box::new(done));
}

/// The next number in each of these logs. If one has none left, the others are given back.
fn take_numbers(
    shared: &Shared,
    logs: impl Iterator<Item = u32>,
    ends_nanos: u64,
) -> Result<Vec<Origin>, AppendError> {
    let mut taken: Vec<(u32, Origin)> = Vec::new();
    for log in logs {
        match shared.sender.number(log, ends_nanos) {
            Ok(origin) => taken.push((log, origin)),
            Err(error) => {
                for (log, origin) in taken {
                    shared.sender.give_back(log, origin);
                }
                return Err(error);
            }
        }
    }
    Ok(taken.into_iter().map(|(_, origin)| origin).collect())
}

/// Sends the parts of a batch that its coordinator has not sent. If a log has no room now, all parts are sent the next time.
///
/// # Errors
/// A log has no room: parts before it are sent.
pub(crate) fn finish(
    shared: &Arc<Shared>,
    home: u32,
    id: BatchId,
    schema_epoch: u64,
    others: &LoggedBatch,
    ends_nanos: u64,
) -> Result<(), AppendError> {
    let underway = Underway::new(shared, home, id, others.parts.len());
    if others.parts.is_empty() {
        shared.finished.lock().push((home, id));
    }
    for (tablet, body) in &others.parts {
        let origin = shared.sender.number(*tablet, shared.now_nanos())?;
        let unsent = Unsent {
            log: *tablet,
            kind: Kind::Batch,
            schema_epoch,
            body: body.clone(),
            ends_nanos,
        };
        let of_done = underway.clone();
        let done = move |sent: Result<u64, AppendError>| {
            if sent.is_ok() {
                of_done.arrive();
            }
        };
        shared.sender.send_as(unsent, origin, Box::new(done));
    }
    Ok(())
}
