//! `ilion statements`, `trace-probability`, `table-stats`, `table-histograms`, `top-partitions`: what a running node of this machine
//! has counted.

use std::fmt::Display;

use ilion_server::admin::{StatementsReport, TopPartitionsReport, TraceProbabilityReport};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Failure;
use crate::ask::{client, escape, report, say};
use crate::cli::{StatementsArguments, TableArguments, TopPartitionsArguments, TraceProbabilityArguments};

/// Lists what statements have cost, or forgets it.
pub fn statements(arguments: &StatementsArguments) -> Result<(), Failure> {
    if arguments.action.is_some() {
        let done = client(&arguments.admin)?.post("/admin/statements/reset");
        done.map_err(Failure::of)?;
        say("statements: forgotten");
        return Ok(());
    }
    let mut report: StatementsReport = client(&arguments.admin)?
        .get("/admin/statements")
        .map_err(Failure::of)?;
    report.statements.truncate(arguments.top);
    match arguments.admin.json {
        true => say(&serde_json::to_string_pretty(&report).map_err(Failure::of)?),
        false => say(&report.to_string()),
    }
    Ok(())
}

/// Tells or sets how many requests are traced that do not ask for it.
pub fn trace_probability(arguments: &TraceProbabilityArguments) -> Result<(), Failure> {
    if let Some(probability) = arguments.probability {
        let path = format!("/admin/trace-probability?probability={probability}");
        client(&arguments.admin)?.post(&path).map_err(Failure::of)?;
    }
    report::<TraceProbabilityReport>(&arguments.admin, "/admin/trace-probability")
}

/// Prints what is known of tables.
pub fn tables<T: DeserializeOwned + Serialize + Display>(arguments: &TableArguments) -> Result<(), Failure> {
    let mut path = "/admin/table-stats".to_owned();
    if let Some(keyspace) = &arguments.keyspace {
        path.push_str(&format!("?keyspace={}", escape(keyspace)));
    }
    if let Some(table) = &arguments.table {
        path.push_str(&format!("&table={}", escape(table)));
    }
    report::<T>(&arguments.admin, &path)
}

/// Prints which partitions are used most.
pub fn top_partitions(arguments: &TopPartitionsArguments) -> Result<(), Failure> {
    let tables = &arguments.tables;
    let mut path = format!(
        "/admin/top-partitions?millis={}&top={}",
        arguments.duration, arguments.top
    );
    for (name, value) in [("keyspace", &tables.keyspace), ("table", &tables.table)] {
        if let Some(value) = value {
            path.push_str(&format!("&{name}={}", escape(value)));
        }
    }
    let report = client(&tables.admin)?.post(&path).map_err(Failure::of)?;
    let report: TopPartitionsReport = serde_json::from_value(report).map_err(Failure::of)?;
    match tables.admin.json {
        true => say(&serde_json::to_string_pretty(&report).map_err(Failure::of)?),
        false => say(&report.to_string()),
    }
    Ok(())
}
