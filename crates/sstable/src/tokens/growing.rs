//! The bits of an SSTable's tokens, made piece by piece by the reads that would have used them: so none waits for all of them, and an
//! SSTable that is hardly asked has none.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::bits::TokenBits;
use super::bits_budget::TokenBitsBudget;
use super::map::TokenMap;
use crate::Result;

/// Reads that ask the map before a bit is made; and as many again when there was no memory for them.
const ASKED_BEFORE: u32 = 32;
/// Blocks of the map that one read goes through: 4096 partitions.
const BLOCKS_AT_ONCE: u64 = 4;

/// The bits, whole, in part or not begun.
#[derive(Default)]
pub(crate) struct GrowingBits {
    /// Nothing in it: such tokens have none.
    made: OnceLock<Option<TokenBits>>,
    asked: AtomicU32,
    growth: Mutex<Option<Growth>>,
}

struct Growth {
    bits: TokenBits,
    next_block: u64,
}

impl GrowingBits {
    /// Nothing while they are not whole; in that, `None` if there never will be any. They stay right when the map is dropped.
    #[inline]
    pub(crate) fn whole(&self) -> Option<Option<&TokenBits>> {
        self.made.get().map(Option::as_ref)
    }

    /// True after some reads: from then on [`Self::grow`] is to be called.
    pub(crate) fn is_wanted(&self) -> bool {
        let asked = self.asked.load(Relaxed);
        if asked < ASKED_BEFORE {
            self.asked.store(asked + 1, Relaxed);
        }
        asked >= ASKED_BEFORE
    }

    /// Adds some of the map's partitions, unless another read is at it.
    ///
    /// # Errors
    /// The map is damaged or cannot be read.
    pub(crate) fn grow(&self, map: &TokenMap, budget: &Arc<TokenBitsBudget>) -> Result<()> {
        let Some(mut growth) = self.growth.try_lock() else {
            return Ok(());
        };
        let mut grown = match growth.take() {
            Some(grown) => grown,
            None if self.made.get().is_some() => return Ok(()),
            None => match self.begin(map, budget) {
                Some(begun) => begun,
                None => return Ok(()),
            },
        };
        let upto = (grown.next_block + BLOCKS_AT_ONCE).min(map.block_count());
        let is_useful = map.set_bits(grown.next_block..upto, &mut grown.bits)?;
        grown.next_block = upto;
        // Nobody else sets it while this one has the lock.
        let _ = match (is_useful, upto < map.block_count()) {
            (false, _) => self.made.set(None),
            (true, false) => self.made.set(Some(grown.bits)),
            (true, true) => {
                *growth = Some(grown);
                Ok(())
            }
        };
        Ok(())
    }

    fn begin(&self, map: &TokenMap, budget: &Arc<TokenBitsBudget>) -> Option<Growth> {
        let Some(shape) = map.bits_shape() else {
            let _ = self.made.set(None);
            return None;
        };
        let Some(memory) = TokenBitsBudget::take(budget, shape.memory_bytes()) else {
            self.asked.store(0, Relaxed);
            return None;
        };
        Some(Growth {
            bits: TokenBits::none_set(shape, memory)?,
            next_block: 0,
        })
    }

    /// Memory that they take, once they are whole.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.whole().flatten().map_or(0, TokenBits::memory_bytes)
    }
}
