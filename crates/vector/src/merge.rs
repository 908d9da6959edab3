//! Merges the results of several graphs.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Merges sources that return their results best first. A source is only called again when its last result was taken.
pub struct Merge<S, T> {
    sources: Vec<S>,
    heads: BinaryHeap<Head<T>>,
    /// Sources to call before a result is returned.
    unread: Vec<usize>,
}

struct Head<T> {
    score: f32,
    source: usize,
    item: T,
}

impl<T> Ord for Head<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then(other.source.cmp(&self.source))
    }
}

impl<T> PartialOrd for Head<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Head<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Head<T> {}

impl<S, T> Merge<S, T> {
    /// Merges these sources.
    pub fn of(sources: Vec<S>) -> Self {
        Self {
            unread: (0..sources.len()).collect(),
            heads: BinaryHeap::with_capacity(sources.len()),
            sources,
        }
    }

    /// The best result of all sources. `ask` returns the next result of a source.
    ///
    /// # Errors
    /// Those of `ask`; the next call tries the source again.
    pub fn next<E>(
        &mut self,
        mut ask: impl FnMut(&mut S) -> Result<Option<(T, f32)>, E>,
    ) -> Result<Option<(T, f32)>, E> {
        while let Some(source) = self.unread.last().copied() {
            let asked = ask(&mut self.sources[source])?;
            self.unread.pop();
            if let Some((item, score)) = asked {
                self.heads.push(Head { score, source, item });
            }
        }
        let head = self.heads.pop();
        Ok(head.map(|head| {
            self.unread.push(head.source);
            (head.item, head.score)
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn the_best_of_all_sources_comes_first_and_each_once() {
        let sources = vec![
            vec![('a', 0.9), ('b', 0.2)],
            vec![],
            vec![('c', 1.0), ('d', 0.9), ('e', 0.1)],
        ];
        let mut merge = Merge::of(sources.into_iter().map(Vec::into_iter).collect());
        let mut given = Vec::new();
        while let Ok(Some((item, _))) = merge.next(|source| Ok::<_, Infallible>(source.next())) {
            given.push(item);
        }
        assert_eq!(given, ['c', 'a', 'd', 'b', 'e']);
    }
}
