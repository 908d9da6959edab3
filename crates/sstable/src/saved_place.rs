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

use crate::error::Step;
use crate::key_cache::CachedKey;
use crate::reader::{Block, Location, PartitionIndex, RowIndexAt};
use crate::row::decode::ClusteringFormat;
use crate::row::format::times::{Times, encode_partition_deletion};
use crate::row::source::{ByteSource, Unplaced};
use crate::{DataStream, EncodingStats, Error, Format, Result, SSTable, Version};

const NOT_INDEXED: u8 = 0;
const WITH_BLOCKS: u8 = 1;
const WITH_ENTRY: u8 = 2;
/// Length of the length field before a key in Index.db.
const KEY_LENGTH_LEN: u64 = 2;

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
    times: Times,
    /// `None` if the clustering columns are unknown.
    clustering: Option<ClusteringFormat>,
}

impl IndexForm {
    /// The form for SSTables of this version with these clustering columns.
    pub fn of<'t>(version: Version, clustering: impl IntoIterator<Item = &'t CqlType>) -> Self {
        let fixed_lens = clustering.into_iter().map(CqlType::fixed_len).collect();
        Self {
            clustering: Some(ClusteringFormat::new(fixed_lens)),
            ..Self::of_unknown(version)
        }
    }

    /// The form for SSTables of this version with unknown clustering columns: blocks cannot be skipped.
    pub fn of_unknown(version: Version) -> Self {
        Self {
            times: Times::new(EncodingStats::NONE, version),
            clustering: None,
        }
    }

    fn skip_blocks(&self, count: u64, input: &mut impl ByteSource) -> Step<()> {
        let Some(clustering) = &self.clustering else {
            return Err(input.corrupt("no blocks, since the clustering columns are unknown"));
        };
        for _ in 0..count {
            Block::decode(clustering, &self.times, input)?;
        }
        Ok(())
    }
}

impl SavedPlace {
    /// Decodes a location; `None` if the bytes are damaged, or their end cannot be found.
    pub fn decode(input: &mut Reader<'_>, form: &IndexForm) -> Option<Self> {
        Self::decode_from(&mut Unplaced(input), form).ok()
    }

    fn decode_from(input: &mut impl ByteSource, form: &IndexForm) -> Step<Self> {
        let position = input.uvint()?;
        match input.u8()? {
            NOT_INDEXED => Ok(Self::NotIndexed { position }),
            WITH_BLOCKS => {
                input.uvint()?;
                form.times.partition_deletion(input)?;
                let blocks = input.uvint()?;
                form.skip_blocks(blocks, input)?;
                Ok(Self::Indexed { position })
            }
            WITH_ENTRY => {
                let entry_at = input.uvint()?;
                input.uvint()?;
                form.times.partition_deletion(input)?;
                input.uvint()?;
                input.uvint()?;
                Ok(Self::Entry { position, entry_at })
            }
            _ => Err(input.corrupt("a kind of location before it")),
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
        let version = self.descriptor().version;
        let deletion = Times::new(EncodingStats::NONE, version).partition_deletion(&mut input)?;
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
        let stored = encode_partition_deletion(version, &deletion, out);
        stored.map_err(|reason| Error::Refused(format!("the deletion of a partition: {reason}")))?;
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
            // A row (kind 4), then a bound with only the first value.
            out.bytes(&[4, 0, 2, b'a', b'b', 0, 0, 0, 1]);
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
