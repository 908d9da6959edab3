//! [`Moment`]: the input of a backup.

use std::path::PathBuf;

use uuid::Uuid;

/// A moment of a node, as files on this machine that do not change. See `ilion_engine::BackupPoint`, which it is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Name of the cluster.
    pub cluster: String,
    /// The id of the node and of its log.
    pub node: Uuid,
    /// Class of the partitioner.
    pub partitioner: String,
    /// First segment of the log's stretch.
    pub log_from: u64,
    /// The segment behind the stretch: the moment is its start.
    pub log_to: u64,
    /// The time of the moment, microseconds since 1970.
    pub at_micros: i64,
    /// All writes that were acknowledged before this time, microseconds since 1970, are in the moment.
    pub covered_micros: i64,
    /// Directory with the segments of the stretch.
    pub log_directory: PathBuf,
    /// What a replay of the segments leaves out, as in `ilion.purged`.
    pub purged: String,
    /// Where the node archives segments; `None` if it does not.
    pub archive_directory: Option<PathBuf>,
    /// The keyspaces.
    pub keyspaces: Vec<MomentKeyspace>,
    /// The tables.
    pub tables: Vec<MomentTable>,
}

/// A keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MomentKeyspace {
    /// Its name.
    pub name: String,
    /// The statement that creates it.
    pub statement: String,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MomentTable {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: Uuid,
    /// A directory with its SSTables, as a snapshot has them.
    pub directory: PathBuf,
}

impl Moment {
    /// The moment of a backup point; `cluster` is the name of the engine's cluster.
    pub fn of(cluster: &str, point: ilion_engine::BackupPoint) -> Self {
        let keyspaces = point.keyspaces.into_iter();
        let tables = point.tables.into_iter();
        Self {
            cluster: cluster.to_owned(),
            node: point.id,
            partitioner: point.partitioner.to_owned(),
            log_from: point.log_from.0,
            log_to: point.log_to.segment.0,
            at_micros: point.at_micros,
            covered_micros: point.covered_micros,
            log_directory: point.log_directory,
            purged: point.purged,
            archive_directory: point.archive_directory,
            keyspaces: keyspaces
                .map(|keyspace| MomentKeyspace {
                    name: keyspace.name,
                    statement: keyspace.statement,
                })
                .collect(),
            tables: tables
                .map(|table| MomentTable {
                    keyspace: table.keyspace,
                    name: table.name,
                    id: table.id.0,
                    directory: table.directory,
                })
                .collect(),
        }
    }
}
