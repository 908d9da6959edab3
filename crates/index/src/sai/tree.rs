//! The term file of an index: terms in order with their rows, and a tree above them.
//!
//! ```text
//! body  := (leaf | list) *  node *                   lists stand before the leaf or the group that names them
//! leaf  := term *                                    about 128 terms, or 1.5 KiB
//! term  := head:u8  [shared:uvint]  [rest_len:uvint]  rest  rows
//! head  := shared (15: it follows) | rest_len << 4 (7: it follows) | 128 if it has more than one row
//! rows  := number: number_len bytes  |  count:uvint  (block | start:uvint blocks_len:uvint)      a block up to 128 rows
//! node  := child *
//! child := shared:uvint  rest_len:uvint  rest  at:uvint  len:uvint  rows:uvint  list_count:uvint
//!          [start:uvint  blocks_len:uvint]           the rows of all below, united
//! ```
//!
//! Leaves are collected into groups of about 4096 rows, and these into groups of about 262144 rows. So a range of terms is read
//! as a few united lists, and the leaves at its two ends. A term with more rows than a group is a group of its own; the list of
//! the group is that of the term. A child's separator is above every term of the child before it, and not above its own first
//! term.

use super::postings::ListAt;
use crate::paged::Magic;

/// The last character is the version.
pub(super) const MAGIC: &Magic = b"ILTERMS1";
/// Maximum number of terms in a leaf.
pub(super) const LEAF_TERMS: usize = 128;
/// Maximum size of a leaf.
pub(super) const LEAF_BYTES: usize = 1536;
/// Rows of a group of leaves, and of a group of such groups.
pub(super) const GROUP_ROWS: [u64; 2] = [1 << 12, 1 << 18];
/// Maximum number of children of a node or group.
pub(super) const FANOUT: usize = 64;
/// Maximum number of levels. 2^32 rows need fewer.
pub(super) const LEVELS_MAX: u8 = 12;

pub(super) const SHARED_LONG: usize = 15;
pub(super) const REST_SHIFT: u32 = 4;
pub(super) const REST_LONG: usize = 7;
pub(super) const MANY: u8 = 128;

/// The description of a child in its node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Child {
    pub(super) at: u64,
    pub(super) len: u32,
    /// Number of pairs of term and row below the child.
    pub(super) rows: u64,
    /// The united list of all its rows; `None` if the file has no such list.
    pub(super) list: Option<ListAt>,
}

/// The fields of the tail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tail {
    /// Number of rows of the SSTable, indexed or not.
    pub(super) sstable_rows: u32,
    /// Bytes of a row number in a leaf.
    pub(super) number_len: u8,
    /// Levels of nodes above the leaves; zero if there are no terms.
    pub(super) levels: u8,
    pub(super) root_at: u64,
    pub(super) root_len: u32,
    pub(super) terms: u64,
    /// Number of pairs of term and row.
    pub(super) rows: u64,
    /// The description of the terms ([`super::indexed::Indexed::words`]). A file with another description has other terms.
    pub(super) definition: Vec<u8>,
    pub(super) first_term: Vec<u8>,
    pub(super) last_term: Vec<u8>,
}

impl Tail {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = self.sstable_rows.to_le_bytes().to_vec();
        out.extend_from_slice(&[self.number_len, self.levels]);
        out.extend_from_slice(&self.root_at.to_le_bytes());
        out.extend_from_slice(&self.root_len.to_le_bytes());
        out.extend_from_slice(&self.terms.to_le_bytes());
        out.extend_from_slice(&self.rows.to_le_bytes());
        for bytes in [&self.definition, &self.first_term, &self.last_term] {
            let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            out.extend_from_slice(&len.to_le_bytes());
            out.extend_from_slice(bytes);
        }
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (sstable_rows, rest) = bytes.split_first_chunk()?;
        let (&[number_len, levels], rest) = rest.split_first_chunk()?;
        let (root_at, rest) = rest.split_first_chunk()?;
        let (root_len, rest) = rest.split_first_chunk()?;
        let (terms, rest) = rest.split_first_chunk()?;
        let (rows, rest) = rest.split_first_chunk()?;
        let (definition, rest) = split_bytes(rest)?;
        let (first_term, rest) = split_bytes(rest)?;
        let (last_term, rest) = split_bytes(rest)?;
        let is_sound = rest.is_empty() && (1..=4).contains(&number_len) && levels <= LEVELS_MAX;
        is_sound.then_some(Self {
            sstable_rows: u32::from_le_bytes(*sstable_rows),
            number_len,
            levels,
            root_at: u64::from_le_bytes(*root_at),
            root_len: u32::from_le_bytes(*root_len),
            terms: u64::from_le_bytes(*terms),
            rows: u64::from_le_bytes(*rows),
            definition,
            first_term,
            last_term,
        })
    }
}

fn split_bytes(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
    let (bytes, rest) = rest.split_at_checked(len)?;
    Some((bytes.to_vec(), rest))
}

/// The bytes are not a leaf or node.
#[derive(Debug)]
pub(super) struct Damaged;

impl From<ilion_codec::Error> for Damaged {
    fn from(_: ilion_codec::Error) -> Self {
        Self
    }
}

/// The length of the common prefix of two terms.
pub(super) fn common_len(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(a, b)| a == b).count()
}
