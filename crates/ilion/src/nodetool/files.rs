//! Actions on the files and caches of tables: `nodetool flush`, `compact`, `garbagecollect`, `upgradesstables`, `verify`, `rebuild_index`, and the like.

use ilion_server::admin::{ImportReport, NodeReport, ScrubReport, VerifyReport};
use serde_json::Value;

use super::call::{Call, missing_keyspace};
use crate::Failure;
use crate::ask::say;

type Parts<'p> = [(&'p str, Option<&'p str>)];

/// Requests an action on all tables, on those of a keyspace, or on the named ones. Prints nothing, like nodetool.
pub fn for_tables(call: &Call, action: &str, parts: &Parts<'_>) -> Result<(), Failure> {
    for_chosen(call, action, parts, |_| Ok(()))
}

/// Requests an action as [`for_tables`] does, and passes each answer to `take`.
fn for_chosen(
    call: &Call,
    action: &str,
    parts: &Parts<'_>,
    mut take: impl FnMut(Value) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let Some((keyspace, tables)) = call.values.split_first() else {
        return take(call.post(action, parts)?);
    };
    check_keyspace(call, keyspace)?;
    let keyspace = ("keyspace", Some(&**keyspace));
    if tables.is_empty() {
        let parts: Vec<_> = parts.iter().copied().chain([keyspace]).collect();
        return take(call.post(action, &parts)?);
    }
    for table in tables {
        let table = ("table", Some(&**table));
        let parts: Vec<_> = parts.iter().copied().chain([keyspace, table]).collect();
        take(call.post(action, &parts)?)?;
    }
    Ok(())
}

fn check_keyspace(call: &Call, keyspace: &str) -> Result<(), Failure> {
    let node: NodeReport = call.get("node", &[])?;
    match node.keyspaces.contains_key(keyspace) {
        true => Ok(()),
        false => Err(missing_keyspace(keyspace)),
    }
}

/// Writes memtables to disk.
pub fn flush(call: &Call) -> Result<(), Failure> {
    for_tables(call, "flush", &[])
}

/// Compacts tables or SSTables.
pub fn compact(call: &Call) -> Result<(), Failure> {
    let (start, end) = (call.option("--start-token"), call.option("--end-token"));
    if call.has("--user-defined") {
        // Compat: messages of `Compact`.
        if start.is_some() || end.is_some() || call.has("--split-output") {
            return Err(Failure::nodetool(
                "Invalid option combination: Can not use split-output here",
            ));
        }
        let files = call.values.join("\n");
        return call.post("compact", &[("files", Some(&files))]).map(drop);
    }
    if call.has("--split-output") && (start.is_some() || end.is_some()) {
        return Err(Failure::nodetool(
            "Invalid option combination: Can not use split-output here",
        ));
    }
    let split = call.has("--split-output").then_some("true");
    let parts = [
        ("start_token", start),
        ("end_token", end),
        ("split_output", split),
    ];
    for_tables(call, "compact", &parts)
}

/// Rewrites SSTables: those of old formats, or all.
pub fn upgrade(call: &Call) -> Result<(), Failure> {
    let all = call.has("--include-all-sstables").then_some("true");
    for_tables(call, "rewrite", &[("all", all)])
}

/// Rewrites SSTables whose compression differs from the table's.
pub fn recompress(call: &Call) -> Result<(), Failure> {
    for_tables(call, "rewrite", &[("compression", Some("true"))])
}

/// Removes data from SSTables that tombstones in other SSTables delete.
pub fn collect_garbage(call: &Call) -> Result<(), Failure> {
    // Compat: `CompactionParams.TombstoneOption`.
    let cells = match call.option("--granularity") {
        None | Some("ROW") => "false",
        Some("CELL") => "true",
        Some(other) => {
            return Err(Failure::nodetool(format!(
                "granularity: {other} is none of ROW and CELL"
            )));
        }
    };
    if call.has("--user-defined") {
        return Err(Failure::nodetool(
            "--user-defined means nothing here: name a keyspace and tables",
        ));
    }
    for_tables(call, "garbage", &[("cells", Some(cells))])
}

/// Compacts partitions without gc grace.
pub fn force_compact(call: &Call) -> Result<(), Failure> {
    // Compat: the message of `ForceCompact`.
    let [keyspace, table, keys @ ..] = &*call.values else {
        return Err(Failure::nodetool(
            "forcecompact requires keyspace, table and keys args",
        ));
    };
    if keys.is_empty() {
        return Err(Failure::nodetool(
            "forcecompact requires keyspace, table and keys args",
        ));
    }
    let parts = [
        ("keyspace", Some(&**keyspace)),
        ("table", Some(&**table)),
        ("keys", Some(&*keys.join("\n"))),
    ];
    call.post("compact-keys", &parts).map(drop)
}

/// Replaces damaged SSTables with the rows that can be read from them.
pub fn scrub(call: &Call) -> Result<(), Failure> {
    if call.has("--no-validate") {
        return Err(Failure::nodetool(
            "--no-validate: what replaces a damaged SSTable is always checked",
        ));
    }
    let flag = |long| call.has(long).then_some("true");
    let options = [
        ("without_snapshot", flag("--no-snapshot")),
        ("skips_corrupted", flag("--skip-corrupted")),
    ];
    let mut report = ScrubReport::default();
    for_chosen(call, "scrub", &options, |found| {
        let found: ScrubReport = serde_json::from_value(found).map_err(Failure::of)?;
        report.sound += found.sound;
        report.damaged.extend(found.damaged);
        Ok(())
    })?;
    if report.damaged.is_empty() {
        return Ok(());
    }
    match report.refused() {
        0 => {
            say(&report.to_string());
            Ok(())
        }
        _ => Err(Failure::NodetoolFailed(report.to_string())),
    }
}

/// Adds SSTables that were placed in the directory of a table.
pub fn refresh(call: &Call) -> Result<(), Failure> {
    // Compat: the lines of `Refresh`.
    say("nodetool refresh is deprecated, use nodetool import instead");
    let [keyspace, table] = &*call.values else {
        return Err(Failure::nodetool("refresh requires ks and cf args"));
    };
    check_keyspace(call, keyspace)?;
    let parts = [("keyspace", Some(&**keyspace)), ("table", Some(&**table))];
    let report = call.post("refresh", &parts)?;
    let report: ImportReport = serde_json::from_value(report).map_err(Failure::of)?;
    match (report.imported.len(), report.refused.len()) {
        (0, 0) => {
            say("No new SSTables were found");
            Ok(())
        }
        (_, 0) => {
            say(&report.to_string());
            Ok(())
        }
        _ => Err(Failure::NodetoolFailed(report.to_string())),
    }
}

/// Checks SSTables.
pub fn verify(call: &Call) -> Result<(), Failure> {
    // Compat: Cassandra's check may do harm, so it requires this option, and scripts give it.
    if !call.has("--force") {
        say(
            "verify is disabled unless a [-f|--force] override flag is provided. See CASSANDRA-9947 and CASSANDRA-17017 for details.",
        );
        return Err(Failure::Told);
    }
    let mut report = VerifyReport::default();
    for_chosen(call, "verify", &[], |found| {
        let found: VerifyReport = serde_json::from_value(found).map_err(Failure::of)?;
        report.sstables.extend(found.sstables);
        Ok(())
    })?;
    match report.damaged() {
        0 => Ok(()),
        _ => Err(Failure::NodetoolFailed(report.to_string())),
    }
}

/// Removes the data of slices of the ring that the node has given away. A single node has all slices, so nothing is removed.
pub fn cleanup(call: &Call) -> Result<(), Failure> {
    let node: NodeReport = call.get("node", &[])?;
    if let Some(keyspace) = call.value(0).filter(|name| !node.keyspaces.contains_key(*name)) {
        return Err(missing_keyspace(keyspace));
    }
    match node.members.is_empty() {
        true => Ok(()),
        // Without the keyspace: a slice that was given away is removed from all keyspaces.
        false => call.post("cleanup", &[]).map(drop),
    }
}

/// Checks only that the keyspace exists: with one data directory, no SSTable is in a wrong one.
pub fn relocate(call: &Call) -> Result<(), Failure> {
    match call.value(0) {
        Some(keyspace) => check_keyspace(call, keyspace),
        None => Ok(()),
    }
}

/// Prints why no repair is needed: a single node has no other replicas, and in a cluster all replicas apply the same log.
pub fn repair(call: &Call) -> Result<(), Failure> {
    let node: NodeReport = call.get("node", &[])?;
    let keyspaces: Vec<&str> = match call.value(0) {
        Some(keyspace) if !node.keyspaces.contains_key(keyspace) => return Err(missing_keyspace(keyspace)),
        Some(keyspace) => vec![keyspace],
        None => node.keyspaces.keys().map(String::as_str).collect(),
    };
    let reason = match node.members.is_empty() {
        true => "One node has all data.",
        false => "All replicas apply the same log.",
    };
    for keyspace in keyspaces {
        say(&format!("{reason} No repair is needed for keyspace '{keyspace}'"));
    }
    Ok(())
}

/// Rebuilds indexes.
pub fn rebuild_index(call: &Call) -> Result<(), Failure> {
    let [keyspace, table] = [call.value(0), call.value(1)].map(Option::unwrap_or_default);
    check_keyspace(call, keyspace)?;
    let names = call.values.get(2..).unwrap_or_default();
    if names.is_empty() {
        return Err(Failure::nodetool("Required parameters are missing: indexes"));
    }
    for name in names {
        // Compat: the name of the table and a dot may come before the name of an index.
        let index = name.strip_prefix(&format!("{table}.")).unwrap_or(name);
        call.post(
            "index/rebuild",
            &[("keyspace", Some(keyspace)), ("index", Some(index))],
        )?;
    }
    Ok(())
}

/// Empties the cache of rows.
pub fn invalidate_rows(call: &Call) -> Result<(), Failure> {
    invalidate(call, "rows")
}

/// Empties the cache of keys.
pub fn invalidate_keys(call: &Call) -> Result<(), Failure> {
    invalidate(call, "keys")
}

/// Empties the cache of counters.
pub fn invalidate_counters(call: &Call) -> Result<(), Failure> {
    invalidate(call, "counters")
}

/// Empties the cache of roles, permissions and passwords.
pub fn invalidate_roles(call: &Call) -> Result<(), Failure> {
    invalidate(call, "roles")
}

fn invalidate(call: &Call, cache: &str) -> Result<(), Failure> {
    call.post("invalidate-caches", &[("cache", Some(cache))])
        .map(drop)
}
