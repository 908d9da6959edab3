//! [`Progress`]: what a tool may show while it works.

/// Hears what is done. Called by several threads.
pub trait Progress: Send + Sync {
    /// A part of the work begins, which has so many bytes.
    fn begin(&self, step: &str, bytes: u64);
    /// So many bytes of it are done.
    fn done(&self, bytes: u64);
    /// It has ended.
    fn finish(&self);
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _step: &str, _bytes: u64) {}
    fn done(&self, _bytes: u64) {}
    fn finish(&self) {}
}
