//! A vector that distances are measured from.
//!
//! Distances are the cheapest numbers in the order of the similarity:
//!
//! ```text
//! cosine       -(x . y) / (|x| |y|)
//! dot product  -(x . y)
//! euclidean    |x - y|^2
//! ```
//!
//! A dot product is not a distance: the nearest vector of a long vector is not itself, and long vectors are near to all. Even
//! so, a graph linked by products leads to the largest products, and far better than a graph of the same vectors that were made
//! equally long by an extra component (measured; compare ip-NSW of Morozov and Babenko). Where a distance in space is needed, all
//! vectors count as long as the longest (`reach` is its squared length).

use crate::Similarity;
use crate::kernel::{Kernel, Lane};

/// The measure of distances among the vectors of a graph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space {
    pub(crate) similarity: Similarity,
    pub(crate) kernel: Kernel,
    /// The greatest squared length of a vector (dot product only).
    pub(crate) reach: f32,
}

impl Space {
    /// The distance of two vectors of the graph, as a squared distance in space.
    #[inline]
    pub(crate) fn squared_between<L: Lane>(
        &self,
        (a, weight_a): (&[f32], f32),
        (b, weight_b): (&[L], f32),
    ) -> f32 {
        match self.similarity {
            Similarity::Cosine => 2.0 - 2.0 * self.kernel.dot(a, b) * weight_a * weight_b,
            Similarity::DotProduct => 2.0 * (self.reach - self.kernel.dot(a, b)),
            Similarity::Euclidean => self.kernel.squared_distance(a, b),
        }
    }
}

/// A vector that distances are measured from: a query, or a vector that is being linked.
#[derive(Clone, Debug)]
pub struct Probe {
    space: Space,
    vector: Box<[f32]>,
    weight: f32,
    /// Factor that scales a query's products to those of a vector of the common length.
    stretch: f32,
}

impl Probe {
    pub(crate) fn query(space: Space, vector: &[f32]) -> Self {
        let length = square_of(vector).sqrt();
        let stretch = if length > 0.0 {
            f64::from(space.reach).sqrt() / length
        } else {
            0.0
        };
        Self {
            space,
            vector: vector.into(),
            weight: weight_of(space.similarity, vector),
            stretch: stretch as f32,
        }
    }

    pub(crate) fn member(space: Space, vector: &[f32], weight: f32) -> Self {
        Self {
            space,
            vector: vector.into(),
            weight,
            stretch: 1.0,
        }
    }

    /// The distance of a stored vector; `weight` is its weight.
    #[inline]
    pub(crate) fn distance<L: Lane>(&self, vector: &[L], weight: f32) -> f32 {
        let kernel = self.space.kernel;
        let distance = match self.space.similarity {
            Similarity::Cosine => -(kernel.dot(&self.vector, vector) * self.weight * weight),
            Similarity::DotProduct => -kernel.dot(&self.vector, vector),
            Similarity::Euclidean => kernel.squared_distance(&self.vector, vector),
        };
        // Only unchecked bytes can cause NaN.
        if distance.is_nan() {
            f32::INFINITY
        } else {
            distance
        }
    }

    /// A distance as a squared distance in space.
    #[inline]
    pub(crate) fn squared(&self, distance: f32) -> f32 {
        match self.space.similarity {
            Similarity::Cosine => 2.0 + 2.0 * distance,
            Similarity::DotProduct => 2.0 * self.space.reach + 2.0 * self.stretch * distance,
            Similarity::Euclidean => distance,
        }
    }

    /// The distance that has this square in space.
    pub(crate) fn of_square(&self, squared: f32) -> f32 {
        match self.space.similarity {
            Similarity::Cosine => squared / 2.0 - 1.0,
            Similarity::DotProduct if self.stretch > 0.0 => {
                (squared - 2.0 * self.space.reach) / (2.0 * self.stretch)
            }
            // All products with a zero query are equal.
            Similarity::DotProduct => 0.0,
            Similarity::Euclidean => squared,
        }
    }

    /// The score of a distance from a query.
    pub(crate) fn score(&self, distance: f32) -> f32 {
        match self.space.similarity {
            Similarity::Cosine | Similarity::DotProduct => (1.0 - distance) / 2.0,
            Similarity::Euclidean => 1.0 / (1.0 + distance),
        }
    }
}

/// The precomputed weight of a vector for a similarity.
pub(crate) fn weight_of(similarity: Similarity, vector: &[f32]) -> f32 {
    let square = square_of(vector);
    match similarity {
        Similarity::Cosine => (1.0 / square.sqrt()).min(f64::from(f32::MAX)) as f32,
        Similarity::DotProduct => square as f32,
        Similarity::Euclidean => 0.0,
    }
}

fn square_of(vector: &[f32]) -> f64 {
    vector.iter().map(|value| f64::from(*value).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(similarity: Similarity) -> Space {
        Space {
            similarity,
            kernel: Kernel::new(),
            reach: 25.0,
        }
    }

    fn score(similarity: Similarity, a: &[f32], b: &[f32]) -> f32 {
        let probe = Probe::query(space(similarity), a);
        probe.score(probe.distance(b, weight_of(similarity, b)))
    }

    #[test]
    fn scores_are_those_of_the_functions() {
        let (a, b) = ([1.0, 2.0], [3.0, -4.0]);
        let near = |is: f32, expected: f32| assert!((is - expected).abs() < 1e-6, "{is} {expected}");
        near(
            score(Similarity::Cosine, &a, &b),
            (1.0 - 5.0 / (5.0_f32.sqrt() * 5.0)) / 2.0,
        );
        near(score(Similarity::DotProduct, &a, &b), (1.0 - 5.0) / 2.0);
        near(score(Similarity::Euclidean, &a, &b), 1.0 / 41.0);
    }

    #[test]
    fn members_are_at_no_distance_from_themselves() {
        for similarity in [Similarity::Cosine, Similarity::Euclidean] {
            for vector in [[1.0, 2.0], [3.0, 4.0], [0.5, 0.0]] {
                let weight = weight_of(similarity, &vector);
                let probe = Probe::member(space(similarity), &vector, weight);
                assert!(probe.squared(probe.distance(&vector, weight)).abs() < 1e-4);
                let between = space(similarity).squared_between((&vector, weight), (&vector, weight));
                assert!(between.abs() < 1e-4);
            }
        }
    }

    #[test]
    fn a_distance_is_that_of_its_square() {
        for similarity in Similarity::ALL {
            let probe = Probe::query(space(similarity), &[1.0, 2.0]);
            let vector = [2.0, 1.0];
            let distance = probe.distance(&vector, weight_of(similarity, &vector));
            let back = probe.of_square(probe.squared(distance));
            assert!((back - distance).abs() < 1e-3, "{similarity:?} {distance} {back}");
        }
    }
}
