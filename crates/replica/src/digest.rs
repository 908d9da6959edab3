//! [`BlockDigest`]: a hash over the outcomes of commands, for stretches of a log that all replicas cut alike.
//!
//! After a crash a replica passes over commands whose tables have them on disk: their outcomes cannot be known again. So digests are of
//! blocks, and a replica has none of a block that it has not executed from its first record to its last.

use ilion_codec::md5;
use ilion_query::{Error, Executed, Outcome};

/// Number of offsets of a block. A block begins at a multiple of it.
pub(crate) const BLOCK: u64 = 1024;

/// The digest of a whole block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockDigest {
    /// The block: its first offset divided by 1024.
    pub block: u64,
    /// Equal on all replicas.
    pub digest: [u8; 16],
}

/// The digest of the block that is being executed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rolling {
    block: u64,
    digest: [u8; 16],
    /// True if all commands of the block so far are in it.
    is_whole: bool,
    last: Option<BlockDigest>,
}

impl Rolling {
    /// Begins at this offset. A block that begins earlier will not be whole.
    pub(crate) fn from(offset: u64) -> Self {
        Self {
            block: offset / BLOCK,
            digest: [0; 16],
            is_whole: offset.is_multiple_of(BLOCK),
            last: None,
        }
    }

    /// Goes on to a record. Ends the block before, if the record is in a later one.
    pub(crate) fn go_to(&mut self, offset: u64) {
        let block = offset / BLOCK;
        if block == self.block {
            return;
        }
        self.last = self.is_whole.then_some(BlockDigest {
            block: self.block,
            digest: self.digest,
        });
        *self = Self {
            block,
            digest: [0; 16],
            is_whole: true,
            last: self.last,
        };
    }

    /// Adds the outcome of the command at an offset. `None`: it is not known.
    pub(crate) fn add(&mut self, offset: u64, outcome: Option<&Result<Executed, Error>>) {
        let Some(outcome) = outcome else {
            self.is_whole = false;
            return;
        };
        let mut bytes = self.digest.to_vec();
        bytes.extend(offset.to_be_bytes());
        match outcome {
            Ok(Executed { outcome, .. }) => match outcome {
                Outcome::Rows(rows) => {
                    bytes.push(1);
                    bytes.extend(rows.row_count.to_be_bytes());
                    bytes.extend(rows.cells.clone().into_vec());
                }
                _ => bytes.push(0),
            },
            Err(error) => {
                bytes.push(2);
                bytes.extend(error.to_string().into_bytes());
            }
        }
        self.digest = md5(&bytes);
    }

    /// The last whole block, if the block before this one was whole.
    pub(crate) fn last(&self) -> Option<BlockDigest> {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(error: &str) -> Result<Executed, Error> {
        Err(Error::Invalid(error.to_owned()))
    }

    #[test]
    fn blocks_are_compared_only_if_both_replicas_executed_them_whole() {
        let run = |offsets: std::ops::Range<u64>, word: &str| {
            let mut rolling = Rolling::from(offsets.start);
            for offset in offsets {
                rolling.go_to(offset);
                rolling.add(offset, Some(&outcome(word)));
            }
            rolling.last()
        };
        let whole = run(0..BLOCK + 1, "x").unwrap();
        assert_eq!(whole.block, 0);
        assert_ne!(run(0..BLOCK + 1, "y").unwrap().digest, whole.digest);
        // It began in the middle.
        assert_eq!(run(1..BLOCK + 1, "x"), None);
        assert_eq!(run(1..2 * BLOCK + 1, "x").unwrap().block, 1);
        let mut rolling = Rolling::from(0);
        rolling.add(0, None);
        rolling.go_to(BLOCK);
        assert_eq!(rolling.last(), None);
    }
}
