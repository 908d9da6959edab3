//! The vectors of one SSTable: graphs in files.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_env::{Access, Env, PAGE_BYTES, PageBudget, PageMemory, ReadFile};
use ilion_rows::ReadError;
use ilion_vector::{FileGraph, Graph as _, Source};

use super::comparison::VectorComparison;
use super::ranking::{Merged, Ranking};
use super::values::Values;
use super::writer::{label_of, path_of};
use crate::paged::unusable;
use crate::{
    Candidates, Comparison, Error, Estimate, IndexContents, NoCandidates, Predicate, Ranked, RowNumbers,
    SSTableIndex,
};

/// The vectors of one SSTable.
pub(super) struct SSTableVectors {
    values: Arc<Values>,
    segments: Vec<Segment>,
    rows: Arc<dyn RowNumbers>,
}

struct Segment {
    graph: Arc<FileGraph>,
    path: PathBuf,
}

impl SSTableVectors {
    pub(super) fn open(
        env: &Arc<dyn Env>,
        base: &str,
        index: &str,
        values: &Arc<Values>,
        rows: Arc<dyn RowNumbers>,
    ) -> Result<Self, Error> {
        let mut segments = Vec::new();
        for number in 1.. {
            let path = path_of(base, index, number);
            let graph = open_graph(env, &path)?;
            let dimension = graph.dimension();
            if dimension != 0 && dimension != values.dimension {
                return Err(unusable(&path, "its vectors have other dimensions"));
            }
            let is_last = graph.label() == label_of(values, number, Some(rows.len())).as_bytes();
            if !is_last && graph.label() != label_of(values, number, None).as_bytes() {
                return Err(unusable(
                    &path,
                    "it belongs to another definition of the index, or to other rows",
                ));
            }
            let graph = Arc::new(graph);
            segments.push(Segment { graph, path });
            if is_last {
                break;
            }
        }
        Ok(Self {
            values: values.clone(),
            segments,
            rows,
        })
    }
}

fn open_graph(env: &Arc<dyn Env>, path: &Path) -> Result<FileGraph, Error> {
    let file = match env.open_read(path) {
        Err(error) if error.is_not_found() => return Err(unusable(path, "it is missing")),
        other => other?,
    };
    file.advise(Access::Random);
    let length = usize::try_from(file.size_bytes()).map_err(|_| unusable(path, "it is too long"))?;
    let opened = FileGraph::open(Arc::new(PagedSource {
        file,
        memory: PageMemory::reserve(length, PageBudget::of_process()),
    }));
    opened.map_err(|error| match error {
        ilion_vector::Error::Io(source) => ilion_env::Error::new("read", path, source).into(),
        damaged => unusable(path, &damaged.to_string()),
    })
}

impl SSTableIndex for SSTableVectors {
    fn estimate(&self, _predicate: &Predicate) -> Estimate {
        Estimate::default()
    }

    fn search(self: Arc<Self>, _predicate: &Predicate) -> Result<Box<dyn Candidates>, ReadError> {
        Ok(Box::new(NoCandidates))
    }

    fn nearest(self: Arc<Self>, vector: &[f32]) -> Result<Option<Box<dyn Ranked>>, ReadError> {
        let mut rankings: Vec<Box<dyn Ranked>> = Vec::with_capacity(self.segments.len());
        for segment in &self.segments {
            let rows = self.rows.clone();
            let locate = move |number: u32| rows.place(number).map(Some);
            let path = Some(segment.path.clone());
            rankings.push(Box::new(Ranking::of(
                segment.graph.clone(),
                path,
                vector,
                locate,
            )?));
        }
        Ok(match rankings.len() {
            1 => rankings.pop(),
            _ => Some(Box::new(Merged::of(rankings))),
        })
    }

    fn begin_comparison(self: Arc<Self>) -> Result<Option<Box<dyn Comparison>>, ReadError> {
        let mut comparison = VectorComparison::new(&self.values);
        for Segment { graph, path } in &self.segments {
            let read = comparison.read(graph);
            read.map_err(|source| ReadError::Io {
                action: "read",
                path: path.clone(),
                source,
            })?;
        }
        Ok(Some(Box::new(comparison)))
    }

    fn contents(&self) -> IndexContents {
        let sum = |of: fn(&FileGraph) -> u64| self.segments.iter().map(|segment| of(&segment.graph)).sum();
        IndexContents {
            terms: sum(|graph| u64::from(graph.node_count())),
            cells: sum(FileGraph::ordinal_count),
            rows: u64::from(self.rows.len()),
        }
    }

    fn size_bytes(&self) -> u64 {
        self.segments
            .iter()
            .map(|segment| segment.graph.size_bytes())
            .sum()
    }
}

/// A file whose pages are kept in memory once they are read.
struct PagedSource {
    file: Arc<dyn ReadFile>,
    memory: PageMemory,
}

impl Source for PagedSource {
    fn size_bytes(&self) -> u64 {
        self.file.size_bytes()
    }

    fn read_exact_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file
            .read_exact_at(offset, into)
            .map_err(|error| error.source)
    }

    #[inline]
    fn kept(&self, start: usize, end: usize) -> Option<&[u8]> {
        self.memory.get(start, end)
    }

    fn keep(&self, page: usize, bytes: &[u8]) {
        // The body ends inside a page of the file; the rest of that page is never read.
        let mut whole = [0; PAGE_BYTES];
        whole[..bytes.len()].copy_from_slice(bytes);
        let rest = self.memory.len().saturating_sub(page * PAGE_BYTES);
        self.memory.keep(page, &whole[..rest.min(PAGE_BYTES)]);
    }
}
