//! Builds a sorted view from token maps.
//!
//! 1. The first keys of the blocks of all maps cut the order into chunks of about 32,000 partitions.
//! 2. For each chunk, the codes of all sources are converted to codes behind one prefix, which all keys of the chunk have. Of each code,
//!    56 bits are kept; the last byte is the source.
//! 3. These numbers are sorted.
//! 4. A partition joins the group before it, unless its least code is above the greatest code that this group may have.

use std::sync::Arc;

use super::super::map::TokenMap;
use super::super::order::common_len;
use super::super::sorted_budget::SortedBudget;
use super::run::Run;
use super::{Anchor, Relative, SAME_GROUP, SOURCES_MAX, SUB_STEP, SortedView};
use crate::Result;

/// Number of blocks, counted over all maps, that make a chunk.
const BLOCKS_PER_CHUNK: usize = 32;
/// Number of selectors from one anchor to the next; `ANCHOR_STEP_OF_MANY` for many sources, so that ranks take less memory per partition.
const ANCHOR_STEP: usize = 1024;
const ANCHOR_STEP_OF_MANY: usize = 2048;
const MANY_SOURCES: usize = 64;

/// Why no view was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoView {
    /// `go_on` stopped the build.
    Stopped,
    /// The budget for views has too little memory left.
    NoRoom,
    /// There are no sources, or too many sources or partitions.
    Unfit,
}

impl SortedView {
    pub(crate) fn build(
        maps: Vec<Arc<TokenMap>>,
        budget: &Arc<SortedBudget>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<std::result::Result<Self, NoView>> {
        let partitions: u64 = maps.iter().map(|map| map.partition_count()).sum();
        let has_ranks = maps
            .iter()
            .all(|map| u32::try_from(map.partition_count()).is_ok());
        let size = usize::try_from(partitions).ok();
        let Some(size) = size.filter(|_| has_ranks && (1..=SOURCES_MAX).contains(&maps.len())) else {
            return Ok(Err(NoView::Unfit));
        };
        let Some(memory) = SortedBudget::take(budget, memory_foreseen(partitions, maps.len())) else {
            return Ok(Err(NoView::NoRoom));
        };
        let mut draft = Draft::new(size, maps.len());
        let mut runs = maps.iter().map(|map| Run::new(map)).collect::<Result<Vec<_>>>()?;
        let ends = chunk_ends(&maps)?;
        for end in ends.iter().map(|end| Some(&end[..])).chain([None]) {
            if !go_on() {
                return Ok(Err(NoView::Stopped));
            }
            draft.add_chunk(&mut runs, end, &maps)?;
        }
        Ok(Ok(Self {
            selectors: draft.selectors.into(),
            anchors: draft.anchors.into(),
            subs: draft.subs.into(),
            ranks: draft.ranks.into(),
            prefixes: draft.prefixes.into(),
            maps: maps.into(),
            _memory: memory,
        }))
    }
}

fn anchor_step(sources: usize) -> usize {
    if sources > MANY_SOURCES {
        ANCHOR_STEP_OF_MANY
    } else {
        ANCHOR_STEP
    }
}

/// Estimated memory of a view in bytes.
fn memory_foreseen(partitions: u64, sources: usize) -> u64 {
    let step = anchor_step(sources);
    let anchors = partitions.div_ceil(step as u64) + 1;
    let anchor = size_of::<Anchor>() + sources * 4 + step / SUB_STEP * 2;
    partitions + anchors * anchor as u64
}

/// Keys that cut the order into chunks.
fn chunk_ends(maps: &[Arc<TokenMap>]) -> Result<Vec<Vec<u8>>> {
    let mut heads = Vec::new();
    for map in maps {
        for number in 0..map.block_count() {
            heads.push(map.floor_of_block(number)?);
        }
    }
    heads.sort_unstable();
    let ends = heads.into_iter().skip(BLOCKS_PER_CHUNK).step_by(BLOCKS_PER_CHUNK);
    Ok(ends.collect())
}

#[derive(Default)]
struct Draft {
    selectors: Vec<u8>,
    anchors: Vec<Anchor>,
    subs: Vec<u16>,
    ranks: Vec<u32>,
    prefixes: Vec<u8>,
    step: usize,
    /// For each source, the number of partitions that were added.
    counts: Vec<u32>,
    /// The first bytes of the greatest key that a partition of the current group may have.
    group_end: Option<Vec<u8>>,
    codes: Vec<u64>,
}

impl Draft {
    fn new(size: usize, sources: usize) -> Self {
        Self {
            selectors: Vec::with_capacity(size),
            step: anchor_step(sources),
            counts: vec![0; sources],
            ..Self::default()
        }
    }

    fn add_chunk(&mut self, runs: &mut [Run<'_>], end: Option<&[u8]>, maps: &[Arc<TokenMap>]) -> Result<()> {
        let Some(least) = runs.iter().filter_map(Run::floor).min() else {
            return Ok(());
        };
        let greatest = match end {
            Some(end) => end.to_vec(),
            None => maps.iter().map(|map| map.last_place()).max().unwrap_or_default(),
        };
        if end.is_some_and(|end| matches!(Relative::of(&least, end), Relative::Below | Relative::Code(0))) {
            // The chunk is empty: blocks of several maps begin at the same key.
            return Ok(());
        }
        // Codes of hashes have no prefix.
        let common = match maps.first().is_some_and(|map| map.is_hashed()) {
            true => 0,
            false => common_len(&least, &greatest).min(usize::from(u16::MAX)),
        };
        let prefix = &least[..common];
        let mut codes = std::mem::take(&mut self.codes);
        codes.clear();
        let mut unknown = [0; SOURCES_MAX];
        for (source, run) in (0_u8..).zip(runs) {
            unknown[usize::from(source)] = run.take_below(end, prefix, source, &mut codes)?;
        }
        codes.sort_unstable();
        self.add_sorted(&codes, prefix, &unknown);
        self.codes = codes;
        Ok(())
    }

    fn add_sorted(&mut self, codes: &[u64], prefix: &[u8], unknown: &[u64]) {
        let prefix_at = u32::try_from(self.prefixes.len()).unwrap_or(u32::MAX);
        self.prefixes.extend_from_slice(prefix);
        // The greatest code of the group that the chunk before ended with: partitions up to this code join that group.
        let mut group_end = self.group_end.as_ref().and_then(|end| end_behind(prefix, end));
        for part in codes.chunks(self.step) {
            self.add_anchor(part, prefix_at, prefix.len());
            for code in part {
                #[expect(clippy::cast_possible_truncation, reason = "the last byte is the source")]
                let source = *code as u8;
                let least = *code & !0xFF;
                let greatest = least | unknown[usize::from(source)] | 0xFF;
                let is_same = group_end.is_some_and(|end| least <= end);
                group_end = Some(if is_same {
                    greatest.max(group_end.unwrap_or(0))
                } else {
                    greatest
                });
                self.counts[usize::from(source)] += 1;
                self.selectors
                    .push(if is_same { source | SAME_GROUP } else { source });
            }
        }
        if let Some(end) = group_end.filter(|_| !codes.is_empty()) {
            self.group_end = Some([prefix, &end.to_be_bytes()].concat());
        }
    }

    fn add_anchor(&mut self, codes: &[u64], prefix_at: u32, prefix_len: usize) {
        let (Some(first), Some(last)) = (codes.first(), codes.last()) else {
            return;
        };
        let base = *first & !0xFF;
        let bits = u64::BITS - (*last - base).leading_zeros();
        let shift = bits.saturating_sub(u16::BITS);
        self.anchors.push(Anchor {
            start: self.selectors.len() as u64,
            base,
            prefix_at,
            prefix_len: u16::try_from(prefix_len).unwrap_or(u16::MAX),
            shift: u8::try_from(shift).unwrap_or(u8::MAX),
            sub_at: u32::try_from(self.subs.len()).unwrap_or(u32::MAX),
        });
        let relative = |code: &u64| u16::try_from((*code - base) >> shift).unwrap_or(u16::MAX);
        self.subs.extend(codes.iter().step_by(SUB_STEP).map(relative));
        self.ranks.extend_from_slice(&self.counts);
    }
}

/// The greatest code behind `prefix` of a group whose greatest key begins with `end`. `None` if all keys with the prefix are above.
fn end_behind(prefix: &[u8], end: &[u8]) -> Option<u64> {
    let common = common_len(prefix, end);
    match (prefix.get(common), end.get(common)) {
        (None, _) => {
            let mut code = [u8::MAX; 8];
            code.iter_mut()
                .zip(&end[common..])
                .for_each(|(code, byte)| *code = *byte);
            Some(u64::from_be_bytes(code))
        }
        (Some(ours), Some(theirs)) if theirs < ours => None,
        (Some(_), _) => Some(u64::MAX),
    }
}
