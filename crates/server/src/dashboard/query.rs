//! Statements from the page's query box.

use bytes::{Buf, Bytes};
use ilion_env::trace::{self, TraceEvent};
use ilion_protocol::Event;
use ilion_query::{ClientState, ExecuteOptions, Executed, Outcome, ResultSet};
use ilion_types::hex;
use serde::{Deserialize, Serialize};

use crate::Counted;
use crate::admin::AdminError;
use crate::clients::Clients;
use crate::node::Node;
use crate::request::schema_change;

/// Rows of a page, if the order does not say.
const PAGE_ROWS: u32 = 100;
/// Most rows of a page.
const PAGE_ROWS_MAX: u32 = 5000;
/// Values are shown up to this many characters.
const VALUE_CHARS_MAX: usize = 10_000;

/// A statement to carry out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryOrder {
    /// The statement.
    pub cql: String,
    /// Keyspace of unqualified names.
    #[serde(default)]
    pub keyspace: Option<String>,
    /// Rows that are wanted at once.
    #[serde(default)]
    pub page_size: Option<u32>,
    /// Where to go on, as the page before said.
    #[serde(default)]
    pub paging_state: Option<String>,
    /// The steps are wanted, too.
    #[serde(default)]
    pub trace: bool,
}

/// What a statement answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryReport {
    /// The columns; none if it answers no rows.
    pub columns: Vec<QueryColumn>,
    /// Values as CQL literals, texts without quotes; null is null.
    pub rows: Vec<Vec<Option<String>>>,
    /// More rows are there; ask with this.
    pub paging_state: Option<String>,
    /// Sentences of the server.
    pub warnings: Vec<String>,
    /// From the statement's turn to its answer, waiting for the commit log included.
    pub elapsed_micros: u64,
    /// `USE` was carried out: the keyspace from now on.
    pub keyspace: Option<String>,
    /// The steps, if they were asked for.
    #[serde(default)]
    pub trace: Vec<QueryStep>,
}

/// A step of a statement that was traced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryStep {
    /// Since the beginning.
    pub elapsed_micros: u64,
    /// What was done.
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

/// Carries out a statement as for any client: durable before it is answered, and told to those who listen for changes
/// of the schema.
pub(crate) fn run(node: &Node, clients: &Clients, order: &QueryOrder) -> Result<QueryReport, AdminError> {
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
    let executed = execute(node, &order.cql, &options);
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
                crate::SchemaListener::schema_changed(&**node.local());
            }
            for change in changes {
                clients.announce(&Event::Schema(schema_change(change)));
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

/// Carries it out as a statement that is counted, see `system_views.statements`.
fn execute(node: &Node, cql: &str, options: &ExecuteOptions) -> Result<Executed, AdminError> {
    let counted = Counted::begin(node);
    let mut client = ClientState::default();
    let mut executed = execute_durably(node, &mut client, cql, options);
    let shape = executed.as_mut().ok().and_then(|executed| executed.shape.take());
    let keyspace = options.keyspace.as_deref();
    let shape = shape.unwrap_or_else(|| node.processor().shape_of(&client, cql, keyspace));
    counted.finish(node, &shape, executed.is_err());
    executed
}

/// Returns when what was written is durable.
fn execute_durably(
    node: &Node,
    client: &mut ClientState,
    cql: &str,
    options: &ExecuteOptions,
) -> Result<Executed, AdminError> {
    let executed = node
        .processor()
        .query(client, cql, options)
        .map_err(|error| AdminError::Refused(error.to_string()))?;
    if executed.durable_at.is_some() {
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

/// The next value of `length: i32` and bytes; `None` if it is null.
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
    // What does not print is no value of its type; its bytes are what can be said of it.
    let mut text = printed.unwrap_or_else(|_| format!("0x{}", hex::print(value)));
    if let Some((cut, _)) = text.char_indices().nth(VALUE_CHARS_MAX) {
        text.truncate(cut);
        text.push_str("...");
    }
    text
}
