//! The mutations of a statement, grouped by partition.
//!
//! Groups are found by sorting: batches are small, and most of the keys differ in their tokens.

use ilion_rows::{DecoratedKey, Mutation};
use ilion_schema::TableId;

use crate::merge::merge_updates;

/// One mutation for each partition, in the order of their first mutations.
pub(crate) fn merge_partitions(mutations: Vec<Mutation>) -> Vec<Mutation> {
    if mutations.len() < 2 {
        return mutations;
    }
    let partition = |index: &usize| -> (&DecoratedKey, TableId) {
        let mutation = &mutations[*index];
        (&mutation.key, mutation.table.id)
    };
    let mut order: Vec<usize> = (0..mutations.len()).collect();
    order.sort_by_key(partition);
    let is_same = |left: &usize, right: &usize| partition(left) == partition(right);
    if order.is_sorted_by(|left, right| !is_same(left, right)) {
        return mutations;
    }
    // The sort is stable, so the first of a group is its first mutation.
    let mut groups: Vec<Vec<usize>> = order.chunk_by(is_same).map(<[usize]>::to_vec).collect();
    groups.sort_by_key(|group| group[0]);
    let mut left: Vec<Option<Mutation>> = mutations.into_iter().map(Some).collect();
    groups
        .into_iter()
        .filter_map(|group| {
            let mut members = group.into_iter().filter_map(|index| left[index].take());
            let mut first = members.next()?;
            let mut rest = members.map(|mutation| mutation.update).peekable();
            if rest.peek().is_some() {
                first.update = merge_updates(first.update, rest, &first.table);
            }
            Some(first)
        })
        .collect()
}

/// Compat: Cassandra counts tables of one keyspace with the same key as one mutation.
pub(crate) fn partition_count(mutations: &[Mutation]) -> usize {
    if mutations.len() < 2 {
        return mutations.len();
    }
    let keyed = mutations.iter();
    distinct(keyed.map(|mutation| (&mutation.key, mutation.table.keyspace.as_str())))
}

/// The number of different keys, in whatever tables.
pub(crate) fn key_count(mutations: &[Mutation]) -> usize {
    distinct(mutations.iter().map(|mutation| &mutation.key))
}

fn distinct<T: Ord>(values: impl Iterator<Item = T>) -> usize {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values.dedup();
    values.len()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use ilion_rows::{DeletionTime, PartitionUpdate};
    use ilion_schema::{TableBuilder, TableSchema};
    use ilion_types::{CqlType, Partitioner};

    use super::*;

    fn table(number: u128) -> Arc<TableSchema> {
        TableBuilder::new("ks", format!("t{number}"), TableId(uuid::Uuid::from_u128(number)))
            .partition_key("k", CqlType::Blob)
            .build()
    }

    /// A deletion of a partition.
    fn deletion(table: &Arc<TableSchema>, key: u8, marked_at_micros: i64) -> Mutation {
        Mutation {
            table: table.clone(),
            key: DecoratedKey::new(Partitioner::Murmur3, Bytes::from(vec![key])),
            update: PartitionUpdate {
                deletion: Some(DeletionTime {
                    marked_at_micros,
                    local_secs: 0,
                }),
                ..PartitionUpdate::default()
            },
        }
    }

    #[test]
    fn mutations_of_a_partition_are_merged_where_its_first_one_was() {
        let tables = [1, 2].map(table);
        let merge = |list: &[(usize, u8, i64)]| -> Vec<(usize, u8, i64)> {
            let mutations = list
                .iter()
                .map(|&(table, key, at)| deletion(&tables[table], key, at));
            let described = |mutation: Mutation| {
                let table = usize::from(mutation.table.id == tables[1].id);
                let at = mutation.update.deletion.unwrap().marked_at_micros;
                (table, mutation.key.key[0], at)
            };
            let merged = merge_partitions(mutations.collect());
            merged.into_iter().map(described).collect()
        };
        // Table, key, time.
        let given = [
            (0, 7, 1),
            (0, 3, 2),
            (1, 7, 3),
            (0, 3, 4),
            (0, 9, 5),
            (0, 7, 6),
            (0, 3, 3),
        ];
        let merged = [(0, 7, 6), (0, 3, 4), (1, 7, 3), (0, 9, 5)];
        assert_eq!(merge(&given), merged);
        assert_eq!(merge(&merged), merged);
        assert_eq!(merge(&[]), []);
    }

    #[test]
    fn a_key_in_two_tables_of_a_keyspace_counts_once() {
        let tables = [1, 2].map(table);
        let mutations = [
            deletion(&tables[0], 1, 1),
            deletion(&tables[1], 1, 1),
            deletion(&tables[1], 2, 1),
        ];
        assert_eq!(partition_count(&mutations), 2);
        assert_eq!(key_count(&mutations), 2);
        assert_eq!(partition_count(&[]), 0);
    }
}
