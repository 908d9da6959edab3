//! [`Snapshots`]: the snapshots that the meta log has.
//!
//! A snapshot in the log is the knowledge of a node after some record: a newcomer starts from it if the beginning of the log is deleted. A
//! snapshot is too long for one record, so its sender logs it in parts, in order. This module does not read their bytes. A snapshot counts
//! once its last part is logged; only then may the log be deleted up to the record that the snapshot was taken after.

use bytes::Bytes;
use ilion_codec::{Error as CodecError, Reader, Writer};
use ilion_commitlog::Position;

use crate::fields::{decode_option, decode_place, encode_option, encode_place};
use crate::placement::Node;
use crate::refusal::Refusal;

/// Maximum number of parts of a snapshot.
pub const SNAPSHOT_PARTS_MAX: u32 = 1024;

/// A part of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotPart {
    /// The last record that the snapshot knows of.
    pub position: Position,
    /// Which part, beginning with 0.
    pub part: u32,
    /// Number of parts of the snapshot.
    pub parts: u32,
    /// Its bytes.
    pub bytes: Bytes,
}

impl SnapshotPart {
    pub(crate) fn encode(&self, out: &mut Writer) {
        encode_place(self.position, out);
        out.u32(self.part);
        out.u32(self.parts);
        out.bytes_vint(&self.bytes);
    }

    pub(crate) fn decode(input: &mut Reader<'_>) -> Result<Self, CodecError> {
        Ok(Self {
            position: decode_place(input)?,
            part: input.u32()?,
            parts: input.u32()?,
            bytes: Bytes::copy_from_slice(input.bytes_vint()?),
        })
    }
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Snapshots {
    /// The last record that the newest whole snapshot knows of.
    whole: Option<Position>,
    /// A snapshot whose last part is missing.
    open: Option<Open>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Open {
    sender: Node,
    position: Position,
    parts: u32,
    /// The part that must come next.
    next: u32,
}

impl Snapshots {
    /// The last record that the newest whole snapshot knows of. `None`: there is no snapshot.
    pub(crate) fn newest(&self) -> Option<Position> {
        self.whole
    }

    /// Notes a part. `last` is the last record before it.
    pub(crate) fn add(&mut self, sender: Node, part: &SnapshotPart, last: Position) -> Result<(), Refusal> {
        let is_valid = part.part < part.parts
            && part.parts <= SNAPSHOT_PARTS_MAX
            && part.position < last
            && self.whole.is_none_or(|whole| whole < part.position);
        if !is_valid {
            let rule = "a snapshot is newer than the one before, of the state at an earlier record, and has at most 1024 parts";
            return Err(Refusal::Invalid { rule });
        }
        let wanted = match &self.open {
            _ if part.part == 0 => 0,
            Some(open) if (open.sender, open.position, open.parts) == (sender, part.position, part.parts) => {
                open.next
            }
            // Another snapshot was begun meanwhile.
            _ => u32::MAX,
        };
        if part.part != wanted {
            let rule = "the parts of a snapshot come in their order, from one sender";
            return Err(Refusal::Invalid { rule });
        }
        let next = part.part + 1;
        if next < part.parts {
            self.open = Some(Open {
                sender,
                position: part.position,
                parts: part.parts,
                next,
            });
            return Ok(());
        }
        self.open = None;
        self.whole = Some(part.position);
        Ok(())
    }

    pub(crate) fn encode(&self, out: &mut Writer) {
        encode_option(self.whole, out, encode_place);
        encode_option(self.open.as_ref(), out, |open, out| {
            out.u32(open.sender);
            encode_place(open.position, out);
            out.u32(open.parts);
            out.u32(open.next);
        });
    }

    pub(crate) fn decode(input: &mut Reader<'_>) -> Result<Self, CodecError> {
        Ok(Self {
            whole: decode_option(input, decode_place)?,
            open: decode_option(input, |input| {
                Ok::<_, CodecError>(Open {
                    sender: input.u32()?,
                    position: decode_place(input)?,
                    parts: input.u32()?,
                    next: input.u32()?,
                })
            })?,
        })
    }
}
