//! Tests that all ways of encoding a row give the same bytes and statistics.

use bytes::Bytes;
use ilion_rows::notation::parse_table;
use ilion_rows::{Cell, Clustering, ClusteringComparator, ColumnData, Data};
use ilion_schema::{ColumnId, TableSchema};

use super::*;

const PREVIOUS_SIZE: u64 = 300;
const WRITTEN_MICROS: i64 = 1_000;

/// Bytes and statistics of an encoded row.
type Stored = (Vec<u8>, String);

fn encoder(table: &TableSchema) -> RowEncoder {
    RowEncoder::new(table, EncodingStats::NONE, Version::NB)
}

fn collector() -> MetadataCollector {
    MetadataCollector::new(ClusteringComparator::new([]))
}

fn statistics_text(mut stats: MetadataCollector) -> String {
    stats.end_partition(b"k", 1);
    format!("{:?}", stats.finish((Bytes::new(), Bytes::new())))
}

/// What a way of encoding writes into a buffer of `room` bytes; `None` if it leaves the row to another way, and then changes
/// neither buffer nor statistics.
fn stored(
    room: usize,
    encode: impl FnOnce(&mut MetadataCollector, &mut Slab) -> Option<Range<usize>>,
) -> Option<Stored> {
    let (mut stats, mut out) = (collector(), Slab::with_capacity(room));
    if encode(&mut stats, &mut out).is_none() {
        assert!(out.is_empty(), "something was appended");
        assert_eq!(
            format!("{stats:?}"),
            format!("{:?}", collector()),
            "something was statistics_text"
        );
        return None;
    }
    Some((out.as_slice().to_vec(), statistics_text(stats)))
}

/// The general way, with a separate body. `None` for an empty row.
fn long(encoder: &mut RowEncoder, row: &Row) -> Option<Stored> {
    if encoder.fit(row).unwrap() == Fit::Blank {
        return None;
    }
    let (mut stats, mut out) = (collector(), Slab::default());
    encoder
        .encode_long(row, PREVIOUS_SIZE, &mut stats, &mut out)
        .unwrap();
    let body = encoder.body().pieces().collect::<Vec<_>>().concat();
    Some(([out.as_slice(), &body].concat(), statistics_text(stats)))
}

/// The general way, in place.
fn short(encoder: &mut RowEncoder, row: &Row) -> Option<Stored> {
    stored(0, |stats, out| {
        encoder.encode_if_short(row, PREVIOUS_SIZE, stats, out).unwrap()
    })
}

/// A plain row that was written at [`WRITTEN_MICROS`].
struct Seen<'r> {
    clustering: Vec<Option<&'r [u8]>>,
    cells: Vec<(ColumnId, &'r [u8])>,
    stored: Option<Vec<u8>>,
}

impl<'r> Seen<'r> {
    fn of(row: &'r Row) -> Option<Self> {
        let cells = row.columns.iter().map(|entry| match &entry.data {
            Data::Simple(cell) if *cell == Cell::live(WRITTEN_MICROS, cell.value.clone()) => {
                Some((entry.column, &cell.value[..]))
            }
            _ => None,
        });
        let is_at_once = row.liveness == Liveness::live(WRITTEN_MICROS) && row.deletion.is_live();
        let clustering = row.clustering.values().iter();
        Some(Self {
            clustering: clustering.map(Option::as_deref).collect(),
            cells: cells.collect::<Option<_>>().filter(|_| is_at_once)?,
            stored: None,
        })
    }

    /// The same row as it comes from an SSTable, with its stored cells.
    fn with_stored_cells(self, encoder: &mut RowEncoder, row: &Row) -> Option<Self> {
        encoder.fit(row).unwrap();
        if !encoder.regulars.has_chosen_all() {
            return None;
        }
        encode_body(
            row,
            flags_of(row, &encoder.regulars),
            &encoder.regulars,
            &encoder.times,
            &mut collector(),
            &mut encoder.body,
        )
        .unwrap();
        let before = encoder.body.before_columns().len();
        let stored = encoder.body.as_slice()?[before..].to_vec();
        Some(Self {
            stored: Some(stored),
            ..self
        })
    }

    fn encode(&self, encoder: &mut RowEncoder, is_usual: bool, room: usize) -> Option<Stored> {
        let row = PlainRow {
            key: &[],
            token: None,
            clustering: &self.clustering,
            timestamp_micros: Some(WRITTEN_MICROS),
            cells: &self.cells,
            stored: self.stored.as_deref(),
        };
        stored(room, |stats, out| match is_usual {
            true => encoder.encode_usual_seen(&row, WRITTEN_MICROS, PREVIOUS_SIZE, stats, out),
            false => encoder
                .encode_seen(&row, WRITTEN_MICROS, PREVIOUS_SIZE, stats, out)
                .unwrap(),
        })
    }
}

/// Number of rows that each way has encoded.
#[derive(Debug, Default)]
struct Taken {
    short: u32,
    usual: u32,
    seen: u32,
    usually_seen: u32,
    from_sstable: u32,
}

/// Encodes a row in every way that accepts it.
fn check(encoder: &mut RowEncoder, row: &Row, taken: &mut Taken) {
    let expected = long(encoder, row);
    let agrees = |way: &mut u32, found: Option<Stored>| {
        if let Some(found) = found {
            assert_eq!(Some(found), expected, "{row:?}");
            *way += 1;
        }
    };
    agrees(&mut taken.short, short(encoder, row));
    let len = expected.as_ref().map_or(0, |(bytes, _)| bytes.len());
    // With too little space, the fast way refuses a row.
    for room in [0, 1, 7, 30, len.saturating_sub(1), len, len + 9, 1 << 14] {
        let usual = stored(room, |stats, out| {
            encoder.encode_usual(row, PREVIOUS_SIZE, stats, out)
        });
        agrees(&mut taken.usual, usual);
        let Some(seen) = Seen::of(row) else {
            continue;
        };
        agrees(&mut taken.seen, seen.encode(encoder, false, room));
        agrees(&mut taken.usually_seen, seen.encode(encoder, true, room));
        if let Some(seen) = seen.with_stored_cells(encoder, row) {
            agrees(&mut taken.from_sstable, seen.encode(encoder, true, room));
        }
    }
}

fn value(len: usize) -> Bytes {
    Bytes::from(vec![7; len])
}

fn simple(column: ColumnId, cell: Cell) -> ColumnData {
    let data = Data::Simple(cell);
    ColumnData { column, data }
}

#[test]
fn every_way_encodes_a_row_to_the_same_bytes() {
    let cells = [
        None,
        Some(Cell::live(WRITTEN_MICROS, value(34))),
        Some(Cell::live(WRITTEN_MICROS, value(0))),
        Some(Cell::live(WRITTEN_MICROS, value(LARGE_VALUE_BYTES))),
        Some(Cell::live(2_000_000, value(200))),
        Some(Cell::expiring(WRITTEN_MICROS, 60, 5_000, value(3))),
        Some(Cell::expiring(WRITTEN_MICROS, 61, 5_000, value(3))),
        Some(Cell::tombstone(999, 77)),
    ];
    let livenesses = [
        Liveness::NONE,
        Liveness::live(WRITTEN_MICROS),
        Liveness::expiring(WRITTEN_MICROS, 60, 5_000),
    ];
    let mut taken = Taken::default();
    for (table, clusterings) in [
        ("k int pk, a text, b blob, c text", vec![Clustering::empty()]),
        (
            "k int pk, x text ck, a text, b blob, c text",
            vec![Clustering::of([value(5)]), Clustering::of([value(0)])],
        ),
    ] {
        let table = parse_table(table).unwrap();
        let mut encoder = encoder(&table);
        let ids: Vec<_> = table.regulars().map(|column| column.id).collect();
        for number in 0..cells.len().pow(3) {
            let columns = ids.iter().zip(0..).filter_map(|(id, place)| {
                let cell = &cells[number / cells.len().pow(place) % cells.len()];
                Some(simple(*id, cell.clone()?))
            });
            let columns: Vec<_> = columns.collect();
            for (liveness, clustering) in livenesses
                .iter()
                .flat_map(|liveness| clusterings.iter().map(move |clustering| (liveness, clustering)))
            {
                let row = Row {
                    liveness: *liveness,
                    columns: columns.clone(),
                    ..Row::empty(clustering.clone())
                };
                check(&mut encoder, &row, &mut taken);
            }
        }
    }
    let Taken {
        short,
        usual,
        seen,
        usually_seen,
        from_sstable,
    } = taken;
    let least = [short, usual, seen, usually_seen, from_sstable].into_iter().min();
    assert!(least > Some(0), "{taken:?}");
}

#[test]
fn rows_with_deletions_and_collections_are_encoded_alike_whether_short_or_long() {
    let table = parse_table("k int pk, a int, s set<int>, m map<int, text>").unwrap();
    let mut encoder = encoder(&table);
    let id = |name: &str| table.column_named(name).unwrap().id;
    let complex = |deletion: DeletionTime, count: u8| {
        let cells = (0..count).map(|path| {
            let cell = Cell::live(WRITTEN_MICROS + i64::from(path % 2), value(usize::from(path)));
            (Bytes::copy_from_slice(&[0, 0, 0, path]), cell)
        });
        Data::Complex(Box::new(ComplexColumn {
            deletion,
            cells: cells.collect(),
        }))
    };
    let deletions = [DeletionTime::LIVE, DeletionTime::new(5, 6)];
    let mut taken = Taken::default();
    for number in 0..64 {
        let bit = |place: u32| number >> place & 1 == 1;
        let of = |has: bool| deletions[usize::from(has)];
        let mut row = Row::empty(Clustering::empty());
        row.deletion = of(bit(0));
        if bit(1) {
            row.liveness = Liveness::live(WRITTEN_MICROS);
        }
        if bit(2) {
            row.columns
                .push(simple(id("a"), Cell::live(WRITTEN_MICROS, value(4))));
        }
        for (place, name, count) in [(3, "m", 20), (4, "s", 3)] {
            if bit(place) {
                row.columns.push(ColumnData {
                    column: id(name),
                    data: complex(of(bit(5)), count),
                });
            }
        }
        row.columns.sort_by_key(|entry| entry.column);
        check(&mut encoder, &row, &mut taken);
    }
    assert!(taken.short > 0 && taken.usual == 0, "{taken:?}");
}

#[test]
fn rows_of_many_columns_are_long_and_large_values_are_shared() {
    let columns: Vec<_> = (0..70).map(|number| format!("c{number:02} text")).collect();
    let table = parse_table(&format!("k int pk, {}", columns.join(", "))).unwrap();
    let mut encoder = encoder(&table);
    let mut row = Row::empty(Clustering::empty());
    row.liveness = Liveness::live(WRITTEN_MICROS);
    let large = value(LARGE_VALUE_BYTES);
    let columns = table.regulars();
    row.columns = columns
        .map(|column| simple(column.id, Cell::live(WRITTEN_MICROS, large.clone())))
        .collect();
    assert_eq!(encoder.fit(&row).unwrap(), Fit::Long);
    assert!(short(&mut encoder, &row).is_none());
    long(&mut encoder, &row).unwrap();
    let pieces = encoder.body().pieces();
    let shared = pieces.filter(|piece| piece.as_ptr() == large.as_ptr());
    assert_eq!(shared.count(), 70);
}

#[test]
fn what_cannot_be_read_back_is_not_stored() {
    let table = parse_table("k int pk, a int, b blob").unwrap();
    let mut encoder = encoder(&table);
    let id = |name: &str| table.column_named(name).unwrap().id;
    let live = |name: &str, len: usize| simple(id(name), Cell::live(WRITTEN_MICROS, value(len)));
    let mut refused = |clustering: Clustering, columns: Vec<ColumnData>| {
        let row = Row {
            liveness: Liveness::live(WRITTEN_MICROS),
            columns,
            ..Row::empty(clustering)
        };
        let usual = stored(1 << 14, |stats, out| {
            encoder.encode_usual(&row, PREVIOUS_SIZE, stats, out)
        });
        assert_eq!(usual, None, "the fast way leaves it to the careful one");
        let (mut stats, mut out) = (collector(), Slab::default());
        encoder
            .encode_row(&row, PREVIOUS_SIZE, &mut stats, &mut out)
            .unwrap_err()
    };
    let complex = Data::Complex(Box::new(ComplexColumn {
        deletion: DeletionTime::new(1, 1),
        cells: Vec::new(),
    }));
    let column = id("b");
    let many = ColumnData {
        column,
        data: complex,
    };
    let unknown = simple(ColumnId(200), Cell::live(WRITTEN_MICROS, value(1)));
    let none = Clustering::empty();
    for (columns, expected) in [
        (vec![live("a", 5), live("b", 1)], Unstorable::WrongLength),
        (vec![live("b", 1), live("b", 1)], Unstorable::TwoOfAColumn),
        (vec![live("a", 4), many], Unstorable::WrongShape),
        (vec![live("a", 4), unknown], Unstorable::UnknownColumn),
    ] {
        assert_eq!(refused(none.clone(), columns), expected);
    }
    let excess = Clustering::of([value(1)]);
    assert_eq!(refused(excess, Vec::new()), Unstorable::PartialClustering);
}
