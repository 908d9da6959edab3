//! [`Service`]: answers requests of one kind, and [`Services`]: those of a node.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::kind::Kind;
use crate::served::ServedCall;

/// Answers requests of one kind. It is called by the threads of a lane, and may block. Its reads end at the deadline of the thread
/// (`env::patience`), which the caller sets; longer work checks [`ServedCall::is_wanted`] now and then.
pub trait Service: Send + Sync {
    /// Answers a request.
    ///
    /// # Errors
    /// There is no answer: see [`ServiceError`].
    fn answer(&self, request: Bytes, call: &ServedCall) -> Result<Served, ServiceError>;
}

/// An answer.
pub enum Served {
    /// The whole answer.
    Whole(Bytes),
    /// An answer in parts. The next part is asked for when the node that asked has room for it, so the thread may wait between two.
    Parts(Box<dyn Iterator<Item = Result<Bytes, ServiceError>> + Send>),
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// This node must not answer; another one may.
    #[error("{0}")]
    Refused(String),
    /// The deadline has passed.
    #[error("no answer in time")]
    TimedOut,
    /// It failed.
    #[error("{0}")]
    Failed(String),
}

/// The services of a node, by kind.
#[derive(Clone, Default)]
pub struct Services {
    by_kind: BTreeMap<Kind, Arc<dyn Service>>,
}

impl Services {
    /// No services.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the service of a kind, or replaces it.
    #[must_use]
    pub fn with(mut self, kind: Kind, service: Arc<dyn Service>) -> Self {
        self.by_kind.insert(kind, service);
        self
    }

    pub(crate) fn get(&self, kind: Kind) -> Option<&Arc<dyn Service>> {
        self.by_kind.get(&kind)
    }
}
