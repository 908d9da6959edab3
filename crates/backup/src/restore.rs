//! Restores a node or a table.
//!
//! Everything happens in a directory beside the target, `<target>.restoring`:
//!
//! 1. The files of the backup are downloaded; each chunk is checked. A restore that was stopped resumes here.
//! 2. The commit log is put beside them: the stretch of the backup, and for a later moment the segments behind it. It is checked for
//!    gaps, and cut before the first record that was logged after the moment.
//! 3. An engine opens the directory and replays the log. It is closed when all data is in SSTables.
//! 4. A node gets a new id and an empty log, since it is a copy and does not continue the log of the original. Then the directory gets its
//!    name. A table is exported from the engine instead, and the directory is removed.
//!
//! So a directory with the name of the target is a complete node. `serve` does not open a directory whose name ends with `.restoring`
//! unless somebody renames it.

mod choose;
mod stage;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_engine::{Engine, begin_new_log};
use ilion_env::Env;
use ilion_schema::TableId;
use ilion_schema::describe::{Internals, describe_index, describe_table, describe_type, sorted_types};
use uuid::Uuid;

use crate::{Error, Pace, Place, Progress, Result};

use choose::{Chosen, choose};
use stage::Stage;

pub use choose::Until;

/// Options of a restore.
pub struct RestoreOptions<'a> {
    /// The moment.
    pub until: Until,
    /// The node, if the destination has backups of several.
    pub node: Option<Uuid>,
    /// Threads that download.
    pub threads: usize,
    /// Limit of bytes per second.
    pub pace: Pace,
    /// Receives the progress.
    pub progress: &'a dyn Progress,
}

/// A table to restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableChoice {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name; `None` is all tables of the keyspace.
    pub table: Option<String>,
    /// The new keyspace and name; `None` keeps both.
    pub renamed: Option<(String, String)>,
}

/// What was restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The backup.
    pub backup: String,
    /// The node that was backed up.
    pub node: Uuid,
    /// Bytes of its files.
    pub bytes: u64,
    /// Segments of the log behind the backup.
    pub segments: u64,
    /// The newest time of all records of the log that were replayed, microseconds since 1970.
    pub newest_micros: Option<i64>,
    /// The tables, for [`restore_table`].
    pub tables: Vec<RestoredTable>,
}

/// A restored table, ready for import into a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredTable {
    /// The keyspace to import it into.
    pub keyspace: String,
    /// The name to import it under.
    pub name: String,
    /// A directory with its SSTables; empty if it has no rows.
    pub directory: PathBuf,
    /// Statements that create keyspace, types and table, if they do not exist.
    pub statements: Vec<String>,
    /// Statements that create its indexes, to be executed after the rows are imported.
    pub indexes: Vec<String>,
    /// Its views, which are not restored.
    pub views: Vec<String>,
}

/// Restores a node into a directory that does not exist, or is empty.
///
/// # Errors
/// See [`Error`]. Then the directory does not exist; downloaded files stay beside it for the next try.
pub fn restore_node(
    env: &Arc<dyn Env>,
    place: &dyn Place,
    options: &RestoreOptions<'_>,
    target: &Path,
) -> Result<Restored> {
    let exists = env.exists(target);
    if exists && !env.list(target)?.is_empty() {
        return Err(Error::Refused(format!(
            "{} is not empty; restore into a new directory",
            target.display()
        )));
    }
    let chosen = choose(place, options)?;
    let stage = Stage::open(env, &beside(target), &chosen, &[])?;
    let restored = fill(env, place, options, &chosen, &stage)?;
    let engine = stage.open_engine()?;
    drain(engine)?;
    begin_new_log(&**env, &stage.engine_options()?, chosen.until_micros())?;
    if exists {
        env.remove_dir(target)?;
    }
    stage.become_node(target)?;
    Ok(restored)
}

/// Restores tables into directories below `scratch`, from which a node can import them. Calls `use_them` with the tables, and then removes
/// the directories, even if `use_them` fails.
///
/// # Errors
/// See [`Error`]. Fails also if `use_them` fails.
pub fn restore_table(
    env: &Arc<dyn Env>,
    place: &dyn Place,
    options: &RestoreOptions<'_>,
    choice: &TableChoice,
    scratch: &Path,
    use_them: &mut dyn FnMut(&[RestoredTable]) -> Result<()>,
) -> Result<Restored> {
    if ilion_schema::is_system_keyspace(&choice.keyspace) {
        return Err(Error::Refused(format!(
            "{} belongs to the node itself; restore the whole node",
            choice.keyspace
        )));
    }
    let chosen = choose(place, options)?;
    let stage = Stage::open(env, scratch, &chosen, &[&choice.keyspace])?;
    let mut restored = fill(env, place, options, &chosen, &stage)?;
    let engine = stage.open_engine()?;
    restored.tables = export(&engine, choice, &stage)?;
    drop(engine);
    let used = use_them(&restored.tables);
    // After the engine has opened the directory, another try cannot use it.
    stage.remove()?;
    used.map(|()| restored)
}

/// Downloads tables and log.
fn fill(
    env: &Arc<dyn Env>,
    place: &dyn Place,
    options: &RestoreOptions<'_>,
    chosen: &Chosen,
    stage: &Stage<'_>,
) -> Result<Restored> {
    let bytes = stage.download(place, options, chosen)?;
    stage.continue_log(chosen)?;
    let cut = stage.cut(&**env, chosen)?;
    Ok(Restored {
        backup: chosen.base.name.clone(),
        node: chosen.base.node,
        bytes,
        segments: chosen.later.len() as u64,
        newest_micros: cut.newest_micros,
        tables: Vec::new(),
    })
}

fn drain(engine: Engine) -> Result<()> {
    engine.drain()?;
    if let Some(failure) = engine.failure().or_else(|| engine.stalled()) {
        return Err(Error::Refused(format!(
            "the restored data cannot be written: {failure}"
        )));
    }
    drop(engine);
    Ok(())
}

fn export(engine: &Engine, choice: &TableChoice, stage: &Stage<'_>) -> Result<Vec<RestoredTable>> {
    let schema = engine.schema();
    let Some(keyspace) = schema.keyspace(&choice.keyspace) else {
        return Err(Error::Refused(format!(
            "there was no keyspace {} at that moment",
            choice.keyspace
        )));
    };
    let is_view = |name: &str| keyspace.views.contains_key(name);
    let is_chosen = |name: &String| match &choice.table {
        Some(table) => table == name,
        None => !is_view(name),
    };
    let mut restored = Vec::new();
    for table in keyspace.tables.values().filter(|table| is_chosen(&table.name)) {
        if is_view(&table.name) {
            return Err(Error::Refused(format!(
                "{}.{} is a materialized view; restore its table and create it again",
                table.keyspace, table.name
            )));
        }
        let directory = stage.export_directory(&table.name);
        engine.export(table.id, &directory)?;
        let (to_keyspace, to_name) = match &choice.renamed {
            Some((keyspace, name)) => (keyspace.clone(), name.clone()),
            None => (table.keyspace.clone(), table.name.clone()),
        };
        let types = sorted_types(keyspace);
        if to_keyspace != table.keyspace && !types.is_empty() {
            return Err(Error::Refused(format!(
                "the keyspace {} has types of its own, which a table of another keyspace cannot use: choose a name in {}",
                table.keyspace, table.keyspace
            )));
        }
        let mut named = (**table).clone();
        named.keyspace.clone_from(&to_keyspace);
        named.name.clone_from(&to_name);
        let mut of_keyspace = (**keyspace).clone();
        of_keyspace.name.clone_from(&to_keyspace);
        let statement = ilion_schema::describe::describe_keyspace(&of_keyspace);
        let mut statements = vec![if_not_exists(&statement, "KEYSPACE")];
        statements.extend(types.iter().map(|ty| if_not_exists(&describe_type(ty), "TYPE")));
        // With a new id, but with the dropped columns: SSTables may have cells of them.
        named.id = TableId(engine.env().random_uuid());
        statements.extend(each_statement(
            &describe_table(&named, Internals::Shown),
            named.dropped.len(),
        ));
        let indexes = keyspace.indexes_of(&table.name).map(|index| {
            let mut index = (**index).clone();
            if choice.renamed.is_some() {
                index.name = format!("{}_{to_name}", index.name);
            }
            index.table.clone_from(&to_name);
            describe_index(&to_keyspace, &index)
        });
        restored.push(RestoredTable {
            keyspace: to_keyspace.clone(),
            name: to_name.clone(),
            directory,
            statements,
            indexes: indexes.collect(),
            views: keyspace
                .views_of(&table.name)
                .map(|view| view.name.clone())
                .collect(),
        });
    }
    match restored.is_empty() {
        false => Ok(restored),
        true => Err(Error::Refused(match &choice.table {
            Some(table) => format!("there was no table {}.{table} at that moment", choice.keyspace),
            None => format!("the keyspace {} had no table at that moment", choice.keyspace),
        })),
    }
}

/// Splits a text into CREATE TABLE and the ALTER TABLE statements of dropped columns, one or two for each.
fn each_statement(text: &str, dropped: usize) -> Vec<String> {
    const ALTER: &str = "\nALTER TABLE ";
    // From the end, since the table's comment may contain such a line.
    let mut rest = text;
    let mut statements = Vec::new();
    while statements.len() < 2 * dropped
        && let Some((before, alteration)) = rest.rsplit_once(ALTER)
        && before.ends_with(';')
    {
        statements.push(format!("{}{alteration}", ALTER.trim_start()));
        rest = before;
    }
    statements.push(rest.to_owned());
    statements.reverse();
    statements
}

fn if_not_exists(statement: &str, kind: &str) -> String {
    let create = format!("CREATE {kind} ");
    statement.replacen(&create, &format!("{create}IF NOT EXISTS "), 1)
}

/// The working directory of a restore into `target`.
fn beside(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".restoring");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::each_statement;

    #[test]
    fn alterations_of_dropped_columns_are_statements_of_their_own() {
        let create = "CREATE TABLE a (x int) WITH comment = 'y;\nALTER TABLE b';";
        assert_eq!(each_statement(create, 0), [create]);
        let text = format!("{create}\nALTER TABLE a DROP c;\nALTER TABLE a ADD c int;");
        let expected = [create, "ALTER TABLE a DROP c;", "ALTER TABLE a ADD c int;"];
        assert_eq!(each_statement(&text, 1), expected);
    }
}
