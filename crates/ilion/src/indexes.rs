//! `ilion index rebuild`, `verify`: asking a running node of this machine.

use ilion_server::admin::IndexReport;

use crate::Failure;
use crate::ask::{client, escape, say};
use crate::cli::{IndexArguments, IndexCommand, VerifyIndexArguments};

/// Does what the command says.
pub fn run(command: &IndexCommand) -> Result<(), Failure> {
    match command {
        IndexCommand::Rebuild(arguments) => rebuild(arguments),
        IndexCommand::Verify(arguments) => verify(arguments),
    }
}

fn path(action: &str, arguments: &IndexArguments) -> String {
    let (keyspace, index) = (escape(&arguments.keyspace), escape(&arguments.index));
    format!("/admin/index/{action}?keyspace={keyspace}&index={index}")
}

fn rebuild(arguments: &IndexArguments) -> Result<(), Failure> {
    let done = client(&arguments.admin)?
        .post(&path("rebuild", arguments))
        .map_err(Failure::of)?;
    match arguments.admin.json {
        true => say(&done.to_string()),
        false => say("index rebuild: done"),
    }
    Ok(())
}

fn verify(arguments: &VerifyIndexArguments) -> Result<(), Failure> {
    let repair = if arguments.repair { "&repair=true" } else { "" };
    let path = format!("{}{repair}", path("verify", &arguments.index));
    let found = client(&arguments.index.admin)?.post(&path).map_err(Failure::of)?;
    if arguments.index.admin.json {
        say(&found.to_string());
    }
    let report: IndexReport = serde_json::from_value(found).map_err(Failure::of)?;
    if !arguments.index.admin.json {
        say(&report.to_string());
    }
    match (report.missing + report.stale > report.repaired, arguments.repair) {
        (true, false) if report.missing > 0 => Err(Failure::Failed(
            "the index does not have all that it should; verify it with --repair".to_owned(),
        )),
        (true, true) => Err(Failure::Failed(
            "not all could be put right; rebuild the index".to_owned(),
        )),
        _ => Ok(()),
    }
}
