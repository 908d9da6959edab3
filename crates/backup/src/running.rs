//! Marks of tools that are adding or removing objects. A running backup may rely on chunks that no manifest names yet, so no chunk may be
//! removed meanwhile.
//!
//! A tool first writes its own mark and then looks for marks of the other kind. So if two tools begin at the same time, at least one sees
//! the other. A tool that was killed leaves its mark; the same tool takes it over when it runs again.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Error, Place, Result};

const RUNNING: &str = "running";
const REMOVING: &str = "delete";
const MARK_BYTES_MAX: u64 = 4096;

#[derive(Serialize, Deserialize)]
struct Mark {
    /// When it began, for people.
    since: String,
}

/// A mark; removed by [`Running::end`]. A tool that fails leaves it, so that its uploaded chunks stay for its next run.
#[must_use]
pub(crate) struct Running<'a> {
    place: &'a dyn Place,
    key: String,
}

impl<'a> Running<'a> {
    /// Begins to add chunks for a node.
    pub(crate) fn add(place: &'a dyn Place, node: Uuid, since: &str) -> Result<Self> {
        let running = Self::mark(place, &node.to_string(), since)?;
        match other(place, |name| name == REMOVING)? {
            None => Ok(running),
            Some((_, since)) => {
                running.end()?;
                Err(Error::Refused(format!(
                    "backups at {} are being deleted since {since}; wait, or run `ilion backup delete` again if it was ended early",
                    place.name()
                )))
            }
        }
    }

    /// Begins to remove chunks. With `is_forced`, marks of backups are removed first.
    pub(crate) fn remove(place: &'a dyn Place, since: &str, is_forced: bool) -> Result<Self> {
        let running = Self::mark(place, REMOVING, since)?;
        while let Some((name, since)) = other(place, |name| name != REMOVING)? {
            if is_forced {
                place.remove(&key_of(&name))?;
                continue;
            }
            running.end()?;
            return Err(Error::Refused(format!(
                "a backup of node {name} is running at {} since {since}; wait for its end; if it was interrupted, \
                 run `ilion backup` on that node again; if that node will never run it again, delete with --force",
                place.name()
            )));
        }
        Ok(running)
    }

    fn mark(place: &'a dyn Place, name: &str, since: &str) -> Result<Self> {
        let mark = Mark {
            since: since.to_owned(),
        };
        let text = serde_json::to_vec(&mark).unwrap_or_default();
        let key = key_of(name);
        place.write(&key, Bytes::from(text))?;
        Ok(Self { place, key })
    }

    pub(crate) fn end(self) -> Result<()> {
        self.place.remove(&self.key)
    }
}

fn key_of(name: &str) -> String {
    format!("{RUNNING}/{name}.json")
}

/// A mark of the other kind: its name, and when it began.
fn other(place: &dyn Place, is_other: impl Fn(&str) -> bool) -> Result<Option<(String, String)>> {
    let mut found = None;
    place.list(RUNNING, &mut |key, _| {
        let name = key
            .strip_prefix("running/")
            .and_then(|name| name.strip_suffix(".json"));
        if let Some(name) = name.filter(|name| is_other(name)) {
            found = Some(name.to_owned());
        }
    })?;
    let Some(name) = found else { return Ok(None) };
    let mark = place.read(&key_of(&name), MARK_BYTES_MAX)?;
    let mark = mark.and_then(|mark| serde_json::from_slice::<Mark>(&mark).ok());
    let since = mark.map_or_else(|| "an unknown time".to_owned(), |mark| mark.since);
    Ok(Some((name, since)))
}
