//! Records of the meta log, and how this node waits for their outcome, which it learns by reading the log.

use std::sync::Arc;

use crossbeam_channel::bounded;
use ilion_cluster::{Change, META_TABLET, Record};
use ilion_commitlog::{AppendError, ENVELOPE_BYTES, Kind, Origin};
use ilion_query::StoreError;
use uuid::Uuid;

use crate::meta::Asked;
use crate::sender::Unsent;
use crate::settling::of_append;
use crate::shared::Shared;
use crate::waiting::receive_until;

/// A record of the meta log, without its number.
pub(crate) fn meta_record(cluster: Uuid, change: Change, ends_nanos: u64) -> Unsent {
    Unsent {
        log: META_TABLET,
        kind: Kind::Schema,
        schema_epoch: 0,
        body: Record { cluster, change }.encode().into(),
        ends_nanos,
    }
}

/// Logs a change of the schema or of the ring, and waits until this node has read what became of it.
///
/// # Errors
/// It is not logged, this node does not follow the cluster any more, or the time is over: then the change may still be made.
pub(crate) fn log_and_read(
    shared: &Arc<Shared>,
    change: Change,
    ends_nanos: u64,
) -> Result<Asked, StoreError> {
    let cluster = shared.know(|known| known.state.as_ref().map(|state| state.cluster));
    let unsent = meta_record(cluster.unwrap_or_default(), change, ends_nanos);
    check_size(shared, unsent.body.len())?;
    let (mut seq, (sender, sent)) = (0, bounded(1));
    let done = move |result: Result<u64, AppendError>| drop(sender.send(result));
    let numbered = |origin: Origin| seq = origin.seq;
    let refused = shared.sender.send(unsent, numbered, Box::new(done));
    refused.map_err(of_append)?;
    // Other outcomes are learned when the log is read.
    if let Ok(Err(error @ AppendError::Refused(_))) = receive_until(shared, &sent, ends_nanos) {
        return Err(of_append(error));
    }
    let found = shared.wait_until(ends_nanos, |known| match known.asked.get(&seq) {
        Some(asked) => Some(Ok(asked.clone())),
        None => known
            .halted
            .clone()
            .map(|reason| Err(StoreError::WriteRefused(reason))),
    });
    found.unwrap_or_else(|| {
        Err(of_append(AppendError::Unknown(
            "the change may still be made".to_owned(),
        )))
    })
}

/// Checks that the log takes a record with a body of this many bytes.
pub(crate) fn check_size(shared: &Shared, body_bytes: usize) -> Result<(), StoreError> {
    let (bytes, most) = (
        body_bytes + ENVELOPE_BYTES,
        shared.sender.logs().caps().record_bytes_max,
    );
    match u32::try_from(bytes).is_ok_and(|bytes| bytes <= most) {
        true => Ok(()),
        false => Err(StoreError::Invalid(format!(
            "A write of {bytes} bytes to partitions of one tablet is too large: the log takes at most {most}"
        ))),
    }
}
