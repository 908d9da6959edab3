//! The set of files that a flush or compaction adds and removes, atomically.
//!
//! A log file in the table's directory, as Cassandra writes it (`org.apache.cassandra.db.lifecycle.LogFile`), so that either
//! program finishes what the other left:
//!
//! ```text
//! name   := version '_txn_' ('flush' | 'compaction') '_' time-uuid '.log'       nb_txn_flush_....log
//! line   := type ':[' path-prefix ',' update-time-millis ',' file-count '][' crc32 ']\n'
//! type   := ADD | REMOVE | COMMIT | ABORT                  the last two have no prefix
//! crc32  := of prefix, type, update-time as two i32 (low, high), file-count as i32
//! ```
//!
//! Invariant: an ADD is durable before a file of that SSTable exists; a COMMIT is durable only after all files of the added
//! SSTables are. At the start, a log with COMMIT removes what its REMOVE lines name; any other removes what its ADD lines name.
//! A line that does not check ends the log: it was being written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_env::{Env, WriteFile};

use crate::{Component, Descriptor, Error, Result, Version};

/// What the transaction is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionKind {
    /// A memtable becomes an SSTable.
    Flush,
    /// SSTables become others.
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

    /// The SSTable that the prefix names, looked for in the log's own directory: a data directory may have moved.
    fn descriptor(&self, directory: &Arc<Path>) -> Option<Descriptor> {
        let base = Path::new(&self.prefix).file_name()?.to_str()?;
        let name = format!("{}-{}", base.strip_suffix('-').unwrap_or(base), Component::Data);
        Descriptor::parse(directory, &name).map(|(descriptor, _)| descriptor)
    }
}

/// An open transaction. Dropped without a word it is aborted at the next start.
pub struct Transaction {
    env: Arc<dyn Env>,
    file: Box<dyn WriteFile>,
    directory: PathBuf,
    added: Vec<Descriptor>,
    removes: bool,
}

/// A committed transaction. Its log goes when this is dropped: hold it as long as old files wait to be removed.
pub struct CommittedTransaction {
    env: Arc<dyn Env>,
    directory: PathBuf,
    path: PathBuf,
    removes: bool,
}

impl Transaction {
    /// Starts a log in the directory.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn begin(env: Arc<dyn Env>, directory: &Path, kind: TransactionKind) -> Result<Self> {
        let name = format!("{}_txn_{}_{}.log", Version::NB, kind.name(), env.time_uuid());
        let file = env.create(&directory.join(name))?;
        env.sync_dir(directory)?;
        Ok(Self {
            env,
            file,
            directory: directory.to_path_buf(),
            added: Vec::new(),
            removes: false,
        })
    }

    /// An SSTable is about to be written. Durable when it returns.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn add(&mut self, descriptor: &Descriptor) -> Result<()> {
        self.added.push(descriptor.clone());
        self.write(LineType::Add, Some(descriptor))?;
        Ok(self.file.sync()?)
    }

    /// An SSTable will be obsolete. Durable with the commit.
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

    /// The new set of files takes the place of the old one.
    ///
    /// # Errors
    /// The log cannot be written or synced: what was added is gone at the next start.
    pub fn commit(mut self) -> Result<CommittedTransaction> {
        self.write(LineType::Commit, None)?;
        self.file.sync()?;
        Ok(CommittedTransaction {
            directory: self.directory,
            path: self.file.path().to_path_buf(),
            removes: self.removes,
            env: self.env.clone(),
        })
    }

    /// Nothing happened: removes what was added, and the log.
    ///
    /// # Errors
    /// A file cannot be removed; the next start tries again.
    pub fn abort(mut self) -> Result<()> {
        self.write(LineType::Abort, None)?;
        for descriptor in &self.added {
            descriptor.remove_files(&*self.env)?;
        }
        // Else a power loss could bring files back, and not the log that says what they are.
        self.env.sync_dir(&self.directory)?;
        Ok(self.env.remove_file(self.file.path())?)
    }
}

impl Drop for CommittedTransaction {
    fn drop(&mut self) {
        // The removals first: a power loss must not bring files back without the log. A log that stays is read at the
        // next start, and does no harm.
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
    let directory: Arc<Path> = directory.into();
    for path in logs(env, &directory)? {
        for descriptor in doomed(env, &directory, &path)? {
            descriptor.remove_files(env)?;
        }
        env.sync_dir(&directory)?;
        env.remove_file(&path)?;
    }
    Ok(())
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

/// A log of a compaction of thousands of files stays far below this.
const LOG_BYTES_MAX: u64 = 16 << 20;

/// The SSTables that the transaction of a log does not leave there.
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

/// The lines up to the first that does not check. Damage before a good line is refused.
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
        std::mem::forget(transaction.commit().unwrap());
        finish_transactions(&*env, &dir).unwrap();
        assert_eq!(ids(&env, &dir), ["nb-2-big-Data.db"]);
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
