//! Nodes talk to each other: requests and answers over the framing of the native protocol v5, on a port of its own (`storage_port`), with
//! mutual TLS if `server_encryption_options` asks for it.
//!
//! Requests and answers are opaque bytes here, except reads (`replicas`): a request is bytes of a
//! [`Kind`], answered by the [`Service`] of that kind, at once or in parts.
//!
//! The main path of a call: [`Client::call`] asks the `link` of the node for its `conn`, which is made if there is none (`dial`: TCP,
//! TLS, `hello`). The request takes a stream of the connection (`calls`) and goes into its `sender`, which sends at once what the socket
//! takes. The other node has accepted the connection (`listener`, `welcome`); its task (`inbox`) gives the request to a thread of its
//! [`Lane`] (`lanes`), which calls the service and queues the answer. The task of the asking node passes it to `incoming`, where
//! [`Call::wait`] waits.
//!
//! | module | what |
//! | --- | --- |
//! | `internode` | [`Internode`]: start and stop; [`StoragePort`] |
//! | `options`, `error`, `kind` | [`Options`]; [`CallError`], [`StartError`]; [`Kind`], [`Lane`] |
//! | `peers` | [`Peers`]: what connections need to know of the cluster |
//! | `hello` | the greetings, and which nodes are welcome |
//! | `message` | what travels on an open connection |
//! | `sender`, `receiver` | bytes of messages, to and from a socket |
//! | `client` | [`Client`], [`Call`], [`Parts`]: calls to others |
//! | `shared`, `link`, `conn`, `dial`, `backoff`, `signs`, `stopping` | connections to others: made, kept, given up, made again |
//! | `calls`, `incoming` | open calls; the answer of a call as it arrives |
//! | `traffic` | counts of requests and connections, by node |
//! | `counts` | [`CallCounts`]: requests and failures |
//! | `listener`, `welcome`, `strangers`, `inbox`, `serving`, `served` | connections of others, their requests, and answers to them |
//! | `service`, `lanes` | [`Service`]: answers requests; the threads for that |
//! | `replicas` | [`RemoteReplicas`], [`ReadService`]: reads of a coordinator |
//! | `testing` | messages, for fuzzing (feature `testing`) |
//!
//! Bounds: calls of a connection and bytes of their requests (`options`), payloads of 64 KiB, answers that wait to be sent, answers that
//! nobody has taken. Memory is allocated only for bytes that have arrived. When the format changes, raise `hello::NEWEST`.

mod backoff;
mod calls;
mod client;
mod conn;
mod counts;
mod dial;
mod error;
mod hello;
mod inbox;
mod incoming;
mod internode;
mod kind;
mod lanes;
mod link;
mod listener;
mod message;
mod options;
mod peers;
mod receiver;
mod replicas;
mod sender;
mod served;
mod service;
mod serving;
mod shared;
mod signs;
mod stopping;
mod strangers;
#[cfg(feature = "testing")]
pub mod testing;
mod traffic;
mod welcome;

pub use client::{Call, Client, Parts};
pub use counts::CallCounts;
pub use error::{CallError, StartError};
pub use hello::{Hello, Identity, NEWEST, OLDEST, Reply, judge};
pub use internode::{Internode, Setup, StoragePort};
pub use kind::{Kind, Lane};
pub use options::Options;
pub use peers::Peers;
pub use replicas::{ReadService, RemoteReplicas};
pub use served::ServedCall;
pub use service::{Served, Service, ServiceError, Services};
