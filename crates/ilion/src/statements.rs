//! `ilion statements`, `trace-probability`, `table-stats`, `table-histograms`, `top-partitions`: statistics of a running node.

use std::fmt::Display;

use ilion_server::admin::{StatementsReport, TopPartitionsReport, TraceProbabilityReport};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Failure;
use crate::ask::{client, of_tables, path, post, post_report, report, say, show};
use crate::bar::while_time_passes;
use crate::cli::{StatementsArguments, TableArguments, TopPartitionsArguments, TraceProbabilityArguments};

/// Lists or resets the costs of statements.
pub fn statements(arguments: &StatementsArguments) -> Result<(), Failure> {
    if arguments.action.is_some() {
        post(&arguments.admin, "statements/reset", &[])?;
        say("statements: forgotten");
        return Ok(());
    }
    let mut report: StatementsReport = client(&arguments.admin)?
        .get("/admin/statements")
        .map_err(Failure::of)?;
    report.statements.truncate(arguments.top);
    show(&arguments.admin, &report)
}

/// Prints or sets the share of requests that are traced without being asked to.
pub fn trace_probability(arguments: &TraceProbabilityArguments) -> Result<(), Failure> {
    if let Some(probability) = arguments.probability {
        let probability = probability.to_string();
        post(
            &arguments.admin,
            "trace-probability",
            &[("probability", Some(&*probability))],
        )?;
    }
    report::<TraceProbabilityReport>(&arguments.admin, "/admin/trace-probability")
}

/// Prints statistics of tables.
pub fn tables<T: DeserializeOwned + Serialize + Display>(arguments: &TableArguments) -> Result<(), Failure> {
    let path = path("table-stats", &of_tables(arguments));
    report::<T>(&arguments.admin, &path)
}

/// Samples and prints the partitions that are used most.
pub fn top_partitions(arguments: &TopPartitionsArguments) -> Result<(), Failure> {
    let tables = &arguments.tables;
    let [keyspace, table] = of_tables(tables);
    let (millis, top) = (arguments.duration.to_string(), arguments.top.to_string());
    let parts = [("millis", Some(&*millis)), ("top", Some(&*top)), keyspace, table];
    let report: TopPartitionsReport = while_time_passes("top-partitions", arguments.duration, || {
        post_report(&tables.admin, "top-partitions", &parts)
    })?;
    show(&tables.admin, &report)
}
