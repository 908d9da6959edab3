//! How far this node has come, in a small file beside the data: the newest timestamp that it gave, and the stretch of its log.
//!
//! A clock may be set back while the process is down. Timestamps that it gives then have to be above those that it gave before, or a
//! change would be older than what it changes. Where they are known from:
//!
//! - each record of the log has the time at which it was appended ([`Shared::log_time_micros`]): never below the timestamps given so
//!   far. So whatever survives in the log tells its own time, exactly;
//! - before segments of the log are let go of, and before a memtable that is not logged becomes an SSTable, the newest timestamp is
//!   written to this file;
//! - timestamps that clients bring along do not count: they move nothing but their own cells.
//!
//! ```text
//! ilion.reached := "timestamp_micros " i64 LF "log_from " segment LF "log_to " segment ":" offset LF "crc32 " hex LF
//! ```
//! The checksum is that of the lines before it. The log has to have every segment from `log_from` on, and records up to `log_to`.

use std::path::PathBuf;

use ilion_commitlog::{CommitLog, Position, SegmentId, Stretch};

use crate::engine::Shared;

const FILE: &str = "ilion.reached";
const FILE_BYTES_MAX: u64 = 4096;
/// A clock that stands behind by less is an ordinary one: many timestamps in one microsecond, or a time server's corrections.
const BEHIND_MICROS_TOLD: i64 = 1_000_000;

/// What the file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    pub timestamp_micros: i64,
    pub log: Stretch,
}

impl Reached {
    fn print(&self) -> String {
        let Stretch { from, to } = self.log;
        let lines = format!(
            "timestamp_micros {}\nlog_from {from}\nlog_to {to}\n",
            self.timestamp_micros
        );
        let crc = ilion_codec::crc32(lines.as_bytes());
        format!("{lines}crc32 {crc:08x}\n")
    }

    fn parse(text: &str) -> Option<Self> {
        let (lines, crc) = text.split_at_checked(text.find("crc32 ")?)?;
        let crc = u32::from_str_radix(crc.strip_prefix("crc32 ")?.strip_suffix('\n')?, 16).ok()?;
        if ilion_codec::crc32(lines.as_bytes()) != crc {
            return None;
        }
        let mut lines = lines.lines();
        let mut field = |name| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let timestamp_micros = field("timestamp_micros")?.parse().ok()?;
        let from = SegmentId(field("log_from")?.parse().ok()?);
        let (segment, offset) = field("log_to")?.split_once(':')?;
        let to = Position::new(segment.parse().ok()?, offset.parse().ok()?);
        Some(Self {
            timestamp_micros,
            log: Stretch { from, to },
        })
    }
}

impl Shared {
    fn reached_file(&self) -> PathBuf {
        self.options.data_dir.join(FILE)
    }

    /// What the last process wrote; `None` if there is no such file. A damaged file is logged and ignored.
    pub(crate) fn read_reached(&self) -> crate::Result<Option<Reached>> {
        let path = self.reached_file();
        if !self.env.exists(&path) {
            return Ok(None);
        }
        let bytes = self.env.read_all(&path, FILE_BYTES_MAX)?;
        let reached = Reached::parse(&String::from_utf8_lossy(&bytes));
        if reached.is_none() {
            tracing::error!(
                file = %path.display(),
                "the file is damaged; it would have told the newest timestamp that this node gave, which is now known only from the \
                 commit log"
            );
        }
        Ok(reached)
    }

    /// Brings the file up to date: timestamps given so far survive the loss of all log segments below the position. A failure is
    /// told and holds up nobody: it costs something only if the clock is set back before the next time.
    pub(crate) fn save_reached(&self, log: &CommitLog, below: Position) {
        let reached = Reached {
            timestamp_micros: self.env.last_unique_micros(),
            log: log.stretch(below),
        };
        let mut saved = self.reached.lock();
        if *saved == Some(reached) {
            return;
        }
        let text = reached.print();
        match self.env.write_atomically(&self.reached_file(), text.as_bytes()) {
            Ok(()) => *saved = Some(reached),
            Err(error) => tracing::warn!(%error, "the newest timestamp that this node gave was not saved"),
        }
    }

    /// The same at the end, when everything is synced.
    pub(crate) fn save_reached_at_end(&self) {
        if let Some(log) = self.log.get()
            && log.sync().is_ok()
        {
            self.save_reached(log, Position::START);
        }
    }

    /// The time of a record that is appended now: of the clock, and not below any timestamp given before.
    pub(crate) fn log_time_micros(&self) -> i64 {
        self.env.now_micros().max(self.env.last_unique_micros())
    }

    /// Timestamps given from now on are above those of earlier processes.
    pub(crate) fn raise_clock(&self, floor_micros: i64) {
        self.env.raise_unique_micros(floor_micros);
        let behind_micros = self.clock_behind_micros();
        if behind_micros >= BEHIND_MICROS_TOLD {
            tracing::warn!(
                behind_secs = behind_micros / 1_000_000,
                "the clock stands before the newest timestamp that this node gave: it was set back, or was ahead before. Timestamps \
                 that the node gives go on above that one; those that clients bring along are theirs to mend. Times to live and \
                 the removal of tombstones follow the clock. Mend the clock if it is wrong"
            );
        }
    }

    /// How far the clock stands before the newest timestamp given.
    pub(crate) fn clock_behind_micros(&self) -> i64 {
        let last_micros = self.env.last_unique_micros();
        last_micros.saturating_sub(self.env.now_micros()).max(0)
    }
}

#[cfg(test)]
mod tests {
    use ilion_commitlog::{Position, SegmentId, Stretch};

    use super::Reached;

    #[test]
    fn what_was_reached_is_read_back_and_any_damage_is_seen() {
        let reached = Reached {
            timestamp_micros: -3,
            log: Stretch {
                from: SegmentId(7),
                to: Position::new(9, 4711),
            },
        };
        let text = reached.print();
        assert_eq!(Reached::parse(&text), Some(reached));
        for at in 0..text.len() {
            let mut damaged = text.clone().into_bytes();
            damaged[at] ^= 1;
            assert_eq!(
                Reached::parse(&String::from_utf8_lossy(&damaged)),
                None,
                "byte {at}"
            );
            assert_eq!(Reached::parse(&text[..at]), None, "cut at {at}");
        }
    }
}
