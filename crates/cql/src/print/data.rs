//! Prints INSERT, UPDATE, DELETE, batches, relations and conditions.

use std::fmt::{Display, Formatter, Result};

use super::{List, Names, separated, when};
use crate::ast::{
    Assignment, AssignmentOperation, Batch, ColumnPart, Condition, Delete, IfClause, Insert, InsertSource,
    Modification, Operand, Operator, Relation, Subject, Term, Update, Using,
};
use crate::quote::Name;

impl Display for Insert {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(out, "INSERT INTO {} {}", self.table, self.source)?;
        out.write_str(when(self.if_not_exists, " IF NOT EXISTS"))?;
        self.using.fmt(out)
    }
}

impl Display for InsertSource {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Values { columns, values } => write!(out, "({}) VALUES ({})", Names(columns), List(values)),
            Self::Json { value, default_unset } => {
                write!(out, "JSON {value}{}", when(*default_unset, " DEFAULT UNSET"))
            }
        }
    }
}

impl Display for Using {
    /// Prints the options with a space in front, or nothing if there are none.
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let mut parts: Vec<(&str, &Term)> = Vec::new();
        parts.extend(self.timestamp.as_ref().map(|term| ("TIMESTAMP", term)));
        parts.extend(self.ttl.as_ref().map(|term| ("TTL", term)));
        parts.sort_by_key(|(_, term)| term.as_bind_marker().map(|marker| marker.index));
        if parts.is_empty() {
            return Ok(());
        }
        out.write_str(" USING ")?;
        separated(out, &parts, " AND ", |out, (name, term)| {
            write!(out, "{name} {term}")
        })
    }
}

impl Display for Update {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(
            out,
            "UPDATE {}{} SET {}",
            self.table,
            self.using,
            List(&self.assignments)
        )?;
        where_clause(out, &self.relations)?;
        self.condition.fmt(out)
    }
}

impl Display for Assignment {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let column = Name(&self.column);
        match &self.operation {
            AssignmentOperation::Set(value) => write!(out, "{column} = {value}"),
            AssignmentOperation::Add(value) => write!(out, "{column} = {column} + {value}"),
            AssignmentOperation::Subtract(value) => write!(out, "{column} = {column} - {value}"),
            AssignmentOperation::Prepend(value) => write!(out, "{column} = {value} + {column}"),
            AssignmentOperation::SetElement { key, value } => write!(out, "{column}[{key}] = {value}"),
            AssignmentOperation::SetField { field, value } => {
                write!(out, "{column}.{} = {value}", Name(field))
            }
        }
    }
}

impl Display for Delete {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        out.write_str("DELETE ")?;
        if !self.targets.is_empty() {
            write!(out, "{} ", List(&self.targets))?;
        }
        write!(out, "FROM {}{}", self.table, self.using)?;
        where_clause(out, &self.relations)?;
        self.condition.fmt(out)
    }
}

impl Display for ColumnPart {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Column(column) => Name(column).fmt(out),
            Self::Element { column, key } => write!(out, "{}[{key}]", Name(column)),
            Self::Field { column, field } => write!(out, "{}.{}", Name(column), Name(field)),
        }
    }
}

impl Display for Batch {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(out, "BEGIN {}BATCH{} ", self.kind.prefix(), self.using)?;
        self.modifications
            .iter()
            .try_for_each(|modification| write!(out, "{modification}; "))?;
        out.write_str("APPLY BATCH")
    }
}

impl Display for Modification {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Insert(insert) => insert.fmt(out),
            Self::Update(update) => update.fmt(out),
            Self::Delete(delete) => delete.fmt(out),
        }
    }
}

impl Display for IfClause {
    /// Prints the clause with a space in front, or nothing if there is no condition.
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::None => Ok(()),
            Self::Exists => out.write_str(" IF EXISTS"),
            Self::Conditions(conditions) => {
                out.write_str(" IF ")?;
                separated(out, conditions, " AND ", |out, condition| condition.fmt(out))
            }
        }
    }
}

impl Display for Condition {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(out, "{} {}{}", self.subject, self.operator, self.operand)
    }
}

/// ` WHERE ..`; empty if there are no relations.
pub(super) fn where_clause(out: &mut Formatter<'_>, relations: &[Relation]) -> Result {
    if relations.is_empty() {
        return Ok(());
    }
    out.write_str(" WHERE ")?;
    separated(out, relations, " AND ", |out, relation| relation.fmt(out))
}

impl Display for Relation {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        if let (Subject::Index(index), Operand::Term(term)) = (&self.subject, &self.operand) {
            return write!(out, "expr({}, {term})", Name(index));
        }
        if let Subject::AnyOf(_) = &self.subject {
            return self.subject.fmt(out);
        }
        write!(out, "{} {}{}", self.subject, self.operator, self.operand)
    }
}

impl Display for Subject {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Column(column) => Name(column).fmt(out),
            Self::Columns(columns) => write!(out, "({})", Names(columns)),
            Self::Token(columns) => write!(out, "token({})", Names(columns)),
            Self::Element { column, key } => write!(out, "{}[{key}]", Name(column)),
            Self::Index(index) => write!(out, "expr({})", Name(index)),
            Self::AnyOf(branches) => {
                out.write_str("(")?;
                separated(out, branches, " OR ", |out, branch| {
                    separated(out, branch, " AND ", |out, relation| relation.fmt(out))
                })?;
                out.write_str(")")
            }
        }
    }
}

impl Display for Operator {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        out.write_str(match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "IN",
            Self::Contains => "CONTAINS",
            Self::ContainsKey => "CONTAINS KEY",
            Self::Like => "LIKE",
            Self::AnalyzerMatches => ":",
            Self::IsNotNull => "IS NOT NULL",
            Self::IndexExpression => "expr",
            Self::Or => "OR",
        })
    }
}

impl Display for Operand {
    /// Prints the operand with a space in front, or nothing if there is none.
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Term(term) => write!(out, " {term}"),
            Self::List(members) => write!(out, " ({})", List(members)),
            Self::None => Ok(()),
        }
    }
}
