//! Named consumers of changes: how far each has processed each table, in a file beside the captured segments.
//!
//! The file is as durable as the captured segments: it is lost only together with them. So a consumer, for example the sink into
//! Kafka, needs no file of its own. A position never steps back, unless the consumer begins anew at another place.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_commitlog::Position;
use ilion_env::Env;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// Name of the file, in the directory of captured segments.
const FILE: &str = "consumers.json";
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Most entries: one for each table of each consumer.
const ENTRIES_MAX: usize = 4096;
const NAME_CHARS_MAX: usize = 64;

/// How far a consumer has processed a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Everything before it was processed.
    pub position: Position,
    /// When the last record before the position was logged, in microseconds since 1970.
    pub logged_micros: i64,
}

/// A consumer and one of its tables.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    /// Name of the consumer.
    pub consumer: String,
    /// Keyspace of the table.
    pub keyspace: String,
    /// The table.
    pub table: String,
}

/// An entry as it is stored in the file.
#[derive(Serialize, Deserialize)]
struct Line {
    consumer: String,
    keyspace: String,
    table: String,
    position: String,
    logged_micros: i64,
}

type Entries = BTreeMap<Entry, Progress>;

/// The named consumers of a node.
#[derive(Clone)]
pub(crate) struct NamedConsumers(Arc<Shared>);

struct Shared {
    env: Arc<dyn Env>,
    file: PathBuf,
    /// Locked while the file is written: an older content must not replace a newer one. `Err` if the file cannot be read.
    entries: Mutex<Result<Entries, String>>,
}

impl NamedConsumers {
    /// Reads the file in this directory, if it exists.
    pub fn open(env: &Arc<dyn Env>, dir: &Path) -> Self {
        let file = dir.join(FILE);
        let entries = read(&**env, &file);
        if let Err(problem) = &entries {
            tracing::error!(problem, "the positions of consumers of changes cannot be read");
        }
        Self(Arc::new(Shared {
            env: Arc::clone(env),
            file,
            entries: Mutex::new(entries),
        }))
    }

    /// The stored progress of a consumer; `None` if it has not begun.
    pub fn progress(&self, entry: &Entry) -> Result<Option<Progress>, String> {
        let entries = self.0.entries.lock();
        Ok(entries.as_ref().map_err(Clone::clone)?.get(entry).copied())
    }

    /// Sets the progress of a consumer, also to an earlier position.
    pub fn begin(&self, entry: Entry, progress: Progress) -> Result<(), String> {
        check_name(&entry.consumer)?;
        self.change(|entries| {
            let is_new = entries.insert(entry, progress) != Some(progress);
            match entries.len() > ENTRIES_MAX {
                true => Err(format!(
                    "there are {ENTRIES_MAX} tables of consumers, and no more may be: forget some"
                )),
                false => Ok(is_new),
            }
        })
    }

    /// Notes that a consumer has processed everything before a position. An earlier position than the stored one has no effect.
    pub fn commit(&self, entry: &Entry, progress: Progress) -> Result<(), String> {
        self.change(|entries| {
            let Entry {
                consumer,
                keyspace,
                table,
            } = entry;
            let known = entries
                .get_mut(entry)
                .ok_or_else(|| format!("no consumer {consumer} reads {keyspace}.{table}"))?;
            let is_further = progress.position > known.position;
            if is_further {
                *known = progress;
            }
            Ok(is_further)
        })
    }

    /// Removes a consumer. Returns how many tables it read.
    pub fn forget(&self, consumer: &str) -> Result<usize, String> {
        let mut forgotten = 0;
        self.change(|entries| {
            let before = entries.len();
            entries.retain(|entry, _| entry.consumer != consumer);
            forgotten = before - entries.len();
            match forgotten {
                0 => Err(format!("there is no consumer {consumer}")),
                _ => Ok(true),
            }
        })?;
        Ok(forgotten)
    }

    /// All entries, ordered by name and table.
    pub fn list(&self) -> Result<Vec<(Entry, Progress)>, String> {
        let entries = self.0.entries.lock();
        let entries = entries.as_ref().map_err(Clone::clone)?.iter();
        Ok(entries
            .map(|(entry, progress)| (entry.clone(), *progress))
            .collect())
    }

    /// Changes the entries, and writes the file if `change` returns true. If that fails, the entries stay as they were.
    fn change(&self, change: impl FnOnce(&mut Entries) -> Result<bool, String>) -> Result<(), String> {
        let mut entries = self.0.entries.lock();
        let mut changed = entries.as_ref().map_err(Clone::clone)?.clone();
        if change(&mut changed)? {
            let lines: Vec<Line> = changed.iter().map(line_of).collect();
            let text = serde_json::to_vec_pretty(&lines).map_err(|error| error.to_string())?;
            let written = self.0.env.write_atomically(&self.0.file, &text);
            written.map_err(|error| error.to_string())?;
            *entries = Ok(changed);
        }
        Ok(())
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let is_permitted = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    match !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.chars().all(is_permitted) {
        true => Ok(()),
        false => Err(format!(
            "{name:?} is no name of a consumer: it has 1 to {NAME_CHARS_MAX} letters, digits, '.', '_' and '-'"
        )),
    }
}

fn line_of((entry, progress): (&Entry, &Progress)) -> Line {
    Line {
        consumer: entry.consumer.clone(),
        keyspace: entry.keyspace.clone(),
        table: entry.table.clone(),
        position: progress.position.to_string(),
        logged_micros: progress.logged_micros,
    }
}

fn read(env: &dyn Env, file: &Path) -> Result<Entries, String> {
    let damaged = |problem: String| {
        format!(
            "{} is damaged: {problem}; restore or remove it, then begin consumers with --from",
            file.display()
        )
    };
    let bytes = match env.read_all(file, FILE_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.is_not_found() => return Ok(Entries::new()),
        Err(error) => return Err(error.to_string()),
    };
    let lines: Vec<Line> = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    let mut entries = Entries::new();
    for line in lines {
        let position = Position::parse(&line.position);
        let position = position.ok_or_else(|| damaged(format!("{:?} is no position", line.position)))?;
        let entry = Entry {
            consumer: line.consumer,
            keyspace: line.keyspace,
            table: line.table,
        };
        let logged_micros = line.logged_micros;
        entries.insert(
            entry,
            Progress {
                position,
                logged_micros,
            },
        );
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use ilion_commitlog::SegmentId;
    use ilion_env::MemEnv;

    use super::*;

    fn entry(consumer: &str) -> Entry {
        Entry {
            consumer: consumer.to_owned(),
            keyspace: "ks".to_owned(),
            table: "t".to_owned(),
        }
    }

    fn at(segment: u64) -> Progress {
        Progress {
            position: Position {
                segment: SegmentId(segment),
                offset: 7,
            },
            logged_micros: 5,
        }
    }

    fn open(env: &MemEnv) -> NamedConsumers {
        let env: Arc<dyn Env> = env.shared();
        env.create_dir_all(Path::new("/raw")).unwrap();
        NamedConsumers::open(&env, Path::new("/raw"))
    }

    #[test]
    fn positions_survive_a_power_loss_and_never_step_back() {
        let env = MemEnv::new(1);
        let consumers = open(&env);
        consumers.begin(entry("a"), at(3)).unwrap();
        consumers.commit(&entry("a"), at(5)).unwrap();
        consumers.commit(&entry("a"), at(4)).unwrap();
        let after = open(&env.crash(ilion_env::CrashRule::LoseUnsynced));
        assert_eq!(after.progress(&entry("a")), Ok(Some(at(5))));
        after.begin(entry("a"), at(1)).unwrap();
        assert_eq!(
            after.progress(&entry("a")),
            Ok(Some(at(1))),
            "it begins anew where it is told"
        );
    }

    #[test]
    fn a_consumer_that_has_not_begun_commits_nothing_and_names_are_checked() {
        let consumers = open(&MemEnv::new(2));
        let refused = consumers.commit(&entry("a"), at(5)).unwrap_err();
        assert_eq!(refused, "no consumer a reads ks.t");
        assert!(consumers.begin(entry("a b"), at(1)).is_err());
        assert!(consumers.forget("a").is_err());
        assert_eq!(consumers.list().unwrap().len(), 0);
    }

    #[test]
    fn a_damaged_file_is_not_taken_for_no_consumers() {
        let env = MemEnv::new(3);
        open(&env);
        env.shared()
            .write_atomically(Path::new("/raw/consumers.json"), b"[{]")
            .unwrap();
        let consumers = open(&env);
        assert!(consumers.list().unwrap_err().contains("is damaged"));
        assert!(consumers.begin(entry("a"), at(1)).is_err());
    }
}
