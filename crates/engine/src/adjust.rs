//! Options that an operator changes while the engine runs.
//!
//! Those of compactions and caches are with their owners (`pace`, `saved_caches`, `backups`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arc_swap::ArcSwap;

use crate::large::LargeLimits;
use crate::{Engine, EngineOptions};

/// The values that hold now.
pub(crate) struct Adjusted {
    /// Files that a snapshot links per second; 0 is no limit.
    links_per_sec: AtomicU32,
    large: ArcSwap<LargeLimits>,
}

impl Adjusted {
    pub(crate) fn of(options: &EngineOptions) -> Self {
        Self {
            links_per_sec: AtomicU32::new(options.snapshots.links_per_sec.unwrap_or(0)),
            large: ArcSwap::from_pointee(options.large),
        }
    }

    /// `None` is no limit.
    pub(crate) fn links_per_sec(&self) -> Option<u32> {
        Some(self.links_per_sec.load(Ordering::Relaxed)).filter(|links| *links > 0)
    }

    pub(crate) fn large(&self) -> LargeLimits {
        **self.large.load()
    }
}

impl Engine {
    /// Limits how many files snapshots link per second, those that are being taken included; `None` is no limit.
    pub fn set_snapshot_links_per_sec(&self, links: Option<u32>) {
        self.shared
            .adjusted
            .links_per_sec
            .store(links.unwrap_or(0), Ordering::Relaxed);
    }

    /// Changes from which size on partitions, rows and cells are logged; for flushes and compactions that begin later.
    pub fn set_large_limits(&self, limits: LargeLimits) {
        self.shared.adjusted.large.store(Arc::new(limits));
    }
}
