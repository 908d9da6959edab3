//! Places of the nearest vectors.

use std::path::PathBuf;
use std::sync::Arc;

use ilion_rows::ReadError;
use ilion_vector::{Graph, Merge, Nearest, Reach};

use crate::{Place, Ranked};

/// Number of rows that are probably read from a graph: LIMIT 10, and some more to be sure that none is nearer.
const WANTED: usize = 20;

/// The nearest vectors of a graph, with the places of their ordinals.
pub(super) struct Ranking<G, L> {
    nearest: Nearest<Arc<G>>,
    file: Option<PathBuf>,
    locate: L,
}

impl<G: Graph, L: Fn(u32) -> Result<Option<Place>, ReadError>> Ranking<G, L> {
    /// Starts a search. `file` is named in errors; `locate` returns the place of an ordinal.
    pub(super) fn of(
        graph: Arc<G>,
        file: Option<PathBuf>,
        vector: &[f32],
        locate: L,
    ) -> Result<Self, ReadError> {
        let reach = Reach::of(graph.options());
        let nearest = Nearest::of(graph, vector, WANTED, None, reach);
        Ok(Self {
            nearest: nearest.map_err(|error| read_error(error, file.as_ref()))?,
            file,
            locate,
        })
    }
}

impl<G, L> Ranked for Ranking<G, L>
where
    G: Graph + Send + Sync,
    L: Fn(u32) -> Result<Option<Place>, ReadError> + Send,
{
    fn next(&mut self) -> Result<Option<(Place, f32)>, ReadError> {
        loop {
            let next = self.nearest.next(&|_| true);
            let next = next.map_err(|error| read_error(error, self.file.as_ref()))?;
            let Some((ordinal, score)) = next else {
                return Ok(None);
            };
            if let Some(place) = (self.locate)(ordinal)? {
                return Ok(Some((place, score)));
            }
        }
    }
}

/// Merges several rankings.
pub(super) struct Merged(Merge<Box<dyn Ranked>, Place>);

impl Merged {
    pub(super) fn of(rankings: Vec<Box<dyn Ranked>>) -> Self {
        Self(Merge::of(rankings))
    }
}

impl Ranked for Merged {
    fn next(&mut self) -> Result<Option<(Place, f32)>, ReadError> {
        self.0.next(|ranking| ranking.next())
    }
}

/// A search that failed to start.
pub(super) struct Failed(pub(super) Option<ReadError>);

impl Ranked for Failed {
    fn next(&mut self) -> Result<Option<(Place, f32)>, ReadError> {
        match self.0.take() {
            Some(error) => Err(error),
            None => Err(ReadError::Aborted("the vectors cannot be compared")),
        }
    }
}

/// The error of a graph that could not be read.
#[cold]
pub(super) fn read_error(error: ilion_vector::Error, file: Option<&PathBuf>) -> ReadError {
    let path = file.cloned().unwrap_or_default();
    match error {
        ilion_vector::Error::Corrupt { offset, expected } => ReadError::Corrupt {
            file: path,
            offset,
            expected: expected.to_owned(),
        },
        ilion_vector::Error::Io(source) => ReadError::Io {
            action: "read",
            path,
            source,
        },
        // The caller has checked the vector.
        ilion_vector::Error::Refused(_) => ReadError::Aborted("the vectors cannot be compared"),
    }
}
