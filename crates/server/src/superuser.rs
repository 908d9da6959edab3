//! The choice of a first superuser, and its password. `first_superuser` creates it.
//!
//! A node without roles gets one: `cassandra`, or the name in `ILION_SUPERUSER`. Its password comes from
//! `ILION_SUPERUSER_PASSWORD` or from the file in `ILION_SUPERUSER_PASSWORD_FILE`. Without these the password is random and is
//! written to a file that only the node's user can read; the log names the file and not the password. Unlike in Cassandra, there is no
//! default password.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ilion_auth::password;
use ilion_env::Env;
use ilion_query::SetupError;
use ilion_settings::{SUPERUSER, SUPERUSER_PASSWORD, SUPERUSER_PASSWORD_FILE};

/// Largest file with a password, in bytes.
const FILE_BYTES_MAX: u64 = 4096;

/// Name and password of the first superuser, from the environment.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SuperuserChoice {
    pub(crate) role: Option<String>,
    /// `None` requests a random password.
    pub(crate) password: Option<String>,
}

impl std::fmt::Debug for SuperuserChoice {
    /// Leaves out the password, since it does not belong into logs.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "SuperuserChoice({:?})", self.role)
    }
}

/// Why the first superuser could not be created; the operator must act.
#[derive(Debug, thiserror::Error)]
pub enum SuperuserError {
    /// A variable or file has no usable value.
    #[error("{place}: {problem}")]
    Unusable {
        /// The variable or the file.
        place: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    Env(#[from] ilion_env::Error),
    /// The role cannot be stored.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The commit log has failed.
    #[error("the first superuser cannot be stored: {0}")]
    Log(String),
}

impl SuperuserChoice {
    /// Reads the choice from these environment variables.
    ///
    /// # Errors
    /// A value is empty or no UTF-8, both passwords are given, or the file cannot be read.
    pub fn of(
        env: &dyn Env,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, SuperuserError> {
        let (mut role, mut given, mut file) = (None, None, None);
        for (name, value) in variables {
            match name.to_str() {
                Some(SUPERUSER) => role = Some(text(SUPERUSER, value.into_string().ok())?),
                Some(SUPERUSER_PASSWORD) => given = Some(text(SUPERUSER_PASSWORD, value.into_string().ok())?),
                Some(SUPERUSER_PASSWORD_FILE) => file = Some(PathBuf::from(value)),
                _ => {}
            }
        }
        let password = match (given, file) {
            (Some(_), Some(_)) => {
                return Err(unusable(
                    SUPERUSER_PASSWORD,
                    "give this or ILION_SUPERUSER_PASSWORD_FILE, not both",
                ));
            }
            (Some(given), None) => Some(given),
            (None, Some(path)) => Some(read_password(env, &path)?),
            (None, None) => None,
        };
        Ok(Self { role, password })
    }
}

/// Reads a password: the content of a file, without the line break at its end.
///
/// # Errors
/// The file cannot be read, is empty, or is no UTF-8.
pub fn read_password(env: &dyn Env, path: &Path) -> Result<String, SuperuserError> {
    let bytes = env.read_all(path, FILE_BYTES_MAX)?;
    password_of(&path.display().to_string(), bytes)
}

/// The password in the bytes of a file or of stdin, without the line break at its end.
///
/// # Errors
/// The password is empty, or is no UTF-8.
pub fn password_of(place: &str, bytes: Vec<u8>) -> Result<String, SuperuserError> {
    let password = String::from_utf8(bytes).ok();
    let password = password.map(|text| match text.strip_suffix('\n') {
        Some(line) => line.strip_suffix('\r').unwrap_or(line).to_owned(),
        None => text,
    });
    text(place, password)
}

/// A random password.
pub fn random_password(env: &dyn Env) -> String {
    let mut random = [0; 24];
    env.random_bytes(&mut random);
    password::of_random_bytes(random)
}

fn text(place: &str, value: Option<String>) -> Result<String, SuperuserError> {
    match value {
        None => Err(unusable(place, "the value is not UTF-8")),
        Some(value) if value.is_empty() => Err(unusable(place, "the value is empty")),
        Some(value) if value.contains('\0') => Err(unusable(place, "the value has a NUL character")),
        Some(value) => Ok(value),
    }
}

fn unusable(place: &str, problem: &'static str) -> SuperuserError {
    SuperuserError::Unusable {
        place: place.to_owned(),
        problem,
    }
}
