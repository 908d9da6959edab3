//! The mutations of a statement, grouped by partition.

use std::collections::{HashMap, HashSet};

use ilion_rows::{DecoratedKey, Mutation};
use ilion_schema::TableId;

use crate::merge::merge_updates;

/// One mutation for each partition, in the order of their first mutations.
pub(crate) fn merge_partitions(mutations: Vec<Mutation>) -> Vec<Mutation> {
    if mutations.len() < 2 {
        return mutations;
    }
    let mut places: HashMap<(TableId, DecoratedKey), usize> = HashMap::with_capacity(mutations.len());
    let mut merged: Vec<(Mutation, Vec<Mutation>)> = Vec::with_capacity(mutations.len());
    for mutation in mutations {
        let key = (mutation.table.id, mutation.key.clone());
        match places.get(&key) {
            Some(place) => merged[*place].1.push(mutation),
            None => {
                places.insert(key, merged.len());
                merged.push((mutation, Vec::new()));
            }
        }
    }
    merged
        .into_iter()
        .map(|(mut first, rest)| {
            if !rest.is_empty() {
                let updates = rest.into_iter().map(|mutation| mutation.update);
                first.update = merge_updates(first.update, updates, &first.table);
            }
            first
        })
        .collect()
}

/// Compat: Cassandra counts tables of one keyspace with the same key as one mutation.
pub(crate) fn partition_count(mutations: &[Mutation]) -> usize {
    if mutations.len() < 2 {
        return mutations.len();
    }
    let partitions: HashSet<(&str, &DecoratedKey)> = mutations
        .iter()
        .map(|mutation| (mutation.table.keyspace.as_str(), &mutation.key))
        .collect();
    partitions.len()
}
