//! Reads nodes from a file.

use std::sync::Arc;

use bytes::Bytes;

use super::{Node, PAGE_BYTES};
use crate::{ChunkReader, Error, Result};

/// Reads nodes. Keeps the last chunk, since most children are beside their parents.
#[derive(Debug)]
pub(crate) struct Nodes {
    file: Arc<ChunkReader>,
    chunk_start: u64,
    chunk: Bytes,
}

impl Nodes {
    pub(crate) fn of(file: Arc<ChunkReader>) -> Self {
        Self {
            file,
            chunk_start: 0,
            chunk: Bytes::new(),
        }
    }

    /// The node at `position`.
    pub(crate) fn read(&mut self, position: u64) -> Result<Node> {
        let page_end = (position / PAGE_BYTES)
            .saturating_add(1)
            .saturating_mul(PAGE_BYTES);
        let is_at_hand = |start: u64, chunk: &Bytes| (start..start + chunk.len() as u64).contains(&position);
        if !is_at_hand(self.chunk_start, &self.chunk) {
            (self.chunk_start, self.chunk) = self.file.chunk_at(position)?;
        }
        let offset = |at: u64| usize::try_from(at.saturating_sub(self.chunk_start)).unwrap_or(usize::MAX);
        let page = offset(position)..offset(page_end).min(self.chunk.len());
        Node::read(position, self.chunk.slice(page))
            .ok_or_else(|| self.corrupt(position, "a node of a trie within its page"))
    }

    /// The child of a slot; `None` if there is none.
    pub(crate) fn child(&mut self, parent: &Node, slot: usize) -> Result<Option<Node>> {
        let distance = parent.distance(slot);
        if distance == 0 && parent.may_lack_children() {
            return Ok(None);
        }
        match parent.position.checked_sub(distance) {
            Some(child) if distance > 0 => self.read(child).map(Some),
            _ => Err(self.corrupt(
                parent.position,
                "a node whose children come before it in the file",
            )),
        }
    }

    /// The child for `byte`; `None` if there is none.
    pub(crate) fn child_for(&mut self, parent: &Node, byte: u8) -> Result<Option<Node>> {
        match parent.find(byte) {
            Ok(slot) => self.child(parent, slot),
            Err(_) => Ok(None),
        }
    }

    /// Follows `key` from the root to a node without children; `None` if a transition is missing, or the key ends before.
    pub(crate) fn find_leaf(&mut self, root: u64, key: &[u8]) -> Result<Option<Node>> {
        let mut node = self.read(root)?;
        for byte in key {
            if node.slots == 0 {
                break;
            }
            match self.child_for(&node, *byte)? {
                Some(child) => node = child,
                None => return Ok(None),
            }
        }
        Ok((node.slots == 0).then_some(node))
    }

    #[cold]
    pub(crate) fn corrupt(&self, position: u64, expected: &'static str) -> Error {
        self.file.corrupt(position, expected)
    }
}
