//! `ilion data-paths` and `get-sstables`: where the files of tables are.

use ilion_server::admin::{DataPathsReport, SSTablesReport};

use crate::Failure;
use crate::ask::{client, path, show};
use crate::cli::{DataPathsArguments, GetSstablesArguments};

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
