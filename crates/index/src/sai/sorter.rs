//! Sorts terms with their row numbers: in memory, or through runs in files if there are too many.
//!
//! Requires: row numbers are added in ascending order, so that consecutive runs have ascending numbers.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_codec::{Reader, Writer};
use ilion_env::{Access, Env, ReadFile, WriteFile};
use ilion_rows::ReadError;
use ilion_runs::{head_of, radix};

use super::tree::common_len;
use crate::Error;
use crate::paged::io;

/// Memory for terms, in bytes; when it is full, a run is written.
pub(super) const MEMORY_BYTES: usize = 32 << 20;
const APPEND_BYTES: usize = 256 << 10;
const READ_BYTES: usize = 64 << 10;
const HEAD_LEN: usize = 8;
/// Maximum number of rows of a term that are collected from runs before `take` is called.
const NUMBERS_AT_ONCE: usize = 4096;
/// Number of recent long terms that are remembered.
const MET: usize = 2048;

/// A term and a row; the first bytes of the term are stored inline.
#[derive(Clone, Copy)]
struct Entry {
    head: u64,
    number: u32,
    /// The length of a term that fits the head; for a longer term, its offset in the arena plus [`HEAD_LEN`] plus one.
    at: u32,
}

/// Called with each term and some of its rows, both in order.
type Take<'t> = &'t mut dyn FnMut(&[u8], &[u32]) -> Result<(), Error>;

/// Collects terms and returns them sorted.
pub(super) struct Sorter {
    env: Arc<dyn Env>,
    /// The start of the file names of runs.
    base: String,
    memory_bytes: usize,
    entries: Vec<Entry>,
    /// Long terms without their heads: length and bytes.
    arena: Vec<u8>,
    /// Arena offsets of recent long terms, by a hash.
    met: Box<[u32; MET]>,
    runs: Vec<PathBuf>,
}

impl Sorter {
    pub(super) fn new(env: &Arc<dyn Env>, base: String, memory_bytes: usize) -> Self {
        Self {
            env: env.clone(),
            base,
            memory_bytes,
            entries: Vec::new(),
            arena: Vec::new(),
            met: Box::new([0; MET]),
            runs: Vec::new(),
        }
    }

    /// Adds a term of a row. Requires: the term is shorter than 64 KiB.
    #[inline]
    pub(super) fn add(&mut self, term: &[u8], number: u32) -> Result<(), Error> {
        // Entries count twice, since sorting needs the same amount again.
        let held = 2 * self.entries.len() * size_of::<Entry>() + self.arena.len();
        if held > self.memory_bytes {
            self.write_run()?;
        }
        let at = if term.len() <= HEAD_LEN {
            term.len()
        } else {
            self.keep_tail(&term[HEAD_LEN..])
        };
        self.entries.push(Entry {
            head: head_of(term),
            number,
            at: u32::try_from(at).unwrap_or(u32::MAX),
        });
        Ok(())
    }

    /// Adds the tail of a long term to the arena, unless it is among the recent ones.
    fn keep_tail(&mut self, tail: &[u8]) -> usize {
        let end = tail.len().saturating_sub(HEAD_LEN);
        let mixed = head_of(&tail[end..]) ^ head_of(tail).rotate_left(29) ^ tail.len() as u64;
        let slot = usize::from((mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) as u16) % MET;
        let met = self.met[slot];
        if met > 0 && tail_at(&self.arena, met) == tail {
            return met as usize;
        }
        let at = self.arena.len() + HEAD_LEN + 1;
        let len = u16::try_from(tail.len()).unwrap_or(u16::MAX);
        self.arena.extend_from_slice(&len.to_le_bytes());
        self.arena.extend_from_slice(tail);
        self.met[slot] = u32::try_from(at).unwrap_or(0);
        at
    }

    fn sort(&mut self) {
        let Some(first) = self.entries.first().copied() else {
            return;
        };
        let (entries, arena) = (&mut self.entries, &self.arena);
        let is_alike = |entry: &Entry| entry.head == first.head && entry.at as usize > HEAD_LEN;
        if !entries.iter().all(is_alike) {
            sort_by_heads(entries, arena);
            return;
        }
        // All heads are equal. During the sort, the head of each entry is the bytes behind the common prefix of all terms.
        let of_first = term_tail(arena, &first);
        let common = entries
            .iter()
            .map(|entry| common_len(of_first, term_tail(arena, entry)))
            .min()
            .unwrap_or(0);
        for entry in &mut *entries {
            entry.head = head_of(&term_tail(arena, entry)[common..]);
        }
        sort_by_heads(entries, arena);
        entries.iter_mut().for_each(|entry| entry.head = first.head);
    }

    /// Passes all terms to `take` in order, each with its rows, possibly in several calls.
    pub(super) fn drain(&mut self, take: Take<'_>) -> Result<(), Error> {
        if self.runs.is_empty() {
            self.sort();
            let (mut term, mut numbers) = (Vec::new(), Vec::new());
            for of_term in self.entries.chunk_by(|a, b| compare(&self.arena, a, b).is_eq()) {
                copy_term(&self.arena, &of_term[0], &mut term);
                numbers.clear();
                numbers.extend(of_term.iter().map(|entry| entry.number));
                numbers.dedup();
                take(&term, &numbers)?;
            }
        } else {
            if !self.entries.is_empty() {
                self.write_run()?;
            }
            let entries = std::mem::take(&mut self.entries);
            drop(entries);
            merge(&*self.env, &self.runs, take)?;
        }
        self.entries = Vec::new();
        self.arena = Vec::new();
        self.remove_runs();
        Ok(())
    }

    /// Writes the terms in memory as a run: `(len:uvint  term  count:uvint  gap:uvint *) *`.
    fn write_run(&mut self) -> Result<(), Error> {
        self.sort();
        let path = PathBuf::from(format!("{}+Run{}.db.tmp", self.base, self.runs.len()));
        let mut file = self.env.create_or_truncate(&path)?;
        self.runs.push(path);
        let mut out = Writer::new();
        let mut term = Vec::new();
        for group in self.entries.chunk_by(|a, b| compare(&self.arena, a, b).is_eq()) {
            copy_term(&self.arena, &group[0], &mut term);
            out.bytes_vint(&term);
            out.uvint(group.len() as u64);
            let mut before = 0;
            for entry in group {
                out.uvint(u64::from(entry.number - before));
                before = entry.number;
                flush(&mut out, &mut *file, APPEND_BYTES)?;
            }
        }
        flush(&mut out, &mut *file, 0)?;
        self.entries.clear();
        self.arena.clear();
        self.met.fill(0);
        Ok(())
    }

    fn remove_runs(&mut self) {
        for run in std::mem::take(&mut self.runs) {
            if let Err(error) = self.env.remove_file_if_any(&run) {
                tracing::warn!(%error, "cannot remove an unused file");
            }
        }
    }
}

impl Drop for Sorter {
    fn drop(&mut self) {
        self.remove_runs();
    }
}

fn flush(out: &mut Writer, file: &mut dyn WriteFile, least_bytes: usize) -> Result<(), Error> {
    if out.len() > least_bytes {
        file.append(out.as_slice())?;
        out.clear();
    }
    Ok(())
}

/// Sorts by heads, and terms with equal heads by their tails. The rows of a term stay in order.
fn sort_by_heads(entries: &mut Vec<Entry>, arena: &[u8]) {
    radix::sort_by_key(entries, &mut Vec::new(), |entry| entry.head);
    for alike in entries.chunk_by_mut(|a, b| a.head == b.head) {
        let first_at = alike[0].at;
        if alike.iter().any(|entry| entry.at != first_at) {
            alike.sort_by(|a, b| compare(arena, a, b));
        }
    }
}

/// The rest of a term behind its head.
fn term_tail<'a>(arena: &'a [u8], entry: &Entry) -> &'a [u8] {
    if entry.at as usize <= HEAD_LEN {
        return &[];
    }
    tail_at(arena, entry.at)
}

fn tail_at(arena: &[u8], at: u32) -> &[u8] {
    let at = at as usize - HEAD_LEN - 1;
    let len = usize::from(u16::from_le_bytes([arena[at], arena[at + 1]]));
    &arena[at + 2..at + 2 + len]
}

#[inline]
fn compare(arena: &[u8], a: &Entry, b: &Entry) -> Ordering {
    a.head.cmp(&b.head).then_with(|| {
        if a.at == b.at {
            return Ordering::Equal;
        }
        let of_tails = term_tail(arena, a).cmp(term_tail(arena, b));
        // The heads of short terms are padded with zeros, so equal heads may have different lengths.
        let short = |entry: &Entry| (entry.at as usize).min(HEAD_LEN + 1);
        of_tails.then_with(|| short(a).cmp(&short(b)))
    })
}

fn copy_term(arena: &[u8], entry: &Entry, term: &mut Vec<u8>) {
    let len = (entry.at as usize).min(HEAD_LEN);
    term.clear();
    term.extend_from_slice(&entry.head.to_be_bytes()[..len]);
    term.extend_from_slice(term_tail(arena, entry));
}

/// Reads a run from start to end.
struct Run {
    file: Arc<dyn ReadFile>,
    buffer: Vec<u8>,
    /// Number of consumed bytes of the buffer.
    used: usize,
    /// File offset of the bytes after the buffer.
    next_at: u64,
    term: Vec<u8>,
    /// Numbers of the term that are not read yet.
    left: u64,
    number: u32,
}

impl Run {
    /// `None` if the run is empty.
    fn open(env: &dyn Env, path: &Path) -> Result<Option<Self>, Error> {
        let file = env.open_read(path)?;
        file.advise(Access::Sequential);
        let mut run = Self {
            file,
            buffer: Vec::new(),
            used: 0,
            next_at: 0,
            term: Vec::new(),
            left: 0,
            number: 0,
        };
        Ok(run.advance()?.then_some(run))
    }

    fn corrupt(&self) -> Error {
        Error::Read(ReadError::Corrupt {
            file: self.file.path().to_path_buf(),
            offset: self.next_at,
            expected: "a run of sorted terms".to_owned(),
        })
    }

    /// Reads until at least `len` bytes are in the buffer, or the file ends.
    fn fill(&mut self, len: usize) -> Result<(), Error> {
        if self.buffer.len() - self.used >= len {
            return Ok(());
        }
        self.buffer.drain(..self.used);
        self.used = 0;
        let left = self.file.size_bytes().saturating_sub(self.next_at);
        let wanted = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(READ_BYTES.max(len));
        let start = self.buffer.len();
        self.buffer.resize(start + wanted, 0);
        self.file
            .read_exact_at(self.next_at, &mut self.buffer[start..])
            .map_err(io)?;
        self.next_at += wanted as u64;
        Ok(())
    }

    fn uvint(&mut self) -> Result<u64, Error> {
        self.fill(9)?;
        let mut reader = Reader::new(&self.buffer[self.used..]);
        let number = reader.uvint().map_err(|_| self.corrupt())?;
        self.used += reader.offset();
        Ok(number)
    }

    /// Reads the next pair of term and row; false at the end.
    fn advance(&mut self) -> Result<bool, Error> {
        if self.left == 0 {
            self.fill(1)?;
            if self.used == self.buffer.len() {
                return Ok(false);
            }
            let len = usize::try_from(self.uvint()?).map_err(|_| self.corrupt())?;
            if len > usize::from(u16::MAX) + HEAD_LEN {
                return Err(self.corrupt());
            }
            self.fill(len)?;
            let term = self
                .buffer
                .get(self.used..self.used + len)
                .ok_or_else(|| self.corrupt())?;
            self.term = term.to_vec();
            self.used += len;
            self.left = self.uvint()?;
            self.number = 0;
        }
        let gap = u32::try_from(self.uvint()?).ok();
        let number = gap.and_then(|gap| self.number.checked_add(gap));
        self.number = number.ok_or_else(|| self.corrupt())?;
        self.left = self.left.checked_sub(1).ok_or_else(|| self.corrupt())?;
        Ok(true)
    }
}

/// Merges runs. Requires: earlier runs have lower numbers.
fn merge(env: &dyn Env, paths: &[PathBuf], take: Take<'_>) -> Result<(), Error> {
    let mut runs = Vec::with_capacity(paths.len());
    for path in paths {
        runs.extend(Run::open(env, path)?);
    }
    // The current term of each run; for equal terms, the earliest run comes first.
    let mut heads: BinaryHeap<Reverse<(Vec<u8>, usize)>> = runs
        .iter_mut()
        .enumerate()
        .map(|(index, run)| Reverse((std::mem::take(&mut run.term), index)))
        .collect();
    let (mut term, mut numbers) = (Vec::new(), Vec::new());
    while let Some(Reverse((next, index))) = heads.pop() {
        if term != next {
            give(&term, &mut numbers, take)?;
            term = next;
        }
        let run = &mut runs[index];
        loop {
            // A row may have a term twice.
            if numbers.last() != Some(&run.number) {
                if numbers.len() == NUMBERS_AT_ONCE {
                    give(&term, &mut numbers, take)?;
                }
                numbers.push(run.number);
            }
            let is_last = run.left == 0;
            if !run.advance()? {
                break;
            }
            if is_last {
                heads.push(Reverse((std::mem::take(&mut run.term), index)));
                break;
            }
        }
    }
    give(&term, &mut numbers, take)
}

/// Passes the collected rows of a term to `take`.
fn give(term: &[u8], numbers: &mut Vec<u32>, take: Take<'_>) -> Result<(), Error> {
    if !numbers.is_empty() {
        take(term, numbers)?;
    }
    numbers.clear();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ilion_env::MemEnv;
    use proptest::prelude::*;

    use super::*;

    fn sorted(rows: &[Vec<Vec<u8>>], memory_bytes: usize) -> (Vec<(Vec<u8>, u32)>, usize) {
        let env = MemEnv::new(1).shared();
        let mut sorter = Sorter::new(&env, "x".to_owned(), memory_bytes);
        for (number, terms) in rows.iter().enumerate() {
            for term in terms {
                sorter.add(term, number as u32).unwrap();
            }
        }
        let mut out = Vec::new();
        sorter
            .drain(&mut |term, numbers| {
                out.extend(numbers.iter().map(|number| (term.to_vec(), *number)));
                Ok(())
            })
            .unwrap();
        let left = env.list(Path::new(".")).unwrap_or_default().len();
        (out, left)
    }

    fn term() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(0_u8..2, 0..11)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn pairs_come_sorted_and_once(
            rows in prop::collection::vec(prop::collection::vec(term(), 0..3), 0..60),
            memory_bytes in prop_oneof![Just(1_usize << 20), 0_usize..500],
        ) {
            let expected: BTreeSet<(Vec<u8>, u32)> = rows
                .iter()
                .enumerate()
                .flat_map(|(number, terms)| terms.iter().map(move |term| (term.clone(), number as u32)))
                .collect();
            let (found, left) = sorted(&rows, memory_bytes);
            prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(left, 0, "runs are removed");
        }
    }
}
