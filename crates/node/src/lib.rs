//! A node without a server: engine and query layer, opened with the settings, and the system tables about them.
//!
//! [`Node::open`] checks the settings, makes options of them (`layer_options`), opens the engine, stores this node in `system.local`, and
//! registers the virtual tables. The embedded database (`ilion::Database`) is such a node; `ilion_server` adds sockets to one.
//!
//! | module | what |
//! | --- | --- |
//! | `node`, `open_error` | [`Node`]; why it does not open |
//! | `access_settings`, `cluster_settings` | settings that contradict each other, or that a cluster, or a single node, refuses |
//! | `layer_options`, `budgets`, `guardrails`, `memory` | the options of engine and query layer, from the settings and the machine |
//! | `live` | [`LiveSettings`]: the settings that hold now, and changing them |
//! | `system` | system tables; [`LocalNode`]: `system.local` |
//! | [`values`] | serialized values of system tables |
//! | `peers` | [`Peers`]: the members of a cluster, as this node knows them |
//! | [`costs`], `counted` | costs of statements by shape; counting those that come through no session |
//! | `disk_watch`, `ticker` | usage of the data disk; a thread that repeats an action |
//!
//! Not here: sockets, requests of clients, logs of the process, audit, traces (`ilion_server`). When you add a setting that can change
//! while the node runs, see `live`.

mod access_settings;
mod budgets;
mod cluster_settings;
pub mod costs;
mod counted;
mod disk_watch;
mod guardrails;
mod layer_options;
mod live;
mod memory;
mod node;
mod open_error;
mod peers;
mod system;
mod ticker;
pub mod values;

pub use budgets::client_bytes;
pub use cluster_settings::refused_in_a_cluster;
pub use counted::Counted;
pub use ilion_commitlog::ReplayProgress;
pub use live::{LiveSettings, ReloadReport};
pub use memory::{machine_bytes, read_kernel_file};
pub use node::{Node, Opening};
pub use open_error::OpenError;
pub use peers::{Peers, PeersListener};
pub use system::{
    CQL_VERSION, LocalError, LocalNode, NoListener, NodeFacts, RELEASE_VERSION, STORAGE_PORT, SchemaListener,
    Standing, register_computed,
};
