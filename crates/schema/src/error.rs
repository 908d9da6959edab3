//! Why a change of the schema was refused.

/// Why a change was refused. Each variant is one error code of the native protocol, except `Corrupt`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// 0x2400: the keyspace or table already exists.
    #[error("{}", already_exists(keyspace, table))]
    AlreadyExists {
        /// The keyspace.
        keyspace: String,
        /// The table; empty for a keyspace.
        table: String,
    },
    /// 0x2000: a property is unknown or has a value of the wrong kind. The author of the statement must change it.
    #[error("{0}")]
    Syntax(String),
    /// 0x2200: the schema's rules do not allow the change.
    #[error("{0}")]
    Invalid(String),
    /// 0x2300: an option's value is out of range or unknown.
    #[error("{0}")]
    Config(String),
    /// 0x2100: users may not change the keyspace.
    #[error("{0}")]
    Unauthorized(String),
    /// The rows of `system_schema` contradict each other or cannot be decoded. Restore them.
    #[error("system_schema.{table}, {row}: expected {expected}")]
    Corrupt {
        /// Table of `system_schema`.
        table: &'static str,
        /// Key of the row.
        row: String,
        /// The expected content.
        expected: String,
    },
}

fn already_exists(keyspace: &str, table: &str) -> String {
    if table.is_empty() {
        format!("Cannot add existing keyspace \"{keyspace}\"")
    } else {
        format!("Cannot add already existing table \"{table}\" to keyspace \"{keyspace}\"")
    }
}

/// An invalid request with this message.
pub(crate) fn invalid<T>(message: impl Into<String>) -> Result<T, Error> {
    Err(Error::Invalid(message.into()))
}

/// A configuration error with this message.
pub(crate) fn config<T>(message: impl Into<String>) -> Result<T, Error> {
    Err(Error::Config(message.into()))
}

/// A syntax error with this message.
pub(crate) fn syntax<T>(message: impl Into<String>) -> Result<T, Error> {
    Err(Error::Syntax(message.into()))
}
