//! The laws of the token map, against a plain sorted list.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use ilion_env::{Env, MemEnv, Seeded};
use ilion_rows::{DecoratedKey, KeyBound};
use ilion_types::{Partitioner, Token};

use super::map::Mapped;
use super::tail::END_LEN;
use super::{Candidates, TokenMap, TokenMapWriter, Whole};
use crate::{Component, Descriptor, Format, SSTableId, Version};
use ilion_pages::{CRC_LEN, PAGE_LEN};

pub(super) const PARTITIONERS: [Partitioner; 3] = [
    Partitioner::Murmur3,
    Partitioner::Random,
    Partitioner::ByteOrdered,
];

pub(super) struct Case {
    env: Arc<dyn Env>,
    mem: MemEnv,
    descriptor: Descriptor,
    partitioner: Partitioner,
    pub(super) keys: Vec<DecoratedKey>,
    mapped: Vec<Mapped>,
}

fn descriptor() -> Descriptor {
    Descriptor::new(
        Path::new("ks/t"),
        Version::NB,
        SSTableId::Sequence(1),
        Format::Big,
    )
}

impl Case {
    pub(super) fn write(
        partitioner: Partitioner,
        keys: impl IntoIterator<Item = Vec<u8>>,
        random: &mut Seeded,
    ) -> Self {
        let mut keys: Vec<DecoratedKey> = keys
            .into_iter()
            .map(|key| DecoratedKey::new(partitioner, Bytes::from(key)))
            .collect();
        keys.sort();
        keys.dedup();
        let mem = MemEnv::new(1);
        let env = mem.shared();
        env.create_dir_all(Path::new("ks/t")).unwrap();
        let descriptor = descriptor();
        let path = descriptor.path(&Component::Tokens);
        let mut writer = TokenMapWriter::create(&*env, &path, partitioner).unwrap();
        let mut mapped = Vec::new();
        let mut position = 0;
        for key in &keys {
            let row_index = random.one_in(50).then(|| random.below(1 << 40));
            writer.add(&key.token, position, row_index).unwrap();
            mapped.push(Mapped { position, row_index });
            position += 20 + random.below(300);
        }
        let whole = Whole {
            first_key: &keys[0].key,
            last_key: &keys[keys.len() - 1].key,
            data_length: position,
            stored_length: 7,
            fingerprint: 9,
        };
        assert!(writer.finish(&*env, &whole).unwrap());
        Self {
            env,
            mem,
            descriptor,
            partitioner,
            keys,
            mapped,
        }
    }

    pub(super) fn open(&self) -> crate::Result<Option<TokenMap>> {
        TokenMap::open(&*self.env, &self.descriptor, self.partitioner, 9, 7)
    }

    pub(super) fn partitioner(&self) -> Partitioner {
        self.partitioner
    }

    /// The laws hold for a token that may or may not be there.
    fn check_token(&self, map: &TokenMap, token: &Token) {
        let below = self.keys.partition_point(|key| key.token < *token) as u64;
        let up_to = self.keys.partition_point(|key| key.token <= *token) as u64;
        match map.candidates(token).unwrap() {
            Candidates::These(range) if below < up_to => {
                assert!(range.start <= below && range.end >= up_to, "{token}: {range:?}");
            }
            Candidates::These(range) => assert!(range.end - range.start <= 8),
            Candidates::TooMany => {}
        }
        let rank = map.rank(&KeyBound::BeforeToken(token.clone())).unwrap();
        assert!(rank <= below, "{token}: {rank} of {below}");
        if rank < map.partition_count() {
            let floor = map.token_floor(rank).unwrap();
            assert!(floor <= self.keys[rank as usize].token);
            // All that is passed over is below.
            assert!(rank == 0 || self.keys[rank as usize - 1].token < *token);
        }
        assert!(below - rank <= 8 || self.partitioner == Partitioner::ByteOrdered);
    }

    fn check(&self) {
        let map = self.open().unwrap().unwrap();
        assert_eq!(map.partition_count(), self.keys.len() as u64);
        assert_eq!(
            (&map.first, &map.last),
            (&self.keys[0], &self.keys[self.keys.len() - 1])
        );
        for (index, key) in self.keys.iter().enumerate() {
            assert_eq!(map.partition(index as u64).unwrap(), self.mapped[index]);
            assert!(map.token_floor(index as u64).unwrap() <= key.token);
            self.check_token(&map, &key.token);
            let near = [&key.key[..], &[0]].concat();
            self.check_token(&map, &self.partitioner.token(&near));
            let shorter = &key.key[..key.key.len() / 2];
            self.check_token(&map, &self.partitioner.token(shorter));
        }
        self.check_token(&map, &self.partitioner.minimum_token());
        assert!(map.partition(self.keys.len() as u64).is_err());
    }
}

fn random_bytes(random: &mut Seeded, most: u64, letters: u64) -> Vec<u8> {
    let len = random.below(most) + 1;
    (0..len).map(|_| random.below(letters) as u8).collect()
}

#[test]
fn partitions_are_found_where_they_are() {
    let mut random = Seeded::new(11);
    for partitioner in PARTITIONERS {
        for count in [1, 2, 1023, 1024, 1025, 3000] {
            let keys: Vec<_> = (0..count).map(|_| random_bytes(&mut random, 12, 256)).collect();
            Case::write(partitioner, keys, &mut random).check();
        }
    }
}

type Shape<'s> = &'s dyn Fn(u32, &mut Seeded) -> Vec<u8>;

#[test]
fn keys_that_were_made_to_look_alike_are_not_missed() {
    let mut random = Seeded::new(12);
    let prefix = vec![b'p'; 300];
    let shapes: [Shape<'_>; 6] = [
        // All differ only far behind what they have in common.
        &|number, _| [&prefix[..], &number.to_be_bytes()].concat(),
        // A block begins elsewhere, so that eight bytes do not tell its keys apart.
        &|number, _| match number {
            0 => vec![0],
            _ => [&b"commonpart"[..], &number.to_be_bytes()].concat(),
        },
        &|number, _| vec![0; number as usize % 700],
        &|number, _| vec![0xFF; number as usize % 700],
        &|_, random| random_bytes(random, 30, 2),
        &|number, _| format!("user:{number:012}").into_bytes(),
    ];
    for shape in shapes {
        let keys: Vec<_> = (0..3000).map(|number| shape(number, &mut random)).collect();
        Case::write(Partitioner::ByteOrdered, keys, &mut random).check();
    }
}

#[test]
fn few_bits_a_partition_are_enough_to_deny_most_keys() {
    let mut random = Seeded::new(13);
    let keys = (0..20_000_u32).map(|number| number.to_be_bytes().to_vec());
    let case = Case::write(Partitioner::Murmur3, keys, &mut random);
    let map = case.open().unwrap().unwrap();
    let per_partition = map.file_length() as f64 / 20_000.0;
    assert!(per_partition < 3.3, "{per_partition} bytes a partition");
    let absent = (20_000..40_000_u32).map(|number| Partitioner::Murmur3.token(&number.to_be_bytes()));
    let alike = absent
        .map(|token| match map.candidates(&token).unwrap() {
            Candidates::These(range) => range.end - range.start,
            Candidates::TooMany => 9,
        })
        .sum::<u64>();
    assert!(alike < 20, "{alike} of 20000 look as if they were there");
}

#[test]
fn tokens_that_many_keys_share_go_to_the_index() {
    let mem = MemEnv::new(1);
    let env = mem.shared();
    env.create_dir_all(Path::new("ks/t")).unwrap();
    let path = descriptor().path(&Component::Tokens);
    let mut writer = TokenMapWriter::create(&*env, &path, Partitioner::Murmur3).unwrap();
    let token = |number: i64| {
        Token::Murmur3(if (1000..1050).contains(&number) {
            1000
        } else {
            number
        })
    };
    for number in 0..3000 {
        writer.add(&token(number), number as u64 * 10, None).unwrap();
    }
    let whole = Whole {
        first_key: b"",
        last_key: b"b",
        data_length: 30_000,
        stored_length: 1,
        fingerprint: 1,
    };
    assert!(writer.finish(&*env, &whole).unwrap());
    let map = TokenMap::open(&*env, &descriptor(), Partitioner::Murmur3, 1, 1)
        .unwrap()
        .unwrap();
    assert_eq!(map.candidates(&token(1020)).unwrap(), Candidates::TooMany);
    assert_eq!(
        map.candidates(&token(1050)).unwrap(),
        Candidates::These(1050..1051)
    );
    assert_eq!(map.rank(&KeyBound::BeforeToken(token(1020))).unwrap(), 1000);
}

#[test]
fn a_map_of_another_sstable_is_not_taken() {
    let mut random = Seeded::new(14);
    let case = Case::write(Partitioner::Murmur3, [vec![1], vec![2]], &mut random);
    let open = |partitioner, fingerprint, stored_length| {
        TokenMap::open(
            &*case.env,
            &case.descriptor,
            partitioner,
            fingerprint,
            stored_length,
        )
    };
    assert!(open(Partitioner::Murmur3, 9, 7).unwrap().is_some());
    assert!(open(Partitioner::Murmur3, 8, 7).unwrap_err().is_corrupt());
    assert!(open(Partitioner::Murmur3, 9, 6).unwrap_err().is_corrupt());
    assert!(open(Partitioner::Random, 9, 7).unwrap_err().is_corrupt());
}

#[test]
fn every_damaged_byte_is_noticed_or_does_not_matter() {
    let mut random = Seeded::new(15);
    for partitioner in PARTITIONERS {
        let keys = (0..1500).map(|_| random_bytes(&mut random, 12, 256));
        let case = Case::write(partitioner, keys.collect::<Vec<_>>(), &mut random);
        let path = case.descriptor.path(&Component::Tokens);
        let size = case.env.file_size(&path).unwrap();
        for _ in 0..100 {
            let at = random.below(size);
            let xor = 1 << random.below(8);
            case.mem.corrupt_byte(&path, at, xor).unwrap();
            // A map that opens and does not complain says what it said before.
            if let Ok(Some(map)) = case.open() {
                for (index, key) in case.keys.iter().enumerate().step_by(97) {
                    if let Ok(mapped) = map.partition(index as u64) {
                        assert_eq!(mapped, case.mapped[index]);
                    }
                    if let Ok(Candidates::These(range)) = map.candidates(&key.token) {
                        assert!(range.contains(&(index as u64)));
                    }
                }
            }
            case.mem.corrupt_byte(&path, at, xor).unwrap();
        }
        case.check();
    }
}

/// Puts right all checksums, so that damage reaches what they cover.
fn seal(bytes: &mut [u8], body_length: usize) {
    let pages: Vec<u32> = bytes[..body_length]
        .chunks(PAGE_LEN)
        .map(ilion_codec::crc32)
        .collect();
    for (number, crc) in pages.into_iter().enumerate() {
        let at = body_length + number * CRC_LEN;
        bytes[at..at + CRC_LEN].copy_from_slice(&crc.to_le_bytes());
    }
    let tail_end = bytes.len() - END_LEN;
    let tail_at = body_length + body_length.div_ceil(PAGE_LEN) * CRC_LEN;
    let crc = ilion_codec::crc32(&bytes[tail_at..tail_end]);
    bytes[tail_end..tail_end + CRC_LEN].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn hostile_bytes_with_good_checksums_do_not_panic() {
    let mut random = Seeded::new(16);
    for partitioner in PARTITIONERS {
        let keys = (0..1100).map(|_| random_bytes(&mut random, 12, 3));
        let case = Case::write(partitioner, keys.collect::<Vec<_>>(), &mut random);
        let path = case.descriptor.path(&Component::Tokens);
        let whole = case.env.read_all(&path, 1 << 20).unwrap();
        let tail_len = u32::from_le_bytes(*whole[whole.len() - 12..].first_chunk().unwrap()) as usize;
        let body_and_crcs = whole.len() - END_LEN - tail_len;
        let body = (0..body_and_crcs)
            .find(|len| len + len.div_ceil(PAGE_LEN) * CRC_LEN == body_and_crcs)
            .unwrap();
        for _ in 0..400 {
            let mut hostile = whole.clone();
            for _ in 0..=random.below(4) {
                // The directory and headers of blocks as often as the rest.
                let at = match random.below(3) {
                    0 => random.below(64.min(body as u64)),
                    1 => body as u64 - random.below(100.min(body as u64)) - 1,
                    _ => random.below(body as u64),
                };
                let len = random.below(9) as usize;
                let end = (at as usize + len).min(body);
                hostile[at as usize..end].fill(random.below(256) as u8);
            }
            seal(&mut hostile, body);
            let mut file = case.env.create_or_truncate(&path).unwrap();
            file.append(&hostile).unwrap();
            let map = case.open().unwrap().unwrap();
            for (index, key) in case.keys.iter().enumerate().step_by(23) {
                let _ = map.candidates(&key.token);
                let _ = map.rank(&KeyBound::AfterToken(key.token.clone()));
                let _ = map.partition(index as u64);
                let _ = map.token_floor(index as u64);
            }
        }
    }
}
