//! Approximate nearest vectors: finds the rows whose vectors are most similar to a query, almost always correctly, without
//! comparing all of them.
//!
//! Vectors are nodes of a graph (hierarchical navigable small worlds, after Malkov and Yashunin). Each is linked to near ones
//! in several directions. A search enters through a sparse upper level, walks towards the query, and continues in the lowest
//! level, which has all nodes, while a nearer node may still be found ([`Reach`]).
//!
//! 1. [`Options`] of the index say which [`Similarity`] counts and how densely nodes are linked.
//! 2. A [`MemoryGraph`] takes vectors in, by many threads at once, and is searched meanwhile.
//! 3. [`write()`] makes a file of it (`docs/format/vector.md`); [`FileGraph`] opens the file through a [`Source`], loads nothing
//!    in advance, and reads only what a search touches.
//! 4. [`search`] returns the best few vectors of either graph; [`Nearest`] continues with the next best; [`Merge`] unites the
//!    results of several graphs.
//!
//! Each vector has an *ordinal*, the caller's number of its row. Equal vectors share a node. Vectors are never removed from a
//! graph; searches skip ordinals that are not accepted. Every ordinal is found in the end: nodes that no link leads to are
//! measured one by one after the walk.
//!
//! | module | contents |
//! | --- | --- |
//! | `options` | [`Options`] of an index, under Cassandra's names |
//! | `similarity` | [`Similarity`]: scores, and which vectors can be indexed |
//! | `kernel` | dot products and squared distances |
//! | `probe` | a vector that distances are measured from |
//! | `graph` | [`Graph`]: the interface of a graph for searches |
//! | `nearest` | the search |
//! | `plan` | [`Reach`]; the decision between walk and scan |
//! | `beam` | the simpler walk of upper levels and inserts |
//! | `select` | chooses the links that a node keeps |
//! | `memory` | [`MemoryGraph`]; adopting the links of another one |
//! | `file` | [`write()`], [`FileGraph`] |
//! | `merge` | [`Merge`] |
//! | `node_set`, `near` | a set of nodes; a node with its distance |
//!
//! When you change the content of a record or the tail, also change `docs/format/vector.md` and the version.

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

/// Maximum dimension of a vector; Cassandra's limit is lower.
pub const DIMENSION_MAX: u32 = 1 << 16;
