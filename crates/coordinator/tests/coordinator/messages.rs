//! Commands and answers survive their bytes. Other bytes are refused, without a panic and without much memory.

use bytes::Bytes;
use ilion_coordinator::{
    Answer, NamedFilter, PageSize, Read, ReadCommand, ReplicaError, Resume, SearchFrom, decode_answer,
    encode_answer,
};
use ilion_engine::TabletPosition;
use ilion_index::{Estimate, Limit, Place, Predicate, RowPart};
use ilion_rows::random::{Dice, random_table};
use ilion_rows::{
    Bound, BoundKind, Clustering, ClusteringFilter, DecoratedKey, KeyBound, KeyRange, Slice, Values,
    WantedElements,
};
use ilion_schema::{TableId, TableSchema};
use ilion_types::{Partitioner, Token};
use uuid::Uuid;

fn bytes(dice: &mut Dice) -> Bytes {
    (0..1 + dice.below(9)).map(|_| dice.byte()).collect()
}

fn key(dice: &mut Dice) -> DecoratedKey {
    match dice.one_in(6) {
        // Not a partition, but a place before those with its token.
        true => DecoratedKey {
            token: Token::Murmur3(dice.next_u64().cast_signed()),
            key: Bytes::new(),
        },
        false => DecoratedKey::new(Partitioner::Murmur3, bytes(dice)),
    }
}

fn values(dice: &mut Dice) -> Values {
    (0..dice.below(4))
        .map(|_| (!dice.one_in(4)).then(|| bytes(dice)))
        .collect()
}

fn bound(dice: &mut Dice) -> Bound {
    let kind = BoundKind::from_ordinal(*dice.pick(&[0, 1, 2, 5, 6, 7])).unwrap();
    Bound::new(kind, values(dice))
}

fn key_bound(dice: &mut Dice) -> KeyBound {
    let token = |dice: &mut Dice| Token::Murmur3(dice.next_u64().cast_signed());
    match dice.below(6) {
        0 => KeyBound::Start,
        1 => KeyBound::End,
        2 => KeyBound::BeforeToken(token(dice)),
        3 => KeyBound::AfterToken(token(dice)),
        4 => KeyBound::Before(key(dice)),
        _ => KeyBound::After(key(dice)),
    }
}

fn range(dice: &mut Dice) -> KeyRange {
    KeyRange {
        start: key_bound(dice),
        end: key_bound(dice),
    }
}

fn place(dice: &mut Dice) -> Place {
    Place {
        key: key(dice),
        row: match dice.one_in(3) {
            true => RowPart::Static,
            false => RowPart::Row(Clustering::new(values(dice))),
        },
    }
}

fn predicate(dice: &mut Dice) -> Predicate {
    let limit = |dice: &mut Dice| {
        (!dice.one_in(3)).then(|| Limit {
            value: bytes(dice),
            is_inclusive: dice.one_in(2),
        })
    };
    match dice.below(12) {
        0 => Predicate::Equal(bytes(dice)),
        1 => Predicate::Contains(bytes(dice)),
        2 => Predicate::ContainsKey(bytes(dice)),
        3 => Predicate::Matches(bytes(dice)),
        4 => Predicate::LikePrefix(bytes(dice)),
        5 => Predicate::LikeSuffix(bytes(dice)),
        6 => Predicate::LikeContains(bytes(dice)),
        7 => Predicate::LikeEqual(bytes(dice)),
        8 => Predicate::Entry(bytes(dice), bytes(dice)),
        9 => Predicate::EntryRange {
            key: bytes(dice),
            from: limit(dice),
            to: limit(dice),
        },
        10 => Predicate::Range {
            from: limit(dice),
            to: limit(dice),
        },
        _ => Predicate::AnyOf((0..dice.below(4)).map(|_| bytes(dice)).collect()),
    }
}

fn filter(dice: &mut Dice, table: &TableSchema) -> NamedFilter {
    let ids: Vec<_> = table
        .statics()
        .chain(table.regulars())
        .map(|column| column.id)
        .collect();
    let slices = (0..dice.below(3)).map(|_| Slice {
        start: bound(dice),
        end: bound(dice),
    });
    let filter = ClusteringFilter {
        slices: slices.collect(),
        reversed: dice.one_in(2),
        columns: (!dice.one_in(3)).then(|| ids.iter().copied().filter(|_| dice.one_in(2)).collect()),
        elements: dice.one_in(3).then(|| {
            let wanted = ids.iter().map(|column| WantedElements {
                column: *column,
                paths: (0..dice.below(3)).map(|_| bytes(dice)).collect(),
            });
            wanted.collect()
        }),
        ..ClusteringFilter::all()
    };
    NamedFilter::of(&filter, table)
}

fn resume(dice: &mut Dice) -> Resume {
    match dice.one_in(2) {
        true => Resume::After(key(dice)),
        false => Resume::Within(key(dice), bound(dice)),
    }
}

fn read(dice: &mut Dice, table: &TableSchema) -> Read {
    let name = |dice: &mut Dice| format!("index_{}", dice.below(100));
    match dice.below(5) {
        0 => Read::Partition {
            key: key(dice),
            filter: filter(dice, table),
            resume: dice.one_in(2).then(|| bound(dice)),
        },
        1 => Read::Range {
            range: range(dice),
            filter: filter(dice, table),
            resume: dice.one_in(2).then(|| resume(dice)),
        },
        2 => Read::Search {
            index: name(dice),
            predicate: predicate(dice),
            range: range(dice),
            from: match dice.below(3) {
                0 => None,
                1 => Some(SearchFrom::At(place(dice))),
                _ => Some(SearchFrom::Behind(place(dice))),
            },
        },
        3 => Read::Nearest {
            index: name(dice),
            vector: (0..dice.below(5)).map(|_| dice.below(100) as f32).collect(),
            ranges: (0..dice.below(4)).map(|_| range(dice)).collect(),
            skip: dice.below(1000) as u32,
        },
        _ => Read::Estimate {
            index: name(dice),
            predicate: predicate(dice),
            ranges: (0..dice.below(4)).map(|_| range(dice)).collect(),
        },
    }
}

fn command(dice: &mut Dice) -> ReadCommand {
    let table = random_table(dice);
    ReadCommand {
        table: TableId(Uuid::from_u128(u128::from(dice.next_u64()))),
        schema_epoch: dice.next_u64(),
        ring_version: dice.next_u64(),
        time_left_micros: dice.next_u64(),
        applied: (0..dice.below(4))
            .map(|_| TabletPosition {
                tablet: dice.below(4096) as u32,
                offset: dice.next_u64(),
            })
            .collect(),
        rows_per_partition: dice.one_in(3).then(|| dice.below(9) as u32),
        page: PageSize {
            rows: dice.next_u64() as u32,
            bytes: dice.next_u64() as u32,
        },
        read: read(dice, &table),
    }
}

fn answer(dice: &mut Dice) -> Result<Answer, ReplicaError> {
    let places = |dice: &mut Dice| (0..dice.below(6)).map(|_| place(dice)).collect::<Vec<_>>();
    match dice.below(7) {
        0 => Ok(Answer::Partitions {
            partitions: bytes(dice),
            resume: dice.one_in(2).then(|| resume(dice)),
        }),
        1 => Ok(Answer::Candidates {
            places: places(dice),
            is_last: dice.one_in(2),
        }),
        2 => Ok(Answer::Ranked {
            places: places(dice).into_iter().map(|place| (place, 0.5)).collect(),
            is_last: dice.one_in(2),
        }),
        3 => Ok(Answer::Estimate(Estimate {
            rows: dice.next_u64(),
            files: dice.next_u64(),
        })),
        4 => Err(ReplicaError::Refused("it is no replica".to_owned())),
        5 => Err(ReplicaError::TimedOut),
        _ => Err(ReplicaError::Failed("a disk failed".to_owned())),
    }
}

#[test]
fn commands_and_answers_survive_their_bytes() {
    for seed in 0..3000 {
        let mut dice = Dice::new(seed);
        let command = command(&mut dice);
        assert_eq!(
            ReadCommand::decode(&command.encode().into()),
            Ok(command),
            "seed {seed}"
        );
        let answer = answer(&mut dice);
        assert_eq!(
            decode_answer(&encode_answer(&answer).into()),
            answer,
            "seed {seed}"
        );
    }
}

#[test]
fn messages_that_are_cut_or_longer_are_refused() {
    for seed in 0..300 {
        let mut dice = Dice::new(seed);
        let whole = command(&mut dice).encode();
        for end in 0..whole.len() {
            let cut = Bytes::copy_from_slice(&whole[..end]);
            assert!(ReadCommand::decode(&cut).is_err(), "seed {seed}, cut at {end}");
        }
        let longer = [whole.as_slice(), &[0]].concat();
        assert!(ReadCommand::decode(&longer.into()).is_err(), "seed {seed}");
        let whole = encode_answer(&answer(&mut dice));
        for end in 0..whole.len() {
            let cut = decode_answer(&Bytes::copy_from_slice(&whole[..end]));
            assert!(
                matches!(cut, Err(ReplicaError::Failed(_))),
                "seed {seed}, cut at {end}"
            );
        }
    }
}

#[test]
fn hostile_bytes_are_no_reason_to_panic() {
    let mut accepted = 0;
    for seed in 0..20_000 {
        let mut dice = Dice::new(seed);
        let is_command = dice.one_in(2);
        let mut hostile = match is_command {
            true => command(&mut dice).encode(),
            false => encode_answer(&answer(&mut dice)),
        };
        for _ in 0..1 + dice.below(4) {
            let at = dice.below(hostile.len());
            hostile[at] = *dice.pick(&[0, 1, 0x7F, 0x80, 0xFF, 0xF0, dice.clone().byte()]);
        }
        accepted += u32::from(match is_command {
            true => ReadCommand::decode(&hostile.into()).is_ok(),
            false => decode_answer(&hostile.into()).is_ok(),
        });
    }
    assert!(accepted > 0, "some changes make another message");
    // A count of 2^60 elements in a message of a few bytes.
    let mut huge = command(&mut Dice::new(1)).encode();
    huge.truncate(41);
    huge.extend([0xFF, 0x0F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]);
    assert!(ReadCommand::decode(&huge.into()).is_err());
}
