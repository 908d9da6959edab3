//! Builds the graph of the rows of an SSTable.
//!
//! At a flush, the memtable already has the graph, with other numbers for its rows. Adopting its links costs a small part of
//! building them again. The first rows show whether they come from a memtable.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use ilion_vector::{MemoryGraph, Options};

/// Number of rows that are compared with the graphs of memtables.
const LOOKED_AT: usize = 16;
/// Number of rows that may be missing in the memtable, beyond as many as are in it.
const MISSING_MAX: usize = 1024;

/// A row's number and its vector.
type Numbered = (u32, Vec<f32>);

/// A graph under construction.
pub(super) struct Gathered {
    options: Options,
    state: State,
}

enum State {
    /// The first rows, and the graphs that they may come from.
    First(Vec<Numbered>, Vec<Weak<MemoryGraph>>),
    /// The rows come from a memtable's graph.
    Found(Found),
    Inserted(Box<MemoryGraph>, usize),
}

struct Found {
    source: Arc<MemoryGraph>,
    /// Row numbers by the memtable's nodes.
    numbers: HashMap<u32, Vec<u32>>,
    /// Rows that are not in the memtable's graph.
    missing: Vec<Numbered>,
}

impl Gathered {
    pub(super) fn new(options: Options, sources: Vec<Weak<MemoryGraph>>) -> Self {
        Self {
            options,
            state: State::First(Vec::new(), sources),
        }
    }

    /// Adds a row. Compat: vectors that were written before the index and that it cannot store are skipped.
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

    /// Approximate bytes of memory of its own.
    pub(super) fn memory_bytes(&self) -> usize {
        match &self.state {
            State::First(..) => 0,
            // The vectors belong to the memtable.
            State::Found(found) => found.numbers.len() * size_of::<(u32, Vec<u32>)>(),
            State::Inserted(_, bytes) => *bytes,
        }
    }

    /// Returns the graph, and starts the next one.
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

    /// Builds the graph of the collected rows.
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

    /// The memtable's graph with the SSTable's numbers. Built from scratch if most nodes are gone, since few links would remain.
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
                    // Cannot fail: the vector was in a graph with the same options.
                    let _ = graph.insert(number, vector);
                }
            }
        }
        graph
    }
}
