//! The interface of a graph for searches.

use crate::{Error, Near, Options, Probe};

/// A graph that can be searched: a [`crate::MemoryGraph`] or a [`crate::FileGraph`]. Nodes are numbered from 0.
pub trait Graph {
    /// The options that it was built with.
    fn options(&self) -> &Options;

    /// Dimension of its vectors; 0 before the first vector.
    fn dimension(&self) -> u32;

    /// Upper bound of the numbers of nodes. Some of these may not have a vector yet.
    fn node_count(&self) -> u32;

    /// A probe that measures distances from a query.
    fn probe(&self, query: &[f32]) -> Probe;

    /// Nodes of the lowest level at which a walk towards the probe starts.
    ///
    /// # Errors
    /// The file cannot be read.
    fn enter(&self, probe: &Probe) -> Result<Vec<Near>, Error>;

    /// Appends the neighbours of a node in the lowest level.
    ///
    /// # Errors
    /// The file cannot be read.
    fn links(&self, node: u32, into: &mut Vec<u32>) -> Result<(), Error>;

    /// Appends nodes with their distances, except those without a vector yet.
    ///
    /// # Errors
    /// The file cannot be read.
    fn measure(&self, probe: &Probe, nodes: &[u32], into: &mut Vec<Near>) -> Result<(), Error>;

    /// Appends the ordinals of a node's vector.
    ///
    /// # Errors
    /// The file cannot be read.
    fn ordinals(&self, node: u32, into: &mut Vec<u32>) -> Result<(), Error>;
}
