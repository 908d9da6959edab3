//! A sequence of bytes whose large parts are shared, not copied.
//!
//! An answer with a value of a hundred megabytes is built, cut into pieces and sent without a copy of the value. Short parts
//! are copied: that is cheaper than a part of their own.

use std::ops::Range;

use bytes::Bytes;

/// Byte strings of at least this length are shared. It is the size of several segments of the native protocol.
pub const SHARED_MIN: usize = 256 << 10;

/// A sequence of bytes.
#[derive(Clone, Debug, Default)]
pub struct Rope {
    /// All bytes except the large parts.
    own: Vec<u8>,
    /// Large parts, in order.
    shared: Vec<SharedPart>,
    shared_len: usize,
}

#[derive(Clone, Debug)]
struct SharedPart {
    /// Number of bytes of `own` that precede this part.
    after: usize,
    bytes: Bytes,
}

impl Rope {
    /// Number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.own.len() + self.shared_len
    }

    /// True if there are no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of bytes in large parts.
    #[inline]
    pub fn shared_len(&self) -> usize {
        self.shared_len
    }

    /// The buffer of the copied bytes, for appending. Requires: the caller does not change existing bytes, except those behind the
    /// last large part.
    #[inline]
    pub fn end(&mut self) -> &mut Vec<u8> {
        &mut self.own
    }

    /// Appends `bytes`; shares them if they are long.
    #[inline]
    pub fn push(&mut self, bytes: &Bytes) {
        if bytes.len() < SHARED_MIN {
            self.own.extend_from_slice(bytes);
        } else {
            self.share(bytes.clone());
        }
    }

    #[cold]
    fn share(&mut self, bytes: Bytes) {
        self.shared_len += bytes.len();
        self.shared.push(SharedPart {
            after: self.own.len(),
            bytes,
        });
    }

    /// Appends all bytes of another rope.
    pub fn append(&mut self, other: &Self) {
        let start = self.own.len();
        self.own.extend_from_slice(&other.own);
        self.shared_len += other.shared_len;
        let moved = other.shared.iter().map(|part| SharedPart {
            after: start + part.after,
            bytes: part.bytes.clone(),
        });
        self.shared.extend(moved);
    }

    /// The bytes in pieces; no piece is empty.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        let mut at = 0;
        let parts = self.shared.iter().map(Some).chain([None]);
        parts
            .flat_map(move |part| {
                let end = part.map_or(self.own.len(), |part| part.after);
                let own = &self.own[at..end];
                at = end;
                [Some(Piece::Own(own)), part.map(|part| Piece::Shared(&part.bytes))]
            })
            .flatten()
            .filter(|piece| !piece.bytes().is_empty())
    }

    /// The bytes in separate buffers. Copied parts share one allocation.
    pub fn into_buffers(mut self) -> Vec<Bytes> {
        let own = Bytes::from(std::mem::take(&mut self.own));
        let mut at = 0;
        let mut buffers = Vec::with_capacity(2 * self.shared.len() + 1);
        for part in self.shared {
            buffers.push(own.slice(at..part.after));
            buffers.push(part.bytes);
            at = part.after;
        }
        buffers.push(own.slice(at..));
        buffers.retain(|buffer| !buffer.is_empty());
        buffers
    }

    /// All bytes in one vector; they are copied if there are large parts.
    pub fn into_vec(self) -> Vec<u8> {
        if self.shared.is_empty() {
            return self.own;
        }
        let mut all = Vec::with_capacity(self.len());
        self.pieces()
            .for_each(|piece| all.extend_from_slice(piece.bytes()));
        all
    }
}

impl From<Vec<u8>> for Rope {
    fn from(own: Vec<u8>) -> Self {
        Self {
            own,
            ..Self::default()
        }
    }
}

/// A part of a [`Rope`].
#[derive(Clone, Copy, Debug)]
pub enum Piece<'r> {
    /// Copied bytes.
    Own(&'r [u8]),
    /// A large part.
    Shared(&'r Bytes),
}

impl<'r> Piece<'r> {
    /// The bytes of the part.
    pub fn bytes(self) -> &'r [u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }

    /// Appends a range of the part to a rope. A range of a large part is shared even if it is short.
    pub fn append_to(self, range: Range<usize>, out: &mut Rope) {
        match self {
            Self::Own(bytes) => out.own.extend_from_slice(&bytes[range]),
            Self::Shared(bytes) => out.share(bytes.slice(range)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn large(byte: u8) -> Bytes {
        vec![byte; SHARED_MIN].into()
    }

    #[test]
    fn bytes_come_in_the_order_in_which_they_were_appended() {
        let mut rope = Rope::default();
        rope.push(&large(1));
        rope.end().extend_from_slice(b"ab");
        rope.push(&Bytes::from_static(b"c"));
        rope.push(&large(2));
        rope.push(&large(3));
        let mut other = Rope::from(b"d".to_vec());
        other.append(&rope);
        let expected = [&b"d"[..], &large(1), b"abc", &large(2), &large(3)].concat();
        assert_eq!(other.len(), expected.len());
        assert_eq!(other.pieces().count(), 5);
        assert_eq!(other.clone().into_buffers().concat(), expected);
        assert_eq!(other.into_vec(), expected);
    }

    #[test]
    fn large_parts_are_not_copied() {
        let mut rope = Rope::default();
        let part = large(1);
        rope.push(&part);
        let mut out = Rope::default();
        rope.pieces()
            .for_each(|piece| piece.append_to(0..piece.bytes().len(), &mut out));
        let [Piece::Shared(found)] = out.pieces().collect::<Vec<_>>()[..] else {
            panic!("one part");
        };
        assert_eq!(found.as_ptr(), part.as_ptr());
    }
}
