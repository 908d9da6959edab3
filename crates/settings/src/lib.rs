//! Settings: from the defaults, a file, the environment and the command line; a later source wins.
//!
//! A setting that means the same as one of Cassandra's has its name and units. An unknown name is refused with its place and the
//! nearest known name. A setting of Cassandra that Ilion does not support is ignored with a warning, or refused (`foreign`).
//!
//! | module | what |
//! | --- | --- |
//! | `table` | [`SETTINGS`]: all settings, with default, description and old names; [`Settings`]: their values |
//! | `form`, `choices` | values as text: durations, sizes, rates, words; settings with a few fixed values |
//! | `compaction`, `log_place` | values of `default_compaction`, `log` and `tablets` |
//! | `file`, `variables` | the settings file; environment variables that other projects have named |
//! | `foreign` | settings of Cassandra that Ilion does not support |
//! | `live` | [`LIVE`]: which settings can change while the node runs |
//! | `of_server` | [`is_of_server`]: which settings only a server uses |
//! | `document` | prints `docs/settings.md` |
//!
//! When you add a setting, add a line in `table`, and run the tests with `REWRITE=1` to renew the document.

#[macro_use]
mod form;
mod choices;
mod compaction;
mod document;
mod file;
mod foreign;
mod live;
mod log_place;
mod of_server;
mod table;
mod variables;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use ilion_env::Env;

pub use choices::{
    AuditLogger, Authenticator, Authorizer, BlockSize, Categories, CertificateValidator, CidrAuthorizer,
    CidrMode, ClientCertificates, CommitLogSync, InternodeEncryption, LogFormat, LogTarget, LogTargets,
    NetworkAuthorizer, RoleManager, RollCycle, SSTableFormat, SSTableLookup, SaslMechanism,
    StorageCompatibility,
};
pub use compaction::DefaultCompaction;
pub use document::document;
use foreign::{FOREIGN, Fate, Foreign};
pub use form::{Limit, LogFilter, Names, Rate, Size, Umask, parse_address, parse_duration, parse_size};
pub use live::LIVE;
pub use log_place::{LogPlace, TabletCount};
pub use of_server::is_of_server;
pub use table::{SETTINGS, Setting, Settings};

/// Largest settings file.
const FILE_MAX_BYTES: u64 = 1 << 20;

/// Environment variables that start with this are settings: `ILION_NATIVE_TRANSPORT_PORT`.
const ENVIRONMENT_PREFIX: &str = "ILION_";

/// Variable with the name of the first superuser.
pub const SUPERUSER: &str = "ILION_SUPERUSER";
/// Variable with the password of the first superuser.
pub const SUPERUSER_PASSWORD: &str = "ILION_SUPERUSER_PASSWORD";
/// Variable with the path of the file that has this password.
pub const SUPERUSER_PASSWORD_FILE: &str = "ILION_SUPERUSER_PASSWORD_FILE";

/// Variables with the prefix that are no settings.
const ENVIRONMENT_RESERVED: [&str; 4] = [
    "ILION_CONFIG",
    SUPERUSER,
    SUPERUSER_PASSWORD,
    SUPERUSER_PASSWORD_FILE,
];

/// A setting that cannot be used; the operator must change it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct SettingsError {
    /// Where the setting is: file and line, variable or flag.
    pub place: String,
    /// What is wrong.
    pub problem: String,
}

/// The settings and warnings of all sources so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    /// A warning for each setting that was ignored.
    pub warnings: Vec<String>,
}

impl Loaded {
    /// Adds the settings of a file.
    ///
    /// # Errors
    /// The file cannot be read, or a setting cannot be used.
    pub fn add_file(&mut self, env: &dyn Env, path: &Path) -> Result<(), SettingsError> {
        let place = path.display().to_string();
        let bytes = env
            .read_all(path, FILE_MAX_BYTES)
            .map_err(|error| SettingsError {
                place: place.clone(),
                problem: format!("cannot be read: {}", error.source),
            })?;
        self.add_text(&place, &String::from_utf8_lossy(&bytes))
    }

    /// Adds the settings in the text of a file.
    ///
    /// # Errors
    /// A setting cannot be used.
    pub fn add_text(&mut self, path: &str, text: &str) -> Result<(), SettingsError> {
        let entries = file::parse(text).map_err(|problem| SettingsError {
            place: path.to_owned(),
            problem,
        })?;
        let mut passed_over: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        for entry in entries {
            let place = || format!("{path}, line {}", entry.line);
            if let Some(foreign) = self.set_or_pass(&entry.name, &entry.value, place)? {
                passed_over.entry(foreign.reason).or_default().push(entry.name);
            }
        }
        for (reason, names) in passed_over {
            let names = names.join(", ");
            self.warnings
                .push(format!("{path}: passed over, since {reason}: {names}"));
        }
        Ok(())
    }

    /// Adds the settings of the environment.
    ///
    /// # Errors
    /// A variable with the prefix `ILION_`, or one of OpenTelemetry or the Cassandra image, has a value that cannot be used.
    pub fn add_environment<S: Into<OsString>>(
        &mut self,
        variables: impl IntoIterator<Item = (S, S)>,
    ) -> Result<(), SettingsError> {
        let (mut ours, mut foreign) = (Vec::new(), Vec::new());
        for (variable, value) in variables {
            let (variable, value): (OsString, OsString) = (variable.into(), value.into());
            let Some(variable) = variable.to_str() else {
                continue;
            };
            if ENVIRONMENT_RESERVED.contains(&variable) {
                continue;
            }
            let Some(name) = variable.strip_prefix(ENVIRONMENT_PREFIX) else {
                foreign.push((variable.to_owned(), value));
                continue;
            };
            let place = format!("environment variable {variable}");
            let value = text_of(&place, value)?;
            let name = name.to_ascii_lowercase();
            if is_known(&name) {
                self.set(&name, &value, || place.clone())?;
                ours.push(canonical(&name).to_owned());
            } else {
                // Only a warning: tests and scripts use the prefix for other purposes, too.
                self.warnings.push(format!("{place}: {}", unknown(&name)));
            }
        }
        self.add_foreign_variables(&ours, foreign)
    }

    /// Sets a setting from `NAME=VALUE`, as in the option `--set` of the command line.
    ///
    /// # Errors
    /// There is no `=`, the name is unknown, or the value cannot be used.
    pub fn set_assignment(&mut self, assignment: &str) -> Result<(), SettingsError> {
        let place = || format!("--set {assignment}");
        let (name, value) = assignment.split_once('=').ok_or_else(|| SettingsError {
            place: place(),
            problem: "expected NAME=VALUE".to_owned(),
        })?;
        self.set(name.trim(), value.trim(), place)
    }

    /// Sets one setting.
    ///
    /// # Errors
    /// The name is unknown or the value cannot be used.
    pub fn set(&mut self, name: &str, value: &str, place: impl Fn() -> String) -> Result<(), SettingsError> {
        if let Some(foreign) = self.set_or_pass(name, value, &place)? {
            let (place, reason) = (place(), foreign.reason);
            self.warnings
                .push(format!("{place}: {name} is passed over, since {reason}"));
        }
        Ok(())
    }

    /// Sets one setting. Returns the group of a setting that Ilion does not support and ignores; the caller then warns.
    fn set_or_pass(
        &mut self,
        name: &str,
        value: &str,
        place: impl Fn() -> String,
    ) -> Result<Option<&'static Foreign>, SettingsError> {
        let refuse = |problem: String| SettingsError {
            place: place(),
            problem,
        };
        if name == "sstable_selected_format" {
            select_format(&mut self.settings, value).map_err(refuse)?;
            return Ok(None);
        }
        let name = canonical(name);
        if let Some((setting, unit)) = table::find(name) {
            set_known(&mut self.settings, setting, value, unit).map_err(refuse)?;
            return Ok(None);
        }
        let foreign = foreign::find(name).ok_or_else(|| refuse(unknown(name)))?;
        match foreign.fate {
            Fate::PassedOver => Ok(Some(foreign)),
            Fate::RefusedUnless(values) if values.contains(&value) => Ok(None),
            Fate::RefusedUnless(_) => Err(refuse(format!("{name}: {value} is refused: {}", foreign.reason))),
        }
    }
}

fn text_of(place: &str, value: OsString) -> Result<String, SettingsError> {
    value.into_string().map_err(|_| SettingsError {
        place: place.to_owned(),
        problem: "the value is not UTF-8".to_owned(),
    })
}

/// Adopts `sstable: {selected_format: ..}` of Cassandra 5, which names a family of formats.
fn select_format(settings: &mut Settings, value: &str) -> Result<(), String> {
    let is_big = settings.sstable_format != SSTableFormat::Da;
    match value {
        "bti" => settings.sstable_format = SSTableFormat::Da,
        "big" if is_big => {}
        "big" => settings.sstable_format = SSTableFormat::Nb,
        other => {
            return Err(format!(
                "selected_format: expected one of big, bti, got {other:?}"
            ));
        }
    }
    Ok(())
}

/// Replaces an alias of a setting by the setting's name. Returns any other name unchanged.
fn canonical(name: &str) -> &str {
    match name {
        "native_transport_address" => "rpc_address",
        "data_file_directory" => "data_file_directories",
        other => other,
    }
}

fn set_known(settings: &mut Settings, setting: &Setting, value: &str, unit: &str) -> Result<(), String> {
    let name = setting.name;
    if name == "data_file_directories" && value.contains(file::LIST_SEPARATOR) {
        return Err(format!(
            "{name} lists several directories; Ilion keeps all data in one"
        ));
    }
    // Compat: names of classes may begin with their package.
    let packages = ["org.apache.cassandra.auth.", "org.apache.cassandra.audit."];
    let simple = packages.iter().find_map(|package| value.strip_prefix(package));
    let simple = simple.unwrap_or(value);
    // Compat: some settings accept a bare number under their current name, since they are older than units.
    let of_number = setting.legacy.iter().find(|(legacy, _)| *legacy == name);
    let unit = match of_number {
        Some((_, of_number)) if unit.is_empty() && simple.bytes().all(|byte| byte.is_ascii_digit()) => {
            of_number
        }
        _ => unit,
    };
    let text = match unit {
        "" => simple.to_owned(),
        unit => format!("{simple}{unit}"),
    };
    (setting.parse)(settings, &text).map_err(|expected| format!("{name}: expected {expected}, got {value:?}"))
}

fn is_known(name: &str) -> bool {
    let name = canonical(name);
    name == "sstable_selected_format" || table::find(name).is_some() || foreign::find(name).is_some()
}

fn unknown(name: &str) -> String {
    let known = SETTINGS.iter().map(|setting| setting.name);
    let nearest = known
        .map(|known| (distance(name, known), known))
        .min()
        .filter(|(distance, known)| *distance <= known.len() / 3);
    match nearest {
        Some((_, nearest)) => format!("unknown setting {name}; did you mean {nearest}?"),
        None => format!("unknown setting {name}; docs/settings.md lists all"),
    }
}

/// Edit distance of two words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replace = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
