//! Counts [`Traffic`].

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ilion_cluster::{Traffic, Volume};

use crate::error::CallError;

#[derive(Debug, Default)]
pub(crate) struct CountedVolume {
    count: AtomicU64,
    bytes: AtomicU64,
}

impl CountedVolume {
    pub fn add(&self, bytes: usize) {
        self.count.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    fn volume(&self) -> Volume {
        Volume {
            count: self.count.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
        }
    }
}

/// Counts while there are connections.
#[derive(Debug, Default)]
pub(crate) struct CountedTraffic {
    pub sent: CountedVolume,
    unanswered: CountedVolume,
    unanswered_in_time: CountedVolume,
    pub held_back: CountedVolume,
    pub attempts: AtomicU64,
    pub connected: AtomicU64,
    /// Connections that have ended.
    pub ended: AtomicU64,
    pub received: CountedVolume,
    pub answered: CountedVolume,
    pub failed: CountedVolume,
    pub expired: CountedVolume,
}

impl CountedTraffic {
    /// Counts a request of this many bytes that the node did not answer.
    pub fn not_answered(&self, error: &CallError, bytes: usize) {
        match error {
            CallError::TimedOut => self.unanswered_in_time.add(bytes),
            _ => self.unanswered.add(bytes),
        }
    }

    pub fn traffic(&self) -> Traffic {
        // Read before `connected`, so that each connection that is counted as ended is also counted as connected.
        let ended = self.ended.load(Relaxed);
        let connected = self.connected.load(Relaxed);
        Traffic {
            sent: self.sent.volume(),
            unanswered: self.unanswered.volume(),
            unanswered_in_time: self.unanswered_in_time.volume(),
            held_back: self.held_back.volume(),
            attempts: self.attempts.load(Relaxed),
            connected,
            open: connected.saturating_sub(ended),
            received: self.received.volume(),
            answered: self.answered.volume(),
            failed: self.failed.volume(),
            expired: self.expired.volume(),
        }
    }
}
