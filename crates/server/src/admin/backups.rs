//! Requests of `ilion backup` to a running node. The tool copies the files itself: it runs on the node's machine and reads the links
//! that the node makes. So the node needs no credentials of an object store, and is not affected if the tool is killed.
//!
//! | request | answer |
//! | --- | --- |
//! | `POST /admin/backups/place` | JSON: `data_directory`, an absolute path |
//! | `POST /admin/backups/begin` | a moment of the node, as links; JSON: [`MomentReport`] |
//! | `POST /admin/backups/end` | the links are removed |
//! | `POST /admin/backups/archive-log` | all of the log up to now is in the archive; JSON: [`ArchiveReport`] |
//! | `POST /admin/backups/restore-table` | `?plan=FILE`: a table is created and gets its rows: [`TablePlan`] |

use std::path::{Path, PathBuf};

use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use ilion_engine::{ArchivedLog, BackupPoint, Engine, ImportSource};
use ilion_schema::TableId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::handling::{Shared, failed, in_thread};
use super::load_rows::write_directory;
use super::{Admin, AdminError, Caller};
use crate::ServerNode;
use crate::dashboard::{QueryOrder, run};

const PLAN_BYTES_MAX: u64 = 16 << 20;

/// A request of `ilion backup`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackupsOrder {
    /// Returns where the data is.
    Place,
    /// Takes a moment of the node.
    Begin,
    /// Removes the links of the moment.
    End,
    /// Archives the log up to now.
    ArchiveLog,
    /// Restores the table of a [`TablePlan`] in this file.
    RestoreTable(PathBuf),
}

/// A moment of the node, as files that do not change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MomentReport {
    /// Id of the node and of its log.
    pub node: String,
    /// Class of the partitioner.
    pub partitioner: String,
    /// First segment of the commit log that the backup needs.
    pub log_from: u64,
    /// The segment after the last one that the backup needs.
    pub log_to: u64,
    /// When the moment was taken, in microseconds since 1970.
    pub at_micros: i64,
    /// Everything acknowledged before this time (microseconds since 1970) is in the backup.
    pub covered_micros: i64,
    /// Directory with links of these segments.
    pub log_directory: PathBuf,
    /// What a replay of these segments leaves out, as in `ilion.purged`.
    #[serde(default)]
    pub purged: String,
    /// Directory of archived segments; `None` if the log is not archived.
    pub archive_directory: Option<PathBuf>,
    /// Name of each keyspace, and the statement that creates it.
    pub keyspaces: Vec<(String, String)>,
    /// The tables.
    pub tables: Vec<MomentTableReport>,
}

/// A table of a [`MomentReport`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MomentTableReport {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: String,
    /// Directory of its SSTables.
    pub directory: PathBuf,
}

impl From<BackupPoint> for MomentReport {
    fn from(point: BackupPoint) -> Self {
        let keyspaces = point.keyspaces.into_iter();
        let tables = point.tables.into_iter();
        Self {
            node: point.id.to_string(),
            partitioner: point.partitioner.to_owned(),
            log_from: point.log_from.0,
            log_to: point.log_to.segment.0,
            at_micros: point.at_micros,
            covered_micros: point.covered_micros,
            log_directory: absolute(&point.log_directory),
            purged: point.purged,
            archive_directory: point.archive_directory.as_deref().map(absolute),
            keyspaces: keyspaces
                .map(|keyspace| (keyspace.name, keyspace.statement))
                .collect(),
            tables: tables
                .map(|table| MomentTableReport {
                    keyspace: table.keyspace,
                    name: table.name,
                    id: table.id.0.to_string(),
                    directory: absolute(&table.directory),
                })
                .collect(),
        }
    }
}

/// The absolute path: the tool may have another working directory than the node.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

/// The archive of a log, and how far it reaches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveReport {
    /// Id of the node and of its log.
    pub node: String,
    /// Directory of the archive.
    pub directory: PathBuf,
    /// Everything acknowledged before this time (microseconds since 1970) is in the archive.
    pub covered_micros: i64,
}

impl From<ArchivedLog> for ArchiveReport {
    fn from(archived: ArchivedLog) -> Self {
        Self {
            node: archived.id.to_string(),
            directory: absolute(&archived.directory),
            covered_micros: archived.covered_micros,
        }
    }
}

/// A table that a node gets from a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TablePlan {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub name: String,
    /// Directory of its SSTables.
    pub directory: PathBuf,
    /// The statements that create it.
    pub statements: Vec<String>,
    /// The statements that create its indexes, executed after the rows are there.
    pub indexes: Vec<String>,
    /// Whether the rows may be added to an existing table; if false, an existing table is refused.
    pub merges: bool,
}

impl TablePlan {
    /// Imports the SSTables; returns their number.
    fn import(&self, engine: &Engine, table: TableId) -> Result<usize, AdminError> {
        let imported = engine.import(table, &self.directory, ImportSource::Moved);
        let report = imported.map_err(failed)?;
        match report.refused.first() {
            None => Ok(report.imported.len()),
            Some((file, reason)) => Err(AdminError::Failed(format!("{}: {reason}", file.display()))),
        }
    }

    /// Creates the table and adds its rows; `run` executes the statements. In a cluster the rows are written to all replicas. If a created table
    /// cannot get its rows, it is dropped again.
    fn execute(
        &self,
        node: &ServerNode,
        run: &dyn Fn(&str) -> Result<(), AdminError>,
    ) -> Result<Value, AdminError> {
        let engine = node.engine();
        let find = || {
            let schema = engine.schema();
            schema.table(&self.keyspace, &self.name).map(|table| table.id)
        };
        let name = format!("{}.{}", self.keyspace, self.name);
        let existed = find().is_some();
        if existed && !self.merges {
            return Err(AdminError::Refused(format!(
                "table {name} exists; give the restored one another name with --as, or add its rows with --merge"
            )));
        }
        if !existed {
            self.statements.iter().try_for_each(|statement| run(statement))?;
        }
        let table =
            find().ok_or_else(|| AdminError::Failed(format!("table {name} was dropped meanwhile")))?;
        let added = match engine.is_of_cluster() {
            true => write_directory(node, table, &self.directory),
            false => self.import(engine, table),
        };
        match added {
            Ok(sstables) => {
                if !existed {
                    self.indexes.iter().try_for_each(|statement| run(statement))?;
                }
                Ok(json!({ "sstables": sstables }))
            }
            Err(error) => {
                if !existed {
                    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
                    run(&format!(
                        "DROP TABLE {}.{}",
                        quoted(&self.keyspace),
                        quoted(&self.name)
                    ))?;
                }
                Err(error)
            }
        }
    }
}

/// Executes an order; `run` executes the statements of a plan.
pub(super) fn execute(
    node: &ServerNode,
    order: &BackupsOrder,
    run: &dyn Fn(&str) -> Result<(), AdminError>,
) -> Result<Value, AdminError> {
    let engine = node.engine();
    let json =
        |report: serde_json::Result<Value>| report.map_err(|error| AdminError::Failed(error.to_string()));
    match order {
        BackupsOrder::Place => Ok(json!({ "data_directory": absolute(engine.data_dir()) })),
        BackupsOrder::Begin => {
            let point = engine.begin_backup().map_err(failed)?;
            json(serde_json::to_value(MomentReport::from(point)))
        }
        BackupsOrder::End => {
            engine.end_backup().map_err(failed)?;
            Ok(json!({}))
        }
        BackupsOrder::ArchiveLog => {
            let archived = engine.archive_log().map_err(failed)?;
            json(serde_json::to_value(ArchiveReport::from(archived)))
        }
        BackupsOrder::RestoreTable(plan) => {
            let bytes = engine.env().read_all(plan, PLAN_BYTES_MAX);
            let bytes = bytes.map_err(|error| AdminError::Refused(error.to_string()))?;
            let plan: TablePlan = serde_json::from_slice(&bytes)
                .map_err(|error| AdminError::Refused(format!("{}: {error}", plan.display())))?;
            plan.execute(node, run)
        }
    }
}

impl BackupsOrder {
    /// Executes the order on a node that this process has opened without a server.
    ///
    /// # Errors
    /// See [`AdminError`].
    pub fn execute_alone(&self, node: &ServerNode) -> Result<Value, AdminError> {
        execute(node, self, &|cql| {
            let order = QueryOrder {
                cql: cql.to_owned(),
                ..QueryOrder::default()
            };
            run(node, None, &order, &Caller::Operator).map(drop)
        })
    }
}

#[derive(Deserialize)]
struct PlanChoice {
    plan: PathBuf,
}

pub(super) fn routes() -> Router<std::sync::Arc<dyn Admin>> {
    Router::new()
        .route("/admin/backups/place", post(place))
        .route("/admin/backups/begin", post(begin))
        .route("/admin/backups/end", post(end))
        .route("/admin/backups/archive-log", post(archive_log))
        .route("/admin/backups/restore-table", post(restore_table))
}

async fn place(State(admin): Shared) -> Response {
    answer(admin, BackupsOrder::Place).await
}

async fn begin(State(admin): Shared) -> Response {
    answer(admin, BackupsOrder::Begin).await
}

async fn end(State(admin): Shared) -> Response {
    answer(admin, BackupsOrder::End).await
}

async fn archive_log(State(admin): Shared) -> Response {
    answer(admin, BackupsOrder::ArchiveLog).await
}

async fn restore_table(State(admin): Shared, Query(choice): Query<PlanChoice>) -> Response {
    answer(admin, BackupsOrder::RestoreTable(choice.plan)).await
}

async fn answer(admin: std::sync::Arc<dyn Admin>, order: BackupsOrder) -> Response {
    in_thread(move || Ok(Json(admin.backups(&order)?).into_response())).await
}
