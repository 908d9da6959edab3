//! What a search needs of a graph.

use crate::{Error, Near, Options, Probe};

/// A graph that can be searched: a [`crate::MemoryGraph`] or a [`crate::FileGraph`]. Nodes are numbered from 0.
pub trait Graph {
    /// How it was built, and what a search of it is to be like.
    fn options(&self) -> &Options;

    /// Dimensions of its vectors; 0 if it never had one.
    fn dimension(&self) -> u32;

    /// How many nodes there are. Numbers of nodes are below, not all of them need have a vector yet.
    fn node_count(&self) -> u32;

    /// A query to measure distances from.
    fn probe(&self, query: &[f32]) -> Probe;

    /// Nodes of the lowest level that a walk towards the probe begins at.
    ///
    /// # Errors
    /// The file cannot be read.
    fn enter(&self, probe: &Probe) -> Result<Vec<Near>, Error>;

    /// Appends the nodes that a node is linked to, in the lowest level.
    ///
    /// # Errors
    /// The file cannot be read.
    fn links(&self, node: u32, into: &mut Vec<u32>) -> Result<(), Error>;

    /// Appends nodes with their distances; one that has no vector yet is left out.
    ///
    /// # Errors
    /// The file cannot be read.
    fn measure(&self, probe: &Probe, nodes: &[u32], into: &mut Vec<Near>) -> Result<(), Error>;

    /// Appends the ordinals that have the vector of a node.
    ///
    /// # Errors
    /// The file cannot be read.
    fn ordinals(&self, node: u32, into: &mut Vec<u32>) -> Result<(), Error>;
}
