//! DESCRIBE CLUSTER.

use std::sync::Arc;

use ilion_schema::is_system_keyspace;
use ilion_types::{CqlType, encode_list, encode_map};

use super::rows::{DescribedRow, column, text_column};
use crate::{ClusterFacts, ColumnSpec, Store};

/// Name, partitioner and snitch; if the session's keyspace is a user's, also the owners of each token range.
pub(super) fn describe(keyspace: Option<&str>, store: &dyn Store) -> (Arc<[ColumnSpec]>, Vec<DescribedRow>) {
    let keyspace = keyspace.filter(|keyspace| !is_system_keyspace(keyspace));
    let facts = store.cluster(keyspace);
    let mut columns = ["cluster", "partitioner", "snitch"].map(text_column).to_vec();
    let mut cells = vec![
        facts.name.clone().into_bytes(),
        without_package(store.partitioner().class_name()).into(),
        without_package(&facts.snitch).into(),
    ];
    if keyspace.is_some() {
        columns.push(column("range_ownership", ownership_type()));
        cells.push(ownership(facts));
    }
    (columns.into(), vec![DescribedRow::new(cells)])
}

fn without_package(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}

fn ownership_type() -> CqlType {
    CqlType::Map {
        key: Arc::new(CqlType::Text),
        value: Arc::new(CqlType::List {
            element: Arc::new(CqlType::Text),
            frozen: false,
        }),
        frozen: false,
    }
}

fn ownership(facts: ClusterFacts) -> Vec<u8> {
    let mut ranges = facts.ranges;
    ranges.sort();
    let lists: Vec<(String, Vec<u8>)> = ranges
        .into_iter()
        .map(|(token, owners)| {
            let owners = encode_list(owners.iter().map(|owner| owner.as_bytes()));
            (token, owners)
        })
        .collect();
    encode_map(
        lists
            .iter()
            .map(|(token, owners)| (token.as_bytes(), owners.as_slice())),
    )
}
