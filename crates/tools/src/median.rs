//! What several runs come to: one that was disturbed is not to move it.

/// The value in the middle; the greater of two. Zero if there is none.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
