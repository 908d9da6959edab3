//! The last lines of the log in memory, for `system_views.system_logs`.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Most lines.
const LINES_MAX: usize = 10_000;
/// Most bytes of these lines.
const BYTES_MAX: usize = 8 << 20;

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogLine {
    /// Time of the event, in milliseconds since 1970.
    pub millis: i64,
    pub level: &'static str,
    /// Module of the event.
    pub logger: String,
    pub message: String,
}

/// The last lines; the oldest are dropped first.
#[derive(Debug, Default)]
pub(crate) struct RecentLog {
    lines: VecDeque<LogLine>,
    bytes: usize,
}

/// One log for the process.
static RECENT: OnceLock<Mutex<RecentLog>> = OnceLock::new();

fn recent() -> &'static Mutex<RecentLog> {
    RECENT.get_or_init(Mutex::default)
}

/// All lines, oldest first.
pub(crate) fn lines() -> Vec<LogLine> {
    recent().lock().lines.iter().cloned().collect()
}

/// Deletes all lines.
pub(crate) fn clear() {
    *recent().lock() = RecentLog::default();
}

impl RecentLog {
    fn push(&mut self, line: LogLine) {
        self.bytes += line.logger.len() + line.message.len();
        self.lines.push_back(line);
        while self.lines.len() > LINES_MAX || self.bytes > BYTES_MAX {
            let Some(oldest) = self.lines.pop_front() else {
                break;
            };
            self.bytes -= oldest.logger.len() + oldest.message.len();
        }
    }
}

/// Layer that adds each event to the lines.
pub(crate) struct Keeper;

impl<S: Subscriber> Layer<S> for Keeper {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let metadata = event.metadata();
        recent().lock().push(LogLine {
            millis: i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            level: metadata.level().as_str(),
            logger: metadata.target().to_owned(),
            message: text.message + &text.fields,
        });
    }
}

/// Prints an event: its message, then its fields.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_lines_and_bytes_are_kept() {
        let mut recent = RecentLog::default();
        let line = |number: i64, message: String| LogLine {
            millis: number,
            level: "INFO",
            logger: "test".to_owned(),
            message,
        };
        for number in 0..LINES_MAX as i64 + 3 {
            recent.push(line(number, "short".to_owned()));
        }
        assert_eq!((recent.lines.len(), recent.lines[0].millis), (LINES_MAX, 3));
        recent.push(line(0, "x".repeat(BYTES_MAX)));
        assert!(
            recent.lines.len() <= 1 && recent.bytes <= BYTES_MAX,
            "{} bytes",
            recent.bytes
        );
    }
}
