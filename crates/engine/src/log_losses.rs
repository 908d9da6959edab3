//! [`LogLosses`]: the parts of the commit log that the start could not read. They are logged once, and shown in the status while the
//! process runs.

use ilion_commitlog::{Hole, Missing, Mode, Options, ReplayReport};

/// The parts of the commit log that the start could not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogLosses {
    /// Damaged places, and a torn tail.
    pub places: u64,
    /// Bytes of these places, as far as they are known.
    pub bytes: u64,
    /// Whole records that were given up, since they depend on lost ones.
    pub records_given_up: u64,
    /// Gaps where segments, or the end of the log, are missing.
    pub gaps: u64,
}

impl LogLosses {
    /// Whether anything is lost.
    pub fn is_any(&self) -> bool {
        *self != Self::default()
    }
}

fn losses(report: &ReplayReport) -> LogLosses {
    let holes = report.holes.iter().chain(&report.torn_tail);
    LogLosses {
        places: (report.holes.len() + report.skipped.len()) as u64 + u64::from(report.torn_tail.is_some()),
        bytes: holes.map(|hole| hole.bytes).sum(),
        records_given_up: report.records_given_up,
        gaps: report.missing.len() as u64,
    }
}

/// Logs the losses, and returns their counts.
pub(crate) fn tell(report: &ReplayReport, commit_log: &Options) -> LogLosses {
    // In `batch` and `group` mode no write is acknowledged before its sync.
    let was_acknowledged = matches!(commit_log.mode, Mode::Periodic { .. });
    for Hole { position, bytes } in &report.holes {
        if was_acknowledged {
            tracing::error!(
                %position,
                bytes,
                "the commit log cannot be read here, before whole records: writes that were acknowledged and not yet synced \
                 are lost, those behind them were replayed"
            );
        } else {
            tracing::warn!(
                %position,
                bytes,
                "the commit log cannot be read here, before whole records: writes that were neither synced nor acknowledged \
                 are lost, those behind them were replayed"
            );
        }
    }
    if report.records_given_up > 0 {
        tracing::error!(
            records = report.records_given_up,
            "records of the commit log were given up: conditional writes and writes of tables with views, which depend on \
             lost records before them"
        );
    }
    if let Some(Hole { position, bytes }) = report.torn_tail {
        tracing::warn!(
            %position,
            bytes,
            "the commit log ends in a record that is damaged or was never finished; it and any records behind it are lost"
        );
    }
    for missing in &report.missing {
        match missing {
            Missing::Segments { after, before } => tracing::warn!(
                after = after.map(|id| id.0),
                before = before.0,
                segment_bytes = commit_log.segment_bytes,
                "segments of the commit log are missing between these two, or before the first: their writes are lost if they were \
                 in no SSTable"
            ),
            Missing::Tail { from, to } => tracing::warn!(
                %from,
                %to,
                segments = to.segment.0.saturating_sub(from.segment.0),
                bytes = (from.segment == to.segment).then(|| to.offset.saturating_sub(from.offset)),
                "the end of the commit log is missing: it was synced further than it goes now, and the writes in between are lost \
                 if they were in no SSTable"
            ),
        }
    }
    for (file, offset) in &report.skipped {
        tracing::error!(
            file = %file.display(),
            offset,
            "damaged records of the commit log were skipped, as configured"
        );
    }
    losses(report)
}
