//! [`Awaited`]: what must come before a client is told that its write is done.

use std::fmt;
use std::sync::Arc;

use crate::{Consistency, Error, LogPosition, StoreError, WriteType};

/// What a write waits for after it was executed.
#[derive(Clone, Debug)]
pub enum Awaited {
    /// The commit log of this node is durable up to here.
    Log(LogPosition),
    /// The logs of the cluster have acknowledged it.
    Cluster(ClusterWrite),
}

/// Called once with what became of a write.
pub type AcknowledgedCallback = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// A write that is on its way to the logs of a cluster.
pub trait Acknowledged: Send + Sync {
    /// Calls back when it is acknowledged, or with the reason why it is not; at once, if that is known. There is one call for each write.
    fn on_done(&self, callback: AcknowledgedCallback);
}

/// A write of a statement that is on its way.
#[derive(Clone)]
pub struct ClusterWrite {
    sent: Arc<dyn Acknowledged>,
    /// What its errors say.
    consistency: Consistency,
    write_type: WriteType,
}

impl fmt::Debug for ClusterWrite {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "a write at {}", self.consistency)
    }
}

impl ClusterWrite {
    /// Calls back when it is acknowledged, or with the error for its client. To be called once.
    pub fn on_done(&self, callback: impl FnOnce(Result<(), Error>) + Send + 'static) {
        let (consistency, write_type) = (self.consistency, self.write_type);
        self.sent.on_done(Box::new(move |done| {
            callback(done.map_err(|error| error.of_write(consistency, write_type)));
        }));
    }
}

impl Awaited {
    /// A write that was sent to the logs of a cluster.
    pub fn cluster(sent: Arc<dyn Acknowledged>) -> Self {
        Self::Cluster(ClusterWrite {
            sent,
            consistency: Consistency::ONE,
            write_type: WriteType::Simple,
        })
    }

    /// The same write, with what the error for its client will say.
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

    /// What two writes of a statement wait for. At most one of them goes to a cluster; the other one is then of this node's own tables, and
    /// not waited for.
    pub(crate) fn both(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(Self::Log(one)), Some(Self::Log(other))) => Some(Self::Log(one.max(other))),
            (cluster @ Some(Self::Cluster(_)), _) | (_, cluster @ Some(Self::Cluster(_))) => cluster,
            (one, other) => one.or(other),
        }
    }
}
