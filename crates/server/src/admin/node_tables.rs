//! Tables of the node for operators: `nodetool compactionhistory`, `tpstats`, `clientstats` and others.
//!
//! Their rows are those of a table that clients can read, too.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::layout::laid_out;
use crate::dashboard::QueryReport;

/// A table with facts of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeTable {
    /// Compactions of the last week.
    CompactionHistory,
    /// Threads and their queues.
    ThreadPools,
    /// Connected clients.
    Clients,
    /// How many threads each pool has.
    Concurrency,
    /// How many clients were accepted and rejected, by group of addresses.
    CidrCounts,
    /// How long the checks of clients against these groups took.
    CidrLatencies,
}

impl NodeTable {
    /// The CQL statement that reads the table.
    pub(super) fn statement(self) -> String {
        let (columns, table): (&[&str], _) = match self {
            Self::CompactionHistory => (&COMPACTION_COLUMNS, "system.compaction_history"),
            Self::ThreadPools => (&POOL_COLUMNS, "system_views.thread_pools"),
            Self::Clients => (&CLIENT_COLUMNS, "system_views.clients"),
            Self::Concurrency => (&["name", "active_tasks_limit"], "system_views.thread_pools"),
            Self::CidrCounts => (&["name", "value"], "system_views.cidr_filtering_metrics_counts"),
            Self::CidrLatencies => (&LATENCY_COLUMNS, "system_views.cidr_filtering_metrics_latencies"),
        };
        format!("SELECT {} FROM {table}", columns.join(", "))
    }
}

const COMPACTION_COLUMNS: [&str; 8] = [
    "id",
    "keyspace_name",
    "columnfamily_name",
    "compacted_at",
    "bytes_in",
    "bytes_out",
    "rows_merged",
    "compaction_properties",
];
const POOL_COLUMNS: [&str; 6] = [
    "name",
    "active_tasks",
    "pending_tasks",
    "completed_tasks",
    "blocked_tasks",
    "blocked_tasks_all_time",
];
const LATENCY_COLUMNS: [&str; 6] = ["name", "p50th", "p95th", "p99th", "p999th", "max"];
const CLIENT_COLUMNS: [&str; 9] = [
    "address",
    "port",
    "ssl_enabled",
    "ssl_cipher_suite",
    "ssl_protocol",
    "protocol_version",
    "username",
    "driver_name",
    "driver_version",
];

/// The rows of a table of the node, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeTableReport {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Values as CQL literals, texts without quotes; empty for null.
    pub rows: Vec<Vec<String>>,
}

impl NodeTableReport {
    pub(super) fn of(report: QueryReport) -> Self {
        let cells = |row: Vec<Option<String>>| row.into_iter().map(Option::unwrap_or_default).collect();
        Self {
            columns: report.columns.into_iter().map(|column| column.name).collect(),
            rows: report.rows.into_iter().map(cells).collect(),
        }
    }

    /// The text of `nodetool compactionhistory`.
    pub fn compaction_history(&self) -> String {
        const COMPACTED_AT: usize = 3;
        if self.rows.is_empty() {
            return "Compaction History: \nThere is no compaction history".to_owned();
        }
        let mut rows = self.rows.clone();
        rows.sort_by(|a, b| b.get(COMPACTED_AT).cmp(&a.get(COMPACTED_AT)));
        for row in &mut rows {
            for (column, cell) in row.iter_mut().enumerate() {
                *cell = match column {
                    COMPACTED_AT => cell.replace(' ', "T").trim_end_matches('Z').to_owned(),
                    // Compat: maps are printed without quotes.
                    _ => cell.replace('\'', "").replace(": ", ":"),
                };
            }
        }
        rows.insert(0, self.columns.clone());
        format!("Compaction History: \n{}", laid_out(&rows).trim_end_matches('\n'))
    }

    /// The text of `nodetool tpstats`, without its list of dropped messages: Ilion does not count those by the type of the message.
    pub fn thread_pools(&self) -> String {
        let headers = [
            "Pool Name",
            "Active",
            "Pending",
            "Completed",
            "Blocked",
            "All time blocked",
        ];
        let mut rows = vec![headers.map(str::to_owned).to_vec()];
        rows.extend(self.rows.iter().cloned());
        laid_out(&rows).trim_end_matches('\n').to_owned()
    }

    /// The text of `nodetool clientstats`; with `shows_all`, a line for each connection comes first.
    pub fn clients(&self, shows_all: bool) -> String {
        const USERNAME: usize = 6;
        let headers = [
            "Address",
            "SSL",
            "Cipher",
            "Protocol",
            "Version",
            "User",
            "Driver-Name",
            "Driver-Version",
        ];
        let mut text = String::new();
        if shows_all && !self.rows.is_empty() {
            let mut rows = vec![headers.map(str::to_owned).to_vec()];
            rows.extend(self.rows.iter().map(|row| connection(row)));
            text = format!("{}\n", laid_out(&rows));
        }
        let mut users: BTreeMap<&str, u64> = BTreeMap::new();
        for row in &self.rows {
            *users
                .entry(row.get(USERNAME).map_or("", String::as_str))
                .or_default() += 1;
        }
        let mut rows = vec![["User", "Connections"].map(str::to_owned).to_vec()];
        rows.extend(
            users
                .into_iter()
                .map(|(user, count)| vec![user.to_owned(), count.to_string()]),
        );
        format!(
            "{text}Total connected clients: {}\n\n{}",
            self.rows.len(),
            laid_out(&rows).trim_end_matches('\n')
        )
    }
}

/// The line of a connection.
fn connection(row: &[String]) -> Vec<String> {
    let cell = |column: usize| match row.get(column).map(String::as_str) {
        None | Some("") => "undefined".to_owned(),
        Some(cell) => cell.to_owned(),
    };
    // The literal of an address has quotes.
    let address = format!("/{}:{}", cell(0).trim_matches('\''), cell(1));
    [address]
        .into_iter()
        .chain((2..CLIENT_COLUMNS.len()).map(cell))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(columns: &[&str], rows: &[&[&str]]) -> NodeTableReport {
        let owned = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
        NodeTableReport {
            columns: owned(columns),
            rows: rows.iter().map(|row| owned(row)).collect(),
        }
    }

    #[test]
    fn the_history_is_laid_out_as_by_nodetool() {
        let rows: [&[&str]; 2] = [
            &[
                "1",
                "kx",
                "t",
                "2026-11-24 00:24:16.151Z",
                "42",
                "36",
                "{1: 1}",
                "{'compaction_type': 'Compaction'}",
            ],
            &[
                "2",
                "kx",
                "t",
                "2026-11-24 00:24:16.154Z",
                "105",
                "90",
                "{1: 3, 2: 1}",
                "",
            ],
        ];
        let expected = "Compaction History: \n\
            id keyspace_name columnfamily_name compacted_at            bytes_in bytes_out rows_merged compaction_properties       \n\
            2  kx            t                 2026-11-24T00:24:16.154 105      90        {1:3, 2:1}                              \n\
            1  kx            t                 2026-11-24T00:24:16.151 42       36        {1:1}       {compaction_type:Compaction}";
        assert_eq!(report(&COMPACTION_COLUMNS, &rows).compaction_history(), expected);
        let empty = report(&COMPACTION_COLUMNS, &[]).compaction_history();
        assert_eq!(empty, "Compaction History: \nThere is no compaction history");
    }

    #[test]
    fn clients_are_counted_by_user() {
        let rows: [&[&str]; 1] = [&[
            "127.0.0.1",
            "5000",
            "false",
            "",
            "",
            "5",
            "anonymous",
            "driver",
            "1.0",
        ]];
        let one = report(&CLIENT_COLUMNS, &rows);
        assert_eq!(
            one.clients(false),
            "Total connected clients: 1\n\nUser      Connections\nanonymous 1          "
        );
        assert!(
            one.clients(true)
                .contains("/127.0.0.1:5000 false undefined undefined 5       anonymous driver"),
            "{}",
            one.clients(true)
        );
        assert_eq!(
            report(&CLIENT_COLUMNS, &[]).clients(true),
            "Total connected clients: 0\n\nUser Connections"
        );
    }
}
