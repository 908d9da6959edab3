//! Compactions on request, and stopping compactions.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_compaction::{Candidate, Choice, MajorOutput, Situation, Strategy};
use ilion_schema::TableId;
use ilion_types::Token;
use parking_lot::MutexGuard;

use super::{CompactionEnd, Rules};
use crate::shared::Shared;
use crate::table_store::TableStore;
use crate::tasks::{CompactionFacts, TaskChoice};
use crate::work::Work;
use crate::{Engine, Error, Result};

/// Which SSTables to compact.
#[derive(Clone, Debug, PartialEq)]
pub enum CompactionRequest {
    /// All SSTables.
    Major(MajorOutput),
    /// SSTables that may have a token above the first and up to the second; the range may wrap around the ring.
    Range(Token, Token),
    /// SSTables whose path of Data.db is, or ends with, one of these.
    Files(Vec<PathBuf>),
}

impl CompactionRequest {
    fn choices(&self, strategy: &Strategy, situation: &Situation) -> Vec<Choice> {
        let chosen = |is_meant: &dyn Fn(&Candidate) -> bool| {
            let inputs: Vec<&Candidate> = situation
                .candidates
                .iter()
                .filter(|candidate| is_meant(candidate))
                .collect();
            match inputs.is_empty() {
                true => Vec::new(),
                false => vec![strategy.user_defined(&inputs)],
            }
        };
        match self {
            Self::Major(output) => strategy.major(situation, *output),
            Self::Range(start, end) => chosen(&|candidate| touches(candidate, start, end)),
            Self::Files(files) => chosen(&|candidate| files.iter().any(|file| candidate.id.ends_with(file))),
        }
    }
}

fn touches(candidate: &Candidate, start: &Token, end: &Token) -> bool {
    let (is_above, is_below) = (candidate.last.token > *start, candidate.first.token <= *end);
    match start < end {
        true => is_above && is_below,
        false => is_above || is_below,
    }
}

/// While this exists, no compaction of the table starts in the background.
struct Pause<'a>(&'a TableStore);

impl<'a> Pause<'a> {
    fn begin(store: &'a TableStore) -> Self {
        store.choosing.lock().pauses += 1;
        Self(store)
    }
}

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        self.0.choosing.lock().pauses -= 1;
    }
}

/// While this exists, no other compaction of the table runs or starts. Fields are dropped in this order.
pub(crate) struct Alone<'a> {
    _pause: Pause<'a>,
    _turn: MutexGuard<'a, ()>,
}

impl Shared {
    /// Waits for earlier requests, then stops the running compactions of a table and waits until they have ended.
    pub(crate) fn end_compactions<'a>(&self, store: &'a TableStore) -> Alone<'a> {
        let turn = store.manual.lock();
        let pause = Pause::begin(store);
        let of_table = TaskChoice::OfTable(store.id);
        self.tasks.stop(of_table);
        self.pacer.wake();
        self.tasks.wait_until_ended(of_table);
        Alone {
            _pause: pause,
            _turn: turn,
        }
    }

    /// Compacts on this thread. Compat: stops running compactions of the table first. If another request is running, waits
    /// for it.
    pub(crate) fn compact_now(
        &self,
        store: &Arc<TableStore>,
        request: &CompactionRequest,
        rules: &Rules,
    ) -> Result<usize> {
        let alone = self.end_compactions(store);
        let (strategy, situation) = (store.strategy(), self.situation(store));
        let choices = request.choices(&strategy, &situation);
        let count = choices.len();
        let done = choices.into_iter().try_for_each(|choice| {
            let free = self.free_bytes(store);
            let Some(choice) = strategy.within(&situation, &choice, free) else {
                return Err(Error::Refused(format!(
                    "there is not enough space on the disk for the compaction: {free} bytes may be filled"
                )));
            };
            let choosing = store.choosing.lock();
            let begun = self.register(store, &choosing, choice);
            drop(choosing);
            // `None` if the inputs are gone, since the table was truncated.
            let Some(mut compaction) = begun else {
                return Ok(());
            };
            compaction.rules = rules.clone();
            match self.run_compaction(&compaction)? {
                CompactionEnd::Done | CompactionEnd::Emptied => Ok(()),
                CompactionEnd::Stopped => Err(Error::Refused("the compaction was stopped".to_owned())),
            }
        });
        drop(alone);
        self.background.send(Work::Compact(store.clone()));
        done.map(|()| count)
    }
}

impl Engine {
    /// The store of a table or hidden table, and the store of the table that it belongs to.
    pub(super) fn any_store(&self, table: TableId) -> Result<(Arc<TableStore>, Arc<TableStore>)> {
        let found = self.shared.any_table(table);
        found.ok_or_else(|| Error::Refused(format!("table {table} does not exist")))
    }

    /// A major compaction of a table: merges all SSTables as far as its strategy does. Returns when it is done.
    ///
    /// # Errors
    /// A file cannot be read or written, or the compaction was stopped.
    pub fn compact(&self, table: TableId) -> Result<()> {
        let request = CompactionRequest::Major(MajorOutput::AsUsual);
        self.compact_as(table, &request).map(drop)
    }

    /// Flushes the table and compacts as requested; returns the number of compactions when they are done. A major compaction
    /// includes the table's indexes.
    ///
    /// # Errors
    /// A file does not belong to the table, cannot be read or written, or the compaction was stopped.
    pub fn compact_as(&self, table: TableId, request: &CompactionRequest) -> Result<usize> {
        let (store, owner) = self.any_store(table)?;
        owner.check_usable()?;
        match request {
            CompactionRequest::Files(files) => files.iter().try_for_each(|file| check_name(&store, file))?,
            CompactionRequest::Major(_) | CompactionRequest::Range(..) => self.shared.flush_table(&owner)?,
        }
        let mut count = self.shared.compact_now(&store, request, &Rules::Usual)?;
        if matches!(request, CompactionRequest::Major(_)) {
            let indexes = store.indexes();
            for hidden in indexes.hidden() {
                count += self.shared.compact_now(hidden, request, &Rules::Usual)?;
            }
        }
        Ok(count)
    }

    /// The table that has the SSTable whose path of Data.db is, or ends with, `file`.
    ///
    /// # Errors
    /// No table has such an SSTable, or several have.
    pub fn table_with_file(&self, file: &Path) -> Result<TableId> {
        let tables = self.shared.stores();
        let mut owners = tables.iter().filter(|store| has_file(store, file));
        match (owners.next(), owners.next()) {
            (Some(owner), None) => Ok(owner.id),
            (Some(_), Some(_)) => Err(Error::Refused(format!(
                "several tables have an SSTable {}: name its directory, too",
                file.display()
            ))),
            _ => Err(unknown_file(file)),
        }
    }

    /// Stops compactions; their inputs stay in use. Returns the number of stopped compactions.
    pub fn stop_compactions(&self, choice: TaskChoice) -> usize {
        let asked = self.shared.tasks.stop(choice);
        self.shared.pacer.wake();
        asked
    }

    /// The running compactions, builds of indexes and checks of SSTables.
    pub fn compactions(&self) -> Vec<CompactionFacts> {
        let tasks = self.shared.tasks.shown();
        tasks.iter().map(|task| CompactionFacts::of(task)).collect()
    }

    /// Switches compactions in the background of the table and its indexes on or off, until the next start.
    ///
    /// # Errors
    /// The table is gone.
    pub fn set_auto_compaction(&self, table: TableId, is_on: bool) -> Result<()> {
        let (store, _) = self.any_store(table)?;
        let indexes = store.indexes();
        for store in indexes.hidden().chain([&store]) {
            store.set_auto_compacting(is_on);
            self.shared.note_debt(store);
            if is_on {
                self.shared.background.send(Work::Compact(store.clone()));
            }
        }
        Ok(())
    }

    /// Limits how many bytes per second all compactions together may read; `None` is no limit. Takes effect at once.
    pub fn set_compaction_throughput(&self, bytes_per_sec: Option<u64>) {
        self.shared.pacer.set_limit(bytes_per_sec);
    }

    /// The limit of bytes per second that all compactions together may read; `None` is no limit.
    pub fn compaction_throughput(&self) -> Option<u64> {
        self.shared.pacer.limit()
    }
}

fn has_file(store: &TableStore, file: &Path) -> bool {
    store
        .view()
        .sstables
        .iter()
        .any(|live| live.data_path().ends_with(file))
}

fn unknown_file(file: &Path) -> Error {
    Error::Refused(format!("no table has an SSTable {}", file.display()))
}

fn check_name(store: &TableStore, file: &Path) -> Result<()> {
    match has_file(store, file) {
        true => Ok(()),
        false => Err(unknown_file(file)),
    }
}
