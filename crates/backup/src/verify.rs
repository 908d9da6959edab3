//! Reads backups back and checks them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::log::{archived_segments, nodes};
use crate::{Catalogue, Error, Hash, Pace, Place, Progress, Result};

/// A problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The backup with the problem; for archived segments, the node.
    pub backup: String,
    /// The file, and what is wrong with it.
    pub problem: String,
}

/// What was read, and the problems.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Backups.
    pub backups: u64,
    /// Chunks; one that several backups share counts once.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The problems; empty if there are none.
    pub findings: Vec<Finding>,
}

/// A chunk that must exist.
struct Wanted {
    bytes: u64,
    /// The backups and files that have it.
    of: Vec<(String, String)>,
}

/// Reads backups back and compares the checksum of each chunk: of these backups; without names, of all backups and the archived segments.
///
/// # Errors
/// A named backup does not exist, or the destination fails. Damage is no error: it is in the report.
pub fn verify(
    place: &dyn Place,
    names: &[String],
    threads: usize,
    pace: &Pace,
    progress: &dyn Progress,
) -> Result<Verified> {
    let catalogue = Catalogue::open(place)?;
    let mut verified = Verified::default();
    let mut wanted: BTreeMap<Hash, Wanted> = BTreeMap::new();
    let mut add = |hash: Hash, bytes: u64, backup: &str, file: &str| {
        let chunk = wanted.entry(hash).or_insert(Wanted {
            bytes,
            of: Vec::new(),
        });
        chunk.of.push((backup.to_owned(), file.to_owned()));
    };
    let backups = match names.is_empty() {
        true => catalogue.backups()?,
        false => names
            .iter()
            .map(|name| {
                let manifest = match catalogue.manifest(name) {
                    Err(error @ Error::Damaged { .. }) => Err(error),
                    manifest => Ok(manifest?),
                };
                Ok(crate::Backup {
                    name: name.clone(),
                    manifest,
                })
            })
            .collect::<Result<_>>()?,
    };
    for backup in backups {
        verified.backups += 1;
        let manifest = match backup.manifest {
            Ok(manifest) => manifest,
            Err(error) => {
                verified.findings.push(Finding {
                    backup: backup.name,
                    problem: error.to_string(),
                });
                continue;
            }
        };
        let of_tables = manifest.tables.iter().flat_map(|table| {
            let named = |file| (file, format!("{}.{} ", table.keyspace, table.name));
            table.files.iter().map(named)
        });
        let of_log = manifest.log.segments.iter().map(|file| (file, String::new()));
        for (file, owner) in of_tables.chain(of_log) {
            for (index, hash) in file.chunks.iter().enumerate() {
                let bytes = file.chunk_len(index, manifest.chunk_bytes);
                add(*hash, bytes, &backup.name, &format!("{owner}{}", file.path));
            }
        }
    }
    if names.is_empty() {
        for node in nodes(place)? {
            match archived_segments(place, node, 0) {
                Ok(segments) => {
                    for segment in segments.values() {
                        for (hash, bytes) in segment.chunks() {
                            add(hash, bytes, &format!("log of {node}"), &segment.file.path);
                        }
                    }
                }
                Err(error @ Error::Damaged { .. }) => verified.findings.push(Finding {
                    backup: format!("log of {node}"),
                    problem: error.to_string(),
                }),
                Err(error) => return Err(error),
            }
        }
    }
    let bytes = wanted.values().map(|chunk| chunk.bytes).sum();
    progress.begin("verifying", bytes);
    let problems = check_all(place, &wanted, threads, pace, progress)?;
    progress.finish();
    verified.objects = wanted.len() as u64;
    verified.bytes = bytes;
    for (hash, problem) in problems {
        for (backup, file) in wanted.get(&hash).map(|chunk| &*chunk.of).unwrap_or_default() {
            verified.findings.push(Finding {
                backup: backup.clone(),
                problem: format!("{file}: {} {problem}", hash.key()),
            });
        }
    }
    Ok(verified)
}

/// The chunks that are missing or damaged.
fn check_all(
    place: &dyn Place,
    wanted: &BTreeMap<Hash, Wanted>,
    threads: usize,
    pace: &Pace,
    progress: &dyn Progress,
) -> Result<BTreeMap<Hash, String>> {
    let chunks: Vec<(&Hash, &Wanted)> = wanted.iter().collect();
    let next = AtomicUsize::new(0);
    let problems: Mutex<BTreeMap<Hash, String>> = Mutex::default();
    let failure: Mutex<Option<Error>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while failure.lock().is_none()
                    && let Some((hash, chunk)) = chunks.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    pace.wait(chunk.bytes);
                    match problem_of(place, hash, chunk.bytes) {
                        Ok(None) => {}
                        Ok(Some(problem)) => {
                            problems.lock().insert(**hash, problem);
                        }
                        Err(error) => {
                            failure.lock().get_or_insert(error);
                        }
                    }
                    progress.done(chunk.bytes);
                }
            });
        }
    });
    match failure.into_inner() {
        Some(error) => Err(error),
        None => Ok(problems.into_inner()),
    }
}

fn problem_of(place: &dyn Place, hash: &Hash, bytes: u64) -> Result<Option<String>> {
    match crate::download::read_chunk(place, hash, bytes) {
        Ok(_) => Ok(None),
        Err(Error::Damaged { problem, .. }) => Ok(Some(problem)),
        Err(error) => Err(error),
    }
}
