//! Rules for the names of schema objects, and the names of the server's keyspaces.

use crate::error::{config, invalid};
use crate::{Error, IndexKind, IndexSchema};

/// Longest name of a keyspace, as in Cassandra.
pub(crate) const KEYSPACE_NAME_LEN_MAX: usize = 48;

/// Longest name of a table in bytes: with its id it forms a directory name of at most 255 bytes.
pub(crate) const TABLE_NAME_LEN_MAX: usize = 222;

/// Longest name of an index: a dot and this name form the directory name of its hidden table.
pub(crate) const INDEX_NAME_LEN_MAX: usize = 254;

/// Longest name of a custom index in bytes: it is a part of file names, with the names of the SSTable and the component, such as
/// `verify-nb-4294967295-big-Index+NAME+Vectors-4294967295.db`.
pub(crate) const CUSTOM_INDEX_NAME_LEN_MAX: usize = 200;

/// Keyspaces of the node itself, including virtual ones; no statement changes them.
pub const LOCAL_KEYSPACES: [&str; 4] = ["system", "system_schema", "system_views", "system_virtual_schema"];

/// The keyspace of roles and permissions. Every node of a cluster has all of its rows.
pub const AUTH_KEYSPACE: &str = "system_auth";

/// The server's keyspaces with user data; only their replication can be altered.
pub(crate) const REPLICATED_KEYSPACES: [&str; 3] = [AUTH_KEYSPACE, "system_distributed", "system_traces"];

/// True for the server's own keyspaces.
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

/// Checks the name of an index, which must fit into the names of its files.
pub(crate) fn check_index_name(index: &IndexSchema) -> Result<(), Error> {
    let name = &index.name;
    if !is_word(name) {
        return config(format!("Illegal index name {name}"));
    }
    let len_max = match index.kind {
        IndexKind::Custom => CUSTOM_INDEX_NAME_LEN_MAX,
        IndexKind::Keys | IndexKind::Composites => INDEX_NAME_LEN_MAX,
    };
    if name.len() > len_max {
        return config(format!(
            "Index name must not be more than {len_max} characters long (got {} characters for \"{name}\")",
            name.len()
        ));
    }
    Ok(())
}
