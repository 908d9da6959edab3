//! In a cluster: writes the rows of SSTables that were received or restored to all replicas, through the logs.

use std::collections::VecDeque;
use std::path::Path;

use ilion_engine::Load;
use ilion_query::Awaited;
use ilion_rows::Mutation;
use ilion_schema::TableId;

use super::handling::failed;
use super::{AdminError, FinishedLoad};
use crate::ServerNode;

/// Writes that are under way at a time.
const WRITES_MAX: usize = 32;
/// How often a write is tried. A write that is applied twice changes nothing.
const TRIES: u32 = 10;

/// Writes the rows of an SSTable that was received.
///
/// # Errors
/// The SSTable is damaged or does not fit the table; a row cannot be written. Then a part of the rows may be written.
pub(super) fn write_load(node: &ServerNode, load: &Load) -> Result<FinishedLoad, AdminError> {
    write_rows(node, |take| node.engine().read_load(load, take))?;
    Ok(FinishedLoad::default())
}

/// Writes the rows of all SSTables of a directory; returns the number of SSTables.
///
/// # Errors
/// As those of [`write_load`]. If an SSTable is damaged or does not fit the table, no row is written.
pub(super) fn write_directory(
    node: &ServerNode,
    table: TableId,
    directory: &Path,
) -> Result<usize, AdminError> {
    write_rows(node, |take| node.engine().read_directory(table, directory, take))
}

type Take<'t> = &'t mut dyn FnMut(Vec<Mutation>) -> ilion_engine::Result<()>;

/// Writes the rows that `read` passes on.
fn write_rows<T>(
    node: &ServerNode,
    read: impl FnOnce(Take<'_>) -> ilion_engine::Result<T>,
) -> Result<T, AdminError> {
    let mut writes = Writes {
        node,
        under_way: VecDeque::new(),
    };
    let read = read(&mut |mutations| writes.add(mutations));
    read.and_then(|read| writes.wait_for_all().map(|()| read))
        .map_err(failed)
}

struct Writes<'n> {
    node: &'n ServerNode,
    under_way: VecDeque<(Vec<Mutation>, Option<Awaited>)>,
}

impl Writes<'_> {
    fn add(&mut self, mutations: Vec<Mutation>) -> ilion_engine::Result<()> {
        if self.under_way.len() >= WRITES_MAX {
            self.wait_for_first()?;
        }
        let awaited = self.begin(&mutations)?;
        self.under_way.push_back((mutations, awaited));
        Ok(())
    }

    fn begin(&self, mutations: &[Mutation]) -> ilion_engine::Result<Option<Awaited>> {
        let begun = self.node.processor().write(mutations.to_vec());
        begun.map_err(|error| ilion_engine::Error::Refused(error.to_string()))
    }

    /// Waits for the oldest write, and repeats it if it fails.
    fn wait_for_first(&mut self) -> ilion_engine::Result<()> {
        let Some((mutations, mut awaited)) = self.under_way.pop_front() else {
            return Ok(());
        };
        for _ in 1..TRIES {
            match self.node.wait_until_durable(awaited) {
                Ok(()) => return Ok(()),
                Err(error) => tracing::warn!(%error, "rows of an SSTable are written again"),
            }
            awaited = self.begin(&mutations)?;
        }
        self.node.wait_until_durable(awaited)
    }

    fn wait_for_all(&mut self) -> ilion_engine::Result<()> {
        while !self.under_way.is_empty() {
            self.wait_for_first()?;
        }
        Ok(())
    }
}
