//! Tests with Statistics.db of real files: decoding and encoding return the same bytes.

use ilion_codec::Writer;

use super::*;
use crate::fixtures::{real_env, tables};
use crate::{Component, Version, read_component};

#[test]
fn what_cassandra_wrote_is_written_back_byte_by_byte() {
    let env = real_env();
    for (case, found) in tables() {
        let descriptor = &found.descriptor;
        let path = descriptor.path(&Component::Statistics);
        let bytes = read_component(&*env, descriptor, &Component::Statistics)
            .unwrap()
            .unwrap();
        let statistics = Statistics::decode(&bytes, descriptor.version, &path).unwrap();
        let written = statistics.encode(descriptor.version);
        // Cassandra 5.0 pads STATS of its own versions by four bytes per tombstone bin.
        let padding = if descriptor.version.is_oa_or_later() {
            4 * statistics.stats.tombstone_drop_times.bins().len()
        } else {
            0
        };
        assert_eq!(written.len() + padding, bytes.len(), "{case}");
        if padding == 0 {
            let at = written.iter().zip(&bytes).position(|(a, b)| a != b);
            assert_eq!(at, None, "{case}");
        }
        let again = Statistics::decode(&written, descriptor.version, &path).unwrap();
        assert_eq!(format!("{again:?}"), format!("{statistics:?}"), "{case}");
    }
}

#[test]
fn the_estimate_is_the_number_of_keys() {
    let env = real_env();
    for (case, found) in tables()
        .into_iter()
        .filter(|(case, _)| case.starts_with("small_partitions"))
    {
        let bytes = read_component(&*env, &found.descriptor, &Component::Statistics)
            .unwrap()
            .unwrap();
        let path = found.descriptor.path(&Component::Statistics);
        let statistics = Statistics::decode(&bytes, found.descriptor.version, &path).unwrap();
        let estimate = statistics.cardinality.unwrap().estimate();
        assert!(estimate.abs_diff(10_000) < 300, "{case}: {estimate}");
        assert_eq!(statistics.stats.partition_sizes.count(), 10_000);
    }
}

#[test]
fn damage_is_found_and_never_panics() {
    let statistics = Statistics {
        validation: Some(Validation {
            partitioner: "p".into(),
            bloom_filter_fp_chance: 0.01,
        }),
        cardinality: Some(Cardinality::default()),
        stats: StatsMetadata::unknown(),
        header: SerializationHeader {
            stats: EncodingStats::NONE,
            key_type: ClassName::parse("org.apache.cassandra.db.marshal.Int32Type").unwrap(),
            clustering_types: Vec::new(),
            statics: Vec::new(),
            regulars: Vec::new(),
        },
    };
    let file = std::path::Path::new("Statistics.db");
    for version in ["ma", "mb", "mc", "me", "na", "nb", "oa", "da"] {
        let version = Version::parse(version).unwrap();
        let whole = statistics.encode(version);
        let read = Statistics::decode(&whole, version, file).unwrap();
        assert_eq!(read.header, statistics.header, "{version}");
        for cut in 0..whole.len() {
            assert!(
                Statistics::decode(&whole[..cut], version, file).is_err(),
                "{version} {cut}"
            );
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x41;
            let result = Statistics::decode(&damaged, version, file);
            assert!(result.is_err() || !version.is_na_or_later(), "{version} {at}");
        }
    }
    let mut out = Writer::new();
    out.u32(u32::MAX);
    assert!(Statistics::decode(out.as_slice(), Version::NB, file).is_err());
}
