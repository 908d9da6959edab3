//! [`Awaited`]: what must happen before a client gets the answer to its write.

use std::fmt;
use std::sync::Arc;

use crate::{Consistency, Error, LogPosition, StoreError, WriteType};

/// What the answer to an executed write waits for.
#[derive(Clone, Debug)]
pub enum Awaited {
    /// The commit log of this node must be durable up to this position.
    Log(LogPosition),
    /// The logs of the cluster must acknowledge this write.
    Cluster(ClusterWrite),
}

/// Called once with the outcome of a write.
pub type AcknowledgedCallback = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// A write that is on its way to the logs of a cluster.
pub trait Acknowledged: Send + Sync {
    /// Calls `callback` when the write is acknowledged or has failed; at once, if that is known. To be called once for each write.
    fn on_done(&self, callback: AcknowledgedCallback);
}

/// A write of a statement that was sent to the logs of a cluster.
#[derive(Clone)]
pub struct ClusterWrite {
    sent: Arc<dyn Acknowledged>,
    /// The consistency level that errors of the write name.
    consistency: Consistency,
    write_type: WriteType,
}

impl fmt::Debug for ClusterWrite {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "a write at {}", self.consistency)
    }
}

impl ClusterWrite {
    /// Calls `callback` when the write is acknowledged, or with the error for the client. To be called once.
    pub fn on_done(&self, callback: impl FnOnce(Result<(), Error>) + Send + 'static) {
        let (consistency, write_type) = (self.consistency, self.write_type);
        self.sent.on_done(Box::new(move |done| {
            callback(done.map_err(|error| error.of_write(consistency, write_type)));
        }));
    }
}

impl Awaited {
    /// Waits for a write that was sent to the logs of a cluster.
    pub fn cluster(sent: Arc<dyn Acknowledged>) -> Self {
        Self::Cluster(ClusterWrite {
            sent,
            consistency: Consistency::ONE,
            write_type: WriteType::Simple,
        })
    }

    /// The same write with this level and kind in the errors for the client.
    pub(crate) fn of(self, consistency: Consistency, write_type: WriteType) -> Self {
        match self {
            Self::Cluster(write) => Self::Cluster(ClusterWrite {
                consistency,
                write_type,
                ..write
            }),
            log @ Self::Log(_) => log,
        }
    }

    /// Combines what two writes of a statement wait for. At most one of them goes to a cluster. The other one is then a write to this
    /// node's own tables, for which no client waits.
    pub(crate) fn both(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(Self::Log(one)), Some(Self::Log(other))) => Some(Self::Log(one.max(other))),
            (cluster @ Some(Self::Cluster(_)), _) | (_, cluster @ Some(Self::Cluster(_))) => cluster,
            (one, other) => one.or(other),
        }
    }
}
