//! The server: sockets, sessions, logins, logs, HTTP.
//!
//! The main path: `server` accepts a connection; its task (`connection`) reads bytes, cuts them into frames and puts them
//! into a queue together; a thread of a pool (`workers`, `execute`) decodes the requests, executes them (`request`,
//! [`Statements`]), encodes the answers (`answer`), waits for the commit log after writes ([`Durability`]), and delivers
//! the answers to the session, which sends them at once or leaves them to the connection's task (`session`).
//!
//! | module | what |
//! | --- | --- |
//! | `server`, `acceptor`, `options` | [`Server`]: starting and stopping; accepting connections |
//! | `port`, `entry` | [`Port`]: a port that is bound before it is listened on; closing and opening the client ports |
//! | `starting` | [`Starting`]: answers on the ports of a node that starts |
//! | `connection`, `handshake` | the task of a connection; OPTIONS and STARTUP |
//! | `logins` | AUTH_RESPONSE: threads that check passwords |
//! | `client_memory`, `descriptors`, `request_rate`, `overload` | limits for all clients together: memory; file descriptors; requests per second; the answer to requests beyond them |
//! | `encryption`, `certificate` | TLS options from the settings; the identity in a client's certificate (sockets and keys are in `ilion_tls`) |
//! | `session` | the shared state of a connection; its limits; answers that are not sent yet |
//! | `cluster_probe` | [`ClusterProbe`]: state and counters of the cluster, for the administration |
//! | `clients`, `client_facts` | the connected clients, for operators |
//! | `queues`, `task_queue` | where requests wait for threads |
//! | `workers`, `execute`, `unfinished`, `weight` | pools, and how a thread executes a task and hands over its rest before it waits |
//! | `request`, `answer`, `error_table` | requests to statements, results to answers |
//! | `observers`, `subject` | [`Observers`]: costs, slow-query log and traces; the statement of a request |
//! | `slow_log`, `traces`, `described` | the slow-query log; traces; requests as text |
//! | `spans`, `telemetry_options` | requests as spans of OpenTelemetry (`ilion_telemetry`), and where they are sent |
//! | `audit_options`, `auditor` | [`Auditor`]: requests and logins to entries of the audit log (`ilion_audit`) |
//! | `answer_times`, `request_times` | the stages of a request; times of requests, by worker |
//! | `events` | SCHEMA_CHANGE and other events, for the clients that registered |
//! | `schema_events` | changes of the schema as events of the protocol |
//! | `statements`, `durability` | the interfaces to the layers below |
//! | `system` | system tables about clients, the log and traces |
//! | `server_node` | [`ServerNode`]: a node (`ilion_node`) with what its server needs |
//! | `process` | facts about this process from `/proc` |
//! | `superuser`, `first_superuser`, `exposure` | the first superuser; addresses that need logins |
//! | `first_start` | statements of a mounted directory, for a new node |
//! | `consumers` | the consumers that are reading changes |
//! | `named_consumers` | the progress of named consumers of changes, in a file |
//! | `changes` | [`ChangeStream`]: the changes of a table, for a consumer |
//! | [`admin`] | administration over HTTP |
//! | [`dashboard`] | the dashboard, on the same port |
//! | `log_file`, `recent_log`, `signals` | logs; SIGINT, SIGTERM and SIGHUP |
//!
//! The border between tokio and plain threads is in `queues`: tasks of tokio never execute a statement, threads
//! never wait for a socket. When you add a limit of a connection, add it to `ilion_settings` and enforce it in `Session`.

mod acceptor;
pub mod admin;
mod answer;
mod answer_times;
mod audit_options;
mod auditor;
mod certificate;
mod changes;
mod client_facts;
mod client_memory;
mod clients;
mod cluster_probe;
mod connection;
mod consumers;
pub mod dashboard;
mod described;
mod descriptors;
mod durability;
mod encryption;
mod entry;
mod error_table;
mod events;
mod execute;
mod exposure;
mod first_start;
mod first_superuser;
mod handshake;
mod log_file;
mod login_turns;
mod logins;
mod metrics;
mod named_consumers;
mod observers;
mod old_versions;
mod options;
mod overload;
mod port;
mod process;
mod queues;
mod recent_log;
mod request;
mod request_rate;
mod request_times;
mod schema_events;
mod server;
mod server_node;
mod session;
mod signals;
mod slow_log;
mod spans;
mod starting;
mod statements;
mod subject;
mod superuser;
mod system;
mod task_queue;
mod telemetry_options;
mod traces;
mod unfinished;
mod weight;
mod workers;

pub use admin::starting::Progress;
pub use auditor::Auditor;
pub use certificate::CertificateLogins;
pub use changes::{ChangeStream, ChangesFormat, ChangesOrder};
pub use client_facts::ClientFacts;
pub use clients::{Clients, PoolFacts};
pub use cluster_probe::{ClusterCounts, ClusterProbe, MemberStanding, Waits};
pub use durability::{Durability, DurableCallback, NoLog};
pub use encryption::{admin_encryption, client_encryption, server_encryption};
pub use entry::Entry;
pub use error_table::error_response;
pub use exposure::{Exposure, check_exposure};
pub use first_start::{FirstStart, FirstStartError};
pub use first_superuser::NewSuperuser;
pub use log_file::{reopen_log, start_logging};
pub use logins::{LoginCheck, NoLogins};
pub use metrics::ServerMetrics;
pub use observers::{COST_KEY, Observers};
pub use old_versions::OldVersions;
pub use options::ServerOptions;
pub use port::{ClientPorts, Entrance, Port, PortError};
pub use server::{Certificates, Server, Services, StartError};
pub use server_node::ServerNode;
pub use signals::{StartSignals, StopSignals};
pub use starting::Starting;
pub use statements::Statements;
pub use superuser::{SuperuserChoice, SuperuserError, password_of, random_password, read_password};
pub use traces::{Trace, TraceProbability, TraceStore};
