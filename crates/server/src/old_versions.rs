//! [`OldVersions`]: whether clients may use versions of the protocol before the newest one.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ilion_protocol::Version;

/// The current value of the setting `native_transport_allow_older_protocols`. It may change while the node runs.
#[derive(Debug)]
pub struct OldVersions {
    are_allowed: AtomicBool,
}

impl OldVersions {
    /// Starts with this value of the setting.
    pub fn new(are_allowed: bool) -> Self {
        Self {
            are_allowed: AtomicBool::new(are_allowed),
        }
    }

    pub(crate) fn allow(&self, are_allowed: bool) {
        self.are_allowed.store(are_allowed, Relaxed);
    }

    /// The oldest version that a client may use.
    pub(crate) fn oldest(&self) -> Version {
        match self.are_allowed.load(Relaxed) {
            true => Version::SUPPORTED[0],
            false => Version::NEWEST,
        }
    }
}
