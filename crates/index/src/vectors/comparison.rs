//! Compares the graphs of an SSTable with the vectors of its rows. The same vectors can have different graphs, so links are
//! only checked for damage.

use std::collections::HashMap;
use std::sync::Arc;

use ilion_codec::crc32;
use ilion_rows::{DecoratedKey, Row};
use ilion_vector::{Error, FileGraph, Graph as _};

use super::values::Values;
use crate::Comparison;

/// The vectors of the graphs that were not found in rows yet.
pub(super) struct VectorComparison {
    values: Arc<Values>,
    /// Fingerprints of vectors by row number.
    left: HashMap<u32, u32>,
    is_same: bool,
}

impl VectorComparison {
    pub(super) fn new(values: &Arc<Values>) -> Self {
        Self {
            values: values.clone(),
            left: HashMap::new(),
            is_same: true,
        }
    }

    /// Adds all vectors of a graph. Damage counts as a difference.
    pub(super) fn read(&mut self, graph: &FileGraph) -> Result<(), std::io::Error> {
        let read = graph.verify().and_then(|()| self.read_vectors(graph));
        match read {
            Err(Error::Io(error)) => Err(error),
            Err(_) => {
                self.is_same = false;
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn read_vectors(&mut self, graph: &FileGraph) -> Result<(), Error> {
        let (mut vector, mut numbers) = (Vec::new(), Vec::new());
        for node in 0..graph.node_count() {
            graph.vector(node, &mut vector)?;
            numbers.clear();
            graph.ordinals(node, &mut numbers)?;
            for number in &numbers {
                let known = self.left.insert(*number, fingerprint(&vector));
                self.is_same &= known.is_none();
            }
        }
        Ok(())
    }
}

impl Comparison for VectorComparison {
    fn add(&mut self, number: u32, _key: &DecoratedKey, row: &Row) {
        let similarity = self.values.options.similarity;
        let vector = self.values.of_row(row);
        let expected = vector.filter(|vector| similarity.check(vector).is_ok());
        let expected = expected.map(|vector| fingerprint(&vector));
        self.is_same &= self.left.remove(&number) == expected;
    }

    fn is_same(self: Box<Self>) -> bool {
        self.is_same && self.left.is_empty()
    }
}

/// Equal vectors have equal fingerprints: 0 and -0 are equal.
fn fingerprint(vector: &[f32]) -> u32 {
    let bytes: Vec<u8> = vector
        .iter()
        .flat_map(|component| (component + 0.0).to_le_bytes())
        .collect();
    crc32(&bytes)
}
