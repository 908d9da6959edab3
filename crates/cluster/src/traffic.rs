//! [`Traffic`]: requests to and of one other node, and the connections to it, since the start of the process.

/// Requests, and the bytes of their payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Number of requests.
    pub count: u64,
    /// Bytes of their payloads, without those of the answers.
    pub bytes: u64,
}

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Requests to it.
    pub sent: Volume,
    /// Requests that the node did not answer: it could not be reached, refused, or failed.
    pub unanswered: Volume,
    /// Requests that the node did not answer in time.
    pub unanswered_in_time: Volume,
    /// Requests that were not sent to it, since too many had no answer yet.
    pub held_back: Volume,
    /// Attempts to connect to it.
    pub attempts: u64,
    /// Attempts that succeeded.
    pub connected: u64,
    /// Connections to it that are open.
    pub open: u64,
    /// Requests of it that were begun.
    pub received: Volume,
    /// Received requests that were answered.
    pub answered: Volume,
    /// Received requests that were refused, or failed.
    pub failed: Volume,
    /// Received requests whose time was over.
    pub expired: Volume,
}
