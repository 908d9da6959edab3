//! Names of schema objects: which are allowed, and which keyspaces are whose.

use crate::Error;
use crate::error::{config, invalid};

/// Longest name of a keyspace, as in Cassandra.
pub const KEYSPACE_NAME_LEN_MAX: usize = 48;

/// Longest name of a table: with its id it is the name of a directory, and those have 255 bytes.
pub const TABLE_NAME_LEN_MAX: usize = 222;

/// Keyspaces of the node itself, virtual ones included; no statement changes them.
pub const LOCAL_KEYSPACES: [&str; 4] = ["system", "system_schema", "system_views", "system_virtual_schema"];

/// Keyspaces of the server with user data inside; only their replication can be altered.
pub const REPLICATED_KEYSPACES: [&str; 3] = ["system_auth", "system_distributed", "system_traces"];

/// True for keyspaces that the server brings along.
pub fn is_system_keyspace(name: &str) -> bool {
    LOCAL_KEYSPACES.contains(&name) || REPLICATED_KEYSPACES.contains(&name)
}

fn is_word(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

pub(crate) fn check_keyspace_name(name: &str) -> Result<(), Error> {
    if !is_word(name) {
        return invalid(format!(
            "Keyspace name must not be empty and must contain alphanumeric or underscore characters only \
             (got \"{name}\")"
        ));
    }
    if name.len() > KEYSPACE_NAME_LEN_MAX {
        return invalid(format!(
            "Keyspace name must not be more than {KEYSPACE_NAME_LEN_MAX} characters long (got {} characters \
             for \"{name}\")",
            name.len()
        ));
    }
    Ok(())
}

pub(crate) fn check_table_name(keyspace: &str, name: &str) -> Result<(), Error> {
    if !is_word(name) {
        return config(format!(
            "{keyspace}.{name}: Table name must not be empty or not contain non-alphanumeric-underscore \
             characters (got \"{name}\")"
        ));
    }
    if name.len() > TABLE_NAME_LEN_MAX {
        return config(format!(
            "{keyspace}.{name}: Table name must not be more than {TABLE_NAME_LEN_MAX} characters long \
             (got {} characters for \"{name}\")",
            name.len()
        ));
    }
    Ok(())
}

pub(crate) fn check_index_name(name: &str) -> Result<(), Error> {
    match is_word(name) {
        true => Ok(()),
        false => config(format!("Illegal index name {name}")),
    }
}
