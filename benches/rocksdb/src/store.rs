//! What is measured of a store.

/// Gets a key and its value.
pub type Visit<'a> = &'a mut dyn FnMut(&[u8], &[u8]);

/// A store with sorted keys.
pub trait Store: Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Writes a row.
    fn put(&self, key: &[u8], value: &[u8]) -> anyhow::Result<()>;

    /// Reads a row.
    fn get(&self, key: &[u8], visit: Visit<'_>) -> anyhow::Result<()>;

    /// Reads so many rows in the store's order, from this key on.
    fn range(&self, key: &[u8], limit: u32, visit: Visit<'_>) -> anyhow::Result<()>;

    /// Returns when everything is on disk and no compaction is due.
    fn settle(&self) -> anyhow::Result<()>;

    /// Sorted files.
    fn files(&self) -> anyhow::Result<u64>;
}

/// What a store may take.
pub struct Memory {
    pub memtables_mib: u64,
    pub blocks_mib: u64,
}
