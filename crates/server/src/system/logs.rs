//! `system_views.system_logs`: the last lines of the log.

use ilion_engine::{VirtualRow, VirtualTable};
use ilion_node::values::{cell, int, text, timestamp};

use crate::recent_log::{self, LogLine};

/// `system_logs`: the last lines of the log; TRUNCATE deletes them.
pub(super) struct LogsTable;

impl VirtualTable for LogsTable {
    fn rows(&self) -> Vec<VirtualRow> {
        logs(recent_log::lines())
    }

    fn clear(&self) -> bool {
        recent_log::clear();
        true
    }

    fn is_clearable(&self) -> bool {
        true
    }
}

/// Lines of the log, oldest first.
fn logs(lines: Vec<LogLine>) -> Vec<VirtualRow> {
    let (mut last_millis, mut order) = (i64::MIN, 0);
    let row = |line: LogLine| {
        order = if line.millis == last_millis { order + 1 } else { 0 };
        last_millis = line.millis;
        VirtualRow {
            partition_key: vec![timestamp(line.millis)],
            clustering: vec![int(order)],
            cells: [
                ("level", text(line.level)),
                ("logger", text(&line.logger)),
                ("message", text(&line.message)),
            ]
            .map(|(name, value)| cell(name, value))
            .into(),
        }
    };
    lines.into_iter().map(row).collect()
}
