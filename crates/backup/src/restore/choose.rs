//! Chooses the backup that a restore begins with, and the segments of the log that follow.

use std::collections::BTreeMap;

use ilion_commitlog::SegmentId;
use ilion_engine::print_instant;
use uuid::Uuid;

use crate::log::{archived_segments, reached};
use crate::manifest::FileEntry;
use crate::{Catalogue, Error, Manifest, Place, RestoreOptions, Result};

/// The moment that is restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Until {
    /// The moment of a backup; `None` is the newest one.
    Backup(Option<String>),
    /// This time, microseconds since 1970.
    Time(i64),
    /// The end of the archived log.
    Latest,
}

/// The input of a restore.
pub(super) struct Chosen {
    pub base: Manifest,
    /// Segments behind the backup, with the size of their chunks.
    pub later: Vec<(FileEntry, u32)>,
    /// Records that were logged after this time are left out.
    pub to_micros: Option<i64>,
}

impl Chosen {
    /// The latest time of a record that is restored.
    pub(super) fn until_micros(&self) -> i64 {
        self.to_micros
            .unwrap_or(self.base.at_micros)
            .max(self.base.at_micros)
    }
}

pub(super) fn choose(place: &dyn Place, options: &RestoreOptions<'_>) -> Result<Chosen> {
    let catalogue = Catalogue::open(place)?;
    if let Until::Backup(Some(name)) = &options.until {
        return Ok(Chosen {
            base: catalogue.manifest(name)?,
            later: Vec::new(),
            to_micros: None,
        });
    }
    let mut unreadable = None;
    let mut manifests = Vec::new();
    for backup in catalogue.backups()? {
        match backup.manifest {
            Ok(manifest) => manifests.push(manifest),
            // An unreadable backup may be the right one, so no other backup is chosen instead.
            Err(error) => unreadable = Some(error),
        }
    }
    if let Some(error) = unreadable {
        return Err(Error::Refused(format!(
            "which backup is the right one cannot be known: {error}; name one, or delete this one"
        )));
    }
    let manifests = of_one_node(place, manifests, options.node)?;
    let to_micros = match options.until {
        Until::Time(micros) => micros,
        Until::Backup(_) | Until::Latest => i64::MAX,
    };
    let base = manifests
        .iter()
        .rev()
        .find(|manifest| manifest.at_micros <= to_micros);
    let Some(base) = base.cloned() else {
        let oldest = manifests.first().map_or("unknown", |manifest| &*manifest.at);
        return Err(Error::Refused(format!(
            "the oldest backup at {} is of {oldest}; nothing from before it can be restored",
            place.name()
        )));
    };
    if matches!(options.until, Until::Backup(_)) {
        return Ok(Chosen {
            base,
            later: Vec::new(),
            to_micros: None,
        });
    }
    let behind = manifests
        .into_iter()
        .filter(|manifest| manifest.at_micros > base.at_micros);
    let later = later_segments(place, &base, behind.collect(), to_micros, &options.until)?;
    Ok(Chosen {
        base,
        later,
        to_micros: Some(to_micros).filter(|to| *to < i64::MAX),
    })
}

/// The backups of the node, oldest first.
fn of_one_node(place: &dyn Place, mut manifests: Vec<Manifest>, node: Option<Uuid>) -> Result<Vec<Manifest>> {
    manifests.retain(|manifest| node.is_none_or(|node| manifest.node == node));
    manifests.sort_by_key(|manifest| manifest.at_micros);
    let mut nodes: Vec<Uuid> = manifests.iter().map(|manifest| manifest.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    match (&nodes[..], node) {
        ([_], _) => Ok(manifests),
        ([], Some(node)) => Err(Error::Refused(format!(
            "there is no backup of node {node} at {}",
            place.name()
        ))),
        ([], None) => Err(Error::Refused(format!("there is no backup at {}", place.name()))),
        _ => {
            let nodes: Vec<String> = nodes.iter().map(ToString::to_string).collect();
            Err(Error::Refused(format!(
                "{} has backups of several nodes: name a backup, or one of them with --node: {}",
                place.name(),
                nodes.join(", ")
            )))
        }
    }
}

/// The segments behind a backup, up to and including the first archived one that was created after `to_micros`.
fn later_segments(
    place: &dyn Place,
    base: &Manifest,
    behind: Vec<Manifest>,
    to_micros: i64,
    until: &Until,
) -> Result<Vec<(FileEntry, u32)>> {
    let archived = archived_segments(place, base.node, base.log.to)?;
    let reached = reached(place, base.node)?;
    let mut end_micros = base.log.covered_micros;
    let mut segments: BTreeMap<u64, (FileEntry, u32)> = BTreeMap::new();
    for manifest in behind {
        end_micros = end_micros.max(manifest.log.covered_micros);
        for file in manifest.log.segments {
            let id = SegmentId::of_file_name(&file.path).map(|id| id.0);
            if let Some(id) = id.filter(|id| *id >= base.log.to) {
                segments.insert(id, (file, manifest.chunk_bytes));
            }
        }
        if manifest.at_micros > to_micros {
            break;
        }
    }
    let mut is_passed = false;
    let backed_up: Vec<u64> = segments.keys().copied().collect();
    for (id, segment) in &archived {
        end_micros = end_micros.max(segment.created_micros);
        segments.insert(*id, (segment.file.clone(), segment.chunk_bytes));
        let is_gap = match segment.before {
            // The first segment behind the backup may follow a segment of the backup, or one from before it.
            Some(before) => before >= base.log.to && !segments.contains_key(&before),
            None => !backed_up.contains(id) && !is_first_behind(*id, base),
        };
        if is_gap {
            return Err(gap(place, base, *id));
        }
        if segment.created_micros > to_micros {
            // A later backup may have further segments, but those between this one and them are missing here.
            segments.split_off(&(id + 1));
            is_passed = true;
            break;
        }
    }
    if let Some(reached) = reached {
        end_micros = end_micros.max(reached.covered_micros);
        let is_last_there = reached
            .last
            .is_none_or(|last| last < base.log.to || archived.contains_key(&last));
        if !is_passed && !is_last_there {
            return Err(gap(place, base, reached.last.unwrap_or(0)));
        }
    }
    if matches!(until, Until::Time(_)) && to_micros > end_micros {
        return Err(Error::Refused(format!(
            "the log at {} goes up to {}; say --to latest for all of it, or run `ilion backup log` on the node first",
            place.name(),
            print_instant(end_micros.div_euclid(1000))
        )));
    }
    Ok(segments.into_values().collect())
}

/// Whether an archive that begins with this segment has all records after the backup.
fn is_first_behind(id: u64, base: &Manifest) -> bool {
    id <= base.log.to
}

fn gap(place: &dyn Place, base: &Manifest, segment: u64) -> Error {
    Error::Refused(format!(
        "the archived log at {} has a gap between the backup {} and segment {segment}: only the moment of the backup itself, or of a \
         later one, can be restored",
        place.name(),
        base.name
    ))
}
