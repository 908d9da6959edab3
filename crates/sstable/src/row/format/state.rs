//! The state of a row: what a row has besides its clustering and its columns, and the flags that announce it.
//!
//! ```text
//! flags := first:u8 [extended:u8]                 `extended` only if `first` has HAS_EXTENSION
//! state := [ts] [ttl expires:secs] [deletion]     the start of a row's body, in this order
//! ```
//!
//! Encoders, decoders, plain rows and tools take the state from here. So a new field of a row needs a flag, a member of [`RowState`]
//! and of [`Row`], its lines in this file, a rule for merges (`Row::merge`), and a line in each printer of rows (`dump`). Rows with its
//! flag are not plain: a copy of a plain row would lose it.

use ilion_codec::Append;
use ilion_rows::{DeletionTime, Liveness, NO_TIMESTAMP, NO_TTL, Row};

use super::VINT_BYTES_MAX;
use super::times::{Times, show_local_time, show_timestamp, show_ttl};
use crate::error::Step;
use crate::row::rest::Rest;
use crate::row::source::ByteSource;
use crate::{DataStream, EncodingStats, Error};

use unfiltered_flag::{
    END_OF_PARTITION, HAS_ALL_COLUMNS, HAS_COMPLEX_DELETION, HAS_DELETION, HAS_EXTENSION, HAS_TIMESTAMP,
    HAS_TTL, IS_MARKER,
};

/// Bits of the first byte of a row, a marker, or the end of a partition.
pub mod unfiltered_flag {
    /// The byte that ends a partition.
    pub const END_OF_PARTITION: u8 = 0x01;
    /// The byte that starts a range tombstone marker.
    pub const IS_MARKER: u8 = 0x02;
    /// The row has a liveness with this timestamp.
    pub const HAS_TIMESTAMP: u8 = 0x04;
    /// The row's liveness has a TTL and an expiration.
    pub const HAS_TTL: u8 = 0x08;
    /// The row was deleted.
    pub const HAS_DELETION: u8 = 0x10;
    /// The row has all columns of the header; no subset follows.
    pub const HAS_ALL_COLUMNS: u8 = 0x20;
    /// Each complex column of the row starts with a deletion.
    pub const HAS_COMPLEX_DELETION: u8 = 0x40;
    /// A second byte of flags follows: [`super::extended_flag`].
    pub const HAS_EXTENSION: u8 = 0x80;

    /// Names for people.
    pub const NAMES: [(u8, &str); 8] = [
        (END_OF_PARTITION, "end of the partition"),
        (IS_MARKER, "range tombstone marker"),
        (HAS_TIMESTAMP, "has timestamp"),
        (HAS_TTL, "has TTL"),
        (HAS_DELETION, "has deletion"),
        (HAS_ALL_COLUMNS, "has all columns"),
        (HAS_COMPLEX_DELETION, "has complex deletions"),
        (HAS_EXTENSION, "has more flags"),
    ];
}

/// Bits of the second flags byte.
pub mod extended_flag {
    /// The row is a static row.
    pub const IS_STATIC: u8 = 0x01;
    /// A newer insert can shadow the row's deletion: rows of views of Cassandra 3.
    pub const HAS_SHADOWABLE_DELETION: u8 = 0x02;

    /// Names for people.
    pub const NAMES: [(u8, &str); 2] = [(IS_STATIC, "static"), (HAS_SHADOWABLE_DELETION, "shadowable")];
}

/// Both bytes of flags of a row, without [`HAS_EXTENSION`]: the second byte is in the upper half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowFlags(u16);

impl RowFlags {
    /// The flags of a row with a timestamp, no other times, and all columns.
    pub(in crate::row) const USUAL: Self = Self::of(HAS_TIMESTAMP | HAS_ALL_COLUMNS, 0);
    /// The flags that a plain row may have.
    const PLAIN: Self = Self::USUAL;
    /// The extended flags that a row with a clustering may have.
    const EXTENDED_OF_REGULAR: u8 = 0;

    const fn of(first: u8, extended: u8) -> Self {
        Self(u16::from_le_bytes([first & !HAS_EXTENSION, extended]))
    }

    /// True if any of these bits of the first byte is set.
    #[inline]
    fn has(self, bits: u8) -> bool {
        self.0 & u16::from(bits) != 0
    }

    /// True if the row's state has nothing but a timestamp, or nothing at all, and no complex column has a deletion.
    #[inline]
    pub(in crate::row) fn are_common(self) -> bool {
        self.0 & !Self::USUAL.0 == 0
    }

    /// True if a row with these flags can be plain (see [`ilion_rows::PlainRow`]).
    #[inline]
    pub(in crate::row) fn is_plain(self) -> bool {
        self.0 & !Self::PLAIN.0 == 0
    }

    #[inline]
    pub(in crate::row) fn has_timestamp(self) -> bool {
        self.has(HAS_TIMESTAMP)
    }

    #[inline]
    pub(in crate::row) fn has_all_columns(self) -> bool {
        self.has(HAS_ALL_COLUMNS)
    }

    #[inline]
    pub(in crate::row) fn has_complex_deletions(self) -> bool {
        self.has(HAS_COMPLEX_DELETION)
    }

    #[inline]
    #[must_use]
    pub(in crate::row) fn with_all_columns(self) -> Self {
        Self(self.0 | u16::from(HAS_ALL_COLUMNS))
    }

    #[inline]
    #[must_use]
    pub(in crate::row) fn with_complex_deletions(self) -> Self {
        Self(self.0 | u16::from(HAS_COMPLEX_DELETION))
    }

    /// These flags, for a static row.
    #[must_use]
    pub(in crate::row) fn of_static(self) -> Self {
        let [first, extended] = self.0.to_le_bytes();
        Self::of(first, extended | extended_flag::IS_STATIC)
    }

    #[inline]
    pub(in crate::row) fn encode(self, out: &mut impl Append) {
        match self.0.to_le_bytes() {
            [first, 0] => out.u8(first),
            [first, extended] => out.array([first | HAS_EXTENSION, extended]),
        }
    }

    /// The flags of a regular row, whose first byte was already read.
    #[inline(always)]
    pub(in crate::row) fn decode(first: u8, input: &mut DataStream) -> Step<Self> {
        match first & HAS_EXTENSION {
            0 => Ok(Self::of(first, 0)),
            _ => Self::decode_extended(first, input),
        }
    }

    #[cold]
    fn decode_extended(first: u8, input: &mut DataStream) -> Step<Self> {
        let extended = input.u8()?;
        if extended & extended_flag::HAS_SHADOWABLE_DELETION != 0 {
            let reason = format!(
                "{}: at byte {}: a shadowable deletion of an old materialized view is not supported",
                input.chunks().path().display(),
                input.position()
            );
            return Err(Error::Refused(reason).into());
        }
        match Self::of_regular(first, extended) {
            Some(flags) => Ok(flags),
            None => Err(ByteSource::corrupt(
                input,
                "a regular row without an extension before it",
            )),
        }
    }

    /// The flags of a regular row with an extension; `None` if regular rows have no such extension.
    fn of_regular(first: u8, extended: u8) -> Option<Self> {
        let is_known = extended != 0 && extended & !Self::EXTENDED_OF_REGULAR == 0;
        is_known.then_some(Self::of(first, extended))
    }

    pub(in crate::row) fn decode_static(input: &mut DataStream) -> Step<Self> {
        let first = input.u8()?;
        if first & (END_OF_PARTITION | IS_MARKER) == 0 && first & HAS_EXTENSION != 0 {
            let extended = input.u8()?;
            if extended & extended_flag::IS_STATIC != 0 {
                return Ok(Self::of(first, extended));
            }
        }
        Err(ByteSource::corrupt(input, "a static row before it"))
    }

    /// Takes the flags of a regular row from bytes in memory; `None` if no regular row starts here.
    #[inline(always)]
    pub(in crate::row) fn at_hand(rest: &mut Rest<'_>) -> Option<Self> {
        let first = rest.u8()?;
        match first & (END_OF_PARTITION | IS_MARKER | HAS_EXTENSION) {
            0 => Some(Self::of(first, 0)),
            HAS_EXTENSION => Self::of_regular(first, rest.u8()?),
            _ => None,
        }
    }
}

/// What a row has besides its clustering and its columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowState {
    pub(in crate::row) liveness: Liveness,
    pub(in crate::row) deletion: DeletionTime,
}

impl RowState {
    pub(in crate::row) const NONE: Self = Self::new(Liveness::NONE, DeletionTime::LIVE);

    /// Maximum length of an encoded state: five times.
    pub(in crate::row) const BYTES_MAX: usize = 5 * VINT_BYTES_MAX;

    /// The state of a row that has nothing else.
    #[inline]
    pub(in crate::row) const fn new(liveness: Liveness, deletion: DeletionTime) -> Self {
        Self { liveness, deletion }
    }

    #[inline]
    pub(in crate::row) fn of(row: &Row) -> Self {
        Self {
            liveness: row.liveness,
            deletion: row.deletion,
        }
    }

    /// Gives a row this state.
    #[inline]
    pub(in crate::row) fn put_into(self, row: &mut Row) {
        row.liveness = self.liveness;
        row.deletion = self.deletion;
    }

    #[inline]
    pub(in crate::row) fn is_none(&self) -> bool {
        self.liveness.is_none() && self.deletion.is_live()
    }

    /// True if the state is that of a row that was inserted at `micros`, without a TTL, and nothing else.
    #[inline]
    pub(in crate::row) fn is_insert_at(&self, micros: i64) -> bool {
        self.liveness == Liveness::live(micros) && !self.liveness.is_none() && self.deletion.is_live()
    }

    /// The flags that announce this state.
    #[inline]
    pub(in crate::row) fn flags(&self) -> RowFlags {
        let mut first = 0;
        if !self.liveness.is_none() {
            first |= HAS_TIMESTAMP;
            if self.liveness.ttl_secs != NO_TTL {
                first |= HAS_TTL;
            }
        }
        if !self.deletion.is_live() {
            first |= HAS_DELETION;
        }
        RowFlags::of(first, 0)
    }

    #[inline]
    pub(in crate::row) fn encode(&self, times: &Times, out: &mut impl Append) {
        if !self.liveness.is_none() {
            times.encode_liveness(&self.liveness, out);
        }
        if !self.deletion.is_live() {
            times.encode_deletion(&self.deletion, out);
        }
    }

    #[inline(always)]
    pub(in crate::row) fn decode(flags: RowFlags, times: &Times, input: &mut impl ByteSource) -> Step<Self> {
        let mut state = Self::NONE;
        if flags.has(HAS_TIMESTAMP | HAS_TTL) {
            state.liveness = decode_liveness(flags, times, input)?;
        }
        if flags.has(HAS_DELETION) {
            state.deletion = times.deletion(input)?;
        }
        Ok(state)
    }

    /// Takes the state of a plain row from bytes in memory: its timestamp, or `None` if it has no liveness. Returns `None` if the
    /// state is incomplete, or not as usual. Requires: the flags are those of a plain row.
    #[inline(always)]
    pub(in crate::row) fn plain_at_hand(
        flags: RowFlags,
        times: &Times,
        rest: &mut Rest<'_>,
    ) -> Option<Option<i64>> {
        if !flags.has_timestamp() {
            return Some(None);
        }
        let micros = times.timestamp_of(rest.uvint()?);
        (micros != NO_TIMESTAMP).then_some(Some(micros))
    }
}

#[inline(always)]
fn decode_liveness(flags: RowFlags, times: &Times, input: &mut impl ByteSource) -> Step<Liveness> {
    if !flags.has(HAS_TIMESTAMP) {
        return Err(input.corrupt("a row with a timestamp, since it has a TTL"));
    }
    let timestamp_micros = times.timestamp(input)?;
    if !flags.has(HAS_TTL) {
        return Ok(Liveness::live(timestamp_micros));
    }
    let ttl_secs = times.ttl(input)?;
    let expires_secs = times.local_deletion(input)?;
    Ok(Liveness::expiring(timestamp_micros, ttl_secs, expires_secs))
}

/// A field that is stored as a vint.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name for people.
    pub name: &'static str,
    /// Prints the value that is stored as this number in a file with these minima.
    pub show: fn(u64, &EncodingStats) -> String,
}

/// The fields of the state of a row with these two bytes of flags, in the order in which they are stored.
pub fn fields_of_state([first, _]: [u8; 2]) -> Vec<Field> {
    let mut fields = Vec::new();
    let mut add = |name, show| fields.push(Field { name, show });
    if first & HAS_TIMESTAMP != 0 {
        add(
            "row timestamp",
            show_timestamp as fn(u64, &EncodingStats) -> String,
        );
    }
    if first & HAS_TTL != 0 {
        add("TTL", show_ttl);
        add("row expires at", show_local_time);
    }
    if first & HAS_DELETION != 0 {
        add("row deletion: marked at", show_timestamp);
        add("row deletion: local time", show_local_time);
    }
    fields
}

#[cfg(test)]
mod tests {
    use ilion_codec::{Reader, Writer};

    use super::*;
    use crate::Version;

    #[test]
    fn the_fields_that_tools_show_are_those_that_are_stored() {
        let times = Times::new(EncodingStats::NONE, Version::NB);
        let micros = 1_700_000_000_000_000;
        let deleted = DeletionTime::new(micros + 1, 1_700_000_000);
        for liveness in [
            Liveness::NONE,
            Liveness::live(micros),
            Liveness::expiring(micros, 60, 1_700_000_060),
        ] {
            for deletion in [DeletionTime::LIVE, deleted] {
                let state = RowState::new(liveness, deletion);
                let mut out = Writer::new();
                state.encode(&times, &mut out);
                let mut input = Reader::new(out.as_slice());
                let shown = fields_of_state(state.flags().0.to_le_bytes())
                    .iter()
                    .map(|field| (field.show)(input.uvint().unwrap(), &EncodingStats::NONE))
                    .collect::<Vec<_>>();
                assert_eq!(input.rest(), b"");
                let mut expected = Vec::new();
                if !liveness.is_none() {
                    expected.push(micros.to_string());
                }
                if liveness.ttl_secs != NO_TTL {
                    expected.extend(["60", "1700000060"].map(str::to_owned));
                }
                if !deletion.is_live() {
                    expected.extend([(micros + 1).to_string(), "1700000000".to_owned()]);
                }
                assert_eq!(shown, expected);
            }
        }
    }
}
