//! Random tables and mutations for property tests. They use every feature of the model, with small ranges of values so that
//! keys and timestamps collide. The same seed always gives the same data; a failing test prints its seed.

mod large;

use std::sync::Arc;

use bytes::Bytes;
use ilion_schema::{ClusteringOrder, Column, TableBuilder, TableId, TableSchema};
use ilion_types::{CqlType, Partitioner, UserType, Uuid};

use crate::{
    Bound, BoundKind, Cell, Clustering, ClusteringComparator, ColumnData, ComplexColumn, Data, DecoratedKey,
    DeletionTime, Liveness, Mutation, PartitionUpdate, RangeTombstone, Row, Values, counter, paths,
};

pub use large::enlarge;

/// All times of random data are near this second (since 1970).
pub const NOW_SECS: u32 = 1_700_000_000;

/// A sequence of numbers that depends only on its seed (SplitMix64).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Starts a sequence.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not zero.
    pub fn below(&mut self, end: usize) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "any number will do")]
        let number = self.next_u64() as usize;
        number % end
    }

    /// True with a probability of one in `sides`.
    pub fn one_in(&mut self, sides: usize) -> bool {
        self.below(sides) == 0
    }

    /// One of `choices`, which must not be empty.
    pub fn pick<'c, T>(&mut self, choices: &'c [T]) -> &'c T {
        &choices[self.below(choices.len())]
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        self.next_u64().to_be_bytes()[0]
    }
}

fn column_types() -> [CqlType; 9] {
    let (int, text) = (Arc::new(CqlType::Int), Arc::new(CqlType::Text));
    let definition = Arc::new(UserType {
        keyspace: "ks".to_owned(),
        name: "address".to_owned(),
        fields: vec![
            ("street".to_owned(), CqlType::Text),
            ("number".to_owned(), CqlType::Int),
            ("notes".to_owned(), CqlType::Blob),
        ],
    });
    [
        CqlType::Int,
        CqlType::Text,
        CqlType::Blob,
        CqlType::BigInt,
        CqlType::List {
            element: int.clone(),
            frozen: false,
        },
        CqlType::Set {
            element: text.clone(),
            frozen: false,
        },
        CqlType::Map {
            key: int.clone(),
            value: text,
            frozen: false,
        },
        CqlType::Udt {
            definition,
            frozen: false,
        },
        CqlType::List {
            element: int,
            frozen: true,
        },
    ]
}

/// A table of random shape: up to three clustering columns in either direction, sometimes static columns, collections, or
/// counters.
pub fn random_table(dice: &mut Dice) -> Arc<TableSchema> {
    let mut table = TableBuilder::new(
        "ks",
        "random",
        TableId(Uuid::from_u128(u128::from(dice.next_u64()))),
    )
    .partition_key("k", CqlType::Int);
    let clusterings = dice.below(4);
    for index in 0..clusterings {
        let ty = dice.pick(&[CqlType::Int, CqlType::Text]).clone();
        let order = *dice.pick(&[ClusteringOrder::Asc, ClusteringOrder::Desc]);
        table = table.clustering(format!("c{index}"), ty, order);
    }
    let counters = dice.one_in(5);
    let ty = |dice: &mut Dice| match counters {
        true => CqlType::Counter,
        false => dice.pick(&column_types()).clone(),
    };
    if clusterings > 0 {
        for index in 0..dice.below(3) {
            table = table.static_column(format!("s{index}"), ty(dice));
        }
    }
    // Names do not ascend with the ids; sometimes there are more columns than one 64-bit word has bits.
    let regulars = if dice.one_in(8) { 70 } else { 1 + dice.below(5) };
    for index in (0..regulars).rev() {
        table = table.regular(format!("r{index:02}"), ty(dice));
    }
    if counters {
        table.flags.push("counter".to_owned());
    }
    table.build()
}

/// A change to one of few partitions.
pub fn random_mutation(table: &Arc<TableSchema>, dice: &mut Dice) -> Mutation {
    #[expect(clippy::cast_possible_truncation, reason = "a handful")]
    let key = (dice.below(4) as u32).to_be_bytes();
    Mutation {
        table: table.clone(),
        key: DecoratedKey::new(Partitioner::Murmur3, Bytes::copy_from_slice(&key)),
        update: random_update(table, dice),
    }
}

/// A change to a partition.
pub fn random_update(table: &TableSchema, dice: &mut Dice) -> PartitionUpdate {
    let comparator = ClusteringComparator::of(table);
    let mut update = PartitionUpdate::default();
    if dice.one_in(12) {
        update.deletion = Some(random_deletion(dice));
    }
    if table.has_statics() && dice.one_in(3) {
        let statics: Vec<&Column> = table.statics().collect();
        update.static_row =
            Some(random_row(Clustering::empty(), &statics, false, dice)).filter(|row| !row.is_empty());
    }
    let regulars: Vec<&Column> = table.regulars().collect();
    for _ in 0..dice.below(5) {
        let clustering = random_clustering(table, dice);
        let row = random_row(clustering, &regulars, !table.is_counter(), dice);
        if !row.is_empty() {
            update.rows.push(row);
        }
    }
    update
        .rows
        .sort_by(|a, b| comparator.compare(&a.clustering, &b.clustering));
    update
        .rows
        .dedup_by(|a, b| comparator.compare(&a.clustering, &b.clustering).is_eq());
    if !comparator.is_empty() {
        for _ in 0..dice.below(6).saturating_sub(3) {
            update.ranges.extend(random_range(table, dice));
        }
    }
    update
}

/// A full clustering.
pub fn random_clustering(table: &TableSchema, dice: &mut Dice) -> Clustering {
    Clustering::of(table.clustering().map(|column| random_value(&column.ty, dice)))
}

fn random_row(clustering: Clustering, columns: &[&Column], may_be_inserted: bool, dice: &mut Dice) -> Row {
    let mut row = Row::empty(clustering);
    if may_be_inserted && dice.one_in(2) {
        row.liveness = random_liveness(dice);
    }
    if dice.one_in(8) {
        row.deletion = random_deletion(dice);
    }
    let all = dice.one_in(2);
    for column in columns {
        if all || dice.one_in(2) {
            row.columns.push(ColumnData {
                column: column.id,
                data: random_data(column, dice),
            });
        }
    }
    row.columns.sort_by_key(|entry| entry.column);
    // As on the write path: a row has no data that its own deletion covers.
    let deletion = row.deletion;
    row.shadow(deletion);
    row.deletion = deletion;
    row
}

fn random_data(column: &Column, dice: &mut Dice) -> Data {
    if !column.is_complex() {
        return Data::Simple(random_cell(&column.ty, dice));
    }
    let deletion = match dice.one_in(3) {
        true => random_deletion(dice),
        false => DeletionTime::LIVE,
    };
    let mut cells: Vec<(Bytes, Cell)> = (0..1 + dice.below(4))
        .map(|_| {
            let path = random_path(&column.ty, dice);
            let cell = match paths::value_type(&column.ty, &path) {
                Some(ty) => random_cell(ty, dice),
                None => random_cell(&CqlType::Empty, dice),
            };
            (path, cell)
        })
        .filter(|(_, cell)| !deletion.deletes(cell.timestamp_micros))
        .collect();
    cells.sort_by(|(a, _), (b, _)| paths::compare_paths(&column.ty, a, b));
    cells.dedup_by(|(a, _), (b, _)| a == b);
    if cells.is_empty() && deletion.is_live() {
        return random_data(column, dice);
    }
    Data::Complex(Box::new(ComplexColumn { deletion, cells }))
}

fn random_path(ty: &CqlType, dice: &mut Dice) -> Bytes {
    match ty {
        CqlType::List { .. } => {
            let uuid = ilion_types::time_uuid_from_ticks(dice.below(6) as u64, 1);
            Bytes::copy_from_slice(uuid.as_bytes())
        }
        CqlType::Set { element, .. } => random_value(element, dice),
        CqlType::Map { key, .. } => random_value(key, dice),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the user type above has three fields"
        )]
        _ => paths::field_path(dice.below(3) as u16),
    }
}

fn random_cell(ty: &CqlType, dice: &mut Dice) -> Cell {
    let micros = random_micros(dice);
    if dice.one_in(5) {
        return Cell::tombstone(micros, random_secs(dice));
    }
    if *ty == CqlType::Counter {
        let id = [1 + dice.byte() % 3; 16];
        let (clock, count) = (dice.below(5) as u64, dice.below(5) as u64);
        return Cell::live(
            micros,
            counter::global(id, clock.cast_signed(), count.cast_signed()),
        );
    }
    let value = random_value(ty, dice);
    match dice.one_in(4) {
        true => {
            let ttl_secs = *dice.pick(&[1, 60, 86_400]);
            Cell::expiring(micros, ttl_secs, random_secs(dice) + ttl_secs, value)
        }
        false => Cell::live(micros, value),
    }
}

fn random_value(ty: &CqlType, dice: &mut Dice) -> Bytes {
    #[expect(clippy::cast_possible_truncation, reason = "a handful")]
    let small = dice.below(6) as u32;
    match ty {
        CqlType::Int => Bytes::copy_from_slice(&small.to_be_bytes()),
        CqlType::BigInt => Bytes::copy_from_slice(&u64::from(small).to_be_bytes()),
        CqlType::Empty => Bytes::new(),
        CqlType::Text => Bytes::from("abcdef"[..small as usize].to_owned()),
        CqlType::List { element, .. } => {
            let only = random_value(element, dice);
            Bytes::from(ilion_types::encode_list([&only[..]]))
        }
        _ => Bytes::from(vec![0xAB; small as usize * 40]),
    }
}

/// One of a few timestamps, so that ties happen; rarely an extreme one.
fn random_micros(dice: &mut Dice) -> i64 {
    match dice.below(200) {
        0 => i64::MAX,
        1 => i64::MIN + 1,
        2 => 0,
        _ => i64::from(NOW_SECS) * 1_000_000 + (dice.below(12) as u64).cast_signed(),
    }
}

fn random_secs(dice: &mut Dice) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "a handful")]
    let after = dice.below(4) as u32;
    NOW_SECS + after
}

fn random_deletion(dice: &mut Dice) -> DeletionTime {
    DeletionTime::new(random_micros(dice), random_secs(dice))
}

fn random_liveness(dice: &mut Dice) -> Liveness {
    match dice.one_in(4) {
        true => Liveness::expiring(random_micros(dice), 60, random_secs(dice) + 60),
        false => Liveness::live(random_micros(dice)),
    }
}

/// A range with bounds at random prefixes and of random kinds; `None` if the start is not before the end.
pub fn random_range(table: &TableSchema, dice: &mut Dice) -> Option<RangeTombstone> {
    let comparator = ClusteringComparator::of(table);
    let start = random_bound(table, &[BoundKind::InclStart, BoundKind::ExclStart], dice);
    let end = random_bound(table, &[BoundKind::InclEnd, BoundKind::ExclEnd], dice);
    let deletion = random_deletion(dice);
    let range = RangeTombstone { start, end, deletion };
    comparator
        .compare_bounds(&range.start, &range.end)
        .is_lt()
        .then_some(range)
}

/// A bound of one of `kinds` at a random prefix.
pub fn random_bound(table: &TableSchema, kinds: &[BoundKind], dice: &mut Dice) -> Bound {
    let count = dice.below(table.clustering().len() + 1);
    let values: Values = table
        .clustering()
        .take(count)
        .map(|column| Some(random_value(&column.ty, dice)))
        .collect();
    Bound::new(*dice.pick(kinds), values)
}
