//! `ilion sstable export` and `import`: a running node exports or imports the files of a table.

use std::path::{Path, PathBuf};

use ilion_env::{Env as _, RealEnv};
use ilion_server::admin::{ExportReport, ImportReport};
use ilion_tools::sstable::{Command, ConvertArguments, Files, OutputFormat};

use crate::Failure;
use crate::ask::{client, post_long, post_report, show};
use crate::bar::{Shown, while_node_works};
use crate::cli::{ExportArguments, ImportArguments};

/// Exports the SSTables of a table to a directory.
pub fn export(arguments: &ExportArguments) -> Result<(), Failure> {
    let directory = absolute(&arguments.directory)?;
    let exported = match arguments.format {
        None => directory.clone(),
        Some(_) => beside(&directory)?,
    };
    let parts = [
        ("keyspace", Some(&*arguments.keyspace)),
        ("table", Some(&*arguments.table)),
        ("directory", Some(&*exported.to_string_lossy())),
    ];
    let done = post_long(&arguments.admin, "export", &parts, Shown::Flushes)?;
    let report: ExportReport = serde_json::from_value(done).map_err(Failure::of)?;
    match arguments.format {
        None => show(&arguments.admin, &report),
        Some(format) => convert(&report, format, &exported, &directory),
    }
}

/// Imports the SSTables of a directory into a table.
pub fn import(arguments: &ImportArguments) -> Result<(), Failure> {
    let directory = absolute(&arguments.directory)?;
    let parts = [
        ("keyspace", Some(&*arguments.keyspace)),
        ("table", Some(&*arguments.table)),
        ("directory", Some(&*directory.to_string_lossy())),
        (
            "source",
            Some(if arguments.copy_data { "copied" } else { "moved" }),
        ),
    ];
    let node = client(&arguments.admin)?;
    let report: ImportReport = while_node_works("import", &node, Shown::Compactions, || {
        post_report(&arguments.admin, "import", &parts)
    })?;
    show(&arguments.admin, &report)?;
    match report.refused.len() {
        0 => Ok(()),
        count => Err(Failure::Failed(format!("{count} SSTables were left alone"))),
    }
}

/// Converts the exported SSTables to another format, and removes the originals.
fn convert(
    report: &ExportReport,
    format: OutputFormat,
    exported: &Path,
    directory: &Path,
) -> Result<(), Failure> {
    let env = RealEnv::new();
    if !report.exported.is_empty() {
        let convert = Command::Convert(ConvertArguments {
            to: format,
            directory: directory.to_path_buf(),
            files: Files {
                files: report.exported.clone(),
            },
        });
        ilion_tools::sstable::run(&convert).map_err(Failure::of_tool)?;
    }
    env.create_dir_all(directory).map_err(Failure::of)?;
    let statements = exported.join("schema.cql");
    env.rename(&statements, &directory.join("schema.cql"))
        .map_err(Failure::of)?;
    env.sync_dir(directory).map_err(Failure::of)?;
    env.remove_dir_all(exported).map_err(Failure::of)
}

/// A directory next to `directory`, so on the same file system, for SSTables before their conversion.
fn beside(directory: &Path) -> Result<PathBuf, Failure> {
    let env = RealEnv::new();
    if env.exists(directory) && !env.list(directory).map_err(Failure::of)?.is_empty() {
        return Err(Failure::Failed(format!(
            "{} is not empty; export to a new directory",
            directory.display()
        )));
    }
    let mut name = directory.as_os_str().to_owned();
    name.push(".exported");
    Ok(name.into())
}

fn absolute(directory: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(directory)
        .map_err(|error| Failure::Failed(format!("{}: {error}", directory.display())))
}
