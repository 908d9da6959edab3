//! Every read, write and sync by time and latency, for a heat map of the last minutes.
//!
//! Time is divided into slots of 100 ms. A slot counts I/O by table, [`IoKind`] and latency (five steps per decade from 100 ns
//! to 10 s, [`BOUNDS_NANOS`]), and keeps its slowest reads, writes and syncs with their statements. Only counts that are not zero
//! are kept, so an idle node uses no memory. An I/O takes one lock that few threads share.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, RwLock};

use crate::file_kind::FileKind;
use crate::request_io::IoVerb;

/// Length of a slot.
pub const SLOT_MILLIS: u64 = 100;
/// Slots that are kept: five minutes.
pub const SLOTS_KEPT: u32 = 3000;
/// Number of slowest I/Os that each shard keeps per slot: for reads of requests, and for each other sort, so that none hides another.
const SLOWEST_READS_KEPT: usize = 4;
const SLOWEST_OTHERS_KEPT: usize = 2;
const SHARDS: usize = 8;
/// Tables that are counted separately; the tables after these share one count.
const TABLES_MAX: usize = 4096;

/// Lower bounds of the latency steps in nanoseconds. The first step includes lower latencies, the last one higher ones.
pub const BOUNDS_NANOS: [u64; 40] = [
    100,
    158,
    251,
    398,
    631, // 100 ns
    1_000,
    1_585,
    2_512,
    3_981,
    6_310, // 1 us
    10_000,
    15_849,
    25_119,
    39_811,
    63_096, // 10 us
    100_000,
    158_489,
    251_189,
    398_107,
    630_957, // 100 us
    1_000_000,
    1_584_893,
    2_511_886,
    3_981_072,
    6_309_573, // 1 ms
    10_000_000,
    15_848_932,
    25_118_864,
    39_810_717,
    63_095_734, // 10 ms
    100_000_000,
    158_489_319,
    251_188_643,
    398_107_171,
    630_957_344, // 100 ms
    1_000_000_000,
    1_584_893_192,
    2_511_886_432,
    3_981_071_706,
    6_309_573_445, // 1 s
];

/// The purpose of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum IoKind {
    /// Data.db, for a request.
    Data,
    /// Indexes, summaries, filters and maps, for a request.
    Index,
    /// The commit log.
    Log,
    /// A flush of a memtable.
    Flush,
    /// A compaction's reads and writes.
    Compaction,
    /// Syncs of files and directories, for any purpose.
    Sync,
    /// Anything else.
    Other,
}

impl IoKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Data,
        Self::Index,
        Self::Log,
        Self::Flush,
        Self::Compaction,
        Self::Sync,
        Self::Other,
    ];

    /// Its name on the dashboard.
    pub fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Index => "index",
            Self::Log => "log",
            Self::Flush => "flush",
            Self::Compaction => "compaction",
            Self::Sync => "fsync",
            Self::Other => "other",
        }
    }

    fn of(verb: IoVerb, file: FileKind, purpose: Purpose) -> Self {
        match (verb, purpose, file) {
            (IoVerb::Synced, ..) => Self::Sync,
            (_, Purpose::Flush, _) => Self::Flush,
            (_, Purpose::Compaction, _) => Self::Compaction,
            (_, _, FileKind::CommitLog) => Self::Log,
            (_, _, FileKind::Data | FileKind::Cells) => Self::Data,
            (_, _, FileKind::Directory | FileKind::Other) => Self::Other,
            _ => Self::Index,
        }
    }
}

/// What a thread currently works for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// Requests, or no particular purpose.
    #[default]
    Request,
    /// A flush of a memtable.
    Flush,
    /// A compaction of SSTables.
    Compaction,
}

thread_local! {
    static PURPOSE: Cell<Purpose> = const { Cell::new(Purpose::Request) };
    static STATEMENT: Cell<u64> = const { Cell::new(0) };
    static SHARD: usize = NEXT_SHARD.fetch_add(1, Relaxed) % SHARDS;
}

static NEXT_SHARD: AtomicUsize = AtomicUsize::new(0);

/// Assigns this thread's I/O to a purpose until it is dropped.
#[derive(Debug)]
pub struct Doing {
    before: Purpose,
    this_thread: std::marker::PhantomData<*const ()>,
}

impl Doing {
    /// Sets this thread's purpose.
    pub fn begin(purpose: Purpose) -> Self {
        Self {
            before: PURPOSE.replace(purpose),
            this_thread: std::marker::PhantomData,
        }
    }
}

impl Drop for Doing {
    fn drop(&mut self) {
        PURPOSE.set(self.before);
    }
}

/// Assigns this thread's reads to a statement, by a number of the caller's choice; 0 means no statement. Returns the number set
/// before.
pub fn set_statement(statement: u64) -> u64 {
    STATEMENT.replace(statement)
}

/// The table that a file belongs to, derived from its directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableTag(u16);

/// Table names by tag; the first is for files that belong to no table.
static TABLES: RwLock<Vec<String>> = RwLock::new(Vec::new());

impl TableTag {
    /// The tag of files that belong to no table.
    pub const NONE: Self = Self(0);

    /// The table whose directory (`<keyspace>/<table>-<id>`, or a directory in it) contains the file.
    pub fn of(path: &Path) -> Self {
        match table_of(path) {
            Some(name) => Self::named(&name),
            None => Self::NONE,
        }
    }

    /// Its number, which is stable while the process lives.
    pub fn number(self) -> u16 {
        self.0
    }

    fn named(name: &str) -> Self {
        let find = |names: &[String]| names.iter().position(|known| known == name);
        let known = find(&TABLES.read());
        let place = known.unwrap_or_else(|| {
            let mut names = TABLES.write();
            if names.is_empty() {
                names.push(String::new());
            }
            match find(&names) {
                Some(place) => place,
                None if names.len() < TABLES_MAX => {
                    names.push(name.to_owned());
                    names.len() - 1
                }
                None => 0,
            }
        });
        Self(u16::try_from(place).unwrap_or(0))
    }

    /// `keyspace.table`; empty for files that belong to no table.
    pub fn name(self) -> String {
        TABLES
            .read()
            .get(usize::from(self.0))
            .cloned()
            .unwrap_or_default()
    }
}

/// Compat: Cassandra's layout, the table's name, a hyphen and 32 hex digits.
fn table_of(path: &Path) -> Option<String> {
    path.ancestors().skip(1).take(4).find_map(|directory| {
        let (table, id) = directory.file_name()?.to_str()?.rsplit_once('-')?;
        let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let keyspace = directory.parent()?.file_name()?.to_str()?;
        is_id.then(|| format!("{keyspace}.{table}"))
    })
}

/// The key of a count: table, kind and latency step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CellKey {
    table: TableTag,
    kind: IoKind,
    step: u8,
}

/// A count of I/Os.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpectrumCell {
    /// Their table.
    pub table: TableTag,
    /// Their purpose.
    pub kind: IoKind,
    /// Index of their latency step in [`BOUNDS_NANOS`].
    pub step: u8,
    /// Number of I/Os.
    pub count: u32,
}

/// The I/O of one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spectrum {
    /// Number of the slot since the process started.
    pub slot: u32,
    /// Counts that are not zero.
    pub cells: Vec<SpectrumCell>,
}

/// One of the slowest I/Os of its slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowIo {
    /// Slot in which it ended.
    pub slot: u32,
    /// Whether it read, wrote or synced.
    pub verb: IoVerb,
    /// Its purpose.
    pub kind: IoKind,
    /// Table of the file.
    pub table: TableTag,
    /// Name of the file, without its directory: this is kept for many I/Os.
    pub file: Box<str>,
    /// Offset in the file; 0 for a sync.
    pub offset: u64,
    /// Number of bytes; 0 for a sync.
    pub bytes: u64,
    /// Duration.
    pub nanos: u64,
    /// The statement, as passed to [`set_statement`].
    pub statement: u64,
}

#[derive(Default)]
struct Slot {
    number: u32,
    cells: BTreeMap<CellKey, u32>,
    /// The slowest of each [`Sort`].
    slowest: [Vec<SlowIo>; Sort::COUNT],
}

/// Sorts of I/O that are kept apart. Reads of requests are many, syncs are slow: together one would hide the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    RequestRead,
    OtherRead,
    Write,
    Sync,
}

impl Sort {
    const COUNT: usize = 4;

    fn of(verb: IoVerb, kind: IoKind) -> Self {
        match (verb, kind) {
            (IoVerb::Read, IoKind::Data | IoKind::Index) => Self::RequestRead,
            (IoVerb::Read, _) => Self::OtherRead,
            (IoVerb::Wrote, _) => Self::Write,
            (IoVerb::Synced, _) => Self::Sync,
        }
    }

    fn kept(self) -> usize {
        match self {
            Self::RequestRead => SLOWEST_READS_KEPT,
            _ => SLOWEST_OTHERS_KEPT,
        }
    }
}

impl Slot {
    fn keep_if_slow(&mut self, sort: Sort, nanos: u64, io: impl FnOnce() -> SlowIo) {
        let slowest = &mut self.slowest[sort as usize];
        if slowest.len() < sort.kept() {
            slowest.push(io());
        } else if let Some(quickest) = slowest.iter_mut().min_by_key(|slow| slow.nanos)
            && quickest.nanos < nanos
        {
            *quickest = io();
        }
    }
}

/// The slots of the threads that share this lock, oldest first.
struct Shard(Mutex<VecDeque<Slot>>);

static RECORDED: [Shard; SHARDS] = [const { Shard(Mutex::new(VecDeque::new())) }; SHARDS];

/// Start of slot 0, on both clocks.
fn epoch() -> (Instant, u64) {
    static EPOCH: OnceLock<(Instant, u64)> = OnceLock::new();
    *EPOCH.get_or_init(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (Instant::now(), u64::try_from(since.as_millis()).unwrap_or(0))
    })
}

fn slot_of(at: Instant) -> u32 {
    let millis = at.saturating_duration_since(epoch().0).as_millis();
    u32::try_from(millis / u128::from(SLOT_MILLIS)).unwrap_or(u32::MAX)
}

/// The number of the current slot.
pub fn current_slot() -> u32 {
    slot_of(Instant::now())
}

/// Start of slot 0, in milliseconds since 1970.
pub fn epoch_millis() -> u64 {
    epoch().1
}

fn step_of(nanos: u64) -> u8 {
    let above = BOUNDS_NANOS.partition_point(|bound| *bound <= nanos);
    u8::try_from(above.saturating_sub(1)).unwrap_or(0)
}

/// One I/O that has just ended.
pub(crate) struct Done<'a> {
    pub verb: IoVerb,
    pub file: FileKind,
    pub table: TableTag,
    pub path: &'a Path,
    pub offset: u64,
    pub bytes: u64,
    pub nanos: u64,
    pub at: Instant,
}

pub(crate) fn record(done: &Done<'_>) {
    let kind = IoKind::of(done.verb, done.file, PURPOSE.get());
    let number = slot_of(done.at);
    let key = CellKey {
        table: done.table,
        kind,
        step: step_of(done.nanos),
    };
    let mut slots = RECORDED[SHARD.with(|shard| *shard)].0.lock();
    if slots.back().is_none_or(|slot| slot.number < number) {
        while slots
            .front()
            .is_some_and(|slot| slot.number + SLOTS_KEPT < number)
        {
            slots.pop_front();
        }
        slots.push_back(Slot {
            number,
            ..Slot::default()
        });
    }
    // If the thread was delayed after its I/O, the I/O counts in the newest slot.
    let Some(slot) = slots.back_mut() else {
        return;
    };
    *slot.cells.entry(key).or_default() += 1;
    slot.keep_if_slow(Sort::of(done.verb, kind), done.nanos, || SlowIo {
        slot: number,
        verb: done.verb,
        kind,
        table: done.table,
        file: name_of(done.path),
        offset: done.offset,
        bytes: done.bytes,
        nanos: done.nanos,
        statement: STATEMENT.get(),
    });
}

fn name_of(path: &Path) -> Box<str> {
    path.file_name().unwrap_or_default().to_string_lossy().into()
}

/// The finished slots from `from` on that had any I/O, oldest first, at most [`SLOTS_KEPT`] of them.
pub fn spectra(from: u32) -> Vec<Spectrum> {
    let now = current_slot();
    let from = from.max(now.saturating_sub(SLOTS_KEPT));
    let mut merged: BTreeMap<u32, BTreeMap<CellKey, u32>> = BTreeMap::new();
    for shard in &RECORDED {
        for slot in shard.0.lock().iter().rev() {
            if slot.number < from {
                break;
            }
            if slot.number < now {
                let cells = merged.entry(slot.number).or_default();
                for (key, count) in &slot.cells {
                    *cells.entry(*key).or_default() += count;
                }
            }
        }
    }
    let cell = |(key, count): (CellKey, u32)| SpectrumCell {
        table: key.table,
        kind: key.kind,
        step: key.step,
        count,
    };
    merged
        .into_iter()
        .map(|(slot, cells)| Spectrum {
            slot,
            cells: cells.into_iter().map(cell).collect(),
        })
        .collect()
}

/// The slowest kept I/Os in these ranges of slots and latencies (inclusive) that are wanted, slowest first.
pub fn slowest(
    slots: (u32, u32),
    nanos: (u64, u64),
    is_wanted: impl Fn(&SlowIo) -> bool,
    limit: usize,
) -> Vec<SlowIo> {
    let mut found: Vec<SlowIo> = Vec::new();
    for shard in &RECORDED {
        let kept = shard.0.lock();
        let wanted = kept
            .iter()
            .filter(|slot| (slots.0..=slots.1).contains(&slot.number))
            .flat_map(|slot| slot.slowest.iter().flatten())
            .filter(|io| (nanos.0..=nanos.1).contains(&io.nanos) && is_wanted(io));
        found.extend(wanted.cloned());
    }
    found.sort_by_key(|io| std::cmp::Reverse(io.nanos));
    found.truncate(limit);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIRECTORY: &str = "/d/data/shop/orders-5bc52802de2535edaeab188eecebb090";

    fn read(path: &Path, nanos: u64) -> Done<'_> {
        Done {
            verb: IoVerb::Read,
            file: FileKind::Data,
            table: TableTag::of(path),
            path,
            offset: 7,
            bytes: 100,
            nanos,
            at: Instant::now(),
        }
    }

    #[test]
    fn files_belong_to_the_table_whose_directory_holds_them() {
        let name = |path: String| TableTag::of(Path::new(&path)).name();
        assert_eq!(name(format!("{DIRECTORY}/nb-1-big-Data.db")), "shop.orders");
        assert_eq!(
            name(format!("{DIRECTORY}/.by_day/nb-1-big-Data.db")),
            "shop.orders"
        );
        assert_eq!(name("/d/commitlog/ilion-1-1.log".to_owned()), "");
    }

    #[test]
    fn steps_go_five_to_a_decade_from_100_ns_to_10_s() {
        let steps = [0, 100, 157, 158, 999, 1000, 9_999_999_999, u64::MAX].map(step_of);
        assert_eq!(steps, [0, 0, 0, 1, 4, 5, 39, 39]);
        assert!(BOUNDS_NANOS.is_sorted());
    }

    #[test]
    fn slow_reads_are_found_again_with_their_statement() {
        let name = "nb-77-big-Data.db";
        let path = Path::new(DIRECTORY).join(name);
        set_statement(4711);
        // Slower than whatever other tests read in the meantime.
        for nanos in [20_000_000_000, 30_000_000_000, 25_000_000_000] {
            record(&read(&path, nanos));
        }
        set_statement(0);
        let found = slowest(
            (0, u32::MAX),
            (20_000_000_000, u64::MAX),
            |io| *io.file == *name,
            2,
        );
        let nanos: Vec<u64> = found.iter().map(|slow| slow.nanos).collect();
        assert_eq!(nanos, [30_000_000_000, 25_000_000_000]);
        assert!(
            found
                .iter()
                .all(|slow| slow.statement == 4711 && *slow.file == *name)
        );
    }

    #[test]
    fn many_slow_reads_hide_no_sync_and_no_write() {
        let name = "nb-78-big-Data.db";
        let path = Path::new(DIRECTORY).join(name);
        // Slower than whatever other tests read in the meantime, and not as slow as those that another test looks for.
        for nanos in 0..20 {
            record(&read(&path, 15_000_000_000 + nanos));
        }
        for (verb, nanos) in [(IoVerb::Wrote, 4_000_000_000), (IoVerb::Synced, 4_000_000_000)] {
            record(&Done {
                verb,
                ..read(&path, nanos)
            });
        }
        let all = slowest((0, u32::MAX), (0, u64::MAX), |io| *io.file == *name, 100);
        let verbs = |verb| all.iter().filter(|io| io.verb == verb).count();
        assert_eq!(verbs(IoVerb::Synced), 1, "{all:?}");
        assert_eq!(verbs(IoVerb::Wrote), 1, "{all:?}");
        assert!(verbs(IoVerb::Read) >= 1, "{all:?}");
    }

    #[test]
    fn what_a_thread_does_decides_the_kind() {
        let of = |verb, file| IoKind::of(verb, file, PURPOSE.get());
        assert_eq!(of(IoVerb::Read, FileKind::Data), IoKind::Data);
        let flushing = Doing::begin(Purpose::Flush);
        assert_eq!(of(IoVerb::Wrote, FileKind::Data), IoKind::Flush);
        assert_eq!(of(IoVerb::Synced, FileKind::Data), IoKind::Sync);
        drop(flushing);
        assert_eq!(of(IoVerb::Wrote, FileKind::CommitLog), IoKind::Log);
    }
}
