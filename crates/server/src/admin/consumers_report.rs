//! Named consumers of changes: their progress, their requests, and the removal of segments that none of them needs.

use std::fmt;

use ilion_commitlog::{Position, SegmentId};
use ilion_query::Identity;
use serde::{Deserialize, Serialize};

use super::AdminError;
use super::handling::failed;
use crate::changes::{IS_OFF, readable_table};
use crate::named_consumers::{Entry, NamedConsumers, Progress};
use crate::server_node::ServerNode;

/// Reports that a consumer has processed changes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CommitOrder {
    /// Its name.
    pub consumer: String,
    /// Keyspace of the table.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// Everything before this position was processed.
    pub position: String,
    /// When the last change before it was logged, in milliseconds since 1970.
    pub logged_ms: i64,
}

/// Removes segments of changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ReleaseOrder {
    /// Removes those before this position, whatever consumers have processed; `None`: those that all named consumers have processed.
    pub before: Option<String>,
}

/// Forgets a consumer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ForgetOrder {
    /// Its name.
    pub consumer: String,
}

/// The segments that were removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseReport {
    /// Number of segments.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Id of a segment: all changes before it are gone.
    pub before: u64,
}

impl fmt::Display for ReleaseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            segments,
            bytes,
            before,
        } = self;
        write!(
            f,
            "{segments} segments before {before} were removed: {bytes} bytes"
        )
    }
}

/// A table of a named consumer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumerReport {
    /// Its name.
    pub consumer: String,
    /// Keyspace of the table.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// Everything before this position was processed.
    pub position: String,
    /// Age of the last change that the consumer has processed; 0 if it has processed all.
    pub lag_millis: u64,
    /// Whether the consumer is reading now.
    pub is_reading: bool,
}

/// All named consumers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumersReport {
    /// One report for each table of each consumer.
    pub consumers: Vec<ConsumerReport>,
}

impl fmt::Display for ConsumersReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<24} {:<32} {:<24} {:>12}  reads",
            "consumer", "table", "position", "lag (ms)"
        )?;
        for report in &self.consumers {
            let table = format!("{}.{}", report.keyspace, report.table);
            let reads = if report.is_reading { "yes" } else { "no" };
            write!(
                f,
                "\n{:<24} {table:<32} {:<24} {:>12}  {reads}",
                report.consumer, report.position, report.lag_millis
            )?;
        }
        Ok(())
    }
}

/// The progress of all named consumers; an empty report if change data capture is off.
pub(super) fn report(node: &ServerNode) -> Result<ConsumersReport, AdminError> {
    let Some(consumers) = node.named_consumers() else {
        return Ok(ConsumersReport::default());
    };
    let (engine, reading) = (node.engine(), node.consumers().list());
    let end = engine.end_of_changes().map_err(failed)?;
    let now_micros = engine.env().now_micros();
    let of = |(entry, progress): (Entry, Progress)| {
        let lag_micros = match progress.position >= end {
            true => 0,
            false => now_micros - progress.logged_micros,
        };
        ConsumerReport {
            is_reading: reading.iter().any(|reader| reader.named.as_ref() == Some(&entry)),
            lag_millis: u64::try_from(lag_micros / 1000).unwrap_or(0),
            position: progress.position.to_string(),
            consumer: entry.consumer,
            keyspace: entry.keyspace,
            table: entry.table,
        }
    };
    let all = consumers.list().map_err(AdminError::Failed)?;
    Ok(ConsumersReport {
        consumers: all.into_iter().map(of).collect(),
    })
}

/// Saves how far a consumer has processed a table.
pub(super) fn commit(node: &ServerNode, order: &CommitOrder, identity: &Identity) -> Result<(), AdminError> {
    let CommitOrder { keyspace, table, .. } = order;
    readable_table(node, keyspace, table, identity).map_err(AdminError::Refused)?;
    let progress = Progress {
        position: position(&order.position)?,
        logged_micros: order.logged_ms.saturating_mul(1000),
    };
    let entry = Entry {
        consumer: order.consumer.clone(),
        keyspace: keyspace.clone(),
        table: table.clone(),
    };
    consumers(node)?
        .commit(&entry, progress)
        .map_err(AdminError::Refused)
}

/// Removes segments before the given position, or else those that all named consumers have processed.
pub(super) fn release(node: &ServerNode, order: &ReleaseOrder) -> Result<ReleaseReport, AdminError> {
    let before = match &order.before {
        Some(text) => position(text)?.segment,
        None => needed_from(node)?,
    };
    let (segments, bytes) = node.engine().release_changes(before).map_err(failed)?;
    Ok(ReleaseReport {
        segments,
        bytes,
        before: before.0,
    })
}

/// The first segment that a named consumer needs. Consumers of dropped tables do not count.
fn needed_from(node: &ServerNode) -> Result<SegmentId, AdminError> {
    let schema = node.engine().schema();
    let all = consumers(node)?.list().map_err(AdminError::Failed)?;
    let needed = all
        .into_iter()
        .filter(|(entry, _)| schema.table(&entry.keyspace, &entry.table).is_some())
        .map(|(_, progress)| progress.position.segment);
    needed.min().ok_or_else(|| {
        AdminError::Refused(
            "no named consumer reads changes, so all may still be needed: name the position before which they are not (--before)"
                .to_owned(),
        )
    })
}

/// Forgets a consumer; returns how many tables it read.
pub(super) fn forget(node: &ServerNode, order: &ForgetOrder) -> Result<usize, AdminError> {
    consumers(node)?
        .forget(&order.consumer)
        .map_err(AdminError::Refused)
}

fn consumers(node: &ServerNode) -> Result<&NamedConsumers, AdminError> {
    node.named_consumers()
        .ok_or_else(|| AdminError::Refused(IS_OFF.to_owned()))
}

fn position(text: &str) -> Result<Position, AdminError> {
    Position::parse(text)
        .ok_or_else(|| AdminError::Refused(format!("{text:?} is no position in the stream of changes")))
}
