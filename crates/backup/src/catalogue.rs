//! [`Catalogue`]: the content of a destination.

use std::collections::HashMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::manifest::{FORMAT, MANIFEST_BYTES_MAX};
use crate::{Error, Hash, Manifest, Place, Result};

const MARK: &str = "ilion-backup.json";
const MARK_BYTES_MAX: u64 = 4096;
const BACKUPS: &str = "backups";
const OBJECTS: &str = "objects";
const NAME_BYTES_MAX: usize = 100;

/// The content of `ilion-backup.json`.
#[derive(Serialize, Deserialize)]
struct Mark {
    format: u32,
}

/// The chunks at a destination, with their sizes.
pub(crate) type Objects = HashMap<Hash, u64>;

/// A backup at a destination.
#[derive(Debug)]
pub struct Backup {
    /// Its name.
    pub name: String,
    /// Its manifest, or why it cannot be read.
    pub manifest: Result<Manifest>,
}

/// A destination whose format is known.
pub struct Catalogue<'a> {
    place: &'a dyn Place,
}

impl<'a> Catalogue<'a> {
    /// Opens a destination that has backups.
    ///
    /// # Errors
    /// [`Error::Refused`] if there are no backups, or if a newer Ilion made them.
    pub fn open(place: &'a dyn Place) -> Result<Self> {
        match Self::open_any(place)? {
            Some(catalogue) => Ok(catalogue),
            None => Err(Error::Refused(format!(
                "there are no backups at {}: it has no {MARK}",
                place.name()
            ))),
        }
    }

    /// Opens a destination; marks it if it is new.
    pub(crate) fn open_or_begin(place: &'a dyn Place) -> Result<Self> {
        if let Some(catalogue) = Self::open_any(place)? {
            return Ok(catalogue);
        }
        place.write(MARK, Bytes::from(format!("{{\"format\": {FORMAT}}}\n")))?;
        Ok(Self { place })
    }

    fn open_any(place: &'a dyn Place) -> Result<Option<Self>> {
        let Some(bytes) = place.read(MARK, MARK_BYTES_MAX)? else {
            return Ok(None);
        };
        let mark: Mark = serde_json::from_slice(&bytes)
            .map_err(|error| Error::damaged(MARK, format!("is not one of a backup: {error}")))?;
        match mark.format > FORMAT {
            true => Err(Error::Refused(format!(
                "the backups at {} have format {}; this Ilion reads up to {FORMAT}, use a newer one",
                place.name(),
                mark.format
            ))),
            false => Ok(Some(Self { place })),
        }
    }

    pub(crate) fn place(&self) -> &'a dyn Place {
        self.place
    }

    /// All backups, ordered by name.
    ///
    /// # Errors
    /// The destination cannot be listed. A manifest that cannot be read is an error of its backup only.
    pub fn backups(&self) -> Result<Vec<Backup>> {
        let mut names = Vec::new();
        self.place.list(BACKUPS, &mut |key, _| {
            let name = key
                .strip_prefix("backups/")
                .and_then(|name| name.strip_suffix(".json"));
            names.extend(name.map(str::to_owned));
        })?;
        names.sort();
        let read = names.into_iter().map(|name| Backup {
            manifest: self.manifest(&name),
            name,
        });
        Ok(read.collect())
    }

    /// The manifest of a backup.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such backup, [`Error::Damaged`].
    pub fn manifest(&self, name: &str) -> Result<Manifest> {
        check_name(name)?;
        let key = key_of(name);
        let Some(bytes) = self.place.read(&key, MANIFEST_BYTES_MAX)? else {
            return Err(Error::Refused(format!(
                "there is no backup {name} at {}",
                self.place.name()
            )));
        };
        let manifest = Manifest::decode(&key, &bytes)?;
        match manifest.name == name {
            true => Ok(manifest),
            false => Err(Error::damaged(
                key,
                format!("is that of the backup {}", manifest.name),
            )),
        }
    }

    /// The newest readable backup of a node.
    pub(crate) fn newest_of(&self, node: Uuid) -> Result<Option<Manifest>> {
        let found = self
            .backups()?
            .into_iter()
            .filter_map(|backup| match backup.manifest {
                Ok(manifest) => Some(manifest).filter(|manifest| manifest.node == node),
                Err(error) => {
                    tracing::warn!(backup = %backup.name, %error, "a backup cannot be read");
                    None
                }
            });
        Ok(found.max_by_key(|manifest| manifest.at_micros))
    }

    /// All chunks.
    pub(crate) fn objects(&self) -> Result<Objects> {
        let mut objects = Objects::new();
        self.place.list(OBJECTS, &mut |key, bytes| {
            if let Some(hash) = Hash::of_key(key) {
                objects.insert(hash, bytes);
            }
        })?;
        Ok(objects)
    }

    /// Writes the manifest of a backup. Requires: all chunks that it names exist.
    pub(crate) fn add(&self, manifest: &Manifest) -> Result<()> {
        match self
            .place
            .write_new(&key_of(&manifest.name), manifest.encode()?)?
        {
            true => Ok(()),
            false => Err(taken(&manifest.name)),
        }
    }

    /// Removes the manifest of a backup; its chunks stay.
    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        self.place.remove(&key_of(name))
    }

    /// Refuses a name that a new backup cannot have.
    pub(crate) fn check_new(&self, name: &str) -> Result<()> {
        check_name(name)?;
        match self.place.read(&key_of(name), MANIFEST_BYTES_MAX)? {
            None => Ok(()),
            Some(_) => Err(taken(name)),
        }
    }
}

fn taken(name: &str) -> Error {
    Error::Refused(format!("there is a backup {name} already; choose another --name"))
}

fn key_of(name: &str) -> String {
    format!("{BACKUPS}/{name}.json")
}

fn check_name(name: &str) -> Result<()> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_name = !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.starts_with('.');
    match is_name && name.chars().all(is_of_name) {
        true => Ok(()),
        false => Err(Error::Refused(format!(
            "{name:?} is no name of a backup: letters, digits, dashes, underscores and dots, at most {NAME_BYTES_MAX}"
        ))),
    }
}
