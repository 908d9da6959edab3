//! [`CatchingUp`]: finds a snapshot in a meta log whose beginning is deleted. Pure.
//!
//! All records before the end of the snapshot are kept, since those after the record that the snapshot was taken at must be applied to it.

use std::collections::BTreeMap;

use bytes::Bytes;
use ilion_cluster::{Change, Node, Record as MetaRecord, SNAPSHOT_PARTS_MAX, SnapshotPart};
use ilion_commitlog::{Position, Record};

use crate::meta_snapshot::MetaSnapshot;

/// Maximum number of records that are kept: a log is trimmed long before it has this many.
const KEPT_MAX: usize = 1 << 20;

/// See the module.
pub(crate) struct CatchingUp {
    /// The first record that the log has.
    start: u64,
    /// When the search began.
    pub since_nanos: u64,
    kept: Vec<(u64, Record)>,
    /// A snapshot of each sender, whose parts are read one after another.
    open: BTreeMap<Node, (Position, BTreeMap<u32, Bytes>)>,
}

/// A snapshot, and the records that follow it.
pub(crate) struct Found {
    pub snapshot: MetaSnapshot,
    pub records: Vec<(u64, Record)>,
}

impl CatchingUp {
    /// The log begins with the record at `start`.
    pub fn from(start: u64, since_nanos: u64) -> Self {
        Self {
            start,
            since_nanos,
            kept: Vec::new(),
            open: BTreeMap::new(),
        }
    }

    /// Reads the next record. The snapshot is found at its last part.
    ///
    /// # Errors
    /// The log has no snapshot that can be used.
    pub fn read(&mut self, offset: u64, record: &Record) -> Result<Option<Found>, String> {
        if self.kept.len() >= KEPT_MAX {
            return Err(self.no_snapshot());
        }
        self.kept.push((offset, record.clone()));
        let change = MetaRecord::decode(&record.body)
            .map_err(|error| format!("meta log at {offset}: {error}"))?
            .change;
        let Change::Snapshot(part) = change else {
            return Ok(None);
        };
        let Some((position, bytes)) = self.join(record.origin.node, part) else {
            return Ok(None);
        };
        // The records between the snapshot and the start of the log are deleted.
        if position.segment.0.saturating_add(1) < self.start {
            return Ok(None);
        }
        match MetaSnapshot::decode(&bytes) {
            Ok(snapshot) if snapshot.state.position == position => {
                let mut records = std::mem::take(&mut self.kept);
                records.retain(|(offset, _)| *offset > position.segment.0);
                Ok(Some(Found { snapshot, records }))
            }
            Ok(_) => Ok(None),
            Err(reason) => {
                tracing::warn!(offset, %reason, "the next snapshot of the cluster's state is looked for");
                Ok(None)
            }
        }
    }

    /// The error of a node that finds no snapshot.
    pub fn no_snapshot(&self) -> String {
        format!(
            "the meta log begins with record {}, and has no snapshot of the cluster's state: its beginning was deleted by somebody else than \
             Ilion. Check retention.ms and retention.bytes of its topic; a node that still runs logs a snapshot within some minutes",
            self.start
        )
    }

    /// Adds a part. Returns the snapshot once it is whole.
    fn join(&mut self, sender: Node, part: SnapshotPart) -> Option<(Position, Vec<u8>)> {
        if part.part >= part.parts || part.parts > SNAPSHOT_PARTS_MAX {
            return None;
        }
        let (position, parts) = self
            .open
            .entry(sender)
            .or_insert_with(|| (part.position, BTreeMap::new()));
        if *position != part.position {
            (*position, *parts) = (part.position, BTreeMap::new());
        }
        parts.insert(part.part, part.bytes);
        if parts.len() < part.parts as usize {
            return None;
        }
        let (position, parts) = self.open.remove(&sender)?;
        Some((position, parts.into_values().collect::<Vec<_>>().concat()))
    }
}

#[cfg(test)]
mod tests {
    use ilion_commitlog::Origin;
    use uuid::Uuid;

    use super::*;
    use crate::entering::envelope;
    use crate::meta_snapshot::tests::snapshot_at;

    const CLUSTER: Uuid = Uuid::from_u128(7);

    fn record(node: Node, change: Change) -> Record {
        let cluster = CLUSTER;
        let body = MetaRecord { cluster, change }.encode();
        let origin = Origin {
            node,
            incarnation: 1,
            seq: 1,
        };
        envelope(origin, &body).to_record()
    }

    /// Has two parts. It was taken at a record.
    fn snapshot(offset: u64) -> MetaSnapshot {
        snapshot_at(offset, &[300_000])
    }

    fn parts(node: Node, offset: u64) -> [Record; 2] {
        let parts = snapshot(offset).parts().unwrap();
        let records = parts.into_iter().map(|part| record(node, Change::Snapshot(part)));
        records.collect::<Vec<_>>().try_into().unwrap()
    }

    fn beat() -> Record {
        record(1, Change::Heartbeat { schema_epoch: 0 })
    }

    /// Reads a log that begins with the record 100: the place where the snapshot is found, and what follows it.
    fn find(log: &[Record]) -> Option<(u64, u64, Vec<u64>)> {
        let mut catching_up = CatchingUp::from(100, 0);
        (100..).zip(log).find_map(|(offset, record)| {
            let found = catching_up.read(offset, record).unwrap()?;
            let following = found.records.iter().map(|(offset, _)| *offset).collect();
            Some((offset, found.snapshot.state.position.segment.0, following))
        })
    }

    #[test]
    fn a_snapshot_is_found_at_its_last_part() {
        let [first, second] = parts(1, 100);
        let log = [beat(), beat(), first.clone(), beat(), second.clone(), beat()];
        assert_eq!(find(&log), Some((104, 100, vec![101, 102, 103, 104])));
        // Its first record may be the one before the beginning.
        let [first, second] = parts(1, 99);
        assert_eq!(find(&[first.clone(), second]), Some((101, 99, vec![100, 101])));
        assert_eq!(find(&[first, beat()]), None);
    }

    #[test]
    fn parts_of_several_senders_and_copies_of_parts_do_not_mix() {
        let ([one, two], [other, another]) = (parts(1, 101), parts(2, 102));
        let log = [beat(), beat(), beat(), one.clone(), other, one, two];
        assert_eq!(find(&log), Some((106, 101, vec![102, 103, 104, 105, 106])));
        let [newer, newest] = parts(1, 103);
        // The sender began again.
        let log = [
            beat(),
            beat(),
            beat(),
            beat(),
            parts(1, 101)[0].clone(),
            newer,
            another,
            newest,
        ];
        assert_eq!(find(&log), Some((107, 103, vec![104, 105, 106, 107])));
    }

    #[test]
    fn a_snapshot_that_does_not_reach_the_beginning_or_is_damaged_is_passed_over() {
        let [first, second] = parts(1, 98);
        assert_eq!(find(&[first, second]), None);
        let damaged = snapshot(100).parts().unwrap().into_iter().map(|mut part| {
            part.bytes = part.bytes.iter().map(|byte| byte ^ 1).collect();
            record(1, Change::Snapshot(part))
        });
        let [first, second] = parts(2, 101);
        let log: Vec<Record> = [beat(), beat()]
            .into_iter()
            .chain(damaged)
            .chain([first, second])
            .collect();
        assert_eq!(find(&log), Some((105, 101, vec![102, 103, 104, 105])));
    }
}
