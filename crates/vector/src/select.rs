//! Chooses the links that a node keeps: near ones, but in different directions.

use crate::Near;

/// In the second round, a candidate must be nearer by this factor to a kept node than to the linking one to be left out.
const RELAXED: f32 = 1.2;

/// Chooses at most `most` of the candidates, which come nearest first.
///
/// A candidate that is nearer to a chosen one than to the node itself is reached through that one, so it is left out. If few
/// are left, a second round is less strict. `between` returns the squared distance of two candidates, `squared` the one of a
/// candidate and the node.
pub(crate) fn select(
    candidates: &[Near],
    most: usize,
    squared: impl Fn(f32) -> f32,
    mut between: impl FnMut(u32, u32) -> f32,
) -> Vec<Near> {
    let mut chosen: Vec<Near> = Vec::with_capacity(most.min(candidates.len()));
    let mut left_out: Vec<Near> = Vec::new();
    for (round, strictness) in [1.0, RELAXED * RELAXED].into_iter().enumerate() {
        let candidates = if round == 0 {
            candidates
        } else {
            &std::mem::take(&mut left_out)
        };
        for candidate in candidates {
            if chosen.len() == most {
                return chosen;
            }
            let distance = squared(candidate.distance);
            let is_covered = chosen
                .iter()
                .any(|kept| between(kept.id, candidate.id) * strictness < distance);
            if is_covered {
                left_out.push(*candidate);
            } else {
                chosen.push(*candidate);
            }
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(points: &[f32], most: usize) -> Vec<u32> {
        let mut candidates: Vec<Near> = (0..points.len() as u32)
            .map(|id| Near {
                distance: points[id as usize].powi(2),
                id,
            })
            .collect();
        candidates.sort_unstable();
        let between = |a: u32, b: u32| (points[a as usize] - points[b as usize]).powi(2);
        select(&candidates, most, |distance| distance, between)
            .into_iter()
            .map(|near| near.id)
            .collect()
    }

    #[test]
    fn one_of_each_direction_is_kept() {
        assert_eq!(chosen(&[1.0, 2.0, 3.0, -4.0], 8), [0, 3]);
    }

    #[test]
    fn equal_points_do_not_hide_each_other() {
        assert_eq!(chosen(&[0.0, 0.0, 0.0], 2), [0, 1]);
    }
}
