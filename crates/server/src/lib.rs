//! The server: sockets, sessions, settings, HTTP.
//!
//! The main path: `server` accepts a connection; its task (`connection`) reads bytes, cuts them into frames and puts them
//! into a queue together; a thread of a pool (`workers`, `execute`) decodes the requests, has them executed (`request`,
//! [`Statements`]), encodes the answers (`answer`), waits for the commit log where one was written ([`Durability`]), and
//! delivers them to the session, which sends them at once or leaves them to the connection's task (`session`).
//!
//! | module | what |
//! | --- | --- |
//! | `server`, `acceptor`, `options` | [`Server`]: starting and stopping; taking connections |
//! | `port` | [`Port`]: a port that is taken, and not yet listened on |
//! | `connection`, `handshake` | the task of a connection; OPTIONS and STARTUP |
//! | `client_memory`, `descriptors`, `overload` | what all clients together may hold: memory; file descriptors; what is beyond it |
//! | `session` | what is shared about a connection; its limits; answers on their way |
//! | `clients`, `client_facts` | who is connected, for operators |
//! | `queues` | where requests wait for threads |
//! | `workers`, `execute`, `weight` | pools, and what a thread does with a task |
//! | `request`, `answer`, `error_table` | requests to statements, results to answers |
//! | `observers` | [`Observers`]: what requests cost, which are slow, which are traced |
//! | [`costs`], `traces`, `described` | costs by shape and the slow-query log; traces; requests in words |
//! | `counted` | statements that came by no session, counted too |
//! | `answer_times`, `request_times` | the stages of a request; how long requests took, by worker |
//! | `events` | SCHEMA_CHANGE and the like, for those who registered |
//! | `statements`, `durability` | what is needed of the layers below |
//! | `system` | the tables that the server fills |
//! | `node`, `memory` | [`Node`]: engine, query layer and system tables put together, with or without a server |
//! | [`settings`] | what the operator wants |
//! | [`admin`] | the door for operators |
//! | [`dashboard`] | the page for people behind it |
//! | `log_file`, `recent_log`, `signals` | logs; being told to stop |
//!
//! The border between tokio and plain threads is in `queues`: tasks of tokio never execute a statement, threads
//! never wait for a socket. When you add a limit, add it to `settings`, and let it hold in `Session`.

mod acceptor;
pub mod admin;
mod answer;
mod answer_times;
mod budgets;
mod client_facts;
mod client_memory;
mod clients;
mod connection;
pub mod costs;
mod counted;
pub mod dashboard;
mod described;
mod descriptors;
mod disk_watch;
mod durability;
mod error_table;
mod events;
mod execute;
mod guardrails;
mod handshake;
mod log_file;
mod memory;
mod metrics;
mod node;
mod observers;
mod options;
mod overload;
mod port;
mod queues;
mod recent_log;
mod request;
mod request_times;
mod server;
mod session;
pub mod settings;
mod signals;
mod statements;
mod system;
mod traces;
mod weight;
mod workers;

pub use client_facts::ClientFacts;
pub use clients::{Clients, PoolFacts};
pub use counted::Counted;
pub use durability::{Durability, DurableCallback, NoLog};
pub use log_file::start_logging;
pub use metrics::ServerMetrics;
pub use node::{Node, OpenError};
pub use observers::{COST_KEY, Observers};
pub use options::ServerOptions;
pub use port::{Entrance, Port, PortError};
pub use server::{Server, Services, StartError};
pub use signals::StopSignals;
pub use statements::Statements;
pub use system::{
    CQL_VERSION, LocalError, LocalNode, NoListener, NodeFacts, RELEASE_VERSION, SchemaListener,
};
pub use traces::{Trace, TraceProbability, TraceStore};
