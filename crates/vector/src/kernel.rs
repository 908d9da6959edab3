//! Dot products and squared distances, with the widest instructions of the processor.
//!
//! Sums are computed in lanes, and the lanes are added in a fixed order, without fused operations, so that every processor
//! returns the same bits. The second vector may be bytes of a file (little-endian), which are converted in registers.

use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch, f32x16};

const LANES: usize = 16;

/// A stored component.
pub(crate) trait Lane: Copy {
    fn number(self) -> f32;
}

impl Lane for f32 {
    #[inline(always)]
    fn number(self) -> f32 {
        self
    }
}

impl Lane for [u8; 4] {
    #[inline(always)]
    fn number(self) -> f32 {
        f32::from_le_bytes(self)
    }
}

/// The instructions of the processor, detected once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel(Level);

impl Kernel {
    pub(crate) fn new() -> Self {
        Self(Level::new())
    }

    /// The dot product. If the lengths differ, the rest of the longer vector is ignored.
    pub(crate) fn dot<L: Lane>(self, a: &[f32], b: &[L]) -> f32 {
        dispatch!(self.0, simd => sum(simd, a, b, Product))
    }

    /// The sum of squared differences.
    pub(crate) fn squared_distance<L: Lane>(self, a: &[f32], b: &[L]) -> f32 {
        dispatch!(self.0, simd => sum(simd, a, b, SquaredDifference))
    }
}

/// A term of a sum.
trait Term: Copy {
    fn wide<S: Simd>(self, x: f32x16<S>, y: f32x16<S>) -> f32x16<S>;
    fn one(self, x: f32, y: f32) -> f32;
}

#[derive(Clone, Copy)]
struct Product;

impl Term for Product {
    #[inline(always)]
    fn wide<S: Simd>(self, x: f32x16<S>, y: f32x16<S>) -> f32x16<S> {
        x * y
    }

    #[inline(always)]
    fn one(self, x: f32, y: f32) -> f32 {
        x * y
    }
}

#[derive(Clone, Copy)]
struct SquaredDifference;

impl Term for SquaredDifference {
    #[inline(always)]
    fn wide<S: Simd>(self, x: f32x16<S>, y: f32x16<S>) -> f32x16<S> {
        let difference = x - y;
        difference * difference
    }

    #[inline(always)]
    fn one(self, x: f32, y: f32) -> f32 {
        (x - y) * (x - y)
    }
}

#[inline(always)]
fn sum<S: Simd, L: Lane>(simd: S, a: &[f32], b: &[L], term: impl Term) -> f32 {
    simd.vectorize(
        #[inline(always)]
        || {
            let (wide, rest) = a.as_chunks::<LANES>();
            let (wide_b, rest_b) = b.as_chunks::<LANES>();
            let (twice, last) = wide.as_chunks::<2>();
            let (twice_b, last_b) = wide_b.as_chunks::<2>();
            let mut even = f32x16::splat(simd, 0.0);
            let mut odd = even;
            for ([x, other_x], [y, other_y]) in twice.iter().zip(twice_b) {
                even += term.wide(load(simd, x), load(simd, y));
                odd += term.wide(load(simd, other_x), load(simd, other_y));
            }
            for (x, y) in last.iter().zip(last_b) {
                even += term.wide(load(simd, x), load(simd, y));
            }
            let rest = rest.iter().zip(rest_b).map(|(x, y)| term.one(*x, y.number()));
            added(even + odd) + rest.sum::<f32>()
        },
    )
}

#[inline(always)]
fn load<S: Simd, L: Lane>(simd: S, lanes: &[L; LANES]) -> f32x16<S> {
    f32x16::simd_from(simd, lanes.map(Lane::number))
}

/// The sum of the lanes, always adding halves.
#[inline(always)]
fn added<S: Simd>(lanes: f32x16<S>) -> f32 {
    let (low, high) = lanes.split();
    let (low, high) = (low + high).split();
    let [a, b, c, d] = *(low + high);
    (a + c) + (b + d)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_sums_are_those_of_a_plain_loop_whatever_the_length(
            pairs in prop::collection::vec((-8.0_f32..8.0, -8.0_f32..8.0), 1..200)
        ) {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            let bytes: Vec<[u8; 4]> = b.iter().map(|value| value.to_le_bytes()).collect();
            let kernel = Kernel::new();
            let wide = |x: f32| f64::from(x);
            let dot: f64 = a.iter().zip(&b).map(|(x, y)| wide(*x) * wide(*y)).sum();
            let squares: f64 = a.iter().zip(&b).map(|(x, y)| (wide(*x) - wide(*y)).powi(2)).sum();
            prop_assert!((f64::from(kernel.dot(&a, &b)) - dot).abs() < 0.01);
            prop_assert!((f64::from(kernel.squared_distance(&a, &b)) - squares).abs() < 0.01);
            prop_assert_eq!(kernel.dot(&a, &b).to_bits(), kernel.dot(&a, &bytes).to_bits());
        }
    }
}
