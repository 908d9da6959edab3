//! Damaged SSTables.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use ilion_env::MemEnv;
use ilion_memtable::Memtable;
use ilion_rows::random::{Dice, random_bound, random_mutation, random_table};
use ilion_rows::{
    Bound, BoundKind, ClusteringComparator, ClusteringFilter, Cursor, DecoratedKey, KeyRange, Slice,
};
use ilion_schema::{ColumnId, TableSchema};
use ilion_sstable::{
    CellMapLimits, Component, Descriptor, EncodingStats, Finding, Format, OpenOptions, SSTable, SSTableId,
    SSTableWriter, Scan, Version, WriterOptions,
};

use crate::split_choice;

const DIR: &str = "data/ks/t";
/// What is read; the others are not, or are covered by their own checksums.
const DAMAGED: [Component; 6] = [
    Component::Data,
    Component::Index,
    Component::Summary,
    Component::Statistics,
    Component::Tokens,
    Component::Cells,
];

struct Whole {
    table: Arc<TableSchema>,
    keys: Vec<DecoratedKey>,
    files: HashMap<Component, Vec<u8>>,
}

thread_local! {
    static WHOLE: RefCell<HashMap<usize, Rc<Whole>>> = RefCell::default();
}

/// Writes an SSTable that the first byte chooses, changes its bytes, and reads it in every way.
pub fn run(data: &[u8]) {
    let Some((seed, edits)) = split_choice(data) else {
        return;
    };
    let whole = WHOLE.with_borrow_mut(|known| {
        let whole = known.entry(seed).or_insert_with(|| Rc::new(write(seed)));
        whole.clone()
    });
    let mut files = whole.files.clone();
    // No checksums over Data.db, so that what is changed is decoded.
    for component in [Component::Crc, Component::Toc, Component::Checksums] {
        files.remove(&component);
    }
    edit(&mut files, edits);
    if let Some(tokens) = files.get_mut(&Component::Tokens) {
        seal(tokens);
    }
    if let Some(cells) = files.get_mut(&Component::Cells) {
        seal_cells(cells);
    }
    let env = MemEnv::new(1).shared();
    env.create_dir_all(Path::new(DIR)).expect("a directory");
    for (component, bytes) in &files {
        let mut file = env.create(&descriptor().path(component)).expect("a file");
        file.append(bytes).expect("bytes");
    }
    for finding in [Finding::TokenMap, Finding::Summary] {
        let options = OpenOptions {
            finding,
            ..OpenOptions::default()
        };
        if let Ok(sstable) = SSTable::open(&env, &descriptor(), &options) {
            read(&Arc::new(sstable), &whole, seed as u64);
        }
    }
}

fn descriptor() -> Descriptor {
    Descriptor::new(Path::new(DIR), Version::NB, SSTableId::Sequence(1), Format::Big)
}

fn write(seed: usize) -> Whole {
    let mut dice = Dice::new(seed as u64);
    let mut table = random_table(&mut dice).to_builder();
    table.options.compression.clear();
    let table = table.build();
    let memtable = Arc::new(Memtable::new(table.clone(), 1));
    for _ in 0..20 {
        memtable.apply(&random_mutation(&table, &mut dice));
    }
    let env = MemEnv::new(1).shared();
    env.create_dir_all(Path::new(DIR)).expect("a directory");
    let options = WriterOptions {
        encoding_stats: EncodingStats::NONE,
        column_index_bytes: Some(100),
        cell_map: Some(CellMapLimits {
            row_bytes_min: 0,
            row_bytes_per_map_byte: 0,
        }),
        ..WriterOptions::default()
    };
    let mut writer = SSTableWriter::new(&env, &descriptor(), &table, options).expect("a writer");
    let mut keys = Vec::new();
    let mut cursor = memtable.flush_cursor();
    while let Some(head) = cursor.next_partition().expect("memory") {
        keys.push(head.key.clone());
        writer.begin_partition(&head).expect("a partition");
        while let Some(unfiltered) = cursor.next_unfiltered().expect("memory") {
            writer.add(&unfiltered).expect("an unfiltered");
        }
        writer.finish_partition().expect("a partition");
    }
    writer.finish().expect("an SSTable");
    let files = Component::known()
        .filter_map(|component| {
            let bytes = env.read_all(&descriptor().path(&component), 1 << 20).ok()?;
            Some((component, bytes))
        })
        .collect();
    Whole { table, keys, files }
}

/// Puts right the checksums of a token map, so that what is changed is decoded (`docs/format/tokens.md`).
fn seal(map: &mut [u8]) {
    const END: usize = 16;
    let Some(tail_end) = map.len().checked_sub(END) else {
        return;
    };
    let length = map[tail_end + 4..tail_end + 8]
        .first_chunk()
        .map(|bytes| u32::from_le_bytes(*bytes));
    let Some(tail_at) = length.and_then(|length| tail_end.checked_sub(usize::try_from(length).ok()?)) else {
        return;
    };
    let crc = ilion_codec::crc32(&map[tail_at..tail_end]);
    map[tail_end..tail_end + 4].copy_from_slice(&crc.to_le_bytes());
    seal_pages(map, tail_at);
}

/// The same of a cell map (`docs/format/cells.md`).
fn seal_cells(map: &mut [u8]) {
    const TAIL: usize = 45;
    const END: usize = 12;
    let Some(tail_at) = map.len().checked_sub(TAIL + END) else {
        return;
    };
    let crc = ilion_codec::crc32(&map[tail_at..tail_at + TAIL]);
    map[tail_at + TAIL..tail_at + TAIL + 4].copy_from_slice(&crc.to_le_bytes());
    seal_pages(map, tail_at);
}

/// Gives the pages of the body, before `tail_at`, their CRCs.
fn seal_pages(map: &mut [u8], tail_at: usize) {
    const PAGE: usize = 4096;
    let body = (0..=tail_at)
        .find(|body| body + body.div_ceil(PAGE) * 4 >= tail_at)
        .unwrap_or(0);
    for page in 0..body.div_ceil(PAGE) {
        let crc = ilion_codec::crc32(&map[page * PAGE..body.min((page + 1) * PAGE)]);
        let at = body + page * 4;
        if let Some(slot) = map.get_mut(at..at + 4) {
            slot.copy_from_slice(&crc.to_le_bytes());
        }
    }
}

/// Each edit has four bytes: which component and how, where (two bytes), and a value.
fn edit(files: &mut HashMap<Component, Vec<u8>>, edits: &[u8]) {
    for edit in edits.chunks_exact(4) {
        let component = &DAMAGED[usize::from(edit[0] >> 5) % DAMAGED.len()];
        let Some(bytes) = files.get_mut(component).filter(|bytes| !bytes.is_empty()) else {
            continue;
        };
        let at = usize::from(u16::from_be_bytes([edit[1], edit[2]])) % bytes.len();
        match edit[0] & 7 {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, edit[3]),
            2 => drop(bytes.remove(at)),
            3 => bytes[at] ^= edit[3],
            4 => {
                let end = (at + 8).min(bytes.len());
                bytes[at..end].fill(edit[3]);
            }
            _ => bytes[at] = edit[3],
        }
    }
}

fn read(sstable: &Arc<SSTable>, whole: &Whole, seed: u64) {
    let table = &whole.table;
    let all = Arc::new(ClusteringFilter::all());
    for scan in [Scan::Point, Scan::Sequential] {
        drain(&mut sstable.cursor(table, KeyRange::all(), all.clone(), scan));
    }
    let mut dice = Dice::new(seed);
    for key in &whole.keys {
        for reversed in [false, true] {
            let filter = Arc::new(ClusteringFilter {
                slices: vec![slice(table, &mut dice)],
                reversed,
                columns: dice.one_in(2).then(|| some_columns(table, &mut dice).into()),
                ..ClusteringFilter::all()
            });
            if let Ok(Some(mut cursor)) = sstable.partition(table, key, &filter) {
                drain(&mut cursor);
            }
        }
    }
}

fn some_columns(table: &TableSchema, dice: &mut Dice) -> Vec<ColumnId> {
    let columns = table.statics().chain(table.regulars());
    columns
        .filter(|_| dice.one_in(2))
        .map(|column| column.id)
        .collect()
}

fn slice(table: &TableSchema, dice: &mut Dice) -> Slice {
    let start = random_bound(table, &[BoundKind::InclStart, BoundKind::ExclStart], dice);
    let comparator = ClusteringComparator::of(table);
    let slice = Slice {
        start,
        end: Bound::top(),
    };
    match slice.is_empty(&comparator) {
        true => Slice::all(),
        false => slice,
    }
}

fn drain(cursor: &mut dyn Cursor) {
    while let Ok(Some(_)) = cursor.next_partition() {
        while let Ok(Some(_)) = cursor.next_unfiltered() {}
    }
}
