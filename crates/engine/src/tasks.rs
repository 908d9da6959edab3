//! [`Tasks`]: the running compactions and builds of indexes, their progress, and stopping them; and the progress of checks of SSTables,
//! which are only shown.

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
    /// True if the task must end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Input bytes that the task has not read yet.
    pub(crate) fn left_bytes(&self) -> u64 {
        self.job
            .total_bytes
            .saturating_sub(self.done_bytes.load(Ordering::Relaxed))
    }
}

/// Which tasks to stop or wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskChoice {
    /// All tasks.
    All,
    /// The tasks of a table.
    OfTable(TableId),
    /// The task with this id.
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
    /// Checks of SSTables. Operators see them, but they cannot be stopped or waited for.
    checks: Mutex<Vec<Arc<Task>>>,
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

    /// Shows a check of SSTables until the value is dropped.
    pub(crate) fn check(&self, id: Uuid, job: Job) -> Checking<'_> {
        let task = Arc::new(Task {
            id,
            job,
            done_bytes: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
        });
        self.checks.lock().push(task.clone());
        Checking {
            tasks: self,
            task,
            before: 0,
        }
    }

    /// The running tasks and checks.
    pub(crate) fn shown(&self) -> Vec<Arc<Task>> {
        let mut shown = self.list();
        shown.extend(self.checks.lock().iter().cloned());
        shown
    }

    pub(crate) fn list(&self) -> Vec<Arc<Task>> {
        self.running.lock().clone()
    }

    /// Stops tasks; returns their number.
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

/// Removes a check from the list when it is dropped.
pub(crate) struct Checking<'a> {
    tasks: &'a Tasks,
    task: Arc<Task>,
    /// Bytes of the SSTables that are already checked.
    before: u64,
}

impl Checking<'_> {
    /// Sets the progress: `bytes` of the current SSTable are checked.
    pub(crate) fn at(&self, bytes: u64) {
        let done = self.before.saturating_add(bytes);
        self.task.done_bytes.store(done, Ordering::Relaxed);
    }

    /// Sets the progress: this share of all bytes is checked, from 0 to 1.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a share of a number of bytes"
    )]
    pub(crate) fn at_share(&self, share: f64) {
        self.at((self.task.job.total_bytes as f64 * share.clamp(0.0, 1.0)) as u64);
    }

    /// Counts an SSTable of this many bytes as checked.
    pub(crate) fn pass(&mut self, bytes: u64) {
        self.before = self.before.saturating_add(bytes);
        self.at(0);
    }
}

impl Drop for Checking<'_> {
    fn drop(&mut self) {
        let mut checks = self.tasks.checks.lock();
        checks.retain(|task| !Arc::ptr_eq(task, &self.task));
    }
}

/// A running compaction, build of an index, or check of SSTables, for operators.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_shown_with_its_progress_and_is_not_a_compaction() {
        let tasks = Tasks::default();
        let table_id = TableId(Uuid::from_u128(1));
        let job = || Job {
            table_id,
            keyspace: "ks".to_owned(),
            table: "t".to_owned(),
            kind: "Verify",
            directory: PathBuf::new(),
            sstables: 2,
            total_bytes: 30,
        };
        let mut check = tasks.check(Uuid::from_u128(2), job());
        let done = || CompactionFacts::of(&tasks.shown()[0]).done_bytes;
        check.at(4);
        assert_eq!(done(), 4);
        check.pass(10);
        check.at(5);
        assert_eq!(done(), 15);
        let shared = tasks.check(Uuid::from_u128(3), job());
        shared.at_share(0.5);
        assert_eq!(CompactionFacts::of(&tasks.shown()[1]).done_bytes, 15);
        shared.at_share(7.0);
        assert_eq!(CompactionFacts::of(&tasks.shown()[1]).done_bytes, 30);
        drop(shared);
        assert_eq!(tasks.stop(TaskChoice::All), 0);
        assert_eq!(tasks.reserved_bytes(), 0, "it writes nothing");
        tasks.wait_until_ended(TaskChoice::OfTable(table_id));
        drop(check);
        assert_eq!(tasks.shown().len(), 0);
    }
}
