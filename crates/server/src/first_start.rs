//! The statements of a node's first start: the `.cql` files in `init_directory`, in the order of their names.
//!
//! A start that finds no data writes a note (`ilion.init` in the data directory) before anything else. While the note exists, a start
//! executes the files that the note does not list yet, adds each executed file to it, and removes the note after the last file. So after
//! a crash, or a statement that fails, the next start executes the rest; an interrupted file runs again from its beginning. Data that
//! existed before `init_directory` was set has no note, and no file is executed.

use std::path::{Path, PathBuf};

use ilion_cql::split_statements;
use ilion_env::Env;
use ilion_node::SchemaListener as _;
use ilion_query::{ClientState, ExecuteOptions, Outcome};
use ilion_settings::Settings;

use crate::ServerNode;

/// Name of the note in the data directory.
const NOTE: &str = "ilion.init";
/// Largest note, in bytes.
const NOTE_BYTES_MAX: u64 = 1 << 20;
/// Largest file with statements, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;
const EXTENSION: &str = ".cql";

/// Why the statements of the first start could not be executed; the operator must act.
#[derive(Debug, thiserror::Error)]
pub enum FirstStartError {
    /// A file or directory cannot be read, or the note cannot be written.
    #[error("init_directory: {0}")]
    Env(#[from] ilion_env::Error),
    /// A statement failed.
    #[error(
        "{path}, line {line}: {problem}; the next start executes this file again, so write its statements with IF NOT EXISTS"
    )]
    Statement {
        /// The file.
        path: String,
        /// The line where the statement begins.
        line: usize,
        /// Why it failed.
        problem: String,
    },
}

/// A start that has to execute files.
#[derive(Debug)]
pub struct FirstStart {
    directory: PathBuf,
    note: PathBuf,
    /// Names of files that earlier starts have executed.
    done: Vec<String>,
}

impl FirstStart {
    /// Decides whether this start has to execute files; if there is no data yet, writes the note. Requires: the node is not open yet.
    ///
    /// # Errors
    /// The note cannot be read or written.
    pub fn find(env: &dyn Env, settings: &Settings) -> Result<Option<Self>, FirstStartError> {
        let Some(directory) = settings.init_directory.clone() else {
            return Ok(None);
        };
        let data = settings.data_path();
        let note = data.join(NOTE);
        let is_new = !env.exists(&data) || env.list(&data)?.is_empty();
        if is_new {
            env.create_dir_all(&data)?;
            env.write_private(&note, b"")?;
        } else if !env.exists(&note) {
            return Ok(None);
        }
        let text = env.read_all(&note, NOTE_BYTES_MAX)?;
        let done = String::from_utf8_lossy(&text)
            .lines()
            .map(str::to_owned)
            .collect();
        Ok(Some(Self {
            directory,
            note,
            done,
        }))
    }

    /// Executes the files.
    ///
    /// # Errors
    /// A file cannot be read, or a statement failed: the effects of earlier statements stay.
    pub fn run(mut self, node: &ServerNode) -> Result<(), FirstStartError> {
        let env = node.engine().env().clone();
        for entry in env.list(&self.directory)? {
            let name = entry.name;
            // Kubernetes mounts a config map with hidden links to directories.
            if name.starts_with('.') {
                continue;
            }
            if !name.ends_with(EXTENSION) {
                tracing::warn!(file = name, "the first start executes {EXTENSION} files only");
                continue;
            }
            if self.done.contains(&name) {
                continue;
            }
            let path = self.directory.join(&name);
            let statements = execute_file(node, &path)?;
            tracing::info!(file = %path.display(), statements, "executed for the first start");
            self.done.push(name);
            env.write_private(&self.note, (self.done.join("\n") + "\n").as_bytes())?;
        }
        env.remove_file(&self.note)?;
        if let Some(data) = self.note.parent() {
            env.sync_dir(data)?;
        }
        Ok(())
    }
}

/// Executes the statements of a file as the node itself; returns their number.
fn execute_file(node: &ServerNode, path: &Path) -> Result<usize, FirstStartError> {
    let bytes = node.engine().env().read_all(path, FILE_BYTES_MAX)?;
    let failed = |line: usize, problem: String| FirstStartError::Statement {
        path: path.display().to_string(),
        line,
        problem,
    };
    let text = String::from_utf8(bytes).map_err(|error| {
        let line = line_at(error.as_bytes(), error.utf8_error().valid_up_to());
        failed(line, "the text is not UTF-8".to_owned())
    })?;
    let mut client = ClientState::default();
    let statements = split_statements(&text);
    for statement in &statements {
        // Does not underflow: the statement is a slice of the text.
        let offset = statement.as_ptr().addr() - text.as_ptr().addr();
        execute(node, &mut client, statement)
            .map_err(|problem| failed(line_at(text.as_bytes(), offset), problem))?;
    }
    Ok(statements.len())
}

fn execute(node: &ServerNode, client: &mut ClientState, statement: &str) -> Result<(), String> {
    let options = ExecuteOptions::default();
    let executed = node.processor().query(client, statement, &options);
    let executed = executed.map_err(|error| error.to_string())?;
    node.wait_durable(&executed).map_err(|error| error.to_string())?;
    match executed.outcome {
        Outcome::SchemaChange(changes) if !changes.is_empty() => node.local().schema_changed(),
        Outcome::SetKeyspace(keyspace) => client.keyspace = Some(keyspace),
        _ => {}
    }
    Ok(())
}

/// The number of the line in which an offset lies, from 1.
fn line_at(text: &[u8], offset: usize) -> usize {
    1 + text.iter().take(offset).filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ilion_env::MemEnv;

    use super::*;

    fn start(env: &Arc<dyn Env>) -> Result<ServerNode, FirstStartError> {
        let settings = Settings {
            directory: "/node".into(),
            init_directory: Some("/init.d".into()),
            ..Settings::default()
        };
        let first = FirstStart::find(&**env, &settings)?;
        let node = ServerNode::open(env.clone(), &settings).unwrap();
        if let Some(first) = first {
            first.run(&node)?;
        }
        Ok(node)
    }

    fn count(node: &ServerNode, table: &str) -> u32 {
        let text = format!("SELECT * FROM {table}");
        let options = ExecuteOptions::default();
        let found = node
            .processor()
            .query(&mut ClientState::default(), &text, &options);
        match found.unwrap().outcome {
            Outcome::Rows(rows) => rows.row_count,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn files_run_once_in_their_order_and_go_on_after_a_failure() {
        let env = MemEnv::new(1).shared();
        let write = |name: &str, text: &str| {
            let path = Path::new("/init.d").join(name);
            env.write_private(&path, text.as_bytes()).unwrap();
        };
        env.create_dir_all(Path::new("/init.d")).unwrap();
        write(
            "1-schema.cql",
            "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};\n\
             USE k; CREATE TABLE t (a int PRIMARY KEY);",
        );
        write(
            "2-rows.cql",
            "-- a comment;\nINSERT INTO k.t (a) VALUES (1);\nINSERT INTO k.u (a) VALUES (2);",
        );
        write("3-more.cql", "INSERT INTO k.t (a) VALUES (3)");
        write("notes.txt", "DROP KEYSPACE k");
        let failed = start(&env).err().unwrap().to_string();
        assert!(failed.starts_with("/init.d/2-rows.cql, line 3: "), "{failed}");

        // The first file would fail if it were executed again.
        write("2-rows.cql", "INSERT INTO k.t (a) VALUES (2)");
        assert_eq!(count(&start(&env).unwrap(), "k.t"), 3);
        write("3-more.cql", "INSERT INTO k.t (a) VALUES (4)");
        assert_eq!(count(&start(&env).unwrap(), "k.t"), 3);
    }

    #[test]
    fn data_that_was_there_before_gets_no_statements() {
        let env = MemEnv::new(1).shared();
        env.create_dir_all(Path::new("/init.d")).unwrap();
        let settings = Settings {
            directory: "/node".into(),
            ..Settings::default()
        };
        drop(ServerNode::open(env.clone(), &settings).unwrap());
        env.write_private(Path::new("/init.d/1.cql"), b"no CQL").unwrap();
        start(&env).unwrap();
    }
}
