//! A cursor over one partition.

use ilion_rows::{Cursor, PartitionHead, ReadError, Unfiltered};

use crate::Error;

/// One partition of an SSTable.
#[derive(Debug)]
pub struct PartitionCursor {}

impl Cursor for PartitionCursor {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        Err(Error::Refused("reading SSTables is not built yet".to_owned()).into())
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        Err(Error::Refused("reading SSTables is not built yet".to_owned()).into())
    }
}
