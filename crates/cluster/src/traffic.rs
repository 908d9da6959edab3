//! [`Traffic`]: requests to and of one other node, and the connections to it, since the start of the process.

/// Requests, and the bytes of their payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// How many.
    pub count: u64,
    /// Their bytes, without the answers.
    pub bytes: u64,
}

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Requests to it.
    pub sent: Volume,
    /// Those that it did not answer: it could not be reached, refused, or failed.
    pub unanswered: Volume,
    /// Those that it did not answer in time.
    pub unanswered_in_time: Volume,
    /// Requests that were not sent to it, since too many had no answer yet.
    pub held_back: Volume,
    /// Attempts to connect to it.
    pub attempts: u64,
    /// Those that succeeded.
    pub connected: u64,
    /// Connections to it that are open.
    pub open: u64,
    /// Requests of it that were begun.
    pub received: Volume,
    /// Those that were answered.
    pub answered: Volume,
    /// Those that were refused, or failed.
    pub failed: Volume,
    /// Those whose time was over.
    pub expired: Volume,
}
