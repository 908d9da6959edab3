//! [`RingWork`]: a change of the ring that is under way in a run; the host ids of nodes.

use std::sync::Arc;

use parking_lot::Mutex;
use uuid::Uuid;

/// A change that is under way.
pub(super) enum RingWork {
    /// The node at this place joins.
    Joins(usize),
    /// The node at this place leaves, unless its request is refused or lost. True once the request has been answered.
    Leaves(usize, Arc<Mutex<bool>>),
    /// The node at this place has lost its power and its disk, at this time.
    IsLost(usize, i64),
}

/// The host id of the node at a place.
pub(super) fn host_of(place: usize) -> Uuid {
    Uuid::from_u128(100 + place as u128)
}
