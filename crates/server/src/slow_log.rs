//! The slow-query log: statements that took longer than `slow_query_log_timeout`, reported every few seconds.
//!
//! Compat: like in Cassandra's `MonitoringTask`, statements of a shape share a line, and a report has a bounded number of lines.
//! Unlike Cassandra's, the report has writes, too, and each line has the values and costs of the slowest execution. The wait for the
//! commit log does not make a statement slow.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use ilion_env::{Cost, Count};

/// Compat: `cassandra.monitoring_report_interval_ms`.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);
/// Compat: `cassandra.monitoring_max_operations`.
const LINES_MAX: usize = 50;
/// Most slow statements that wait for the thread of the log; further ones are dropped.
const WAITING_MAX: usize = 1000;

/// A slow execution.
#[derive(Clone, Debug, Default)]
pub struct SlowStatement {
    /// Keyspace and text of its shape.
    pub shape: String,
    /// The statement and its values, abbreviated.
    pub text: String,
    /// Its latency, in nanoseconds.
    pub elapsed_nanos: u64,
    /// Its cost.
    pub cost: Cost,
}

/// Slow executions of one shape.
#[derive(Clone, Debug)]
struct SlowShape {
    count: u64,
    total_nanos: u64,
    min_nanos: u64,
    slowest: SlowStatement,
}

/// The slow statements of one report.
#[derive(Debug, Default)]
struct SlowReport {
    shapes: BTreeMap<String, SlowShape>,
    count: u64,
}

impl SlowReport {
    fn take(&mut self, slow: SlowStatement) {
        self.count += 1;
        let nanos = slow.elapsed_nanos;
        let Some(shape) = self.shapes.get_mut(&slow.shape) else {
            let first = SlowShape {
                count: 1,
                total_nanos: nanos,
                min_nanos: nanos,
                slowest: slow,
            };
            self.shapes.insert(first.slowest.shape.clone(), first);
            return;
        };
        shape.count += 1;
        shape.total_nanos += nanos;
        shape.min_nanos = shape.min_nanos.min(nanos);
        if nanos > shape.slowest.elapsed_nanos {
            shape.slowest = slow;
        }
    }

    /// The lines, slowest first; `None` if no statement was slow.
    fn print(&self, threshold: Duration, interval: Duration) -> Option<String> {
        if self.count == 0 {
            return None;
        }
        let (count, interval) = (self.count, interval.as_millis());
        let mut lines = format!("{count} operations were slow in the last {interval} msecs:");
        let mut shapes: Vec<&SlowShape> = self.shapes.values().collect();
        shapes.sort_by_key(|shape| std::cmp::Reverse(shape.slowest.elapsed_nanos));
        for shape in shapes.iter().take(LINES_MAX) {
            lines += &format!("\n{}", line(shape, threshold));
        }
        if let Some(more) = shapes.len().checked_sub(LINES_MAX).filter(|more| *more > 0) {
            lines += &format!("\n.. ({more} more were left out)");
        }
        Some(lines)
    }
}

fn line(shape: &SlowShape, threshold: Duration) -> String {
    let slowest = &shape.slowest;
    let millis = |nanos: u64| nanos / 1_000_000;
    let time = match shape.count {
        1 => format!("time {} msec", millis(slowest.elapsed_nanos)),
        count => format!(
            "was slow {count} times: avg/min/max {}/{}/{} msec",
            millis(shape.total_nanos / count),
            millis(shape.min_nanos),
            millis(slowest.elapsed_nanos)
        ),
    };
    format!(
        "<{}>, {time} - slow timeout {} msec; {}",
        slowest.text,
        threshold.as_millis(),
        in_words(&slowest.cost)
    )
}

/// Prints a cost in one line.
fn in_words(cost: &Cost) -> String {
    let io = &cost.io;
    let mut words = vec![
        format!(
            "read {} bytes in {} reads ({} us)",
            io.bytes_read,
            io.reads,
            io.read_nanos / 1000
        ),
        format!(
            "{} of {} sstables",
            cost.of(Count::SSTablesTouched),
            cost.of(Count::SSTablesConsidered)
        ),
        format!("{} rows", cost.of(Count::Rows)),
        format!("{} tombstones", cost.of(Count::Tombstones)),
        format!("{} rows returned", cost.of(Count::RowsReturned)),
    ];
    for (count, what) in [
        (Count::LockNanos, "locks"),
        (Count::ThrottleNanos, "memory and compactions"),
    ] {
        if cost.of(count) > 0 {
            words.push(format!("waited {} us for {what}", cost.of(count) / 1000));
        }
    }
    words.join(", ")
}

/// The slow-query log. Its thread runs until this is dropped.
#[derive(Debug, Default)]
pub struct SlowLog {
    /// Threshold in nanoseconds; 0 disables the log.
    threshold: Arc<AtomicU64>,
    sender: Option<Sender<SlowStatement>>,
    thread: Option<JoinHandle<()>>,
}

impl SlowLog {
    /// Starts a log of statements that take longer than the threshold; zero disables it until it is changed.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(threshold: Duration) -> io::Result<Self> {
        let log = Self::default();
        log.set_threshold(threshold);
        let threshold = log.threshold.clone();
        let (sender, receiver) = bounded(WAITING_MAX);
        let thread = std::thread::Builder::new()
            .name("ilion-slow-log".to_owned())
            .spawn(move || run(&receiver, &threshold))?;
        Ok(Self {
            threshold: log.threshold.clone(),
            sender: Some(sender),
            thread: Some(thread),
        })
    }

    /// Changes the threshold; zero disables the log.
    pub fn set_threshold(&self, threshold: Duration) {
        let nanos = u64::try_from(threshold.as_nanos()).unwrap_or(u64::MAX);
        self.threshold.store(nanos, Ordering::Relaxed);
    }

    /// True if this latency exceeds the threshold.
    #[inline]
    pub fn is_slow(&self, elapsed_nanos: u64) -> bool {
        let threshold = self.threshold.load(Ordering::Relaxed);
        threshold > 0 && elapsed_nanos > threshold
    }

    /// Adds a statement to the next report. The statement is dropped if too many wait.
    pub fn note(&self, slow: SlowStatement) {
        if let Some(sender) = &self.sender {
            let _ = sender.try_send(slow);
        }
    }
}

impl Drop for SlowLog {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(slow: &Receiver<SlowStatement>, threshold: &AtomicU64) {
    while let Ok(first) = slow.recv() {
        let started = Instant::now();
        let mut report = SlowReport::default();
        report.take(first);
        let is_over = loop {
            match slow.recv_deadline(started + REPORT_INTERVAL) {
                Ok(next) => report.take(next),
                Err(RecvTimeoutError::Timeout) => break false,
                Err(RecvTimeoutError::Disconnected) => break true,
            }
        };
        let threshold = Duration::from_nanos(threshold.load(Ordering::Relaxed));
        if let Some(lines) = report.print(threshold, started.elapsed()) {
            tracing::info!(target: "ilion_server::slow", "{lines}");
        }
        if is_over {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(shape: &str, value: u64, millis: u64) -> SlowStatement {
        SlowStatement {
            shape: shape.to_owned(),
            text: format!("{shape} with {value}"),
            elapsed_nanos: millis * 1_000_000,
            cost: Cost::default().with(Count::Rows, value),
        }
    }

    #[test]
    fn statements_of_a_shape_share_a_line_with_the_slowest_of_them() {
        let mut report = SlowReport::default();
        for (value, millis) in [(1, 600), (2, 900), (3, 750)] {
            report.take(slow("SELECT a", value, millis));
        }
        report.take(slow("SELECT b", 4, 501));
        let printed = report.print(Duration::from_millis(500), Duration::from_millis(5003));
        let expected = "4 operations were slow in the last 5003 msecs:\n\
            <SELECT a with 2>, was slow 3 times: avg/min/max 750/600/900 msec - slow timeout 500 msec; \
            read 0 bytes in 0 reads (0 us), 0 of 0 sstables, 2 rows, 0 tombstones, 0 rows returned\n\
            <SELECT b with 4>, time 501 msec - slow timeout 500 msec; \
            read 0 bytes in 0 reads (0 us), 0 of 0 sstables, 4 rows, 0 tombstones, 0 rows returned";
        assert_eq!(printed.as_deref(), Some(expected));
    }

    #[test]
    fn a_report_has_a_bounded_number_of_lines() {
        let mut report = SlowReport::default();
        for shape in 0..LINES_MAX as u64 + 7 {
            report.take(slow(&format!("SELECT {shape:03}"), 1, 1000 - shape));
        }
        let printed = report.print(Duration::from_millis(500), REPORT_INTERVAL).unwrap();
        assert_eq!(printed.lines().count(), LINES_MAX + 2);
        assert!(printed.ends_with(".. (7 more were left out)"), "{printed}");
        assert!(
            SlowReport::default()
                .print(Duration::ZERO, REPORT_INTERVAL)
                .is_none()
        );
    }

    #[test]
    fn a_threshold_of_zero_logs_nothing() {
        let never = SlowLog::start(Duration::ZERO).unwrap();
        assert!(!never.is_slow(u64::MAX));
        let log = SlowLog::start(Duration::from_millis(500)).unwrap();
        assert!(!log.is_slow(500_000_000) && log.is_slow(500_000_001));
        log.note(slow("SELECT a", 1, 600));
        log.set_threshold(Duration::ZERO);
        assert!(!log.is_slow(u64::MAX));
    }
}
