//! Shares of the ring, for densities and shards.
//!
//! Compat: `ShardManagerNoDisks`; a partitioner that keeps the order of keys has one shard (`ShardManagerTrivial`).

use ilion_rows::DecoratedKey;
use ilion_types::Token;

/// Below this number of partitions, chance decides how far apart the first and the last token are.
const PARTITIONS_FEW: u64 = 100;
/// Share of the ring that is assumed, at least, for each partition if there are few.
const SPAN_OF_PARTITION: f64 = 1.0 / 65536.0;
/// Smallest span, as a share of the ring.
const SPAN_MIN: f64 = 1.0 / (1_u64 << 48) as f64;

/// The token's place on a ring of 2^64 places; `None` if tokens are not spread evenly.
fn place(token: &Token) -> Option<u64> {
    match token {
        Token::Murmur3(_) => Some(token.code()),
        Token::Random(random) => {
            let value = random.value().unwrap_or(0).min((1 << 127) - 1);
            u64::try_from(value >> 63).ok()
        }
        Token::Bytes(_) | Token::Comparable(_) => None,
    }
}

/// True if tokens are spread evenly, so that shards are of like size.
pub(crate) fn is_even(token: &Token) -> bool {
    place(token).is_some()
}

/// The token's shard, counted from 0, if the ring is divided into `shards` equal parts.
pub fn shard_of(token: &Token, shards: u32) -> u32 {
    let Some(place) = place(token) else {
        return 0;
    };
    let shard = (u128::from(place) * u128::from(shards.max(1))) >> 64;
    u32::try_from(shard).unwrap_or(u32::MAX)
}

/// Share of the ring from one key to another; 1 if tokens are not spread evenly.
pub(crate) fn share(first: &DecoratedKey, last: &DecoratedKey) -> f64 {
    match (place(&first.token), place(&last.token)) {
        (Some(first), Some(last)) => (last.saturating_sub(first) as f64 + 1.0) / (u64::MAX as f64),
        _ => 1.0,
    }
}

/// [`share`]; if the partitions are few or the share is tiny, at least an estimate from their number, since a few partitions may be
/// close together by chance.
pub(crate) fn span(first: &DecoratedKey, last: &DecoratedKey, partitions: u64) -> f64 {
    let share = share(first, last).min(1.0);
    if partitions >= PARTITIONS_FEW && share >= SPAN_MIN {
        return share;
    }
    share.max((partitions.max(1) as f64 * SPAN_OF_PARTITION).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_equal_parts_of_the_ring() {
        let shards = |hash, count| shard_of(&Token::Murmur3(hash), count);
        assert_eq!(
            [i64::MIN, -1, 0, i64::MAX].map(|hash| shards(hash, 2)),
            [0, 0, 1, 1]
        );
        assert_eq!(shards(i64::MAX, 3), 2);
        assert_eq!(shard_of(&Token::Bytes(vec![1].into()), 8), 0);
    }
}
