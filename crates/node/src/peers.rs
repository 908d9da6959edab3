//! [`Peers`]: the cluster as this node knows it, shared between what follows the meta log and what clients ask.
//!
//! Who follows the log publishes each new view. `system.local` is stored first, then clients are told, so that a client that reads the
//! system tables because of an event finds what the event was about.

use std::sync::{Arc, Weak};

use ilion_cluster::ClusterView;
use ilion_schema::SchemaEvent;
use parking_lot::Mutex;

/// The members of the cluster of this node. A single node has none.
pub struct Peers {
    /// Held only to swap or clone the pointer.
    view: Mutex<Arc<ClusterView>>,
    /// Whom to tell, in this order. Held while they are told, so that they see views in the order of the log.
    listeners: Mutex<Vec<Weak<dyn PeersListener>>>,
}

/// Who acts on changes of the cluster.
pub trait PeersListener: Send + Sync {
    /// There is a new view.
    fn view_changed(&self, before: &ClusterView, view: &ClusterView);

    /// This node has applied a change of the schema.
    fn schema_changed(&self, events: &[SchemaEvent]);
}

impl Peers {
    /// Starts with a view.
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

    /// Replaces the view, and tells clients what changed. Returns when they are told; one thread at a time.
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

    /// Tells clients that this node has applied a change of the schema, whichever node made it. Requires: the view with the new version of
    /// the schema is published.
    pub fn schema_changed(&self, events: &[SchemaEvent]) {
        for listener in self.listeners.lock().iter().filter_map(Weak::upgrade) {
            listener.schema_changed(events);
        }
    }

    /// Tells this listener of changes, after those that were here before.
    pub fn listen(&self, listener: Weak<dyn PeersListener>) {
        self.listeners.lock().push(listener);
    }
}
