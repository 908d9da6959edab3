//! Counter contexts: the values of cells of counter columns.
//!
//! ```text
//! context := n: i16, n * i16 (which shards are global or local), shard*
//! shard   := counter_id: [u8; 16], clock: i64, count: i64
//! ```
//!
//! Each `i16` names one shard: its index for a local shard (old style), its index minus 32768 for a global one. Shards that are
//! not named are remote (old style). Shards ascend by id. Compat: `org.apache.cassandra.db.context.CounterContext`.
//!
//! A statement's increment travels as an *update*: one local shard with id zero. The engine turns it into a global shard of
//! this node under the counter lock.

use std::cmp::Ordering;

use bytes::Bytes;
use ilion_codec::{Reader, Writer};
use smallvec::SmallVec;

/// The host id of the node that counts.
pub type CounterId = [u8; 16];

const UPDATE_ID: CounterId = [0; 16];
const SHARD_BYTES: usize = 32;

/// How a shard merges with another of the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShardKind {
    /// Old style, from another node: the higher clock wins.
    Remote,
    /// Old style, of the node itself, or an update: clocks and counts add up.
    Local,
    /// The higher clock wins; the only kind that is written since 2.1.
    Global,
}

/// The count of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The node.
    pub id: CounterId,
    /// Version of the count: each increment raises it.
    pub clock: i64,
    /// The count.
    pub count: i64,
    /// How the shard merges with another shard of the same id.
    pub kind: ShardKind,
}

type Shards = SmallVec<[Shard; 4]>;

/// The shards of a context; `None` if the bytes are not a context.
pub fn shards(context: &[u8]) -> Option<impl Iterator<Item = Shard>> {
    parse(context).map(IntoIterator::into_iter)
}

fn parse(context: &[u8]) -> Option<Shards> {
    let mut reader = Reader::new(context);
    let named = usize::try_from(reader.i16().ok()?).ok()?;
    let mut header = Reader::new(reader.take(named.checked_mul(2)?).ok()?);
    let mut shards = Shards::new();
    if !reader.remaining().is_multiple_of(SHARD_BYTES) {
        return None;
    }
    while !reader.is_empty() {
        shards.push(Shard {
            id: reader.uuid_bytes().ok()?,
            clock: reader.i64().ok()?,
            count: reader.i64().ok()?,
            kind: ShardKind::Remote,
        });
    }
    while let Ok(element) = header.i16() {
        let (index, kind) = if element < 0 {
            (i32::from(element) + 32768, ShardKind::Global)
        } else {
            (i32::from(element), ShardKind::Local)
        };
        shards.get_mut(usize::try_from(index).ok()?)?.kind = kind;
    }
    Some(shards)
}

/// The context of `shards`, which ascend by id.
pub fn encode(shards: &[Shard]) -> Bytes {
    let mut out = Writer::with_capacity(2 + shards.len() * (SHARD_BYTES + 2));
    let named = shards
        .iter()
        .filter(|shard| shard.kind != ShardKind::Remote)
        .count();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "Compat: the format holds 32768 shards, one for each node that ever counted"
    )]
    out.u16(named as u16);
    for (index, shard) in shards.iter().enumerate() {
        #[expect(clippy::cast_possible_truncation, reason = "as above")]
        let index = index as u16;
        match shard.kind {
            ShardKind::Remote => {}
            ShardKind::Local => out.u16(index),
            ShardKind::Global => out.u16(index | 0x8000),
        }
    }
    for shard in shards {
        out.bytes(&shard.id);
        out.i64(shard.clock);
        out.i64(shard.count);
    }
    Bytes::from(out.into_vec())
}

/// A context of one global shard.
pub fn global(id: CounterId, clock: i64, count: i64) -> Bytes {
    encode(&[Shard {
        id,
        clock,
        count,
        kind: ShardKind::Global,
    }])
}

/// The context of an increment that no node has counted yet.
pub fn update(delta: i64) -> Bytes {
    encode(&[Shard {
        id: UPDATE_ID,
        clock: 1,
        count: delta,
        kind: ShardKind::Local,
    }])
}

/// The increment, if `context` is an update; else `None`.
pub fn update_delta(context: &[u8]) -> Option<i64> {
    let shards = parse(context)?;
    match shards.as_slice() {
        [shard] if shard.kind == ShardKind::Local && shard.id == UPDATE_ID => Some(shard.count),
        _ => None,
    }
}

/// The value that CQL shows: the sum of the counts. Zero if the bytes are not a context.
pub fn total(context: &[u8]) -> i64 {
    parse(context).map_or(0, |shards| {
        shards
            .iter()
            .fold(0i64, |sum, shard| sum.wrapping_add(shard.count))
    })
}

/// Clock and count of the global shard of `id`; `None` if there is no such shard.
pub fn global_of(context: &[u8], id: &CounterId) -> Option<(i64, i64)> {
    parse(context)?
        .iter()
        .find(|shard| shard.id == *id && shard.kind == ShardKind::Global)
        .map(|shard| (shard.clock, shard.count))
}

/// The context with remote shards in place of local ones, which must not be added up on another node. Compat:
/// `CounterContext.clearAllLocal`.
pub fn without_local(context: &Bytes) -> Bytes {
    let is_local = |shard: &Shard| shard.kind == ShardKind::Local;
    let Some(mut shards) = parse(context).filter(|shards| shards.iter().any(is_local)) else {
        return context.clone();
    };
    for shard in shards.iter_mut().filter(|shard| is_local(shard)) {
        shard.kind = ShardKind::Remote;
    }
    encode(&shards)
}

/// Merges two contexts shard by shard. Bytes that are not a context lose to a context.
pub fn merge(a: &Bytes, b: &Bytes) -> Bytes {
    let (left, right) = match (parse(a), parse(b)) {
        (Some(left), Some(right)) => (left, right),
        (Some(_), None) => return a.clone(),
        (None, Some(_)) => return b.clone(),
        (None, None) => return a.max(b).clone(),
    };
    let merged = merge_shards(&left, &right);
    if merged == left {
        a.clone()
    } else if merged == right {
        b.clone()
    } else {
        encode(&merged)
    }
}

fn merge_shards(mut left: &[Shard], mut right: &[Shard]) -> Shards {
    let mut merged = Shards::with_capacity(left.len().max(right.len()));
    while let ([a, a_rest @ ..], [b, b_rest @ ..]) = (left, right) {
        match a.id.cmp(&b.id) {
            Ordering::Less => {
                merged.push(*a);
                left = a_rest;
            }
            Ordering::Greater => {
                merged.push(*b);
                right = b_rest;
            }
            Ordering::Equal => {
                merged.push(merge_shard(a, b));
                (left, right) = (a_rest, b_rest);
            }
        }
    }
    merged.extend_from_slice(left);
    merged.extend_from_slice(right);
    merged
}

fn merge_shard(a: &Shard, b: &Shard) -> Shard {
    if a.kind != b.kind {
        return if a.kind > b.kind { *a } else { *b };
    }
    if a.kind == ShardKind::Local {
        return Shard {
            clock: a.clock.wrapping_add(b.clock),
            count: a.count.wrapping_add(b.count),
            ..*a
        };
    }
    if (a.clock, a.count) >= (b.clock, b.count) {
        *a
    } else {
        *b
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(id: u8, clock: i64, count: i64, kind: ShardKind) -> Shard {
        Shard {
            id: [id; 16],
            clock,
            count,
            kind,
        }
    }

    #[test]
    fn one_global_shard_has_the_bytes_of_the_format_notes() {
        let context = global([7; 16], 1, 5);
        assert_eq!(context[..4], [0, 1, 0x80, 0]);
        assert_eq!(context.len(), 4 + 32);
        assert_eq!(total(&context), 5);
        assert_eq!(global_of(&context, &[7; 16]), Some((1, 5)));
    }

    #[test]
    fn the_higher_clock_of_a_global_shard_wins() {
        let merged = merge(&global([1; 16], 2, 10), &global([1; 16], 1, 99));
        assert_eq!(total(&merged), 10);
        assert_eq!(total(&merge(&global([1; 16], 2, 3), &global([2; 16], 9, 4))), 7);
        assert_eq!(total(&merge(&global([1; 16], 2, 3), &global([1; 16], 2, 4))), 4);
    }

    #[test]
    fn without_local_shards_a_context_that_comes_twice_counts_once() {
        let own = encode(&[
            shard(1, 5, 100, ShardKind::Local),
            shard(2, 9, 7, ShardKind::Global),
        ]);
        let sent = without_local(&own);
        assert_eq!((total(&merge(&own, &own)), total(&sent)), (207, 107));
        assert_eq!(total(&merge(&sent, &sent)), 107);
        assert_eq!(without_local(&sent), sent);
        assert_eq!(without_local(&Bytes::from_static(b"x")), "x");
    }

    #[test]
    fn kinds_rank_global_local_remote_and_locals_add_up() {
        let one = |kind| encode(&[shard(1, 5, 100, kind)]);
        let other = |kind| encode(&[shard(1, 9, 1, kind)]);
        assert_eq!(
            total(&merge(&one(ShardKind::Global), &other(ShardKind::Local))),
            100
        );
        assert_eq!(
            total(&merge(&other(ShardKind::Remote), &one(ShardKind::Local))),
            100
        );
        assert_eq!(
            total(&merge(&one(ShardKind::Local), &other(ShardKind::Local))),
            101
        );
        assert_eq!(
            total(&merge(&one(ShardKind::Remote), &other(ShardKind::Remote))),
            1
        );
    }

    #[test]
    fn updates_are_told_apart_and_add_up() {
        assert_eq!(update_delta(&merge(&update(2), &update(-5))), Some(-3));
        assert_eq!(update_delta(&global([1; 16], 1, 1)), None);
    }

    #[test]
    fn bytes_that_are_no_context_count_nothing_and_lose() {
        for bad in [&b""[..], &[0xFF, 0xFF], &[0, 1, 0, 0], &[0, 0, 1]] {
            assert_eq!(total(bad), 0);
            let good = global([1; 16], 1, 5);
            assert_eq!(merge(&Bytes::copy_from_slice(bad), &good), good);
        }
    }
}
