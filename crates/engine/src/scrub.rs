//! Scrub of a table in use: replaces a damaged SSTable, in one step, by new ones with the rows that can still be read.
//!
//! The caller reads the damaged files ([`Salvage`]) and writes new SSTables into a directory of their own. The engine checks
//! these as an import does, and swaps them for the damaged one under a transaction log: a crash leaves either the old or the new ones.
//! Before the swap it takes a snapshot. Sound SSTables stay as they are. The new SSTables cover no record of the commit log: the next
//! start applies the records of the damaged one again, and so restores lost rows that the log still has.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_compaction::{Choice, Output};
use ilion_schema::TableId;
use ilion_sstable::{Component, Transaction, TransactionKind, verify};

use crate::compact::Inputs;
use crate::import::{ImportSource, Sound, check, sstables_in};
use crate::load::ScratchDirectory;
use crate::shared::Shared;
use crate::table_store::TableStore;
use crate::work::Work;
use crate::{Engine, Error, Result, SnapshotMemtables, SnapshotOrder};

/// Reads the SSTable with this Data.db (first argument) as far as possible, and writes its rows as new SSTables into a directory (second
/// argument), which it creates. Returns messages for the operator.
pub type Salvage<'s> = &'s dyn Fn(&Path, &Path) -> std::result::Result<Vec<String>, String>;

/// How a table is scrubbed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubOptions {
    /// No snapshot is taken before.
    pub without_snapshot: bool,
    /// Tables of counters are scrubbed, too, although their counts are too low without the lost partitions.
    pub skips_corrupted: bool,
}

/// The result for one SSTable. Paths are those of Data.db.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubbedSSTable {
    /// Its path.
    pub path: PathBuf,
    /// Its damage; empty if it is sound.
    pub damage: Vec<String>,
    /// Messages of the [`Salvage`].
    pub told: Vec<String>,
    /// The SSTables that replaced it; empty if no row could be read, or if it was not replaced.
    pub replaced_by: Vec<PathBuf>,
    /// Why it was not replaced, if it is damaged.
    pub refused: Option<String>,
}

impl Engine {
    /// Scrubs the damaged SSTables of a table.
    ///
    /// # Errors
    /// The table does not exist, or the operating system returned an error. Some SSTables may have been scrubbed before.
    pub fn scrub(
        &self,
        table: TableId,
        options: &ScrubOptions,
        salvage: Salvage<'_>,
    ) -> Result<Vec<ScrubbedSSTable>> {
        let shared = &self.shared;
        shared.check_writable()?;
        let store = self.usable_store(table)?;
        let mut scrubbed = Vec::new();
        let mut has_snapshot = false;
        let view = store.view();
        let descriptors = view.sstables.iter().map(|live| live.descriptor());
        let mut checking = shared.begin_check(&store, "Scrub", descriptors);
        for live in &view.sstables {
            let descriptor = live.descriptor();
            let found = verify::verify(&*shared.env, descriptor, &mut |bytes| checking.at(bytes))?;
            checking.pass(verify::work_bytes(&*shared.env, descriptor));
            let mut one = ScrubbedSSTable {
                path: descriptor.path(&Component::Data),
                damage: found.findings.kept().iter().map(ToString::to_string).collect(),
                ..ScrubbedSSTable::default()
            };
            if one.damage.is_empty() {
                scrubbed.push(one);
                continue;
            }
            if store.schema().is_counter() && !options.skips_corrupted {
                // Compat: `Scrubber` refuses, too.
                one.refused =
                    Some("counts would be too low without what is lost of it: -s accepts that".to_owned());
                scrubbed.push(one);
                continue;
            }
            if !options.without_snapshot && !std::mem::replace(&mut has_snapshot, true) {
                self.snapshot(&SnapshotOrder {
                    // Compat: the same tag as `ColumnFamilyStore.scrub`.
                    tag: format!("pre-scrub-{}", shared.env.now_micros() / 1000),
                    tables: vec![table],
                    ttl_secs: None,
                    memtables: SnapshotMemtables::LeftOut,
                })?;
            }
            let directory = ScratchDirectory::new(shared);
            match salvage(&one.path, directory.path()) {
                Err(reason) => one.refused = Some(reason),
                Ok(told) => {
                    one.told = told;
                    match shared.replace(&store, &one.path, directory.path(), options)? {
                        Ok(replaced_by) => one.replaced_by = replaced_by,
                        Err(reason) => one.refused = Some(reason),
                    }
                }
            }
            scrubbed.push(one);
        }
        shared.background.send(Work::Compact(store));
        shared.ask_for_token_maps();
        Ok(scrubbed)
    }
}

impl Shared {
    /// Replaces an SSTable by those of a directory, or returns the reason why it stays.
    fn replace(
        &self,
        store: &Arc<TableStore>,
        old: &Path,
        directory: &Path,
        options: &ScrubOptions,
    ) -> Result<std::result::Result<Vec<PathBuf>, String>> {
        let mut sound = Vec::new();
        if self.env.exists(directory) {
            for descriptor in sstables_in(self, directory)? {
                match check(self, &store.schema(), &descriptor, &mut |_| ())? {
                    Ok(statistics) => sound.push(Sound {
                        descriptor,
                        statistics,
                        copied: Vec::new(),
                    }),
                    Err(reason) => return Ok(Err(format!("what was read of it is damaged, too: {reason}"))),
                }
            }
        }
        if sound.is_empty() && options.without_snapshot {
            return Ok(Err(
                "nothing can be read of it, and without a snapshot nothing of it would be left".to_owned(),
            ));
        }
        // Like a compaction on request: running compactions of the table end first.
        let _alone = self.end_compactions(store);
        let choice = Choice {
            inputs: vec![old.to_path_buf()],
            expired: Vec::new(),
            output: Output::Whole,
            level: 0,
        };
        let Some(inputs) = Inputs::acquire(store, &choice) else {
            return Ok(Err("it was replaced meanwhile; scrub the table again".to_owned()));
        };
        let mut transaction =
            Transaction::begin(self.env.clone(), &store.directory, TransactionKind::Compaction)?;
        let linked = self.link_sound(store, &sound, ImportSource::Moved, &mut transaction);
        let written = match linked {
            Ok(written) => written,
            Err(error) => {
                self.abort(transaction);
                return Err(error);
            }
        };
        let swapped = self.swap(&inputs, transaction, &written, &store.indexes())?;
        self.forget_cached_table(store.id);
        self.note_debt(store);
        match swapped {
            Some(_) => {
                tracing::warn!(sstable = %old.display(), by = written.len(), "a damaged SSTable was replaced by what can be read of it");
                let paths = written.iter().map(|written| written.path(&Component::Data));
                Ok(Ok(paths.collect()))
            }
            None => Err(Error::Refused("the table was emptied meanwhile".to_owned())),
        }
    }
}
