//! Files as Cassandra 3.0 to 4.0 wrote them: the same rows under the older names, with the components that differ
//! rewritten as those versions had them.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod support;

use std::sync::Arc;

use ilion_env::MemEnv;
use ilion_sstable::compression_info::{CompressionInfo, NEVER_RAW};
use ilion_sstable::verify::verify;
use ilion_sstable::{
    BloomFilter, Component, Descriptor, OpenOptions, SSTable, Statistics, Version, list_directory,
};

use support::{Case, scan_all, small_cases};

/// The component as `version` had it.
fn rewritten(component: &Component, bytes: Vec<u8>, from: &Descriptor, version: Version) -> Vec<u8> {
    let path = from.path(component);
    match component {
        Component::Statistics => Statistics::decode(&bytes, from.version, &path)
            .unwrap()
            .encode(version),
        Component::Filter => BloomFilter::decode(&bytes, from.version).unwrap().encode(version),
        Component::CompressionInfo => {
            let info = CompressionInfo::decode(&bytes, from.version, &path).unwrap();
            assert_eq!(
                info.compressed_length_max, NEVER_RAW,
                "older versions have no raw chunks"
            );
            info.encode(version)
        }
        _ => bytes,
    }
}

fn open_as(case: &Case, version: Version) -> Arc<SSTable> {
    let from = &case.sstables[0];
    let to = Descriptor::new(from.directory.clone(), version, from.id, from.format);
    let env = MemEnv::new(1).shared();
    env.create_dir_all(&to.directory).unwrap();
    for (component, bytes) in case.components(0) {
        let mut file = env.create(&to.path(&component)).unwrap();
        file.append(&rewritten(&component, bytes, from, version)).unwrap();
    }
    let found = list_directory(env.as_ref(), &to.directory).unwrap();
    assert_eq!(found[0].descriptor, to);
    let options = OpenOptions {
        partitioner: case.partitioner,
        chunk_cache: None,
        ..OpenOptions::default()
    };
    let verification = verify(env.as_ref(), &to, &mut |_| {}).unwrap();
    // What TOC.txt names is there under the old names.
    let findings = verification.findings.kept();
    assert!(findings.is_empty(), "{} as {version}: {findings:?}", case.name);
    Arc::new(SSTable::open(&env, &to, &options).unwrap())
}

#[test]
fn versions_from_3_0_on_give_the_same_rows() {
    for case in small_cases() {
        if case.sstables[0].version != Version::NB {
            continue;
        }
        let (sstable, table) = case.open(0);
        let expected = scan_all(&sstable, &table);
        for text in ["ma", "mb", "mc", "md", "me", "na"] {
            let older = open_as(&case, Version::parse(text).unwrap());
            assert_eq!(scan_all(&older, &table), expected, "{} as {text}", case.name);
            let (stats, known) = (older.stats(), sstable.stats());
            assert_eq!(stats.total_rows, known.total_rows);
            assert_eq!(stats.max_timestamp_micros, known.max_timestamp_micros);
            assert_eq!(
                stats.originating_host.is_some(),
                text == "me" && known.originating_host.is_some()
            );
            let hash = ilion_sstable::KeyHash::of(&expected[0].head.key.key);
            assert!(older.may_contain(&hash));
        }
    }
}
