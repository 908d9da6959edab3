//! The selection of a SELECT: unchanged columns, or expressions.

use std::sync::Arc;

use bytes::Bytes;
use ilion_cql::ast;
use ilion_rows::Data;
use ilion_schema::{Column, ColumnKind, TableSchema};
use ilion_types::{CqlType, json};

use super::RowView;
use super::aggregate::{AggregatePlan, RunningAggregate};
use super::compile::Compiler;
use super::expression::{Expr, Scope};
use super::plain::{PlainAggregates, PlainArguments};
use super::row_view::{OwnedRow, cell_value, complex_value};
use super::rows_out::RowsOut;
use crate::context::{Execution, PlanContext};
use crate::masking::Masks;
use crate::{ColumnSpec, Error};

/// A planned selection.
#[derive(Debug)]
pub(super) struct Selection {
    kind: SelectionKind,
    /// Names and types of the selected columns, if each row is answered as one JSON text.
    json: Option<Vec<(String, CqlType)>>,
}

#[derive(Debug)]
enum SelectionKind {
    /// Unchanged columns.
    Columns(Vec<Column>),
    Expressions {
        expressions: Vec<Selected>,
        aggregates: Vec<AggregatePlan>,
    },
}

/// A selected expression.
#[derive(Debug)]
struct Selected {
    expr: Expr,
    /// True if the value for a group is computed from aggregates at the end of the group; false if it is that of the first row.
    is_aggregate: bool,
    /// True if the value is computed at the end, but also needs the first row.
    is_mixed: bool,
}

impl Selection {
    /// Resolves the selection and the columns of the result. `masks` are put around columns.
    pub fn plan(
        ast: &ast::Select,
        table: &TableSchema,
        masks: Option<&Masks>,
        context: &PlanContext<'_>,
    ) -> Result<(Self, Arc<[ColumnSpec]>), Error> {
        let (mut selection, specs) = match &ast.selection {
            ast::Selection::All => Self::all(table, masks),
            ast::Selection::Items(items) => Self::items(items, table, masks, context)?,
        };
        if !ast.json {
            return Ok((selection, specs.into()));
        }
        let text = Compiler::new(table, context).spec("[json]", CqlType::Text);
        let members = specs.into_iter().map(|spec| (spec.name.to_string(), spec.ty));
        selection.json = Some(members.collect());
        Ok((selection, Arc::from([text])))
    }

    fn all(table: &TableSchema, masks: Option<&Masks>) -> (Self, Vec<ColumnSpec>) {
        let columns: Vec<Column> = table.select_order().into_iter().cloned().collect();
        let (keyspace, name): (Arc<str>, Arc<str>) =
            (Arc::from(table.keyspace.as_str()), Arc::from(table.name.as_str()));
        let spec = |column: &Column| ColumnSpec {
            keyspace: keyspace.clone(),
            table: name.clone(),
            name: Arc::from(column.name.as_str()),
            ty: column.ty.clone(),
        };
        let specs = columns.iter().map(spec).collect();
        let selected = columns.into_iter().map(|column| Selected {
            expr: Expr::of_column(column, masks),
            is_aggregate: false,
            is_mixed: false,
        });
        let selection = Self {
            kind: kind_of(selected.collect(), Vec::new()),
            json: None,
        };
        (selection, specs)
    }

    fn items(
        items: &[ast::SelectItem],
        table: &TableSchema,
        masks: Option<&Masks>,
        context: &PlanContext<'_>,
    ) -> Result<(Self, Vec<ColumnSpec>), Error> {
        let mut compiler = Compiler::masking(masks, table, context);
        let mut specs = Vec::with_capacity(items.len());
        let mut expressions = Vec::with_capacity(items.len());
        for item in items {
            let compiled = compiler.compile(&item.selector, None)?;
            let name = item.alias.as_deref().unwrap_or(&compiled.text);
            specs.push(compiler.spec(name, compiled.ty));
            expressions.push(Selected {
                expr: compiled.expr,
                is_aggregate: compiled.is_aggregate,
                is_mixed: compiled.is_aggregate && compiled.has_column,
            });
        }
        let selection = Self {
            kind: kind_of(expressions, compiler.aggregates),
            json: None,
        };
        Ok((selection, specs))
    }

    /// The selected columns, if all are selected unchanged and not as JSON.
    pub fn columns_as_they_are(&self) -> Option<&[Column]> {
        match &self.kind {
            SelectionKind::Columns(columns) if self.json.is_none() => Some(columns),
            _ => None,
        }
    }

    /// The argument of each aggregate, if these arguments are all that is needed from rows after the first of a group.
    pub fn plain_arguments(&self) -> Option<Vec<Option<&Column>>> {
        match &self.kind {
            SelectionKind::Columns(_) => Some(Vec::new()),
            SelectionKind::Expressions { aggregates, .. } => {
                aggregates.iter().map(AggregatePlan::plain_argument).collect()
            }
        }
    }

    /// True if rows are aggregated.
    pub fn is_aggregate(&self) -> bool {
        match &self.kind {
            SelectionKind::Columns(_) => false,
            SelectionKind::Expressions { aggregates, .. } => !aggregates.is_empty(),
        }
    }

    /// Appends a row.
    pub fn write(&self, row: RowView<'_>, execution: &Execution<'_>, out: &mut RowsOut) -> Result<(), Error> {
        match &self.kind {
            SelectionKind::Columns(columns) if self.json.is_none() => {
                write_columns(columns, row, out);
                Ok(())
            }
            SelectionKind::Columns(columns) => {
                let values: Vec<Option<Bytes>> = columns.iter().map(|column| row.value(column)).collect();
                self.write_values(&values, out)
            }
            SelectionKind::Expressions { expressions, .. } => {
                let scope = Scope {
                    row: Some(row),
                    aggregates: &[],
                    execution,
                };
                let values = expressions
                    .iter()
                    .map(|selected| selected.expr.evaluate(scope))
                    .collect::<Result<Vec<_>, _>>()?;
                self.write_values(&values, out)
            }
        }
    }

    fn write_values(&self, values: &[Option<Bytes>], out: &mut RowsOut) -> Result<(), Error> {
        match &self.json {
            None => values.iter().for_each(|value| match value {
                Some(value) => out.shared(value),
                None => out.value(None),
            }),
            Some(members) => out.value(Some(json_row(members, values)?.as_bytes())),
        }
        out.end_row();
        Ok(())
    }

    /// Starts a group with its first row; `None` starts an empty group.
    pub fn start_group<'p>(
        &'p self,
        first: Option<RowView<'_>>,
        execution: &Execution<'_>,
    ) -> Result<Group<'p>, Error> {
        let is_mixed = match &self.kind {
            SelectionKind::Columns(_) => false,
            SelectionKind::Expressions { expressions, .. } => expressions.iter().any(|one| one.is_mixed),
        };
        let row = first.filter(|_| is_mixed).map(OwnedRow::of);
        let of_row = |expr: &Expr| match first {
            None => Ok(None),
            Some(_) => expr.evaluate(Scope {
                row: first,
                aggregates: &[],
                execution,
            }),
        };
        let (first, aggregates) = match &self.kind {
            SelectionKind::Columns(columns) => {
                let value = |column| first.and_then(|row: RowView<'_>| row.value(column));
                (columns.iter().map(value).collect(), Vec::new())
            }
            SelectionKind::Expressions {
                expressions,
                aggregates,
            } => {
                let value = |selected: &Selected| match selected.is_aggregate {
                    true => Ok(None),
                    false => of_row(&selected.expr),
                };
                let values = expressions.iter().map(value).collect::<Result<Vec<_>, Error>>()?;
                (values, aggregates.iter().map(RunningAggregate::new).collect())
            }
        };
        Ok(Group {
            selection: self,
            first,
            row,
            aggregates,
        })
    }
}

fn kind_of(expressions: Vec<Selected>, aggregates: Vec<AggregatePlan>) -> SelectionKind {
    let column = |selected: &Selected| match &selected.expr {
        Expr::Column(column) => Some(column.clone()),
        _ => None,
    };
    match expressions.iter().map(column).collect::<Option<Vec<Column>>>() {
        Some(columns) => SelectionKind::Columns(columns),
        None => SelectionKind::Expressions {
            expressions,
            aggregates,
        },
    }
}

/// Rows that are aggregated into one.
pub(super) struct Group<'p> {
    selection: &'p Selection,
    /// The selected values of the first row.
    first: Vec<Option<Bytes>>,
    /// A copy of the first row, if a value at the end needs it.
    row: Option<OwnedRow>,
    aggregates: Vec<RunningAggregate<'p>>,
}

impl<'p> Group<'p> {
    /// The aggregates for plain rows after the first; `None` if one is user-defined.
    pub fn plain<'g>(&'g mut self, arguments: &'g PlainArguments) -> Option<PlainAggregates<'g, 'p>> {
        let runnings = self.aggregates.iter_mut().map(RunningAggregate::native);
        Some(PlainAggregates::new(arguments, runnings.collect::<Option<_>>()?))
    }

    /// Adds a row to the aggregates. To be called for the first row, too.
    pub fn add(&mut self, row: RowView<'_>, execution: &Execution<'_>) -> Result<(), Error> {
        let scope = Scope {
            row: Some(row),
            aggregates: &[],
            execution,
        };
        self.aggregates
            .iter_mut()
            .try_for_each(|aggregate| aggregate.add(scope))
    }

    /// Appends the row of the group.
    pub fn write(mut self, execution: &Execution<'_>, out: &mut RowsOut) -> Result<(), Error> {
        if let SelectionKind::Expressions { expressions, .. } = &self.selection.kind {
            let before = Scope {
                row: None,
                aggregates: &[],
                execution,
            };
            let results = self
                .aggregates
                .iter()
                .map(|aggregate| aggregate.result(before))
                .collect::<Result<Vec<_>, Error>>()?;
            let scope = Scope {
                row: self.row.as_ref().map(OwnedRow::view),
                aggregates: &results,
                execution,
            };
            for (selected, value) in expressions.iter().zip(&mut self.first) {
                if selected.is_aggregate {
                    *value = selected.expr.evaluate(scope)?;
                }
            }
        }
        self.selection.write_values(&self.first, out)
    }
}

/// Appends columns. A large value of a simple cell is shared with the row, not copied.
fn write_columns(columns: &[Column], row: RowView<'_>, out: &mut RowsOut) {
    for column in columns {
        match column.kind {
            ColumnKind::PartitionKey => {
                out.value(row.key.get(usize::from(column.position)).map(Bytes::as_ref));
            }
            ColumnKind::Clustering => out.value(row.clustering_value(column).map(Bytes::as_ref)),
            ColumnKind::Static | ColumnKind::Regular => match row.data(column) {
                None => out.value(None),
                Some(Data::Simple(cell)) if column.ty == CqlType::Counter => {
                    out.value(Some(&cell_value(column, cell)));
                }
                Some(Data::Simple(cell)) => out.shared(&cell.value),
                Some(Data::Complex(complex)) => {
                    out.value(complex_value(&column.ty, complex).as_deref());
                }
            },
        }
    }
    out.end_row();
}

fn json_row(members: &[(String, CqlType)], values: &[Option<Bytes>]) -> Result<String, Error> {
    let mut out = String::from("{");
    for (index, ((name, ty), value)) in members.iter().zip(values).enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        json::print_name(name, &mut out);
        out.push_str(": ");
        match value {
            None => out.push_str("null"),

            Some(value) => ty.print_json_into(value, &mut out)?,
        }
    }
    out.push('}');
    Ok(out)
}
