//! Relations on `token(..)`. Compat: `TokenRelation` of Cassandra 5.0.

use ilion_cql::ast::Operator;
use ilion_schema::{Column, ColumnKind, TableSchema};

use super::names::names;
use super::relation::{RelationResolver, existing};
use super::token::{TokenEdge, TokenRestriction};
use crate::Error;

impl RelationResolver<'_> {
    /// A relation on the token.
    pub(super) fn token(&self, identifiers: &[String]) -> Result<TokenRestriction, Error> {
        let columns = identifiers
            .iter()
            .map(|name| existing(self.table, name))
            .collect::<Result<Vec<_>, _>>()?;
        check_token_columns(self.table, &columns)?;
        let operator = self.relation.operator;
        let ty = self
            .table
            .partitioner(self.context.store.partitioner())
            .token_type();
        let edge = |is_inclusive| {
            Ok::<_, Error>(Some(TokenEdge {
                term: self.one("partition key token", &ty)?,
                is_inclusive,
            }))
        };
        let mut restriction = TokenRestriction::default();
        match operator {
            Operator::Equal => restriction.equal = edge(true)?,
            Operator::Greater | Operator::GreaterOrEqual => {
                restriction.start = edge(operator == Operator::GreaterOrEqual)?;
            }
            Operator::Less | Operator::LessOrEqual => {
                restriction.end = edge(operator == Operator::LessOrEqual)?;
            }
            Operator::NotEqual => {
                return self.refuse(format!("Unsupported \"!=\" relation: {}", self.relation));
            }
            _ => return self.refuse(format!("{operator} cannot be used with the token function")),
        }
        Ok(restriction)
    }
}

fn check_token_columns(table: &TableSchema, columns: &[&Column]) -> Result<(), Error> {
    let wanted = table.partition_key();
    if columns
        .iter()
        .map(|column| column.id)
        .eq(wanted.clone().map(|column| column.id))
    {
        return Ok(());
    }
    if !wanted
        .clone()
        .all(|key| columns.iter().any(|column| column.id == key.id))
    {
        return Err(Error::invalid(
            "The token() function must be applied to all partition key components or none of them",
        ));
    }
    if columns
        .iter()
        .any(|column| column.kind != ColumnKind::PartitionKey)
    {
        return Err(Error::invalid(
            "The token() function must contains only partition key components",
        ));
    }
    if columns.len() > wanted.len() {
        return Err(Error::invalid(
            "The token() function contains duplicate partition key components",
        ));
    }
    Err(Error::invalid(format!(
        "The token function arguments must be in the partition key order: {}",
        names(wanted)
    )))
}
