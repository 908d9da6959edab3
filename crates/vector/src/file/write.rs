//! Writes a graph in memory to a file.

use std::io::{self, Write};

use ilion_codec::{Writer, crc32};

use super::pages::PAGE_LEN;
use super::tail::{LABEL_MAX, Tail};
use crate::memory::MemoryGraph;
use crate::{Error, Graph as _};

/// Writes a graph. Requires: no more inserts into it. Nodes are numbered in the order of their lowest ordinals. The label, at
/// most 1024 bytes, identifies the file for the caller ([`crate::FileGraph::label`]).
///
/// # Errors
/// The file cannot be written.
pub fn write(graph: &MemoryGraph, label: &[u8], out: &mut dyn Write) -> Result<(), Error> {
    if label.len() > LABEL_MAX {
        return Err(Error::Refused(
            "a label of a vector graph has at most 1024 bytes".to_owned(),
        ));
    }
    match without_empty(graph) {
        Some(graph) => write_whole(&graph, label, out),
        None => write_whole(graph, label, out),
    }
}

/// A graph of the vectors that have ordinals; `None` if all vectors have some.
fn without_empty(graph: &MemoryGraph) -> Option<MemoryGraph> {
    let is_empty = |id| graph.node(id).is_some_and(|node| node.ordinals.read().is_empty());
    if !(0..graph.node_count()).any(is_empty) {
        return None;
    }
    let ordinals = |id| graph.node(id).map(|node| node.ordinals.read().to_vec());
    Some(MemoryGraph::adopt(graph, |id| ordinals(id).unwrap_or_default()))
}

fn write_whole(graph: &MemoryGraph, label: &[u8], out: &mut dyn Write) -> Result<(), Error> {
    let plan = Plan::of(graph)?;
    let tail = plan.tail(graph, label);
    let layout = tail
        .layout()
        .ok_or_else(|| Error::Refused("the vector graph is too large for a file".to_owned()))?;
    let mut body = Body::to(out);
    let mut record = Writer::new();
    for old in &plan.order {
        record.clear();
        plan.node_record(graph, *old, tail.link_places, &mut record);
        body.append(record.as_slice())?;
    }
    for level in 1..=plan.levels.len() {
        for place in 0..plan.levels[level - 1].len() {
            record.clear();
            plan.upper_record(graph, level, place, tail.upper_link_places, &mut record);
            body.append(record.as_slice())?;
        }
    }
    for first in &plan.firsts {
        body.append(&first.to_le_bytes())?;
    }
    if !plan.extras.is_empty() {
        for number in plan.extra_ends.iter().chain(&plan.extras) {
            body.append(&number.to_le_bytes())?;
        }
    }
    let body_length = body.finish()?;
    debug_assert_eq!(body_length, layout.body_length);
    out.write_all(&tail.encode(body_length))?;
    Ok(())
}

/// The numbering of the nodes in the file.
struct Plan {
    /// Old numbers by new ones.
    order: Vec<u32>,
    /// New numbers by old ones; `u32::MAX` for numbers without a node.
    numbers: Vec<u32>,
    firsts: Vec<u32>,
    extra_ends: Vec<u32>,
    extras: Vec<u32>,
    /// New numbers of the nodes of level 1, 2, ..., ascending.
    levels: Vec<Vec<u32>>,
}

impl Plan {
    fn of(graph: &MemoryGraph) -> Result<Self, Error> {
        let mut nodes: Vec<(Vec<u32>, u32)> = Vec::with_capacity(graph.node_count() as usize);
        for id in 0..graph.node_count() {
            if let Some(node) = graph.node(id) {
                let mut ordinals = node.ordinals.read().to_vec();
                ordinals.sort_unstable();
                nodes.push((ordinals, id));
            }
        }
        nodes.sort_unstable();
        let mut plan = Self {
            order: nodes.iter().map(|(_, id)| *id).collect(),
            numbers: vec![u32::MAX; graph.node_count() as usize],
            firsts: Vec::with_capacity(nodes.len()),
            extra_ends: Vec::with_capacity(nodes.len()),
            extras: Vec::new(),
            levels: Vec::new(),
        };
        for (number, (ordinals, id)) in (0..).zip(&nodes) {
            plan.numbers[*id as usize] = number;
            if let Some((first, extras)) = ordinals.split_first() {
                plan.firsts.push(*first);
                plan.extras.extend_from_slice(extras);
            }
            let extra_end = u32::try_from(plan.extras.len());
            let too_many = |_| Error::Refused("a vector graph has at most 2^32 - 1 ordinals".to_owned());
            plan.extra_ends.push(extra_end.map_err(too_many)?);
        }
        plan.levels = levels(graph, &plan.order);
        Ok(plan)
    }

    fn tail(&self, graph: &MemoryGraph, label: &[u8]) -> Tail {
        let degree = |id: u32, levels: std::ops::Range<usize>| {
            let links = graph.node(id).map(|node| &node.links[..]);
            let lists = links.unwrap_or_default().iter();
            let lists = lists.skip(levels.start).take(levels.len());
            lists.map(|list| list.read().len()).max().unwrap_or(0) as u32
        };
        let greatest = |levels: std::ops::Range<usize>| {
            let degrees = self.order.iter().map(|id| degree(*id, levels.clone()));
            degrees.max().unwrap_or(0)
        };
        let entry = graph.top().and_then(|(entry, _)| {
            let number = *self.numbers.get(entry as usize)?;
            match self.levels.last() {
                Some(level) => level.binary_search(&number).ok().map(|place| place as u32),
                None => Some(number),
            }
        });
        Tail {
            options: *graph.options(),
            dimension: graph.dimension(),
            node_count: self.order.len() as u32,
            link_places: greatest(0..1),
            upper_link_places: greatest(1..usize::MAX),
            reach: graph.space().reach,
            entry: entry.unwrap_or(0),
            extra_count: self.extras.len() as u32,
            label: label.to_vec(),
            upper_counts: self.levels.iter().map(|level| level.len() as u32).collect(),
        }
    }

    fn node_record(&self, graph: &MemoryGraph, old: u32, places: u32, out: &mut Writer) {
        let Some(node) = graph.node(old) else {
            return;
        };
        let links = self.links_of(graph, old, 0);
        out.u32_le(links.len() as u32);
        out.u32_le(node.weight.to_bits());
        for component in node.vector.iter() {
            out.u32_le(component.to_bits());
        }
        put_links(&links, places, out);
    }

    fn upper_record(&self, graph: &MemoryGraph, level: usize, place: usize, places: u32, out: &mut Writer) {
        let number = self.levels[level - 1][place];
        let below = match level {
            1 => number,
            _ => self.place(level - 1, number).unwrap_or(0),
        };
        let links = self.links_of(graph, self.order[number as usize], level);
        let links: Vec<u32> = links
            .into_iter()
            .filter_map(|number| self.place(level, number))
            .collect();
        out.u32_le(number);
        out.u32_le(below);
        out.u32_le(links.len() as u32);
        put_links(&links, places, out);
    }

    /// New numbers of a node's neighbours.
    fn links_of(&self, graph: &MemoryGraph, old: u32, level: usize) -> Vec<u32> {
        let list = graph.node(old).and_then(|node| node.links.get(level));
        let old = list.map(|list| list.read().clone()).unwrap_or_default();
        let numbers = old.into_iter().map(|id| self.numbers[id as usize]);
        numbers.filter(|number| *number != u32::MAX).collect()
    }

    fn place(&self, level: usize, number: u32) -> Option<u32> {
        let place = self.levels[level - 1].binary_search(&number).ok()?;
        Some(place as u32)
    }
}

/// New numbers of the nodes of each upper level.
fn levels(graph: &MemoryGraph, order: &[u32]) -> Vec<Vec<u32>> {
    let mut levels: Vec<Vec<u32>> = Vec::new();
    for (number, id) in (0..).zip(order) {
        let uppers = graph.node(*id).map_or(0, |node| node.links.len() - 1);
        if levels.len() < uppers {
            levels.resize_with(uppers, Vec::new);
        }
        for level in &mut levels[..uppers] {
            level.push(number);
        }
    }
    levels
}

fn put_links(links: &[u32], places: u32, out: &mut Writer) {
    for place in 0..places as usize {
        out.u32_le(links.get(place).copied().unwrap_or(0));
    }
}

/// Writes the body, and collects the CRCs of its pages.
struct Body<'o> {
    out: &'o mut dyn Write,
    page: Vec<u8>,
    crcs: Vec<u8>,
    length: u64,
}

impl<'o> Body<'o> {
    fn to(out: &'o mut dyn Write) -> Self {
        Self {
            out,
            page: Vec::with_capacity(PAGE_LEN),
            crcs: Vec::new(),
            length: 0,
        }
    }

    fn append(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.length += bytes.len() as u64;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PAGE_LEN - self.page.len()));
            self.page.extend_from_slice(now);
            bytes = later;
            if self.page.len() == PAGE_LEN {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.crcs.extend_from_slice(&crc32(&self.page).to_le_bytes());
        self.out.write_all(&self.page)?;
        self.page.clear();
        Ok(())
    }

    /// Writes the CRCs after the body; returns the length of the body.
    fn finish(mut self) -> io::Result<u64> {
        if !self.page.is_empty() {
            self.flush()?;
        }
        self.out.write_all(&self.crcs)?;
        Ok(self.length)
    }
}
