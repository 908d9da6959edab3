//! How long each stage of a request took.

/// Nanoseconds of each stage; together they are the time from a request's last byte to the first one of its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// Until a thread took it.
    pub queue: u64,
    /// Until its answer was there.
    pub execute: u64,
    /// Until the commit log had what it wrote; `None` if it did not wait for that.
    pub log_wait: Option<u64>,
    /// Until the first byte of its answer left.
    pub send: u64,
}

impl Stages {
    /// How many there are.
    pub const COUNT: usize = 4;
    /// Their names, in the order of [`Self::each`].
    pub const NAMES: [&str; Self::COUNT] = ["queue", "execute", "log_wait", "send"];

    /// All of them; `None` where the request had no such stage.
    #[inline]
    pub fn each(&self) -> [Option<u64>; Self::COUNT] {
        [
            Some(self.queue),
            Some(self.execute),
            self.log_wait,
            Some(self.send),
        ]
    }

    /// The request's whole time.
    #[inline]
    pub fn sum(&self) -> u64 {
        self.queue + self.local() + self.send
    }

    /// What the engine took, without waiting for a thread or for the socket.
    #[inline]
    pub fn local(&self) -> u64 {
        self.execute + self.log_wait.unwrap_or(0)
    }
}
