//! The tail of the file, and the layout that follows from it.

use ilion_codec::{Reader, Writer, crc32};

use super::Source;
use super::pages::checked_length;
use crate::{DIMENSION_MAX, Error, OptimizeFor, Options, Similarity};

const MAGIC: [u8; 8] = *b"ILVECTOR";
const VERSION: u8 = 1;
/// Length of CRC, length field and magic.
const END_LEN: u64 = 16;
const LEN_MAX: u64 = 4096;
/// Maximum length of the label.
pub(super) const LABEL_MAX: usize = 1024;
/// Limit of links in a record: concurrent inserts with the largest option stay below it.
const LINK_PLACES_MAX: u32 = 1 << 13;
const LEVELS_MAX: usize = 16;

/// The fields of the tail.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tail {
    pub(super) options: Options,
    pub(super) dimension: u32,
    pub(super) node_count: u32,
    /// Number of links that a record of the lowest level has space for.
    pub(super) link_places: u32,
    /// Number of links that a record of the upper levels has space for.
    pub(super) upper_link_places: u32,
    /// The greatest squared length of a vector (dot product only).
    pub(super) reach: f32,
    /// The entry of searches: an index in the highest level.
    pub(super) entry: u32,
    /// Number of ordinals beyond the first of each node.
    pub(super) extra_count: u32,
    /// The caller's label.
    pub(super) label: Vec<u8>,
    /// Number of nodes in level 1, 2, ...
    pub(super) upper_counts: Vec<u32>,
}

/// Offsets of the parts of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) node_len: usize,
    pub(super) upper_len: usize,
    /// Offsets of level 1, 2, ...
    pub(super) uppers: Vec<u64>,
    pub(super) ordinals: u64,
    pub(super) extra_ends: u64,
    pub(super) extras: u64,
    pub(super) body_length: u64,
}

impl Tail {
    /// The layout; `None` if it overflows.
    pub(super) fn layout(&self) -> Option<Layout> {
        let node_len = 8 + (u64::from(self.dimension) + u64::from(self.link_places)) * 4;
        let upper_len = 12 + u64::from(self.upper_link_places) * 4;
        let nodes = u64::from(self.node_count);
        let mut at = nodes.checked_mul(node_len)?;
        let mut uppers = Vec::with_capacity(self.upper_counts.len());
        for count in &self.upper_counts {
            uppers.push(at);
            at = u64::from(*count).checked_mul(upper_len)?.checked_add(at)?;
        }
        let ordinals = at;
        let extra_ends = ordinals.checked_add(nodes * 4)?;
        let ends = if self.extra_count > 0 { nodes * 4 } else { 0 };
        let extras = extra_ends.checked_add(ends)?;
        Some(Layout {
            node_len: usize::try_from(node_len).ok()?,
            upper_len: usize::try_from(upper_len).ok()?,
            uppers,
            ordinals,
            extra_ends,
            extras,
            body_length: extras.checked_add(u64::from(self.extra_count) * 4)?,
        })
    }

    pub(super) fn encode(&self, body_length: u64) -> Vec<u8> {
        let mut out = Writer::new();
        let number = |out: &mut Writer, value: u32| out.u32_le(value);
        out.u8(VERSION);
        out.u8(self.options.similarity.code());
        out.u8(u8::from(self.options.optimize_for == OptimizeFor::Recall));
        out.u8(self.upper_counts.len() as u8);
        out.bytes(&self.options.maximum_node_connections.to_le_bytes());
        out.bytes(&self.options.construction_beam_width.to_le_bytes());
        number(&mut out, self.dimension);
        number(&mut out, self.node_count);
        number(&mut out, self.link_places);
        number(&mut out, self.upper_link_places);
        number(&mut out, self.reach.to_bits());
        number(&mut out, self.entry);
        number(&mut out, self.extra_count);
        for count in &self.upper_counts {
            number(&mut out, *count);
        }
        out.bytes(&(self.label.len() as u16).to_le_bytes());
        out.bytes(&self.label);
        out.bytes(&body_length.to_le_bytes());
        let (crc, len) = (crc32(out.as_slice()), out.len() as u32);
        number(&mut out, crc);
        number(&mut out, len);
        out.bytes(&MAGIC);
        out.into_vec()
    }

    /// Reads the tail of a file, and computes the layout.
    pub(super) fn of(source: &dyn Source) -> Result<(Self, Layout), Error> {
        let size = source.size_bytes();
        let end_at = size.checked_sub(END_LEN).ok_or(Error::corrupt(0, "a tail"))?;
        let mut end = [0; END_LEN as usize];
        source.read_exact_at(end_at, &mut end)?;
        let mut input = Reader::new(&end);
        let wrong = |error: ilion_codec::Error| Error::corrupt(end_at, error.expected);
        let (crc, len) = (input.u32_le().map_err(wrong)?, input.u32_le().map_err(wrong)?);
        if input.rest() != MAGIC {
            return Err(Error::corrupt(end_at, "the end of a vector graph"));
        }
        let tail_at = end_at
            .checked_sub(u64::from(len))
            .filter(|_| u64::from(len) <= LEN_MAX);
        let tail_at = tail_at.ok_or(Error::corrupt(end_at, "the length of the tail"))?;
        let mut bytes = vec![0; len as usize];
        source.read_exact_at(tail_at, &mut bytes)?;
        if crc32(&bytes) != crc {
            return Err(Error::corrupt(tail_at, "a tail with its CRC"));
        }
        let (tail, body_length) = Self::decode(&bytes)
            .map_err(|error| Error::corrupt(tail_at + error.offset as u64, error.expected))?;
        let layout = tail.layout().filter(|layout| layout.body_length == body_length);
        let layout = layout.ok_or(Error::corrupt(tail_at, "the length of the body"))?;
        if checked_length(body_length) != Some(tail_at) {
            return Err(Error::corrupt(tail_at, "the tail right after the pages' CRCs"));
        }
        Ok((tail, layout))
    }

    fn decode(bytes: &[u8]) -> Result<(Self, u64), ilion_codec::Error> {
        let mut input = Reader::new(bytes);
        if input.u8()? != VERSION {
            return Err(input.error("version 1"));
        }
        let similarity = Similarity::of_code(input.u8()?);
        let similarity = similarity.ok_or_else(|| input.error("a similarity function"))?;
        let optimize_for = if input.bool()? {
            OptimizeFor::Recall
        } else {
            OptimizeFor::Latency
        };
        let level_count = usize::from(input.u8()?);
        if level_count > LEVELS_MAX {
            return Err(input.error("at most 16 upper levels"));
        }
        let options = Options {
            similarity,
            maximum_node_connections: input.u16()?.swap_bytes(),
            construction_beam_width: input.u16()?.swap_bytes(),
            optimize_for,
        };
        let dimension = input.u32_le()?;
        let node_count = input.u32_le()?;
        if dimension > DIMENSION_MAX || (dimension == 0 && node_count > 0) {
            return Err(input.error("a dimension"));
        }
        let link_places = input.u32_le()?;
        let upper_link_places = input.u32_le()?;
        if link_places.max(upper_link_places) > LINK_PLACES_MAX {
            return Err(input.error("a number of links"));
        }
        let reach = f32::from_bits(input.u32_le()?);
        let entry = input.u32_le()?;
        let extra_count = input.u32_le()?;
        let mut upper_counts = Vec::with_capacity(level_count);
        for _ in 0..level_count {
            upper_counts.push(input.u32_le()?);
        }
        if entry >= *upper_counts.last().unwrap_or(&node_count.max(1)) {
            return Err(input.error("an entry among the highest nodes"));
        }
        let label_len = usize::from(input.u16()?.swap_bytes());
        let label = input.take(label_len)?.to_vec();
        let low = input.u32_le()?;
        let body_length = u64::from(low) | u64::from(input.u32_le()?) << 32;
        if !input.is_empty() {
            return Err(input.error("nothing more"));
        }
        let tail = Self {
            options,
            dimension,
            node_count,
            link_places,
            upper_link_places,
            reach,
            entry,
            extra_count,
            label,
            upper_counts,
        };
        Ok((tail, body_length))
    }
}
