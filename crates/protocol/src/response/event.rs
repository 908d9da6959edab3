//! EVENT, and the schema change, which RESULT carries as well.
//!
//! ```text
//! event         := "SCHEMA_CHANGE" schema_change | "TOPOLOGY_CHANGE" change: string, node: inet
//!                | "STATUS_CHANGE" status: string, node: inet
//! schema_change := change, target, keyspace: string x 3, then
//!                  TABLE, TYPE: name: string; FUNCTION, AGGREGATE: name: string, arguments: string list
//! ```

use std::net::SocketAddr;

use crate::error::Error;
use crate::notation::{Input, put_inet, put_string, put_string_list};
use crate::request::EventKind;
use crate::version::Version;

/// An event, for clients that registered for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The schema changed.
    Schema(SchemaChange),
    /// A node joined, left or has other tokens.
    Topology {
        /// What happened to the node.
        change: TopologyChange,
        /// Address and port of the node for CQL clients.
        node: SocketAddr,
    },
    /// A node went up or down.
    Status {
        /// Up or down.
        status: NodeStatus,
        /// Address and port of the node for CQL clients.
        node: SocketAddr,
    },
}

/// A change of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopologyChange {
    /// A node joined.
    NewNode,
    /// A node left.
    RemovedNode,
    /// A node has other tokens. No specification has this change, but Cassandra sends it since v3.
    MovedNode,
}

/// The status of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeStatus {
    /// Up.
    Up,
    /// Down.
    Down,
}

/// A change of the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaChange {
    /// The kind of the change.
    pub change: ChangeKind,
    /// The changed keyspace, or the keyspace of the target.
    pub keyspace: String,
    /// The changed object.
    pub target: SchemaTarget,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// The object was created.
    Created,
    /// The object was altered.
    Updated,
    /// The object was dropped.
    Dropped,
}

/// The object of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaTarget {
    /// The keyspace itself.
    Keyspace,
    /// A table, a view, or the table of an index.
    Table(String),
    /// A user type.
    Type(String),
    /// A function.
    Function {
        /// Its name.
        name: String,
        /// CQL types of its arguments.
        arguments: Vec<String>,
    },
    /// An aggregate.
    Aggregate {
        /// Its name.
        name: String,
        /// CQL types of its arguments.
        arguments: Vec<String>,
    },
}

impl Event {
    /// The kind that clients register for.
    pub fn kind(&self) -> EventKind {
        match self {
            Self::Schema(_) => EventKind::SchemaChange,
            Self::Topology { .. } => EventKind::TopologyChange,
            Self::Status { .. } => EventKind::StatusChange,
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>, version: Version) {
        put_string(out, self.kind().name());
        match self {
            Self::Schema(change) => change.encode(out, version),
            Self::Topology { change, node } => {
                put_string(out, change.name());
                put_inet(out, *node);
            }
            Self::Status { status, node } => {
                put_string(out, status.name());
                put_inet(out, *node);
            }
        }
    }

    pub(super) fn decode(input: &mut Input<'_>) -> Result<Self, Error> {
        Ok(match EventKind::decode(input)? {
            EventKind::SchemaChange => Self::Schema(SchemaChange::decode(input)?),
            EventKind::TopologyChange => Self::Topology {
                change: word(
                    input,
                    [
                        TopologyChange::NewNode,
                        TopologyChange::RemovedNode,
                        TopologyChange::MovedNode,
                    ],
                    |change| change.name(),
                )?,
                node: input.inet()?,
            },
            EventKind::StatusChange => Self::Status {
                status: word(input, [NodeStatus::Up, NodeStatus::Down], |status| status.name())?,
                node: input.inet()?,
            },
        })
    }
}

impl TopologyChange {
    fn name(self) -> &'static str {
        match self {
            Self::NewNode => "NEW_NODE",
            Self::RemovedNode => "REMOVED_NODE",
            Self::MovedNode => "MOVED_NODE",
        }
    }
}

impl NodeStatus {
    fn name(self) -> &'static str {
        match self {
            Self::Up => "UP",
            Self::Down => "DOWN",
        }
    }
}

impl ChangeKind {
    fn name(self) -> &'static str {
        match self {
            Self::Created => "CREATED",
            Self::Updated => "UPDATED",
            Self::Dropped => "DROPPED",
        }
    }
}

/// Reads a string that must be one of `words`.
fn word<T: Copy, const N: usize>(
    input: &mut Input<'_>,
    words: [T; N],
    name: impl Fn(T) -> &'static str,
) -> Result<T, Error> {
    let at = input.reader().offset();
    let read = input.reader().string16()?;
    words
        .into_iter()
        .find(|&word| name(word) == read)
        .ok_or(Error::Malformed {
            offset: at,
            expected: "a known word",
        })
}

impl SchemaChange {
    pub(super) fn encode(&self, out: &mut Vec<u8>, version: Version) {
        // Compat: v3 has no functions and aggregates, so Cassandra reports that their keyspace was updated.
        if version == Version::V3
            && matches!(
                self.target,
                SchemaTarget::Function { .. } | SchemaTarget::Aggregate { .. }
            )
        {
            self.encode_head(out, ChangeKind::Updated, "KEYSPACE");
            return;
        }
        match &self.target {
            SchemaTarget::Keyspace => self.encode_head(out, self.change, "KEYSPACE"),
            SchemaTarget::Table(name) => {
                self.encode_head(out, self.change, "TABLE");
                put_string(out, name);
            }
            SchemaTarget::Type(name) => {
                self.encode_head(out, self.change, "TYPE");
                put_string(out, name);
            }
            SchemaTarget::Function { name, arguments } => {
                self.encode_head(out, self.change, "FUNCTION");
                put_string(out, name);
                put_string_list(out, arguments);
            }
            SchemaTarget::Aggregate { name, arguments } => {
                self.encode_head(out, self.change, "AGGREGATE");
                put_string(out, name);
                put_string_list(out, arguments);
            }
        }
    }

    fn encode_head(&self, out: &mut Vec<u8>, change: ChangeKind, target: &str) {
        put_string(out, change.name());
        put_string(out, target);
        put_string(out, &self.keyspace);
    }

    pub(super) fn decode(input: &mut Input<'_>) -> Result<Self, Error> {
        let change = word(
            input,
            [ChangeKind::Created, ChangeKind::Updated, ChangeKind::Dropped],
            |change| change.name(),
        )?;
        let target = input.string()?;
        let keyspace = input.string()?;
        let target = match target.as_str() {
            "KEYSPACE" => SchemaTarget::Keyspace,
            "TABLE" => SchemaTarget::Table(input.string()?),
            "TYPE" => SchemaTarget::Type(input.string()?),
            "FUNCTION" => SchemaTarget::Function {
                name: input.string()?,
                arguments: input.string_list()?,
            },
            "AGGREGATE" => SchemaTarget::Aggregate {
                name: input.string()?,
                arguments: input.string_list()?,
            },
            other => {
                return Err(Error::refused(format!(
                    "unknown target of a schema change: {other}"
                )));
            }
        };
        Ok(Self {
            change,
            keyspace,
            target,
        })
    }
}
