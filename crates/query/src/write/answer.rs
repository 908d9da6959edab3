//! The answers of conditional statements: `[applied]`, and after a refusal the stored values.
//!
//! Compat: `ModificationStatement.buildCasResultSet` of Cassandra 5.0. After a failed `IF [NOT] EXISTS` the answer has all
//! columns. After other conditions it has the columns in the conditions; in a batch the primary key comes before these. If
//! no row is stored, it has only `[applied]`.

use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::DecoratedKey;
use ilion_schema::{Column, TableSchema};
use ilion_types::CqlType;

use super::current::Current;
use crate::context::Execution;
use crate::masking::Masker;
use crate::select::{RowView, key_components};
use crate::{ColumnSpec, Error, ResultSet};

/// A column of the answer.
pub(super) struct Shown<'p> {
    pub column: &'p Column,
    /// The mask of its values, if one applies.
    pub masker: Option<&'p Arc<Masker>>,
}

/// The answer if the condition held and everything was written.
pub(super) fn applied(table: &TableSchema) -> ResultSet {
    ResultSet {
        columns: [ColumnSpec::of(table, "[applied]", CqlType::Boolean)].into(),
        metadata_id: None,
        row_count: 1,
        cells: applied_cell(true).to_vec().into(),
        paging_state: None,
    }
}

/// The answer if the condition did not hold and nothing was written.
pub(super) fn refused(
    table: &TableSchema,
    key: &DecoratedKey,
    columns: &[Shown<'_>],
    current: &Current,
    execution: &Execution<'_>,
) -> Result<ResultSet, Error> {
    let key = key_components(table, &key.key)?;
    let static_row = current.static_row();
    let mut views: Vec<RowView<'_>> = current
        .rows()
        .iter()
        .map(|row| RowView {
            key: &key,
            static_row,
            row: Some(row),
        })
        .collect();
    if views.is_empty() && static_row.is_some() {
        views.push(RowView {
            key: &key,
            static_row,
            row: None,
        });
    }
    let mut specs = vec![ColumnSpec::of(table, "[applied]", CqlType::Boolean)];
    let mut cells = Vec::new();
    if views.is_empty() {
        cells.extend(applied_cell(false));
    } else {
        specs.extend(
            columns
                .iter()
                .map(|Shown { column, .. }| ColumnSpec::of(table, &column.name, column.ty.clone())),
        );
    }
    for view in &views {
        cells.extend(applied_cell(false));
        for Shown { column, masker } in columns {
            let stored = view.value(column);
            let value = match masker {
                Some(masker) => masker.mask(stored, execution)?,
                None => stored,
            };
            append_cell(value, &mut cells)?;
        }
    }
    Ok(ResultSet {
        columns: specs.into(),
        metadata_id: None,
        row_count: u32::try_from(views.len().max(1)).unwrap_or(u32::MAX),
        cells: cells.into(),
        paging_state: None,
    })
}

fn applied_cell(applied: bool) -> [u8; 5] {
    [0, 0, 0, 1, u8::from(applied)]
}

fn append_cell(value: Option<Bytes>, cells: &mut Vec<u8>) -> Result<(), Error> {
    let Some(value) = value else {
        cells.extend((-1i32).to_be_bytes());
        return Ok(());
    };
    let len = i32::try_from(value.len()).map_err(|_| Error::ServerError("a value is too long".to_owned()))?;
    cells.extend(len.to_be_bytes());
    cells.extend_from_slice(&value);
    Ok(())
}
