//! Iterates over the payloads of a trie, in the order of their keys.
//!
//! Invariant: the stack has only nodes with slots left, and each comes before the one below it in the file.

use super::{Node, Nodes, Payload};
use crate::Result;

/// A node, and the slots that are not visited yet.
#[derive(Debug)]
struct Branch {
    node: Node,
    /// In an ascending walk: the next slot. In a descending walk: the slots before this one are left.
    slot: usize,
}

/// Iterates over payloads from a key on.
#[derive(Debug)]
pub(crate) struct Ascending {
    nodes: Nodes,
    stack: Vec<Branch>,
    /// A payload that was found on the way down, but not returned yet.
    found: Option<Payload>,
    /// True if the first payload belongs to a prefix of the key, or to the key itself: the whole key of that payload may be below
    /// or above the given key.
    pub(crate) begins_with_prefix: bool,
}

impl Ascending {
    /// Iterates over the payloads of all keys from `key` on. The payload of the longest prefix of `key` comes first, if there
    /// is one.
    pub(crate) fn from(mut nodes: Nodes, root: u64, key: &[u8]) -> Result<Self> {
        let mut node = nodes.read(root)?;
        let mut found = node.payload();
        let mut stack = Vec::new();
        for byte in key {
            let (way, child) = step(&mut nodes, &node, *byte)?;
            let above = way.map_or_else(|slot| slot, |slot| slot + 1);
            push(&mut stack, node, above);
            match child {
                Some(child) => node = child,
                None => return Ok(Self::new(nodes, stack, found)),
            }
            found = node.payload().or(found);
        }
        push(&mut stack, node, 0);
        Ok(Self::new(nodes, stack, found))
    }

    fn new(nodes: Nodes, stack: Vec<Branch>, found: Option<Payload>) -> Self {
        Self {
            begins_with_prefix: found.is_some(),
            nodes,
            stack,
            found,
        }
    }

    pub(crate) fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// The next payload; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Payload>> {
        if let Some(found) = self.found.take() {
            return Ok(Some(found));
        }
        while let Some(mut branch) = self.stack.pop() {
            let child = self.nodes.child(&branch.node, branch.slot)?;
            branch.slot += 1;
            push(&mut self.stack, branch.node, branch.slot);
            if let Some(child) = child {
                let payload = child.payload();
                push(&mut self.stack, child, 0);
                if payload.is_some() {
                    return Ok(payload);
                }
            }
        }
        Ok(None)
    }
}

/// The slot of the byte in the node, or the one that it would have, and the node there.
fn step(
    nodes: &mut Nodes,
    node: &Node,
    byte: u8,
) -> Result<(std::result::Result<usize, usize>, Option<Node>)> {
    let way = node.find(byte);
    let child = match way {
        Ok(slot) => nodes.child(node, slot)?,
        Err(_) => None,
    };
    Ok((way, child))
}

fn push(stack: &mut Vec<Branch>, node: Node, slot: usize) {
    if slot < node.slots {
        stack.push(Branch { node, slot });
    }
}

/// Iterates over payloads backwards from a key.
#[derive(Debug)]
pub(crate) struct Descending {
    nodes: Nodes,
    stack: Vec<Branch>,
}

impl Descending {
    /// Iterates over the payloads of all keys up to `key`, the highest first.
    pub(crate) fn from(mut nodes: Nodes, root: u64, key: &[u8]) -> Result<Self> {
        let mut node = nodes.read(root)?;
        let mut stack = Vec::new();
        for byte in key {
            let (way, child) = step(&mut nodes, &node, *byte)?;
            let slot = way.unwrap_or_else(|slot| slot);
            push_before(&mut stack, node, slot);
            match child {
                Some(child) => node = child,
                None => return Ok(Self { nodes, stack }),
            }
        }
        push_before(&mut stack, node, 0);
        Ok(Self { nodes, stack })
    }

    pub(crate) fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// The next payload; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Payload>> {
        while let Some(mut branch) = self.stack.pop() {
            let Some(slot) = branch.slot.checked_sub(1) else {
                // The key of a node is a prefix of the keys below it, so in descending order it comes after them.
                return Ok(branch.node.payload());
            };
            let child = self.nodes.child(&branch.node, slot)?;
            branch.slot = slot;
            push_before(&mut self.stack, branch.node, slot);
            if let Some(child) = child {
                let slots = child.slots;
                push_before(&mut self.stack, child, slots);
            }
        }
        Ok(None)
    }
}

/// Pushes the node if it has a slot before `slot`, or a payload.
fn push_before(stack: &mut Vec<Branch>, node: Node, slot: usize) {
    if slot > 0 || node.has_payload() {
        stack.push(Branch { node, slot });
    }
}
