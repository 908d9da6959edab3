//! Executes statements of the dashboard's query box.

use std::net::SocketAddr;

use bytes::{Buf, Bytes};
use ilion_env::trace::{self, TraceEvent};
use ilion_node::Counted;
use ilion_protocol::Event;
use ilion_query::{ClientState, ExecuteOptions, Executed, Identity, Outcome, ResultSet};
use ilion_types::hex;
use serde::{Deserialize, Serialize};

use crate::admin::{AdminError, Caller};
use crate::clients::Clients;
use crate::schema_events::schema_change;
use crate::server_node::ServerNode;

/// Rows of a page, if the order has no `page_size`.
const PAGE_ROWS: u32 = 100;
/// Largest page, in rows.
const PAGE_ROWS_MAX: u32 = 5000;
/// Longer values are cut.
const VALUE_CHARS_MAX: usize = 10_000;

/// A statement to execute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryOrder {
    /// The statement.
    pub cql: String,
    /// Keyspace of unqualified names.
    #[serde(default)]
    pub keyspace: Option<String>,
    /// Most rows of a page; `None` is 100.
    #[serde(default)]
    pub page_size: Option<u32>,
    /// The paging state of the previous page; `None` for the first page.
    #[serde(default)]
    pub paging_state: Option<String>,
    /// Whether the statement is traced.
    #[serde(default)]
    pub trace: bool,
}

/// The answer to a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryReport {
    /// The columns; empty if the statement returns no rows.
    pub columns: Vec<QueryColumn>,
    /// Values as CQL literals, texts without quotes; `None` is null.
    pub rows: Vec<Vec<Option<String>>>,
    /// The state for the next page; `None` after the last page.
    pub paging_state: Option<String>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// Time of the execution, including the wait for the commit log.
    pub elapsed_micros: u64,
    /// The new keyspace after `USE`, else `None`.
    pub keyspace: Option<String>,
    /// The trace; empty if the order does not request one.
    #[serde(default)]
    pub trace: Vec<QueryStep>,
}

/// A step of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryStep {
    /// Time since the start of the statement.
    pub elapsed_micros: u64,
    /// The activity.
    pub activity: String,
}

/// A column of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: String,
}

/// Executes a statement as for any client: returns when its writes are durable, and sends the events of a schema change.
pub(crate) fn run(
    node: &ServerNode,
    clients: Option<&Clients>,
    order: &QueryOrder,
    caller: &Caller,
) -> Result<QueryReport, AdminError> {
    let without_role = || AdminError::Refused("a statement needs a login".to_owned());
    let identity = caller.identity().ok_or_else(without_role)?;
    let started_nanos = node.engine().env().monotonic_nanos();
    let damaged = || AdminError::Refused("the paging state is damaged".to_owned());
    let paging_state = match &order.paging_state {
        None => None,
        Some(text) => Some(hex::parse(text).ok_or_else(damaged)?),
    };
    let options = ExecuteOptions {
        page_size: Some(order.page_size.unwrap_or(PAGE_ROWS).clamp(1, PAGE_ROWS_MAX)),
        paging_state: paging_state.map(Bytes::from),
        keyspace: order.keyspace.clone().filter(|name| !name.is_empty()),
        ..ExecuteOptions::default()
    };
    if order.trace {
        trace::begin();
    }
    let executed = execute(node, identity, caller.address(), &order.cql, &options);
    let mut report = QueryReport {
        trace: trace::finish().into_iter().map(QueryStep::from).collect(),
        ..QueryReport::default()
    };
    let executed = executed?;
    report.warnings = executed.warnings;
    match executed.outcome {
        Outcome::Void => {}
        Outcome::SetKeyspace(keyspace) => report.keyspace = Some(keyspace),
        Outcome::SchemaChange(changes) => {
            if !changes.is_empty() {
                ilion_node::SchemaListener::schema_changed(&**node.local());
            }
            for change in changes {
                let is_told = ilion_node::SchemaListener::is_announced_by_log(&**node.local());
                if let Some(clients) = clients.filter(|_| !is_told) {
                    clients.announce(&Event::Schema(schema_change(change)));
                }
            }
        }
        Outcome::Rows(rows) => take_rows(&mut report, rows),
    }
    let nanos = node
        .engine()
        .env()
        .monotonic_nanos()
        .saturating_sub(started_nanos);
    report.elapsed_micros = nanos / 1000;
    Ok(report)
}

/// Executes a statement and counts its costs for `system_views.statements`.
fn execute(
    node: &ServerNode,
    identity: Identity,
    source: Option<SocketAddr>,
    cql: &str,
    options: &ExecuteOptions,
) -> Result<Executed, AdminError> {
    let counted = Counted::begin(node);
    let mut client = ClientState {
        identity,
        ..ClientState::default()
    };
    let mut executed = execute_durably(node, &mut client, source, cql, options);
    let shape = executed.as_mut().ok().and_then(|executed| executed.shape.take());
    let keyspace = options.keyspace.as_deref();
    let shape = shape.unwrap_or_else(|| node.processor().shape_of(&client, cql, keyspace));
    counted.finish(node, &shape, executed.is_err());
    executed
}

/// Executes a statement and waits until its writes are durable.
fn execute_durably(
    node: &ServerNode,
    client: &mut ClientState,
    source: Option<SocketAddr>,
    cql: &str,
    options: &ExecuteOptions,
) -> Result<Executed, AdminError> {
    let executed = node.processor().query(client, cql, options);
    let keyspace = options.keyspace.as_deref();
    node.auditor()
        .of_dashboard(client, source, cql, keyspace, executed.as_ref().err());
    let executed = executed.map_err(|error| AdminError::Refused(error.to_string()))?;
    if executed.awaited.is_some() {
        node.wait_durable(&executed)
            .map_err(|error| AdminError::Failed(error.to_string()))?;
        trace::note(|| "Commitlog is durable");
    }
    Ok(executed)
}

impl From<TraceEvent> for QueryStep {
    fn from(event: TraceEvent) -> Self {
        Self {
            elapsed_micros: event.elapsed_nanos / 1000,
            activity: event.activity,
        }
    }
}

fn take_rows(report: &mut QueryReport, rows: ResultSet) {
    report.columns = rows
        .columns
        .iter()
        .map(|column| QueryColumn {
            name: column.name.to_string(),
            ty: column.ty.to_string(),
        })
        .collect();
    let joined = rows.cells.into_vec();
    let mut cells = joined.as_slice();
    for _ in 0..rows.row_count {
        let row = rows.columns.iter().map(|column| {
            let value = take_value(&mut cells)?;
            Some(shown(&column.ty, value))
        });
        report.rows.push(row.collect());
    }
    report.paging_state = rows.paging_state.as_deref().map(hex::print);
}

/// Reads the next value: `length: i32` and bytes; `None` if it is null.
fn take_value<'c>(cells: &mut &'c [u8]) -> Option<&'c [u8]> {
    let len = usize::try_from(cells.try_get_i32().ok()?).ok()?;
    let (value, rest) = cells.split_at_checked(len)?;
    *cells = rest;
    Some(value)
}

fn shown(ty: &ilion_types::CqlType, value: &[u8]) -> String {
    let printed = match ty {
        ilion_types::CqlType::Text | ilion_types::CqlType::Ascii => ty.print_plain(value),
        _ => ty.print_literal(value),
    };
    // Bytes that are no value of the type are shown in hex.
    let mut text = printed.unwrap_or_else(|_| format!("0x{}", hex::print(value)));
    if let Some((cut, _)) = text.char_indices().nth(VALUE_CHARS_MAX) {
        text.truncate(cut);
        text.push_str("...");
    }
    text
}
