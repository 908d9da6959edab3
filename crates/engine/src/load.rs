//! Loads: an SSTable of another machine arrives in pieces and is then imported. So `ilion sstable load` needs no access to the node's
//! disk.
//!
//! The pieces are put together in a directory of their own, `ilion.load-<id>` in the data directory. Statistics.db comes first: an
//! SSTable of another table is refused before the rest is sent. The import checks the whole SSTable and takes all of it or nothing. The
//! directory is removed with the [`Load`], or after a crash at the next start.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_codec::crc32;
use ilion_env::{Env, WriteFile};
use ilion_schema::TableId;
use ilion_sstable::{Component, Descriptor, Statistics};

use crate::import::{Bringer, ImportSource, fit};
use crate::shared::Shared;
use crate::{Engine, Error, Result};

/// Start of the names of the directories.
const DIRECTORY_PREFIX: &str = "ilion.load-";
/// Maximum number of components of an SSTable. A table may have many attached indexes, each with some components.
const COMPONENTS_MAX: usize = 1024;
/// Longest name of a file.
const NAME_BYTES_MAX: usize = 255;
/// Maximum size of Statistics.db, which is read into memory.
const STATISTICS_BYTES_MAX: u64 = 64 << 20;

/// An SSTable that is being received. Dropping it removes what was received.
pub struct Load {
    shared: Arc<Shared>,
    table: TableId,
    /// The tablets that are copied; `None` if an operator loads the SSTable.
    copied: Option<Arc<BTreeSet<u32>>>,
    descriptor: Descriptor,
    // Declared before the directory, so that its files are closed before that is removed.
    parts: Vec<ReceivedComponent>,
    _directory: ScratchDirectory,
}

/// A directory beside those of keyspaces, removed with this value, or at the next start.
pub(crate) struct ScratchDirectory {
    env: Arc<dyn Env>,
    path: Arc<Path>,
}

impl ScratchDirectory {
    /// Chooses the name of a directory, but does not create it.
    pub(crate) fn new(shared: &Shared) -> Self {
        let id = shared.env.random_uuid();
        let path = shared.options.data_dir.join(format!("{DIRECTORY_PREFIX}{id}"));
        Self {
            env: shared.env.clone(),
            path: path.into(),
        }
    }

    pub(crate) fn path(&self) -> &Arc<Path> {
        &self.path
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        remove(&*self.env, &self.path);
    }
}

/// A component that is being received.
struct ReceivedComponent {
    component: Component,
    bytes: u64,
    received: u64,
    /// The file is complete and durable. An empty file arrives as one empty piece.
    is_whole: bool,
    /// `None` before the first piece and behind the last one.
    file: Option<Box<dyn WriteFile>>,
    /// Offset and checksum of the last piece, which may be sent again if its answer was lost.
    last: Option<(u64, u32)>,
}

impl Engine {
    /// Begins to receive an SSTable for a table: its name (`nb-12-big`), and its components with their sizes. It ends with
    /// [`Self::finish_load`], on a node of a cluster with [`Self::read_load`].
    ///
    /// # Errors
    /// The table does not exist or cannot import, the SSTable cannot be read by its name, or the disk has too little space.
    pub fn begin_load(&self, table: TableId, name: &str, components: &[(&str, u64)]) -> Result<Load> {
        self.begin_load_by(None, table, name, components)
    }

    /// Like [`Self::begin_load`], for a [`crate::Slice`] of another replica with these tablets. Records of these tablets that the slice
    /// contains will not be applied to the table again.
    ///
    /// Requires: the table has no other partition of these tablets ([`Self::clear_ranges`]), and the replica has saved that its tables have
    /// all records up to [`Self::tablet_seen`] of this node.
    ///
    /// # Errors
    /// Those of [`Self::begin_load`].
    pub fn begin_copy(
        &self,
        tablets: &Arc<BTreeSet<u32>>,
        table: TableId,
        name: &str,
        components: &[(&str, u64)],
    ) -> Result<Load> {
        self.begin_load_by(Some(tablets.clone()), table, name, components)
    }

    fn begin_load_by(
        &self,
        copied: Option<Arc<BTreeSet<u32>>>,
        table: TableId,
        name: &str,
        components: &[(&str, u64)],
    ) -> Result<Load> {
        let shared = &self.shared;
        self.importing_store(table)?;
        let directory = ScratchDirectory::new(shared);
        let (descriptor, parts) = parts_of(directory.path(), name, components)?;
        descriptor.version.check_readable()?;
        let bytes = components.iter().map(|(_, bytes)| bytes);
        let bytes = bytes.fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
        let free = shared.env.free_space_bytes(&shared.options.data_dir)?;
        if bytes > free {
            return Err(Error::Refused(format!(
                "{name} has {bytes} bytes, and the node's disk has {free} bytes left"
            )));
        }
        shared.env.create_dir_all(directory.path())?;
        Ok(Load {
            shared: shared.clone(),
            table,
            copied,
            descriptor,
            parts,
            _directory: directory,
        })
    }

    /// Imports an SSTable that was received; returns the path of its Data.db in the table.
    ///
    /// # Errors
    /// A component is incomplete, the SSTable is damaged or does not fit the table, or the operating system returned an error. Then
    /// nothing is imported.
    pub fn finish_load(&self, load: &Load) -> Result<PathBuf> {
        let directory = &load.whole()?.directory;
        self.shared.env.sync_dir(directory)?;
        let bringer = bringer_of(&load.copied);
        let report = self.import_by(bringer, load.table, directory, ImportSource::Moved)?;
        match (
            report.imported.into_iter().next(),
            report.refused.into_iter().next(),
        ) {
            (Some((_, to)), _) => Ok(to),
            (None, Some((_, reason))) => Err(Error::Refused(load.with_short_paths(&reason))),
            (None, None) => Err(Error::Refused(format!(
                "{} has no {}",
                load.descriptor.base_name(),
                Component::Data
            ))),
        }
    }
}

fn bringer_of(copied: &Option<Arc<BTreeSet<u32>>>) -> Bringer<'_> {
    copied.as_deref().map_or(Bringer::Operator, Bringer::Replica)
}

impl Load {
    /// The table that it is for.
    pub(crate) fn table(&self) -> TableId {
        self.table
    }

    /// The SSTable, if all of it was received.
    pub(crate) fn whole(&self) -> Result<&Descriptor> {
        match self.parts.iter().find(|part| !part.is_whole) {
            None => Ok(&self.descriptor),
            Some(part) => Err(Error::Refused(format!(
                "{} is incomplete: {} of {} bytes were received",
                self.descriptor.file_name(&part.component),
                part.received,
                part.bytes
            ))),
        }
    }

    /// Receives the piece of a component at this offset. The last piece may come twice, since its answer may have been lost.
    ///
    /// # Errors
    /// The piece is not the next one or has another checksum, Statistics.db does not fit the table, or the operating system returned an
    /// error. Drop the load then.
    pub fn receive(&mut self, component: &str, offset: u64, crc: u32, bytes: &[u8]) -> Result<()> {
        let refuse = |reason: String| Err(Error::Refused(reason));
        let mut parts = self.parts.iter();
        let is_known = parts.any(|part| part.component == Component::Statistics && part.is_whole);
        if component != Component::Statistics.name() && !is_known {
            return refuse(format!("{} comes first", Component::Statistics));
        }
        let Some(part) = self
            .parts
            .iter_mut()
            .find(|part| part.component.name() == component)
        else {
            return refuse(format!("{component} was not announced"));
        };
        let path = self.descriptor.path(&part.component);
        if crc32(bytes) != crc {
            return refuse(format!(
                "{component}: the bytes at {offset} were changed on their way"
            ));
        }
        let end = offset.saturating_add(bytes.len() as u64);
        if part.last == Some((offset, crc)) && end == part.received {
            return Ok(());
        }
        if offset != part.received || end > part.bytes || part.is_whole {
            return refuse(format!(
                "{component}: expected bytes from {} to {} at most, and received {offset} to {end}",
                part.received, part.bytes
            ));
        }
        let env = &*self.shared.env;
        let file = match &mut part.file {
            Some(file) => file,
            none => none.insert(env.create(&path)?),
        };
        file.append(bytes)?;
        (part.received, part.last) = (end, Some((offset, crc)));
        if part.received < part.bytes {
            return Ok(());
        }
        // The import takes the file as it is.
        file.sync()?;
        (part.file, part.is_whole) = (None, true);
        match part.component {
            Component::Statistics => self.check_statistics(),
            _ => Ok(()),
        }
    }

    /// Refuses an SSTable of another table or partitioner.
    fn check_statistics(&self) -> Result<()> {
        let path = self.descriptor.path(&Component::Statistics);
        let bytes = self.shared.env.read_all(&path, STATISTICS_BYTES_MAX)?;
        let store = self.shared.table(self.table);
        let store = store.ok_or_else(|| Error::Refused("the table was dropped".to_owned()))?;
        let table = store.schema();
        let partitioner = table.partitioner(self.shared.options.partitioner);
        let statistics = Statistics::decode(&bytes, self.descriptor.version, &path);
        let statistics =
            statistics.map_err(|error| Error::Refused(self.with_short_paths(&error.to_string())))?;
        fit::check(&statistics, &table, partitioner).map_err(Error::Refused)
    }

    /// The message without the path of the directory, which is of no use to the sender.
    pub(crate) fn with_short_paths(&self, message: &str) -> String {
        message.replace(&format!("{}/", self.descriptor.directory.display()), "")
    }
}

/// Removes the directories of loads that a crash left.
pub(crate) fn remove_unfinished(shared: &Shared) -> Result<()> {
    let data_dir = &shared.options.data_dir;
    for entry in shared.env.list(data_dir)? {
        if entry.is_dir && entry.name.starts_with(DIRECTORY_PREFIX) {
            remove(&*shared.env, &data_dir.join(&entry.name));
        }
    }
    Ok(())
}

fn remove(env: &dyn Env, directory: &Path) {
    match env.remove_dir_all(directory) {
        Err(error) if !error.is_not_found() => {
            tracing::warn!(directory = %directory.display(), %error, "files of a load or scrub cannot be removed; the next start tries again");
        }
        _ => {}
    }
}

/// Checks the components that the sender announces.
fn parts_of(
    directory: &Arc<Path>,
    name: &str,
    components: &[(&str, u64)],
) -> Result<(Descriptor, Vec<ReceivedComponent>)> {
    let refuse = |reason: String| Err(Error::Refused(reason));
    if components.len() > COMPONENTS_MAX {
        return refuse(format!("{name} has more than {COMPONENTS_MAX} components"));
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+-_.".contains(&byte);
    let mut found: Option<Descriptor> = None;
    let mut parts: Vec<ReceivedComponent> = Vec::with_capacity(components.len());
    for (component, bytes) in components {
        let file = format!("{name}-{component}");
        // The name becomes the name of a file, so it must be a plain one.
        let is_name = file.len() <= NAME_BYTES_MAX && file.bytes().all(is_plain);
        let parsed = Descriptor::parse(directory, &file).filter(|_| is_name);
        let Some((descriptor, component)) = parsed.filter(|(parsed, _)| parsed.base_name() == name) else {
            return refuse(format!("{file} is not the name of a component of an SSTable"));
        };
        if component == Component::Statistics && *bytes > STATISTICS_BYTES_MAX {
            return refuse(format!("{file} is too large: {bytes} bytes"));
        }
        if parts.iter().any(|part| part.component == component) {
            return refuse(format!("{file} is announced twice"));
        }
        found = Some(descriptor);
        parts.push(ReceivedComponent {
            component,
            bytes: *bytes,
            received: 0,
            is_whole: false,
            file: None,
            last: None,
        });
    }
    let missing = [Component::Statistics, Component::Data].into_iter();
    let mut missing = missing.filter(|needed| parts.iter().all(|part| part.component != *needed));
    match (found, missing.next()) {
        (Some(descriptor), None) => Ok((descriptor, parts)),
        (_, missing) => refuse(format!(
            "{name} has no {}",
            missing.unwrap_or(Component::Statistics)
        )),
    }
}
