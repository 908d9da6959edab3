//! The partitions that WHERE selects: keys by `=` and `IN`, or a range by token.

use bytes::Bytes;
use ilion_rows::{DecoratedKey, KeyRange};
use ilion_schema::{Column, TableSchema};
use ilion_types::{KEY_LEN_MAX, Partitioner, encode_composite};
use smallvec::SmallVec;

use super::names::names;
use super::restriction::{Predicate, Restriction};
use super::token::{TokenRestriction, keep_within};
use crate::Error;
use crate::context::Execution;
use crate::guardrails;

/// The restrictions on the partition key, except those that are filtered.
#[derive(Debug)]
pub(super) struct PartitionRestrictions {
    /// A restriction for each partition key column, in order; each is `=` or `IN`.
    pub keys: Option<Vec<Restriction>>,
    pub token: Option<TokenRestriction>,
    /// How the table's keys become tokens.
    pub partitioner: Partitioner,
}

impl PartitionRestrictions {
    /// The partitions: each once, in the order of their key columns.
    pub fn partition_keys(&self, execution: &Execution<'_>) -> Result<Vec<DecoratedKey>, Error> {
        let restrictions = self.keys.as_deref().unwrap_or_default();
        if restrictions.iter().all(Restriction::is_equal) {
            return Ok(self.only_key(execution)?.into_iter().collect());
        }
        let mut keys = Vec::new();
        for components in self.combinations(restrictions, execution)? {
            keys.push(decorate(self.partitioner, compose(&components)?)?);
        }
        if let Some(token) = &self.token {
            keep_within(&mut keys, token.range(self.partitioner, execution)?.as_ref());
        }
        Ok(keys)
    }

    /// Refuses null and unset values of the key.
    pub fn check_values(&self, execution: &Execution<'_>) -> Result<(), Error> {
        let restrictions = self.keys.as_deref().unwrap_or_default();
        self.combinations(restrictions, execution).map(drop)
    }

    /// The partition, if `=` gives every column.
    pub fn only_key(&self, execution: &Execution<'_>) -> Result<Option<DecoratedKey>, Error> {
        let mut components: SmallVec<[Bytes; 2]> = SmallVec::new();
        for restriction in self.keys.as_deref().unwrap_or_default() {
            let Predicate::Equal(expression) = &restriction.predicate else {
                return Err(Error::ServerError("the partition key is not given by =".into()));
            };
            components.push(expression.evaluate_one(&restriction.columns, execution)?);
        }
        let key = decorate(self.partitioner, compose(&components)?)?;
        if let Some(token) = &self.token {
            let range = token.range(self.partitioner, execution)?;
            return Ok(Some(key).filter(|key| range.is_some_and(|range| range.contains(key))));
        }
        Ok(Some(key))
    }

    /// Every combination of one value per column, in the order of the types.
    fn combinations(
        &self,
        restrictions: &[Restriction],
        execution: &Execution<'_>,
    ) -> Result<Vec<Vec<Bytes>>, Error> {
        let mut combinations = vec![Vec::with_capacity(restrictions.len())];
        for restriction in restrictions {
            let values = values_of(restriction, execution)?;
            let count = combinations.len().saturating_mul(values.len());
            check_product("partition key", count, execution.query_options.in_partitions_max)?;
            guardrails::check_product("partition key", count, execution)?;
            combinations = combinations
                .iter()
                .flat_map(|head| values.iter().map(|value| continued(head, value)))
                .collect();
        }
        Ok(combinations)
    }

    /// The range of partitions by token; `None` if it is empty.
    pub fn key_range(&self, execution: &Execution<'_>) -> Result<Option<KeyRange>, Error> {
        match &self.token {
            None => Ok(Some(KeyRange::all())),
            Some(token) => token.range(self.partitioner, execution),
        }
    }
}

fn continued(head: &[Bytes], value: &Bytes) -> Vec<Bytes> {
    head.iter().chain([value]).cloned().collect()
}

/// The values of a column restricted by `=` or `IN`: each once, in the order of its type.
fn values_of(restriction: &Restriction, execution: &Execution<'_>) -> Result<Vec<Bytes>, Error> {
    let columns = &restriction.columns;
    match &restriction.predicate {
        Predicate::Equal(expression) => Ok(vec![expression.evaluate_one(columns, execution)?]),
        Predicate::In(expressions) => {
            let ty = &restriction.first().ty;
            let mut values: Vec<Bytes> = expressions
                .evaluate(columns, execution)?
                .into_iter()
                .filter_map(|values| values.into_iter().flatten().next())
                .collect();
            values.sort_by(|a, b| ty.compare(a, b));
            values.dedup_by(|a, b| ty.compare(a, b).is_eq());
            Ok(values)
        }
        _ => Err(Error::ServerError(
            "a partition key column is restricted by a range".into(),
        )),
    }
}

/// Refuses INs with too many combinations.
pub(super) fn check_product(what: &str, count: usize, count_max: usize) -> Result<(), Error> {
    if count <= count_max {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "Guardrail in_select_cartesian_product violated: Aborting query because the cartesian product of the IN \
         restrictions on {what} produces {count} values, this exceeds fail threshold of {count_max}."
    )))
}

/// The serialized key of one or more columns.
pub(crate) fn compose(components: &[Bytes]) -> Result<Bytes, Error> {
    if let [only] = components {
        return Ok(only.clone());
    }
    let mut key = Vec::new();
    encode_composite(components.iter().map(Bytes::as_ref), &mut key)?;
    Ok(Bytes::from(key))
}

/// A key with its token. Refuses a key that no partition can have.
pub(crate) fn decorate(partitioner: Partitioner, key: Bytes) -> Result<DecoratedKey, Error> {
    if key.is_empty() {
        return Err(Error::invalid("Key may not be empty"));
    }
    if key.len() > KEY_LEN_MAX {
        return Err(Error::invalid(format!(
            "Key length of {} is longer than maximum of {KEY_LEN_MAX}",
            key.len()
        )));
    }
    Ok(DecoratedKey::new(partitioner, key))
}

/// The names of partition key columns without a restriction; `None` if all are restricted.
pub(super) fn unrestricted(table: &TableSchema, restrictions: &[Restriction]) -> Option<String> {
    let missing: Vec<&Column> = table
        .partition_key()
        .filter(|column| restrictions.iter().all(|known| known.first().id != column.id))
        .collect();
    (!missing.is_empty()).then(|| names(missing))
}
