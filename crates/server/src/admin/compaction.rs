//! Requests and reports about compactions.

use std::fmt;
use std::path::PathBuf;

use ilion_engine::{AwaitedFacts, CompactionFacts, CompactionRequest, Engine, MajorOutput, TaskChoice};
use serde::{Deserialize, Serialize};

use super::{AdminError, TableChoice};

/// What to compact: all SSTables of the chosen tables, a range of tokens, or some files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct CompactionOrder {
    /// Only tables of this keyspace.
    pub keyspace: Option<String>,
    /// Only this table; needs the keyspace.
    pub table: Option<String>,
    /// Only SSTables with tokens above this one.
    pub start_token: Option<String>,
    /// Only SSTables with tokens up to this one.
    pub end_token: Option<String>,
    /// Writes several SSTables where the strategy would write one.
    #[serde(default)]
    pub split_output: bool,
    /// Only these SSTables: paths of Data.db, one per line.
    pub files: Option<String>,
}

impl StopOrder {
    pub(super) fn choice(&self) -> Result<TaskChoice, AdminError> {
        let Some(id) = &self.id else {
            return Ok(TaskChoice::All);
        };
        let parsed = id.parse().map(TaskChoice::WithId);
        parsed.map_err(|_| AdminError::Refused(format!("{id} is not the id of a compaction")))
    }
}

impl CompactionOrder {
    pub(super) fn tables(&self) -> TableChoice {
        TableChoice {
            keyspace: self.keyspace.clone(),
            table: self.table.clone(),
        }
    }

    pub(super) fn files(&self) -> Vec<PathBuf> {
        let lines = self.files.as_deref().unwrap_or_default().lines();
        lines.filter(|line| !line.is_empty()).map(PathBuf::from).collect()
    }

    pub(super) fn request(&self, engine: &Engine) -> Result<CompactionRequest, AdminError> {
        let partitioner = engine.partitioner();
        let token = |text: &String| {
            let parsed = partitioner.parse_token(text);
            parsed.map_err(|error| AdminError::Refused(format!("{text} is not a token: {error}")))
        };
        match (&self.start_token, &self.end_token) {
            (None, None) if self.split_output => Ok(CompactionRequest::Major(MajorOutput::Split)),
            (None, None) => Ok(CompactionRequest::Major(MajorOutput::AsUsual)),
            (start, end) => {
                let minimum = partitioner.minimum_token();
                let start = start.as_ref().map(token).transpose()?;
                let end = end.as_ref().map(token).transpose()?;
                Ok(CompactionRequest::Range(
                    start.unwrap_or_else(|| minimum.clone()),
                    end.unwrap_or(minimum),
                ))
            }
        }
    }
}

/// Which compactions to stop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct StopOrder {
    /// Only the compaction with this id.
    pub id: Option<String>,
}

/// Switches automatic compaction on or off.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct AutoCompactionOrder {
    /// Only tables of this keyspace.
    pub keyspace: Option<String>,
    /// Only this table; needs the keyspace.
    pub table: Option<String>,
    /// True switches it on.
    pub on: bool,
}

/// How fast compactions may read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ThroughputOrder {
    /// Limit for all compactions together; 0 is no limit.
    pub bytes_per_sec: u64,
}

/// The compactions that run, and those that are due.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CompactionReport {
    /// Limit of the bytes per second that compactions read; `None` is no limit.
    pub bytes_per_sec_max: Option<u64>,
    /// Compactions that run.
    pub running: Vec<RunningCompaction>,
    /// Tables in which compactions are due.
    pub pending: Vec<PendingCompactions>,
    /// Flushes and snapshots that operators wait for.
    #[serde(default)]
    pub awaited: Vec<AwaitedWork>,
}

/// A flush or a snapshot that an operator waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AwaitedWork {
    /// `Flush` or `Snapshot`.
    pub kind: String,
    /// Bytes of memtables that are done.
    pub done_bytes: u64,
    /// Bytes of all these memtables, as known at the beginning.
    pub total_bytes: u64,
}

/// A compaction that runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunningCompaction {
    /// Id for stopping it.
    pub id: String,
    /// Keyspace of its table.
    pub keyspace: String,
    /// Its table.
    pub table: String,
    /// Its purpose.
    pub kind: String,
    /// Bytes of input that it has read.
    pub done_bytes: u64,
    /// Bytes of all inputs.
    pub total_bytes: u64,
    /// Number of inputs.
    pub sstables: u64,
}

/// The compactions that are due in one table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PendingCompactions {
    /// Keyspace of the table.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// Estimated number of compactions.
    pub compactions: u64,
    /// SSTables that a read may have to touch only because these compactions are not done.
    pub debt: u64,
}

impl CompactionReport {
    pub(super) fn of(engine: &Engine) -> Self {
        let tables = engine.table_facts().into_iter();
        let behind = tables.filter(|table| table.pending_compactions > 0);
        Self {
            bytes_per_sec_max: engine.compaction_throughput(),
            running: engine.compactions().into_iter().map(running).collect(),
            pending: behind
                .map(|table| PendingCompactions {
                    keyspace: table.keyspace,
                    table: table.table,
                    compactions: table.pending_compactions,
                    debt: table.compaction_debt,
                })
                .collect(),
            awaited: engine.awaited().into_iter().map(awaited).collect(),
        }
    }
}

fn awaited(facts: AwaitedFacts) -> AwaitedWork {
    AwaitedWork {
        kind: facts.kind.to_owned(),
        done_bytes: facts.done_bytes,
        total_bytes: facts.total_bytes,
    }
}

fn running(facts: CompactionFacts) -> RunningCompaction {
    RunningCompaction {
        id: facts.id.to_string(),
        keyspace: facts.keyspace,
        table: facts.table,
        kind: facts.kind.to_owned(),
        done_bytes: facts.done_bytes,
        total_bytes: facts.total_bytes,
        sstables: facts.sstables as u64,
    }
}

impl fmt::Display for CompactionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pending: u64 = self.pending.iter().map(|table| table.compactions).sum();
        writeln!(f, "pending tasks: {pending}")?;
        for table in &self.pending {
            writeln!(
                f,
                "- {}.{}: {}, {} SSTables behind",
                table.keyspace, table.table, table.compactions, table.debt
            )?;
        }
        for task in &self.running {
            let percent = task.done_bytes * 100 / task.total_bytes.max(1);
            writeln!(
                f,
                "{}  {} of {}.{}: {percent}% of {} MiB, {} SSTables",
                task.id,
                task.kind,
                task.keyspace,
                task.table,
                task.total_bytes >> 20,
                task.sstables
            )?;
        }
        match self.bytes_per_sec_max {
            Some(rate) => write!(f, "throughput limit: {} MiB/s", rate >> 20),
            None => write!(f, "throughput limit: none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_reads_as_lines() {
        let report = CompactionReport {
            bytes_per_sec_max: Some(64 << 20),
            running: vec![RunningCompaction {
                keyspace: "ks".to_owned(),
                table: "t".to_owned(),
                kind: "compaction".to_owned(),
                done_bytes: 1 << 20,
                total_bytes: 4 << 20,
                sstables: 4,
                ..RunningCompaction::default()
            }],
            pending: vec![PendingCompactions {
                keyspace: "ks".to_owned(),
                table: "t".to_owned(),
                compactions: 2,
                debt: 3,
            }],
            ..CompactionReport::default()
        };
        let lines = report.to_string();
        assert!(
            lines.contains("pending tasks: 2\n- ks.t: 2, 3 SSTables behind\n"),
            "{lines}"
        );
        assert!(
            lines.contains("compaction of ks.t: 25% of 4 MiB, 4 SSTables"),
            "{lines}"
        );
    }
}
