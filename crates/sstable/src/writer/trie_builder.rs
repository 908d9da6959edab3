//! Writes a trie whose keys are added in ascending order. Its layout keeps the number of pages of a lookup low.
//!
//! A branch stays in memory until it does not fit a page. Then the branches of its children are written, each within one page;
//! the largest branch that fits the current page is always written first. At most about a page per byte of the current key is in
//! memory.
//!
//! Compat: the layout has the same bytes as that of Cassandra's `IncrementalTrieWriterPageAware`.

use ilion_codec::Append as _;

use super::component_writer::ComponentWriter;
use super::trie_draft::{NodeDraft, PayloadBytes};
use crate::trie::PAGE_BYTES;

const PAGE_LEN: usize = PAGE_BYTES as usize;

#[derive(Debug)]
pub(super) struct TrieBuilder {
    /// Nodes of the last key, the root first; their other children are complete.
    path: Vec<NodeDraft>,
    last_key: Vec<u8>,
}

impl TrieBuilder {
    pub(super) fn new() -> Self {
        Self {
            path: vec![NodeDraft::new(0)],
            last_key: Vec::new(),
        }
    }

    /// Removes all keys.
    pub(super) fn clear(&mut self) {
        self.path.clear();
        self.path.push(NodeDraft::new(0));
        self.last_key.clear();
    }

    /// Adds a key. Requires: it is above the keys added before.
    pub(super) fn add(&mut self, key: &[u8], payload: PayloadBytes, out: &mut ComponentWriter) {
        let same = self.last_key.iter().zip(key).take_while(|(a, b)| a == b);
        let common = same.count();
        debug_assert!(
            self.path.len() == 1 || key[common..] > self.last_key[common..],
            "keys ascend"
        );
        while self.path.len() > common + 1 {
            self.complete_last(out);
        }
        self.path
            .extend(key[common..].iter().map(|byte| NodeDraft::new(*byte)));
        if let Some(node) = self.path.last_mut() {
            node.payload = payload;
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
    }

    /// Writes the rest; returns the position of the root. The builder is empty afterwards.
    pub(super) fn finish(&mut self, out: &mut ComponentWriter) -> u64 {
        while self.path.len() > 1 {
            self.complete_last(out);
        }
        let mut root = self.path.pop().unwrap_or_else(|| NodeDraft::new(0));
        complete(&mut root, out);
        make_fit(&mut root, out);
        self.clear();
        write(&mut root, out)
    }

    /// Removes the last node from the path, and adds it to its parent.
    fn complete_last(&mut self, out: &mut ComponentWriter) {
        if let Some(mut node) = self.path.pop() {
            complete(&mut node, out);
            if let Some(parent) = self.path.last_mut() {
                parent.children.push(node);
            }
        }
    }
}

/// Completes a node whose children are all known: if the node and its branch do not fit a page, writes the branch.
fn complete(node: &mut NodeDraft, out: &mut ComponentWriter) {
    node.branch_len = node.children.iter().map(NodeDraft::total_len).sum();
    let len = node.len_at(out.position());
    if len + node.branch_len >= PAGE_LEN {
        return write_children(node, out);
    }
    node.len = len;
    let is_far = |child: &NodeDraft| child.position.is_some();
    node.has_far_children = node.children.iter().any(is_far);
    let has_far = |child: &NodeDraft| !is_far(child) && (child.has_far_children || child.has_far_below);
    node.has_far_below = node.children.iter().any(has_far);
}

/// Makes the root and the rest of its branch fit the current page.
fn make_fit(root: &mut NodeDraft, out: &mut ComponentWriter) {
    let mut len = root.measure(out.position());
    if len <= bytes_left(out) {
        return;
    }
    if len <= PAGE_LEN {
        pad(out);
        len = root.measure(out.position());
    }
    if len <= bytes_left(out) {
        return;
    }
    write_children(root, out);
    if root.len > bytes_left(out) {
        pad(out);
        root.measure(out.position());
    }
}

/// Writes the branches of all children that are not in the file yet, each into one page.
fn write_children(node: &mut NodeDraft, out: &mut ComponentWriter) {
    // Ascending by length, then by transition.
    let waiting = node.children.iter().enumerate();
    let waiting = waiting.filter(|(_, child)| child.position.is_none());
    let mut waiting: Vec<(usize, usize)> = waiting.map(|(at, child)| (child.total_len(), at)).collect();
    waiting.sort_unstable();
    while !waiting.is_empty() {
        let fitting = waiting.partition_point(|(len, _)| *len <= bytes_left(out));
        let (_, at) = match fitting.checked_sub(1) {
            Some(largest) => waiting.remove(largest),
            None => {
                pad(out);
                waiting.remove(waiting.len() - 1)
            }
        };
        let child = &mut node.children[at];
        if let Some(len) = len_if_too_long(child, out) {
            let place = waiting.partition_point(|other| *other < (len, at));
            waiting.insert(place, (len, at));
            continue;
        }
        let position = write(child, out);
        child.settle(position);
    }
    node.branch_len = 0;
    node.has_far_children = true;
    node.has_far_below = false;
    node.len = node.len_at(out.position());
}

/// The length of a branch, if it does not fit the current page; else `None`. If it fits no page, its children are written.
fn len_if_too_long(child: &mut NodeDraft, out: &mut ComponentWriter) -> Option<usize> {
    if !child.has_far_children && !child.has_far_below {
        return None;
    }
    if child.measure(out.position()) <= bytes_left(out) {
        return None;
    }
    if bytes_left(out) == PAGE_LEN {
        write_children(child, out);
    }
    Some(child.total_len())
}

/// Writes a branch, children first. Returns the position of its root.
fn write(node: &mut NodeDraft, out: &mut ComponentWriter) -> u64 {
    for child in &mut node.children {
        if child.position.is_none() {
            child.position = Some(write(child, out));
        }
    }
    let position = out.position();
    node.encode(position, out.buffer());
    debug_assert_eq!(
        out.position() - position,
        node.len as u64,
        "the node is as long as planned"
    );
    position
}

fn bytes_left(out: &ComponentWriter) -> usize {
    let used = out.position() % PAGE_BYTES;
    PAGE_LEN - usize::try_from(used).unwrap_or(0)
}

/// Pads the file to the start of the next page, unless it is at the start of a page.
fn pad(out: &mut ComponentWriter) {
    const ZEROS: [u8; PAGE_LEN] = [0; PAGE_LEN];
    let left = bytes_left(out);
    if left < PAGE_LEN {
        out.buffer().bytes(&ZEROS[..left]);
    }
}

#[cfg(test)]
mod tests;
