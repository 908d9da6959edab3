//! Names of schema objects: which are allowed, and which keyspaces are whose.

use crate::Error;
use crate::error::config;

/// Longest name of a keyspace or table, since both are names of directories.
pub const NAME_LEN_MAX: usize = 48;

/// Keyspaces of the node itself, virtual ones included; no statement changes them.
pub const LOCAL_KEYSPACES: [&str; 4] = ["system", "system_schema", "system_views", "system_virtual_schema"];

/// Keyspaces of the server with user data inside; only their replication can be altered.
pub const REPLICATED_KEYSPACES: [&str; 3] = ["system_auth", "system_distributed", "system_traces"];

/// True for keyspaces that the server brings along.
pub fn is_system_keyspace(name: &str) -> bool {
    LOCAL_KEYSPACES.contains(&name) || REPLICATED_KEYSPACES.contains(&name)
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= NAME_LEN_MAX
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

pub(crate) fn check_keyspace_name(name: &str) -> Result<(), Error> {
    if is_name(name) {
        return Ok(());
    }
    config(format!(
        "Keyspace name must not be empty, more than {NAME_LEN_MAX} characters long, or contain \
         non-alphanumeric-underscore characters (got \"{name}\")"
    ))
}

pub(crate) fn check_table_name(keyspace: &str, name: &str) -> Result<(), Error> {
    if is_name(name) {
        return Ok(());
    }
    config(format!(
        "{keyspace}.{name}: Table name must not be empty, more than {NAME_LEN_MAX} characters long, or \
         contain non-alphanumeric-underscore characters (got \"{name}\")"
    ))
}

pub(crate) fn check_index_name(name: &str) -> Result<(), Error> {
    let is_word = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_word {
        Ok(())
    } else {
        config(format!("Illegal index name {name}"))
    }
}
