//! A cursor over the partitions of a range.

use ilion_rows::{Cursor, PartitionHead, ReadError, Unfiltered};

use crate::Error;

/// Partitions of an SSTable that lie in a range.
#[derive(Debug)]
pub struct RangeCursor {}

impl Cursor for RangeCursor {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        Err(Error::Refused("reading SSTables is not built yet".to_owned()).into())
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        Err(Error::Refused("reading SSTables is not built yet".to_owned()).into())
    }
}
