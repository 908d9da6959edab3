//! `nodetool info`, `version`, `compactionstats`, `proxyhistograms`, and verbs that switch parts of the node on and off.

use std::fmt::Write as _;

use ilion_server::admin::{
    BackupReport, BinaryReport, CompactionReport, Latencies, MemberState, NodeReport, Percentiles,
    RingReport, file_size, laid_out,
};

use super::call::Call;
use crate::Failure;
use crate::ask::say;

/// Prints identity, load, memory and caches of the node.
pub fn info(call: &Call) -> Result<(), Failure> {
    let node: NodeReport = call.get("node", &[])?;
    say(info_of(&node, call.has("--tokens")).trim_end());
    Ok(())
}

fn info_of(node: &NodeReport, shows_tokens: bool) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<23}: {value}");
    };
    line("ID", &node.host_id);
    line("Gossip active", "false");
    line("Native Transport active", &node.is_open.to_string());
    line("Load", &file_size(node.load_bytes));
    line("Uncompressed load", &file_size(node.data_bytes));
    line("Generation No", &node.started_secs.to_string());
    line("Uptime (seconds)", &node.uptime_secs.to_string());
    // Ilion has no heap: prints the memory of the process and of the machine instead.
    if let Some(resident) = node.resident_bytes {
        let (used, all) = (in_mib(resident), in_mib(node.machine_bytes));
        line("Heap Memory (MB)", &format!("{used:.2} / {all:.2}"));
    }
    line("Data Center", &node.data_center);
    line("Rack", &node.rack);
    for (name, cache) in [
        ("Key Cache", "keys"),
        ("Row Cache", "rows"),
        ("Counter Cache", "counters"),
        ("Chunk Cache", "chunks"),
    ] {
        let Some(facts) = node.caches.iter().find(|facts| facts.name == cache) else {
            continue;
        };
        let requests = facts.hits + facts.misses;
        #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
        let rate = match requests {
            0 => "NaN".to_owned(),
            requests => format!("{:.3}", facts.hits as f64 / requests as f64),
        };
        let period = match node.save_periods.get(cache) {
            Some(secs) => format!("{secs} save period in seconds"),
            None => "never saved".to_owned(),
        };
        line(
            name,
            &format!(
                "entries {}, size {}, capacity {}, {} hits, {requests} requests, {rate} recent hit rate, {period}",
                facts.entries,
                file_size(facts.bytes),
                file_size(facts.bytes_max),
                facts.hits
            ),
        );
    }
    let own = node.members.iter().find(|member| member.host_id == node.host_id);
    let is_joining = own.is_some_and(|own| own.state == MemberState::Joining);
    match (&*node.tokens, shows_tokens) {
        _ if is_joining => line("Token", "(node is not joined to the cluster)"),
        ([token], _) => line("Token", token),
        (tokens, true) => tokens.iter().for_each(|token| line("Token", token)),
        (tokens, false) => line(
            "Token",
            &format!("(invoke with -T/--tokens to see all {} tokens)", tokens.len()),
        ),
    }
    let state = if is_joining { "IN_PROGRESS" } else { "COMPLETED" };
    line("Bootstrap state", state);
    text
}

#[expect(clippy::cast_precision_loss, reason = "two digits are shown")]
fn in_mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Prints the version of Cassandra that clients see.
pub fn version(call: &Call) -> Result<(), Failure> {
    let node: NodeReport = call.get("node", &[])?;
    say(&format!("ReleaseVersion: {}", node.release_version));
    Ok(())
}

/// Does nothing: the node always has the newest schema. `route` answers the verb `help` before.
pub fn nothing(_: &Call) -> Result<(), Failure> {
    Ok(())
}

/// Prints that there are no seeds: nodes of a cluster find each other in the log.
pub fn no_seeds(_: &Call) -> Result<(), Failure> {
    say("Seed node list does not contain any remote node IPs");
    Ok(())
}

/// Prints how long the other members have been silent.
pub fn failures(call: &Call) -> Result<(), Failure> {
    let node: NodeReport = call.get("node", &[])?;
    say(&failures_of(&node));
    Ok(())
}

/// Compat: `phi_convict_threshold`, above which Cassandra considers a node down.
const PHI_OF_DOWN: f64 = 8.0;

/// Compat: laid out as by `FailureDetectorInfo`. Phi grows with the silence of a member; it is 8 when the member is considered down.
fn failures_of(node: &NodeReport) -> String {
    let mut text = format!("{:>10},{:>16}", "Endpoint", "Phi");
    for member in &node.members {
        if let Some(silence) = member.silence {
            let (endpoint, phi) = (format!("/{}", member.address), PHI_OF_DOWN * silence);
            let _ = write!(text, "\n{endpoint:>10},{phi:>16.8}");
        }
    }
    text
}

/// Prints that gossip is not running: nodes of a cluster know each other from the log.
pub fn no_gossip(_: &Call) -> Result<(), Failure> {
    say("not running");
    Ok(())
}

/// Prints the mode of the node, and which nodes copy tablets for a change of the ring. Compat: the modes of `StorageService.Mode`.
pub fn net_stats(call: &Call) -> Result<(), Failure> {
    let node: NodeReport = call.get("node", &[])?;
    let own = node.members.iter().find(|member| member.host_id == node.host_id);
    let ring: RingReport = match own {
        Some(_) => call.get("ring-change", &[])?,
        None => RingReport::default(),
    };
    let mode = match own.map(|own| own.state) {
        _ if ring.has_left => "DECOMMISSIONED",
        Some(MemberState::Leaving) => "LEAVING",
        Some(MemberState::Joining) => "JOINING",
        Some(MemberState::Normal) | None => "NORMAL",
    };
    say(&format!("Mode: {mode}"));
    match ring.change {
        Some(change) => {
            say(&format!("{} ({} slices)", change.what, change.slices));
            for node in &change.copying {
                let step = if node.is_ready { "has copied" } else { "copies" };
                say(&format!("    {} {step}", node.address));
            }
        }
        None => say("Not sending any streams."),
    }
    Ok(())
}

/// Stops the node.
pub fn stop_daemon(call: &Call) -> Result<(), Failure> {
    call.stop_node()?;
    say("Cassandra has shutdown.");
    Ok(())
}

/// Prints that hinted handoff is not running: Ilion has no hints.
pub fn no_hints(_: &Call) -> Result<(), Failure> {
    say("Hinted handoff is not running");
    Ok(())
}

/// Prints that no hints are pending: Ilion has no hints.
pub fn no_pending_hints(_: &Call) -> Result<(), Failure> {
    say("This node does not have any pending hints");
    Ok(())
}

/// Prints whether the port for CQL clients is open.
pub fn status_binary(call: &Call) -> Result<(), Failure> {
    let report: BinaryReport = call.get("binary", &[])?;
    say(running(report.on));
    Ok(())
}

/// Opens the port for CQL clients.
pub fn enable_binary(call: &Call) -> Result<(), Failure> {
    call.post("binary", &[("on", Some("true"))]).map(drop)
}

/// Closes the port for CQL clients.
pub fn disable_binary(call: &Call) -> Result<(), Failure> {
    call.post("binary", &[("on", Some("false"))]).map(drop)
}

/// Allows v3 and v4 of the protocol.
pub fn enable_old_versions(call: &Call) -> Result<(), Failure> {
    call.set(&[("native_transport_allow_older_protocols", "true".to_owned())])
}

/// Refuses messages of v3 and v4 of the protocol.
pub fn disable_old_versions(call: &Call) -> Result<(), Failure> {
    call.set(&[("native_transport_allow_older_protocols", "false".to_owned())])
}

/// Prints whether incremental backups are on.
pub fn status_backup(call: &Call) -> Result<(), Failure> {
    let report: BackupReport = call.get("backup", &[])?;
    say(running(report.on));
    Ok(())
}

/// Switches incremental backups on.
pub fn enable_backup(call: &Call) -> Result<(), Failure> {
    call.set(&[("incremental_backups", "true".to_owned())])
}

/// Switches incremental backups off.
pub fn disable_backup(call: &Call) -> Result<(), Failure> {
    call.set(&[("incremental_backups", "false".to_owned())])
}

/// The word for a part that is on or off.
pub fn running(is_on: bool) -> &'static str {
    match is_on {
        true => "running",
        false => "not running",
    }
}

/// Makes the node read its certificates again.
pub fn reload_certificates(call: &Call) -> Result<(), Failure> {
    call.post("reload-certificates", &[]).map(drop)
}

/// Flushes all tables.
pub fn drain(call: &Call) -> Result<(), Failure> {
    call.post("drain", &[]).map(drop)
}

/// Prints the latencies of requests.
pub fn proxy_histograms(call: &Call) -> Result<(), Failure> {
    let node: NodeReport = call.get("node", &[])?;
    say(&histograms_of(&node.latencies));
    Ok(())
}

/// Compat: the first three columns of Cassandra. Ilion counts conditional statements and writes of views as reads and writes.
fn histograms_of(latencies: &Latencies) -> String {
    let Latencies { reads, writes, scans } = latencies;
    let mut lines = vec![
        "proxy histograms".to_owned(),
        format!(
            "{:<10}{:>19}{:>19}{:>19}",
            "Percentile", "Read Latency", "Write Latency", "Range Latency"
        ),
        format!("{:<10}{:>19}{:>19}{:>19}", "", "(micros)", "(micros)", "(micros)"),
    ];
    let columns = [reads, writes, scans].map(Percentiles::all);
    for row in 0..columns[0].len() {
        let [reads, writes, scans] = columns.map(|column| column[row].1);
        let name = columns[0][row].0;
        lines.push(format!("{name:<10}{reads:>19.2}{writes:>19.2}{scans:>19.2}"));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Prints compactions.
pub fn compaction_stats(call: &Call) -> Result<(), Failure> {
    let node: NodeReport = call.get("node", &[])?;
    let report: CompactionReport = call.get("compactions", &[])?;
    say(&compactions_of(&node, &report, call.has("--human-readable")));
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "two digits are shown")]
fn compactions_of(node: &NodeReport, report: &CompactionReport, is_for_people: bool) -> String {
    let size = |bytes: u64| match is_for_people {
        true => file_size(bytes),
        false => bytes.to_string(),
    };
    let pending: u64 = report.pending.iter().map(|table| table.compactions).sum();
    let running = report.running.len() as u64;
    let hours = node.uptime_secs.max(1) as f64 / 3600.0;
    let throughput = report.bytes_per_sec_max.map_or("unthrottled".to_owned(), |rate| {
        format!("{:?}", rate as f64 / f64::from(1 << 20))
    });
    let mut rows: Vec<Vec<String>> = [
        ("concurrent compactors", node.compaction_threads.to_string()),
        ("pending tasks", (pending + running).to_string()),
    ]
    .map(|(name, value)| vec![name.to_owned(), value])
    .into();
    for table in &report.pending {
        rows.push(vec![
            table.keyspace.clone(),
            table.table.clone(),
            table.compactions.to_string(),
        ]);
    }
    rows.extend(
        [
            ("compactions completed", node.compactions.to_string()),
            ("data compacted", size(node.compacted_bytes)),
            ("compactions aborted", node.compactions_failed.to_string()),
            (
                "mean rate",
                format!("{:.2}/hour", node.compactions as f64 / hours),
            ),
            ("compaction throughput (MiB/s)", throughput),
        ]
        .map(|(name, value)| vec![name.to_owned(), value]),
    );
    let mut text = laid_out(&rows);
    if !report.running.is_empty() {
        let header = [
            "id",
            "compaction type",
            "keyspace",
            "table",
            "completed",
            "total",
            "unit",
            "progress",
        ];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        let mut remaining = 0;
        for task in &report.running {
            remaining += task.total_bytes.saturating_sub(task.done_bytes);
            let percent = 100.0 * task.done_bytes as f64 / task.total_bytes.max(1) as f64;
            rows.push(vec![
                task.id.clone(),
                kind(&task.kind),
                task.keyspace.clone(),
                task.table.clone(),
                size(task.done_bytes),
                size(task.total_bytes),
                "bytes".to_owned(),
                format!("{percent:.2}%"),
            ]);
        }
        text.push_str(&laid_out(&rows));
        let time = match report.bytes_per_sec_max {
            None => "n/a".to_owned(),
            Some(rate) => {
                let secs = remaining / rate.max(1);
                format!("{}h{:02}m{:02}s", secs / 3600, secs / 60 % 60, secs % 60)
            }
        };
        let _ = writeln!(text, "{:<25}{time:>10}", "Active compaction remaining time :");
    }
    text.trim_end_matches('\n').to_owned()
}

/// Compat: `OperationType` begins with a capital letter.
fn kind(own: &str) -> String {
    let mut letters = own.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

#[cfg(test)]
mod tests {
    use ilion_server::admin::MemberReport;

    use super::*;

    /// As 5.0.9 prints it, but for what Ilion has no figure for.
    #[test]
    fn compactions_are_laid_out_as_by_cassandra() {
        let node = NodeReport {
            compaction_threads: 2,
            compactions: 5,
            compacted_bytes: 48_927,
            uptime_secs: 3600,
            ..NodeReport::default()
        };
        let report = CompactionReport {
            bytes_per_sec_max: Some(64 << 20),
            ..CompactionReport::default()
        };
        let expected = "\
concurrent compactors         2        
pending tasks                 0        
compactions completed         5        
data compacted                47.78 KiB
compactions aborted           0        
mean rate                     5.00/hour
compaction throughput (MiB/s) 64.0     ";
        assert_eq!(compactions_of(&node, &report, true), expected);
    }

    #[test]
    fn the_node_is_laid_out_as_by_cassandra() {
        let node = NodeReport {
            host_id: "b51ee0c2-d8da-4b4d-a4cf-f7e4d9ae1706".to_owned(),
            load_bytes: 180_429,
            is_open: true,
            tokens: vec!["0".to_owned()],
            ..NodeReport::default()
        };
        let text = info_of(&node, false);
        for line in [
            "ID                     : b51ee0c2-d8da-4b4d-a4cf-f7e4d9ae1706\n",
            "Native Transport active: true\n",
            "Load                   : 176.2 KiB\n",
            "Token                  : 0\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }

    #[test]
    fn a_node_that_joins_has_no_token_yet() {
        let node = NodeReport {
            host_id: "host".to_owned(),
            members: vec![MemberReport {
                host_id: "host".to_owned(),
                state: MemberState::Joining,
                ..MemberReport::default()
            }],
            ..NodeReport::default()
        };
        let text = info_of(&node, true);
        assert!(
            text.contains("Token                  : (node is not joined to the cluster)\n"),
            "{text}"
        );
        assert!(text.contains("Bootstrap state        : IN_PROGRESS\n"), "{text}");
    }

    /// As 5.0 lays it out, which has no row for the node that is asked.
    #[test]
    fn the_silence_of_other_members_is_shown_as_phi() {
        let member = |address: &str, silence| MemberReport {
            address: address.to_owned(),
            silence,
            ..MemberReport::default()
        };
        let mut node = NodeReport::default();
        assert_eq!(failures_of(&node), "  Endpoint,             Phi");
        node.members = vec![
            member("127.0.0.1", None),
            member("127.0.0.2", Some(0.125)),
            member("127.0.0.3", Some(30.0)),
        ];
        let expected =
            "  Endpoint,             Phi\n/127.0.0.2,      1.00000000\n/127.0.0.3,    240.00000000";
        assert_eq!(failures_of(&node), expected);
    }
}
