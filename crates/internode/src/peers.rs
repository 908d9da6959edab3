//! [`Peers`]: what the connections need to know of the cluster.

use std::net::SocketAddr;

use ilion_cluster::Node;

use crate::hello::Hello;

/// What a node knows of the others. Any thread may call its methods; all of them are cheap.
pub trait Peers: Send + Sync {
    /// Where a node listens for others; `None` if it is no member.
    fn address(&self, node: Node) -> Option<SocketAddr>;

    /// Decides whether a node of this cluster may connect, after the rules of [`judge`](crate::judge).
    ///
    /// # Errors
    /// The node may not connect; the reason goes to both logs.
    fn admit(&self, _hello: &Hello) -> Result<(), String> {
        Ok(())
    }
}
