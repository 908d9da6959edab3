//! Column specifications, a part of result and bind metadata.
//!
//! ```text
//! columns := [keyspace, table: string x 2, if global] n x ([keyspace, table: string x 2, unless global] name: string, type)
//! ```

use std::sync::Arc;

use ilion_types::CqlType;

use crate::error::Error;
use crate::notation::{Input, put_string};
use crate::types::{decode_type, encode_type};
use crate::version::Version;

/// Metadata flag: all columns belong to one table, which is named once.
pub(crate) const GLOBAL_TABLE: i32 = 0x1;

/// A column of a result, or a bind marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Keyspace of the column's table.
    pub keyspace: Arc<str>,
    /// Table of the column.
    pub table: Arc<str>,
    /// Name of the column or marker.
    pub name: Arc<str>,
    /// Type of the column. The protocol does not carry `frozen`.
    pub cql_type: CqlType,
}

impl ColumnSpec {
    fn is_same_table(&self, other: &Self) -> bool {
        self.table == other.table && self.keyspace == other.keyspace
    }
}

/// [`GLOBAL_TABLE`] if all columns are of one table, else 0.
pub(crate) fn global_flag(columns: &[ColumnSpec]) -> i32 {
    match columns.split_first() {
        Some((first, rest)) if rest.iter().all(|column| column.is_same_table(first)) => GLOBAL_TABLE,
        _ => 0,
    }
}

/// Appends the columns. With [`GLOBAL_TABLE`] in `flags`, their table is named once.
pub(crate) fn encode_columns(out: &mut Vec<u8>, version: Version, flags: i32, columns: &[ColumnSpec]) {
    let is_global = flags & GLOBAL_TABLE != 0;
    if let (true, Some(first)) = (is_global, columns.first()) {
        put_string(out, &first.keyspace);
        put_string(out, &first.table);
    }
    for column in columns {
        if !is_global {
            put_string(out, &column.keyspace);
            put_string(out, &column.table);
        }
        put_string(out, &column.name);
        encode_type(out, version, &column.cql_type);
    }
}

pub(crate) fn decode_columns(
    input: &mut Input<'_>,
    flags: i32,
    count: usize,
) -> Result<Vec<ColumnSpec>, Error> {
    let global = if flags & GLOBAL_TABLE != 0 {
        Some(decode_table(input)?)
    } else {
        None
    };
    let mut columns = Vec::with_capacity(input.reader().capacity_for(count, COLUMN_MIN_BYTES));
    for _ in 0..count {
        let (keyspace, table) = match &global {
            Some((keyspace, table)) => (keyspace.clone(), table.clone()),
            None => decode_table(input)?,
        };
        columns.push(ColumnSpec {
            keyspace,
            table,
            name: input.reader().string16()?.into(),
            cql_type: decode_type(input.reader())?,
        });
    }
    Ok(columns)
}

fn decode_table(input: &mut Input<'_>) -> Result<(Arc<str>, Arc<str>), Error> {
    let keyspace = input.reader().string16()?.into();
    let table = input.reader().string16()?.into();
    Ok((keyspace, table))
}

/// Size of a column with an empty name and a simple type.
const COLUMN_MIN_BYTES: usize = 2 + 2;
