//! Locations of partitions in the form of Cassandra 5.0's saved key cache.
//!
//! ```text
//! place := position:uvint 0:u8                                                              no promoted index
//!        | position:uvint 1:u8 header_length:uvint deletion count:uvint block*              a small one, all of it
//!        | position:uvint 2:u8 entry_at:uvint header_length:uvint deletion count:uvint size:uvint
//! ```
//!
//! `position` is in Data.db; `entry_at` is in Index.db, behind the key; `size` is the size of the blocks and their offsets.
//! Deletion and blocks are as in the promoted index of the SSTable's version. Ilion writes the first and the last form. A
//! loaded location is valid only after the key was found at `position`, and, for the last form, an entry with this position in
//! Index.db.

use ilion_codec::{Reader, Writer, unsigned_vint_len};
use ilion_rows::DecoratedKey;
use ilion_types::CqlType;

use crate::key_cache::CachedKey;
use crate::reader::{Location, PartitionIndex, RowIndexAt};
use crate::{DataStream, Format, Result, SSTable, Version};

const NOT_INDEXED: u8 = 0;
const WITH_BLOCKS: u8 = 1;
const WITH_ENTRY: u8 = 2;
/// Length of the length field before a key in Index.db.
const KEY_LENGTH_LEN: u64 = 2;
/// The kind of a row's clustering in an index.
const KIND_ROW: u8 = 4;
const VALUES_A_BATCH: usize = 32;
const DELETION_LEN: usize = 12;
/// The deletion of a live partition in versions from `oa` on: one byte.
const NOT_DELETED: u8 = 0x80;

/// A saved location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedPlace {
    /// The partition starts at this position and has no promoted index.
    NotIndexed {
        /// Position in Data.db.
        position: u64,
    },
    /// The partition has a promoted index, whose offset is not saved.
    Indexed {
        /// Position in Data.db.
        position: u64,
    },
    /// The partition has a promoted index, in the entry at `entry_at`.
    Entry {
        /// Position in Data.db.
        position: u64,
        /// Offset in Index.db, behind the key.
        entry_at: u64,
    },
}

/// The facts that determine the form of a promoted index.
#[derive(Clone, Debug)]
pub struct IndexForm {
    version: Version,
    /// Fixed length of each clustering column's values (`None`: stored with their length); `None` if the columns are unknown.
    fixed_lens: Option<Vec<Option<usize>>>,
}

impl IndexForm {
    /// The form for SSTables of this version with these clustering columns.
    pub fn of<'t>(version: Version, clustering: impl IntoIterator<Item = &'t CqlType>) -> Self {
        let fixed_lens = clustering.into_iter().map(CqlType::fixed_len).collect();
        Self {
            version,
            fixed_lens: Some(fixed_lens),
        }
    }

    /// The form for SSTables of this version with unknown clustering columns: blocks cannot be skipped.
    pub fn of_unknown(version: Version) -> Self {
        Self {
            version,
            fixed_lens: None,
        }
    }

    fn skip_deletion(&self, input: &mut Reader<'_>) -> Option<()> {
        let is_short = self.version.is_oa_or_later() && input.peek_u8().ok()? & NOT_DELETED != 0;
        input.skip(if is_short { 1 } else { DELETION_LEN }).ok()
    }

    fn skip_block(&self, input: &mut Reader<'_>) -> Option<()> {
        self.skip_prefix(input)?;
        self.skip_prefix(input)?;
        input.uvint().ok()?;
        input.svint().ok()?;
        match input.bool().ok()? {
            true => self.skip_deletion(input),
            false => Some(()),
        }
    }

    fn skip_prefix(&self, input: &mut Reader<'_>) -> Option<()> {
        let fixed_lens = self.fixed_lens.as_ref()?;
        let count = match input.u8().ok()? {
            KIND_ROW => fixed_lens.len(),
            _ => usize::from(input.u16().ok()?),
        };
        for batch in fixed_lens.get(..count)?.chunks(VALUES_A_BATCH) {
            let header = input.uvint().ok()?;
            for (number, fixed_len) in batch.iter().enumerate() {
                match (header >> (2 * number) & 3, fixed_len) {
                    (0, Some(len)) => input.skip(*len).ok()?,
                    (0, None) => {
                        input.bytes_vint().ok()?;
                    }
                    _ => {}
                }
            }
        }
        Some(())
    }
}

impl SavedPlace {
    /// Decodes a location; `None` if the bytes are damaged, or their end cannot be found.
    pub fn decode(input: &mut Reader<'_>, form: &IndexForm) -> Option<Self> {
        let position = input.uvint().ok()?;
        match input.u8().ok()? {
            NOT_INDEXED => Some(Self::NotIndexed { position }),
            WITH_BLOCKS => {
                input.uvint().ok()?;
                form.skip_deletion(input)?;
                let blocks = input.uvint().ok()?;
                (0..blocks).try_for_each(|_| form.skip_block(input))?;
                Some(Self::Indexed { position })
            }
            WITH_ENTRY => {
                let entry_at = input.uvint().ok()?;
                input.uvint().ok()?;
                form.skip_deletion(input)?;
                input.uvint().ok()?;
                input.uvint().ok()?;
                Some(Self::Entry { position, entry_at })
            }
            _ => None,
        }
    }
}

impl SSTable {
    /// Writes the location of a partition of this SSTable. Returns false if Cassandra has no form for it.
    ///
    /// # Errors
    /// Index.db is damaged or cannot be read.
    pub fn save_place(&self, cached: &CachedKey, out: &mut Writer) -> Result<bool> {
        if self.descriptor().format != Format::Big {
            return Ok(false);
        }
        let location = &cached.location;
        let index = self.parts().index()?;
        let promoted = match (&location.row_index, location.entry_at) {
            (None, Some(entry_at)) => index.row_index_of_entry(entry_at, location.position)?,
            (at, _) => at.clone(),
        };
        match promoted {
            None => {
                out.uvint(location.position);
                out.u8(NOT_INDEXED);
                Ok(true)
            }
            Some(RowIndexAt::Promoted { position, size }) => {
                self.save_entry(location.position, index, position, size, out)
            }
            Some(RowIndexAt::Trie { .. }) => Ok(false),
        }
    }

    fn save_entry(
        &self,
        position: u64,
        index: &PartitionIndex,
        promoted_at: u64,
        promoted_size: u64,
        out: &mut Writer,
    ) -> Result<bool> {
        let mut input = DataStream::cached(index.row_indexes().clone(), promoted_at);
        let header_length = input.uvint()?;
        let first = input.u8()?;
        let is_short = self.descriptor().version.is_oa_or_later() && first & NOT_DELETED != 0;
        let rest = input.take(if is_short { 0 } else { DELETION_LEN - 1 })?;
        let blocks = input.uvint()?;
        let numbers = unsigned_vint_len(position) + unsigned_vint_len(promoted_size);
        let (Some(entry_at), Some(blocks_size)) = (
            promoted_at.checked_sub(numbers as u64),
            promoted_size.checked_sub(input.position() - promoted_at),
        ) else {
            return Err(input.corrupt("a promoted index of the size before it"));
        };
        out.uvint(position);
        out.u8(WITH_ENTRY);
        out.uvint(entry_at);
        out.uvint(header_length);
        out.u8(first);
        out.bytes(&rest);
        out.uvint(blocks);
        out.uvint(blocks_size);
        Ok(true)
    }

    /// Adds a saved location to the key cache, without I/O if the location is complete. Returns false if the key cache is not used for
    /// this SSTable, or if the SSTable certainly does not have the partition.
    ///
    /// # Errors
    /// As [`SSTable::load_key`].
    pub fn load_place(&self, key: &DecoratedKey, saved: SavedPlace) -> Result<bool> {
        let (position, entry_at) = match saved {
            SavedPlace::Indexed { .. } => return self.load_key(key),
            SavedPlace::NotIndexed { position } => (position, None),
            SavedPlace::Entry { position, entry_at } => {
                let key_len = KEY_LENGTH_LEN + key.key.len() as u64;
                let Some(entry_at) = entry_at.checked_sub(key_len) else {
                    return Ok(false);
                };
                (position, Some(entry_at))
            }
        };
        let is_here = position < self.data_length() && !self.is_outside(key);
        let (Some((cache, number)), true) = (&self.parts().cached_as, is_here && self.uses_key_cache())
        else {
            return Ok(false);
        };
        let location = Location {
            position,
            is_certain: false,
            row_index: None,
            entry_at,
        };
        cache.insert(*number, &key.key, location);
        Ok(true)
    }

    /// Checks a loaded location, and remembers the result. A wrong location is removed from the cache.
    #[cold]
    pub(crate) fn check_loaded(
        &self,
        key: &DecoratedKey,
        location: Location,
        has_key_at: &mut dyn FnMut(u64) -> Result<bool>,
    ) -> Result<Option<Location>> {
        let mut check = || -> Result<Option<Location>> {
            if !has_key_at(location.position)? {
                return Ok(None);
            }
            let row_index = match location.entry_at {
                Some(at) => {
                    let index = self.parts().index()?;
                    index.row_index_of_entry(at, location.position)?
                }
                None => None,
            };
            Ok(Some(Location {
                is_certain: true,
                row_index,
                entry_at: None,
                position: location.position,
            }))
        };
        let checked = match check() {
            Err(error) if error.is_corrupt() => None,
            checked => checked?,
        };
        match (&checked, &self.parts().cached_as) {
            (Some(location), _) => self.remember(key, location),
            (None, Some((cache, number))) => cache.remove(*number, &key.key),
            (None, None) => {}
        }
        Ok(checked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small promoted index with two blocks over `(text, int)`, as Cassandra saves it.
    fn with_blocks(version: Version) -> Vec<u8> {
        let deletion: &[u8] = if version.is_oa_or_later() {
            &[0x80]
        } else {
            &[0x7f; 12]
        };
        let mut out = Writer::new();
        out.uvint(77);
        out.u8(WITH_BLOCKS);
        out.uvint(9);
        out.bytes(deletion);
        out.uvint(2);
        for has_open in [false, true] {
            // A row, then a bound with only the first value.
            out.bytes(&[KIND_ROW, 0, 2, b'a', b'b', 0, 0, 0, 1]);
            out.bytes(&[6, 0, 1, 0, 1, b'c']);
            out.uvint(300);
            out.svint(-5);
            out.bool(has_open);
            if has_open {
                out.bytes(&[0x01; 12]);
            }
        }
        out.bytes(b"next");
        out.into_vec()
    }

    #[test]
    fn blocks_that_a_cassandra_saved_are_passed_over_as_far_as_they_go() {
        for version in [Version::NB, Version::OA] {
            let bytes = with_blocks(version);
            let form = IndexForm::of(version, &[CqlType::Text, CqlType::Int]);
            let mut input = Reader::new(&bytes);
            let place = SavedPlace::decode(&mut input, &form);
            assert_eq!(place, Some(SavedPlace::Indexed { position: 77 }));
            assert_eq!(input.rest(), b"next");
            let unknown = IndexForm::of_unknown(version);
            assert_eq!(SavedPlace::decode(&mut Reader::new(&bytes), &unknown), None);
            for len in 0..bytes.len() - 4 {
                assert_eq!(SavedPlace::decode(&mut Reader::new(&bytes[..len]), &form), None);
            }
        }
    }
}
