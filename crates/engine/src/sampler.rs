//! Samples which partitions are read and written most.
//!
//! The space-saving algorithm (Metwally, Agrawal, El Abbadi 2005): a fixed number of counters; a partition without a counter takes over
//! the lowest one. A count is too high by at most its error. While sampling is off, a read or write only checks a flag.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bytes::Bytes;
use hashbrown::HashMap;
use ilion_rows::Mutation;
use ilion_schema::{TableId, TableSchema};
use parking_lot::Mutex;

use crate::{Error, Result};

/// Counters of each kind.
const COUNTERS: usize = 1024;

/// One of the partitions that are used most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopPartition {
    /// `keyspace.table:key`
    pub partition: String,
    /// Number of uses, or of bytes.
    pub count: u64,
    /// The count is too high by at most this.
    pub error: u64,
}

/// The partitions used most, each list from the most to the least.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopPartitions {
    /// By reads of the partition.
    pub reads: Vec<TopPartition>,
    /// By writes to it.
    pub writes: Vec<TopPartition>,
    /// By bytes written to it.
    pub write_bytes: Vec<TopPartition>,
}

/// The state of sampling.
#[derive(Default)]
pub(crate) struct Sampling {
    is_on: AtomicBool,
    /// `None` while sampling is off. Locked for each counted read or write.
    samples: Mutex<Option<Samples>>,
}

/// A running sampling.
struct Samples {
    /// The tables whose partitions are counted.
    tables: Vec<TableId>,
    reads: Heavy,
    writes: Heavy,
    write_bytes: Heavy,
}

/// The partitions with the highest counts: count and error of each.
#[derive(Default)]
struct Heavy(HashMap<(TableId, Bytes), (u64, u64)>);

impl Heavy {
    fn add(&mut self, table: TableId, key: &Bytes, amount: u64) {
        let place = (table, key.clone());
        if let Some((count, _)) = self.0.get_mut(&place) {
            *count += amount;
            return;
        }
        let mut least = 0;
        if self.0.len() >= COUNTERS {
            let victim = self.0.iter().min_by_key(|(_, (count, _))| *count);
            if let Some((victim, (count, _))) = victim.map(|(key, count)| (key.clone(), *count)) {
                least = count;
                self.0.remove(&victim);
            }
        }
        // Copied, since the key may be a slice that would keep a large request in memory.
        let place = (table, Bytes::copy_from_slice(key));
        self.0.insert(place, (least + amount, least));
    }

    fn top(&self, top: usize, name: impl Fn(TableId, &Bytes) -> Option<String>) -> Vec<TopPartition> {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_by_key(|((table, key), (count, _))| (std::cmp::Reverse(*count), *table, key.clone()));
        let named = all.into_iter().filter_map(|((table, key), (count, error))| {
            Some(TopPartition {
                partition: name(*table, key)?,
                count: *count,
                error: *error,
            })
        });
        named.take(top).collect()
    }
}

impl Sampling {
    #[inline]
    pub(crate) fn read(&self, table: &TableSchema, key: &Bytes) {
        if self.is_on.load(Relaxed) && !ilion_env::parking::is_again() {
            self.count(table.id, |samples| samples.reads.add(table.id, key, 1));
        }
    }

    #[inline]
    pub(crate) fn write(&self, mutations: &[Mutation]) {
        if self.is_on.load(Relaxed) {
            for mutation in mutations {
                let (table, key) = (mutation.table.id, &mutation.key.key);
                self.count(table, |samples| {
                    samples.writes.add(table, key, 1);
                    samples.write_bytes.add(table, key, size_of(mutation));
                });
            }
        }
    }

    /// Starts to count.
    ///
    /// # Errors
    /// Another sampling is running.
    pub(crate) fn begin(&self, tables: Vec<TableId>) -> Result<()> {
        let mut samples = self.samples.lock();
        if samples.is_some() {
            let reason = "partitions are being sampled for somebody else; try again later";
            return Err(Error::Refused(reason.to_owned()));
        }
        *samples = Some(Samples {
            tables,
            reads: Heavy::default(),
            writes: Heavy::default(),
            write_bytes: Heavy::default(),
        });
        self.is_on.store(true, Relaxed);
        Ok(())
    }

    /// Ends what [`Self::begin`] began. Partitions without a `name` are left out.
    pub(crate) fn finish(
        &self,
        top: usize,
        name: impl Fn(TableId, &Bytes) -> Option<String>,
    ) -> TopPartitions {
        self.is_on.store(false, Relaxed);
        let Some(samples) = self.samples.lock().take() else {
            return TopPartitions::default();
        };
        TopPartitions {
            reads: samples.reads.top(top, &name),
            writes: samples.writes.top(top, &name),
            write_bytes: samples.write_bytes.top(top, &name),
        }
    }

    fn count(&self, table: TableId, count: impl FnOnce(&mut Samples)) {
        if let Some(samples) = self.samples.lock().as_mut()
            && samples.tables.contains(&table)
        {
            count(samples);
        }
    }
}

/// Bytes of a mutation in the commit log.
fn size_of(mutation: &Mutation) -> u64 {
    let mut encoded = Vec::new();
    ilion_rows::encode_mutation(mutation, &mut encoded);
    encoded.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> Bytes {
        Bytes::copy_from_slice(&number.to_be_bytes())
    }

    #[test]
    fn what_is_used_most_is_found_among_many_others() {
        let (table, mut heavy) = (TableId(uuid::Uuid::nil()), Heavy::default());
        for number in 0..20_000 {
            heavy.add(table, &key(number + 100), 1);
            heavy.add(table, &key(number % 3), 1);
        }
        assert!(heavy.0.len() <= COUNTERS);
        let top = heavy.top(3, |_, key| Some(ilion_types::hex::print(key)));
        for found in &top {
            assert!(found.partition.ends_with(['0', '1', '2']), "{top:?}");
            assert!((6666..6680).contains(&found.count) && found.error < 14, "{top:?}");
        }
    }
}
