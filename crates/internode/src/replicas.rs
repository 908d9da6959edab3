//! Reads between nodes: [`RemoteReplicas`] sends the commands of a coordinator, [`ReadService`] answers those of others.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ilion_cluster::Node;
use ilion_coordinator::{
    Answer, Pending, Read, ReadCommand, ReplicaClient, ReplicaError, ReplicaReader, Signal, decode_answer,
};

use crate::client::{Call, Client};
use crate::error::CallError;
use crate::kind::{Kind, Lane};
use crate::served::ServedCall;
use crate::service::{Served, Service, ServiceError};

/// The replicas on other nodes.
#[derive(Clone)]
pub struct RemoteReplicas {
    client: Client,
}

impl RemoteReplicas {
    /// Replicas that are reached by this client.
    pub fn new(client: Client) -> Self {
        Self { client }
    }
}

impl ReplicaClient for RemoteReplicas {
    fn send(&self, node: Node, command: ReadCommand) -> Box<dyn Pending> {
        let time_left = Duration::from_micros(command.time_left_micros);
        let (lane, request) = (lane_of(&command), command.encode().into());
        let call = self.client.call(node, Kind::READ, lane, request, Some(time_left));
        Box::new(RemoteAnswer(call))
    }
}

/// Which threads read. A read that waits for the log must not delay reads that need not wait. Pure.
fn lane_of(command: &ReadCommand) -> Lane {
    match &command.read {
        Read::Partition { .. } if command.applied.is_empty() => Lane::Point,
        Read::Partition { .. } => Lane::Waiting,
        Read::Range { .. } | Read::Search { .. } | Read::Nearest { .. } | Read::Estimate { .. } => {
            Lane::Heavy
        }
    }
}

struct RemoteAnswer(Call);

impl Pending for RemoteAnswer {
    fn wait(self: Box<Self>, deadline_nanos: u64) -> Result<Answer, ReplicaError> {
        match self.0.wait(deadline_nanos) {
            Ok(answer) => decode_answer(&answer),
            Err(CallError::Unreachable(reason)) => Err(ReplicaError::Unreachable(reason)),
            Err(CallError::Refused(reason)) => Err(ReplicaError::Refused(reason)),
            Err(CallError::TimedOut) => Err(ReplicaError::TimedOut),
            Err(CallError::Failed(reason)) => Err(ReplicaError::Failed(reason)),
        }
    }

    fn watch(&mut self, signal: &Arc<Signal>) -> bool {
        let signal = signal.clone();
        self.0.on_answer(move || signal.raise());
        true
    }

    fn is_answered(&self) -> bool {
        self.0.is_answered()
    }
}

/// Answers the reads of other nodes from this node's data.
pub struct ReadService {
    replica: Arc<ReplicaReader>,
}

impl ReadService {
    /// The service of this replica.
    pub fn new(replica: Arc<ReplicaReader>) -> Self {
        Self { replica }
    }
}

impl Service for ReadService {
    fn answer(&self, request: Bytes, _call: &ServedCall) -> Result<Served, ServiceError> {
        Ok(Served::Whole(self.replica.answer(&request).into()))
    }
}
