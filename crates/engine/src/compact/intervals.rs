//! Which stretches of this node's commit log an SSTable covers.

use ilion_sstable::{CommitLogInterval, SSTable};
use uuid::Uuid;

/// What of this node's commit log an SSTable holds; nothing of one that another node wrote.
pub(crate) fn intervals_of(sstable: &SSTable, id: Uuid) -> Vec<CommitLogInterval> {
    let stats = sstable.stats();
    match stats.originating_host == Some(id) {
        true => stats.covered_intervals(),
        false => Vec::new(),
    }
}
