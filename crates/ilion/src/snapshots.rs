//! `ilion snapshot`, `list-snapshots`, `clear-snapshot`, `backup on`. They print what Cassandra's nodetool prints.

use ilion_env::{Env as _, RealEnv};
use ilion_server::admin::{BackupReport, SnapshotsReport};
use ilion_settings::parse_duration;

use crate::Failure;
use crate::ask::{client, post, post_long, report, say};
use crate::bar::Shown;
use crate::cli::{AdminArguments, ClearSnapshotArguments, ListSnapshotsArguments, SnapshotArguments};

/// Takes snapshots.
pub fn take(arguments: &SnapshotArguments) -> Result<(), Failure> {
    let admin = &arguments.admin;
    if arguments.kt_list.is_some() && (!arguments.keyspaces.is_empty() || arguments.table.is_some()) {
        return Err(Failure::Failed(
            "When specifying the Keyspace table list (using -kt,--kt-list,-kc,--kc.list), you must not also specify keyspaces to snapshot"
                .to_owned(),
        ));
    }
    let now_millis = || (RealEnv::new().now_micros() / 1000).to_string();
    let tag = arguments.tag.clone().unwrap_or_else(now_millis);
    if tag.contains('/') {
        return Err(Failure::Failed("Snapshot name cannot contain /".to_owned()));
    }
    let tables = arguments.kt_list.as_ref().map(|list| list.replace(' ', ""));
    let ttl = arguments
        .ttl
        .as_ref()
        .map_or(String::new(), |ttl| format!(", ttl={ttl}"));
    let chosen = tables
        .clone()
        .unwrap_or_else(|| keyspaces_shown(&arguments.keyspaces));
    let named = match tag.is_empty() {
        true => String::new(),
        false => format!(" with snapshot name [{tag}]"),
    };
    tell(
        admin,
        &format!(
            "Requested creating snapshot(s) for [{chosen}]{named} and options {{skipFlush={}{ttl}}}",
            arguments.skip_flush
        ),
    );
    let keyspaces = arguments.keyspaces.join("\n");
    let parts = [
        ("tag", Some(&*tag)),
        ("keyspaces", Some(&*keyspaces)),
        ("table", arguments.table.as_deref()),
        ("tables", tables.as_deref()),
        ("ttl", arguments.ttl.as_deref()),
        ("skip_flush", arguments.skip_flush.then_some("true")),
    ];
    let done = post_long(admin, "snapshot", &parts, Shown::Flushes)?;
    match admin.json {
        true => say(&serde_json::json!({ "tag": tag, "tables": done["tables"] }).to_string()),
        false => say(&format!("Snapshot directory: {tag}")),
    }
    Ok(())
}

/// Lists snapshots.
pub fn list(arguments: &ListSnapshotsArguments) -> Result<(), Failure> {
    let report = client(&arguments.admin)?.get("/admin/snapshots");
    let mut report: SnapshotsReport = report.map_err(Failure::of)?;
    report.snapshots.retain(|snapshot| {
        (!arguments.no_ttl || snapshot.expires_at.is_none()) && (arguments.ephemeral || !snapshot.ephemeral)
    });
    match arguments.admin.json {
        true => say(&serde_json::to_string_pretty(&report).map_err(Failure::of)?),
        false => say(&report.table(arguments.ephemeral)),
    }
    Ok(())
}

/// Removes snapshots.
pub fn clear(arguments: &ClearSnapshotArguments) -> Result<(), Failure> {
    if let Some(problem) = contradiction(arguments) {
        return Err(Failure::Failed(problem.to_owned()));
    }
    let which = match &arguments.tag {
        Some(tag) => format!("snapshot name [{tag}]"),
        None => "[all snapshots]".to_owned(),
    };
    let older = match (&arguments.older_than, &arguments.older_than_timestamp) {
        (Some(age), _) => {
            let age = parse_duration(age)
                .map_err(|expected| Failure::Failed(format!("--older-than: expected {expected}")))?;
            format!(" older than {} seconds.", age.as_secs())
        }
        (_, Some(instant)) => format!(" older than timestamp {instant}"),
        _ => String::new(),
    };
    let keyspaces = keyspaces_shown(&arguments.keyspaces);
    tell(
        &arguments.admin,
        &format!("Requested clearing snapshot(s) for [{keyspaces}] with {which}{older}"),
    );
    let keyspaces = arguments.keyspaces.join("\n");
    let parts = [
        ("tag", arguments.tag.as_deref()),
        ("keyspaces", Some(&*keyspaces)),
        ("older_than", arguments.older_than.as_deref()),
        ("older_than_timestamp", arguments.older_than_timestamp.as_deref()),
    ];
    let done = post(&arguments.admin, "clear-snapshot", &parts)?;
    if arguments.admin.json {
        say(&done.to_string());
    }
    Ok(())
}

/// Switches incremental backups, or prints whether they are on.
pub fn backup(admin: &AdminArguments, is_on: Option<bool>) -> Result<(), Failure> {
    let on = match is_on {
        Some(true) => "true",
        Some(false) => "false",
        None => return report::<BackupReport>(admin, "/admin/backup"),
    };
    // Compat: nodetool prints nothing.
    let done = post(admin, "backup", &[("on", Some(on))])?;
    if admin.json {
        say(&done.to_string());
    }
    Ok(())
}

/// Why the arguments of `clear-snapshot` contradict each other; `None` if they do not.
fn contradiction(arguments: &ClearSnapshotArguments) -> Option<&'static str> {
    let tag = arguments.tag.as_deref().filter(|tag| !tag.is_empty());
    match (
        tag,
        arguments.all,
        &arguments.older_than,
        &arguments.older_than_timestamp,
    ) {
        (None, false, ..) => Some("Specify snapshot name or --all"),
        (Some(_), true, ..) => Some("Specify only one of snapshot name or --all"),
        (_, _, Some(_), Some(_)) => Some("Specify only one of --older-than or --older-than-timestamp"),
        (Some(_), _, Some(_), _) => {
            Some("Specifying snapshot name together with --older-than flag is not allowed")
        }
        (Some(_), _, _, Some(_)) => {
            Some("Specifying snapshot name together with --older-than-timestamp flag is not allowed")
        }
        _ => None,
    }
}

fn keyspaces_shown(keyspaces: &[String]) -> String {
    match keyspaces.is_empty() {
        true => "all keyspaces".to_owned(),
        false => keyspaces.join(", "),
    }
}

/// Prints what is about to be done, unless the output is JSON.
fn tell(arguments: &AdminArguments, text: &str) {
    if !arguments.json {
        say(text);
    }
}
