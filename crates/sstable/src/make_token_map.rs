//! Builds Tokens.db from the partition index, for an SSTable of another program or to replace a damaged map.

use std::sync::Arc;

use ilion_rows::DecoratedKey;

use crate::chunks::READ_AHEAD_BYTES;
use crate::open::OpenedParts;
use crate::reader::{IndexCursor, IndexWalker, PartitionIndex};
use crate::row::source::ByteSource as _;
use crate::tokens::{TokenMapWriter, Whole, fingerprint_of};
use crate::{Component, DataStream, Error, Result, Scan};

/// Number of partitions between two calls of `go_on`.
const PARTITIONS_PER_LOOK: u64 = 4096;

/// Writes a temporary file, and renames it when it is complete. Returns false if `go_on` stopped it, or if no map is possible.
pub(crate) fn make_token_map(parts: &OpenedParts, go_on: &mut dyn FnMut() -> bool) -> Result<bool> {
    let (env, descriptor) = (&*parts.env, &parts.descriptor);
    let temporary = descriptor.temporary_path(&Component::Tokens);
    let writer = TokenMapWriter::create(env, &temporary, parts.options.partitioner)?;
    let is_written = write(parts, writer, go_on);
    if !matches!(is_written, Ok(true)) {
        env.remove_file_if_any(&temporary)?;
        return is_written;
    }
    env.rename(&temporary, &descriptor.path(&Component::Tokens))?;
    env.sync_dir(&descriptor.directory)?;
    Ok(true)
}

fn write(parts: &OpenedParts, mut writer: TokenMapWriter, go_on: &mut dyn FnMut() -> bool) -> Result<bool> {
    let mut walk = IndexPass::over(parts)?;
    let (mut partitions, mut before) = (0, None);
    while let Some((key, position, entry_at)) = walk.next()? {
        if before.as_ref().is_some_and(|before| *before >= key) {
            let path = parts.descriptor.path(&Component::Data);
            return Err(Error::corrupt(&path, position, "ascending keys"));
        }
        writer.add(&key.token, position, entry_at)?;
        before = Some(key);
        partitions += 1;
        if partitions % PARTITIONS_PER_LOOK == 0 && !go_on() {
            return Ok(false);
        }
    }
    let data = parts.data()?;
    let whole = Whole {
        first_key: &parts.ends.first.key,
        last_key: &parts.ends.last.key,
        data_length: data.data_length(),
        stored_length: data.stored_length(),
        fingerprint: fingerprint_of(&parts.stats),
    };
    if before.is_none_or(|last| last != parts.ends.last) {
        let path = parts.descriptor.path(&Component::Data);
        return Err(Error::corrupt(&path, 0, "an index up to the last key"));
    }
    writer.finish(&*parts.env, &whole)
}

/// The partitions in order, with the index positions of entries that have a row index.
struct IndexPass<'p> {
    parts: &'p OpenedParts,
    cursor: IndexCursor,
    /// Reads keys from Data.db that are not in the index.
    data: DataStream,
}

impl<'p> IndexPass<'p> {
    fn over(parts: &'p OpenedParts) -> Result<Self> {
        let index = parts.index()?;
        let cursor = match index {
            PartitionIndex::Sorted { index, .. } => {
                let index = Arc::new(index.reopen_for_scan(&*parts.env)?);
                IndexCursor::Sorted(IndexWalker::sequential(&index, 0, READ_AHEAD_BYTES))
            }
            PartitionIndex::Trie(_) => index.walk_above(
                &ilion_rows::KeyBound::Start,
                Scan::Sequential,
                parts.options.partitioner,
                &*parts.env,
            )?,
        };
        let data = Arc::new(parts.data()?.reopen_for_scan(&*parts.env)?);
        let partition_bytes = data.data_length() / parts.ends.partitions.max(1);
        let data = if partition_bytes < READ_AHEAD_BYTES {
            DataStream::sequential(data, 0, READ_AHEAD_BYTES)
        } else {
            DataStream::cached(data, 0)
        };
        Ok(Self { parts, cursor, data })
    }

    fn next(&mut self) -> Result<Option<(DecoratedKey, u64, Option<u64>)>> {
        let at = match &self.cursor {
            IndexCursor::Sorted(walker) => walker.position(),
            IndexCursor::Trie(_) | IndexCursor::Map(_) => 0,
        };
        let Some(entry) = self.cursor.next_entry()? else {
            return Ok(None);
        };
        let location = entry.location;
        let entry_at = match &self.cursor {
            IndexCursor::Sorted(_) => location.row_index.map(|_| at),
            IndexCursor::Trie(_) | IndexCursor::Map(_) => location.entry_at,
        };
        let key = match entry.key {
            Some(key) => key,
            None => {
                self.data.seek(location.position);
                let len = usize::from(u16::from_be_bytes(self.data.array()?));
                self.data.take(len)?
            }
        };
        // A copy, since a slice would keep a whole window in memory.
        let key = bytes::Bytes::copy_from_slice(&key);
        let key = DecoratedKey::new(self.parts.options.partitioner, key);
        Ok(Some((key, location.position, entry_at)))
    }
}
