//! [`MemberOptions`]: who a node is, and how long it waits.

use std::net::IpAddr;
use std::time::Duration;

use ilion_cluster::{Endpoint, FEATURE_LEVEL_MAX, Location};
use uuid::Uuid;

/// A node as a member of a cluster.
#[derive(Clone, Debug)]
pub struct MemberOptions {
    /// Its id, for as long as its data directory lives.
    pub host: Uuid,
    /// Where it listens.
    pub endpoint: Endpoint,
    /// Its data center and rack.
    pub location: Location,
    /// The release of Cassandra that its clients see. The member logs it for the others.
    pub release: String,
    /// The highest feature level that it takes part in. Only tests of upgrades have another one than that of this version.
    pub understands: u32,
    /// The cluster that is made if the meta log is empty. `None`: wait for another node to make it.
    pub create: Option<NewCluster>,
    /// The number of slices of the ring that a node takes when it joins. `None`: as many as each of the others has then.
    pub slices: Option<u32>,
    /// A lost member whose slices this node takes over when it joins.
    pub replaces: Option<Replaced>,
    /// A write that is not acknowledged within this time has timed out.
    pub write_timeout: Duration,
    /// How long a change of the schema waits for the other nodes.
    pub schema_timeout: Duration,
    /// A replica sends the parts of a logged batch that its coordinator has not sent within this time.
    pub finish_batches_after: Duration,
    /// How often the node logs a sign of life.
    pub heartbeat: Duration,
    /// A node that was silent for this time, by the time of the log, is thought to be down.
    pub silence_max: Duration,
    /// Applied records are saved after this time, or after [`Self::save_bytes`].
    pub save_interval: Duration,
    /// Bytes of records that are applied between two savings.
    pub save_bytes: u64,
    /// Number of records of the blocks of a log whose outcomes replicas compare; longer if tablets share a log. All members must have the same; only tests have another
    /// one than the usual.
    pub block_length: u64,
    /// How often logs are trimmed.
    pub trim_interval: Duration,
    /// Minimum number of records that are trimmed from a log.
    pub trim_records: u64,
}

/// A lost member that a new node takes the place of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaced {
    /// By its address for other nodes.
    Address(IpAddr),
    /// By its host id.
    Host(Uuid),
}

/// The settings that are decided once for a cluster.
#[derive(Clone, Copy, Debug)]
pub struct NewCluster {
    /// Its id.
    pub cluster: Uuid,
    /// How many slices its ring has, for ever.
    pub tablets: u32,
    /// How long the logs keep what a silent node lacks.
    pub down_max: Duration,
}

impl MemberOptions {
    /// [`Self::silence_max`] in the unit of the log's times.
    pub(crate) fn silence_micros(&self) -> i64 {
        i64::try_from(self.silence_max.as_micros()).unwrap_or(i64::MAX)
    }

    /// The usual times.
    pub fn new(host: Uuid, endpoint: Endpoint, location: Location, release: &str) -> Self {
        Self {
            host,
            endpoint,
            location,
            release: release.to_owned(),
            understands: FEATURE_LEVEL_MAX,
            create: None,
            slices: None,
            replaces: None,
            write_timeout: Duration::from_secs(2),
            schema_timeout: Duration::from_secs(10),
            finish_batches_after: Duration::from_secs(5),
            heartbeat: Duration::from_secs(1),
            silence_max: Duration::from_secs(5),
            save_interval: Duration::from_secs(600),
            save_bytes: 256 << 20,
            block_length: 1024,
            trim_interval: Duration::from_secs(60),
            trim_records: 10_000,
        }
    }
}
