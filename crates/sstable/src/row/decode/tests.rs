//! Tests of parts of rows, byte by byte.

use std::path::Path;

use bytes::Bytes;
use ilion_codec::Writer;
use ilion_env::MemEnv;
use ilion_rows::{BoundKind, DeletionTime, NO_DELETION_TIME, Values};

use super::prefix::ClusteringFormat;
use crate::error::Step;
use crate::row::format::subset::Subset;
use crate::row::format::times::Times;
use crate::row::format::values::encode_values;
use crate::row::source::{ByteSource, Piece};
use crate::{ChunkReader, EncodingStats, Version};

/// Decodes all of `bytes`, and checks that no shorter input can be decoded.
fn decode<T: std::fmt::Debug>(bytes: &[u8], decode: impl Fn(&mut Piece<'_>) -> Step<T>) -> T {
    let env = MemEnv::new(1).shared();
    let path = Path::new("Data.db");
    env.create(path).unwrap();
    let file = ChunkReader::open_unchecked(env.as_ref(), path, None).unwrap();
    let piece_of = |bytes: &[u8]| Piece::new(Bytes::copy_from_slice(bytes), 100, &file);
    for len in 0..bytes.len() {
        let error = decode(&mut piece_of(&bytes[..len])).unwrap_err();
        assert!(error.is_corrupt(), "{len} bytes: {error}");
    }
    let mut piece = piece_of(bytes);
    let decoded = decode(&mut piece).unwrap();
    assert_eq!(piece.remaining(), 0);
    decoded
}

fn is_refused<T>(bytes: &[u8], decode: impl Fn(&mut Piece<'_>) -> Step<T>) -> bool {
    let env = MemEnv::new(1).shared();
    let path = Path::new("Data.db");
    env.create(path).unwrap();
    let file = ChunkReader::open_unchecked(env.as_ref(), path, None).unwrap();
    decode(&mut Piece::new(Bytes::copy_from_slice(bytes), 0, &file)).is_err()
}

fn indexes(subset: &Subset) -> Vec<usize> {
    let mut all = Vec::new();
    while let Some(index) = subset.next_from(all.last().map_or(0, |last| last + 1)) {
        all.push(index);
    }
    assert_eq!(all.len(), subset.len());
    all
}

#[test]
fn subsets_have_three_forms() {
    let subset = |bytes: &[u8], columns| indexes(&decode(bytes, |input| Subset::decode(input, columns)));
    assert_eq!(subset(&[0], 3), [0, 1, 2]);
    assert_eq!(subset(&[0b101], 3), [1]);
    assert_eq!(subset(&[0x43, 0x03, 0x0A, 0x45], 70), [3, 10, 69]);
    let without = subset(&[0x03, 0x05, 0x06, 0x28], 70);
    assert_eq!(without.len(), 67);
    assert!(![5, 6, 40].iter().any(|missing| without.contains(missing)));
    for (bytes, columns) in [
        (&[8][..], 3),
        (&[71], 70),
        (&[0x43, 3, 3, 69], 70),
        (&[0x43, 3, 10, 70], 70),
    ] {
        assert!(
            is_refused(bytes, |input| Subset::decode(input, columns)),
            "{bytes:?}"
        );
    }
}

#[test]
fn clusterings_come_in_batches_of_32_with_empty_and_null_values() {
    let fixed_len = |index: usize| index.is_multiple_of(3).then_some(4);
    let value = |index: usize| match index % 5 {
        1 => None,
        2 => Some(Bytes::new()),
        _ => Some(Bytes::from_static(b"abcd")),
    };
    let values: Values = (0..40).map(value).collect();
    let lens: Vec<_> = (0..40).map(fixed_len).collect();
    let mut out = Writer::new();
    encode_values(&lens, &values, &mut out).unwrap();
    let fixed_lens = (0..40).map(|index| fixed_len(index).map(|len| len as usize));
    let format = ClusteringFormat::new(fixed_lens.collect());
    let clustering = decode(out.as_slice(), |input| format.clustering(input));
    assert_eq!(*clustering.values(), values);
}

#[test]
fn bounds_have_a_known_kind_and_at_most_all_values() {
    let format = ClusteringFormat::new([None, Some(4)].into());
    let bound = |input: &mut Piece<'_>| {
        let kind = input.u8()?;
        format.bound_of(kind, input)
    };
    let found = decode(&[1, 0, 1, 0, 2, b'c', b'1'], bound);
    assert_eq!(found.kind, BoundKind::InclStart);
    assert_eq!(found.values.as_slice(), [Some(Bytes::from_static(b"c1"))]);
    assert!(is_refused(&[3, 0, 0], bound));
    assert!(is_refused(&[1, 0, 3, 0, 0, 0], bound));
    assert!(is_refused(&[1, 0, 1, 3], bound), "empty and null at once");
}

fn times(version: Version) -> Times {
    let least = EncodingStats {
        min_timestamp_micros: 100,
        min_local_deletion_secs: 1000,
        min_ttl_secs: 10,
    };
    Times::new(least, version)
}

#[test]
fn times_are_added_to_the_least_and_may_lie_below() {
    let nb = times(Version::NB);
    assert_eq!(decode(&[5], |input| nb.timestamp(input)), 105);
    assert_eq!(decode(&[0xFF; 9], |input| nb.timestamp(input)), 99);
    assert_eq!(decode(&[5], |input| nb.local_deletion(input)), 1005);
    assert_eq!(decode(&[0xFF; 9], |input| nb.local_deletion(input)), 999);
    assert_eq!(decode(&[5], |input| nb.ttl(input)), 15);
    let minus = |count: i64| {
        let mut out = Writer::new();
        out.uvint((-count).cast_unsigned());
        out.into_vec()
    };
    assert!(is_refused(&minus(10), |input| nb.ttl(input)), "a TTL of 0");
    assert!(is_refused(&minus(1001), |input| nb.local_deletion(input)), "none");
    assert!(
        is_refused(&minus(1002), |input| nb.local_deletion(input)),
        "before 1970"
    );
    let oa = times(Version::OA);
    assert_eq!(
        decode(&minus(1002), |input| oa.local_deletion(input)),
        u32::MAX - 1
    );
}

#[test]
fn deletions_that_delete_nothing_are_live_whatever_their_seconds() {
    let mut out = Writer::new();
    out.uvint(i64::MIN.wrapping_sub(100).cast_unsigned());
    out.uvint(77);
    for version in [Version::NB, Version::OA] {
        let deletion = decode(out.as_slice(), |input| times(version).deletion(input));
        assert_eq!(deletion, DeletionTime::LIVE);
    }
}

#[test]
fn partition_deletions_have_a_form_before_oa_and_one_since() {
    let nb = times(Version::NB);
    let live = [0x7F, 0xFF, 0xFF, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(
        decode(&live, |input| nb.partition_deletion(input)),
        DeletionTime::LIVE
    );
    let deleted = [0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 1, 0];
    assert_eq!(
        decode(&deleted, |input| nb.partition_deletion(input)),
        DeletionTime::new(256, 9)
    );
    let oa = times(Version::OA);
    assert_eq!(
        decode(&[0x80], |input| oa.partition_deletion(input)),
        DeletionTime::LIVE
    );
    let deleted = [0, 0, 0, 0, 0, 0, 1, 0, 0xFF, 0xFF, 0xFF, 0xFF];
    assert_eq!(
        decode(&deleted, |input| oa.partition_deletion(input)),
        DeletionTime::new(256, NO_DELETION_TIME)
    );
    assert!(is_refused(&[0x81; 12], |input| oa.partition_deletion(input)));
}
