//! The node that `ilion backup` works with: a running one on this machine, or the directory of a stopped one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_backup::{Error, Moment, MomentKeyspace, MomentTable};
use ilion_engine::ArchivedLog;
use ilion_env::{Env, FileLock, RealEnv};
use ilion_server::ServerNode;
use ilion_server::admin::{AdminClient, ArchiveReport, BackupsOrder, InfoReport, MomentReport};
use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

use crate::Failure;
use crate::ask::{client, path};
use crate::cli::{NodeArguments, ServeArguments};
use crate::serve;

/// Lock file in the data directory: one `ilion backup` at a time works with a node.
const LOCK: &str = "ilion.backup";

/// A node, with the lock that keeps other `ilion backup` processes away from it.
pub struct BackedUp {
    way: Way,
    cluster: String,
    data_directory: PathBuf,
    _lock: Box<dyn FileLock>,
}

enum Way {
    Running(AdminClient),
    Stopped(Box<ServerNode>),
}

impl BackedUp {
    /// Finds the running node, or opens the directory of the stopped one.
    pub fn open(arguments: &NodeArguments) -> Result<Self, Failure> {
        let real = RealEnv::new();
        let env: Arc<dyn Env> = real.clone();
        let (way, cluster, data_directory) = match arguments.stopped {
            true => {
                let given = ServeArguments {
                    data: arguments.data.clone(),
                    config: arguments.config.clone(),
                    set: arguments.set.clone(),
                    ..ServeArguments::default()
                };
                let settings = serve::load(&*env, &given)?.settings;
                real.set_umask(settings.umask.0);
                let data = serve::absolute(&settings.data_path());
                if !env.exists(&data) {
                    return Err(Failure::Failed(format!(
                        "there is no data directory {}",
                        data.display()
                    )));
                }
                let node = ServerNode::open(env.clone(), &settings).map_err(Failure::of)?;
                (Way::Stopped(Box::new(node)), settings.cluster_name, data)
            }
            false => {
                let client = client(&arguments.admin)?;
                let info: InfoReport = client.get("/admin/info").map_err(Failure::of)?;
                let place = client.post(&path("backups/place", &[])).map_err(Failure::of)?;
                let data = place["data_directory"].as_str().unwrap_or_default();
                (Way::Running(client), info.cluster_name, PathBuf::from(data))
            }
        };
        let lock = data_directory.join(LOCK);
        let lock = env.lock(&lock).map_err(|error| match error.is_locked() {
            true => Failure::Failed("another `ilion backup` works with this node; wait for it".to_owned()),
            false => Failure::Failed(format!(
                "{error}; `ilion backup` runs on the machine of the node, as a user that can read and write its directory"
            )),
        })?;
        Ok(Self {
            way,
            cluster,
            data_directory,
            _lock: lock,
        })
    }

    /// The data directory of the node.
    pub fn data_directory(&self) -> &Path {
        &self.data_directory
    }

    fn order(&self, order: &BackupsOrder) -> Result<Value, Error> {
        let refused = |error: &dyn std::fmt::Display| Error::Refused(error.to_string());
        match &self.way {
            Way::Stopped(node) => order.execute_alone(node).map_err(|error| refused(&error)),
            Way::Running(client) => {
                let path = match order {
                    BackupsOrder::Place => path("backups/place", &[]),
                    BackupsOrder::Begin => path("backups/begin", &[]),
                    BackupsOrder::End => path("backups/end", &[]),
                    BackupsOrder::ArchiveLog => path("backups/archive-log", &[]),
                    BackupsOrder::RestoreTable(plan) => path(
                        "backups/restore-table",
                        &[("plan", Some(&*plan.to_string_lossy()))],
                    ),
                };
                client.post(&path).map_err(|error| refused(&error))
            }
        }
    }

    fn report<T: DeserializeOwned>(&self, order: &BackupsOrder) -> Result<T, Error> {
        let report = self.order(order)?;
        serde_json::from_value(report)
            .map_err(|error| Error::Refused(format!("the node is of another version: {error}")))
    }

    /// Has the node begin a backup: takes snapshots of all tables and links the commit log.
    pub fn begin(&self) -> Result<Moment, Error> {
        let report: MomentReport = self.report(&BackupsOrder::Begin)?;
        let keyspaces = report.keyspaces.into_iter();
        let tables = report.tables.into_iter();
        Ok(Moment {
            cluster: self.cluster.clone(),
            node: id(&report.node)?,
            partitioner: report.partitioner,
            log_from: report.log_from,
            log_to: report.log_to,
            at_micros: report.at_micros,
            covered_micros: report.covered_micros,
            log_directory: report.log_directory,
            purged: report.purged,
            archive_directory: report.archive_directory,
            keyspaces: keyspaces
                .map(|(name, statement)| MomentKeyspace { name, statement })
                .collect(),
            tables: tables
                .map(|table| {
                    Ok(MomentTable {
                        id: id(&table.id)?,
                        keyspace: table.keyspace,
                        name: table.name,
                        directory: table.directory,
                    })
                })
                .collect::<Result<_, Error>>()?,
        })
    }

    /// Removes the snapshots and links that [`Self::begin`] made.
    pub fn end(&self) -> Result<(), Error> {
        self.order(&BackupsOrder::End).map(drop)
    }

    /// Archives the commit log of the node up to now.
    pub fn archive_log(&self) -> Result<ArchivedLog, Error> {
        let report: ArchiveReport = self.report(&BackupsOrder::ArchiveLog)?;
        Ok(ArchivedLog {
            id: id(&report.node)?,
            directory: report.directory,
            covered_micros: report.covered_micros,
        })
    }

    /// Imports a table into the node, as the plan file says. Returns the number of SSTables.
    pub fn restore_table(&self, plan: &Path) -> Result<u64, Error> {
        let done = self.order(&BackupsOrder::RestoreTable(plan.to_path_buf()))?;
        Ok(done["sstables"].as_u64().unwrap_or(0))
    }
}

fn id(text: &str) -> Result<Uuid, Error> {
    text.parse()
        .map_err(|_| Error::Refused(format!("the node is of another version: its id is {text}")))
}
