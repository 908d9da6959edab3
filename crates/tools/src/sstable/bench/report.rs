//! The result of `bench`.

use std::fmt;

use serde::Serialize;

use crate::median::median;

/// The results of all shapes.
#[derive(Debug, Serialize)]
pub(super) struct BenchReport {
    pub shapes: Vec<ShapeReport>,
}

/// The result of one shape.
#[derive(Debug, Default, Serialize)]
pub(super) struct ShapeReport {
    pub shape: &'static str,
    pub partitions: u64,
    pub rows: u64,
    /// Uncompressed bytes of Data.db.
    pub data_bytes: u64,
    /// Bytes of Data.db on disk.
    pub stored_bytes: u64,
    /// Times of reading.
    pub read: CpuTimes,
    /// Times of writing, with all components.
    pub write: CpuTimes,
    pub open_nanos: u64,
    /// Reads of files while opening.
    pub open_reads: u64,
    /// Bytes read while opening.
    pub open_bytes: u64,
}

/// CPU time of the thread, for each run.
#[derive(Debug, Default, Serialize)]
pub(super) struct CpuTimes {
    /// Chunks alone.
    pub chunks_nanos: Vec<u64>,
    /// With rows, which are built or encoded.
    pub rows_nanos: Vec<u64>,
    /// With rows; plain rows are visited or written in place.
    pub plain_nanos: Vec<u64>,
    /// As `plain_nanos`, but all values of plain rows are visited, too; only for reading.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values_nanos: Vec<u64>,
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / (whole.max(1)) as f64
}

fn best(nanos: &[u64]) -> u64 {
    nanos.iter().copied().min().unwrap_or_default()
}

impl CpuTimes {
    /// The time of chunks alone, as a share of the time in the same run; the median of the runs. Both times are of the same run, since
    /// the speed of the machine may differ between runs.
    fn share(&self, nanos: &[u64]) -> f64 {
        let pairs = self.chunks_nanos.iter().zip(nanos);
        median(pairs.map(|(chunks, nanos)| ratio(*chunks, *nanos)).collect())
    }
}

impl ShapeReport {
    /// Decimal megabytes of uncompressed data per second, in the best run.
    fn rate(&self, nanos: &[u64]) -> f64 {
        ratio(self.data_bytes, best(nanos)) * 1000.0
    }

    fn columns(&self, times: &CpuTimes) -> String {
        let mut columns = format!("{:>10.0}", self.rate(&times.chunks_nanos));
        let measured = [&times.rows_nanos, &times.plain_nanos, &times.values_nanos];
        for nanos in measured.into_iter().filter(|nanos| !nanos.is_empty()) {
            let (rate, share) = (self.rate(nanos), 100.0 * times.share(nanos));
            let row = ratio(best(nanos), self.rows);
            columns += &format!(" {rate:>10.0} {share:>4.0} % {row:>7.0}");
        }
        columns
    }
}

impl fmt::Display for BenchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "MB are 10^6 uncompressed bytes of Data.db; one core, CPU time; MB/s and ns of the best run, shares of the median one"
        )?;
        write!(
            f,
            "{:10} {:>9} {:>7} | {:>10} {:>10} {:>6} {:>7} {:>10} {:>6} {:>7} {:>10} {:>6} {:>7} | {:>10} {:>10} {:>6} {:>7} {:>10} {:>6} {:>7} | open",
            "shape",
            "rows",
            "ratio",
            "chunks",
            "read MB/s",
            "share",
            "ns/row",
            "plain MB/s",
            "share",
            "ns/row",
            "values",
            "share",
            "ns/row",
            "chunks",
            "write MB/s",
            "share",
            "ns/row",
            "plain MB/s",
            "share",
            "ns/row"
        )?;
        for shape in &self.shapes {
            write!(f, "\n{shape}")?;
        }
        Ok(())
    }
}

impl fmt::Display for ShapeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:10} {:>9} {:>7.3} | {} | {} | {} reads, {} bytes, {} us",
            self.shape,
            self.rows,
            ratio(self.stored_bytes, self.data_bytes),
            self.columns(&self.read),
            self.columns(&self.write),
            self.open_reads,
            self.open_bytes,
            self.open_nanos / 1000,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_that_of_the_median_run() {
        let times = CpuTimes {
            chunks_nanos: vec![80, 30, 45],
            rows_nanos: vec![100, 100, 50],
            ..CpuTimes::default()
        };
        assert!((times.share(&times.rows_nanos) - 0.8).abs() < 1e-9);
        assert_eq!(best(&times.rows_nanos), 50);
    }
}
