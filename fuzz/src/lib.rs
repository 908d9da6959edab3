//! What the fuzz targets do with their bytes. A function here may panic only if the code under test is wrong.

pub mod cluster;
pub mod commitlog;
pub mod cql;
pub mod frame;
pub mod mutation_codec;
pub mod nodes;
pub mod notation;
pub mod sstable;
pub mod types;
pub mod vector;

/// Takes the first byte as a choice.
pub(crate) fn split_choice(data: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = data.split_first()?;
    Some((usize::from(*first), rest))
}
