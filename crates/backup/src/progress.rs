//! [`Progress`]: receives the progress of a tool.

/// Receives the progress. Several threads may call it.
pub trait Progress: Send + Sync {
    /// A step of the work begins; `bytes` is its size.
    fn begin(&self, step: &str, bytes: u64);
    /// That many more bytes of the step are done.
    fn done(&self, bytes: u64);
    /// The step has ended.
    fn finish(&self);
}

/// Ignores the progress.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _step: &str, _bytes: u64) {}
    fn done(&self, _bytes: u64) {}
    fn finish(&self) {}
}
