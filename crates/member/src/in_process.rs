//! [`InProcess`]: members of the same process, for tests of several nodes.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use ilion_cluster::Node;
use parking_lot::RwLock;

use crate::forward::{MemberClient, NotHanded, Parts};
use crate::member::Member;

/// How the members of a process reach each other. Clones share them.
#[derive(Clone, Default)]
pub struct InProcess {
    /// How reads reach the members.
    pub readers: ilion_coordinator::InProcess,
    members: Arc<RwLock<BTreeMap<Node, Weak<Member>>>>,
}

impl InProcess {
    /// Adds a member that has joined, or replaces it.
    pub fn add(&self, node: Node, member: &Arc<Member>) {
        self.readers.add(node, member.reader());
        self.members.write().insert(node, Arc::downgrade(member));
    }
}

impl MemberClient for InProcess {
    fn execute(&self, node: Node, request: Bytes, _ends_nanos: u64) -> Result<Bytes, NotHanded> {
        let member = self.members.read().get(&node).and_then(Weak::upgrade);
        let member = member.ok_or_else(|| NotHanded::Before(format!("node {node} is not there")))?;
        Ok(member.execute_for(&request).into())
    }

    fn copy<'a>(&'a self, node: Node, request: Bytes, _is_wanted: &'a dyn Fn() -> bool) -> Parts<'a> {
        let member = self.members.read().get(&node).and_then(Weak::upgrade);
        let parts = member
            .ok_or_else(|| format!("node {node} is not there"))
            .and_then(|member| member.copy_for(&request));
        match parts {
            Ok(parts) => Box::new(parts),
            Err(reason) => Box::new(std::iter::once(Err(reason))),
        }
    }
}
