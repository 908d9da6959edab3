//! `system."IndexInfo"`: the list of built indexes. Compat: `SystemKeyspace.setIndexBuilt`; the column `table_name` contains
//! the keyspace.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use ilion_commitlog::Kind;
use ilion_rows::{
    Clustering, ClusteringFilter, Cursor, DecoratedKey, DeletionTime, KeyRange, Liveness, Mutation,
    PartitionUpdate, ReadPurge, Row, Unfiltered,
};
use ilion_schema::{Diff, TableId, Transition};

use crate::shared::Shared;
use crate::table_store::TableStore;
use crate::{Error, Result};

/// Keyspace and name of an index.
pub(crate) type IndexName = (String, String);

impl Shared {
    fn built_store(&self) -> Result<Arc<TableStore>> {
        self.table(TableId::of_system_table("system", "IndexInfo"))
            .ok_or_else(|| Error::Refused("system.\"IndexInfo\" is not there".to_owned()))
    }

    /// The list of built indexes.
    pub(crate) fn built_indexes(&self) -> Result<BTreeSet<IndexName>> {
        let store = self.built_store()?;
        let table = store.schema();
        let law = self.own_read_law();
        let source = store.read_range(&table, &KeyRange::all(), &ClusteringFilter::all());
        let mut cursor = ReadPurge::new(source, table, law);
        let mut built = BTreeSet::new();
        while let Some(head) = cursor.next_partition()? {
            let keyspace = String::from_utf8_lossy(&head.key.key).into_owned();
            while let Some(unfiltered) = cursor.next_unfiltered()? {
                if let Unfiltered::Row(row) = unfiltered
                    && let Some(Some(name)) = row.clustering.values().first()
                {
                    built.insert((keyspace.clone(), String::from_utf8_lossy(name).into_owned()));
                }
            }
        }
        Ok(built)
    }

    /// Adds an index to the list or removes it. The change is durable when this returns.
    pub(crate) fn set_built(&self, name: &IndexName, is_built: bool) -> Result<()> {
        let mutation = self.built_mutation(name, is_built)?;
        self.write(Kind::Mutation, &[mutation])?;
        Ok(self.log()?.sync()?)
    }

    fn built_mutation(&self, (keyspace, index): &IndexName, is_built: bool) -> Result<Mutation> {
        let store = self.built_store()?;
        let table = store.schema();
        let newest = store.newest_micros().unwrap_or(i64::MIN);
        let now_micros = self.env.unique_micros().max(newest.saturating_add(1));
        let mut row = Row::empty(Clustering::of([Bytes::from(index.clone())]));
        match is_built {
            true => row.liveness = Liveness::live(now_micros),
            false => row.deletion = DeletionTime::new(now_micros, self.now_secs()),
        }
        Ok(Mutation {
            key: DecoratedKey::new(
                table.partitioner(self.options.partitioner),
                Bytes::from(keyspace.clone()),
            ),
            table,
            update: PartitionUpdate {
                rows: vec![row],
                ..PartitionUpdate::default()
            },
        })
    }

    /// Mutations that remove the indexes that a schema change creates or drops from the list. They are in the record of the
    /// change, so that a new index never counts as built because of a dropped one with its name.
    pub(crate) fn forget_built(&self, diffs: &[Diff]) -> Result<Vec<Mutation>> {
        let names: BTreeSet<IndexName> = diffs
            .iter()
            .filter_map(|diff| match diff {
                Diff::Index(keyspace, Transition::Created(index) | Transition::Dropped(index)) => {
                    Some((keyspace.clone(), index.name.clone()))
                }
                _ => None,
            })
            .collect();
        names
            .iter()
            .map(|name| self.built_mutation(name, false))
            .collect()
    }
}
