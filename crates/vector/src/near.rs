//! A node or an ordinal with its distance.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A number with a distance, ordered by distance, the nearest first, then by number.
#[derive(Clone, Copy, Debug)]
pub struct Near {
    /// A lower distance is nearer. Only comparable with distances from the same probe.
    pub distance: f32,
    /// The number of a node, or an ordinal.
    pub id: u32,
}

impl Ord for Near {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.distance
            .total_cmp(&other.distance)
            .then(self.id.cmp(&other.id))
    }
}

impl PartialOrd for Near {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Near {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Near {}

/// Keeps the nearest of the values added to it.
pub(crate) struct Best {
    most: usize,
    kept: BinaryHeap<Near>,
}

impl Best {
    /// Keeps at most `most`, and at least one.
    pub(crate) fn of(most: usize, shown: &[Near]) -> Self {
        let mut best = Self {
            most: most.max(1),
            kept: BinaryHeap::new(),
        };
        for near in shown {
            best.show(*near);
        }
        best
    }

    #[inline]
    pub(crate) fn show(&mut self, near: Near) {
        if self.kept.len() < self.most {
            self.kept.push(near);
        } else if let Some(mut worst) = self.kept.peek_mut()
            && near < *worst
        {
            *worst = near;
        }
    }

    /// The distance of the farthest value kept; `None` until it is full.
    #[inline]
    pub(crate) fn limit(&self) -> Option<f32> {
        (self.kept.len() == self.most)
            .then(|| self.kept.peek().map(|worst| worst.distance))
            .flatten()
    }

    /// The values kept, nearest first.
    pub(crate) fn into_sorted(self) -> Vec<Near> {
        self.kept.into_sorted_vec()
    }
}
