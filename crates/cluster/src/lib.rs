//! The state of a cluster: a pure function over the records of its meta log.
//!
//! A single node has no meta log, so it has no such state. Clusters, whose nodes share a commit log, are built on this crate.
//!
//! A cluster has one meta log, which all nodes append to and read in the same order. [`apply`] takes the state and the next record, and
//! returns the next state and the [`Effect`]s that a node acts on. So all nodes agree on members, owners of tablets, schema and flushed
//! positions without any other messages. `docs/design/cluster-state.md` explains the design.
//!
//! | module | what lives there |
//! | --- | --- |
//! | `record` | [`Record`]: a change, as it is logged |
//! | `state` | [`ClusterState`]: members, owners, schema, positions; queries on them |
//! | `apply` | [`apply`]: records to states; why a node halts |
//! | `topology` | join, leave, move, replace, replication: transitions |
//! | `levels` | [`Feature`]: what a cluster uses from some feature level on |
//! | `outcomes` | [`BlockDigest`]: what replicas tell about the outcomes of commands |
//! | `digests` | which replicas differ |
//! | `refusal` | [`Refusal`]: why a record changed nothing |
//! | `snapshot` | the bytes of a state, for the disk of a node and for a snapshot in the meta log |
//! | `logged_snapshot` | [`SnapshotPart`]: snapshots in the meta log, so that its beginning can be deleted |
//! | `router` | [`Router`]: the replicas of a token |
//! | `tablets` | [`Tablets`]: the slices of the ring |
//! | `placement` | [`Ring`], [`Strategy`]: where replicas are, as Cassandra places them |
//! | `traffic` | [`Traffic`]: requests between two nodes, as operators see them |
//! | `view` | [`ClusterView`]: the cluster as drivers and operators see it |
//! | `consistency` | how many replicas must answer |
//! | `window` | [`Windows`]: detects repeated records |
//! | `fields` | bytes that records and snapshots share |
//!
//! When you add a kind of record, raise [`FEATURE_LEVEL_MAX`], add a [`Feature`], and let senders wait for it: older nodes halt at an
//! unknown record. Do the same when you change a rule of `apply`, or what records of tablets may have.

mod apply;
mod consistency;
mod digests;
mod fields;
mod levels;
mod logged_snapshot;
mod outcomes;
mod placement;
mod record;
mod refusal;
mod router;
mod snapshot;
mod state;
mod tablets;
mod topology;
mod traffic;
mod view;
mod window;

pub use apply::{Applied, Effect, Entry, Halt, apply};
pub use consistency::needs;
pub use fields::Endpoint;
pub use levels::{FEATURE_LEVEL_MAX, Feature};
pub use logged_snapshot::{SNAPSHOT_PARTS_MAX, SnapshotPart};
pub use outcomes::{BlockDigest, Differing};
pub use placement::{Location, Node, Ring, Strategy, UnknownReplication};
pub use record::{Change, Join, RECORD_BYTES_MAX, Record, SchemaRecord, Takes, Unreadable};
pub use refusal::Refusal;
pub use router::Router;
pub use snapshot::SnapshotError;
pub use state::{ClusterState, Member, Moment, Phase, SchemaState, Transition, TransitionKind};
pub use tablets::{META_TABLET, TABLETS_MAX, Tablets};
pub use traffic::{Traffic, Volume};
pub use view::{ClusterView, Eyes, MemberChange, MemberView};
pub use window::{Admission, WINDOW, Windows};
