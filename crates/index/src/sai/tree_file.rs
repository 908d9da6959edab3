//! Reads the term file of an index.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use ilion_codec::Reader;
use ilion_env::Env;
use ilion_pages::PageBytes;
use ilion_rows::ReadError;

use super::coded_terms::CodedTerms;
use super::lookup::TermRange;
use super::numbers::Found;
use super::postings::{BLOCK_NUMBERS, ListAt, block_len, decode_block};
use super::tree::{Child, Damaged, MAGIC, MANY, REST_LONG, REST_SHIFT, SHARED_LONG, Tail};
use crate::Error;
use crate::paged::{PagedFile, u64_at, unusable};

/// The terms of one SSTable.
pub(super) struct TreeFile {
    pub(super) file: PagedFile,
    pub(super) tail: Tail,
}

/// A node or leaf, compared with a range.
#[derive(Clone, Copy)]
struct Subtree {
    child: Child,
    /// True if none of its terms is before the range.
    is_start_inside: bool,
    /// True if none of its terms is behind the range.
    is_end_inside: bool,
}

impl Subtree {
    fn is_whole(&self) -> bool {
        self.is_start_inside && self.is_end_inside
    }
}

/// A traversal of the tree for one range.
struct Walk<'r> {
    range: &'r TermRange,
    /// Number of bytes that may still be read. Each node is visited at most once, so damage cannot cause a longer traversal.
    left: u64,
}

/// The rows of a term.
enum TermRows<'b> {
    One(u32),
    Block(&'b [u8], usize),
    List(ListAt),
}

impl TermRows<'_> {
    fn count(&self) -> u64 {
        match self {
            Self::One(_) => 1,
            Self::Block(_, count) => *count as u64,
            Self::List(list) => u64::from(list.count),
        }
    }
}

impl TreeFile {
    pub(super) fn open(env: &Arc<dyn Env>, path: &Path) -> Result<Self, Error> {
        let (file, fields) = PagedFile::open(env, path, MAGIC)?;
        let tail = Tail::decode(&fields).ok_or_else(|| unusable(path, "its tail is invalid"))?;
        Ok(Self { file, tail })
    }

    fn root(&self, range: &TermRange) -> Subtree {
        Subtree {
            child: Child {
                at: self.tail.root_at,
                len: self.tail.root_len,
                rows: self.tail.rows,
                list: None,
            },
            is_start_inside: range.from.is_empty(),
            is_end_inside: range.to.is_none(),
        }
    }

    /// True if no term of the file lies in the range. Costs no I/O.
    fn is_outside(&self, range: &TermRange) -> bool {
        self.tail.levels == 0
            || range.is_empty()
            || range.is_before(&self.tail.first_term)
            || range.is_after(&self.tail.last_term)
    }

    /// The range without the limits that do not exclude any term of the file.
    fn widened(&self, range: &TermRange) -> TermRange {
        let mut range = range.clone();
        if !range.is_after(&self.tail.first_term) {
            range.from.clear();
        }
        if !range.is_before(&self.tail.last_term) {
            range.to = None;
        }
        range
    }

    /// Adds the rows of the terms in a range.
    pub(super) fn find(&self, range: &TermRange, found: &mut Found) -> Result<(), ReadError> {
        if self.is_outside(range) {
            return Ok(());
        }
        let range = self.widened(range);
        let mut walk = self.walk(&range);
        self.find_in(self.root(&range), self.tail.levels, &mut walk, found)
    }

    fn find_in(
        &self,
        subtree: Subtree,
        level: u8,
        walk: &mut Walk<'_>,
        found: &mut Found,
    ) -> Result<(), ReadError> {
        if level == 0 {
            return self.each_term(subtree.child, walk, &mut |rows| add_rows(&rows, found));
        }
        for subtree in self.subtrees(subtree, walk)? {
            match subtree.child.list.filter(|_| subtree.is_whole()) {
                Some(list) => found.lists.push(list),
                None => self.find_in(subtree, level - 1, walk, found)?,
            }
        }
        Ok(())
    }

    /// The number of pairs of term and row in a range.
    pub(super) fn count(&self, range: &TermRange) -> Result<u64, ReadError> {
        if self.is_outside(range) {
            return Ok(0);
        }
        let range = self.widened(range);
        let mut walk = self.walk(&range);
        self.count_in(self.root(&range), self.tail.levels, &mut walk)
    }

    fn count_in(&self, subtree: Subtree, level: u8, walk: &mut Walk<'_>) -> Result<u64, ReadError> {
        if subtree.is_whole() {
            return Ok(subtree.child.rows);
        }
        let mut count = 0_u64;
        if level == 0 {
            self.each_term(subtree.child, walk, &mut |rows| {
                count = count.saturating_add(rows.count());
                Some(())
            })?;
            return Ok(count);
        }
        for subtree in self.subtrees(subtree, walk)? {
            count = count.saturating_add(self.count_in(subtree, level - 1, walk)?);
        }
        Ok(count)
    }

    fn walk<'r>(&self, range: &'r TermRange) -> Walk<'r> {
        Walk {
            range,
            left: self.file.body_length(),
        }
    }

    /// The bytes of a node or leaf.
    fn bytes_of(&self, child: Child, walk: &mut Walk<'_>) -> Result<PageBytes<'_>, ReadError> {
        let left = walk.left.checked_sub(u64::from(child.len));
        walk.left = left.ok_or_else(|| {
            self.file
                .corrupt(child.at, "a tree in which each node has one parent")
        })?;
        self.file.bytes(child.at, child.len as usize)
    }

    /// The children of a node that may have terms of the range.
    fn subtrees(&self, node: Subtree, walk: &mut Walk<'_>) -> Result<Vec<Subtree>, ReadError> {
        let range = walk.range;
        let damaged = || self.file.corrupt(node.child.at, "a node of the index");
        let bytes = self.bytes_of(node.child, walk)?;
        let mut input = Reader::new(&bytes);
        let mut subtrees: Vec<Subtree> = Vec::new();
        let mut separators = CodedTerms::from(&range.from);
        // The previous child, which ends where the next one starts.
        let mut pending: Option<Subtree> = None;
        while !input.is_empty() {
            let (separator, child) = read_child(&mut input, &mut separators).map_err(|_| damaged())?;
            if child.at >= node.child.at {
                return Err(damaged());
            }
            let before = pending.replace(Subtree {
                child,
                is_start_inside: separator.is_some(),
                is_end_inside: node.is_end_inside,
            });
            let Some(separator) = separator else {
                continue;
            };
            if let Some(mut before) = before
                && range.from[..] < *separator
            {
                before.is_end_inside = range.to.as_ref().is_none_or(|to| *separator <= to[..]);
                subtrees.push(before);
            }
            if range.is_before(separator) {
                return Ok(subtrees);
            }
        }
        subtrees.extend(pending);
        Ok(subtrees)
    }

    fn each_term(
        &self,
        leaf: Child,
        walk: &mut Walk<'_>,
        take: &mut dyn FnMut(TermRows<'_>) -> Option<()>,
    ) -> Result<(), ReadError> {
        let bytes = self.bytes_of(leaf, walk)?;
        let mut input = Reader::new(&bytes);
        let mut terms = CodedTerms::from(&walk.range.from);
        while !input.is_empty() {
            let read = self.read_term(&mut input, &mut terms, walk.range, take);
            match read.map_err(|_| self.file.corrupt(leaf.at, "a leaf of the index"))? {
                ControlFlow::Continue(()) => {}
                ControlFlow::Break(()) => break,
            }
        }
        Ok(())
    }

    fn read_term(
        &self,
        input: &mut Reader<'_>,
        terms: &mut CodedTerms<'_>,
        range: &TermRange,
        take: &mut dyn FnMut(TermRows<'_>) -> Option<()>,
    ) -> Result<ControlFlow<()>, Damaged> {
        let head = input.u8()?;
        let mut shared = usize::from(head) & SHARED_LONG;
        if shared == SHARED_LONG {
            shared = usize::try_from(input.uvint()?).map_err(|_| Damaged)?;
        }
        let mut rest = usize::from((head & !MANY) >> REST_SHIFT);
        if rest == REST_LONG {
            rest = input.uvint_len()?;
        }
        let term = terms.next(shared, input.take(rest)?)?;
        let rows = self.read_rows(input, head & MANY != 0)?;
        match term {
            None => {}
            Some(term) if range.is_before(term) => return Ok(ControlFlow::Break(())),
            Some(_) => take(rows).ok_or(Damaged)?,
        }
        Ok(ControlFlow::Continue(()))
    }

    fn read_rows<'f>(&self, input: &mut Reader<'f>, is_many: bool) -> Result<TermRows<'f>, Damaged> {
        if !is_many {
            let bytes = input.take(usize::from(self.tail.number_len))?;
            return Ok(TermRows::One(
                u32::try_from(u64_at(bytes, 0)).map_err(|_| Damaged)?,
            ));
        }
        let count = u32::try_from(input.uvint()?).map_err(|_| Damaged)?;
        if count as usize <= BLOCK_NUMBERS {
            let len = block_len(input.rest(), count as usize).ok_or(Damaged)?;
            return Ok(TermRows::Block(input.take(len)?, count as usize));
        }
        Ok(TermRows::List(read_list(input, count)?))
    }
}

fn add_rows(rows: &TermRows<'_>, found: &mut Found) -> Option<()> {
    match rows {
        TermRows::One(number) => found.numbers.push(*number),
        TermRows::Block(bytes, count) => return decode_block(bytes, *count, &mut found.numbers),
        TermRows::List(list) => found.lists.push(*list),
    }
    Some(())
}

fn read_list(input: &mut Reader<'_>, count: u32) -> Result<ListAt, Damaged> {
    Ok(ListAt {
        start: input.uvint()?,
        blocks_len: u32::try_from(input.uvint()?).map_err(|_| Damaged)?,
        count,
    })
}

/// Reads a child, with its separator; `None` if that is before the bound of `separators`.
fn read_child<'s>(
    input: &mut Reader<'_>,
    separators: &'s mut CodedTerms<'_>,
) -> Result<(Option<&'s [u8]>, Child), Damaged> {
    let shared = usize::try_from(input.uvint()?).map_err(|_| Damaged)?;
    let separator = separators.next(shared, input.bytes_vint()?)?;
    let at = input.uvint()?;
    let len = u32::try_from(input.uvint()?).map_err(|_| Damaged)?;
    let rows = input.uvint()?;
    let list_count = u32::try_from(input.uvint()?).map_err(|_| Damaged)?;
    let list = if list_count > 0 {
        Some(read_list(input, list_count)?)
    } else {
        None
    };
    Ok((separator, Child { at, len, rows, list }))
}
