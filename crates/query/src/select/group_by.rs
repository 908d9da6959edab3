//! GROUP BY: which rows of a partition form a group.
//!
//! A group never spans partitions: its key is the whole partition key, then clustering columns in order, the last of which may be
//! the argument of a function. Compat: `SelectStatement.RawStatement.getAggregationSpecFactory` of Cassandra 5.0.

use bytes::Bytes;
use ilion_cql::ast::Selector;
use ilion_rows::Values;
use ilion_schema::{Column, ColumnKind, TableSchema};

use super::RowView;
use super::aggregate::AggregatePlan;
use super::compile::Compiler;
use super::expression::{Expr, Scope};
use super::selected_columns::columns_in;
use crate::Error;
use crate::context::{Execution, PlanContext};
use crate::restrictions::Restrictions;
use crate::restrictions::relation::existing;

/// A planned GROUP BY.
#[derive(Debug)]
pub(super) struct GroupBy {
    /// The number of clustering columns without a function.
    prefix_len: usize,
    /// A function of the next clustering column.
    function: Option<Expr>,
}

/// The values that all rows of a group share.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GroupKey {
    partition: Bytes,
    prefix: Values,
    value: Option<Bytes>,
}

const WRONG_ORDER: &str = "Group by currently only support groups of columns following their declared order in the \
                           PRIMARY KEY";

impl GroupBy {
    /// Resolves GROUP BY; `None` if the statement has none.
    pub fn plan(
        selectors: &[Selector],
        table: &TableSchema,
        restrictions: &Restrictions,
        is_distinct: bool,
        context: &PlanContext<'_>,
    ) -> Result<Option<Self>, Error> {
        if selectors.is_empty() {
            return Ok(None);
        }
        let mut key = table.partition_key().chain(table.clustering());
        let mut group = Self {
            prefix_len: 0,
            function: None,
        };
        for selector in selectors {
            if group.function.is_some() {
                return Err(Error::invalid(
                    "Functions are only supported on the last element of the GROUP BY clause",
                ));
            }
            let (column, function) = column_of(selector, table, context)?;
            loop {
                let next = key.next().ok_or_else(|| Error::invalid(WRONG_ORDER))?;
                group.prefix_len += usize::from(next.kind == ColumnKind::Clustering);
                if next.id == column.id {
                    break;
                }
                if !restrictions.is_equal_on(next) {
                    return Err(Error::invalid(WRONG_ORDER));
                }
            }
            if function.is_some() {
                group.prefix_len -= 1;
                group.function = function;
            }
        }
        if key
            .next()
            .is_some_and(|next| next.kind == ColumnKind::PartitionKey)
        {
            return Err(Error::invalid(
                "Group by is not supported on only a part of the partition key",
            ));
        }
        if is_distinct && (group.prefix_len > 0 || group.function.is_some()) {
            return Err(Error::invalid(
                "Grouping on clustering columns is not allowed for SELECT DISTINCT queries",
            ));
        }
        Ok(Some(group))
    }

    /// True if all rows of a partition are one group.
    pub fn is_by_partition(&self) -> bool {
        self.prefix_len == 0 && self.function.is_none()
    }

    /// The group key of a row.
    pub fn key(
        &self,
        partition: &Bytes,
        row: RowView<'_>,
        execution: &Execution<'_>,
    ) -> Result<GroupKey, Error> {
        let values = row.clustering().map(|clustering| clustering.values().as_slice());
        let prefix = values.unwrap_or_default().iter().take(self.prefix_len);
        let value = match &self.function {
            None => None,
            Some(function) => function.evaluate(Scope {
                row: Some(row),
                aggregates: &[],
                execution,
            })?,
        };
        Ok(GroupKey {
            partition: partition.clone(),
            prefix: prefix.cloned().collect(),
            value,
        })
    }
}

/// True if a function keeps the order of rows, so that each group is contiguous.
fn is_monotonic(function: &str) -> bool {
    const MONOTONIC: [&str; 11] = [
        "floor",
        "token",
        "to_date",
        "todate",
        "to_timestamp",
        "totimestamp",
        "to_unix_timestamp",
        "tounixtimestamp",
        "dateof",
        "unixtimestampof",
        "mintimeuuid",
    ];
    MONOTONIC.contains(&function)
}

/// The column of a member of GROUP BY, and the function applied to it.
fn column_of(
    selector: &Selector,
    table: &TableSchema,
    context: &PlanContext<'_>,
) -> Result<(Column, Option<Expr>), Error> {
    if let Selector::Column(name) = selector {
        let column = existing(table, name)?;
        if !column.is_primary_key() {
            return Err(Error::invalid(format!(
                "Group by is currently only supported on the columns of the PRIMARY KEY, got {name}"
            )));
        }
        return Ok((column.clone(), None));
    }
    let mut compiler = Compiler::new(table, context);
    let compiled = match selector {
        Selector::Function { .. } => compiler.compile(selector, None)?,
        _ => {
            return Err(Error::invalid(
                "Only column names and monotonic scalar functions are supported in the GROUP BY clause.",
            ));
        }
    };
    match &compiled.expr {
        Expr::Aggregate(index) => {
            let name = compiler
                .aggregates
                .get(*index)
                .map_or_else(String::new, AggregatePlan::printed_name);
            return Err(Error::invalid(format!(
                "Aggregate functions are not supported within the GROUP BY clause, got: {name}"
            )));
        }
        Expr::Call { function, .. } if !is_monotonic(function.name()) => {
            let types: Vec<String> = function
                .argument_types()
                .iter()
                .map(ToString::to_string)
                .collect();
            return Err(Error::invalid(format!(
                "Only monotonic functions are supported in the GROUP BY clause. Got: {} : ({}) -> {} ",
                function.qualified_name(),
                types.join(", "),
                function.result_type()
            )));
        }
        _ => {}
    }
    match columns_in(selector, table)?.as_slice() {
        [] => Err(Error::invalid(
            "GROUP BY functions must have one clustering column name as parameter",
        )),
        [column] if column.kind == ColumnKind::Clustering => Ok((column.clone(), Some(compiled.expr))),
        [column] => Err(Error::invalid(format!(
            "Group by functions are only supported on clustering columns, got {}",
            column.name
        ))),
        _ => Err(Error::invalid(
            "GROUP BY functions accept only one clustering column as parameter",
        )),
    }
}
