//! Options that an operator changes while the engine runs.
//!
//! Options of compactions and caches are in the modules that use them (`pace`, `saved_caches`, `backups`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arc_swap::ArcSwap;

use crate::EngineOptions;
use crate::large::LargeLimits;

/// The current values.
pub(crate) struct Adjusted {
    /// Files that a snapshot links per second; 0 is no limit.
    links_per_sec: AtomicU32,
    large: ArcSwap<LargeLimits>,
    /// Size of the blocks of row indexes; 0 is the default of the format.
    column_index_bytes: AtomicU32,
}

impl Adjusted {
    pub(crate) fn of(options: &EngineOptions) -> Self {
        Self {
            links_per_sec: AtomicU32::new(options.snapshots.links_per_sec.unwrap_or(0)),
            large: ArcSwap::from_pointee(options.large),
            column_index_bytes: AtomicU32::new(options.column_index_bytes.unwrap_or(0)),
        }
    }

    /// The limit; `None` if there is none.
    pub(crate) fn links_per_sec(&self) -> Option<u32> {
        Some(self.links_per_sec.load(Ordering::Relaxed)).filter(|links| *links > 0)
    }

    pub(crate) fn large(&self) -> LargeLimits {
        **self.large.load()
    }

    /// The size in bytes; `None` for the default of the format.
    pub(crate) fn column_index_bytes(&self) -> Option<u32> {
        Some(self.column_index_bytes.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
    }

    pub(crate) fn set_column_index_bytes(&self, bytes: Option<u32>) {
        self.column_index_bytes
            .store(bytes.unwrap_or(0), Ordering::Relaxed);
    }

    pub(crate) fn set_links_per_sec(&self, links: Option<u32>) {
        self.links_per_sec.store(links.unwrap_or(0), Ordering::Relaxed);
    }

    pub(crate) fn set_large(&self, limits: LargeLimits) {
        self.large.store(Arc::new(limits));
    }
}
