//! `ilion data-paths`, `get-sstables`, `compaction-history`, `thread-pools` and `clients`.

use ilion_server::admin::{DataPathsReport, NodeTableReport, SSTablesReport};

use crate::Failure;
use crate::ask::{client, path, say, show};
use crate::cli::{AdminArguments, ClientsArguments, DataPathsArguments, GetSstablesArguments};

/// Prints the directories of tables.
pub fn data_paths(arguments: &DataPathsArguments) -> Result<(), Failure> {
    let tables = arguments.tables.join("\n");
    let path = path("data-paths", &[("tables", Some(&*tables))]);
    let report: DataPathsReport = client(&arguments.admin)?.get(&path).map_err(Failure::of)?;
    show(&arguments.admin, &report)
}

/// Prints the SSTables that may have a partition.
pub fn with_key(arguments: &GetSstablesArguments) -> Result<(), Failure> {
    let parts = [
        ("keyspace", Some(&*arguments.keyspace)),
        ("table", Some(&*arguments.table)),
        ("key", Some(&*arguments.key)),
        ("hex", arguments.hex_format.then_some("true")),
    ];
    let path = path("sstables", &parts);
    let report: SSTablesReport = client(&arguments.admin)?.get(&path).map_err(Failure::of)?;
    show(&arguments.admin, &report)
}

/// Lists the compactions of the last week.
pub fn compaction_history(arguments: &AdminArguments) -> Result<(), Failure> {
    of_node(
        arguments,
        "compaction-history",
        NodeTableReport::compaction_history,
    )
}

/// Prints threads and their queues.
pub fn thread_pools(arguments: &AdminArguments) -> Result<(), Failure> {
    of_node(arguments, "thread-pools", NodeTableReport::thread_pools)
}

/// Counts connected clients, or lists them.
pub fn clients(arguments: &ClientsArguments) -> Result<(), Failure> {
    of_node(&arguments.admin, "clients", |report| {
        report.clients(arguments.all)
    })
}

fn of_node(
    arguments: &AdminArguments,
    table: &str,
    told: impl Fn(&NodeTableReport) -> String,
) -> Result<(), Failure> {
    let report: NodeTableReport = client(arguments)?.get(&path(table, &[])).map_err(Failure::of)?;
    match arguments.json {
        true => say(&serde_json::to_string_pretty(&report).map_err(Failure::of)?),
        false => say(&told(&report)),
    }
    Ok(())
}
