//! [`Worker`]: a thread for what takes long: copies of tablets, removing the data of tablets that others hold, and deleting what no node
//! needs of the logs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender as Channel, unbounded};
use ilion_cluster::{Node, Tablets};
use ilion_engine::Load;
use ilion_env::turns::{Spawned, spawn};
use ilion_replica::CopiedState;
use uuid::Uuid;

use crate::copying::message::{CopyMessage, CopyRequest};
use crate::copying::source::slices_of;
use crate::forward::MemberClient;
use crate::shared::Shared;
use crate::waiting::receive;

/// A job of the thread.
pub(crate) enum Job {
    /// Copies tablets.
    Copy(CopyJob),
    /// Deletes the logs of tablets below these offsets.
    Delete(Vec<(u32, u64)>),
    /// Removes the data of tablets of this ring.
    Clear(BTreeSet<u32>, Tablets),
}

/// Tablets that are to be copied.
pub(crate) struct CopyJob {
    pub cluster: Uuid,
    pub ring: Tablets,
    /// The schema that this node has, and keeps until the end.
    pub schema_epoch: u64,
    /// The nodes that may have each of them, the best first.
    pub sources: BTreeMap<u32, Vec<Node>>,
    /// Earlier attempts have failed for a while: refusals are logged.
    pub is_stuck: bool,
}

/// The outcome of a job.
pub(crate) enum Done {
    /// The tables have the tablets; the state belongs to them.
    Copied(CopiedState),
    /// No node gave them.
    NotCopied(BTreeSet<u32>),
    /// The data of tablets is removed, or was not.
    Cleared(Result<(), String>),
}

/// See the module. Dropping it waits for the thread.
pub(crate) struct Worker {
    jobs: Option<Channel<Job>>,
    pub done: Receiver<Done>,
    thread: Option<Spawned<()>>,
}

impl Worker {
    pub fn start(shared: Arc<Shared>, client: Arc<dyn MemberClient>) -> std::io::Result<Self> {
        let (jobs, next) = unbounded::<Job>();
        let (send_done, done) = unbounded();
        let thread = spawn("ilion-copies", move || {
            while let Ok(job) = receive(&next) {
                match job {
                    Job::Copy(job) => Copying::new(&shared, &*client, job).run(&send_done),
                    Job::Delete(offsets) => delete(&shared, &offsets),
                    Job::Clear(tablets, ring) => {
                        let cleared = shared.engine.clear_ranges(&slices_of(&tablets, ring));
                        drop(send_done.send(Done::Cleared(cleared.map_err(|error| error.to_string()))));
                    }
                }
            }
        })?;
        Ok(Self {
            jobs: Some(jobs),
            done,
            thread: Some(thread),
        })
    }

    /// Queues a job behind the earlier ones.
    pub fn ask(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // Cannot fail: the thread ends only when this value is dropped.
            let _ = jobs.send(job);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_none()
        {
            tracing::error!("the thread that copies tablets ended with a panic");
        }
    }
}

fn delete(shared: &Shared, offsets: &[(u32, u64)]) {
    for (tablet, offset) in offsets {
        if shared.is_stopping.load(Relaxed) {
            return;
        }
        // The next deletion covers the same records.
        if let Err(error) = shared.sender.logs().delete_below(*tablet, *offset) {
            tracing::warn!(tablet, offset, %error, "a log is trimmed later");
        }
    }
}

struct Copying<'a> {
    shared: &'a Shared,
    client: &'a dyn MemberClient,
    job: CopyJob,
}

impl<'a> Copying<'a> {
    fn new(shared: &'a Shared, client: &'a dyn MemberClient, job: CopyJob) -> Self {
        Self { shared, client, job }
    }

    fn run(&self, done: &Channel<Done>) {
        let mut wanted: BTreeSet<u32> = self.job.sources.keys().copied().collect();
        let rounds = self.job.sources.values().map(Vec::len).max().unwrap_or(0);
        for round in 0..rounds {
            for (node, tablets) in by_source(&self.job.sources, &wanted, round) {
                if self.shared.is_stopping.load(Relaxed) {
                    return;
                }
                match self.copy(node, &tablets) {
                    Ok(state) => {
                        for (tablet, _) in state.ends() {
                            wanted.remove(&tablet);
                        }
                        drop(done.send(Done::Copied(state)));
                    }
                    Err(reason) if self.job.is_stuck => {
                        tracing::info!(node, tablets = tablets.len(), %reason, "a node does not give tablets");
                    }
                    Err(_) => {}
                }
            }
        }
        drop(done.send(Done::NotCopied(wanted)));
    }

    /// Copies those of the tablets that a node has. What an attempt leaves behind is removed before the next.
    fn copy(&self, node: Node, tablets: &BTreeSet<u32>) -> Result<CopiedState, String> {
        let engine = &self.shared.engine;
        let needed = |tablet: &u32| (*tablet, engine.tablet_seen(*tablet));
        let request = CopyRequest {
            schema_epoch: self.job.schema_epoch,
            tablets: tablets.iter().map(needed).collect(),
        };
        let began = self.shared.now_nanos();
        let is_wanted = || !self.shared.is_stopping.load(Relaxed);
        let mut parts = self.client.copy(node, request.encode().into(), &is_wanted);
        let state = self.first(&mut parts, &request)?;
        let given: BTreeSet<u32> = state.ends().map(|(tablet, _)| tablet).collect();
        let is_begun = |(tablet, needed): &(u32, u64)| *needed > 0 && given.contains(tablet);
        if request.tablets.iter().any(is_begun) {
            let slices = slices_of(&given, self.job.ring);
            engine.clear_ranges(&slices).map_err(|error| error.to_string())?;
        }
        let given = Arc::new(given);
        let bytes = self.receive(&mut parts, &given)?;
        let millis = self.shared.now_nanos().saturating_sub(began) / 1_000_000;
        tracing::info!(
            node,
            asked = tablets.len(),
            tablets = given.len(),
            bytes,
            millis,
            "tablets were copied"
        );
        Ok(state)
    }

    /// The state of the replica, checked.
    fn first(
        &self,
        parts: &mut dyn Iterator<Item = Result<Bytes, String>>,
        request: &CopyRequest,
    ) -> Result<CopiedState, String> {
        let CopyMessage::State(bytes) = self.next(parts)? else {
            return Err(out_of_order());
        };
        let state = CopiedState::decode(&bytes).map_err(|error| error.to_string())?;
        let needed: BTreeMap<u32, u64> = request.tablets.iter().copied().collect();
        let is_asked = |(tablet, end): (u32, u64)| needed.get(&tablet).is_some_and(|needed| end >= *needed);
        let is_answer = state.ends().next().is_some() && state.ends().all(is_asked);
        if !is_answer || state.cluster() != self.job.cluster || state.schema_epoch() != request.schema_epoch {
            return Err("the node has sent another state than was asked for".to_owned());
        }
        Ok(state)
    }

    fn next(&self, parts: &mut dyn Iterator<Item = Result<Bytes, String>>) -> Result<CopyMessage, String> {
        if self.shared.is_stopping.load(Relaxed) {
            return Err("this node stops".to_owned());
        }
        let part = parts.next().ok_or("the copy ends too early")??;
        CopyMessage::decode(&part).map_err(|error| error.to_string())
    }

    /// Brings the SSTables into the tables; returns their bytes.
    fn receive(
        &self,
        parts: &mut dyn Iterator<Item = Result<Bytes, String>>,
        tablets: &Arc<BTreeSet<u32>>,
    ) -> Result<u64, String> {
        let engine = &self.shared.engine;
        let mut all = 0;
        let mut current: Option<(Load, Vec<String>)> = None;
        loop {
            let part = self.next(parts)?;
            if !matches!(part, CopyMessage::Piece { .. })
                && let Some((load, _)) = current.take()
            {
                engine.finish_load(&load).map_err(|error| error.to_string())?;
            }
            match part {
                CopyMessage::SSTable {
                    table,
                    name,
                    components,
                } => {
                    let sizes: Vec<(&str, u64)> = components
                        .iter()
                        .map(|(name, bytes)| (name.as_str(), *bytes))
                        .collect();
                    let load = engine
                        .begin_copy(tablets, table, &name, &sizes)
                        .map_err(|error| error.to_string())?;
                    let names = components.iter().map(|(name, _)| name.clone()).collect();
                    current = Some((load, names));
                }
                CopyMessage::Piece {
                    component,
                    offset,
                    crc,
                    bytes,
                } => {
                    let (load, names) = current.as_mut().ok_or_else(out_of_order)?;
                    let name = names.get(usize::from(component)).ok_or_else(out_of_order)?;
                    load.receive(name, offset, crc, &bytes)
                        .map_err(|error| error.to_string())?;
                    all += bytes.len() as u64;
                }
                CopyMessage::End => return Ok(all),
                CopyMessage::State(_) => return Err(out_of_order()),
            }
        }
    }
}

fn out_of_order() -> String {
    "the parts of the copy are out of order".to_owned()
}

/// The wanted tablets by the node that each is asked from in this round. Pure.
fn by_source(
    sources: &BTreeMap<u32, Vec<Node>>,
    wanted: &BTreeSet<u32>,
    round: usize,
) -> BTreeMap<Node, BTreeSet<u32>> {
    let mut by_node: BTreeMap<Node, BTreeSet<u32>> = BTreeMap::new();
    for tablet in wanted {
        if let Some(node) = sources.get(tablet).and_then(|nodes| nodes.get(round)) {
            by_node.entry(*node).or_default().insert(*tablet);
        }
    }
    by_node
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_asks_the_next_node_for_what_is_still_wanted() {
        let sources = BTreeMap::from([(1, vec![10, 20]), (2, vec![20, 10]), (3, vec![10])]);
        let all = BTreeSet::from([1, 2, 3]);
        let first = by_source(&sources, &all, 0);
        assert_eq!(
            first,
            BTreeMap::from([(10, BTreeSet::from([1, 3])), (20, BTreeSet::from([2]))])
        );
        let second = by_source(&sources, &BTreeSet::from([1, 3]), 1);
        assert_eq!(second, BTreeMap::from([(20, BTreeSet::from([1]))]));
    }
}
