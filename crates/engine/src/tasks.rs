//! [`Tasks`]: the running compactions and builds of indexes, their progress, and stopping them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ilion_schema::TableId;
use parking_lot::{Condvar, Mutex};
use uuid::Uuid;

/// A running compaction or build of an index.
pub(crate) struct Task {
    pub id: Uuid,
    pub job: Job,
    pub done_bytes: AtomicU64,
    is_stopped: AtomicBool,
}

/// The description of a task.
pub(crate) struct Job {
    pub table_id: TableId,
    pub keyspace: String,
    pub table: String,
    pub kind: &'static str,
    pub directory: PathBuf,
    pub sstables: usize,
    pub total_bytes: u64,
}

impl Task {
    /// True if it must end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Bytes that it has not read yet.
    pub(crate) fn left_bytes(&self) -> u64 {
        self.job
            .total_bytes
            .saturating_sub(self.done_bytes.load(Ordering::Relaxed))
    }
}

/// Which tasks to stop or wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskChoice {
    /// All.
    All,
    /// Those of a table.
    OfTable(TableId),
    /// The one with this id.
    WithId(Uuid),
}

impl TaskChoice {
    fn has(self, task: &Task) -> bool {
        match self {
            Self::All => true,
            Self::OfTable(table) => task.job.table_id == table,
            Self::WithId(id) => task.id == id,
        }
    }
}

/// The running tasks.
#[derive(Default)]
pub(crate) struct Tasks {
    running: Mutex<Vec<Arc<Task>>>,
    ended: Condvar,
}

/// Removes a task from the list when it is dropped.
pub(crate) struct Registered<'a> {
    tasks: &'a Tasks,
    pub task: Arc<Task>,
}

impl Tasks {
    pub(crate) fn begin(&self, id: Uuid, job: Job) -> Registered<'_> {
        let task = Arc::new(Task {
            id,
            job,
            done_bytes: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
        });
        self.running.lock().push(task.clone());
        Registered { tasks: self, task }
    }

    pub(crate) fn list(&self) -> Vec<Arc<Task>> {
        self.running.lock().clone()
    }

    /// Stops tasks; returns how many.
    pub(crate) fn stop(&self, choice: TaskChoice) -> usize {
        let running = self.running.lock();
        let chosen = running.iter().filter(|task| choice.has(task));
        chosen.map(|task| task.stop()).count()
    }

    /// Returns when none of these tasks is running.
    pub(crate) fn wait_until_ended(&self, choice: TaskChoice) {
        let mut running = self.running.lock();
        while running.iter().any(|task| choice.has(task)) {
            self.ended.wait(&mut running);
        }
    }

    /// Bytes that the tasks may still write.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.running.lock().iter().map(|task| task.left_bytes()).sum()
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        let mut running = self.tasks.running.lock();
        running.retain(|task| !Arc::ptr_eq(task, &self.task));
        self.tasks.ended.notify_all();
    }
}

/// A running compaction or build of an index, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionFacts {
    /// Its id, by which it can be stopped.
    pub id: Uuid,
    /// Keyspace of its table.
    pub keyspace: String,
    /// Its table.
    pub table: String,
    /// Its kind, as Cassandra names it.
    pub kind: &'static str,
    /// Bytes of input that it has read.
    pub done_bytes: u64,
    /// Bytes of its inputs.
    pub total_bytes: u64,
    /// Number of its inputs.
    pub sstables: usize,
    /// Directory of its result.
    pub directory: PathBuf,
}

impl CompactionFacts {
    pub(crate) fn of(task: &Task) -> Self {
        let job = &task.job;
        Self {
            id: task.id,
            keyspace: job.keyspace.clone(),
            table: job.table.clone(),
            kind: job.kind,
            done_bytes: task.done_bytes.load(Ordering::Relaxed).min(job.total_bytes),
            total_bytes: job.total_bytes,
            sstables: job.sstables,
            directory: job.directory.clone(),
        }
    }
}
