//! Compares an index with its table, row by row and entry by entry, while both are in use.
//!
//! A row that seems wrong is read again before it is counted, since it may have changed meanwhile. Stale entries
//! are not an error: searches find and remove them.

use std::sync::Arc;

use ilion_index::{HiddenTable, Place, RowChange, RowPart, Storage};
use ilion_rows::{
    ClusteringFilter, Cursor, DecoratedKey, KeyRange, Mutation, ReadPurge, Row, Slice, Unfiltered,
};
use ilion_schema::TableSchema;
use ilion_types::Token;

use super::beside::Beside;
use super::not_built;
use crate::memtable_indexes::Writing;
use crate::shared::Shared;
use crate::table_store::{LiveIndex, TableStore};
use crate::tasks::Checking;
use crate::{Engine, Result};

/// What to do with wrong entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexRepair {
    /// Wrong entries are only counted.
    #[default]
    None,
    /// Wrong entries are counted and repaired.
    Repair,
}

/// The result of a verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexVerification {
    /// Rows of the table that were compared.
    pub rows: u64,
    /// Entries of the index that were compared; for an attached index, the number of SSTables that have it.
    pub entries: u64,
    /// Entries that are missing; for an attached index, the number of SSTables without it.
    pub missing: u64,
    /// Entries of rows that do not have the value any more; for an attached index, the number of SSTables whose index does not match
    /// their rows.
    pub stale: u64,
    /// How many of the missing and stale entries (or parts of an attached index) were repaired.
    pub repaired: u64,
}

impl Engine {
    /// Compares an index with its table; for an attached index, its files with each SSTable.
    ///
    /// # Errors
    /// There is no such index, it is not built, or a file cannot be read.
    pub fn verify_index(
        &self,
        table: &Arc<TableSchema>,
        index: &str,
        repair: IndexRepair,
    ) -> Result<IndexVerification> {
        let shared = &self.shared;
        let (store, live) = shared.index_of(table, index)?;
        let sstables = store.view().sstables.clone();
        let descriptors = sstables.iter().map(|live| live.descriptor());
        let mut checking = shared.begin_check(&store, "Verify index", descriptors);
        drop(sstables);
        match (live.index.storage(), &live.hidden) {
            (Storage::HiddenTable(index), Some(hidden)) => {
                self.check_built(&live)?;
                let verifier = Verifier {
                    shared,
                    store: &store,
                    hidden,
                    index,
                    repair,
                    since: store.import_mark(),
                };
                verifier.run(&checking)
            }
            _ => shared.verify_attached(&store, &live, repair, &mut checking),
        }
    }

    fn check_built(&self, live: &LiveIndex) -> Result<()> {
        match live.is_built() {
            true => Ok(()),
            false => Err(not_built(live)),
        }
    }
}

struct Verifier<'a> {
    shared: &'a Shared,
    store: &'a Arc<TableStore>,
    hidden: &'a Arc<TableStore>,
    index: &'a dyn HiddenTable,
    repair: IndexRepair,
    /// [`TableStore::import_mark`] of the table when the verification began.
    since: u64,
}

impl Verifier<'_> {
    fn run(&self, checking: &Checking<'_>) -> Result<IndexVerification> {
        let mut found = IndexVerification::default();
        self.look_for_missing(&mut found, checking)?;
        self.look_for_stale(&mut found, checking)?;
        if found.repaired > 0 {
            // Repairs are not logged, so they must be flushed.
            self.shared.flush_table(self.store)?;
        }
        Ok(found)
    }

    fn beside(&self) -> Beside<'_> {
        Beside {
            shared: self.shared,
            store: self.store,
            hidden: self.hidden,
            since: self.since,
        }
    }

    fn living<C: Cursor>(&self, source: C, table: Arc<TableSchema>) -> ReadPurge<C> {
        ReadPurge::new(source, table, self.shared.own_read_law())
    }

    fn look_for_missing(&self, found: &mut IndexVerification, checking: &Checking<'_>) -> Result<()> {
        let table = self.store.schema();
        let source = self
            .store
            .read_range(&table, &KeyRange::all(), &ClusteringFilter::all());
        let mut rows = self.living(source, table);
        while let Some(head) = rows.next_partition()? {
            checking.at_share(share_before(&head.key.token) / 2.0);
            if let Some(row) = &head.static_row {
                self.check_row(&head.key, row, found)?;
            }
            while let Some(unfiltered) = rows.next_unfiltered()? {
                if let Unfiltered::Row(row) = unfiltered {
                    self.check_row(&head.key, &row, found)?;
                }
            }
        }
        Ok(())
    }

    fn check_row(&self, key: &DecoratedKey, row: &Row, found: &mut IndexVerification) -> Result<()> {
        found.rows += 1;
        if self.missing(key, row)?.is_empty() {
            return Ok(());
        }
        let place = Place {
            key: key.clone(),
            row: match row.clustering.is_empty() && self.store.schema().clustering().len() > 0 {
                true => RowPart::Static,
                false => RowPart::Row(row.clustering.clone()),
            },
        };
        let Some(row) = self.row_at(&place)? else {
            return Ok(());
        };
        for entry in self.missing(key, &row)? {
            found.missing += 1;
            if self.repair == IndexRepair::Repair {
                self.beside().add(&entry);
                found.repaired += u64::from(self.has(&entry)?);
            }
        }
        Ok(())
    }

    /// Entries of a row that the index does not have.
    fn missing(&self, key: &DecoratedKey, row: &Row) -> Result<Vec<Mutation>> {
        let change = RowChange {
            before: None,
            after: row,
        };
        let when = Writing {
            hidden: &**self.hidden,
            env: &*self.shared.env,
        };
        let mut missing = Vec::new();
        for entry in self.index.entries(key, change, &when) {
            if !self.has(&entry)? {
                missing.push(entry);
            }
        }
        Ok(missing)
    }

    fn has(&self, entry: &Mutation) -> Result<bool> {
        let table = self.hidden.schema();
        let Some(row) = entry.update.rows.first() else {
            return Ok(true);
        };
        let filter = ClusteringFilter {
            slices: vec![Slice::exactly(&row.clustering)],
            ..ClusteringFilter::all()
        };
        let source = self
            .hidden
            .read_partition(&table, &entry.key, &filter, self.shared.now_secs())?;
        let mut rows = self.living(source, table);
        Ok(rows.next_partition()?.is_some() && rows.next_unfiltered()?.is_some())
    }

    /// The row as it is now.
    fn row_at(&self, place: &Place) -> Result<Option<Row>> {
        let table = self.store.schema();
        let slices = match &place.row {
            RowPart::Static => Vec::new(),
            RowPart::Row(clustering) => vec![Slice::exactly(clustering)],
        };
        let filter = ClusteringFilter {
            slices,
            ..ClusteringFilter::all()
        };
        let source = self
            .store
            .read_partition(&table, &place.key, &filter, self.shared.now_secs())?;
        let mut rows = self.living(source, table);
        let Some(head) = rows.next_partition()? else {
            return Ok(None);
        };
        if place.row == RowPart::Static {
            return Ok(head.static_row);
        }
        Ok(rows.next_unfiltered()?.and_then(|unfiltered| match unfiltered {
            Unfiltered::Row(row) => Some(row),
            Unfiltered::Marker(_) => None,
        }))
    }

    fn look_for_stale(&self, found: &mut IndexVerification, checking: &Checking<'_>) -> Result<()> {
        checking.at_share(0.5);
        let table = self.hidden.schema();
        let source = self
            .hidden
            .read_range(&table, &KeyRange::all(), &ClusteringFilter::all());
        let mut entries = self.living(source, table);
        while let Some(head) = entries.next_partition()? {
            while let Some(unfiltered) = entries.next_unfiltered()? {
                if let Unfiltered::Row(entry) = unfiltered {
                    found.entries += 1;
                    self.check_entry(&head.key, &entry, found)?;
                }
            }
        }
        Ok(())
    }

    fn check_entry(&self, value: &DecoratedKey, entry: &Row, found: &mut IndexVerification) -> Result<()> {
        let candidate = self.index.candidate(value, entry)?;
        let row = self.row_at(&candidate.place)?;
        if let Some(mark) = candidate.entry
            && self.index.is_stale(&mark, row.as_ref())
        {
            found.stale += 1;
            if self.repair == IndexRepair::Repair && !mark.is_expiring {
                let is_removed = self.beside().remove(self.index, &[mark]);
                found.repaired += u64::from(is_removed);
            }
        }
        Ok(())
    }
}

/// The share of the ring that lies before a token, for hash partitioners; 0 for partitioners that keep the order of the keys. Pure.
#[expect(clippy::cast_precision_loss, reason = "a share for operators")]
fn share_before(token: &Token) -> f64 {
    match token {
        Token::Murmur3(_) | Token::Random(_) => token.code() as f64 / u64::MAX as f64,
        Token::Bytes(_) | Token::Comparable(_) => 0.0,
    }
}
