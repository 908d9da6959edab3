//! What came out.

use std::fmt;

use serde::Serialize;

/// All shapes.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub shapes: Vec<ShapeReport>,
}

/// One shape. Times are of the thread on a CPU, the best of all runs.
#[derive(Debug, Default, Serialize)]
pub(super) struct ShapeReport {
    pub shape: &'static str,
    pub partitions: u64,
    pub rows: u64,
    /// Uncompressed bytes of Data.db.
    pub data_bytes: u64,
    /// Bytes of Data.db.
    pub stored_bytes: u64,
    /// Reading, checking and decompressing chunks.
    pub read_chunks_nanos: u64,
    /// The same, and decoding all rows.
    pub read_nanos: u64,
    /// The same, rows being seen where they lie if they are plain.
    pub read_plain_nanos: u64,
    /// Compressing and writing chunks.
    pub write_chunks_nanos: u64,
    /// The same, encoding all rows, and all other components.
    pub write_nanos: u64,
    /// The same, rows being written where they lie if they are plain.
    pub write_plain_nanos: u64,
    pub open_nanos: u64,
    /// Reads of files that opening took.
    pub open_reads: u64,
    /// Bytes that it read.
    pub open_bytes: u64,
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / (whole.max(1)) as f64
}

impl ShapeReport {
    /// Decimal megabytes of uncompressed data a second.
    fn rate(&self, nanos: u64) -> f64 {
        ratio(self.data_bytes, nanos) * 1000.0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "MB are 10^6 uncompressed bytes of Data.db; one core, CPU time; best of all runs"
        )?;
        write!(
            f,
            "{:10} {:>9} {:>7} | {:>10} {:>10} {:>6} {:>7} {:>10} {:>6} {:>7} | {:>10} {:>10} {:>6} {:>7} {:>10} {:>6} {:>7} | open",
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
            "{:10} {:>9} {:>7.3} | {:>10.0} {:>10.0} {:>4.0} % {:>7.0} {:>10.0} {:>4.0} % {:>7.0} | {:>10.0} {:>10.0} {:>4.0} % {:>7.0} {:>10.0} {:>4.0} % {:>7.0} | {} reads, {} bytes, {} us",
            self.shape,
            self.rows,
            ratio(self.stored_bytes, self.data_bytes),
            self.rate(self.read_chunks_nanos),
            self.rate(self.read_nanos),
            100.0 * ratio(self.read_chunks_nanos, self.read_nanos),
            ratio(self.read_nanos, self.rows),
            self.rate(self.read_plain_nanos),
            100.0 * ratio(self.read_chunks_nanos, self.read_plain_nanos),
            ratio(self.read_plain_nanos, self.rows),
            self.rate(self.write_chunks_nanos),
            self.rate(self.write_nanos),
            100.0 * ratio(self.write_chunks_nanos, self.write_nanos),
            ratio(self.write_nanos, self.rows),
            self.rate(self.write_plain_nanos),
            100.0 * ratio(self.write_chunks_nanos, self.write_plain_nanos),
            ratio(self.write_plain_nanos, self.rows),
            self.open_reads,
            self.open_bytes,
            self.open_nanos / 1000,
        )
    }
}
