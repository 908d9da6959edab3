//! The codes of one token map, block by block, as a source of the sort.

use super::super::BLOCK_PARTITIONS;
use super::super::block::Block;
use super::super::map::TokenMap;
use super::super::order::code_of_bytes;
use super::Relative;
use crate::Result;

/// Iterates over the codes of a map.
pub(super) struct Run<'m> {
    map: &'m TokenMap,
    /// The codes of the loaded block.
    codes: Vec<u64>,
    prefix: Vec<u8>,
    /// Mask of the bits of these codes that are not known.
    cut: u64,
    /// Index in `codes` of the next code.
    at: usize,
    next_block: u64,
}

/// How codes of a block are converted to codes behind the prefix of a chunk.
struct Change {
    /// The part of the block's prefix that is behind the prefix of the chunk.
    lead: u64,
    left: u32,
    right: u32,
}

impl<'m> Run<'m> {
    pub(super) fn new(map: &'m TokenMap) -> Result<Self> {
        let mut run = Self {
            map,
            codes: Vec::new(),
            prefix: Vec::new(),
            cut: 0,
            at: 0,
            next_block: 0,
        };
        run.load()?;
        Ok(run)
    }

    /// Loads the next block, if there is one and all codes of this one were taken.
    fn load(&mut self) -> Result<()> {
        if self.at < self.codes.len() || self.next_block >= self.map.block_count() {
            return Ok(());
        }
        self.at = 0;
        self.codes.clear();
        let (codes, prefix, cut) = (&mut self.codes, &mut self.prefix, &mut self.cut);
        let count = self.map.block(self.next_block, |block: &Block<'_>| {
            prefix.clear();
            prefix.extend_from_slice(block.prefix);
            block.each_code(|least, greatest| {
                *cut = greatest - least;
                codes.push(least);
            });
            block.count
        })?;
        if self.codes.len() != count {
            return Err(self.map.damaged(self.next_block * BLOCK_PARTITIONS as u64));
        }
        self.next_block += 1;
        Ok(())
    }

    /// Prefix and code of the next partition: a lower bound of its key. `None` at the end.
    pub(super) fn floor(&self) -> Option<Vec<u8>> {
        let code = self.codes.get(self.at)?;
        Some([&self.prefix[..], &code.to_be_bytes()].concat())
    }

    /// Takes the codes below the key `end` (`None`: all), and converts them to codes behind `prefix`, which all their keys have. The
    /// source replaces the last byte of each code. Returns a mask of the bits of these codes that are not known.
    pub(super) fn take_below(
        &mut self,
        end: Option<&[u8]>,
        prefix: &[u8],
        source: u8,
        out: &mut Vec<u64>,
    ) -> Result<u64> {
        let mut unknown = 0;
        loop {
            let limit = match end.map(|end| Relative::of(&self.prefix, end)) {
                None | Some(Relative::Above) => None,
                Some(Relative::Below) => Some(0),
                Some(Relative::Code(code)) => Some(code),
            };
            let rest = &self.codes[self.at..];
            let count = limit.map_or(rest.len(), |limit| rest.partition_point(|code| *code < limit));
            if count == 0 {
                return Ok(unknown);
            }
            let change = Change::of(&self.prefix, prefix);
            let number = u64::from(source);
            out.extend(
                rest[..count]
                    .iter()
                    .map(|code| change.code(*code) & !0xFF | number),
            );
            unknown |= change.unknown(self.cut);
            self.at += count;
            if self.at < self.codes.len() {
                return Ok(unknown);
            }
            self.load()?;
            if self.at == self.codes.len() {
                return Ok(unknown);
            }
        }
    }
}

impl Change {
    fn of(own: &[u8], prefix: &[u8]) -> Self {
        let bits = |bytes: usize| u32::try_from(bytes * 8).unwrap_or(u32::MAX);
        Self {
            lead: code_of_bytes(own.get(prefix.len()..).unwrap_or(&[])),
            left: bits(prefix.len().saturating_sub(own.len())),
            right: bits(own.len().saturating_sub(prefix.len())),
        }
    }

    #[inline]
    fn code(&self, code: u64) -> u64 {
        let left = code.checked_shl(self.left).unwrap_or(0);
        self.lead | left.checked_shr(self.right).unwrap_or(0)
    }

    /// Mask of the bits that are not known in converted codes; `cut` is that of the codes before.
    fn unknown(&self, cut: u64) -> u64 {
        let behind = match self.left {
            0 => 0,
            bits => 1_u64.checked_shl(bits).map_or(u64::MAX, |bit| bit - 1),
        };
        let cut = cut.checked_shl(self.left).unwrap_or(0) | behind;
        cut.checked_shr(self.right).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_behind_another_prefix_is_that_of_the_same_key() {
        let key = b"abcdefghijklmnop";
        let code_behind = |len: usize| code_of_bytes(&key[len..]);
        let change = Change::of(&key[..4], &key[..4]);
        assert_eq!(change.code(code_behind(4)), code_behind(4));
        assert_eq!(change.unknown(7), 7);
        // A shorter prefix: what the block has in common leads.
        let change = Change::of(&key[..4], &key[..1]);
        assert_eq!(change.code(code_behind(4)), code_behind(1));
        assert_eq!(change.unknown(0xFF_FFFF), 0);
        assert_eq!(change.unknown(0x3FF_FFFF), 3);
        // A longer one: bytes behind what is known are not.
        let change = Change::of(&key[..4], &key[..6]);
        assert_eq!(change.code(code_behind(4)), code_behind(6) & !0xFFFF);
        assert_eq!(change.unknown(0), 0xFFFF);
        let change = Change::of(b"", &key[..9]);
        assert_eq!((change.code(5), change.unknown(0)), (0, u64::MAX));
        let change = Change::of(&key[..12], b"");
        assert_eq!(
            (change.code(5), change.unknown(u64::MAX)),
            (code_of_bytes(key), 0)
        );
    }
}
