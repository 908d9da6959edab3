//! Nearest vectors: which rows have the vectors that are most similar to a given one, nearly always right, without
//! looking at all of them.
//!
//! Vectors are nodes of a graph (hierarchical navigable small worlds, after Malkov and Yashunin): each is linked to near
//! ones in several directions. A search enters through a sparse upper level, walks towards the query, and goes on in the
//! lowest level, which has all nodes, for as long as something nearer may turn up ([`Reach`]).
//!
//! 1. [`Options`] of the index say which [`Similarity`] counts and how densely nodes are linked.
//! 2. A [`MemoryGraph`] takes vectors in, by many threads at once, and is searched meanwhile.
//! 3. [`write()`] makes a file of it (`docs/format/vector.md`); [`FileGraph`] opens that through a [`Source`], loads nothing,
//!    and reads what a search touches.
//! 4. [`search`] gives the best few of either; [`Nearest`] goes on giving the next best; [`Merge`] unites those of
//!    several graphs.
//!
//! A vector comes with an *ordinal*, the caller's number for its row. Equal vectors share a node. Nothing is taken out of a
//! graph: whoever searches passes over ordinals that are not alive. Every ordinal is found in the end: what no link leads to is
//! measured one by one once the walk has seen everything else.
//!
//! | module | what |
//! | --- | --- |
//! | `options` | [`Options`] of an index, under Cassandra's names |
//! | `similarity` | [`Similarity`]: scores, and which vectors can be indexed |
//! | `kernel` | dot products and squared distances |
//! | `probe` | a vector to measure distances from |
//! | `graph` | [`Graph`]: what a search needs of a graph |
//! | `nearest` | the walk |
//! | `plan` | [`Reach`]; walk or scan, as a pure decision |
//! | `beam` | the simpler walk of upper levels and inserts |
//! | `select` | which links a node keeps |
//! | `memory` | [`MemoryGraph`]; one made of another |
//! | `file` | [`write()`], [`FileGraph`] |
//! | `merge` | [`Merge`] |
//! | `node_set`, `near` | a set of nodes; a node with its distance |
//!
//! When you change what a record or the tail has, also change `docs/format/vector.md` and the version.

mod beam;
mod error;
mod file;
mod graph;
mod kernel;
mod memory;
mod merge;
mod near;
mod nearest;
mod node_set;
mod options;
mod plan;
mod probe;
mod select;
mod similarity;

pub use error::Error;
pub use file::{FileGraph, Source, write};
pub use graph::Graph;
pub use memory::MemoryGraph;
pub use merge::Merge;
pub use near::Near;
pub use nearest::{Nearest, search};
pub use options::{OptimizeFor, Options};
pub use plan::{Reach, Way, choose};
pub use probe::Probe;
pub use similarity::Similarity;

/// The most dimensions a vector may have here; Cassandra's limit is lower.
pub const DIMENSION_MAX: u32 = 1 << 16;
