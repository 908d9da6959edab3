//! Tests of the token map: what an SSTable reads with it and without, and the handling of a damaged one.

use std::path::Path;
use std::sync::Arc;

use crate::support::{read_all, write_partition};
use bytes::Bytes;
use ilion_codec::{Reader, Writer};
use ilion_env::FileKind;
use ilion_env::account::{begin_trace, finish_trace};
use ilion_env::{Env, MemEnv};
use ilion_rows::notation::parse_table;
use ilion_rows::{
    Bound, BoundKind, Cell, Clustering, ClusteringComparator, ClusteringFilter, ColumnData, Data,
    DecoratedKey, KeyBound, KeyRange, Liveness, Partition, PartitionUpdate, Row, Slice, Unfiltered,
};
use ilion_schema::TableSchema;
use ilion_sstable::verify::verify;
use ilion_sstable::{
    ChunkCache, Component, Descriptor, Error, Finding, Format, IndexForm, KeyCache, OpenOptions, SSTable,
    SSTableId, SSTableWriter, SavedPlace, Scan, Version, WriterOptions,
};
use ilion_types::{Partitioner, Token};

struct Case {
    mem: MemEnv,
    env: Arc<dyn Env>,
    table: Arc<TableSchema>,
    descriptor: Descriptor,
    partitioner: Partitioner,
    keys: Vec<DecoratedKey>,
}

/// For every version and partitioner: 1500 partitions, some with a row index.
fn cases() -> impl Iterator<Item = Case> {
    let versions = [Version::NB, Version::OA, Version::DA];
    let partitioners = [
        Partitioner::Murmur3,
        Partitioner::ByteOrdered,
        Partitioner::Random,
    ];
    versions
        .into_iter()
        .zip(partitioners)
        .chain([(Version::DA, Partitioner::Murmur3)])
        .map(|(version, partitioner)| Case::write(version, partitioner, true))
}

impl Case {
    fn write(version: Version, partitioner: Partitioner, writes_token_map: bool) -> Self {
        let table = parse_table("k text pk, c int ck, v text").unwrap();
        let mem = MemEnv::new(1);
        let env = mem.shared();
        env.create_dir_all(Path::new("ks/t")).unwrap();
        let format = if version == Version::DA {
            Format::Bti
        } else {
            Format::Big
        };
        let descriptor = Descriptor::new(Path::new("ks/t"), version, SSTableId::Sequence(3), format);
        let mut keys: Vec<DecoratedKey> = (0..1500_u32)
            .map(|number| {
                let key = format!("user:{:06}", number * 2);
                DecoratedKey::new(partitioner, Bytes::from(key))
            })
            .collect();
        keys.sort();
        let options = WriterOptions {
            partitioner,
            column_index_bytes: Some(200),
            writes_token_map,
            ..WriterOptions::default()
        };
        let mut writer = SSTableWriter::new(&env, &descriptor, &table, options).unwrap();
        let comparator = ClusteringComparator::of(&table);
        let mut written = Vec::new();
        for (number, key) in keys.into_iter().enumerate() {
            let rows = if number % 20 == 0 {
                60
            } else {
                1 + number as i32 % 3
            };
            let update = PartitionUpdate {
                rows: (0..rows).map(|row| row_of(&table, row)).collect(),
                ..PartitionUpdate::default()
            };
            write_partition(&mut writer, &Partition::of(key.clone(), update, &comparator));
            written.push(key);
        }
        writer.finish().unwrap();
        Self {
            mem,
            env,
            table,
            descriptor,
            partitioner,
            keys: written,
        }
    }

    fn open(&self, finding: Finding) -> Arc<SSTable> {
        Arc::new(self.try_open(finding).unwrap())
    }

    fn try_open(&self, finding: Finding) -> Result<SSTable, Error> {
        let options = OpenOptions {
            partitioner: self.partitioner,
            chunk_cache: Some(Arc::new(ChunkCache::new(1 << 22))),
            finding,
            ..OpenOptions::default()
        };
        SSTable::open(&self.env, &self.descriptor, &options)
    }

    fn tokens_path(&self) -> std::path::PathBuf {
        self.descriptor.path(&Component::Tokens)
    }
}

fn row_of(table: &TableSchema, number: i32) -> Row {
    let column = table.column_named("v").unwrap().id;
    Row {
        liveness: Liveness::live(1),
        columns: vec![ColumnData {
            column,
            data: Data::Simple(Cell::live(
                1,
                Bytes::from(format!("value {number} of some length")),
            )),
        }],
        ..Row::empty(Clustering::of([Bytes::copy_from_slice(&number.to_be_bytes())]))
    }
}

fn all_rows() -> Arc<ClusteringFilter> {
    Arc::new(ClusteringFilter::all())
}

/// The kinds of files that `work` read.
fn kinds_read(work: impl FnOnce()) -> Vec<FileKind> {
    begin_trace();
    work();
    let mut kinds: Vec<FileKind> = finish_trace()
        .iter()
        .map(|event| FileKind::of(&event.path))
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

fn partition(
    case: &Case,
    sstable: &Arc<SSTable>,
    key: &DecoratedKey,
    filter: &Arc<ClusteringFilter>,
) -> Vec<Partition> {
    let cursor = sstable.partition(&case.table, key, filter).unwrap();
    cursor.map(|mut cursor| read_all(&mut cursor)).unwrap_or_default()
}

fn range(case: &Case, sstable: &Arc<SSTable>, range: KeyRange) -> Vec<Partition> {
    read_all(&mut sstable.cursor(&case.table, range, all_rows(), Scan::Point))
}

/// The key of a missing partition.
fn absent(case: &Case, number: u32) -> DecoratedKey {
    DecoratedKey::new(
        case.partitioner,
        Bytes::from(format!("user:{:06}", number * 2 + 1)),
    )
}

#[test]
fn opening_reads_statistics_the_compressor_and_the_end_of_the_token_map() {
    for case in cases() {
        begin_trace();
        let sstable = case.open(Finding::TokenMap);
        let events = finish_trace();
        assert!(events.len() <= 4, "{events:?}");
        let kinds = [FileKind::Statistics, FileKind::CompressionInfo, FileKind::Tokens];
        assert!(
            events
                .iter()
                .all(|event| kinds.contains(&FileKind::of(&event.path))),
            "{events:?}"
        );
        assert_eq!(sstable.estimated_keys(), case.keys.len() as u64);
        assert_eq!(
            (sstable.first_key(), sstable.last_key()),
            (&case.keys[0], &case.keys[case.keys.len() - 1])
        );
    }
}

#[test]
fn a_compressor_that_is_not_known_is_refused_at_the_start() {
    for case in cases() {
        let path = case.descriptor.path(&Component::CompressionInfo);
        let mut bytes = case.env.read_all(&path, 1 << 20).unwrap();
        let class = bytes.windows(10).position(|name| name == b"Compressor").unwrap();
        bytes[class..class + 10].copy_from_slice(b"Compressed");
        let mut file = case.env.create_or_truncate(&path).unwrap();
        file.append(&bytes).unwrap();
        let refused = case.try_open(Finding::TokenMap).unwrap_err().to_string();
        assert!(refused.starts_with(&path.display().to_string()), "{refused}");
        assert!(
            refused.contains("unknown compression class") && refused.contains("Compressed"),
            "{refused}"
        );
    }
}

#[test]
fn a_partition_is_found_without_index_and_filter() {
    for case in cases() {
        let (by_map, by_index) = (case.open(Finding::TokenMap), case.open(Finding::Summary));
        for key in case.keys.iter().step_by(7) {
            let expected = partition(&case, &by_index, key, &all_rows());
            let read = kinds_read(|| assert_eq!(partition(&case, &by_map, key, &all_rows()), expected));
            assert_eq!(expected.len(), 1);
            assert!(
                !read.contains(&FileKind::Index) && !read.contains(&FileKind::Filter),
                "{read:?}"
            );
        }
        for number in (0..1500).step_by(7) {
            assert!(partition(&case, &by_map, &absent(&case, number), &all_rows()).is_empty());
        }
        let counts = by_map_counts(&case);
        assert!(
            counts < 40 || case.partitioner == Partitioner::ByteOrdered,
            "{counts} looked alike"
        );
    }
}

/// How many of 1500 missing keys the token map lets pass.
fn by_map_counts(case: &Case) -> usize {
    let sstable = case.open(Finding::TokenMap);
    (0..1500)
        .filter(|number| sstable.may_have(&absent(case, *number)))
        .count()
}

#[test]
fn the_row_index_of_a_wide_partition_is_found() {
    let mut wide = 0;
    for case in cases() {
        let (by_map, by_index) = (case.open(Finding::TokenMap), case.open(Finding::Summary));
        for key in &case.keys {
            let whole = partition(&case, &by_index, key, &all_rows());
            let unfiltereds = &whole[0].unfiltereds;
            let Some(Unfiltered::Row(row)) = unfiltereds.get(unfiltereds.len() / 2) else {
                continue;
            };
            let mut slice = Slice::all();
            slice.start = Bound::new(BoundKind::InclStart, row.clustering.values().clone());
            let filter = Arc::new(ClusteringFilter {
                slices: vec![slice],
                reversed: unfiltereds.len().is_multiple_of(2),
                ..ClusteringFilter::all()
            });
            let expected = partition(&case, &by_index, key, &filter);
            let read = kinds_read(|| assert_eq!(partition(&case, &by_map, key, &filter), expected));
            wide += usize::from(read.contains(&FileKind::Index));
        }
    }
    assert!(wide > 5, "{wide} partitions with a row index");
}

#[test]
fn a_range_begins_where_the_token_map_says_without_index() {
    for case in cases() {
        let (by_map, by_index) = (case.open(Finding::TokenMap), case.open(Finding::Summary));
        for at in (0..case.keys.len()).step_by(60) {
            let key = &case.keys[at];
            let starts = [
                KeyBound::Before(key.clone()),
                KeyBound::After(key.clone()),
                KeyBound::BeforeToken(key.token.clone()),
                KeyBound::AfterToken(key.token.clone()),
            ];
            for start in starts {
                let wanted = KeyRange {
                    start,
                    end: KeyBound::AfterToken(case.keys[(at + 5).min(case.keys.len() - 1)].token.clone()),
                };
                let expected = range(&case, &by_index, wanted.clone());
                let read = kinds_read(|| assert_eq!(range(&case, &by_map, wanted.clone()), expected));
                assert!(!read.contains(&FileKind::Index), "{read:?}");
                let bound = by_map.lower_bound(&wanted);
                match expected.first() {
                    Some(first) => assert!(bound.unwrap() <= first.head.key),
                    None => assert!(bound.is_none() || case.partitioner == Partitioner::ByteOrdered),
                }
            }
        }
    }
}

#[test]
fn a_range_between_two_partitions_is_known_to_be_empty() {
    let case = Case::write(Version::NB, Partitioner::Murmur3, true);
    let sstable = case.open(Finding::TokenMap);
    let token = |at: usize| case.keys[at].token.murmur3().unwrap();
    let mut empty = 0;
    for at in 0..case.keys.len() - 1 {
        let quarter = token(at + 1) / 4 - token(at) / 4;
        let between = KeyRange {
            start: KeyBound::AfterToken(Token::Murmur3(token(at) + quarter)),
            end: KeyBound::BeforeToken(Token::Murmur3(token(at) + 2 * quarter)),
        };
        empty += usize::from(sstable.lower_bound(&between).is_none());
    }
    assert!(
        empty * 100 > case.keys.len() * 95,
        "{empty} of {}",
        case.keys.len()
    );
}

#[test]
fn a_map_made_from_the_index_is_the_one_that_is_written_with_the_sstable() {
    for case in cases() {
        let written = case.env.read_all(&case.tokens_path(), 1 << 30).unwrap();
        case.env.remove_file(&case.tokens_path()).unwrap();
        let sstable = case.open(Finding::TokenMap);
        assert!(sstable.wants_token_map());
        // When stopped, it leaves no file.
        let is_stopped = !sstable.make_token_map(&mut || false).unwrap();
        assert!(!is_stopped || !case.env.exists(&case.tokens_path()));
        assert!(sstable.make_token_map(&mut || true).unwrap());
        assert!(!sstable.wants_token_map());
        assert_eq!(case.env.read_all(&case.tokens_path(), 1 << 30).unwrap(), written);
        let entries = case.env.list(&case.descriptor.directory).unwrap();
        assert!(entries.iter().all(|entry| !entry.name.ends_with(".tmp")));
    }
}

#[test]
fn a_damaged_map_is_dropped_and_the_index_answers() {
    for case in cases() {
        let whole = range(&case, &case.open(Finding::Summary), KeyRange::all());
        let size = case.env.file_size(&case.tokens_path()).unwrap();
        let mut dropped = 0;
        for at in (0..size).step_by(size as usize / 40) {
            case.mem.corrupt_byte(&case.tokens_path(), at, 0x10).unwrap();
            let sstable = case.open(Finding::TokenMap);
            for expected in whole.iter().step_by(31) {
                let key = &expected.head.key;
                let found = partition(&case, &sstable, key, &all_rows());
                assert_eq!(found.first(), Some(expected));
            }
            assert_eq!(range(&case, &sstable, KeyRange::all()), whole);
            if sstable.wants_token_map() {
                dropped += 1;
                assert!(sstable.make_token_map(&mut || true).unwrap());
                assert!(!case.open(Finding::TokenMap).wants_token_map());
            } else {
                case.mem.corrupt_byte(&case.tokens_path(), at, 0x10).unwrap();
            }
        }
        assert!(dropped > 20, "{dropped}");
    }
}

#[test]
fn the_key_cache_remembers_what_the_index_was_asked_for() {
    for case in cases() {
        let table = case.table.id;
        let cache = Arc::new(KeyCache::new(1 << 20));
        let open = |finding| {
            let options = OpenOptions {
                partitioner: case.partitioner,
                finding,
                key_cache: Some((table, cache.clone())),
                ..OpenOptions::default()
            };
            Arc::new(SSTable::open(&case.env, &case.descriptor, &options).unwrap())
        };
        let sstable = open(Finding::Summary);
        let (known, loaded) = (&case.keys[700], &case.keys[900]);
        let expected = partition(&case, &sstable, known, &all_rows());
        assert!(sstable.load_key(loaded).unwrap());
        assert!(!sstable.load_key(&absent(&case, 3)).unwrap());
        for key in [known, loaded] {
            let read = kinds_read(|| assert_eq!(partition(&case, &sstable, key, &all_rows()).len(), 1));
            assert!(!read.contains(&FileKind::Index), "{read:?}");
        }
        assert_eq!(partition(&case, &sstable, known, &all_rows()), expected);
        assert_eq!((cache.hits(), cache.misses(), cache.entry_count()), (3, 1, 2));
        let mut keys: Vec<_> = cache.keys(10).into_iter().map(|cached| cached.key).collect();
        keys.sort();
        let mut both = [known.key.clone(), loaded.key.clone()];
        both.sort();
        assert_eq!(keys, both);
        assert_eq!(cache.keys(1).len(), 1);
        assert_eq!(cache.keys(1)[0].descriptor, case.descriptor);
        drop(sstable);
        assert_eq!(cache.keys(10), []);
        // Lookups with a token map do not use the key cache.
        let sstable = open(Finding::TokenMap);
        assert!(!sstable.load_key(known).unwrap());
        assert_eq!(partition(&case, &sstable, known, &all_rows()), expected);
        assert_eq!(cache.hits() + cache.misses(), 4);
    }
}

/// The key cache's entries of an SSTable, in their saved form.
fn saved_places(cache: &KeyCache, sstable: &SSTable) -> Vec<(Bytes, SavedPlace)> {
    let header = sstable.header();
    let types = header.clustering_types.iter().map(|class| &class.ty);
    let form = IndexForm::of(sstable.descriptor().version, types);
    let cached = cache.keys(usize::MAX).into_iter();
    let saved = cached.filter_map(|cached| {
        let mut out = Writer::new();
        let is_saved = sstable.save_place(&cached, &mut out).unwrap();
        assert_eq!(is_saved, !out.is_empty());
        out.bytes(b"junk");
        let mut input = Reader::new(out.as_slice());
        let place = is_saved.then(|| SavedPlace::decode(&mut input, &form).unwrap());
        assert_eq!(input.rest(), b"junk");
        place.map(|place| (cached.key, place))
    });
    saved.collect()
}

#[test]
fn places_that_were_saved_are_used_without_asking_the_index_and_never_believed_blindly() {
    for case in cases().filter(|case| case.descriptor.format == Format::Big) {
        let open = || {
            let cache = Arc::new(KeyCache::new(1 << 20));
            let options = OpenOptions {
                partitioner: case.partitioner,
                finding: Finding::Summary,
                key_cache: Some((case.table.id, cache.clone())),
                ..OpenOptions::default()
            };
            (
                Arc::new(SSTable::open(&case.env, &case.descriptor, &options).unwrap()),
                cache,
            )
        };
        let (sstable, cache) = open();
        // The first has a row index, the second has none.
        let (wide, narrow) = (&case.keys[40], &case.keys[41]);
        let slice = Arc::new(ClusteringFilter {
            slices: vec![Slice::exactly(&Clustering::of([Bytes::copy_from_slice(
                &50_i32.to_be_bytes(),
            )]))],
            ..ClusteringFilter::all()
        });
        let expected = [wide, narrow].map(|key| {
            let whole = partition(&case, &sstable, key, &all_rows());
            (whole, partition(&case, &sstable, key, &slice))
        });
        let saved = saved_places(&cache, &sstable);
        assert_eq!(saved.len(), 2);
        let (again, cache) = open();
        for (key, place) in &saved {
            let key = DecoratedKey::new(case.partitioner, key.clone());
            assert!(again.load_place(&key, *place).unwrap());
        }
        // Saved before it was checked: the same.
        let by_key = |mut places: Vec<(Bytes, SavedPlace)>| {
            places.sort_by(|a, b| a.0.cmp(&b.0));
            places
        };
        assert_eq!(by_key(saved_places(&cache, &again)), by_key(saved.clone()));
        let read = kinds_read(|| {
            assert_eq!(partition(&case, &again, narrow, &all_rows()), expected[1].0);
        });
        assert!(!read.contains(&FileKind::Index), "{read:?}");
        for (key, expected) in [wide, narrow].into_iter().zip(&expected) {
            assert_eq!(partition(&case, &again, key, &slice), expected.1);
            assert_eq!(partition(&case, &again, key, &all_rows()), expected.0);
        }
        assert_eq!((cache.hits(), cache.misses()), (5, 0));
        // From another file of the same name, which has another partition at this position.
        for (key, place) in [(wide, saved[0].1), (narrow, saved[1].1)]
            .into_iter()
            .flat_map(|(key, place)| wrong(place).map(|place| (key, place)))
        {
            let (other, cache) = open();
            assert!(other.load_place(key, place).unwrap());
            assert_eq!(
                partition(&case, &other, key, &slice),
                partition(&case, &sstable, key, &slice)
            );
            assert_eq!(cache.entry_count(), 1, "the right place is known now");
            assert_eq!(
                partition(&case, &other, key, &slice),
                partition(&case, &sstable, key, &slice)
            );
            assert_eq!(cache.hits(), 2);
        }
        let far = SavedPlace::NotIndexed { position: 1 << 40 };
        assert!(!again.load_place(wide, far).unwrap());
    }
}

fn wrong(place: SavedPlace) -> [SavedPlace; 3] {
    let (SavedPlace::NotIndexed { position }
    | SavedPlace::Indexed { position }
    | SavedPlace::Entry { position, .. }) = place;
    [
        SavedPlace::NotIndexed {
            position: position + 1,
        },
        SavedPlace::Entry {
            position,
            entry_at: 1000,
        },
        SavedPlace::Entry {
            position: 7,
            entry_at: 1 << 40,
        },
    ]
}

#[test]
fn a_summary_that_is_thinned_out_finds_all_and_can_be_filled_up_again() {
    let case = Case::write(Version::NB, Partitioner::Murmur3, true);
    assert_eq!(case.open(Finding::TokenMap).take_summary_share(), None);
    let sstable = case.open(Finding::Summary);
    let whole = sstable.take_summary_share().unwrap();
    assert_eq!((whole.level, whole.bytes), (128, whole.full_bytes));
    let mut before = whole.bytes;
    for level in [64, 16, 1] {
        sstable.resample_summary(level).unwrap();
        let share = sstable.take_summary_share().unwrap();
        assert_eq!(share.level, level);
        assert!(share.bytes < before || level == 1, "{share:?}");
        before = share.bytes;
        for key in case.keys.iter().step_by(11) {
            assert_eq!(partition(&case, &sstable, key, &all_rows()).len(), 1);
        }
        assert_eq!(sstable.take_summary_share().unwrap().lookups, 137);
    }
    assert_eq!(range(&case, &sstable, KeyRange::all()).len(), case.keys.len());
    sstable.resample_summary(128).unwrap();
    assert_eq!(sstable.take_summary_share().unwrap(), whole);
}

#[test]
fn verify_finds_every_damaged_byte_of_a_token_map() {
    let case = Case::write(Version::NB, Partitioner::Murmur3, true);
    let verified = || verify(&*case.env, &case.descriptor, &mut |_| {}).unwrap();
    let whole = verified();
    assert!(whole.findings.is_empty(), "{:?}", whole.findings);
    let size = case.env.file_size(&case.tokens_path()).unwrap();
    for at in (0..size).step_by(size as usize / 25).chain([size - 1]) {
        case.mem.corrupt_byte(&case.tokens_path(), at, 1).unwrap();
        assert!(!verified().findings.is_empty(), "byte {at}");
        case.mem.corrupt_byte(&case.tokens_path(), at, 1).unwrap();
    }
}
