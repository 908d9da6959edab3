//! Partitions and tablets: which tablets a range has, and the range of a tablet.

use std::ops::Range;

use ilion_cluster::Tablets;
use ilion_rows::{DecoratedKey, KeyBound, KeyRange};
use ilion_types::Token;

/// The tablet of a partition. `None` if its token is not of Murmur3.
pub(crate) fn tablet_of(key: &DecoratedKey, tablets: Tablets) -> Option<u32> {
    key.token.murmur3().map(|token| tablets.of(token))
}

/// The tablets in which partitions of a range may lie. `None` if its tokens are not of Murmur3.
pub(crate) fn tablets_of(range: &KeyRange, tablets: Tablets) -> Option<Range<u32>> {
    let of = |bound: &KeyBound, open: u32| match bound.token() {
        None => Some(open),
        Some(token) => token.murmur3().map(|token| tablets.of(token)),
    };
    let first = match &range.start {
        KeyBound::End => return Some(0..0),
        start => of(start, 0)?,
    };
    let last = match &range.end {
        KeyBound::Start => return Some(0..0),
        end => of(end, tablets.count() - 1)?,
    };
    // The range starts behind the last token of a tablet.
    let first = match &range.start {
        KeyBound::AfterToken(Token::Murmur3(token)) if *token == tablets.end(first) => first + 1,
        _ => first,
    };
    Some(first..(last + 1).max(first))
}

/// Where the part of a range that is in `tablet` ends: at the end of the tablet, or at the end of the range if that comes first.
pub(crate) fn end_of(tablet: u32, tablets: Tablets, range: &KeyRange) -> KeyBound {
    let end = tablets.end(tablet);
    let is_inside = match &range.end {
        KeyBound::End => tablet + 1 < tablets.count(),
        KeyBound::Start => false,
        bound => bound
            .token()
            .and_then(Token::murmur3)
            .is_some_and(|token| end < token),
    };
    match is_inside {
        true => KeyBound::AfterToken(Token::Murmur3(end)),
        false => range.end.clone(),
    }
}
