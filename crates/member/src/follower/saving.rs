//! Saving how far this node is, telling the others, and trimming the logs.

use std::collections::BTreeMap;
use std::time::Duration;

use ilion_cluster::{Change, ClusterState, META_TABLET};
use ilion_commitlog::Position;

use super::{BUSY, Due, Follower};
use crate::copying::Job;
use crate::meta_file;
use crate::shared::nanos;

/// Maximum number of records of the meta log after which the state of the cluster is saved: a start reads the later ones again.
const META_RECORDS_MAX: u64 = 1000;

/// Up to where a replica has a tablet on disk, in the form of the meta log: it needs the records from this offset on.
fn position_of(end: u64) -> Position {
    Position::new(end, 0)
}

impl Follower {
    /// Saves what was applied, now and then.
    pub(super) fn save(&mut self) {
        let is_long_ago = self.is_due(Due::Save, self.shared.options.save_interval);
        let is_much = self.unsaved_bytes >= self.shared.options.save_bytes;
        let is_asked = self.is_saving_asked() || self.must_save && self.unsaved_bytes > 0;
        // The change of a schema saves, too.
        if self.is_taken_for_schema {
            return;
        }
        let Some(replica) = &mut self.replica else {
            return;
        };
        if !self.is_saving && (is_long_ago && self.unsaved_bytes > 0 || is_much || is_asked) {
            self.unsaved_bytes = 0;
            (self.is_saving, self.must_save) = (true, false);
            replica.take();
            self.begin_saving_for_copies();
        }
        if self.is_saving {
            let saved = self.replica.as_mut().map_or(Ok(true), |replica| replica.save());
            match saved {
                Ok(true) => {
                    self.is_saving = false;
                    self.answer_copies();
                    self.tell_flushed();
                }
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%error, "how far this node is cannot be saved; this is tried again")
                }
            }
        }
        let unsaved = self.meta.next_offset().saturating_sub(self.saved_meta);
        if unsaved >= self.shared.options.trim_records.min(META_RECORDS_MAX) {
            self.save_meta();
        }
    }

    /// Saves the knowledge from the meta log, so that the next start need not read the log from its beginning.
    pub(super) fn save_meta(&mut self) {
        let (Some(snapshot), true) = (self.meta.snapshot(), self.replica.is_some()) else {
            return;
        };
        match meta_file::write(&*self.shared.env, self.shared.engine.data_dir(), &snapshot) {
            Ok(()) => self.saved_meta = self.meta.next_offset(),
            Err(error) => {
                tracing::warn!(%error, "the state of the cluster cannot be saved; this is tried again")
            }
        }
    }

    /// Logs up to where this node does not need the logs any more, where that is further than the meta log says.
    pub(super) fn tell_flushed(&mut self) {
        let (Some(state), Some(node), Some(replica)) = (&self.meta.state, self.meta.node, &self.replica)
        else {
            return;
        };
        let ends = replica.saved_ends();
        let followed = ends.filter(|(tablet, _)| self.followed.contains(tablet));
        let positions: Vec<(u32, Position)> = followed
            .chain([(META_TABLET, self.saved_meta)])
            .map(|(tablet, end)| (tablet, position_of(end)))
            .filter(|(tablet, position)| *position > state.flushed(*tablet, node))
            .collect();
        if !positions.is_empty() {
            self.tell(Change::Flushed { positions });
        }
    }

    /// Logs a record that trims logs, now and then, if this is the node that does it.
    pub(super) fn trim(&mut self) {
        if !self.is_due(Due::Trim, self.shared.options.trim_interval) {
            return;
        }
        // The last record may have been lost.
        self.tell_flushed();
        let Some(state) = self.meta.state.as_ref().filter(|_| self.does_chores()) else {
            return;
        };
        self.log_snapshot(state);
        let mut sequences: Vec<Vec<u32>> = self.shared.sequences(state.tablets).into_values().collect();
        sequences.push(vec![META_TABLET]);
        let positions = trimmable(state, self.shared.options.trim_records, sequences);
        if !positions.is_empty() {
            self.tell(Change::Trim { positions });
        }
    }

    /// Logs a snapshot if the last one is old, so that the meta log can be trimmed. If it is lost, the next one comes a while later.
    fn log_snapshot(&self, state: &ClusterState) {
        let last = state.newest_snapshot().map_or(0, |position| position.segment.0);
        if state.position.segment.0.saturating_sub(last) < self.shared.options.trim_records {
            return;
        }
        let Some(parts) = self.meta.snapshot().and_then(|snapshot| snapshot.parts()) else {
            tracing::warn!(
                "the state of the cluster is too large for a snapshot in the meta log, which is not trimmed"
            );
            return;
        };
        for part in parts {
            self.tell(Change::Snapshot(part));
        }
    }

    /// Deletes what the meta log lets this node delete.
    pub(super) fn delete_trimmed(&mut self) {
        let trimmed = std::mem::take(&mut self.meta.trimmed);
        let logs = self.shared.sender.logs();
        // The positions of one sequence are the same: it is deleted once.
        let sequences = trimmed
            .into_iter()
            .map(|(tablet, offset)| (logs.sequence_of(tablet), (tablet, offset)));
        let sequences: BTreeMap<u32, (u32, u64)> = sequences.collect();
        if !sequences.is_empty() {
            self.worker.ask(Job::Delete(sequences.into_values().collect()));
        }
    }

    /// Saves before a stop, so that the next start has little to apply again.
    pub(super) fn save_before_stop(&mut self) {
        let ends = self.shared.now_nanos() + nanos(Duration::from_secs(10));
        if let Some(replica) = &mut self.replica {
            replica.take();
            while let Ok(false) = replica.save() {
                if self.shared.now_nanos() >= ends {
                    return;
                }
                ilion_env::turns::pause(BUSY);
            }
        }
        self.save_meta();
    }
}

/// Up to where logs can be deleted, if that is at least this many records. Logs of one sequence can only be deleted together: up to where
/// none of them is needed. Pure.
fn trimmable(state: &ClusterState, records: u64, sequences: Vec<Vec<u32>>) -> Vec<(u32, Position)> {
    let points = state.trim_points();
    let mut trimmable = Vec::new();
    for logs in sequences {
        // A log without a point may have records that a node needs that has been silent for long.
        let of_all: Option<Vec<Position>> = logs.iter().map(|log| points.get(log).copied()).collect();
        let Some(point) = of_all.and_then(|points| points.into_iter().min()) else {
            continue;
        };
        let trimmed = logs.iter().map(|log| state.trimmed(*log)).min();
        let gained = point
            .segment
            .0
            .saturating_sub(trimmed.map_or(0, |trimmed| trimmed.segment.0));
        if gained > 0 && gained >= records {
            trimmable.extend(logs.into_iter().map(|log| (log, point)));
        }
    }
    trimmable
}
