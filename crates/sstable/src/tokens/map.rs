//! Lookups in a token map.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use ilion_env::Env;
use ilion_rows::{DecoratedKey, KeyBound};
use ilion_types::{Partitioner, Token};

use super::BLOCK_PARTITIONS;
use super::block::Block;
use super::order::{ComparableToken, Order, code_of_bytes, trimmed};
use super::tail::{END_LEN, Tail};
use crate::{Component, Descriptor, Error, Result};
use ilion_pages::{PageBytes, Pages, paged_length, u64_at};

/// Maximum number of partitions that are compared for one key. More partitions have equal codes only if a client chose such keys.
const CANDIDATES_MAX: u64 = 8;
/// Longer blocks are refused: a block has a prefix, two sequences and at most one row index per partition.
const BLOCK_LEN_MAX: u64 = 4 << 20;

/// The token map of one SSTable.
pub(crate) struct TokenMap {
    pages: Pages,
    order: Order,
    tail: Tail,
    blocks: u64,
    pub(crate) first: DecoratedKey,
    pub(crate) last: DecoratedKey,
}

/// Where a key may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Candidates {
    /// The partitions (by number) that may have the key; usually one or none.
    These(Range<u64>),
    /// Too many partitions may have the key: the index is faster.
    TooMany,
}

/// What the map stores about a partition, beside its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapped {
    /// Position in uncompressed Data.db.
    pub(crate) position: u64,
    /// Position of the partition's entry in Index.db or Rows.db, if it has a row index.
    pub(crate) row_index: Option<u64>,
}

impl TokenMap {
    /// Opens Tokens.db; `None` if it does not exist. Reads only its tail.
    ///
    /// # Errors
    /// Corrupt if its tail is damaged, or if it belongs to another SSTable than the one with this fingerprint and this size of
    /// Data.db on disk.
    pub(crate) fn open(
        env: &dyn Env,
        descriptor: &Descriptor,
        partitioner: Partitioner,
        fingerprint: u32,
        stored_length: u64,
    ) -> Result<Option<Self>> {
        let path = descriptor.path(&Component::Tokens);
        let file = match env.open_read(&path) {
            Err(error) if error.is_not_found() => return Ok(None),
            file => file?,
        };
        let expected = "the end of a token map of version 1";
        let (size, mut end) = (file.size_bytes(), [0; END_LEN]);
        let Some(tail_end) = size.checked_sub(END_LEN as u64) else {
            return Err(Error::corrupt(&path, 0, expected));
        };
        file.read_exact_at(tail_end, &mut end)?;
        let tail_at = Tail::length_of(&end).and_then(|len| Some((tail_end.checked_sub(len as u64)?, len)));
        let Some((tail_at, tail_len)) = tail_at else {
            return Err(Error::corrupt(&path, tail_end, expected));
        };
        let mut bytes = vec![0; tail_len];
        file.read_exact_at(tail_at, &mut bytes)?;
        let tail = Tail::decode(&bytes, &end, partitioner);
        let Some(tail) = tail.filter(|tail| tail.has_room(tail_at, Order::of(partitioner))) else {
            return Err(Error::corrupt(&path, tail_at, expected));
        };
        if tail.fingerprint != fingerprint || tail.stored_length != stored_length {
            let expected = "a token map of this SSTable, not of another that had its name";
            return Err(Error::corrupt(&path, tail_at, expected));
        }
        let pages = Pages::of(file, tail.body_length);
        let (Some(pages), Some((first, last))) = (pages, tail.ends(partitioner)) else {
            return Err(Error::corrupt(&path, tail_at, expected));
        };
        Ok(Some(Self {
            pages,
            order: Order::of(partitioner),
            blocks: blocks_for(tail.partition_count),
            tail,
            first,
            last,
        }))
    }

    /// Number of partitions of the SSTable.
    pub(crate) fn partition_count(&self) -> u64 {
        self.tail.partition_count
    }

    /// Uncompressed size of Data.db.
    pub(crate) fn data_length(&self) -> u64 {
        self.tail.data_length
    }

    /// Size of the file.
    pub(crate) fn file_length(&self) -> u64 {
        self.pages.file_length()
    }

    /// Memory in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.pages.memory_bytes()
    }

    /// The partitions that may have a token.
    ///
    /// # Errors
    /// The map is damaged or cannot be read. The same is true for the methods below.
    #[inline]
    pub(crate) fn candidates(&self, token: &Token) -> Result<Candidates> {
        let found = self.find(ComparableToken::of(token))?;
        if found.end - found.start > CANDIDATES_MAX {
            return Ok(Candidates::TooMany);
        }
        Ok(Candidates::These(found))
    }

    /// Number of partitions below a bound. Partitions that may have the token of the bound are not counted.
    pub(crate) fn rank(&self, bound: &KeyBound) -> Result<u64> {
        match bound.token() {
            Some(token) => Ok(self.find(ComparableToken::of(token))?.start),
            None if matches!(bound, KeyBound::End) => Ok(self.tail.partition_count),
            None => Ok(0),
        }
    }

    /// The result of [`Self::rank`], and a lower bound of the token of the next partition; `None` if there is no next partition.
    pub(crate) fn next_above(&self, bound: &KeyBound) -> Result<(u64, Option<Token>)> {
        let (rank, code) = match bound.token().map(ComparableToken::of) {
            Some(ComparableToken::Code(code)) => {
                // Blocks behind this one have no partition below the code: the first of each is not below it.
                let number = self.last_block_below(ComparableToken::Code(code))?;
                let (at, next) = self.block(number, |block| block.next_code(code))?;
                (number * BLOCK_PARTITIONS as u64 + at as u64, next)
            }
            _ => (self.rank(bound)?, None),
        };
        let floor = match code {
            Some(code) => Some(self.order.floor_of_code(code)),
            None if rank < self.tail.partition_count => Some(self.token_floor(rank)?),
            None => None,
        };
        Ok((rank, floor))
    }

    /// Compares a token with that of partition number `index`; `Equal` means that they may be equal.
    #[inline]
    pub(super) fn relation(&self, place: ComparableToken<'_>, index: u64) -> Result<Ordering> {
        let relation = self.block_of(index, |block, at| block.relation(place, at))?;
        relation.ok_or_else(|| self.damaged(index))
    }

    /// A key at or below the first key of the block, and above all keys of the block before.
    pub(super) fn floor_of_block(&self, number: u64) -> Result<Vec<u8>> {
        match self.order {
            Order::Murmur3 | Order::Random => Ok(self.head(number)?.to_be_bytes().to_vec()),
            Order::Bytes => Ok(self.separator(number)?.to_vec()),
        }
    }

    /// The place of the last partition, as bytes that compare in the same order.
    pub(super) fn last_place(&self) -> Vec<u8> {
        match ComparableToken::of(&self.last.token) {
            ComparableToken::Code(code) => code.to_be_bytes().to_vec(),
            ComparableToken::Bytes(bytes) => bytes.to_vec(),
        }
    }

    /// True if partitions are ordered by a hash, so that their places are codes of eight bytes.
    pub(super) fn is_hashed(&self) -> bool {
        self.order != Order::Bytes
    }

    pub(super) fn block_count(&self) -> u64 {
        self.blocks
    }

    /// Position and row index of partition number `index`.
    #[inline]
    pub(crate) fn partition(&self, index: u64) -> Result<Mapped> {
        let mapped = self.block_of(index, |block, at| {
            let (position, row_index) = block.position(at)?;
            (position < self.tail.data_length).then_some(Mapped { position, row_index })
        })?;
        mapped.ok_or_else(|| self.damaged(index))
    }

    /// A lower bound of the token of partition number `index`: the bits that the map has, then zeros.
    pub(crate) fn token_floor(&self, index: u64) -> Result<Token> {
        let floor = self.block_of(index, |block, at| {
            let code = block.code(at)?;
            if self.order != Order::Bytes {
                return Some(self.order.floor_of_code(code));
            }
            let mut key = block.prefix.to_vec();
            key.extend_from_slice(&code.to_be_bytes());
            let len = block.prefix.len() + trimmed(&code.to_be_bytes()).len();
            Some(Token::Bytes(Arc::from(&key[..len])))
        })?;
        floor.ok_or_else(|| self.damaged(index))
    }

    /// The partitions that may have the token; stops at more than [`CANDIDATES_MAX`]. If there are none: an empty range, where they
    /// would be.
    #[inline]
    fn find(&self, place: ComparableToken<'_>) -> Result<Range<u64>> {
        let mut number = self.last_block_below(place)?;
        let mut found: Option<Range<u64>> = None;
        loop {
            let (spot, count) = self.block(number, |block| (block.find(place), block.count))?;
            let first = number * BLOCK_PARTITIONS as u64;
            let here = first + spot.start as u64..first + spot.end as u64;
            let all = match found {
                // Continues the candidates at the end of the block before.
                Some(before) if spot.start == 0 => before.start..here.end,
                Some(before) => before,
                None => here,
            };
            let may_go_on = spot.end == count && number + 1 < self.blocks;
            if !may_go_on || all.end - all.start > CANDIDATES_MAX {
                return Ok(all);
            }
            found = (!all.is_empty()).then_some(all);
            number += 1;
        }
    }

    #[inline]
    fn block_of<T>(&self, index: u64, ask: impl FnOnce(&Block<'_>, usize) -> T) -> Result<T> {
        let per_block = BLOCK_PARTITIONS as u64;
        let at = usize::try_from(index % per_block).unwrap_or(usize::MAX);
        self.block(index / per_block, |block| ask(block, at))
    }

    #[inline]
    pub(super) fn block<T>(&self, number: u64, ask: impl FnOnce(&Block<'_>) -> T) -> Result<T> {
        let (start, end) = self.block_bounds(number)?;
        let len = end.checked_sub(start).filter(|len| *len <= BLOCK_LEN_MAX);
        let len = len.and_then(|len| usize::try_from(len).ok());
        let before = number * BLOCK_PARTITIONS as u64;
        let count = self
            .tail
            .partition_count
            .saturating_sub(before)
            .min(BLOCK_PARTITIONS as u64);
        let answer = match len {
            Some(len) if count > 0 => {
                let bytes = self.pages.bytes(start, len)?;
                Block::decode(&bytes, count as usize).map(|block| ask(&block))
            }
            _ => None,
        };
        answer.ok_or_else(|| self.pages.corrupt(start, "a block of partitions").into())
    }

    pub(super) fn damaged(&self, index: u64) -> Error {
        let at = self.block_at(index / BLOCK_PARTITIONS as u64).unwrap_or(0);
        self.pages
            .corrupt(at, "a block with a place for each partition")
            .into()
    }

    #[inline]
    fn head(&self, number: u64) -> Result<u64> {
        Ok(self.pages.u64_at(self.tail.directory_at + number * 8)?)
    }

    #[inline]
    fn block_at(&self, number: u64) -> Result<u64> {
        let at = self.tail.directory_at + (self.blocks + number) * 8;
        Ok(self.pages.u64_at(at)?)
    }

    /// Start and end of a block.
    #[inline]
    fn block_bounds(&self, number: u64) -> Result<(u64, u64)> {
        if number + 1 >= self.blocks {
            return Ok((self.block_at(number)?, self.tail.directory_at));
        }
        let bounds = self
            .pages
            .bytes(self.tail.directory_at + (self.blocks + number) * 8, 16)?;
        Ok((u64_at(&bounds, 0), u64_at(&bounds, 8)))
    }

    /// The separator of a block: above all keys of the block before, and not above the block's first key.
    fn separator(&self, number: u64) -> Result<PageBytes<'_>> {
        let ends_at = self.tail.directory_at + self.blocks * 16;
        let end_of = |number: u64| self.pages.u64_at(ends_at + number * 8);
        let start = match number.checked_sub(1) {
            Some(before) => end_of(before)?,
            None => 0,
        };
        let len = end_of(number)?
            .checked_sub(start)
            .filter(|len| *len <= u64::from(u16::MAX));
        let Some(len) = len.and_then(|len| usize::try_from(len).ok()) else {
            return Err(self
                .pages
                .corrupt(ends_at + number * 8, "the end of a separator")
                .into());
        };
        let at = (ends_at + self.blocks * 8).saturating_add(start);
        Ok(self.pages.bytes(at, len)?)
    }

    /// The last block whose first partition may be below the token; the first block if no block has one.
    #[inline]
    fn last_block_below(&self, place: ComparableToken<'_>) -> Result<u64> {
        let below = match place {
            ComparableToken::Code(code) => {
                let (low, high) = self.window(code)?;
                partition_point(low, high, |number| Ok(self.head(number)? < code))?
            }
            ComparableToken::Bytes(key) => {
                let code = code_of_bytes(key);
                let low = partition_point(0, self.blocks, |number| Ok(self.head(number)? < code))?;
                let high = partition_point(low, self.blocks, |number| Ok(self.head(number)? <= code))?;
                partition_point(low, high, |number| Ok(*self.separator(number)? < *key))?
            }
        };
        Ok(below.saturating_sub(1))
    }

    /// A range of blocks to search for a code. Codes of hashes are spread evenly, so these are the blocks around the expected one. If
    /// the code is not among them, the range is extended to the first or the last block.
    #[inline]
    fn window(&self, code: u64) -> Result<(u64, u64)> {
        let last = self.blocks - 1;
        let (first_head, last_head) = (self.head(0)?, self.head(last)?);
        if code <= first_head || code > last_head {
            return Ok(if code <= first_head {
                (0, 0)
            } else {
                (last, self.blocks)
            });
        }
        let share = u128::from(code - first_head) * u128::from(last) / u128::from(last_head - first_head);
        let guess = u64::try_from(share).unwrap_or(last);
        let reach = 3 + self.blocks.isqrt() / 8;
        let (low, high) = (guess.saturating_sub(reach), (guess + reach).min(last));
        let low = if self.head(low)? < code { low } else { 0 };
        let high = if self.head(high)? < code {
            self.blocks
        } else {
            high
        };
        Ok((low, high))
    }
}

impl Tail {
    /// True if the numbers of the tail fit a file whose tail starts at `tail_at`.
    fn has_room(&self, tail_at: u64, order: Order) -> bool {
        let blocks = blocks_for(self.partition_count);
        let columns = if order == Order::Bytes { 3 } else { 2 };
        let directory_end = blocks
            .checked_mul(columns * 8)
            .and_then(|len| len.checked_add(self.directory_at));
        self.partition_count > 0
            && paged_length(self.body_length) == Some(tail_at)
            && directory_end.is_some_and(|end| end <= self.body_length)
    }
}

fn blocks_for(partition_count: u64) -> u64 {
    partition_count.div_ceil(BLOCK_PARTITIONS as u64)
}

/// The first number from `low` to `high` for which `is_below` is false; `high` if it is true for all (binary search).
#[inline]
fn partition_point(mut low: u64, mut high: u64, is_below: impl Fn(u64) -> Result<bool>) -> Result<u64> {
    while low < high {
        let middle = low + (high - low) / 2;
        if is_below(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

impl std::fmt::Debug for TokenMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenMap")
            .field("partitions", &self.tail.partition_count)
            .finish_non_exhaustive()
    }
}
