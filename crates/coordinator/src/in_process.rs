//! [`InProcess`]: replicas of the same process, for tests and simulations. Commands and answers pass through their bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use ilion_cluster::Node;
use parking_lot::RwLock;

use crate::answer::{Answer, ReplicaError, decode_answer};
use crate::client::{Pending, ReplicaClient};
use crate::command::ReadCommand;
use crate::serve::ReplicaReader;

/// The replicas of a process. A read is done when its answer is waited for, on that thread.
#[derive(Clone, Default)]
pub struct InProcess {
    replicas: Arc<RwLock<BTreeMap<Node, Arc<ReplicaReader>>>>,
}

impl InProcess {
    /// The way to these replicas.
    pub fn new(replicas: BTreeMap<Node, Arc<ReplicaReader>>) -> Self {
        Self {
            replicas: Arc::new(RwLock::new(replicas)),
        }
    }

    /// Adds a replica, or replaces it.
    pub fn add(&self, node: Node, replica: ReplicaReader) {
        self.replicas.write().insert(node, Arc::new(replica));
    }

    /// A node as a replica; `None` if no replica has this number.
    pub fn replica(&self, node: Node) -> Option<Arc<ReplicaReader>> {
        self.replicas.read().get(&node).cloned()
    }
}

impl ReplicaClient for InProcess {
    fn send(&self, node: Node, command: ReadCommand) -> Box<dyn Pending> {
        Box::new(Asked {
            replica: self.replicas.read().get(&node).cloned(),
            command: command.encode().into(),
        })
    }
}

struct Asked {
    replica: Option<Arc<ReplicaReader>>,
    command: Bytes,
}

impl Pending for Asked {
    fn wait(self: Box<Self>, _deadline_nanos: u64) -> Result<Answer, ReplicaError> {
        let Some(replica) = self.replica else {
            return Err(ReplicaError::Unreachable("no such node".to_owned()));
        };
        decode_answer(&Bytes::from(replica.answer(&self.command)))
    }
}
