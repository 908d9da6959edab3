//! [`Peers`]: the cluster as this node knows it, shared between the follower of the meta log and the sessions of clients.
//!
//! The follower publishes each new view. `system.local` is stored first, and then events are sent, so that a client that reads the
//! system tables because of an event finds the change.

use std::sync::{Arc, Weak};

use ilion_cluster::ClusterView;
use ilion_schema::SchemaEvent;
use parking_lot::Mutex;

/// The members of this node's cluster. A single node has no `Peers`.
pub struct Peers {
    /// Held only to swap or clone the pointer.
    view: Mutex<Arc<ClusterView>>,
    /// Called in this order. Locked during the calls, so that listeners get views in the order of the log.
    listeners: Mutex<Vec<Weak<dyn PeersListener>>>,
}

/// Acts on changes of the cluster.
pub trait PeersListener: Send + Sync {
    /// A new view was published.
    fn view_changed(&self, before: &ClusterView, view: &ClusterView);

    /// This node has applied a change of the schema.
    fn schema_changed(&self, events: &[SchemaEvent]);
}

impl Peers {
    /// Makes a new value with the first view.
    pub fn new(view: ClusterView) -> Arc<Self> {
        Arc::new(Self {
            view: Mutex::new(Arc::new(view)),
            listeners: Mutex::default(),
        })
    }

    /// The newest view. Cheap.
    pub fn view(&self) -> Arc<ClusterView> {
        self.view.lock().clone()
    }

    /// Replaces the view. If it has changed, calls all listeners before it returns. One thread at a time.
    pub fn publish(&self, view: ClusterView) {
        let mut listeners = self.listeners.lock();
        let view = Arc::new(view);
        let before = std::mem::replace(&mut *self.view.lock(), view.clone());
        if before == view {
            return;
        }
        listeners.retain(|listener| match listener.upgrade() {
            Some(listener) => {
                listener.view_changed(&before, &view);
                true
            }
            None => false,
        });
    }

    /// Tells all listeners that this node has applied a change of the schema, whichever node made it. Requires: the view with the new
    /// version of the schema is published.
    pub fn schema_changed(&self, events: &[SchemaEvent]) {
        for listener in self.listeners.lock().iter().filter_map(Weak::upgrade) {
            listener.schema_changed(events);
        }
    }

    /// Adds a listener. It is called after the listeners that were added before.
    pub fn listen(&self, listener: Weak<dyn PeersListener>) {
        self.listeners.lock().push(listener);
    }
}
