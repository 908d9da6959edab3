//! All verbs of Cassandra 5.0's nodetool, and what each does in Ilion.

mod files;
mod node;
mod refused;
mod settings;
mod tables;
mod verb;

use std::sync::LazyLock;

pub use verb::{Act, Verb};

/// The text with the list of verbs, without those that are refused.
pub fn list() -> String {
    let done = VERBS.iter().filter(|verb| !matches!(verb.act, Act::Refused(_)));
    let lines: Vec<String> = done
        .map(|verb| format!("    {:<35} {}", verb.name, verb.does))
        .collect();
    format!(
        "usage: nodetool [-h <host>] [-p <port>] [-u <username>] [-pw <password> | -pwf <file>] <command> [<args>]\n\n\
         -h and -p are the node's admin_address and admin_port. The commands are:\n{}\n\n\
         See 'nodetool help <command>' for more information on a specific command.",
        lines.join("\n")
    )
}

/// All verbs, sorted by name.
pub static VERBS: LazyLock<Vec<Verb>> = LazyLock::new(|| {
    let themes = [
        files::FILES,
        node::NODE,
        refused::REFUSED,
        settings::SETTINGS,
        tables::TABLES,
    ];
    let mut all = themes.concat();
    all.sort_by_key(|verb| verb.name);
    all
});
