//! The change of one column: planning, with Cassandra's refusals.
//!
//! Compat: `Operation` of Cassandra 5.0.

use ilion_cql::ast::{AssignmentOperation, ColumnPart, Term as AstTerm};
use ilion_schema::{Column, ColumnKind, TableSchema};
use ilion_types::{CqlType, quote_name};

use crate::context::PlanContext;
use crate::term::Term;
use crate::{ColumnSpec, Error};

/// The change of one column.
#[derive(Debug)]
pub(super) struct Operation {
    pub column: Column,
    pub action: Action,
}

#[derive(Debug)]
pub(super) enum Action {
    /// `c = value`, also for INSERT.
    Set(Term),
    /// `c = c + value` of a list.
    Append(Term),
    /// `c = value + c` of a list.
    Prepend(Term),
    /// `c = c + value` of a set or map.
    Add(Term),
    /// `c = c - value` of a list. Needs the stored list.
    RemoveValues(Term),
    /// `c = c - value` of a set or map; the value is a set of elements or keys.
    RemoveKeys(Term),
    /// `c[index] = value` of a list. Needs the stored list.
    SetIndex(Term, Term),
    /// `c[key] = value` of a map.
    SetKey(Term, Term),
    /// `c.field = value`; for `DELETE c.field` the value is null.
    SetField(u16, Term),
    /// `DELETE c`
    Delete,
    /// `DELETE c[index]` of a list. Needs the stored list.
    DeleteIndex(Term),
    /// `DELETE c[key]` of a map or set.
    DeleteKey(Term),
    /// `c = c + value` of a counter.
    Increment(Term),
    /// `c = c - value` of a counter.
    Decrement(Term),
}

/// All operations of a statement, each list in the order of column ids.
#[derive(Debug, Default)]
pub(super) struct Operations {
    pub regular: Vec<Operation>,
    pub statics: Vec<Operation>,
}

impl Operations {
    /// Sorts operations by column; those on one column stay in the order of the text.
    pub(super) fn new(operations: Vec<Operation>) -> Self {
        let (mut statics, mut regular): (Vec<_>, Vec<_>) = operations
            .into_iter()
            .partition(|operation| operation.column.kind == ColumnKind::Static);
        for list in [&mut statics, &mut regular] {
            list.sort_by_key(|operation| operation.column.id);
        }
        Self { regular, statics }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.regular.is_empty() && self.statics.is_empty()
    }

    /// True if an operation needs a stored list.
    pub(super) fn reads(&self) -> bool {
        self.reading().next().is_some()
    }

    /// The operations that need stored data.
    pub(super) fn reading(&self) -> impl Iterator<Item = &Operation> {
        self.regular
            .iter()
            .chain(&self.statics)
            .filter(|operation| operation.action.reads())
    }
}

impl Action {
    pub(super) fn reads(&self) -> bool {
        matches!(
            self,
            Self::RemoveValues(_) | Self::SetIndex(..) | Self::DeleteIndex(_)
        )
    }
}

/// Plans operations on the columns of one table.
pub(super) struct OperationPlanner<'a> {
    pub table: &'a TableSchema,
    pub context: &'a PlanContext<'a>,
}

impl OperationPlanner<'_> {
    /// `column = value`
    pub(super) fn set(&self, column: &Column, value: &AstTerm) -> Result<Operation, Error> {
        let term = Term::plan(value, &self.receiver(column), self.context)?;
        if column.ty == CqlType::Counter {
            return Err(Error::Invalid(format!(
                "Cannot set the value of counter column {} (counters can only be incremented/decremented, not set)",
                column.name
            )));
        }
        Ok(operation(column, Action::Set(term)))
    }

    /// An assignment of SET.
    pub(super) fn assign(&self, column: &Column, what: &AssignmentOperation) -> Result<Operation, Error> {
        let name = quote_name(&column.name);
        match what {
            AssignmentOperation::Set(value) => self.set(column, value),
            AssignmentOperation::Add(value) => self.add(column, value, &format!("{name} = {name} + {value}")),
            AssignmentOperation::Subtract(value) => {
                self.subtract(column, value, &format!("{name} = {name} - {value}"))
            }
            AssignmentOperation::Prepend(value) => {
                self.prepend(column, value, &format!("{name} = {value} + {name}"))
            }
            AssignmentOperation::SetElement { key, value } => {
                self.set_element(column, [key, value], &format!("{name}[{key}] = {value}"))
            }
            AssignmentOperation::SetField { field, value } => {
                let shown = format!("{name}.{} = {value}", quote_name(field));
                self.set_field(column, field, value, &shown)
            }
        }
    }

    fn add(&self, column: &Column, value: &AstTerm, shown: &str) -> Result<Operation, Error> {
        let receiver = self.receiver(column);
        if column.ty == CqlType::Counter {
            let term = Term::plan(value, &receiver, self.context)?;
            return Ok(operation(column, Action::Increment(term)));
        }
        self.check_collection(column, shown)?;
        let term = Term::plan(value, &receiver, self.context);
        Ok(operation(
            column,
            match &column.ty {
                CqlType::List { .. } => Action::Append(term?),
                CqlType::Map { .. } => Action::Add(term.map_err(|_| {
                    Error::Invalid(format!(
                        "Value for a map addition has to be a map, but was: '{value}'"
                    ))
                })?),
                _ => Action::Add(term?),
            },
        ))
    }

    fn subtract(&self, column: &Column, value: &AstTerm, shown: &str) -> Result<Operation, Error> {
        let receiver = self.receiver(column);
        let plan = |receiver: &ColumnSpec| Term::plan(value, receiver, self.context);
        if column.ty == CqlType::Counter {
            return Ok(operation(column, Action::Decrement(plan(&receiver)?)));
        }
        self.check_collection(column, shown)?;
        let action = match &column.ty {
            CqlType::List { .. } => Action::RemoveValues(plan(&receiver)?),
            CqlType::Map { key, .. } => {
                let keys = ColumnSpec {
                    ty: CqlType::Set {
                        element: key.clone(),
                        frozen: false,
                    },
                    ..receiver
                };
                Action::RemoveKeys(plan(&keys).map_err(|_| {
                    Error::Invalid(format!(
                        "Value for a map substraction has to be a set, but was: '{value}'"
                    ))
                })?)
            }
            _ => Action::RemoveKeys(plan(&receiver)?),
        };
        Ok(operation(column, action))
    }

    /// Refuses columns other than unfrozen collections.
    fn check_collection(&self, column: &Column, shown: &str) -> Result<(), Error> {
        let refuse = |what: &str| Err(invalid(column, shown, what));
        match &column.ty {
            CqlType::Tuple(_) => refuse("tuple"),
            ty if !ty.is_collection() => refuse("non counter"),
            ty if !ty.is_multi_cell() => refuse("frozen collection"),
            _ => Ok(()),
        }
    }

    fn prepend(&self, column: &Column, value: &AstTerm, shown: &str) -> Result<Operation, Error> {
        let term = Term::plan(value, &self.receiver(column), self.context)?;
        let refuse = |what: &str| Err(invalid(column, shown, what));
        match &column.ty {
            CqlType::List { frozen: false, .. } => Ok(operation(column, Action::Prepend(term))),
            CqlType::List { .. } => refuse("frozen list"),
            _ => refuse("non list"),
        }
    }

    fn set_element(
        &self,
        column: &Column,
        [key, value]: [&AstTerm; 2],
        shown: &str,
    ) -> Result<Operation, Error> {
        let refuse = |what: &str| Err(invalid(column, shown, what));
        match &column.ty {
            ty if !ty.is_collection() => refuse("non collection"),
            ty if !ty.is_multi_cell() => refuse("frozen collection"),
            CqlType::List { element, .. } => {
                let index = self.part(column, "idx", &CqlType::Int, key)?;
                let value = self.part(column, "value", element, value)?;
                Ok(operation(column, Action::SetIndex(index, value)))
            }
            CqlType::Map {
                key: key_type,
                value: value_type,
                ..
            } => {
                let key = self.part(column, "key", key_type, key)?;
                let value = self.part(column, "value", value_type, value)?;
                Ok(operation(column, Action::SetKey(key, value)))
            }
            _ => refuse("set"),
        }
    }

    fn set_field(
        &self,
        column: &Column,
        field: &str,
        value: &AstTerm,
        shown: &str,
    ) -> Result<Operation, Error> {
        let refuse = |what: &str| Err(invalid(column, shown, what));
        if !matches!(column.ty, CqlType::Udt { .. }) {
            return refuse("non-UDT");
        }
        if !column.is_complex() {
            return refuse("frozen UDT");
        }
        let (index, ty) = self.field(column, field)?;
        let receiver = ColumnSpec::of(self.table, &format!("{}.{field}", column.name), ty);
        let term = Term::plan(value, &receiver, self.context)?;
        Ok(operation(column, Action::SetField(index, term)))
    }

    /// One target of DELETE.
    pub(super) fn delete(&self, part: &ColumnPart) -> Result<Operation, Error> {
        let (ColumnPart::Column(name)
        | ColumnPart::Element { column: name, .. }
        | ColumnPart::Field { column: name, .. }) = part;
        let column = crate::restrictions::relation::existing(self.table, name)?;
        if column.is_primary_key() {
            return Err(Error::Invalid(format!(
                "Invalid identifier {name} for deletion (should not be a PRIMARY KEY part)"
            )));
        }
        match part {
            ColumnPart::Column(_) => Ok(operation(column, Action::Delete)),
            ColumnPart::Element { key, .. } => self.delete_element(column, key),
            ColumnPart::Field { field, .. } => {
                if !matches!(column.ty, CqlType::Udt { .. }) {
                    return Err(Error::Invalid(format!(
                        "Invalid field deletion operation for non-UDT column {name}"
                    )));
                }
                if !column.is_complex() {
                    return Err(Error::Invalid(format!(
                        "Frozen UDT column {name} does not support field deletions"
                    )));
                }
                let (index, _) = self.field(column, field)?;
                Ok(operation(column, Action::SetField(index, Term::Null)))
            }
        }
    }

    fn delete_element(&self, column: &Column, key: &AstTerm) -> Result<Operation, Error> {
        let refuse = |what: &str| {
            Err(Error::Invalid(format!(
                "Invalid deletion operation for {what} collection column {}",
                column.name
            )))
        };
        let action = match &column.ty {
            ty if !ty.is_collection() => return refuse("non"),
            ty if !ty.is_multi_cell() => return refuse("frozen"),
            CqlType::List { .. } => Action::DeleteIndex(self.part(column, "idx", &CqlType::Int, key)?),
            CqlType::Map { key: key_type, .. } => Action::DeleteKey(self.part(column, "key", key_type, key)?),
            CqlType::Set { element, .. } => Action::DeleteKey(self.part(column, "value", element, key)?),
            _ => return refuse("non"),
        };
        Ok(operation(column, action))
    }

    fn field(&self, column: &Column, field: &str) -> Result<(u16, CqlType), Error> {
        let CqlType::Udt { definition, .. } = &column.ty else {
            return Err(Error::Invalid(format!("{} is not of a user type", column.name)));
        };
        let unknown = || {
            Error::Invalid(format!(
                "UDT column {} does not have a field named {field}",
                column.name
            ))
        };
        let (index, ty) = definition.field(field).ok_or_else(unknown)?;
        Ok((u16::try_from(index).map_err(|_| unknown())?, ty.clone()))
    }

    /// Plans a key, index or value of a collection. Its name in messages is `what(column)`.
    fn part(&self, column: &Column, what: &str, ty: &CqlType, term: &AstTerm) -> Result<Term, Error> {
        let receiver = ColumnSpec::of(self.table, &format!("{what}({})", column.name), ty.clone());
        Term::plan(term, &receiver, self.context)
    }

    pub(super) fn receiver(&self, column: &Column) -> ColumnSpec {
        ColumnSpec::of(self.table, &column.name, column.ty.clone())
    }
}

fn invalid(column: &Column, shown: &str, what: &str) -> Error {
    let name = &column.name;
    Error::Invalid(format!("Invalid operation ({shown}) for {what} column {name}"))
}

pub(super) fn operation(column: &Column, action: Action) -> Operation {
    Operation {
        column: column.clone(),
        action,
    }
}
