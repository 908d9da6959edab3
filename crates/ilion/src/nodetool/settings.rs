//! Getters and setters of settings. They use the same path as `UPDATE system_views.settings`; changes last until the next start.

use ilion_server::admin::{NodeReport, NodeTableReport, SettingsReport, TraceProbabilityReport};
use ilion_settings::{Size, parse_duration, parse_size};

use super::call::Call;
use crate::Failure;
use crate::ask::say;

fn settings(call: &Call) -> Result<SettingsReport, Failure> {
    call.get("settings", &[])
}

/// The value of a setting of the node.
fn value(call: &Call, name: &str) -> Result<String, Failure> {
    let settings = settings(call)?;
    let found = settings.value(name);
    found.map(str::to_owned).ok_or_else(|| {
        Failure::nodetool(format!(
            "the node has no setting {name}: is it of another version?"
        ))
    })
}

/// Cassandra's types of timeouts, each with Ilion's setting; `None` if Ilion has no such timeout.
const TIMEOUTS: [(&str, Option<&str>); 10] = [
    ("read", Some("read_request_timeout")),
    ("range", Some("range_request_timeout")),
    ("write", Some("write_request_timeout")),
    ("counterwrite", None),
    ("cascontention", None),
    ("truncate", None),
    ("internodeconnect", None),
    ("internodeuser", None),
    ("internodestreaminguser", None),
    ("misc", None),
];

fn timeout_setting(kind: Option<&str>, refusal: &str) -> Result<(&'static str, &'static str), Failure> {
    // Compat: messages of `GetTimeout` and `SetTimeout`.
    let known = TIMEOUTS.iter().find(|(known, _)| Some(*known) == kind);
    let (kind, setting) = known.ok_or_else(|| Failure::nodetool(refusal))?;
    let setting = setting.ok_or_else(|| {
        Failure::nodetool(format!(
            "there is no timeout of type {kind}: writes of all kinds have that of type write, and a node has no streams"
        ))
    })?;
    Ok((kind, setting))
}

/// Prints a timeout.
pub fn get_timeout(call: &Call) -> Result<(), Failure> {
    let refusal = "Timeout type requires one of (read, range, write, counterwrite, cascontention, truncate, internodeconnect, \
                   internodeuser, internodestreaminguser, misc (general rpc_timeout_in_ms))";
    let (kind, setting) = timeout_setting(call.value(0), refusal)?;
    let timeout = parse_duration(&value(call, setting)?).map_err(Failure::nodetool)?;
    say(&format!(
        "Current timeout for type {kind}: {} ms",
        timeout.as_millis()
    ));
    Ok(())
}

/// Sets a timeout.
pub fn set_timeout(call: &Call) -> Result<(), Failure> {
    let refusal = "Timeout type followed by value in ms (0 disables socket streaming timeout). Type should be one of (read, range, \
                   write, counterwrite, cascontention, truncate, internodeconnect, internodeuser, internodestreaminguser, misc \
                   (general rpc_timeout_in_ms))";
    if call.values.len() < 2 {
        return Err(Failure::nodetool(refusal));
    }
    let (_, setting) = timeout_setting(call.value(0), refusal)?;
    let millis: u64 = call
        .number(1)
        .map_err(|_| Failure::nodetool("timeout must be non-negative"))?;
    call.set(&[(setting, format!("{millis}ms"))])
}

/// Prints the limit of the throughput of compactions.
pub fn get_compaction_throughput(call: &Call) -> Result<(), Failure> {
    let rate = value(call, "compaction_throughput")?;
    let Size(bytes) = parse_size(rate.trim_end_matches("/s")).map_err(Failure::nodetool)?;
    #[expect(clippy::cast_precision_loss, reason = "shown to people")]
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    say(&match call.has("--precise-mib") {
        true => format!("Current compaction throughput: {mebibytes:?} MiB/s"),
        false => format!("Current compaction throughput: {} MB/s", mebibytes.round()),
    });
    Ok(())
}

/// Limits the throughput of compactions.
pub fn set_compaction_throughput(call: &Call) -> Result<(), Failure> {
    let mebibytes: u64 = call.number(0)?;
    call.set(&[("compaction_throughput", format!("{mebibytes}MiB/s"))])
}

/// Prints the size of the blocks of row indexes.
pub fn get_column_index_size(call: &Call) -> Result<(), Failure> {
    let size = value(call, "column_index_size")?;
    // Compat: -1 means the default of the format.
    let kibibytes = match &*size {
        "auto" => "-1".to_owned(),
        size => {
            let Size(bytes) = parse_size(size).map_err(Failure::nodetool)?;
            (bytes >> 10).to_string()
        }
    };
    say(&format!("Current value for column_index_size: {kibibytes} KiB"));
    Ok(())
}

/// Sets the size of the blocks of row indexes.
pub fn set_column_index_size(call: &Call) -> Result<(), Failure> {
    let kibibytes: i64 = call.number(0)?;
    let size = match kibibytes {
        -1 => "auto".to_owned(),
        kibibytes => format!("{kibibytes}KiB"),
    };
    call.set(&[("column_index_size", size)])
}

/// Prints how many compactions run at once.
pub fn get_compactors(call: &Call) -> Result<(), Failure> {
    let node: NodeReport = call.get("node", &[])?;
    say(&format!(
        "Current concurrent compactors in the system is: \n{}",
        node.compaction_threads
    ));
    Ok(())
}

/// Sets how many compactions run at once.
pub fn set_compactors(call: &Call) -> Result<(), Failure> {
    let compactors: i64 = call.number(0)?;
    if compactors <= 0 {
        // Compat: the message of `SetConcurrentCompactors`.
        return Err(Failure::nodetool("concurrent_compactors should be great than 0."));
    }
    call.set(&[("concurrent_compactors", compactors.to_string())])
}

/// Prints that one thread builds views.
pub fn get_view_builders(_: &Call) -> Result<(), Failure> {
    say("Current number of concurrent view builders in the system is: \n1");
    Ok(())
}

/// Prints the number of threads of each stage.
pub fn get_concurrency(call: &Call) -> Result<(), Failure> {
    let pools: NodeTableReport = call.get("concurrency", &[])?;
    let mut lines = vec![format!(
        "{:<25}{:>16}{:>16}",
        "Stage", "CorePoolSize", "MaximumPoolSize"
    )];
    let mut rows: Vec<(&str, &str)> = Vec::new();
    for row in &pools.rows {
        let [name, threads] = &**row else {
            continue;
        };
        if call.values.is_empty() || call.values.contains(name) {
            rows.push((name, threads));
        }
    }
    let is_unknown = |wanted: &&String| rows.iter().all(|(name, _)| name != wanted);
    if let Some(unknown) = call.values.iter().find(is_unknown) {
        return Err(Failure::nodetool(format!(
            "there is no stage {unknown}: tpstats lists them"
        )));
    }
    rows.sort_unstable();
    lines.extend(
        rows.iter()
            .map(|(name, threads)| format!("{name:<25}{threads:>16}{threads:>16}")),
    );
    say(&lines.join("\n"));
    Ok(())
}

/// Prints how many files snapshots link per second.
pub fn get_snapshot_throttle(call: &Call) -> Result<(), Failure> {
    let links = value(call, "snapshot_links_per_second")?;
    // Compat: no limit is printed as the largest number.
    let shown = match &*links {
        "0" => i64::MAX.to_string(),
        _ => links,
    };
    say(&format!("Current snapshot throttle: {shown} links/s"));
    Ok(())
}

/// Limits how many files snapshots link per second.
pub fn set_snapshot_throttle(call: &Call) -> Result<(), Failure> {
    // Compat: any number below 1 means no limit.
    let links: i64 = call.number(0)?;
    call.set(&[("snapshot_links_per_second", links.max(0).to_string())])
}

/// Prints the log level of each module.
pub fn get_levels(call: &Call) -> Result<(), Failure> {
    let filter = value(call, "log_level")?;
    say(&levels_of(&filter));
    Ok(())
}

/// The parts of a filter, each a module and its level. ROOT is the level of all other modules.
fn parts(filter: &str) -> Vec<(String, String)> {
    let part = |part: &str| match part.trim().split_once('=') {
        Some((module, level)) => (module.to_owned(), level.to_uppercase()),
        None => (ROOT.to_owned(), part.trim().to_uppercase()),
    };
    filter.split(',').map(part).collect()
}

const ROOT: &str = "ROOT";

fn levels_of(filter: &str) -> String {
    let mut lines = vec![format!("\n{:<50}{:>10}", "Logger Name", "Log Level")];
    let mut parts = parts(filter);
    parts.sort_by_key(|(module, _)| module != ROOT);
    lines.extend(
        parts
            .iter()
            .map(|(module, level)| format!("{module:<50}{level:>10}")),
    );
    lines.join("\n")
}

/// The filter with another level for one module.
fn with_level(filter: &str, module: &str, level: &str) -> String {
    let mut parts = parts(filter);
    parts.retain(|(known, _)| known != module);
    parts.push((module.to_owned(), level.to_owned()));
    let part = |(module, level): &(String, String)| match &**module {
        ROOT => level.to_lowercase(),
        module => format!("{module}={}", level.to_lowercase()),
    };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

/// Sets the log level of a module; without a module, the filter that was set at the start.
pub fn set_level(call: &Call) -> Result<(), Failure> {
    let settings = settings(call)?;
    let name = "log_level";
    let Some(module) = call.value(0) else {
        let at_start = settings.value_at_start(name).unwrap_or_default();
        return call.set(&[(name, at_start.to_owned())]);
    };
    if module != ROOT && !module.starts_with("ilion") {
        return Err(Failure::nodetool(format!(
            "{module} is no module of Ilion: name ROOT, or one such as ilion_server or ilion_engine"
        )));
    }
    let level = match call.value(1).map(str::to_uppercase).as_deref() {
        Some("ALL") => "trace".to_owned(),
        Some(level) => level.to_lowercase(),
        None => {
            return Err(Failure::nodetool(
                "name a level: OFF, ERROR, WARN, INFO, DEBUG or TRACE",
            ));
        }
    };
    let filter = with_level(settings.value(name).unwrap_or_default(), module, &level);
    call.set(&[(name, filter)])
}

/// The name of the setting for the cache that the option `--cache-name` names.
fn auth_cache(call: &Call) -> Result<&'static str, Failure> {
    let caches = [
        ("RolesCache", "roles_validity"),
        ("PermissionsCache", "permissions_validity"),
        ("CredentialsCache", "credentials_validity"),
    ];
    let name = call
        .option("--cache-name")
        .ok_or_else(|| Failure::nodetool("Required option '--cache-name' is missing"))?;
    let found = caches.iter().find(|(cache, _)| *cache == name);
    found.map(|(_, setting)| *setting).ok_or_else(|| {
        Failure::nodetool(format!(
            "there is no cache {name}: there are RolesCache, PermissionsCache and CredentialsCache"
        ))
    })
}

/// Prints how long roles, permissions or passwords stay in their cache.
pub fn get_auth_cache(call: &Call) -> Result<(), Failure> {
    let validity = parse_duration(&value(call, auth_cache(call)?)?).map_err(Failure::nodetool)?;
    say(&format!("Validity Period: {}", validity.as_millis()));
    Ok(())
}

/// Sets how long roles, permissions or passwords stay in their cache.
pub fn set_auth_cache(call: &Call) -> Result<(), Failure> {
    let setting = auth_cache(call)?;
    let others = [
        "--update-interval",
        "--max-entries",
        "--enable-active-update",
        "--disable-active-update",
    ];
    if let Some(option) = others.into_iter().find(|option| call.has(option)) {
        return Err(Failure::nodetool(format!(
            "{option} means nothing here: what is kept is read again after its validity"
        )));
    }
    let millis = call
        .option("--validity-period")
        .ok_or_else(|| Failure::nodetool("At least one optional parameter need to be passed"))?;
    call.set(&[(setting, format!("{millis}ms"))])
}

/// The caches in the order of nodetool's arguments.
const CACHES: [&str; 3] = ["key_cache", "row_cache", "counter_cache"];

/// Sets the sizes of the caches.
pub fn set_cache_capacity(call: &Call) -> Result<(), Failure> {
    let mut wanted = Vec::new();
    for (index, cache) in CACHES.into_iter().enumerate() {
        let mebibytes: u64 = call.number(index)?;
        wanted.push((format!("{cache}_size"), format!("{mebibytes}MiB")));
    }
    set_all(call, &wanted)
}

/// Sets how many keys of the caches are saved.
pub fn set_cache_keys(call: &Call) -> Result<(), Failure> {
    let mut wanted = Vec::new();
    for (index, cache) in CACHES.into_iter().enumerate() {
        let keys: i64 = call.number(index)?;
        wanted.push((format!("{cache}_keys_to_save"), keys.to_string()));
    }
    set_all(call, &wanted)
}

fn set_all(call: &Call, wanted: &[(String, String)]) -> Result<(), Failure> {
    let wanted: Vec<(&str, String)> = wanted
        .iter()
        .map(|(name, value)| (&**name, value.clone()))
        .collect();
    call.set(&wanted)
}

/// Prints the share of requests that are traced.
pub fn get_trace_probability(call: &Call) -> Result<(), Failure> {
    let report: TraceProbabilityReport = call.get("trace-probability", &[])?;
    say(&format!("Current trace probability: {:?}", report.probability));
    Ok(())
}

/// Sets the share of requests that are traced.
pub fn set_trace_probability(call: &Call) -> Result<(), Failure> {
    let probability: f64 = call.number(0)?;
    if !(0.0..=1.0).contains(&probability) {
        // Compat: the message of `SetTraceProbability`.
        return Err(Failure::nodetool("Trace probability must be between 0 and 1"));
    }
    let text = probability.to_string();
    call.post("trace-probability", &[("probability", Some(&text))])
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As 5.0.9 prints them.
    #[test]
    fn levels_are_the_parts_of_the_filter() {
        let filter = with_level("info", "ilion_server", "DEBUG");
        assert_eq!(filter, "info,ilion_server=debug");
        assert_eq!(
            levels_of(&filter),
            "\nLogger Name                                        Log Level\n\
             ROOT                                                    INFO\n\
             ilion_server                                           DEBUG"
        );
        assert_eq!(
            with_level(&filter, "ilion_server", "warn"),
            "info,ilion_server=warn"
        );
        assert_eq!(
            with_level("ilion_server=warn,info", ROOT, "debug"),
            "ilion_server=warn,debug"
        );
    }
}
