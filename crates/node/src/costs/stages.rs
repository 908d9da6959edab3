//! Times of the stages of a request.

/// Nanoseconds of each stage. Their sum is the time from the last byte of a request to the first byte of its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// Until a thread took the request.
    pub queue: u64,
    /// Until the answer was ready.
    pub execute: u64,
    /// Until the writes were durable; `None` if the request did not wait for that.
    pub log_wait: Option<u64>,
    /// Until the first byte of the answer was sent.
    pub send: u64,
}

impl Stages {
    /// Number of stages.
    pub const COUNT: usize = 4;
    /// Their names, in order.
    pub const NAMES: [&str; Self::COUNT] = ["queue", "execute", "log_wait", "send"];

    /// The whole time of the request.
    #[inline]
    pub fn sum(&self) -> u64 {
        self.queue + self.local() + self.send
    }

    /// The time without the stages queue and send.
    #[inline]
    pub fn local(&self) -> u64 {
        self.execute + self.log_wait.unwrap_or(0)
    }
}

/// Nanoseconds in seconds, for metrics.
#[expect(clippy::cast_precision_loss, reason = "for people")]
pub fn in_seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
