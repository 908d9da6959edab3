//! The file `ilion.purged`: stretches of the log whose data compactions have purged without leaving an SSTable.
//!
//! An SSTable names the stretches of the log that it covers, and the results of a compaction name those of its inputs. If a
//! compaction purges all data, there is no result. Without this file, the next start would replay the records of these stretches as
//! long as the log has them: deletions past gc grace would hide writes with older timestamps that were accepted since, and rows that
//! an imported SSTable had deleted would return.
//!
//! The file is written before the inputs are removed. If they are not removed after all, they name the same stretches. Stretches of
//! segments that were trimmed are left out when the file is next written.
//!
//! ```text
//! ilion.purged := "log " uuid LF stretch* crc
//! stretch      := table-uuid " " segment ":" offset " " segment ":" offset LF
//! ```
//! `uuid` is the id of the node, as in `ilion.id`; a file with another one is ignored. A stretch has a start and an end, which is behind its
//! last record. `crc` is that of [`crate::crc_lines`].

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use ilion_commitlog::{Position, SegmentId};
use ilion_env::Env;
use ilion_schema::TableId;
use ilion_sstable::{CommitLogInterval, union_intervals};
use uuid::Uuid;

use crate::Result;
use crate::crc_lines::{with_crc, without_crc};
use crate::tablet_ends::is_of_tablet;

pub(crate) const FILE: &str = "ilion.purged";
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The contents of the file: the stretches of each table, joined and ascending.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Purged(BTreeMap<TableId, Vec<CommitLogInterval>>);

impl Purged {
    /// Reads the file of the node with this id; empty if there is none. A damaged file is logged and ignored.
    pub(crate) fn read(env: &dyn Env, data_dir: &Path, id: Uuid) -> Result<Self> {
        let path = data_dir.join(FILE);
        if !env.exists(&path) {
            return Ok(Self::default());
        }
        let bytes = env.read_all(&path, FILE_BYTES_MAX)?;
        let parsed = Self::parse(&String::from_utf8_lossy(&bytes));
        if parsed.is_none() {
            tracing::error!(
                file = %path.display(),
                "the file is damaged and is ignored: deletions that were purged since the oldest record of the commit log may apply \
                 again"
            );
        }
        let (_, purged) = parsed.filter(|(log, _)| *log == id).unwrap_or_default();
        Ok(purged)
    }

    /// Replaces the file.
    pub(crate) fn write(&self, env: &dyn Env, data_dir: &Path, id: Uuid) -> Result<()> {
        Ok(env.write_atomically(&data_dir.join(FILE), self.print(id).as_bytes())?)
    }

    /// The stretches of a table.
    pub(crate) fn of(&self, table: TableId) -> impl Iterator<Item = CommitLogInterval> {
        self.0.get(&table).into_iter().flatten().copied()
    }

    /// Adds stretches of a table, and leaves out all that end before the first segment of the log. Those of tablets are not needed:
    /// their data is not purged as long as their logs have it ([`crate::Engine::hold_purge`]). Returns whether any was added.
    pub(crate) fn add(
        &mut self,
        table: TableId,
        stretches: impl Iterator<Item = CommitLogInterval>,
        first: SegmentId,
    ) -> bool {
        let is_in_log = |(_, end): &CommitLogInterval| *end > (first.0, 0);
        let mut added = stretches
            .filter(|stretch| !is_of_tablet(stretch) && is_in_log(stretch))
            .peekable();
        if added.peek().is_none() {
            return false;
        }
        let known = self.0.entry(table).or_default();
        *known = union_intervals(known.drain(..).chain(added).collect());
        self.0.retain(|_, stretches| {
            stretches.retain(is_in_log);
            !stretches.is_empty()
        });
        true
    }

    pub(crate) fn print(&self, id: Uuid) -> String {
        let mut lines = format!("log {id}\n");
        for (table, stretches) in &self.0 {
            for ((from, from_offset), (to, to_offset)) in stretches {
                // Writing to a string does not fail.
                let _ = writeln!(lines, "{table} {from}:{from_offset} {to}:{to_offset}");
            }
        }
        with_crc(&lines)
    }

    fn parse(text: &str) -> Option<(Uuid, Self)> {
        let mut lines = without_crc(text)?.lines();
        let id = lines.next()?.strip_prefix("log ")?.parse().ok()?;
        let mut purged = Self::default();
        for line in lines {
            let (table, stretch) = line.split_once(' ')?;
            let (start, end) = stretch.split_once(' ')?;
            let place = |text| Position::parse(text).map(|at| (at.segment.0, at.offset));
            let stretches = purged.0.entry(TableId(table.parse().ok()?)).or_default();
            stretches.push((place(start)?, place(end)?));
        }
        Some((id, purged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crc_lines::tests::assert_damage_is_noticed;

    const ONE: TableId = TableId(Uuid::from_u128(1));
    const TWO: TableId = TableId(Uuid::from_u128(2));

    #[test]
    fn only_stretches_that_the_log_still_has_are_kept() {
        let mut purged = Purged::default();
        assert!(!purged.add(ONE, [((1, 0), (2, 0))].into_iter(), SegmentId(2)));
        assert!(purged.add(ONE, [((1, 0), (2, 7))].into_iter(), SegmentId(2)));
        assert!(purged.add(TWO, [((2, 0), (2, 9))].into_iter(), SegmentId(2)));
        assert!(purged.add(
            ONE,
            [((2, 7), (3, 1)), ((1, 0), (2, 0))].into_iter(),
            SegmentId(2)
        ));
        assert_eq!(purged.of(ONE).collect::<Vec<_>>(), [((1, 0), (3, 1))]);
        assert!(purged.add(ONE, [((3, 5), (4, 0))].into_iter(), SegmentId(3)));
        assert_eq!(purged.of(ONE).count(), 2);
        assert_eq!(purged.of(TWO).count(), 0);
    }

    #[test]
    fn the_file_is_read_back_and_any_damage_is_noticed() {
        let mut purged = Purged::default();
        purged.add(
            ONE,
            [((1, 0), (2, 7)), ((3, 1), (4, 4711))].into_iter(),
            SegmentId(0),
        );
        purged.add(TWO, [((1, 5), (1, 6))].into_iter(), SegmentId(0));
        let id = Uuid::from_u128(3);
        let text = purged.print(id);
        assert_eq!(Purged::parse(&text), Some((id, purged)));
        assert_damage_is_noticed(&text, |text| Purged::parse(text).is_some());
    }
}
