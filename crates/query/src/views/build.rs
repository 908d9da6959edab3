//! Building views: entries for the rows that the base table had before the view.
//!
//! One thread reads the partitions of each base table by token. It locks each partition, so that no write changes it meanwhile. Its
//! progress is stored, and a restart continues from there.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use ilion_rows::{ClusteringFilter, DecoratedKey, KeyBound, KeyRange, Mutation, Unfiltered};
use ilion_schema::TableId;
use ilion_types::Token;

use super::Views;
use super::change;
use super::definition::ViewPlan;
use crate::select::key_components;
use crate::{Error, StoreError};

/// The progress is stored once per this many partitions.
const PARTITIONS_UNMARKED: u64 = 1000;
/// Number of rows whose entries are written together.
const ROWS_AT_ONCE: usize = 256;

/// The thread that builds views, if it runs.
#[derive(Debug, Default)]
pub(super) struct Builder {
    thread: Option<JoinHandle<()>>,
}

/// How a build ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Built,
    /// The node stops, or the view was dropped.
    Broken,
}

impl Views {
    /// Starts to build all views that are not built yet.
    pub fn build_missing(self: &Arc<Self>) {
        let mut builder = self.builder.lock();
        let unbuilt = match self.unbuilt() {
            Ok(unbuilt) => unbuilt,
            Err(reason) => {
                tracing::error!(%reason, "it cannot be read which materialized views are built");
                return;
            }
        };
        if unbuilt.is_empty() {
            return;
        }
        let before = builder.thread.take();
        let views = self.clone();
        let spawned = thread::Builder::new()
            .name("view-builder".to_owned())
            .spawn(move || {
                if let Some(before) = before
                    && before.join().is_err()
                {
                    tracing::error!("the build of a materialized view panicked");
                }
                views.build_all();
            });
        match spawned {
            Ok(thread) => builder.thread = Some(thread),
            Err(reason) => tracing::error!(%reason, "no thread to build materialized views; restart"),
        }
    }

    /// Blocks until no view is being built.
    pub fn wait_built(&self) {
        let thread = self.builder.lock().thread.take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the build of a materialized view panicked");
        }
    }

    /// The ids of base table and view, for each view that is not yet built.
    fn unbuilt(&self) -> Result<Vec<(TableId, TableId)>, Error> {
        let index = self.index.read();
        let mut unbuilt = Vec::new();
        for plan in index.plans.values().flat_map(|plans| plans.iter()) {
            if !self.is_built(plan)? {
                unbuilt.push((plan.base.id, plan.view.id));
            }
        }
        Ok(unbuilt)
    }

    fn build_all(&self) {
        let unbuilt = self.unbuilt().unwrap_or_default();
        for (base, view) in unbuilt {
            if let Err(reason) = self.build(base, view) {
                tracing::error!(%view, %reason, "a materialized view is not built; it is tried again at the next start");
            }
        }
    }

    fn build(&self, base: TableId, view: TableId) -> Result<End, Error> {
        let Some((table, after)) = self.with_plan(base, view, |plan| {
            self.set_status(plan, "STARTED")?;
            Ok((plan.base.clone(), self.progress(plan)?))
        })?
        else {
            return Ok(End::Broken);
        };
        let start = match after {
            Some(token) => KeyBound::AfterToken(token_of(&token, self.store.partitioner())?),
            None => KeyBound::Start,
        };
        let range = KeyRange {
            start,
            end: KeyBound::End,
        };
        let heads = ClusteringFilter {
            slices: Vec::new(),
            columns: Some(Arc::from([])),
            ..ClusteringFilter::all()
        };
        let read_failed = |error| StoreError::Read(error).of_statement();
        let mut cursor = self
            .store
            .read_range(&table, &range, &heads)
            .map_err(StoreError::of_statement)?;
        let mut keys: u64 = 0;
        let mut last: Option<DecoratedKey> = None;
        while let Some(head) = cursor.next_partition().map_err(read_failed)? {
            if self.is_stopping.load(Ordering::Acquire) {
                return Ok(End::Broken);
            }
            // Several partitions may have one token, so a token is finished only when the next one begins.
            let is_next_token = last.as_ref().is_some_and(|last| last.token != head.key.token);
            if let Some(last) = last
                .as_ref()
                .filter(|_| is_next_token && keys.is_multiple_of(PARTITIONS_UNMARKED))
            {
                let token = last.token.to_string();
                self.with_plan(base, view, |plan| self.set_progress(plan, &token, keys))?;
            }
            let built = self.with_plan(base, view, |plan| self.build_partition(plan, &head.key))?;
            if built.is_none() {
                return Ok(End::Broken);
            }
            keys += 1;
            last = Some(head.key);
        }
        self.with_plan(base, view, |plan| self.mark_built(plan))?;
        Ok(End::Built)
    }

    /// Runs `act` under the lock that keeps the schema from changing; `None` if the view was dropped.
    fn with_plan<T>(
        &self,
        base: TableId,
        view: TableId,
        act: impl FnOnce(&ViewPlan) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let index = self.index.read();
        let plans = index.plans.get(&base).cloned().unwrap_or_default();
        match plans.iter().find(|plan| plan.view.id == view) {
            Some(plan) => act(plan).map(Some),
            None => Ok(None),
        }
    }

    fn build_partition(&self, plan: &ViewPlan, key: &DecoratedKey) -> Result<(), Error> {
        let _guard = self.store.lock_partitions(&[(plan.base.id, key.clone())]);
        let now_secs = u32::try_from(self.store.now_micros().div_euclid(1_000_000)).unwrap_or(0);
        let components = key_components(&plan.base, &key.key)?;
        let read_failed = |error| StoreError::Read(error).of_statement();
        let mut cursor = self
            .store
            .read_partition(&plan.base, key, &ClusteringFilter::all())
            .map_err(StoreError::of_statement)?;
        if cursor.next_partition().map_err(read_failed)?.is_none() {
            return Ok(());
        }
        let mut updates = Vec::new();
        while let Some(unfiltered) = cursor.next_unfiltered().map_err(read_failed)? {
            if let Unfiltered::Row(row) = unfiltered {
                change::push_entry(&*self.store, plan, &components, row, now_secs, &mut updates)?;
            }
            if updates.len() >= ROWS_AT_ONCE {
                self.write(std::mem::take(&mut updates))?;
            }
        }
        self.write(updates)
    }

    fn write(&self, updates: Vec<Mutation>) -> Result<(), Error> {
        let merged = crate::partitions::merge_partitions(updates);
        if merged.is_empty() {
            return Ok(());
        }
        self.store
            .apply_decided(merged)
            .map_err(StoreError::of_statement)?;
        Ok(())
    }
}

fn token_of(text: &str, partitioner: ilion_types::Partitioner) -> Result<Token, Error> {
    Ok(partitioner.parse_token(text)?)
}
