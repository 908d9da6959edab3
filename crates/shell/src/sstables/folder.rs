//! Finds the directories of a folder that hold SSTables, and the table of each.
//!
//! A directory is named after its table, as in a data directory: `KEYSPACE/TABLE-ID` or `KEYSPACE/TABLE`. If the folder itself, or a
//! directory in it, holds SSTables, its keyspace need not be known; if only one directory does, and the schema has one table, they belong
//! together whatever the directory's name is: a snapshot, for example.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_env::Env;
use ilion_sstable::{Component, Descriptor};
use uuid::Uuid;

/// `DIR/data/KEYSPACE/TABLE`.
const DEPTH_MAX: u32 = 3;

/// A table of the schema.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: Uuid,
}

/// A directory that holds SSTables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// The directory.
    pub path: PathBuf,
    /// Levels below the folder.
    pub depth: u32,
}

/// The directories of tables.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Assigned {
    /// The directory of each table, by the table's index; tables without SSTables have none.
    pub of_tables: BTreeMap<usize, PathBuf>,
    /// Directories of other tables.
    pub others: Vec<PathBuf>,
}

/// Finds the directories below a folder, but not those of snapshots, backups and indexes.
pub(super) fn find_directories(env: &dyn Env, folder: &Path) -> ilion_env::Result<Vec<Found>> {
    let mut found = Vec::new();
    let mut waiting = vec![(folder.to_path_buf(), 0)];
    while let Some((path, depth)) = waiting.pop() {
        let entries = env.list(&path)?;
        let directory: Arc<Path> = path.as_path().into();
        let holds_sstables = entries.iter().any(|entry| {
            !entry.is_dir
                && matches!(
                    Descriptor::parse(&directory, &entry.name),
                    Some((_, Component::Data))
                )
        });
        if holds_sstables {
            found.push(Found { path, depth });
            continue;
        }
        if depth == DEPTH_MAX {
            continue;
        }
        for entry in entries.iter().rev() {
            let is_hidden =
                entry.name.starts_with('.') || ["snapshots", "backups"].contains(&entry.name.as_str());
            if entry.is_dir && !is_hidden {
                waiting.push((path.join(&entry.name), depth + 1));
            }
        }
    }
    Ok(found)
}

/// Finds the table of each directory. Pure.
///
/// # Errors
/// Several directories hold SSTables of one table.
pub(super) fn assign(found: &[Found], tables: &[Wanted]) -> Result<Assigned, String> {
    let mut assigned = Assigned::default();
    for one in found {
        let table = match (tables, found) {
            ([_], [_]) => Some(0),
            _ => table_of(one, tables),
        };
        let Some(table) = table else {
            assigned.others.push(one.path.clone());
            continue;
        };
        let Some(earlier) = assigned.of_tables.insert(table, one.path.clone()) else {
            continue;
        };
        // A table that was dropped and created again has two directories; the id tells which one is meant.
        let id = tables[table].id.simple().to_string();
        let is_meant = |path: &Path| name_of(path).ends_with(&format!("-{id}"));
        match (is_meant(&earlier), is_meant(&one.path)) {
            (true, false) => {
                assigned.of_tables.insert(table, earlier);
                assigned.others.push(one.path.clone());
            }
            (false, true) => assigned.others.push(earlier),
            _ => {
                return Err(format!(
                    "{} and {} both hold SSTables of {}.{}: name one of them as the folder, or give the table its id (WITH id = ..)",
                    earlier.display(),
                    one.path.display(),
                    tables[table].keyspace,
                    tables[table].name
                ));
            }
        }
    }
    Ok(assigned)
}

/// The table that a directory is named after.
fn table_of(found: &Found, tables: &[Wanted]) -> Option<usize> {
    let name = table_name(name_of(&found.path));
    let keyspace = found.path.parent().map(name_of).unwrap_or_default();
    let of_name: Vec<usize> = (0..tables.len())
        .filter(|index| tables[*index].name == name)
        .collect();
    let same = of_name
        .iter()
        .find(|index| tables[**index].keyspace == keyspace)
        .copied();
    // Directories further down are those of a data directory, and have a keyspace.
    let alone = (of_name.len() == 1 && found.depth < 2).then(|| of_name[0]);
    same.or(alone)
}

fn name_of(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
}

/// The name without the id of the table.
fn table_name(directory: &str) -> &str {
    match directory.rsplit_once('-') {
        Some((name, id)) if id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
        _ => directory,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

    use ilion_env::MemEnv;

    use super::*;

    const OLD: &str = "00000000000000000000000000000001";
    const NEW: &str = "00000000000000000000000000000002";

    /// Finds the directories `/f/..`, each with one SSTable.
    fn found(directories: &[impl AsRef<str>]) -> Vec<Found> {
        let env = MemEnv::new(1);
        for directory in directories {
            let directory = Path::new("/f").join(directory.as_ref());
            env.create_dir_all(&directory).unwrap();
            env.create(&directory.join("nb-1-big-Data.db")).unwrap();
        }
        find_directories(&env, Path::new("/f")).unwrap()
    }

    fn table(keyspace: &str, name: &str) -> Wanted {
        Wanted {
            keyspace: keyspace.to_owned(),
            name: name.to_owned(),
            id: Uuid::parse_str(NEW).unwrap(),
        }
    }

    /// The directories of the tables, and those of others.
    fn assigned(directories: &[impl AsRef<str>], tables: &[Wanted]) -> (Vec<String>, Vec<String>) {
        let assigned = assign(&found(directories), tables).unwrap();
        let print = |path: &PathBuf| path.strip_prefix("/f").unwrap().display().to_string();
        let of_tables =
            (0..tables.len()).map(|index| assigned.of_tables.get(&index).map_or("-".into(), print));
        (of_tables.collect(), assigned.others.iter().map(print).collect())
    }

    #[test]
    fn tables_of_a_data_directory_are_found_by_keyspace_and_name() {
        let directories = [
            format!("data/music/orders-{OLD}"),
            format!("data/shop/orders-{OLD}"),
            format!("data/shop/orders-{OLD}/snapshots/s"),
            format!("data/system/local-{OLD}"),
        ];
        let tables = [table("shop", "orders"), table("shop", "customers")];
        let (of_tables, others) = assigned(&directories, &tables);
        assert_eq!(of_tables, [&directories[1], "-"]);
        assert_eq!(others, [&directories[0], &directories[3]].map(String::clone));
    }

    #[test]
    fn one_directory_of_any_name_belongs_to_the_only_table() {
        assert_eq!(assigned(&[""], &[table("shop", "orders")]).0, [""]);
        assert_eq!(assigned(&["tag"], &[table("shop", "orders")]).0, ["tag"]);
        let two = [table("shop", "orders"), table("shop", "customers")];
        assert_eq!(assigned(&["customers", "x"], &two).0, ["-", "customers"]);
    }

    #[test]
    fn of_two_directories_of_a_table_the_one_with_its_id_is_meant() {
        let (old, new) = (format!("shop/orders-{OLD}"), format!("shop/orders-{NEW}"));
        let (of_tables, others) = assigned(&[&old, &new], &[table("shop", "orders")]);
        assert_eq!((of_tables, others), (vec![new], vec![old.clone()]));
        let error = assign(&found(&[old.as_str(), "shop/orders"]), &[table("shop", "orders")]).unwrap_err();
        assert!(error.contains("both hold SSTables of shop.orders"), "{error}");
    }
}
