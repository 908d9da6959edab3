//! Writes the term file of an index. Terms and rows are added in order.
//!
//! Memory: the rows of one group of about 262144 rows, and the nodes above the leaves.

use std::path::PathBuf;
use std::sync::Arc;

use ilion_codec::Writer;
use ilion_env::Env;

use super::postings::{BLOCK_NUMBERS, ListAt, ListWriter, encode_block};
use super::tree::{
    Child, FANOUT, GROUP_ROWS, LEAF_BYTES, LEAF_TERMS, MAGIC, MANY, REST_LONG, REST_SHIFT, SHARED_LONG, Tail,
    common_len,
};
use crate::Error;
use crate::paged::PagedWriter;

/// A child and the separator before it.
type Separated = (Vec<u8>, Child);

/// Children of a node under construction, and the rows below it.
#[derive(Default)]
struct Group {
    children: Vec<Separated>,
    rows: u64,
    numbers: Vec<u32>,
    /// The list of a term that is a group of its own, since it has more rows than fit into a group; `None` for any other group.
    of_term: Option<ListAt>,
}

/// The term that is being added.
#[derive(Default)]
struct Current {
    term: Vec<u8>,
    count: u32,
    /// Its rows. If it has more rows than the largest group, they are written to the list instead.
    numbers: Vec<u32>,
}

/// A leaf under construction.
#[derive(Default)]
struct Leaf {
    out: Writer,
    terms: usize,
    rows: u64,
    separator: Vec<u8>,
}

/// Writes terms and the tree above them.
pub(super) struct TreeWriter {
    file: PagedWriter,
    tail: Tail,
    current: Current,
    list: ListWriter,
    /// Reused memory for sorting.
    bits: Vec<u64>,
    leaf: Leaf,
    /// The current group of leaves, and the current group of groups.
    groups: [Group; 2],
    /// The nodes above leaves, one after the other.
    nodes: Writer,
    /// Complete groups of leaves; their offsets are relative to `nodes`.
    inner: Vec<Separated>,
    /// Complete groups of groups: the index in `inner` of the first group behind it, and its child.
    outer: Vec<(usize, Child)>,
}

impl TreeWriter {
    pub(super) fn create(env: &Arc<dyn Env>, path: PathBuf, sstable_rows: u32) -> Result<Self, Error> {
        let bits = u32::BITS - sstable_rows.saturating_sub(1).leading_zeros();
        Ok(Self {
            file: PagedWriter::create(env, path)?,
            tail: Tail {
                sstable_rows,
                number_len: u8::try_from(bits.div_ceil(8).max(1)).unwrap_or(4),
                ..Tail::default()
            },
            current: Current::default(),
            list: ListWriter::default(),
            bits: Vec::new(),
            leaf: Leaf::default(),
            groups: [Group::default(), Group::default()],
            nodes: Writer::new(),
            inner: Vec::new(),
            outer: Vec::new(),
        })
    }

    /// Adds a term and some of its rows. Requires: terms ascend, rows of a term ascend, and row numbers are below the number of
    /// all rows.
    pub(super) fn add(&mut self, term: &[u8], numbers: &[u32]) -> Result<(), Error> {
        if self.current.count > 0 && self.current.term != term {
            self.end_term()?;
        }
        if self.current.count == 0 {
            self.current.term.clear();
            self.current.term.extend_from_slice(term);
        }
        self.current.count += u32::try_from(numbers.len()).unwrap_or(0);
        if u64::from(self.current.count) <= GROUP_ROWS[1] {
            self.current.numbers.extend_from_slice(numbers);
            return Ok(());
        }
        let held = std::mem::take(&mut self.current.numbers);
        self.list.add(&held, &mut self.file)?;
        self.list.add(numbers, &mut self.file)
    }

    fn end_term(&mut self) -> Result<(), Error> {
        // Taken and put back, to reuse the memory.
        let Current { term, count, numbers } = std::mem::take(&mut self.current);
        let rows = u64::from(count);
        let list = if numbers.len() <= BLOCK_NUMBERS && rows <= GROUP_ROWS[1] {
            None
        } else {
            self.list.add(&numbers, &mut self.file)?;
            Some(self.list.finish(&mut self.file)?)
        };
        // A term with more rows than a group becomes a group of its own, on each level whose groups it exceeds.
        let levels = GROUP_ROWS.iter().filter(|most| rows > **most).count();
        for level in 0..levels {
            self.end_leaf()?;
            self.end_group(level)?;
        }
        for group in &mut self.groups[..levels] {
            group.of_term = list;
        }
        self.write_term(&term, count, &numbers, list);
        self.tail.terms += 1;
        self.tail.rows += rows;
        self.groups[0].numbers.extend_from_slice(&numbers);
        self.current.term = std::mem::replace(&mut self.tail.last_term, term);
        self.current.numbers = numbers;
        self.current.numbers.clear();
        let is_full = self.leaf.terms == LEAF_TERMS || self.leaf.out.len() >= LEAF_BYTES;
        if is_full || rows > GROUP_ROWS[0] {
            self.end_leaf()?;
        }
        Ok(())
    }

    fn write_term(&mut self, term: &[u8], count: u32, numbers: &[u32], list: Option<ListAt>) {
        let leaf = &mut self.leaf;
        let mut shared = common_len(&self.tail.last_term, term);
        if leaf.terms == 0 {
            let is_first = self.tail.terms == 0;
            let separator_len = if is_first { 0 } else { term.len().min(shared + 1) };
            leaf.separator = term[..separator_len].to_vec();
            shared = 0;
            if is_first {
                self.tail.first_term = term.to_vec();
            }
        }
        let rest = &term[shared..];
        let many = if count > 1 { MANY } else { 0 };
        let head_shared = u8::try_from(shared.min(SHARED_LONG)).unwrap_or(0);
        let head_rest = u8::try_from(rest.len().min(REST_LONG)).unwrap_or(0);
        leaf.out.u8(many | head_shared | (head_rest << REST_SHIFT));
        if shared >= SHARED_LONG {
            leaf.out.uvint(shared as u64);
        }
        if rest.len() >= REST_LONG {
            leaf.out.uvint(rest.len() as u64);
        }
        leaf.out.bytes(rest);
        match (list, numbers) {
            (Some(list), _) => {
                leaf.out.uvint(u64::from(count));
                leaf.out.uvint(list.start);
                leaf.out.uvint(u64::from(list.blocks_len));
            }
            (None, [number]) => {
                let number_len = usize::from(self.tail.number_len);
                leaf.out.bytes(&number.to_le_bytes()[..number_len]);
            }
            (None, numbers) => {
                leaf.out.uvint(u64::from(count));
                let mut bytes = std::mem::take(&mut leaf.out).into_vec();
                encode_block(numbers, &mut bytes);
                leaf.out = Writer::from_vec(bytes);
            }
        }
        leaf.terms += 1;
        leaf.rows += u64::from(count);
    }

    fn end_leaf(&mut self) -> Result<(), Error> {
        if self.leaf.terms == 0 {
            return Ok(());
        }
        let leaf = std::mem::take(&mut self.leaf);
        let child = Child {
            at: self.file.position(),
            len: u32::try_from(leaf.out.len()).unwrap_or(u32::MAX),
            rows: leaf.rows,
            list: None,
        };
        self.file.append(leaf.out.as_slice())?;
        self.push(0, (leaf.separator, child))
    }

    /// Adds a complete child; ends the group if it is full.
    fn push(&mut self, level: usize, child: Separated) -> Result<(), Error> {
        let group = &mut self.groups[level];
        group.rows += child.1.rows;
        group.children.push(child);
        if group.rows >= GROUP_ROWS[level] || group.children.len() == FANOUT {
            self.end_group(level)?;
        }
        Ok(())
    }

    fn end_group(&mut self, level: usize) -> Result<(), Error> {
        let mut group = std::mem::take(&mut self.groups[level]);
        let Some((separator, first)) = group.children.first().cloned() else {
            self.groups[level] = group;
            return Ok(());
        };
        let list = match group.of_term.or(first.list.filter(|_| group.children.len() == 1)) {
            Some(list) => list,
            None => self.write_list(&mut group.numbers)?,
        };
        let mut child = Child {
            at: self.nodes.len() as u64,
            len: 0,
            rows: group.rows,
            list: Some(list),
        };
        if level == 1 {
            self.inner.append(&mut group.children);
            self.outer.push((self.inner.len(), child));
            return Ok(());
        }
        write_node(&group.children, 0, &mut self.nodes);
        child.len = u32::try_from(self.nodes.len() as u64 - child.at).unwrap_or(u32::MAX);
        self.groups[1].numbers.append(&mut group.numbers);
        self.push(1, (separator, child))
    }

    fn write_list(&mut self, numbers: &mut Vec<u32>) -> Result<ListAt, Error> {
        sort_once(numbers, self.tail.sstable_rows, &mut self.bits);
        self.list.add(numbers, &mut self.file)?;
        self.list.finish(&mut self.file)
    }

    /// Writes the rest, the nodes, and the tail. `definition` describes the terms.
    pub(super) fn finish(mut self, definition: &[u8]) -> Result<(), Error> {
        if self.current.count > 0 {
            self.end_term()?;
        }
        self.end_leaf()?;
        self.end_group(0)?;
        self.end_group(1)?;
        let mut level = self.write_nodes()?;
        while level.len() > 1 {
            self.tail.levels += 1;
            level = self.write_level(&level)?;
        }
        if let Some((_, root)) = level.first() {
            self.tail.root_at = root.at;
            self.tail.root_len = root.len;
        }
        self.tail.definition = definition.to_vec();
        self.file.finish(&self.tail.encode(), MAGIC)
    }

    /// Writes the nodes above the leaves, and the nodes above these.
    fn write_nodes(&mut self) -> Result<Vec<Separated>, Error> {
        let base = self.file.position();
        self.file.append(self.nodes.as_slice())?;
        let (inner, outer) = (std::mem::take(&mut self.inner), std::mem::take(&mut self.outer));
        self.tail.levels = if inner.is_empty() { 0 } else { 2 };
        let mut level = Vec::with_capacity(outer.len());
        let mut start = 0;
        for (end, child) in outer {
            let children = &inner[start..end];
            level.push((children[0].0.clone(), self.write_one(children, base, child)?));
            start = end;
        }
        Ok(level)
    }

    fn write_level(&mut self, children: &[Separated]) -> Result<Vec<Separated>, Error> {
        children
            .chunks(FANOUT)
            .map(|chunk| {
                let rows = chunk.iter().map(|(_, child)| child.rows).sum();
                let child = Child {
                    rows,
                    ..Child::default()
                };
                Ok((chunk[0].0.clone(), self.write_one(chunk, 0, child)?))
            })
            .collect()
    }

    /// Writes a node; returns the child that refers to it.
    fn write_one(&mut self, children: &[Separated], base: u64, mut child: Child) -> Result<Child, Error> {
        let mut out = Writer::new();
        write_node(children, base, &mut out);
        child.at = self.file.position();
        child.len = u32::try_from(out.len()).unwrap_or(u32::MAX);
        self.file.append(out.as_slice())?;
        Ok(child)
    }

    /// Removes the file.
    pub(super) fn abandon(self) {
        self.file.abandon();
    }
}

/// Number of bitmap words that cost as much as sorting one number.
const WORDS_OF_NUMBER: usize = 8;

/// Sorts numbers below a limit, and removes duplicates.
fn sort_once(numbers: &mut Vec<u32>, below: u32, bits: &mut Vec<u64>) {
    let words = below.div_ceil(u64::BITS) as usize;
    if words > numbers.len() * WORDS_OF_NUMBER {
        numbers.sort_unstable();
        numbers.dedup();
        return;
    }
    bits.clear();
    bits.resize(words, 0);
    for number in &*numbers {
        bits[(number / u64::BITS) as usize] |= 1 << (number % u64::BITS);
    }
    numbers.clear();
    for (first, word) in (0..below).step_by(u64::BITS as usize).zip(&*bits) {
        let mut left = *word;
        while left > 0 {
            numbers.push(first + left.trailing_zeros());
            left &= left - 1;
        }
    }
}

fn write_node(children: &[Separated], base: u64, out: &mut Writer) {
    let mut before: &[u8] = &[];
    for (separator, child) in children {
        let shared = common_len(before, separator);
        out.uvint(shared as u64);
        out.bytes_vint(&separator[shared..]);
        out.uvint(base + child.at);
        out.uvint(u64::from(child.len));
        out.uvint(child.rows);
        let list = child.list.unwrap_or_default();
        out.uvint(u64::from(list.count));
        if list.count > 0 {
            out.uvint(list.start);
            out.uvint(u64::from(list.blocks_len));
        }
        before = separator;
    }
}
