//! IF: planning and evaluating conditions.
//!
//! Compat: `ColumnCondition` of Cassandra 5.0.

use std::cmp::Ordering;

use bytes::Bytes;
use ilion_cql::ast::{self, ColumnPart, IfClause, Operator};
use ilion_rows::Row;
use ilion_schema::{Column, ColumnKind, TableSchema};
use ilion_types::{CqlType, collection_elements, encode_list, map_entries, tuple_components};

use crate::context::{Execution, PlanContext};
use crate::restrictions::relation::existing;
use crate::select::RowView;
use crate::term::{Term, Terms};
use crate::{ColumnSpec, Error, Value};

/// A planned IF.
#[derive(Debug)]
pub(super) enum Condition {
    None,
    NotExists,
    Exists,
    Columns(Vec<ColumnCondition>),
}

/// One condition on a column or a part of it.
#[derive(Debug)]
pub(super) struct ColumnCondition {
    pub column: Column,
    part: ComparedPart,
    /// The type of the compared value.
    ty: CqlType,
    operator: Operator,
    wanted: Expected,
}

#[derive(Debug)]
enum ComparedPart {
    Whole,
    /// A map's key or a list's index.
    Element(Term),
    Field(usize),
}

#[derive(Debug)]
enum Expected {
    One(Term),
    Any(Terms),
}

impl Condition {
    pub(super) fn plan(
        clause: &IfClause,
        table: &TableSchema,
        context: &PlanContext<'_>,
    ) -> Result<Self, Error> {
        match clause {
            IfClause::None => Ok(Self::None),
            IfClause::Exists => Ok(Self::Exists),
            IfClause::Conditions(conditions) => conditions
                .iter()
                .map(|condition| ColumnCondition::plan(condition, table, context))
                .collect::<Result<_, _>>()
                .map(Self::Columns),
        }
    }

    pub(super) fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// The conditions on columns.
    pub(super) fn columns(&self) -> &[ColumnCondition] {
        match self {
            Self::Columns(conditions) => conditions,
            _ => &[],
        }
    }

    /// Evaluates the terms that stored values are compared with, and drops the values: only errors and calls of functions matter.
    pub(super) fn evaluate_terms(&self, execution: &Execution<'_>) -> Result<(), Error> {
        for condition in self.columns() {
            if let ComparedPart::Element(key) = &condition.part {
                key.evaluate(execution)?;
            }
            match &condition.wanted {
                Expected::One(term) => drop(term.evaluate(execution)?),
                Expected::Any(terms) => drop(terms.evaluate(execution)?),
            }
        }
        Ok(())
    }

    pub(super) fn is_on_regular(&self) -> bool {
        self.columns().iter().any(|condition| !condition.is_static())
    }

    pub(super) fn is_on_statics(&self) -> bool {
        self.columns().iter().any(ColumnCondition::is_static)
    }
}

impl ColumnCondition {
    fn plan(ast: &ast::Condition, table: &TableSchema, context: &PlanContext<'_>) -> Result<Self, Error> {
        let (ColumnPart::Column(name)
        | ColumnPart::Element { column: name, .. }
        | ColumnPart::Field { column: name, .. }) = &ast.subject;
        let column = existing(table, name)?;
        if column.ty == CqlType::Counter {
            return Err(Error::invalid("Conditions on counters are not supported"));
        }
        let (part, spec_name, ty) = part(&ast.subject, column, table, context)?;
        check_durations(ast, &ty)?;
        let compared_type = compared_type(ast.operator, column, ty.clone())?;
        let spec_name = match ast.operator {
            Operator::Contains => format!("value({name})"),
            Operator::ContainsKey => format!("key({name})"),
            _ => spec_name,
        };
        let receiver = ColumnSpec::of(table, &spec_name, compared_type);
        let wanted = match (&ast.operand, ast.operator) {
            (operand, Operator::In) => Expected::Any(Terms::plan(operand, &receiver, context)?),
            (ast::Operand::Term(term), _) => Expected::One(Term::plan(term, &receiver, context)?),
            _ => return Err(Error::invalid("a condition compares with one value")),
        };
        if column.is_primary_key() {
            return Err(Error::Invalid(format!(
                "PRIMARY KEY column '{name}' cannot have IF conditions"
            )));
        }
        Ok(Self {
            column: column.clone(),
            part,
            ty,
            operator: ast.operator,
            wanted,
        })
    }

    pub(super) fn is_static(&self) -> bool {
        self.column.kind == ColumnKind::Static
    }

    /// True if the condition holds for a row; for a static column, `row` is the static row.
    pub(super) fn holds(&self, row: Option<&Row>, execution: &Execution<'_>) -> Result<bool, Error> {
        let stored = self.stored(row, execution)?;
        match &self.wanted {
            Expected::One(term) => self.compare(self.operator, stored.as_ref(), &term.evaluate(execution)?),
            Expected::Any(terms) => {
                match terms.whole(execution)? {
                    Some(Value::Null) => return Err(Error::invalid("Invalid null list in IN condition")),
                    Some(Value::Unset) => return Err(unset_value()),
                    _ => {}
                }
                for value in terms.evaluate(execution)? {
                    // Compat: unset members are ignored.
                    if value != Value::Unset && self.compare(Operator::Equal, stored.as_ref(), &value)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    fn stored(&self, row: Option<&Row>, execution: &Execution<'_>) -> Result<Option<Bytes>, Error> {
        let view = RowView {
            key: &[],
            static_row: row,
            row,
        };
        let whole = view.value(&self.column);
        match &self.part {
            ComparedPart::Whole => Ok(whole),
            ComparedPart::Field(index) => match whole {
                Some(udt) => {
                    let field = tuple_components(&udt).nth(*index).transpose()?.flatten();
                    Ok(field.map(|field| udt.slice_ref(field)))
                }
                None => Ok(None),
            },
            ComparedPart::Element(key) => self.element(whole, key, execution),
        }
    }

    fn element(
        &self,
        whole: Option<Bytes>,
        key: &Term,
        execution: &Execution<'_>,
    ) -> Result<Option<Bytes>, Error> {
        let kind = if matches!(self.column.ty, CqlType::List { .. }) {
            "list"
        } else {
            "map"
        };
        let unset = || format!("Invalid unset value for {kind} element access");
        let key = key.evaluate_set(execution, unset)?;
        let key =
            key.ok_or_else(|| Error::Invalid(format!("Invalid null value for {kind} element access")))?;
        let Some(whole) = whole else {
            return Ok(None);
        };
        let found = match &self.column.ty {
            CqlType::Map { key: ty, .. } => {
                let entries = map_entries(&whole)?.collect::<Result<Vec<_>, _>>()?;
                let found = entries
                    .into_iter()
                    .find(|(known, _)| ty.compare(known, &key).is_eq());
                found.map(|(_, value)| value)
            }
            _ => {
                let index = <[u8; 4]>::try_from(&*key).map_or(0, i32::from_be_bytes);
                let index = usize::try_from(index)
                    .map_err(|_| Error::Invalid(format!("Invalid negative list index {index}")))?;
                collection_elements(&whole)?.nth(index).transpose()?
            }
        };
        Ok(found.map(|value| whole.slice_ref(value)))
    }

    fn compare(&self, operator: Operator, stored: Option<&Bytes>, wanted: &Value) -> Result<bool, Error> {
        let is_containment = matches!(operator, Operator::Contains | Operator::ContainsKey);
        let wanted = match wanted {
            Value::Bytes(wanted) => wanted,
            // Compat: a missing collection contains nothing.
            Value::Unset if is_containment && stored.is_none() => return Ok(false),
            Value::Unset => return Err(unset_value()),
            Value::Null => return compare_with_null(operator, stored),
        };
        if is_containment {
            return contains(&self.column.ty, operator, stored, wanted);
        }
        let is_empty = self.is_cells_of_collection() && **wanted == *encode_list([]);
        if is_empty && !matches!(operator, Operator::Equal | Operator::NotEqual) {
            return Err(Error::Invalid(format!(
                "Invalid comparison with an empty {} for operator \"{operator}\"",
                collection_name(&self.ty)
            )));
        }
        match stored {
            Some(stored) => Ok(satisfies(operator, self.ty.compare(stored, wanted))),
            // Compat: a missing collection equals an empty one. Any other missing value only satisfies `!=`.
            None => Ok(operator
                == (if is_empty {
                    Operator::Equal
                } else {
                    Operator::NotEqual
                })),
        }
    }

    fn is_cells_of_collection(&self) -> bool {
        matches!(self.part, ComparedPart::Whole) && self.column.is_complex() && self.ty.is_collection()
    }
}

fn collection_name(ty: &CqlType) -> &'static str {
    match ty {
        CqlType::List { .. } => "list",
        CqlType::Set { .. } => "set",
        _ => "map",
    }
}

fn unset_value() -> Error {
    Error::invalid("Invalid 'unset' value in condition")
}

fn compare_with_null(operator: Operator, stored: Option<&Bytes>) -> Result<bool, Error> {
    match operator {
        Operator::Equal => Ok(stored.is_none()),
        Operator::NotEqual => Ok(stored.is_some()),
        _ => Err(Error::Invalid(format!(
            "Invalid comparison with null for operator \"{operator}\""
        ))),
    }
}

fn satisfies(operator: Operator, ordering: Ordering) -> bool {
    match operator {
        Operator::Equal => ordering.is_eq(),
        Operator::NotEqual => ordering.is_ne(),
        Operator::Less => ordering.is_lt(),
        Operator::LessOrEqual => ordering.is_le(),
        Operator::Greater => ordering.is_gt(),
        Operator::GreaterOrEqual => ordering.is_ge(),
        _ => false,
    }
}

/// The compared part, its name in messages, and its type.
fn part(
    subject: &ColumnPart,
    column: &Column,
    table: &TableSchema,
    context: &PlanContext<'_>,
) -> Result<(ComparedPart, String, CqlType), Error> {
    let name = &column.name;
    match subject {
        ColumnPart::Column(_) => Ok((ComparedPart::Whole, name.clone(), column.ty.clone())),
        ColumnPart::Element { key, .. } => {
            let (what, key_type, value_type) = match &column.ty {
                CqlType::List { element, .. } => ("idx", &CqlType::Int, element),
                CqlType::Map { key, value, .. } => ("key", &**key, value),
                CqlType::Set { .. } => {
                    return Err(Error::Invalid(format!(
                        "Invalid element access syntax for set column {name}"
                    )));
                }
                _ => {
                    return Err(Error::Invalid(format!(
                        "Invalid element access syntax for non-collection column {name}"
                    )));
                }
            };
            let receiver = ColumnSpec::of(table, &format!("{what}({name})"), key_type.clone());
            let key = Term::plan(key, &receiver, context)?;
            Ok((
                ComparedPart::Element(key),
                format!("value({name})"),
                CqlType::clone(value_type),
            ))
        }
        ColumnPart::Field { field, .. } => {
            let CqlType::Udt { definition, .. } = &column.ty else {
                return Err(Error::Invalid(format!(
                    "Invalid field access syntax for non-UDT column {name}"
                )));
            };
            let (index, ty) = definition
                .field(field)
                .ok_or_else(|| Error::Invalid(format!("Unknown field {field} for column {name}")))?;
            Ok((ComparedPart::Field(index), format!("{name}.{field}"), ty.clone()))
        }
    }
}

/// The type of the right side.
fn compared_type(operator: Operator, column: &Column, ty: CqlType) -> Result<CqlType, Error> {
    match (operator, &column.ty) {
        (Operator::ContainsKey, CqlType::Map { key, .. }) => Ok(CqlType::clone(key)),
        (Operator::ContainsKey, _) => Err(Error::Invalid(format!(
            "Cannot use CONTAINS KEY on non-map column {}",
            column.name
        ))),
        (
            Operator::Contains,
            CqlType::List { element, .. }
            | CqlType::Set { element, .. }
            | CqlType::Map { value: element, .. },
        ) => Ok(CqlType::clone(element)),
        (Operator::Contains, _) => Err(Error::Invalid(format!(
            "Cannot use CONTAINS on non-collection column {}",
            column.name
        ))),
        _ => Ok(ty),
    }
}

fn check_durations(ast: &ast::Condition, ty: &CqlType) -> Result<(), Error> {
    let is_slice = matches!(
        ast.operator,
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual
    );
    if !is_slice || !ty.contains_duration() {
        return Ok(());
    }
    Err(Error::Invalid(match ty {
        CqlType::Tuple(_) => "Slice conditions are not supported on tuples containing durations".to_owned(),
        CqlType::Udt { .. } => "Slice conditions are not supported on UDTs containing durations".to_owned(),
        ty if ty.is_collection() => {
            "Slice conditions are not supported on collections containing durations".to_owned()
        }
        _ => format!(
            "Slice conditions ( {} ) are not supported on durations",
            ast.operator
        ),
    }))
}

fn contains(ty: &CqlType, operator: Operator, stored: Option<&Bytes>, wanted: &Bytes) -> Result<bool, Error> {
    let Some(stored) = stored else {
        return Ok(false);
    };
    match ty {
        CqlType::Map { key, value, .. } => {
            for entry in map_entries(stored)? {
                let (entry_key, entry_value) = entry?;
                let found = if operator == Operator::ContainsKey {
                    key.compare(entry_key, wanted)
                } else {
                    value.compare(entry_value, wanted)
                };
                if found.is_eq() {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            let elements = collection_elements(stored)?.collect::<Result<Vec<_>, _>>()?;
            Ok(elements
                .into_iter()
                .any(|known| element.compare(known, wanted).is_eq()))
        }
        _ => Ok(false),
    }
}
