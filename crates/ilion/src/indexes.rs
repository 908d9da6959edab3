//! `ilion index rebuild`, `verify`: requests to a running node.

use ilion_server::admin::IndexReport;

use crate::Failure;
use crate::ask::{ask_long, post_long, say};
use crate::bar::Shown;
use crate::cli::{IndexArguments, IndexCommand, VerifyIndexArguments};

/// Runs the command.
pub fn run(command: &IndexCommand) -> Result<(), Failure> {
    match command {
        IndexCommand::Rebuild(arguments) => rebuild(arguments),
        IndexCommand::Verify(arguments) => verify(arguments),
    }
}

fn of_index(arguments: &IndexArguments) -> [(&'static str, Option<&str>); 2] {
    [
        ("keyspace", Some(&*arguments.keyspace)),
        ("index", Some(&*arguments.index)),
    ]
}

fn rebuild(arguments: &IndexArguments) -> Result<(), Failure> {
    ask_long(
        &arguments.admin,
        "index/rebuild",
        &of_index(arguments),
        Shown::Compactions,
        |_| "index rebuild: done".to_owned(),
    )
}

fn verify(arguments: &VerifyIndexArguments) -> Result<(), Failure> {
    let [keyspace, index] = of_index(&arguments.index);
    let parts = [keyspace, index, ("repair", arguments.repair.then_some("true"))];
    let found = post_long(&arguments.index.admin, "index/verify", &parts, Shown::Compactions)?;
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
