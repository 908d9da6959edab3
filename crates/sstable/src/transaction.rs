//! The set of files that a flush or compaction adds and removes, atomically.
//!
//! The set is recorded in a log file in the table's directory, in Cassandra's format (`org.apache.cassandra.db.lifecycle.LogFile`), so that
//! each program can finish a transaction of the other:
//!
//! ```text
//! name   := version '_txn_' ('flush' | 'compaction') '_' time-uuid '.log'       nb_txn_flush_....log
//! line   := type ':[' path-prefix ',' update-time-millis ',' file-count '][' crc32 ']\n'
//! type   := ADD | REMOVE | COMMIT | ABORT                  the last two have no prefix
//! crc32  := of prefix, type, update-time as two i32 (low, high), file-count as i32
//! ```
//!
//! Invariant: an ADD is durable before any file of that SSTable exists. A COMMIT is durable only after all files of the added
//! SSTables are. The next start finishes each log: with a COMMIT, it removes the files that REMOVE lines name; without one, it
//! removes those that ADD lines name. A line with a wrong checksum ends the log: a crash cut it off.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ilion_env::{Env, WriteFile};

use crate::{Component, Descriptor, Error, Result, Version};

/// The operation that the transaction belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionKind {
    /// A flush of a memtable to an SSTable.
    Flush,
    /// A compaction of SSTables to new SSTables.
    Compaction,
}

impl TransactionKind {
    fn name(self) -> &'static str {
        match self {
            Self::Flush => "flush",
            Self::Compaction => "compaction",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineType {
    Add,
    Remove,
    Commit,
    Abort,
}

impl LineType {
    fn name(self) -> &'static str {
        match self {
            Self::Add => "ADD",
            Self::Remove => "REMOVE",
            Self::Commit => "COMMIT",
            Self::Abort => "ABORT",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    kind: LineType,
    prefix: String,
    update_millis: i64,
    file_count: i32,
}

impl Line {
    fn checksum(&self) -> u32 {
        let mut bytes = Vec::with_capacity(self.prefix.len() + 20);
        bytes.extend_from_slice(self.prefix.as_bytes());
        bytes.extend_from_slice(self.kind.name().as_bytes());
        let time = self.update_millis.to_be_bytes();
        bytes.extend_from_slice(&time[4..]);
        bytes.extend_from_slice(&time[..4]);
        bytes.extend_from_slice(&self.file_count.to_be_bytes());
        ilion_codec::crc32(&bytes)
    }

    fn print(&self) -> String {
        let Self {
            kind,
            prefix,
            update_millis,
            file_count,
        } = self;
        format!(
            "{}:[{prefix},{update_millis},{file_count}][{}]\n",
            kind.name(),
            self.checksum()
        )
    }

    fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(":[")?;
        let kind = [LineType::Add, LineType::Remove, LineType::Commit, LineType::Abort]
            .into_iter()
            .find(|known| known.name() == kind)?;
        let (fields, checksum) = rest.strip_suffix(']')?.rsplit_once("][")?;
        let (fields, file_count) = fields.rsplit_once(',')?;
        let (prefix, update_millis) = fields.rsplit_once(',')?;
        let line = Self {
            kind,
            prefix: prefix.to_owned(),
            update_millis: update_millis.parse().ok()?,
            file_count: file_count.parse().ok()?,
        };
        (checksum.parse() == Ok(line.checksum())).then_some(line)
    }

    /// The SSTable that the prefix names, in the log's own directory, since the data directory may have moved.
    fn descriptor(&self, directory: &Arc<Path>) -> Option<Descriptor> {
        let base = Path::new(&self.prefix).file_name()?.to_str()?;
        let name = format!("{}-{}", base.strip_suffix('-').unwrap_or(base), Component::Data);
        Descriptor::parse(directory, &name).map(|(descriptor, _)| descriptor)
    }
}

/// An open transaction. If it is dropped without a commit, the next start aborts it.
pub struct Transaction {
    env: Arc<dyn Env>,
    file: Box<dyn WriteFile>,
    directory: PathBuf,
    added: Vec<Descriptor>,
    removes: bool,
}

/// A failed commit.
pub struct FailedCommit {
    /// The cause.
    pub error: Error,
    /// The transaction, if it was certainly not committed: then it can be aborted. `None` if the next start may find it
    /// committed; then its files must stay.
    pub transaction: Option<Box<Transaction>>,
}

/// A committed transaction. Its log is removed when this is dropped: keep it while old files wait to be removed.
pub struct CommittedTransaction {
    env: Arc<dyn Env>,
    directory: PathBuf,
    path: PathBuf,
    removes: bool,
    /// True if an old file could not be removed: then the log stays, and the next start removes the file.
    is_unfinished: AtomicBool,
}

impl Transaction {
    /// Starts a log in the directory.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn begin(env: Arc<dyn Env>, directory: &Path, kind: TransactionKind) -> Result<Self> {
        let name = format!("{}_txn_{}_{}.log", Version::NB, kind.name(), env.time_uuid());
        let path = directory.join(name);
        let file = env.create(&path)?;
        env.sync_dir(directory).inspect_err(|_| {
            // If this fails, a log stays that names no files, and does no harm.
            let _ = env.remove_file(&path);
        })?;
        Ok(Self {
            env,
            file,
            directory: directory.to_path_buf(),
            added: Vec::new(),
            removes: false,
        })
    }

    /// Records that an SSTable will be written. Durable when it returns.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn add(&mut self, descriptor: &Descriptor) -> Result<()> {
        self.added.push(descriptor.clone());
        self.write(LineType::Add, Some(descriptor))?;
        Ok(self.file.sync()?)
    }

    /// Records that an SSTable becomes obsolete. Durable with the commit.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn remove(&mut self, descriptor: &Descriptor) -> Result<()> {
        self.removes = true;
        self.write(LineType::Remove, Some(descriptor))
    }

    fn write(&mut self, kind: LineType, descriptor: Option<&Descriptor>) -> Result<()> {
        let files = descriptor
            .map(|descriptor| descriptor.files(&*self.env))
            .transpose()?
            .unwrap_or_default();
        let line = Line {
            kind,
            prefix: descriptor
                .map(|descriptor| format!("{descriptor}-"))
                .unwrap_or_default(),
            update_millis: if descriptor.is_some() {
                0
            } else {
                self.env.now_micros() / 1000
            },
            file_count: i32::try_from(files.len()).unwrap_or(i32::MAX),
        };
        Ok(self.file.append(line.print().as_bytes())?)
    }

    /// The path of its log.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Commits: the new set of files replaces the old one.
    ///
    /// # Errors
    /// The log cannot be written or synced; the error has the transaction if it can still be aborted.
    pub fn commit(mut self) -> std::result::Result<CommittedTransaction, FailedCommit> {
        let end = self.file.position();
        if let Err(error) = self.write(LineType::Commit, None) {
            // No part of the COMMIT may stay: if an abort then removes files, a start must not find a commit.
            let is_cut = self.file.truncate(end).and_then(|()| self.file.sync()).is_ok();
            return Err(FailedCommit {
                error,
                transaction: is_cut.then(|| Box::new(self)),
            });
        }
        self.file.sync().map_err(|error| FailedCommit {
            error: error.into(),
            transaction: None,
        })?;
        Ok(CommittedTransaction {
            directory: self.directory,
            path: self.file.path().to_path_buf(),
            removes: self.removes,
            is_unfinished: AtomicBool::new(false),
            env: self.env.clone(),
        })
    }

    /// Aborts: removes the added files, and the log.
    ///
    /// # Errors
    /// A file cannot be removed; [`finish_transaction`] or the next start tries again.
    pub fn abort(mut self) -> Result<()> {
        // A log without this record means the same, and a full disk may have no space for it.
        let _ = self.write(LineType::Abort, None);
        for descriptor in &self.added {
            descriptor.remove_files(&*self.env)?;
        }
        // Otherwise, a power loss could bring files back without the log that names them.
        self.env.sync_dir(&self.directory)?;
        Ok(self.env.remove_file(self.file.path())?)
    }
}

impl CommittedTransaction {
    /// Removes the files of an obsolete SSTable.
    ///
    /// # Errors
    /// A file cannot be removed. Then the log stays, and the next start removes the rest: without the log, it would count as
    /// data, or as damage.
    pub fn remove_files(&self, descriptor: &Descriptor) -> Result<()> {
        descriptor
            .remove_files(&*self.env)
            .inspect_err(|_| self.is_unfinished.store(true, Relaxed))
    }
}

impl Drop for CommittedTransaction {
    fn drop(&mut self) {
        if self.is_unfinished.load(Relaxed) {
            return;
        }
        // Sync the removals first: a power loss must not bring files back without the log. A log that stays is read at the next
        // start, and does no harm.
        if !self.removes || self.env.sync_dir(&self.directory).is_ok() {
            let _ = self.env.remove_file(&self.path);
        }
    }
}

/// Finishes the transactions that a crash left in a directory.
///
/// # Errors
/// A log is damaged where it was already synced, or a file cannot be removed.
pub fn finish_transactions(env: &dyn Env, directory: &Path) -> Result<()> {
    let logs = logs(env, directory)?;
    logs.iter()
        .try_for_each(|log| finish_transaction(env, directory, log))
}

/// Finishes the transaction of a log that a crash left, or whose abort failed.
///
/// # Errors
/// As [`finish_transactions`].
pub fn finish_transaction(env: &dyn Env, directory: &Path, log: &Path) -> Result<()> {
    let directory: Arc<Path> = directory.into();
    for descriptor in doomed(env, &directory, log)? {
        descriptor.remove_files(env)?;
    }
    env.sync_dir(&directory)?;
    Ok(env.remove_file(log)?)
}

/// True for the name of a transaction log.
pub(crate) fn is_log(name: &str) -> bool {
    name.contains("_txn_") && name.ends_with(".log")
}

fn logs(env: &dyn Env, directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = env.list(directory)?.into_iter();
    let found = entries.filter(|entry| !entry.is_dir && is_log(&entry.name));
    Ok(found.map(|entry| directory.join(entry.name)).collect())
}

/// Larger logs are refused. The log of a compaction of thousands of SSTables is far smaller.
const LOG_BYTES_MAX: u64 = 16 << 20;

/// The SSTables whose files are removed when the transaction of a log is finished.
pub(crate) fn doomed(env: &dyn Env, directory: &Arc<Path>, path: &Path) -> Result<Vec<Descriptor>> {
    let bytes = env.read_all(path, LOG_BYTES_MAX)?;
    let lines = parse_log(path, &bytes)?;
    let is_committed = lines.iter().any(|line| line.kind == LineType::Commit);
    let doomed = if is_committed {
        LineType::Remove
    } else {
        LineType::Add
    };
    let named = lines.iter().filter(|line| line.kind == doomed).map(|line| {
        let expected = || format!("the name of an SSTable, got {}", line.prefix);
        line.descriptor(directory)
            .ok_or_else(|| Error::corrupt(path, 0, expected()))
    });
    named.collect()
}

/// The lines up to the first with a wrong checksum. If a valid line follows, the log is damaged.
fn parse_log(path: &Path, bytes: &[u8]) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    let mut torn_at = None;
    let mut offset = 0;
    for raw in bytes.split(|byte| *byte == b'\n').filter(|raw| !raw.is_empty()) {
        match std::str::from_utf8(raw).ok().and_then(Line::parse) {
            Some(line) => match torn_at {
                Some(at) => {
                    return Err(Error::corrupt(
                        path,
                        at,
                        "a transaction record with a valid checksum",
                    ));
                }
                None => lines.push(line),
            },
            None => torn_at = torn_at.or(Some(offset)),
        }
        offset += raw.len() as u64 + 1;
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, SSTableId};
    use ilion_env::MemEnv;

    fn descriptor(dir: &Path, number: u32) -> Descriptor {
        Descriptor::new(dir, Version::NB, SSTableId::Sequence(number), Format::Big)
    }

    fn put(env: &Arc<dyn Env>, descriptor: &Descriptor) {
        for component in [Component::Data, Component::Index] {
            let mut file = env.create(&descriptor.path(&component)).unwrap();
            file.append(b"x").unwrap();
            file.sync().unwrap();
        }
        env.sync_dir(&descriptor.directory).unwrap();
    }

    fn ids(env: &Arc<dyn Env>, dir: &Path) -> Vec<String> {
        let found = list_directory_names(env, dir);
        found
            .into_iter()
            .filter(|name| name.ends_with("Data.db"))
            .collect()
    }

    fn list_directory_names(env: &Arc<dyn Env>, dir: &Path) -> Vec<String> {
        env.list(dir)
            .unwrap()
            .into_iter()
            .map(|entry| entry.name)
            .collect()
    }

    fn table() -> (Arc<dyn Env>, PathBuf) {
        let env: Arc<dyn Env> = Arc::new(MemEnv::new(1));
        let dir = PathBuf::from("data/ks/t-1");
        env.create_dir_all(&dir).unwrap();
        (env, dir)
    }

    #[test]
    fn what_was_not_committed_is_gone_after_a_start() {
        let (env, dir) = table();
        let (old, new) = (descriptor(&dir, 1), descriptor(&dir, 2));
        put(&env, &old);
        let mut transaction = Transaction::begin(env.clone(), &dir, TransactionKind::Compaction).unwrap();
        transaction.add(&new).unwrap();
        transaction.remove(&old).unwrap();
        put(&env, &new);
        drop(transaction);
        finish_transactions(&*env, &dir).unwrap();
        assert_eq!(ids(&env, &dir), ["nb-1-big-Data.db"]);
        assert_eq!(list_directory_names(&env, &dir).len(), 2, "the log is gone too");
    }

    #[test]
    fn what_was_committed_replaces_the_old_files_at_the_start() {
        let (env, dir) = table();
        let (old, new) = (descriptor(&dir, 1), descriptor(&dir, 2));
        put(&env, &old);
        let mut transaction = Transaction::begin(env.clone(), &dir, TransactionKind::Compaction).unwrap();
        transaction.add(&new).unwrap();
        transaction.remove(&old).unwrap();
        put(&env, &new);
        std::mem::forget(transaction.commit().ok().unwrap());
        finish_transactions(&*env, &dir).unwrap();
        assert_eq!(ids(&env, &dir), ["nb-2-big-Data.db"]);
    }

    #[test]
    fn old_files_that_cannot_be_removed_are_removed_at_the_next_start() {
        for component in ["Data", "Index"] {
            let (env, dir) = table();
            let faults = ilion_env::FaultEnv::new(env.clone());
            let (old, new) = (descriptor(&dir, 1), descriptor(&dir, 2));
            put(&env, &old);
            let mut transaction =
                Transaction::begin(faults.clone(), &dir, TransactionKind::Compaction).unwrap();
            transaction.add(&new).unwrap();
            transaction.remove(&old).unwrap();
            put(&env, &new);
            let committed = transaction.commit().ok().unwrap();
            faults
                .add(&format!("fail remove \"*-{component}.db\" at 1"))
                .unwrap();
            assert!(committed.remove_files(&old).is_err());
            drop(committed);
            finish_transactions(&*env, &dir).unwrap();
            let mut names = list_directory_names(&env, &dir);
            names.sort_unstable();
            assert_eq!(names, ["nb-2-big-Data.db", "nb-2-big-Index.db"], "{component}");
        }
    }

    #[test]
    fn a_commit_without_room_can_be_aborted_and_one_whose_sync_failed_cannot() {
        let (env, dir) = table();
        let faults = ilion_env::FaultEnv::new(env.clone());
        let begin = |number| {
            let new = descriptor(&dir, number);
            let mut transaction = Transaction::begin(faults.clone(), &dir, TransactionKind::Flush).unwrap();
            transaction.add(&new).unwrap();
            put(&env, &new);
            transaction
        };
        let transaction = begin(1);
        faults.add("no_space write \"*.log\"").unwrap();
        let failed = transaction.commit().err().unwrap();
        assert!(matches!(&failed.error, Error::Io(error) if error.is_shortage()));
        failed.transaction.unwrap().abort().unwrap();
        assert!(list_directory_names(&env, &dir).is_empty());
        faults.clear();
        let transaction = begin(2);
        faults.add("fail sync \"*.log\"").unwrap();
        assert!(transaction.commit().err().unwrap().transaction.is_none());
        assert_eq!(ids(&env, &dir), ["nb-2-big-Data.db"], "the next start decides");
    }

    #[test]
    fn an_abort_without_room_for_its_record_frees_the_space() {
        let (env, dir) = table();
        let faults = ilion_env::FaultEnv::new(env.clone());
        let mut transaction = Transaction::begin(faults.clone(), &dir, TransactionKind::Flush).unwrap();
        transaction.add(&descriptor(&dir, 1)).unwrap();
        put(&env, &descriptor(&dir, 1));
        faults.add("no_space write \"*\"").unwrap();
        transaction.abort().unwrap();
        assert!(list_directory_names(&env, &dir).is_empty());
    }

    #[test]
    fn a_torn_commit_is_no_commit_and_damage_before_good_lines_is_refused() {
        let add = Line {
            kind: LineType::Add,
            prefix: "d/nb-1-big-".into(),
            update_millis: 0,
            file_count: 0,
        };
        let commit = Line {
            kind: LineType::Commit,
            prefix: String::new(),
            update_millis: 5,
            file_count: 0,
        };
        let whole = add.print() + &commit.print();
        assert_eq!(
            parse_log(Path::new("l"), whole.as_bytes()).unwrap(),
            [add.clone(), commit]
        );
        let torn = &whole.as_bytes()[..whole.len() - 3];
        assert_eq!(parse_log(Path::new("l"), torn).unwrap(), [add]);
        let mut damaged = whole.into_bytes();
        damaged[5] ^= 1;
        assert!(parse_log(Path::new("l"), &damaged).unwrap_err().is_corrupt());
    }
}
