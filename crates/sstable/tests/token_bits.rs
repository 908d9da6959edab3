//! Tests of the token bits: what is known of a key while they are built, and when they are complete.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use ilion_env::{Env, MemEnv};
use ilion_rows::notation::parse_table;
use ilion_rows::{DecoratedKey, DeletionTime, KeyBound, KeyRange, PartitionHead};
use ilion_sstable::{
    Descriptor, Format, Glimpse, KeyHash, OpenOptions, Presence, SSTable, SSTableId, SSTableWriter,
    TokenBitsBudget, Version, WriterOptions,
};
use ilion_types::Partitioner;

/// More than one read builds.
const PARTITIONS: u32 = 10_000;
/// Number of reads after which the bits are complete: 32, and three that build them.
const READS: u32 = 40;

struct Written {
    env: Arc<dyn Env>,
    descriptor: Descriptor,
    keys: Vec<DecoratedKey>,
}

fn key_of(number: u32) -> DecoratedKey {
    DecoratedKey::new(Partitioner::Murmur3, Bytes::from(format!("user:{number}")))
}

impl Written {
    fn new() -> Self {
        let table = parse_table("k text pk, v text").unwrap();
        let env = MemEnv::new(1).shared();
        env.create_dir_all(Path::new("ks/t")).unwrap();
        let descriptor = Descriptor::new(
            Path::new("ks/t"),
            Version::NB,
            SSTableId::Sequence(1),
            Format::Big,
        );
        let mut keys: Vec<_> = (0..PARTITIONS).map(|number| key_of(number * 2)).collect();
        keys.sort();
        let mut writer = SSTableWriter::new(&env, &descriptor, &table, WriterOptions::default()).unwrap();
        for key in &keys {
            let head = PartitionHead {
                key: key.clone(),
                deletion: DeletionTime {
                    marked_at_micros: 1,
                    local_secs: 1,
                },
                static_row: None,
            };
            writer.begin_partition(&head).unwrap();
            writer.finish_partition().unwrap();
        }
        writer.finish().unwrap();
        Self {
            env,
            descriptor,
            keys,
        }
    }

    fn open(&self, budget: &Arc<TokenBitsBudget>) -> SSTable {
        let options = OpenOptions {
            token_bits: budget.clone(),
            ..OpenOptions::default()
        };
        let sstable = SSTable::open(&self.env, &self.descriptor, &options).unwrap();
        // From here on, the pages of the map itself are in memory.
        assert!(self.keys.iter().all(|key| sstable.may_have(key)));
        sstable
    }
}

fn may_be(presence: &Presence) -> bool {
    matches!(presence, Presence::Possible(_))
}

fn presence(sstable: &SSTable, key: &DecoratedKey) -> Presence {
    sstable.presence(key, &KeyHash::of(&key.key))
}

fn ask(sstable: &SSTable, reads: u32) {
    for number in 0..reads {
        presence(sstable, &key_of(number));
    }
}

#[test]
fn at_each_moment_of_their_making_no_partition_is_missed() {
    let written = Written::new();
    let sstable = written.open(&Arc::default());
    let without = sstable.memory_bytes();
    for round in 0..READS {
        let key = &written.keys[usize::try_from(round * 17).unwrap()];
        assert!(may_be(&presence(&sstable, key)), "{round}");
    }
    let taken = sstable.memory_bytes() - without;
    assert!((10_000..=20_000).contains(&taken), "{taken}");
    for (at, key) in written.keys.iter().enumerate() {
        assert!(may_be(&presence(&sstable, key)));
        let behind = KeyRange {
            start: KeyBound::BeforeToken(key.token.clone()),
            end: KeyBound::End,
        };
        assert_eq!(
            sstable.glimpse(&behind),
            Glimpse::From(key.token.murmur3().unwrap()),
            "{at}"
        );
    }
    let absent = (0..1000).map(|number| presence(&sstable, &key_of(number * 2 + 1)));
    let seen = absent.filter(may_be).count();
    assert!(seen < 20, "{seen} of 1000");
}

#[test]
fn without_memory_for_them_the_map_goes_on_answering() {
    let written = Written::new();
    let none = Arc::new(TokenBitsBudget::new(0));
    let sstable = written.open(&none);
    let without = sstable.memory_bytes();
    ask(&sstable, 3 * READS);
    assert_eq!(sstable.memory_bytes(), without);
    for key in &written.keys {
        assert!(may_be(&presence(&sstable, key)));
    }
}

#[test]
fn an_sstable_that_is_dropped_leaves_its_memory_to_the_next() {
    let written = Written::new();
    let for_one = Arc::new(TokenBitsBudget::new(30_000));
    let (first, second) = (written.open(&for_one), written.open(&for_one));
    let without = second.memory_bytes();
    ask(&first, READS);
    ask(&second, READS);
    assert!(first.memory_bytes() > without);
    assert_eq!(second.memory_bytes(), without);
    drop(first);
    ask(&second, READS);
    assert!(second.memory_bytes() > without);
}
