//! A backup.
//!
//! 1. The destination gets a mark that a backup of this node is running, so that nobody removes chunks.
//! 2. The node takes a moment.
//! 3. Chunks that the destination does not have are uploaded; each is durable when its upload returns.
//! 4. Archived segments of the commit log follow, if the node archives them.
//! 5. The manifest is written, unless one of that name exists. From here on the backup exists.
//!
//! If the tool is killed, it leaves chunks that no manifest names; the next backup of the node finds them and uploads the rest.

use std::sync::Arc;

use ilion_engine::print_instant;
use ilion_env::Env;
use parking_lot::Mutex;

use crate::catalogue::Objects;
use crate::log::ship_archive;
use crate::manifest::{CHUNK_BYTES, FORMAT, KeyspaceEntry, LogEntry};
use crate::plan::{Plan, plan};
use crate::running::Running;
use crate::upload::{Moved, Uploads};
use crate::{Catalogue, Error, Manifest, Moment, Pace, Place, Progress, Result};

/// How a backup is made.
pub struct CreateOptions<'a> {
    /// Its name; `None` names it after its moment.
    pub name: Option<String>,
    /// Threads that upload.
    pub threads: usize,
    /// Limit of bytes per second.
    pub pace: Pace,
    /// Bytes of a chunk; `None` is 16 MiB. For tests.
    pub chunk_bytes: Option<u32>,
    /// Whether archived segments are removed from the archive once they are at the destination.
    pub prunes_archive: bool,
    /// Receives the progress.
    pub progress: &'a dyn Progress,
}

impl CreateOptions<'_> {
    fn chunk_bytes(&self) -> u32 {
        self.chunk_bytes.unwrap_or(CHUNK_BYTES)
    }

    /// Uploads of chunks that are not among `objects`.
    pub(crate) fn uploads<'u>(
        &'u self,
        env: &'u Arc<dyn Env>,
        place: &'u dyn Place,
        objects: &'u Mutex<Objects>,
    ) -> Uploads<'u> {
        Uploads {
            env,
            place,
            pace: &self.pace,
            progress: self.progress,
            objects,
            chunk_bytes: self.chunk_bytes(),
            threads: self.threads,
        }
    }
}

/// A new backup, and what was uploaded for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// The backup.
    pub manifest: Manifest,
    /// Bytes that were uploaded.
    pub uploaded_bytes: u64,
    /// Objects that were uploaded.
    pub uploaded_objects: u64,
    /// Archived segments that were uploaded.
    pub archived_segments: u64,
}

/// Makes a backup of the moment that `begin` takes.
///
/// # Errors
/// See [`Error`]. Then there is no new backup; uploaded chunks stay for the next try.
pub fn create(
    env: &Arc<dyn Env>,
    place: &dyn Place,
    options: &CreateOptions<'_>,
    begin: &mut dyn FnMut() -> Result<Moment>,
) -> Result<Created> {
    let catalogue = Catalogue::open_or_begin(place)?;
    if let Some(name) = &options.name {
        catalogue.check_new(name)?;
    }
    let moment = begin()?;
    let since = print_instant(env.now_micros().div_euclid(1000));
    let running = Running::add(place, moment.node, &since)?;
    // Listed after the mark was written: from then on no chunk is removed.
    let objects = catalogue.objects()?;
    let before = catalogue.newest_of(moment.node)?;
    if let Some(before) = &before
        && before.at_micros > moment.at_micros
    {
        tracing::warn!(backup = %before.name, at = %before.at, "a backup of this node is newer: the clock may have been set back");
    }
    let chunk_bytes = options.chunk_bytes();
    let mut plan = plan(&**env, &moment, before.as_ref(), &objects, chunk_bytes)?;
    let objects = Mutex::new(objects);
    let uploads = options.uploads(env, place, &objects);
    let moved = upload(&uploads, &mut plan)?;
    let archived_segments = match &moment.archive_directory {
        None => 0,
        Some(archive) => ship_archive(&uploads, moment.node, archive, options.prunes_archive)?.segments,
    };
    let name = options.name.clone().unwrap_or_else(|| name_of(moment.at_micros));
    let manifest = manifest_of(name, moment, plan, chunk_bytes)?;
    catalogue.add(&manifest)?;
    running.end()?;
    Ok(Created {
        manifest,
        uploaded_bytes: moved.bytes,
        uploaded_objects: moved.objects,
        archived_segments,
    })
}

/// Uploads what the plan wants, and notes its chunks.
fn upload(uploads: &Uploads<'_>, plan: &mut Plan) -> Result<Moved> {
    let wanted = std::mem::take(&mut plan.wanted);
    let files: Vec<_> = wanted
        .iter()
        .map(|wanted| (&*wanted.source, wanted.bytes))
        .collect();
    let bytes = wanted.iter().map(|wanted| wanted.bytes).sum();
    uploads.progress.begin("uploading", bytes);
    let (chunks, moved) = uploads.run(&files)?;
    uploads.progress.finish();
    for (wanted, chunks) in wanted.iter().zip(chunks) {
        if let Some(file) = plan.file_mut(wanted.place) {
            file.chunks = chunks;
        }
    }
    Ok(moved)
}

fn manifest_of(name: String, moment: Moment, plan: Plan, chunk_bytes: u32) -> Result<Manifest> {
    let keyspaces = moment.keyspaces.into_iter();
    let manifest = Manifest {
        format: FORMAT,
        name,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        cluster: moment.cluster,
        node: moment.node,
        partitioner: moment.partitioner,
        at: print_instant(moment.at_micros.div_euclid(1000)),
        at_micros: moment.at_micros,
        chunk_bytes,
        keyspaces: keyspaces
            .map(|keyspace| KeyspaceEntry {
                name: keyspace.name,
                statement: keyspace.statement,
            })
            .collect(),
        tables: plan.tables,
        log: LogEntry {
            from: moment.log_from,
            to: moment.log_to,
            covered_micros: moment.covered_micros,
            segments: plan.segments,
            purged: moment.purged,
        },
    };
    // Never write a manifest that cannot be read back.
    Manifest::decode("the manifest", &manifest.encode()?).map_err(|error| Error::Refused(error.to_string()))
}

/// The moment as a name: `2026-11-24T05-30-00.123Z`.
fn name_of(at_micros: i64) -> String {
    print_instant(at_micros.div_euclid(1000)).replace(':', "-")
}
