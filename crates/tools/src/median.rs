//! The median of several runs, which a disturbed run hardly changes.

/// The median; the greater of the two middle values. Zero without values.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
