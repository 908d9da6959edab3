//! `ilion sstable load`: sends SSTables of this machine to a table of a running node, over its HTTP port.
//!
//! Each SSTable is sent in pieces; the node checks it and imports it as a whole (`ilion_server::admin`, `/admin/load/..`). So a load that
//! was interrupted can simply be repeated: sending an SSTable again changes no row.

use std::fmt;
use std::path::{Component as PathPart, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ilion_backup::{Pace, Progress as _};
use ilion_codec::crc32;
use ilion_env::{Access, Env, RealEnv};
use ilion_server::admin::{AdminClient, ClientError, FinishedLoad, LeftFile, LoadReport, PIECE_BYTES_MAX};
use ilion_sstable::{Component, Descriptor, TableFiles};
use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::ask::{client, path, show};
use crate::bar::Steps;
use crate::cli::LoadArguments;

/// How often a piece is sent at most, if the connection breaks.
const TRIES_MAX: u32 = 4;
/// Pause before the second try; each further one is twice as long.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// The outcome for each SSTable. Paths are those of Data.db.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Loaded {
    /// SSTables that are in the table now.
    loaded: Vec<LoadedFile>,
    /// SSTables that the node refused.
    refused: Vec<LeftFile>,
}

/// An SSTable that was loaded.
#[derive(Debug, Serialize, Deserialize)]
struct LoadedFile {
    /// Its path on this machine.
    from: PathBuf,
    /// Its path on the node's; `None` in a cluster.
    to: Option<PathBuf>,
}

impl fmt::Display for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for file in &self.loaded {
            match &file.to {
                Some(to) => writeln!(f, "{} is now {}", file.from.display(), to.display())?,
                None => writeln!(f, "{}: its rows are in the cluster now", file.from.display())?,
            }
        }
        for file in &self.refused {
            writeln!(f, "{} was refused: {}", file.file.display(), file.reason)?;
        }
        write!(
            f,
            "load: {} SSTables, {} refused",
            self.loaded.len(),
            self.refused.len()
        )
    }
}

/// An SSTable to load.
struct Source {
    keyspace: String,
    table: String,
    descriptor: Descriptor,
    /// Each component with its size in bytes. Statistics.db is first, so that the node refuses an SSTable of another table at once.
    components: Vec<(Component, u64)>,
}

/// Loads SSTables.
pub fn load(arguments: &LoadArguments) -> Result<(), Failure> {
    let env: Arc<dyn Env> = RealEnv::new();
    let mut sources = Vec::new();
    for directory in &arguments.directories {
        let table = target(arguments, directory)?;
        sources.extend(sources_in(&*env, directory, &table)?);
    }
    let sender = Sender {
        env: env.clone(),
        client: client(&arguments.admin)?,
        pace: Pace::new(
            env,
            arguments
                .throttle
                .map(|mebibytes| mebibytes.saturating_mul(1 << 20)),
        ),
        bar: Steps::default(),
    };
    sender.bar.begin("load", sources.iter().map(Source::bytes).sum());
    let mut report = Loaded::default();
    for source in &sources {
        let from = source.descriptor.path(&Component::Data);
        match sender.send(source) {
            Ok(to) => report.loaded.push(LoadedFile { from, to }),
            Err(Unsent::Refused(reason)) => report.refused.push(LeftFile { file: from, reason }),
            Err(Unsent::Stopped(failure)) => {
                sender.bar.finish();
                show(&arguments.admin, &report)?;
                return Err(Failure::Failed(format!(
                    "{} was not loaded: {failure}; load it again, SSTables that are in the table may come again",
                    from.display()
                )));
            }
        }
    }
    sender.bar.finish();
    show(&arguments.admin, &report)?;
    match report.refused.len() {
        0 => Ok(()),
        count => Err(Failure::Failed(format!("{count} SSTables were refused"))),
    }
}

/// Keyspace and table for the SSTables of a directory: from the options, else from its path.
fn target(arguments: &LoadArguments, directory: &Path) -> Result<(String, String), Failure> {
    let directory = std::path::absolute(directory)
        .map_err(|error| Failure::Failed(format!("{}: {error}", directory.display())))?;
    let named = table_of(&directory);
    let (keyspace, table) = (arguments.keyspace.clone(), arguments.table.clone());
    let keyspace = keyspace.or(named.as_ref().map(|(keyspace, _)| keyspace.clone()));
    let table = table.or(named.map(|(_, table)| table));
    match (keyspace, table) {
        (Some(keyspace), Some(table)) => Ok((keyspace, table)),
        _ => Err(Failure::Usage(format!(
            "{} is not KEYSPACE/TABLE: name the table with --keyspace and --table",
            directory.display()
        ))),
    }
}

/// The table that the path of a directory names, in Cassandra's layout: `KEYSPACE/TABLE`, `KEYSPACE/TABLE-ID`, also with
/// `snapshots/TAG` or `backups` behind it. Pure.
fn table_of(directory: &Path) -> Option<(String, String)> {
    let names = directory.components().filter_map(|part| match part {
        PathPart::Normal(name) => Some(name.to_str()),
        _ => None,
    });
    let names: Vec<&str> = names.collect::<Option<_>>()?;
    let of_table = match names.as_slice() {
        [before @ .., "snapshots", _] | [before @ .., "backups"] => before,
        all => all,
    };
    let [.., keyspace, table] = of_table else {
        return None;
    };
    let is_id = |id: &str| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let name = match table.rsplit_once('-') {
        Some((name, id)) if is_id(id) => name,
        _ => table,
    };
    Some(((*keyspace).to_owned(), name.to_owned()))
}

fn sources_in(
    env: &dyn Env,
    directory: &Path,
    (keyspace, table): &(String, String),
) -> Result<Vec<Source>, Failure> {
    let files = TableFiles::list(env, directory).map_err(Failure::of)?;
    let missing = || Failure::Failed(format!("{}: no such directory", directory.display()));
    let files = files.ok_or_else(missing)?;
    if files.sstables.is_empty() {
        return Err(Failure::Failed(format!(
            "{}: there is no SSTable in it",
            directory.display()
        )));
    }
    let mut sources = Vec::with_capacity(files.sstables.len());
    for listed in files.sstables {
        let descriptor = listed.descriptor;
        let mut components = Vec::new();
        for path in descriptor.files(env).map_err(Failure::of)? {
            let Some((_, component)) = Descriptor::from_path(&path) else {
                continue;
            };
            components.push((component, env.file_size(&path).map_err(Failure::of)?));
        }
        components.sort_by_key(|(component, _)| *component != Component::Statistics);
        sources.push(Source {
            keyspace: keyspace.clone(),
            table: table.clone(),
            descriptor,
            components,
        });
    }
    Ok(sources)
}

impl Source {
    fn bytes(&self) -> u64 {
        self.components.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// Why an SSTable is not in the table.
enum Unsent {
    /// The node refused this SSTable; it may accept others.
    Refused(String),
    /// Other SSTables would fail, too.
    Stopped(Failure),
}

impl From<ClientError> for Unsent {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(reason) => Self::Refused(reason),
            other => Self::Stopped(Failure::of(other)),
        }
    }
}

/// Sends SSTables to a node.
struct Sender {
    env: Arc<dyn Env>,
    client: AdminClient,
    pace: Pace,
    bar: Steps,
}

impl Sender {
    /// Loads an SSTable; returns the path that it has on the node, if the node is not one of a cluster.
    fn send(&self, source: &Source) -> Result<Option<PathBuf>, Unsent> {
        let sizes = source.components.iter();
        let sizes: Vec<String> = sizes
            .map(|(component, bytes)| format!("{component} {bytes}"))
            .collect();
        let parts = [
            ("keyspace", Some(&*source.keyspace)),
            ("table", Some(&*source.table)),
            ("sstable", Some(&*source.descriptor.base_name())),
            ("components", Some(&*sizes.join("\n"))),
        ];
        let begun: LoadReport = parsed(self.client.post(&path("load/begin", &parts))?)?;
        let load = [("load", Some(&*begun.load))];
        let sent = self
            .send_components(source, &begun.load)
            .and_then(|()| Ok(parsed::<FinishedLoad>(self.client.post(&path("load/finish", &load))?)?.to));
        if sent.is_err() {
            // An error does not matter: the node itself ends loads that failed or get no more pieces.
            let _ = self.client.post(&path("load/abandon", &load));
        }
        sent
    }

    fn send_components(&self, source: &Source, load: &str) -> Result<(), Unsent> {
        let failed = |error: ilion_env::Error| Unsent::Stopped(Failure::of(error));
        let mut buffer = vec![0; PIECE_BYTES_MAX];
        for (component, bytes) in &source.components {
            let file = self
                .env
                .open_read(&source.descriptor.path(component))
                .map_err(failed)?;
            file.advise(Access::Sequential);
            let mut offset = 0;
            loop {
                let left = usize::try_from(bytes - offset).unwrap_or(usize::MAX);
                let piece = &mut buffer[..left.min(PIECE_BYTES_MAX)];
                file.read_exact_at(offset, piece).map_err(failed)?;
                // An empty file is one empty piece.
                self.send_piece(load, component, offset, piece)?;
                offset += piece.len() as u64;
                self.bar.done(piece.len() as u64);
                if offset == *bytes {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Sends a piece, again if the connection breaks. The node ignores a repeated piece.
    fn send_piece(&self, load: &str, component: &Component, offset: u64, piece: &[u8]) -> Result<(), Unsent> {
        let (offset, crc) = (offset.to_string(), crc32(piece).to_string());
        let parts = [
            ("load", Some(load)),
            ("component", Some(component.name())),
            ("offset", Some(&*offset)),
            ("crc", Some(&*crc)),
        ];
        let path = path("load/piece", &parts);
        self.pace.wait(piece.len() as u64);
        let mut pause = RETRY_PAUSE;
        for _ in 1..TRIES_MAX {
            match self.client.post_bytes(&path, piece) {
                Err(error) if error.is_absence() => std::thread::sleep(pause),
                done => return Ok(done.map(drop)?),
            }
            pause *= 2;
        }
        Ok(self.client.post_bytes(&path, piece).map(drop)?)
    }
}

fn parsed<T: serde::de::DeserializeOwned>(answer: serde_json::Value) -> Result<T, Unsent> {
    serde_json::from_value(answer).map_err(|error| {
        Unsent::Stopped(Failure::Failed(format!(
            "the node is of another version: {error}"
        )))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_directory_names_its_table() {
        let id = "0a1b2c3d4e5f60718293a4b5c6d7e8f9";
        for (path, expected) in [
            ("/data/ks/t".to_owned(), Some(("ks", "t"))),
            (format!("/data/ks/t-{id}"), Some(("ks", "t"))),
            (format!("/data/ks/t-{id}/snapshots/tag"), Some(("ks", "t"))),
            (format!("/data/ks/t-{id}/backups"), Some(("ks", "t"))),
            ("ks/t-1".to_owned(), Some(("ks", "t-1"))),
            ("/t".to_owned(), None),
            ("/".to_owned(), None),
        ] {
            let expected = expected.map(|(keyspace, table)| (keyspace.to_owned(), table.to_owned()));
            assert_eq!(table_of(Path::new(&path)), expected, "{path}");
        }
    }
}
