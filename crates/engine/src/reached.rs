//! The file `ilion.reached`: the newest timestamp that this node gave, and the stretch of its commit log (see `timestamps`).
//!
//! ```text
//! ilion.reached := "timestamp_micros " i64 LF "log_from " segment LF "log_to " segment ":" offset LF crc
//! ```
//! `crc` is that of [`crate::crc_lines`]. The log must have every segment from `log_from` on, and records up to `log_to`.

use std::path::Path;

use ilion_commitlog::{LogStretch, Position, SegmentId};
use ilion_env::Env;

use crate::Result;
use crate::crc_lines::{with_crc, without_crc};

const FILE: &str = "ilion.reached";
const FILE_BYTES_MAX: u64 = 4096;

/// The contents of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    pub timestamp_micros: i64,
    pub log: LogStretch,
}

impl Reached {
    /// Reads the file of the last process; `None` if there is no such file. A damaged file is logged and ignored.
    pub(crate) fn read(env: &dyn Env, data_dir: &Path) -> Result<Option<Self>> {
        let path = data_dir.join(FILE);
        if !env.exists(&path) {
            return Ok(None);
        }
        let bytes = env.read_all(&path, FILE_BYTES_MAX)?;
        let reached = Self::parse(&String::from_utf8_lossy(&bytes));
        if reached.is_none() {
            tracing::error!(
                file = %path.display(),
                "the file is damaged; it held the newest timestamp that this node gave, which is now known only from the \
                 commit log"
            );
        }
        Ok(reached)
    }

    /// Replaces the file.
    pub(crate) fn write(&self, env: &dyn Env, data_dir: &Path) -> Result<()> {
        Ok(env.write_atomically(&data_dir.join(FILE), self.print().as_bytes())?)
    }

    fn print(&self) -> String {
        let LogStretch { from, to } = self.log;
        let lines = format!(
            "timestamp_micros {}\nlog_from {from}\nlog_to {to}\n",
            self.timestamp_micros
        );
        with_crc(&lines)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = without_crc(text)?.lines();
        let mut field = |name| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let timestamp_micros = field("timestamp_micros")?.parse().ok()?;
        let from = SegmentId(field("log_from")?.parse().ok()?);
        let to = Position::parse(field("log_to")?)?;
        Some(Self {
            timestamp_micros,
            log: LogStretch { from, to },
        })
    }
}

#[cfg(test)]
mod tests {
    use ilion_commitlog::{LogStretch, Position, SegmentId};

    use super::Reached;
    use crate::crc_lines::tests::assert_damage_is_noticed;

    #[test]
    fn what_was_reached_is_read_back_and_any_damage_is_seen() {
        let reached = Reached {
            timestamp_micros: -3,
            log: LogStretch {
                from: SegmentId(7),
                to: Position::new(9, 4711),
            },
        };
        let text = reached.print();
        assert_eq!(Reached::parse(&text), Some(reached));
        assert_damage_is_noticed(&text, |text| Reached::parse(text).is_some());
    }
}
