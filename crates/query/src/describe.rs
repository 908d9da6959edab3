//! DESCRIBE: names and CREATE statements of schema objects, as rows.
//!
//! Compat: columns, order, errors and paging are those of `DescribeStatement` of Cassandra 5.0. Only the paging state is
//! Ilion's own:
//! ```text
//! state := 0x0001: u16, schema version: [u8; 16], rows before: u64    (big-endian)
//! ```

mod cluster;
mod find;
mod rows;

use std::sync::Arc;

use ilion_cql::ast::{Describe, DescribeTarget};
use ilion_schema::Schema;
use ilion_schema::describe::Internals;
use uuid::Uuid;

use crate::context::{Execution, PlanContext};
use crate::{ColumnSpec, Error, Executed, Outcome, ResultSet};
use find::{elements, listing};
use rows::{DescribedRow, element_columns, listing_columns};

const PAGING_VERSION: u16 = 1;

/// A planned DESCRIBE.
#[derive(Debug)]
pub(crate) struct DescribePlan {
    target: DescribeTarget,
    internals: Internals,
    /// The session's keyspace.
    keyspace: Option<String>,
}

impl DescribePlan {
    /// Keeps the statement as it is; names are looked up at execution.
    pub fn plan(ast: &Describe, context: &PlanContext<'_>) -> Self {
        Self {
            target: ast.target.clone(),
            internals: if ast.with_internals {
                Internals::Shown
            } else {
                Internals::Hidden
            },
            keyspace: context.keyspace.map(str::to_owned),
        }
    }

    /// Returns one page of rows.
    pub fn execute(&self, execution: &Execution<'_>) -> Result<Executed, Error> {
        let schema = execution.schema;
        let keyspace = self.keyspace.as_deref();
        let (columns, rows) = match &self.target {
            DescribeTarget::Cluster => cluster::describe(keyspace, execution.store),
            DescribeTarget::Keyspaces
            | DescribeTarget::Tables
            | DescribeTarget::Types
            | DescribeTarget::Functions
            | DescribeTarget::Aggregates => (listing_columns(), listing(&self.target, keyspace, schema)?),
            target => (
                element_columns(),
                elements(target, keyspace, self.internals, schema)?,
            ),
        };
        page(&columns, rows, schema, execution).map(|rows| Executed::of(Outcome::Rows(rows)))
    }
}

fn page(
    columns: &Arc<[ColumnSpec]>,
    rows: Vec<DescribedRow>,
    schema: &Schema,
    execution: &Execution<'_>,
) -> Result<ResultSet, Error> {
    let skipped = match execution.options.paging_state.as_deref() {
        None => 0,
        Some(state) => decode_state(state, schema)?,
    };
    let wanted = match execution.options.page_size {
        None | Some(0) => usize::MAX,
        Some(size) => usize::try_from(size).unwrap_or(usize::MAX),
    };
    let end = skipped.saturating_add(wanted);
    let more = rows.len() > end;
    let mut cells = Vec::new();
    let mut row_count = 0;
    for row in rows.into_iter().skip(skipped).take(wanted) {
        row.append_to(&mut cells);
        row_count += 1;
    }
    Ok(ResultSet {
        columns: columns.clone(),
        metadata_id: None,
        row_count,
        cells: cells.into(),
        paging_state: more.then(|| encode_state(end, schema)),
    })
}

fn encode_state(rows_before: usize, schema: &Schema) -> Vec<u8> {
    let mut state = PAGING_VERSION.to_be_bytes().to_vec();
    state.extend(schema.version.as_bytes());
    state.extend((rows_before as u64).to_be_bytes());
    state
}

fn decode_state(state: &[u8], schema: &Schema) -> Result<usize, Error> {
    let parts = state
        .split_first_chunk::<2>()
        .and_then(|(version, rest)| Some((version, rest.split_first_chunk::<16>()?)))
        .and_then(|(version, (schema, rest))| Some((version, schema, <[u8; 8]>::try_from(rest).ok()?)));
    let Some((version, schema_version, rows_before)) = parts else {
        return Err(Error::invalid("Invalid paging state."));
    };
    if u16::from_be_bytes(*version) != PAGING_VERSION {
        return Err(Error::invalid("Incompatible paging state"));
    }
    if Uuid::from_bytes(*schema_version) != schema.version {
        return Err(Error::invalid(
            "The schema has changed since the previous page of the DESCRIBE statement result. Please retry the \
             DESCRIBE statement.",
        ));
    }
    Ok(usize::try_from(u64::from_be_bytes(rows_before)).unwrap_or(usize::MAX))
}
