//! The engine as its users see it: what was written is read, also after flushes, compactions, restarts and crashes.

#![expect(clippy::unwrap_used, reason = "a failing step is to stop the test")]

mod caches;
mod compaction;
mod copies;
mod costs;
mod crash;
mod indexes;
mod laws;
mod lifecycle;
mod loads;
mod model;
mod progress;
mod queues;
mod reads;
mod refresh;
mod refused;
mod rewrites;
mod set_aside;
mod shortage;
mod snapshots;
mod sorted;
mod stepped;
mod support;
mod tablets;
mod token_maps;
mod transfer;
