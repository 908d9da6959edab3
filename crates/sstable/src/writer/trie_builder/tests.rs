//! Tests that write tries, and read them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ilion_env::{Env, MemEnv, Seeded};

use super::*;
use crate::trie::{Ascending, Descending, Nodes, Payload};
use crate::writer::trie_draft::sized_int_len;
use crate::{ChunkReader, Component, Descriptor, Format, SSTableId, Version};

/// A trie in a file, and its expected content.
struct Written {
    file: Arc<ChunkReader>,
    root: u64,
    model: BTreeMap<Vec<u8>, i64>,
}

/// `junk` bytes come before the trie, as other tries do in Rows.db.
fn write(model: BTreeMap<Vec<u8>, i64>, junk: usize) -> Written {
    let env: Arc<dyn Env> = Arc::new(MemEnv::new(1));
    env.create_dir_all(Path::new("d")).unwrap();
    let descriptor = Descriptor::new(Path::new("d"), Version::DA, SSTableId::Sequence(1), Format::Bti);
    let mut out = ComponentWriter::create(&*env, &descriptor, &Component::Rows).unwrap();
    out.buffer().bytes(&vec![0xEE; junk]);
    let mut builder = TrieBuilder::new();
    for (key, value) in &model {
        let payload = PayloadBytes::new(sized_int_len(*value)).with_sized_int(*value);
        builder.add(key, payload, &mut out);
    }
    let root = builder.finish(&mut out);
    out.finish(&mut crate::checksums::Checksums::default()).unwrap();
    let path = descriptor.path(&Component::Rows);
    let file = Arc::new(ChunkReader::open_unchecked(&*env, &path, None).unwrap());
    Written { file, root, model }
}

fn value(payload: &Payload) -> i64 {
    payload.sized_int(0, usize::from(payload.bits)).unwrap()
}

impl Written {
    fn nodes(&self) -> Nodes {
        Nodes::of(self.file.clone())
    }

    fn ascending(&self, key: &[u8]) -> Vec<i64> {
        let mut walk = Ascending::from(self.nodes(), self.root, key).unwrap();
        std::iter::from_fn(|| walk.next().unwrap())
            .map(|payload| value(&payload))
            .collect()
    }

    fn descending(&self, key: &[u8]) -> Vec<i64> {
        let mut walk = Descending::from(self.nodes(), self.root, key).unwrap();
        std::iter::from_fn(|| walk.next().unwrap())
            .map(|payload| value(&payload))
            .collect()
    }

    fn check_all(&self) {
        let all: Vec<i64> = self.model.values().copied().collect();
        assert_eq!(self.ascending(&[]), all);
        let back: Vec<i64> = all.into_iter().rev().collect();
        assert_eq!(self.descending(&[0xFF; 200]), back);
    }

    fn check_from(&self, key: &[u8]) {
        let upto = self.model.range(..=key.to_vec()).rev();
        let upto: Vec<i64> = upto.map(|(_, value)| *value).collect();
        assert_eq!(self.descending(key), upto, "{key:?}");
        // The longest prefix of the key comes first, then all keys above.
        let above = self
            .model
            .range(key.to_vec()..)
            .filter(|(other, _)| *other != key);
        let prefix = (0..=key.len()).rev().find_map(|len| self.model.get(&key[..len]));
        let expected: Vec<i64> = prefix
            .into_iter()
            .chain(above.map(|(_, value)| value))
            .copied()
            .collect();
        assert_eq!(self.ascending(key), expected, "{key:?}");
    }
}

fn random_key(dice: &mut Seeded, letters: u64, len_max: u64) -> Vec<u8> {
    let len = dice.below(len_max + 1);
    let letter = |dice: &mut Seeded| (dice.below(letters) * (255 / (letters - 1))) as u8;
    (0..len).map(|_| letter(dice)).collect()
}

fn random_model(dice: &mut Seeded, count: usize, letters: u64, len_max: u64) -> BTreeMap<Vec<u8>, i64> {
    let keys: BTreeMap<Vec<u8>, i64> = (0..count)
        .map(|_| (random_key(dice, letters, len_max), 0))
        .collect();
    let wide = |number: usize, shift: u64| (number as i64) << shift;
    let keys = keys.into_keys().enumerate();
    keys.map(|(number, key)| (key, wide(number, dice.below(40))))
        .collect()
}

#[test]
fn random_keys_are_found_in_order_from_any_place_in_both_directions() {
    let mut dice = Seeded::new(1);
    for (count, letters, len_max) in [
        (1, 2, 0),
        (2, 2, 3),
        (40, 2, 12),
        (300, 256, 2),
        (500, 4, 30),
        (2_000, 3, 9),
    ] {
        let junk = usize::try_from(dice.below(5_000)).unwrap();
        let written = write(random_model(&mut dice, count, letters, len_max), junk);
        written.check_all();
        for _ in 0..30 {
            written.check_from(&random_key(&mut dice, letters, len_max + 1));
        }
        for key in written.model.keys().step_by(1 + count / 20) {
            written.check_from(key);
        }
    }
}

#[test]
fn a_large_trie_of_many_pages_is_whole() {
    let mut dice = Seeded::new(2);
    let keys = (0..30_000u64).map(|_| dice.next_u64().to_be_bytes()[..4].to_vec());
    let keys: BTreeMap<Vec<u8>, i64> = keys.map(|key| (key, 0)).collect();
    let numbered = keys.into_keys().zip(1..);
    let written = write(numbered.collect(), 10);
    assert!(written.file.data_length() > 20 * PAGE_BYTES);
    written.check_all();
    for (key, number) in written.model.iter().step_by(97) {
        let leaf = written.nodes().find_leaf(written.root, key).unwrap().unwrap();
        assert_eq!(value(&leaf.payload().unwrap()), *number);
        let mut other = key.clone();
        other[3] ^= 1;
        let found = written.nodes().find_leaf(written.root, &other).unwrap();
        assert_eq!(found.is_some(), written.model.contains_key(&other));
    }
}

#[test]
fn keys_of_the_greatest_length_are_written_and_found() {
    let long = |last: u8| -> Vec<u8> { (0..65_535u32).map(|at| (at % 251) as u8).chain([last]).collect() };
    let mut half = long(1);
    half.truncate(30_000);
    half.push(0xFF);
    let model = [(long(3), 3), (long(4), 4), (half, 7)];
    let written = write(model.into_iter().collect(), 0);
    written.check_all();
    written.check_from(&long(3));
    written.check_from(&long(0));
}

#[test]
fn a_root_with_256_children_needs_several_pages_of_children() {
    let keys = (0..=255u8).flat_map(|first| (0..40u8).map(move |second| vec![first, second, 9, 9]));
    let written = write(keys.zip(0..).collect(), 4_000);
    written.check_all();
    let root = written.nodes().read(written.root).unwrap();
    assert_eq!(root.slots, 256);
}
