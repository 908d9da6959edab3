//! `ilion compact`, `stop`, `autocompaction`, `compaction-throughput`: requests to a running node.

use crate::Failure;
use crate::ask::{ask, ask_long, of_tables};
use crate::bar::Shown;
use crate::cli::{AutocompactionArguments, CompactArguments, StopArguments, Switch, ThroughputArguments};

/// Compacts SSTables.
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
    ask_long(
        &arguments.tables.admin,
        "compact",
        &parts,
        Shown::Compactions,
        |done| format!("compact: {} tables done", done["tables"]),
    )
}

/// Stops compactions.
pub fn stop(arguments: &StopArguments) -> Result<(), Failure> {
    let parts = [("id", arguments.id.as_deref())];
    ask(&arguments.admin, "stop", &parts, |done| {
        format!("stop: {} compactions were asked to end", done["stopped"])
    })
}

/// Switches automatic compaction on or off.
pub fn switch(arguments: &AutocompactionArguments) -> Result<(), Failure> {
    let [keyspace, table] = of_tables(&arguments.tables);
    let on = if arguments.switch == Switch::On {
        "true"
    } else {
        "false"
    };
    let parts = [("on", Some(on)), keyspace, table];
    ask(&arguments.tables.admin, "autocompaction", &parts, |done| {
        format!("autocompaction: {} tables done", done["tables"])
    })
}

/// Limits the throughput of compactions.
pub fn limit(arguments: &ThroughputArguments) -> Result<(), Failure> {
    let rate = arguments.mebibytes_per_sec.saturating_mul(1 << 20).to_string();
    let parts = [("bytes_per_sec", Some(&*rate))];
    ask(&arguments.admin, "compaction-throughput", &parts, |_| {
        "compaction-throughput: done".to_owned()
    })
}
