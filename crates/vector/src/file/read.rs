//! A graph in a file, read on demand.

use std::sync::Arc;

use super::Source;
use super::pages::{Pages, u32_of};
use super::tail::{Layout, Tail};
use crate::beam::{UPPER_BREADTH, beam};
use crate::kernel::Kernel;
use crate::probe::Space;
use crate::{Error, Graph, Near, Options, Probe};

/// Length of the degree and weight of a node.
const NODE_HEAD: usize = 8;
/// Length of the node, index below, and degree of an element of an upper level.
const UPPER_HEAD: usize = 12;

/// A graph in a file.
pub struct FileGraph {
    pages: Pages,
    tail: Tail,
    layout: Layout,
    kernel: Kernel,
}

impl FileGraph {
    /// Opens a file that [`crate::write()`] wrote. Reads only its tail.
    ///
    /// # Errors
    /// The file cannot be read, or has another format.
    pub fn open(source: Arc<dyn Source>) -> Result<Self, Error> {
        let (tail, layout) = Tail::of(&*source)?;
        let length = usize::try_from(layout.body_length);
        let length = length.map_err(|_| Error::corrupt(0, "a body that can be addressed"))?;
        Ok(Self {
            pages: Pages::of(source, length),
            tail,
            layout,
            kernel: Kernel::new(),
        })
    }

    /// Size of the whole file.
    pub fn size_bytes(&self) -> u64 {
        self.pages.size_bytes()
    }

    /// The label that the writer gave it.
    pub fn label(&self) -> &[u8] {
        &self.tail.label
    }

    /// Number of ordinals.
    pub fn ordinal_count(&self) -> u64 {
        u64::from(self.tail.node_count) + u64::from(self.tail.extra_count)
    }

    /// Reads the whole file and follows every link.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn verify(&self) -> Result<(), Error> {
        let (mut links, mut ordinals, mut vector) = (Vec::new(), Vec::new(), Vec::new());
        for node in 0..self.tail.node_count {
            links.clear();
            ordinals.clear();
            self.links(node, &mut links)?;
            self.ordinals(node, &mut ordinals)?;
            self.vector(node, &mut vector)?;
        }
        for level in 1..=self.tail.upper_counts.len() {
            for place in 0..self.tail.upper_counts[level - 1] {
                self.upper(level, place, &mut links, &mut Vec::new())?;
            }
        }
        Ok(())
    }

    /// Reads the vector of a node into `into`, replacing its content.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn vector(&self, node: u32, into: &mut Vec<f32>) -> Result<(), Error> {
        let mut scratch = Vec::new();
        let record = self.record(node, &mut scratch)?;
        let components = &record[NODE_HEAD..][..self.tail.dimension as usize * 4];
        into.clear();
        into.extend(components.as_chunks().0.iter().copied().map(f32::from_le_bytes));
        Ok(())
    }

    fn space(&self) -> Space {
        Space {
            similarity: self.tail.options.similarity,
            kernel: self.kernel,
            reach: self.tail.reach,
        }
    }

    fn node_at(&self, node: u32) -> u64 {
        u64::from(node) * self.layout.node_len as u64
    }

    #[inline]
    fn record<'b>(&'b self, node: u32, scratch: &'b mut Vec<u8>) -> Result<&'b [u8], Error> {
        let at = self.node_at(node);
        if node >= self.tail.node_count {
            return Err(Error::corrupt(at, "a node"));
        }
        self.pages.bytes(at, self.layout.node_len, scratch)
    }

    fn measured(&self, probe: &Probe, node: u32, scratch: &mut Vec<u8>) -> Result<f32, Error> {
        let record = self.record(node, scratch)?;
        let weight = f32::from_bits(u32_of(record, 4));
        let components = &record[NODE_HEAD..][..self.tail.dimension as usize * 4];
        Ok(probe.distance(components.as_chunks::<4>().0, weight))
    }

    /// Appends the links of an element of an upper level; returns its node, and its index in the level below.
    fn upper(
        &self,
        level: usize,
        place: u32,
        into: &mut Vec<u32>,
        scratch: &mut Vec<u8>,
    ) -> Result<(u32, u32), Error> {
        let count = self.tail.upper_counts[level - 1];
        let at = self.layout.uppers[level - 1] + u64::from(place) * self.layout.upper_len as u64;
        if place >= count {
            return Err(Error::corrupt(at, "an index in its level"));
        }
        let record = self.pages.bytes(at, self.layout.upper_len, scratch)?;
        let (node, below) = (u32_of(record, 0), u32_of(record, 4));
        put_links(&record[UPPER_HEAD..], u32_of(record, 8), count, into, at)?;
        let count_below = match level {
            1 => self.tail.node_count,
            _ => self.tail.upper_counts[level - 2],
        };
        if node >= self.tail.node_count || below >= count_below {
            return Err(Error::corrupt(at, "a node and an index in the level below"));
        }
        Ok((node, below))
    }

    /// Elements of an upper level with the distances of their nodes.
    fn measure_upper(
        &self,
        probe: &Probe,
        level: usize,
        places: &[u32],
        into: &mut Vec<Near>,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Error> {
        for place in places {
            let at = self.layout.uppers[level - 1] + u64::from(*place) * self.layout.upper_len as u64;
            let node = self.pages.u32_at(at, scratch)?;
            into.push(Near {
                distance: self.measured(probe, node, scratch)?,
                id: *place,
            });
        }
        Ok(())
    }

    /// The elements of a level that are nearest to the probe.
    fn walk_upper(&self, probe: &Probe, level: usize, starts: &[Near]) -> Result<Vec<Near>, Error> {
        let (mut links, mut scratch) = (Vec::new(), Vec::new());
        beam(starts, UPPER_BREADTH, |place, known, measured| {
            links.clear();
            self.upper(level, place, &mut links, &mut scratch)?;
            links.retain(|place| known.insert(*place));
            self.measure_upper(probe, level, &links, measured, &mut scratch)
        })
    }
}

impl Graph for FileGraph {
    fn options(&self) -> &Options {
        &self.tail.options
    }

    fn dimension(&self) -> u32 {
        self.tail.dimension
    }

    fn node_count(&self) -> u32 {
        self.tail.node_count
    }

    fn probe(&self, query: &[f32]) -> Probe {
        Probe::query(self.space(), query)
    }

    fn enter(&self, probe: &Probe) -> Result<Vec<Near>, Error> {
        let mut nearest = Vec::new();
        if self.tail.node_count == 0 {
            return Ok(nearest);
        }
        let top = self.tail.upper_counts.len();
        if top == 0 {
            self.measure(probe, &[self.tail.entry], &mut nearest)?;
            return Ok(nearest);
        }
        let mut scratch = Vec::new();
        self.measure_upper(probe, top, &[self.tail.entry], &mut nearest, &mut scratch)?;
        for level in (1..=top).rev() {
            nearest = self.walk_upper(probe, level, &nearest)?;
            for near in &mut nearest {
                near.id = self.upper(level, near.id, &mut Vec::new(), &mut scratch)?.1;
            }
        }
        Ok(nearest)
    }

    fn links(&self, node: u32, into: &mut Vec<u32>) -> Result<(), Error> {
        let mut scratch = Vec::new();
        let record = self.record(node, &mut scratch)?;
        let places = &record[NODE_HEAD + self.tail.dimension as usize * 4..];
        let count = self.tail.node_count;
        put_links(places, u32_of(record, 0), count, into, self.node_at(node))
    }

    fn measure(&self, probe: &Probe, nodes: &[u32], into: &mut Vec<Near>) -> Result<(), Error> {
        let mut scratch = Vec::new();
        for id in nodes {
            into.push(Near {
                distance: self.measured(probe, *id, &mut scratch)?,
                id: *id,
            });
        }
        Ok(())
    }

    fn ordinals(&self, node: u32, into: &mut Vec<u32>) -> Result<(), Error> {
        if node >= self.tail.node_count {
            return Err(Error::corrupt(self.layout.ordinals, "a node"));
        }
        let mut scratch = Vec::new();
        let step = u64::from(node) * 4;
        into.push(self.pages.u32_at(self.layout.ordinals + step, &mut scratch)?);
        if self.tail.extra_count == 0 {
            return Ok(());
        }
        let end_at = self.layout.extra_ends + step;
        let end = self.pages.u32_at(end_at, &mut scratch)?;
        let start = match node {
            0 => 0,
            _ => self.pages.u32_at(end_at - 4, &mut scratch)?,
        };
        if start > end || end > self.tail.extra_count {
            return Err(Error::corrupt(end_at, "ends that ascend"));
        }
        let at = self.layout.extras + u64::from(start) * 4;
        let extras = self.pages.bytes(at, (end - start) as usize * 4, &mut scratch)?;
        into.extend(extras.as_chunks().0.iter().copied().map(u32::from_le_bytes));
        Ok(())
    }
}

impl std::fmt::Debug for FileGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FileGraph({} nodes)", self.tail.node_count)
    }
}

/// Appends the first `degree` numbers, which must be below `count`.
fn put_links(places: &[u8], degree: u32, count: u32, into: &mut Vec<u32>, at: u64) -> Result<(), Error> {
    let links = places.as_chunks::<4>().0.get(..degree as usize);
    let links = links.ok_or(Error::corrupt(at, "a degree that fits its record"))?;
    for link in links {
        let link = u32::from_le_bytes(*link);
        if link >= count {
            return Err(Error::corrupt(at, "a link to a node"));
        }
        into.push(link);
    }
    Ok(())
}
