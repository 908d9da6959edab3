//! [`Options`]: limits and times of the connections between nodes.

use std::thread::available_parallelism;
use std::time::Duration;

use crate::kind::Lane;

/// Maximum number of open calls of a connection. The limit belongs to version 1 of the protocol: a node that exceeds it is refused.
pub(crate) const CALLS_MAX: usize = 1024;
/// Maximum number of bytes of the requests of these calls. This limit belongs to version 1, too.
pub(crate) const REQUESTS_BYTES_MAX: usize = 64 << 20;
/// The window of a streamed answer: this many bytes may be on the way, or wait for their reader.
pub(crate) const WINDOW_BYTES: u32 = 1 << 20;

/// Limits and times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// A connection that is not open after this time is given up.
    pub connect_timeout: Duration,
    /// While answers are waited for, a node that sends nothing for this time is asked for a sign of life.
    pub ping_after: Duration,
    /// A node that then sends nothing for this time is gone: its calls fail, and the connection is closed.
    pub dead_after: Duration,
    /// A connection without calls is pinged after this time without bytes.
    pub idle_ping_after: Duration,
    /// The side that was connected to closes a connection after this silence. Longer than `idle_ping_after`.
    pub silence_max: Duration,
    /// A connection is closed if its peer takes none of the bytes that wait for it for this time. A streamed answer ends if it gets no
    /// credit for this time.
    pub stall_timeout: Duration,
    /// While more bytes of answers than this wait to be sent on a connection, its further requests wait.
    pub unsent_bytes_max: usize,
    /// The largest answer, and the largest part of a streamed one.
    pub part_bytes_max: usize,
    /// Maximum bytes of all answers together that have arrived and that nobody has taken yet.
    pub received_bytes_max: usize,
    /// Maximum number of connections that others may have to this node.
    pub connections_max: usize,
    /// Maximum number of requests of a lane that wait for a thread; further ones are refused.
    pub waiting_max: usize,
    /// Threads of each lane, in the order of [`Lane::ALL`].
    pub threads: [usize; 4],
    /// Threads that move bytes between sockets and queues.
    pub io_threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        let processors = available_parallelism().map_or(2, usize::from);
        Self {
            connect_timeout: Duration::from_millis(1500),
            ping_after: Duration::from_millis(500),
            dead_after: Duration::from_secs(1),
            idle_ping_after: Duration::from_secs(15),
            silence_max: Duration::from_secs(60),
            stall_timeout: Duration::from_secs(20),
            unsent_bytes_max: 16 << 20,
            part_bytes_max: 256 << 20,
            received_bytes_max: 512 << 20,
            connections_max: 4096,
            waiting_max: 4096,
            threads: [(2 * processors).max(4), 32, processors.max(2), 4],
            io_threads: 2,
        }
    }
}

impl Options {
    /// Threads of a lane; at least one.
    pub(crate) fn threads_of(&self, lane: Lane) -> usize {
        self.threads[lane as usize].max(1)
    }
}
