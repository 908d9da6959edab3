//! [`ProgressFile`]: a small file that says how far a COPY has come, so that `RESUME = true` can continue it.
//!
//! It is a JSON object: `copy` names what is copied and with which options, `at` says how far. It is removed when the COPY is complete.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use ilion_env::Env;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Largest file that is read.
const BYTES_MAX: u64 = 256 << 20;
const SAVE_NANOS: u64 = 1_000_000_000;

/// What is copied and how, by option. Only a COPY for which all of this is the same can be resumed.
pub type Terms = BTreeMap<String, String>;

#[derive(Serialize, Deserialize)]
struct Progress<At> {
    copy: Terms,
    at: At,
}

/// The file of one COPY.
pub struct ProgressFile {
    env: Arc<dyn Env>,
    path: PathBuf,
    terms: Terms,
    /// When it was written last.
    saved_nanos: Option<u64>,
    /// Why it could not be written.
    problem: Option<String>,
}

impl ProgressFile {
    /// The file at this path, for a COPY with these terms. It is neither read nor written yet.
    pub fn new(env: Arc<dyn Env>, path: PathBuf, terms: Terms) -> Self {
        Self {
            env,
            path,
            terms,
            saved_nanos: None,
            problem: None,
        }
    }

    /// Removes the file that an earlier COPY has left; true if there was one.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn forget(&self) -> Result<bool, String> {
        let is_there = self.env.exists(&self.path);
        self.remove().map(|()| is_there)
    }

    /// How far an earlier COPY has come.
    ///
    /// # Errors
    /// There is no file, it is damaged, or it is of a COPY with other terms.
    pub fn load<At: DeserializeOwned>(&self) -> Result<At, String> {
        let path = self.path.display();
        if !self.env.exists(&self.path) {
            return Err(format!("There is nothing to resume: '{path}' does not exist."));
        }
        let bytes = self.env.read_all(&self.path, BYTES_MAX);
        let bytes = bytes.map_err(|error| format!("Could not read '{path}': {}", error.source))?;
        let progress: Progress<At> = serde_json::from_slice(&bytes).map_err(|error| {
            format!("'{path}' is damaged ({error}): remove it, and copy again without RESUME.")
        })?;
        match difference(&progress.copy, &self.terms) {
            None => Ok(progress.at),
            Some((name, before, now)) => Err(format!(
                "'{path}' is of another COPY: its {name} is '{before}', not '{now}'. Use the same statement, or copy again without RESUME."
            )),
        }
    }

    /// True if it was not written for a second, or never.
    pub fn is_due(&self) -> bool {
        let now = self.env.monotonic_nanos();
        self.saved_nanos
            .is_none_or(|saved| now.saturating_sub(saved) >= SAVE_NANOS)
    }

    /// Replaces the file. A failure does not end the COPY; [`Self::advice`] names it.
    pub fn save<At: Serialize>(&mut self, at: &At) {
        self.saved_nanos = Some(self.env.monotonic_nanos());
        let progress = Progress {
            copy: self.terms.clone(),
            at,
        };
        let saved = serde_json::to_vec(&progress).map_err(|error| error.to_string());
        let saved = saved.and_then(|bytes| {
            let written = self.env.write_atomically(&self.path, &bytes);
            written.map_err(|error| error.to_string())
        });
        self.problem = saved.err();
    }

    /// Notes that the COPY cannot be resumed from here.
    pub fn fail(&mut self, problem: String) {
        self.problem = Some(problem);
    }

    /// What the user can do after the COPY has stopped; `place` says where it continues.
    pub fn advice(&self, place: &str) -> String {
        match &self.problem {
            None => format!("The same statement with RESUME = true continues {place}."),
            Some(problem) => format!("It cannot be resumed, since its progress could not be kept: {problem}"),
        }
    }

    /// Removes the file, because the COPY is complete.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn remove(&self) -> Result<(), String> {
        let removed = self.env.remove_file_if_any(&self.path);
        removed.map_err(|error| error.to_string())
    }
}

/// The first option that differs, with both values.
fn difference<'t>(before: &'t Terms, now: &'t Terms) -> Option<(&'t str, &'t str, &'t str)> {
    let value = |terms: &'t Terms, name: &str| terms.get(name).map_or("", String::as_str);
    let mut names = before.keys().chain(now.keys());
    names.find_map(|name| {
        let (before, now) = (value(before, name), value(now, name));
        (before != now).then_some((name.as_str(), before, now))
    })
}
