//! `ilion compact`, `stop`, `autocompaction`, `compaction-throughput`: asking a running node of this machine.

use serde_json::Value;

use crate::Failure;
use crate::ask::{client, escape, say};
use crate::cli::{
    AdminArguments, AutocompactionArguments, CompactArguments, StopArguments, Switch, TableArguments,
    ThroughputArguments,
};

/// The parts of a query that are there.
fn query(parts: &[(&str, Option<&str>)]) -> String {
    let given = parts.iter().filter_map(|(name, value)| Some((name, (*value)?)));
    let texts: Vec<String> = given
        .map(|(name, value)| format!("{name}={}", escape(value)))
        .collect();
    match texts.is_empty() {
        true => String::new(),
        false => format!("?{}", texts.join("&")),
    }
}

fn ask(arguments: &AdminArguments, path: &str, told: impl Fn(&Value) -> String) -> Result<(), Failure> {
    let done = client(arguments)?.post(path).map_err(Failure::of)?;
    match arguments.json {
        true => say(&done.to_string()),
        false => say(&told(&done)),
    }
    Ok(())
}

fn of_tables(tables: &TableArguments) -> [(&'static str, Option<&str>); 2] {
    [
        ("keyspace", tables.keyspace.as_deref()),
        ("table", tables.table.as_deref()),
    ]
}

/// Has SSTables merged.
pub fn compact(arguments: &CompactArguments) -> Result<(), Failure> {
    let files = arguments.user_defined.join("\n");
    let [keyspace, table] = of_tables(&arguments.tables);
    let parts = [
        keyspace,
        table,
        ("start_token", arguments.start_token.as_deref()),
        ("end_token", arguments.end_token.as_deref()),
        ("split_output", arguments.split_output.then_some("true")),
        ("files", Some(files.as_str()).filter(|files| !files.is_empty())),
    ];
    let path = format!("/admin/compact{}", query(&parts));
    ask(&arguments.tables.admin, &path, |done| {
        format!("compact: {} tables done", done["tables"])
    })
}

/// Has compactions stopped.
pub fn stop(arguments: &StopArguments) -> Result<(), Failure> {
    let path = format!("/admin/stop{}", query(&[("id", arguments.id.as_deref())]));
    ask(&arguments.admin, &path, |done| {
        format!("stop: {} compactions were asked to end", done["stopped"])
    })
}

/// Switches compactions on or off.
pub fn switch(arguments: &AutocompactionArguments) -> Result<(), Failure> {
    let [keyspace, table] = of_tables(&arguments.tables);
    let on = if arguments.switch == Switch::On {
        "true"
    } else {
        "false"
    };
    let path = format!(
        "/admin/autocompaction{}",
        query(&[("on", Some(on)), keyspace, table])
    );
    ask(&arguments.tables.admin, &path, |done| {
        format!("autocompaction: {} tables done", done["tables"])
    })
}

/// Limits compactions.
pub fn limit(arguments: &ThroughputArguments) -> Result<(), Failure> {
    let rate = arguments.mebibytes_per_sec.saturating_mul(1 << 20).to_string();
    let path = format!(
        "/admin/compaction-throughput{}",
        query(&[("bytes_per_sec", Some(&rate))])
    );
    ask(&arguments.admin, &path, |_| {
        "compaction-throughput: done".to_owned()
    })
}
