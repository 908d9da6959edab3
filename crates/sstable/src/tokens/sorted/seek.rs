//! Lookups in a sorted view.
//!
//! The anchors narrow a lookup down to about a thousand selectors, the sub-anchors to eight. For these, the token maps of their SSTables
//! are compared.

use std::cmp::Ordering;
use std::ops::Range;

use ilion_rows::KeyBound;
use ilion_types::Token;
use smallvec::SmallVec;

use super::super::order::ComparableToken;
use super::{Relative, SAME_GROUP, SUB_STEP, SortedView, index};
use crate::Result;

/// The start of a group in a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Index of the group's first selector; at the end of the view, the number of selectors.
    at: usize,
    /// The anchor whose stretch contains the selector.
    anchor: usize,
}

/// Partitions of one source: the number of the source, and the numbers of the partitions.
pub type Candidate = (usize, Range<u64>);

impl SortedView {
    /// The first group that may have a partition above the bound. The group may also have partitions below.
    ///
    /// # Errors
    /// A token map is damaged or cannot be read. The same is true for the methods below.
    pub fn seek(&self, bound: &KeyBound) -> Result<Spot> {
        match bound.token() {
            Some(token) => self.locate(&mut Probe::new(self, ComparableToken::of(token))),
            None if matches!(bound, KeyBound::End) => Ok(self.end()),
            None => Ok(Spot { at: 0, anchor: 0 }),
        }
    }

    /// The partitions that may have the token, by source.
    pub fn candidates(&self, token: &Token) -> Result<SmallVec<[Candidate; 2]>> {
        let mut probe = Probe::new(self, ComparableToken::of(token));
        let spot = self.locate(&mut probe)?;
        let mut found: SmallVec<[Candidate; 2]> = SmallVec::new();
        for at in spot.at..self.group_end(spot) {
            if !probe.relation(spot.anchor, at)?.is_eq() {
                continue;
            }
            let (source, rank) = self.partition(spot.anchor, at);
            match found.iter_mut().find(|(other, _)| *other == source) {
                Some((_, ranks)) => ranks.end = rank + 1,
                None => found.push((source, rank..rank + 1)),
            }
        }
        Ok(found)
    }

    /// The end, behind all groups.
    pub fn end(&self) -> Spot {
        self.spot(self.selectors.len(), self.anchors.len())
    }

    /// True if no group is left.
    pub fn is_end(&self, spot: Spot) -> bool {
        spot.at >= self.selectors.len()
    }

    /// The source of each partition of the group; a source may occur several times.
    pub fn sources(&self, spot: Spot) -> impl Iterator<Item = usize> + '_ {
        let group = &self.selectors[spot.at..self.group_end(spot)];
        group.iter().map(|selector| usize::from(selector & !SAME_GROUP))
    }

    /// The source of the group's only partition; `None` if there are several or no group is left.
    #[inline]
    pub fn only_source(&self, spot: Spot) -> Option<usize> {
        let selector = self.selectors.get(spot.at)?;
        let is_alone = self
            .selectors
            .get(spot.at + 1)
            .is_none_or(|next| next & SAME_GROUP == 0);
        is_alone.then(|| usize::from(selector & !SAME_GROUP))
    }

    /// The source of the group's only partition, and the number of such groups of this source from here on, at most `most`. `None` if the
    /// group has several partitions, or no group is left.
    #[inline]
    pub fn stretch(&self, spot: Spot, most: usize) -> Option<(usize, usize)> {
        let rest = self.selectors.get(spot.at..)?;
        let first = *rest.first()?;
        let same = rest.iter().take(most).take_while(|selector| **selector == first);
        let count = same.count();
        // The last partition counted is not alone if the next one is of its group.
        let is_shared = rest.get(count).is_some_and(|next| next & SAME_GROUP != 0);
        let count = count - usize::from(is_shared);
        (first & SAME_GROUP == 0 && count > 0).then_some((usize::from(first), count))
    }

    /// The sources of the next `most` partitions, in order, whether these are alone in their group or not.
    pub fn sources_ahead(&self, spot: Spot, most: usize) -> impl Iterator<Item = usize> + '_ {
        let rest = self.selectors.get(spot.at..).unwrap_or(&[]);
        let ahead = rest.iter().take(most);
        ahead.map(|selector| usize::from(selector & !SAME_GROUP))
    }

    /// Skips `count` groups. Requires: each has one partition.
    #[inline]
    pub fn skip(&self, spot: Spot, count: usize) -> Spot {
        self.spot(spot.at + count, spot.anchor)
    }

    /// The next group.
    #[inline]
    pub fn next(&self, spot: Spot) -> Spot {
        self.spot(self.group_end(spot), spot.anchor)
    }

    /// Number of partitions of a source before the group.
    pub fn rank(&self, spot: Spot, source: usize) -> u64 {
        self.rank_at(spot.anchor, spot.at, source)
    }

    /// A lower bound of the tokens of this group and all that follow; `None` if no group is left.
    pub fn floor(&self, spot: Spot) -> Result<Option<Token>> {
        let mut floor: Option<Token> = None;
        for at in spot.at..self.group_end(spot) {
            let (source, rank) = self.partition(spot.anchor, at);
            let token = self.maps[source].token_floor(rank)?;
            floor = Some(match floor {
                Some(floor) if floor < token => floor,
                _ => token,
            });
        }
        Ok(floor)
    }

    #[inline]
    fn group_end(&self, spot: Spot) -> usize {
        let rest = self.selectors.get(spot.at + 1..).unwrap_or(&[]);
        let same = rest
            .iter()
            .take_while(|selector| **selector & SAME_GROUP != 0)
            .count();
        (spot.at + 1 + same).min(self.selectors.len())
    }

    /// The spot of selector `at`. The search for its anchor starts at `anchor`, which should be near.
    #[inline]
    fn spot(&self, at: usize, mut anchor: usize) -> Spot {
        anchor = anchor.min(self.anchors.len() - 1);
        while at < index(self.anchors[anchor].start) {
            anchor -= 1;
        }
        while at >= self.end_of(anchor) && anchor + 1 < self.anchors.len() {
            anchor += 1;
        }
        Spot { at, anchor }
    }

    /// The source of selector `at`, and the partition's number in the source. Requires: the selector is not before the anchor.
    #[inline]
    fn partition(&self, anchor: usize, at: usize) -> (usize, u64) {
        let source = usize::from(self.selectors[at] & !SAME_GROUP);
        (source, self.rank_at(anchor, at, source))
    }

    /// Number of partitions of a source before selector `at`, counted from the nearer end of the anchor's stretch. The selector may be
    /// behind the stretch, since a group may end there.
    #[inline]
    fn rank_at(&self, anchor: usize, at: usize, source: usize) -> u64 {
        let rank_of = |anchor: usize| self.ranks.get(anchor * self.maps.len() + source).copied();
        let (start, end) = (index(self.anchors[anchor].start), self.end_of(anchor));
        match rank_of(anchor + 1) {
            Some(after) if end.checked_sub(at).is_some_and(|left| left < at - start) => {
                u64::from(after) - count(&self.selectors[at..end], source)
            }
            _ => u64::from(rank_of(anchor).unwrap_or(0)) + count(&self.selectors[start..at], source),
        }
    }

    /// The first group with a partition that may be at or above the place.
    fn locate(&self, probe: &mut Probe<'_>) -> Result<Spot> {
        let anchor = match probe.place {
            ComparableToken::Code(code) => self.anchors.partition_point(|anchor| code >= anchor.base),
            ComparableToken::Bytes(key) => {
                self.anchors
                    .partition_point(|anchor| match Relative::of(self.prefix(anchor), key) {
                        Relative::Below => false,
                        Relative::Code(code) => code >= anchor.base,
                        Relative::Above => true,
                    })
            }
        };
        let anchor = anchor.saturating_sub(1);
        let Some(last) = self.last_not_above(anchor, probe)?.checked_sub(1) else {
            return Ok(Spot { at: 0, anchor: 0 });
        };
        let mut start = last;
        while start > 0 && self.selectors[start] & SAME_GROUP != 0 {
            start -= 1;
        }
        let spot = self.spot(start, anchor);
        for at in start..self.group_end(spot) {
            if probe.relation(spot.anchor, at)?.is_le() {
                return Ok(spot);
            }
        }
        Ok(self.next(spot))
    }

    /// Index of the first selector in the anchor's stretch from which on all partitions are above the place; the end of the stretch if
    /// there is none. If that is inside a group, it may be any selector of the group.
    fn last_not_above(&self, anchor: usize, probe: &mut Probe<'_>) -> Result<usize> {
        let own = &self.anchors[anchor];
        let (start, end) = (index(own.start), self.end_of(anchor));
        let code = match probe.place {
            ComparableToken::Code(code) => code,
            ComparableToken::Bytes(key) => match Relative::of(self.prefix(own), key) {
                Relative::Below => return Ok(start),
                Relative::Above => return Ok(end),
                Relative::Code(code) => code,
            },
        };
        let Some(above_base) = code.checked_sub(own.base) else {
            return Ok(start);
        };
        let relative = above_base >> own.shift;
        let first_sub = own.sub_at as usize;
        let subs = &self.subs[first_sub..first_sub + (end - start).div_ceil(SUB_STEP)];
        let below = subs.partition_point(|sub| u64::from(*sub) < relative);
        let upto = subs[below..]
            .iter()
            .take_while(|sub| u64::from(**sub) == relative)
            .count()
            + below;
        let mut low = start + below.checked_sub(1).map_or(0, |last| last * SUB_STEP + 1);
        let mut high = (start + upto * SUB_STEP).min(end);
        while low < high {
            let middle = low + (high - low) / 2;
            if probe.relation(anchor, middle)?.is_ge() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}

/// A lookup of one place. It compares the place with each partition at most once.
struct Probe<'p> {
    view: &'p SortedView,
    place: ComparableToken<'p>,
    /// The selectors whose partitions were compared, with the results.
    compared: SmallVec<[(usize, Ordering); 8]>,
}

impl<'p> Probe<'p> {
    fn new(view: &'p SortedView, place: ComparableToken<'p>) -> Self {
        Self {
            view,
            place,
            compared: SmallVec::new(),
        }
    }

    /// The order of the place relative to a partition, see [`TokenMap::relation`](super::super::map::TokenMap::relation).
    fn relation(&mut self, anchor: usize, at: usize) -> Result<Ordering> {
        if let Some((_, known)) = self.compared.iter().find(|(other, _)| *other == at) {
            return Ok(*known);
        }
        let (source, rank) = self.view.partition(anchor, at);
        let relation = self.view.maps[source].relation(self.place, rank)?;
        self.compared.push((at, relation));
        Ok(relation)
    }
}

/// Number of selectors that name a source. Compares eight at once, in the bytes of a word.
#[inline]
fn count(selectors: &[u8], source: usize) -> u64 {
    const LOW_BITS: u64 = u64::from_ne_bytes([!SAME_GROUP; 8]);
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let source = u8::try_from(source).unwrap_or(!SAME_GROUP);
    let wanted = u64::from_ne_bytes([source; 8]);
    // Sets the lowest bit of each byte that equals the source: only zero plus 0x7F leaves the highest bit of a byte clear.
    let matches = |word: &[u8; 8]| {
        let differing = (u64::from_ne_bytes(*word) & LOW_BITS) ^ wanted;
        !(differing + LOW_BITS) >> 7 & ONES
    };
    let (words, rest) = selectors.as_chunks();
    let mut last = [!source; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mut count = (matches(&last)).count_ones().into();
    // At most 255 words at once, so that the sum of a byte does not overflow.
    for words in words.chunks(usize::from(u8::MAX)) {
        let sums: u64 = words.iter().map(matches).sum();
        count += sums.to_ne_bytes().iter().map(|sum| u64::from(*sum)).sum::<u64>();
    }
    count
}
