//! [`Rolling`]: a hash over the outcomes of commands and what they wrote, for stretches of a log that all replicas cut alike.
//!
//! After a crash a replica passes over commands whose tables have them on disk: their outcomes cannot be known again. So digests are of
//! blocks, and a replica has none of a block that it has not executed from its first record to its last.

use ilion_cluster::BlockDigest;
use ilion_codec::md5;
use ilion_query::{Error, Executed, Outcome};

/// What a record came to, as far as it is hashed.
pub(crate) enum Noted<'a> {
    /// It is the copy of another record.
    Repeated,
    /// It is a command with this outcome, and it wrote these mutations.
    Executed(&'a Result<Executed, Error>, &'a [u8]),
    /// It is a command whose outcome is not known.
    Forgotten,
}

/// The digest of the block that is being executed.
#[derive(Clone, Debug)]
pub(crate) struct Rolling {
    /// Number of offsets of a block. A block begins at a multiple of it.
    length: u64,
    block: u64,
    digest: [u8; 16],
    /// True if all commands of the block so far are in it.
    is_whole: bool,
    untold: Option<BlockDigest>,
}

impl Rolling {
    /// Begins at this offset. A block that begins earlier will not be whole. Requires: `length` is not 0.
    pub(crate) fn from(offset: u64, length: u64) -> Self {
        Self {
            length,
            block: offset / length,
            digest: [0; 16],
            is_whole: offset.is_multiple_of(length),
            untold: None,
        }
    }

    /// Goes on to a record. Ends the block before, if the record is in a later one.
    pub(crate) fn go_to(&mut self, offset: u64) {
        let block = offset / self.length;
        if block == self.block {
            return;
        }
        if self.is_whole {
            let ended = BlockDigest {
                block: self.block,
                digest: self.digest,
            };
            self.untold = Some(self.untold.map_or(ended, |untold| to_tell(untold, ended)));
        }
        *self = Self {
            block,
            digest: [0; 16],
            is_whole: true,
            ..*self
        };
    }

    /// Adds what the record at an offset came to. Errors count as one outcome: their words may differ between versions of Ilion.
    pub(crate) fn add(&mut self, offset: u64, noted: Noted<'_>) {
        let mut bytes = self.digest.to_vec();
        bytes.extend(offset.to_be_bytes());
        match noted {
            Noted::Forgotten => {
                self.is_whole = false;
                return;
            }
            Noted::Repeated => bytes.push(3),
            Noted::Executed(Err(_), _) => bytes.push(2),
            Noted::Executed(Ok(Executed { outcome, .. }), written) => {
                match outcome {
                    Outcome::Rows(rows) => {
                        bytes.push(1);
                        bytes.extend(rows.row_count.to_be_bytes());
                        bytes.extend(rows.cells.clone().into_vec());
                    }
                    _ => bytes.push(0),
                }
                bytes.extend(written);
            }
        }
        self.digest = md5(&bytes);
    }

    /// The digest of one of the blocks that have ended since the last call.
    pub(crate) fn take(&mut self) -> Option<BlockDigest> {
        self.untold.take()
    }
}

/// Which of two blocks a replica tells if both have ended since it told the last one: the one whose number can be halved more often.
/// Replicas that tell at different times choose mostly the same blocks by this rule, at any rate of records.
fn to_tell(before: BlockDigest, after: BlockDigest) -> BlockDigest {
    match before.block.trailing_zeros() > after.block.trailing_zeros() {
        true => before,
        false => after,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ops::Range;

    use super::*;

    const LENGTH: u64 = 1024;

    fn outcome(is_applied: bool) -> Result<Executed, Error> {
        match is_applied {
            true => Ok(Executed {
                outcome: Outcome::Void,
                awaited: None,
                warnings: Vec::new(),
                shape: None,
            }),
            false => Err(Error::Invalid(String::new())),
        }
    }

    fn run(offsets: Range<u64>, is_applied: bool) -> Option<BlockDigest> {
        let mut rolling = Rolling::from(offsets.start, LENGTH);
        for offset in offsets {
            rolling.go_to(offset);
            rolling.add(offset, Noted::Executed(&outcome(is_applied), b"written"));
        }
        rolling.take()
    }

    #[test]
    fn blocks_are_compared_only_if_both_replicas_executed_them_whole() {
        let whole = run(0..LENGTH + 1, true).unwrap();
        assert_eq!(whole.block, 0);
        assert_ne!(run(0..LENGTH + 1, false).unwrap().digest, whole.digest);
        // It began in the middle.
        assert_eq!(run(1..LENGTH + 1, true), None);
        assert_eq!(run(1..2 * LENGTH + 1, true).unwrap().block, 1);
        let mut rolling = Rolling::from(0, LENGTH);
        rolling.add(0, Noted::Forgotten);
        rolling.go_to(LENGTH);
        assert_eq!(rolling.take(), None);
    }

    #[test]
    fn a_record_that_counts_twice_differs_from_one_that_is_repeated() {
        let digest = |repeated: Noted<'_>| {
            let mut rolling = Rolling::from(0, LENGTH);
            rolling.add(0, Noted::Executed(&outcome(true), b"1"));
            rolling.add(1, repeated);
            rolling.go_to(LENGTH);
            rolling.take().unwrap().digest
        };
        let twice = digest(Noted::Executed(&outcome(true), b"2"));
        assert_ne!(twice, digest(Noted::Repeated));
        // A counter with another value.
        assert_ne!(twice, digest(Noted::Executed(&outcome(true), b"3")));
    }

    #[test]
    fn replicas_that_tell_at_different_times_tell_the_same_blocks() {
        let told = |first: u64, every: u64| -> BTreeSet<u64> {
            let mut rolling = Rolling::from(0, 1);
            let mut told = BTreeSet::new();
            for offset in 0..4000 {
                rolling.go_to(offset);
                if offset >= first && (offset - first).is_multiple_of(every) {
                    told.extend(rolling.take().map(|told| told.block));
                }
            }
            told
        };
        let (one, other) = (told(0, 100), told(37, 110));
        let both = one.intersection(&other).count();
        assert!(both > 25 && one.len() <= 40, "{both} of {}", one.len());
    }
}
