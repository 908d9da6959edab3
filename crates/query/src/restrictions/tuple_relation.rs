//! Relations on clustering columns together: `(a, b) > (1, 2)`. Compat: `MultiColumnRelation` of Cassandra 5.0.

use ilion_cql::ast::{Operator, Term as TermAst};
use ilion_schema::{Column, ColumnKind};
use ilion_types::CqlType;

use super::expression::{Expression, Expressions};
use super::relation::{RelationResolver, check_no_duration, existing, slice};
use super::restriction::{Predicate, Restriction};
use crate::term::{Term, Terms};
use crate::{ColumnSpec, Error};

impl RelationResolver<'_> {
    /// A relation on clustering columns together.
    pub(super) fn multi(&self, identifiers: &[String]) -> Result<Restriction, Error> {
        if self.relation.operator == Operator::NotEqual {
            return self.refuse(format!("Unsupported \"!=\" relation: {}", self.relation));
        }
        let columns = self.multi_columns(identifiers)?;
        let types = columns.iter().map(|column| column.ty.clone()).collect();
        let ty = CqlType::Tuple(types);
        let operator = self.relation.operator;
        let predicate = match operator {
            Operator::Equal => Predicate::Equal(self.tuple_expression(&columns, ty)?),
            Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
                columns.iter().try_for_each(check_no_duration)?;
                slice(operator, self.tuple_expression(&columns, ty)?)
            }
            Operator::In if self.only_member().is_some() => {
                Predicate::Equal(self.tuple_expression(&columns, ty)?)
            }
            Operator::In => Predicate::In(self.tuple_expressions(&columns, ty)?),
            _ => {
                return self.refuse(format!("{operator} cannot be used for multi-column relations"));
            }
        };
        Ok(Restriction {
            columns,
            is_multi: true,
            predicate,
        })
    }

    fn multi_columns(&self, identifiers: &[String]) -> Result<Vec<Column>, Error> {
        let mut columns: Vec<Column> = Vec::with_capacity(identifiers.len());
        for name in identifiers {
            let column = existing(self.table, name)?;
            if column.kind != ColumnKind::Clustering {
                return self.refuse(format!(
                    "Multi-column relations can only be applied to clustering columns but was applied to: {name}"
                ));
            }
            if columns.iter().any(|known| known.id == column.id) {
                return self.refuse(format!(
                    "Column \"{name}\" appeared twice in a relation: {}",
                    self.relation
                ));
            }
            if columns
                .last()
                .is_some_and(|previous| column.position != previous.position + 1)
            {
                return self.refuse(format!(
                    "Clustering columns must appear in the PRIMARY KEY order in multi-column relations: {}",
                    self.relation
                ));
            }
            columns.push(column.clone());
        }
        Ok(columns)
    }

    fn tuple_expression(&self, columns: &[Column], ty: CqlType) -> Result<Expression, Error> {
        let receiver = self.spec(&format!("({})", joined(columns)), ty);
        Ok(Expression::Tuple {
            term: self.tuple(self.one_operand()?, columns, &receiver)?,
            arity: columns.len(),
        })
    }

    /// Plans a tuple with a value for each of the columns, or another term for `receiver`.
    fn tuple(&self, ast: &TermAst, columns: &[Column], receiver: &ColumnSpec) -> Result<Term, Error> {
        let TermAst::Tuple(members) = ast else {
            return Term::plan(ast, receiver, self.context);
        };
        if members.len() != columns.len() {
            return Err(Error::invalid(format!(
                "Expected {} elements in value tuple, but got {}: {ast}",
                columns.len(),
                members.len()
            )));
        }
        // Compat: each member is planned like a value of its column, and its marker has the name of the column.
        let members = members.iter().zip(columns).map(|(member, column)| {
            let receiver = self.spec(&column.name, column.ty.clone());
            Term::plan(member, &receiver, self.context)
        });
        Term::of_parts(members.collect::<Result<_, _>>()?, receiver)
    }

    fn tuple_expressions(&self, columns: &[Column], ty: CqlType) -> Result<Expressions, Error> {
        // The marker of a whole list is named "in(a,b)".
        let receiver = self.spec(&joined(columns), ty);
        let plan = |member: &TermAst| self.tuple(member, columns, &receiver);
        Ok(Expressions {
            terms: Terms::plan_each(&self.relation.operand, &receiver, self.context, plan)?,
            are_tuples: true,
        })
    }
}

fn joined(columns: &[Column]) -> String {
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    names.join(",")
}
