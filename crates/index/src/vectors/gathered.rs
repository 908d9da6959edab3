//! The graph of the rows of an SSTable.
//!
//! At a flush the memtable has the graph already, with other numbers for its rows: its links are taken over, which costs a small part
//! of making them again. Whether the rows come from a memtable shows in the first few of them.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use ilion_vector::{MemoryGraph, Options};

/// Rows by which it is told where they come from.
const LOOKED_AT: usize = 16;
/// Rows that may be missing in the memtable beside as many as are in it.
const MISSING_MAX: usize = 1024;

/// A row's number and vector.
type Numbered = (u32, Vec<f32>);

/// The graph of the rows so far.
pub(super) struct Gathered {
    options: Options,
    state: State,
}

enum State {
    /// The first rows, and the graphs that they may come from.
    First(Vec<Numbered>, Vec<Weak<MemoryGraph>>),
    /// They are in a memtable's graph.
    Found(Found),
    Inserted(Box<MemoryGraph>, usize),
}

struct Found {
    source: Arc<MemoryGraph>,
    /// Rows by the memtable's nodes.
    numbers: HashMap<u32, Vec<u32>>,
    /// Rows that are not in it.
    missing: Vec<Numbered>,
}

impl Gathered {
    pub(super) fn new(options: Options, sources: Vec<Weak<MemoryGraph>>) -> Self {
        Self {
            options,
            state: State::First(Vec::new(), sources),
        }
    }

    /// Takes a row in. Compat: data from before the index that it cannot hold is passed over.
    pub(super) fn add(&mut self, number: u32, vector: Vec<f32>) {
        if self.options.similarity.check(&vector).is_err() {
            return;
        }
        match &mut self.state {
            State::First(rows, sources) => {
                rows.push((number, vector));
                if rows.len() == LOOKED_AT {
                    let (rows, sources) = (std::mem::take(rows), std::mem::take(sources));
                    self.state = self.begun(rows, &sources);
                }
            }
            State::Found(found) => {
                found.add(number, vector);
                if found.missing.len() > MISSING_MAX + found.numbers.len() {
                    self.settle();
                }
            }
            State::Inserted(graph, bytes) => *bytes += graph.insert(number, &vector).unwrap_or_default(),
        }
    }

    /// Memory of its own, about.
    pub(super) fn memory_bytes(&self) -> usize {
        match &self.state {
            State::First(..) => 0,
            // The vectors are the memtable's.
            State::Found(found) => found.numbers.len() * size_of::<(u32, Vec<u32>)>(),
            State::Inserted(_, bytes) => *bytes,
        }
    }

    /// The graph; the next row begins another one.
    pub(super) fn take(&mut self) -> MemoryGraph {
        self.settle();
        let next = State::Inserted(Box::new(MemoryGraph::new(self.options)), 0);
        match std::mem::replace(&mut self.state, next) {
            State::Inserted(graph, _) => *graph,
            State::First(..) | State::Found(_) => MemoryGraph::new(self.options),
        }
    }

    fn begun(&self, rows: Vec<Numbered>, sources: &[Weak<MemoryGraph>]) -> State {
        let is_in = |source: &Arc<MemoryGraph>| {
            let hits = rows.iter().filter(|(_, vector)| source.node_of(vector).is_some());
            hits.count() * 2 >= rows.len()
        };
        match sources.iter().filter_map(Weak::upgrade).find(is_in) {
            Some(source) => {
                let mut found = Found {
                    source,
                    numbers: HashMap::new(),
                    missing: Vec::new(),
                };
                for (number, vector) in rows {
                    found.add(number, vector);
                }
                State::Found(found)
            }
            None => inserted(MemoryGraph::new(self.options), rows),
        }
    }

    /// Makes the graph of what was gathered.
    fn settle(&mut self) {
        if let State::First(rows, sources) = &mut self.state {
            let (rows, sources) = (std::mem::take(rows), std::mem::take(sources));
            self.state = self.begun(rows, &sources);
        }
        if let State::Found(found) = &mut self.state {
            let missing = std::mem::take(&mut found.missing);
            self.state = inserted(found.graph(self.options), missing);
        }
    }
}

fn inserted(graph: MemoryGraph, rows: Vec<Numbered>) -> State {
    let mut bytes = 0;
    for (number, vector) in rows {
        bytes += graph.insert(number, &vector).unwrap_or_default();
    }
    State::Inserted(Box::new(graph), bytes)
}

impl Found {
    fn add(&mut self, number: u32, vector: Vec<f32>) {
        match self.source.node_of(&vector) {
            Some(node) => self.numbers.entry(node).or_default().push(number),
            None => self.missing.push((number, vector)),
        }
    }

    /// The memtable's graph with the SSTable's numbers. Of one that lost most of its nodes, little would be left to take over.
    fn graph(&mut self, options: Options) -> MemoryGraph {
        let mut numbers = std::mem::take(&mut self.numbers);
        let nodes = ilion_vector::Graph::node_count(&*self.source) as usize;
        if numbers.len() * 2 >= nodes {
            return MemoryGraph::adopt(&self.source, |node| numbers.remove(&node).unwrap_or_default());
        }
        let graph = MemoryGraph::new(options);
        for (node, numbers) in numbers {
            for number in numbers {
                if let Some(vector) = self.source.vector(node) {
                    // It was in a graph of the same options.
                    let _ = graph.insert(number, vector);
                }
            }
        }
        graph
    }
}
