//! A node or an ordinal with its distance.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Something at a distance. The order is that of distances, the nearest first; equal ones by number.
#[derive(Clone, Copy, Debug)]
pub struct Near {
    /// The smaller, the nearer; means something only beside others of the same probe.
    pub distance: f32,
    /// A node, or an ordinal.
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

/// The nearest few of those that were shown to it.
pub(crate) struct Best {
    most: usize,
    kept: BinaryHeap<Near>,
}

impl Best {
    /// Keeps at most `most`, which is at least 1.
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

    /// The distance of the farthest one kept, once it keeps as many as it may.
    #[inline]
    pub(crate) fn limit(&self) -> Option<f32> {
        (self.kept.len() == self.most)
            .then(|| self.kept.peek().map(|worst| worst.distance))
            .flatten()
    }

    /// Those kept, nearest first.
    pub(crate) fn into_sorted(self) -> Vec<Near> {
        self.kept.into_sorted_vec()
    }
}
