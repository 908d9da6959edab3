//! [`ReadSurvey`]: the sources that a read would use, found without reading, for EXPLAIN.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use ilion_env::cost::Count;
use ilion_rows::{ClusteringFilter, DecoratedKey, KeyRange};
use ilion_schema::{TableId, TableSchema};
use ilion_sstable::{KeyHash, Presence};
use ilion_types::Token;

use crate::live_sstable::LiveSSTable;
use crate::read::{PointRead, Prospect};
use crate::settle::Wanted;
use crate::table_store::TableStore;
use crate::{Engine, Error, Result};

/// The sources that a read would use, as far as they are known from memory (a Bloom filter may be loaded for that).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadSurvey {
    /// Number of memtables that have data of the read.
    pub memtables: u64,
    /// Number of SSTables of the table.
    pub sstables: u64,
    /// Numbers of skipped SSTables by reason.
    pub skipped: Vec<(Count, u64)>,
    /// Names of SSTables that may have data of the read, newest first.
    pub to_ask: Vec<String>,
    /// True if these SSTables are read one after another, and only until no older data is visible.
    pub ends_early: bool,
    /// True if the row cache is used first.
    pub is_row_cached: bool,
}

impl ReadSurvey {
    fn take(&mut self, live: &LiveSSTable, why_not: Option<Count>) {
        let Some(why) = why_not else {
            self.to_ask.push(live.sstable.descriptor().base_name());
            return;
        };
        match self.skipped.iter_mut().find(|(known, _)| *known == why) {
            Some((_, count)) => *count += 1,
            None => self.skipped.push((why, 1)),
        }
    }
}

impl Engine {
    /// Paths of Data.db of the SSTables that may have a partition, newest first, as far as they are known without reading the SSTables.
    ///
    /// # Errors
    /// The table is gone.
    pub fn sstables_with(&self, table: TableId, key: &Bytes) -> Result<Vec<PathBuf>> {
        let store = self.shared.table(table);
        let store = store.ok_or_else(|| Error::Refused(format!("table {table} does not exist")))?;
        let partitioner = store.schema().partitioner(self.shared.options.partitioner);
        let (key, hash) = (DecoratedKey::new(partitioner, key.clone()), KeyHash::of(key));
        let view = store.view();
        let may_have =
            |live: &&Arc<LiveSSTable>| matches!(live.sstable.presence(&key, &hash), Presence::Possible(_));
        Ok(view
            .sstables
            .iter()
            .filter(may_have)
            .map(|live| live.data_path())
            .collect())
    }

    /// Tokens of some partitions of a table, evenly spread over each of its SSTables; at most `count_max` tokens per SSTable.
    ///
    /// # Errors
    /// The table is gone, or an SSTable cannot be read.
    pub fn sample_tokens(&self, table: TableId, count_max: u64) -> Result<Vec<Token>> {
        let store = self.shared.table(table);
        let store = store.ok_or_else(|| Error::Refused(format!("table {table} does not exist")))?;
        let mut tokens = Vec::new();
        for live in &store.view().sstables {
            tokens.extend(live.sstable.sample_tokens(count_max)?);
        }
        Ok(tokens)
    }

    /// The sources of [`Engine::read_partition`]; `None` for virtual tables.
    ///
    /// # Errors
    /// The table is gone.
    pub fn survey_partition(
        &self,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        filter: &ClusteringFilter,
    ) -> Result<Option<ReadSurvey>> {
        let Some(store) = self.stored(table)? else {
            return Ok(None);
        };
        let is_row_cached = table.options.caching.rows_per_partition.is_some();
        Ok(Some(ReadSurvey {
            is_row_cached: is_row_cached && self.shared.row_cache.is_enabled(),
            ..store.survey_partition(table, key, filter)
        }))
    }

    /// The sources of [`Engine::read_range`]; `None` for virtual tables.
    ///
    /// # Errors
    /// The table is gone.
    pub fn survey_range(&self, table: &Arc<TableSchema>, range: &KeyRange) -> Result<Option<ReadSurvey>> {
        Ok(self.stored(table)?.map(|store| store.survey_range(range)))
    }

    fn stored(&self, table: &Arc<TableSchema>) -> Result<Option<Arc<TableStore>>> {
        if table.kind == ilion_schema::TableKind::Virtual {
            return Ok(None);
        }
        let store = self.shared.table(table.id);
        let gone = || Error::Refused(format!("table {}.{} does not exist", table.keyspace, table.name));
        store.map(Some).ok_or_else(gone)
    }
}

impl TableStore {
    fn survey_partition(
        &self,
        table: &Arc<TableSchema>,
        key: &DecoratedKey,
        filter: &ClusteringFilter,
    ) -> ReadSurvey {
        let view = self.view();
        let filter = Arc::new(filter.clone());
        let Some(active) = view.memtables.first() else {
            return ReadSurvey::default();
        };
        let read = PointRead {
            table,
            key,
            filter: filter.clone(),
            comparator: active.comparator(),
        };
        let wanted = Wanted::of(table, &filter, read.comparator);
        let has_key =
            |memtable: &&Arc<_>| ilion_memtable::Memtable::partition(memtable, key, &filter).is_some();
        let mut survey = ReadSurvey {
            memtables: view.memtables.iter().filter(has_key).count() as u64,
            sstables: view.sstables.len() as u64,
            ends_early: wanted.is_some(),
            ..ReadSurvey::default()
        };
        let wants_static = match &wanted {
            Some(wanted) => wanted.has_statics(),
            None => table.has_statics(),
        };
        let hash = KeyHash::of(&key.key);
        let sources = read.sources(&view);
        let spared = view.sstables.len() - sources.len();
        if spared > 0 {
            survey.skipped.push((Count::SkippedBySortedView, spared as u64));
        }
        for (live, ranks) in &sources {
            let prospect = read.prospect(&live.sstable, ranks, &hash, &filter, wants_static);
            let why = match prospect {
                Prospect::Needless(why) => Some(why),
                Prospect::Possible(_) => None,
            };
            survey.take(live, why);
        }
        survey
    }

    fn survey_range(&self, range: &KeyRange) -> ReadSurvey {
        let view = self.view();
        let memtables = view.memtables.iter().filter(|memtable| memtable.size_bytes() > 0);
        let mut survey = ReadSurvey {
            memtables: memtables.count() as u64,
            sstables: view.sstables.len() as u64,
            ..ReadSurvey::default()
        };
        for live in &view.sstables {
            let misses = range.misses(live.sstable.first_key(), live.sstable.last_key());
            survey.take(live, misses.then_some(Count::SkippedByKeyRange));
        }
        survey
    }
}
