//! Shows plain partitions and rows in place to a visitor, window after window, from a stream's position on.

use ilion_rows::{Bound, DecoratedKey, KeyBound, PlainRun, PlainVisitor};
use ilion_types::Token;

use crate::DataStream;
use crate::row::decode::RowFormat;
use crate::row::seen::{Patterns, WantedKeys};

/// Shows the visitor the partitions that follow, see [`RowFormat::visit_plain`]. Requires: the stream is at the start of a
/// partition.
pub(super) fn show_partitions(
    stream: &mut DataStream,
    format: &RowFormat,
    patterns: &mut Patterns,
    mut keys: WantedKeys<'_, impl Fn(&Token, &[u8]) -> bool>,
    visitor: &mut dyn PlainVisitor,
) -> Option<PlainRun> {
    stream.begin_window();
    stream.refill();
    let mut whole: Option<PlainRun> = None;
    while let Some(visited) = format.visit_plain(stream, patterns, &mut keys, visitor) {
        let count = whole.map_or(0, |whole| whole.count) + visited.count;
        let is_over = visited.is_over;
        whole = Some(PlainRun { count, ..visited });
        // The partition that could not be shown may be cut off by the end of the window.
        if is_over || !stream.refill() {
            break;
        }
    }
    whole
}

/// Shows the visitor the rows of the partition that follow, see [`RowFormat::visit_rows`]; returns how many it took. Requires:
/// the stream is where an unfiltered may start.
pub(super) fn show_rows(
    stream: &mut DataStream,
    format: &RowFormat,
    patterns: &mut Patterns,
    key: &DecoratedKey,
    end: Option<&Bound>,
    visitor: &mut dyn PlainVisitor,
) -> u64 {
    // No comparisons are needed if the end is behind all rows.
    let end = end.filter(|end| !end.values.is_empty() || end.kind.is_before());
    let mut count = 0;
    loop {
        let (taken, is_over) = format.visit_rows(stream, patterns, key, end, visitor);
        count += taken;
        // The row that could not be shown may be cut off by the end of the window.
        if is_over || !stream.refill() {
            return count;
        }
    }
}

/// A function that returns true for keys below the end of a range and below `before`; `None` if it would return true for all keys.
pub(super) fn until<'k>(
    end: &'k KeyBound,
    before: Option<&'k DecoratedKey>,
) -> Option<impl Fn(&Token, &[u8]) -> bool + use<'k>> {
    let is_unbounded = matches!(end, KeyBound::End) && before.is_none();
    let is_wanted = move |token: &Token, key: &[u8]| {
        let is_before = |limit: &DecoratedKey| (token, key) < (&limit.token, &*limit.key);
        let is_within = match end {
            KeyBound::Start => false,
            KeyBound::End => true,
            KeyBound::BeforeToken(end) => token < end,
            KeyBound::AfterToken(end) => token <= end,
            KeyBound::Before(end) => is_before(end),
            KeyBound::After(end) => (token, key) <= (&end.token, &*end.key),
        };
        is_within && before.is_none_or(is_before)
    };
    (!is_unbounded).then_some(is_wanted)
}
