//! The median of several runs, which a disturbed run hardly changes.

/// The median; for an even number of values, the greater of the two middle ones. Zero without values.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
