//! Materialized views: a write to a base table also writes the updates of its views.
//!
//! All writes go through [`Views::apply`]. Under the lock of the base partition it reads the rows and computes them after the write
//! (`change`). `entry` computes the entry that a view should have for each row. `steer` computes the write that turns the stored
//! entry into that one. Base and views are one log record, so a crash cannot separate them.
//!
//! | module | what |
//! | --- | --- |
//! | `definition` | [`ViewPlan`]: a view resolved against its base |
//! | `change` | the rows of a base partition before and after a mutation |
//! | `entry` | the entry that a view should have for a base row |
//! | `steer` | from the stored entry to the wanted one |
//! | `build` | entries for rows that are older than the view |
//! | `status` | progress of builds, in tables of the server |
//!
//! Invariant: a schema change that concerns views holds [`Views::index`] exclusively. Every write holds it shared, from the
//! lookup of its views until it is applied. So a write either updates a view, or comes before the build of that view.
//!
//! Lock order: a writer without locks takes the index, then partitions. A writer that has already locked its partitions takes
//! the index ahead of waiting writers (`read_recursive`), since those may wait for its partitions.

mod build;
mod change;
mod definition;
mod entry;
mod status;
mod steer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hashbrown::HashMap;
use ilion_rows::{DecoratedKey, Mutation};
use ilion_schema::{Schema, SchemaChange, TableId, TableSchema};
use parking_lot::{Mutex, RwLock};

pub(crate) use self::definition::restricting;

use self::build::Builder;
use self::definition::ViewPlan;
use crate::context::{Altered, Execution, KeepViews};
use crate::partitions::merge_partitions;
use crate::{Awaited, Error, QueryOptions, Store, StoreError, WriteType};

/// The views of each base table.
#[derive(Debug, Default)]
struct ViewIndex {
    plans: HashMap<TableId, Arc<[ViewPlan]>>,
    /// Base tables of views that cannot be kept up to date, with the reason. Writes to these tables are refused.
    broken: HashMap<TableId, String>,
}

impl ViewIndex {
    fn is_empty(&self) -> bool {
        self.plans.is_empty() && self.broken.is_empty()
    }
}

/// All views, and the lock that orders writes and schema changes.
pub(crate) struct Views {
    store: Arc<dyn Store>,
    options: QueryOptions,
    index: RwLock<ViewIndex>,
    builder: Mutex<Builder>,
    is_stopping: AtomicBool,
}

impl Views {
    /// The views of the store's schema. The build thread is not started.
    pub fn of(store: Arc<dyn Store>, options: QueryOptions) -> Self {
        let views = Self {
            index: RwLock::default(),
            builder: Mutex::default(),
            is_stopping: AtomicBool::new(false),
            store,
            options,
        };
        *views.index.write() = views.index_of(&views.store.schema());
        views
    }

    fn index_of(&self, schema: &Arc<Schema>) -> ViewIndex {
        let mut plans: HashMap<TableId, Vec<ViewPlan>> = HashMap::new();
        let mut broken = HashMap::new();
        for keyspace in schema.keyspaces.values() {
            for view in keyspace.views.values() {
                match ViewPlan::of(keyspace, view, schema, &*self.store, &self.options) {
                    Ok(plan) => plans.entry(plan.base.id).or_default().push(plan),
                    Err(reason) => {
                        let reason = format!("{}.{}: {reason}", keyspace.name, view.name);
                        tracing::error!(view = reason, "a materialized view cannot be kept up to date");
                        broken.insert(view.base_table_id, reason);
                    }
                }
            }
        }
        ViewIndex {
            plans: plans
                .into_iter()
                .map(|(base, plans)| (base, plans.into()))
                .collect(),
            broken,
        }
    }

    fn remove_all(&self, table: TableId) -> Result<(), Error> {
        self.store
            .truncate(table)
            .map_err(|refused| match refused.of_statement() {
                Error::ServerError(message) => Error::Truncate(format!("Error during truncate: {message}")),
                other => other,
            })
    }

    /// Stops the builds, which continue at the next start.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
        self.wait_built();
    }
}

impl KeepViews for Arc<Views> {
    fn change_schema(&self, change: &SchemaChange, carry_out: &dyn Fn() -> Altered) -> Altered {
        if let SchemaChange::CreateView(create) = change {
            if self
                .store
                .schema()
                .table(&create.keyspace, &create.name)
                .is_none()
            {
                self.forget(&create.keyspace, &create.name)?;
            }
        } else if self.index.read().is_empty() {
            return carry_out();
        }
        let mut index = self.index.write();
        let done = carry_out()?;
        *index = self.index_of(&self.store.schema());
        drop(index);
        if let SchemaChange::DropView(drop) = change {
            self.forget(&drop.keyspace, &drop.name)?;
        }
        self.build_missing();
        Ok(done)
    }

    fn truncate(&self, table: TableId) -> Result<(), Error> {
        let index = self.index.write();
        let plans = index.plans.get(&table).cloned().unwrap_or_default();
        for plan in &*plans {
            self.forget(&plan.view.keyspace, &plan.view.name)?;
            self.remove_all(plan.view.id)?;
        }
        self.remove_all(table)?;
        for plan in &*plans {
            self.mark_built(plan)?;
        }
        Ok(())
    }

    fn apply(
        &self,
        execution: &Execution<'_>,
        mut mutations: Vec<Mutation>,
        locked: &[(TableId, DecoratedKey)],
        write_type: WriteType,
    ) -> Result<Option<Awaited>, Error> {
        let index = match locked {
            [] => self.index.read(),
            _ => self.index.read_recursive(),
        };
        let refused = |refused: StoreError| refused.of_write(execution.options.consistency, write_type);
        if index.is_empty() {
            return apply_alone(&*self.store, mutations, locked, write_type).map_err(refused);
        }
        let mut unlocked: Vec<(TableId, DecoratedKey)> = Vec::new();
        let mut has_views = false;
        for mutation in &mutations {
            if let Some(reason) = index.broken.get(&mutation.table.id) {
                return Err(broken(mutation, reason));
            }
            if index.plans.contains_key(&mutation.table.id) {
                has_views = true;
                unlocked.push((mutation.table.id, mutation.key.clone()));
            }
        }
        if !has_views {
            return apply_alone(&*self.store, mutations, locked, write_type).map_err(refused);
        }
        unlocked.retain(|partition| !locked.contains(partition));
        if !unlocked.is_empty() && !locked.is_empty() {
            return Err(Error::Overloaded(
                "A materialized view was created while this was being written: try again".to_owned(),
            ));
        }
        let guard = (!unlocked.is_empty()).then(|| self.store.lock_partitions(&unlocked));
        let now_secs = u32::try_from(execution.now_secs.max(0)).unwrap_or(u32::MAX);
        let mut updates = Vec::new();
        for mutation in &mutations {
            if let Some(plans) = index.plans.get(&mutation.table.id) {
                change::view_updates(&*self.store, plans, mutation, now_secs, &mut updates)?;
            }
        }
        mutations.extend(merge_partitions(updates));
        let applied = self.store.apply_decided(mutations).map_err(refused);
        drop(guard);
        applied
    }
}

/// Applies mutations together with the updates of views that follow from them. Cells that a dropped column hides are not written, so that
/// clients never see them; after a flush or a restart they would be gone.
///
/// # Errors
/// If it fails, nothing was applied.
pub(crate) fn apply(
    execution: &Execution<'_>,
    mut mutations: Vec<Mutation>,
    locked: &[(TableId, DecoratedKey)],
    write_type: WriteType,
) -> Result<Option<Awaited>, Error> {
    mutations.iter_mut().for_each(Mutation::remove_dropped);
    match execution.views {
        Some(views) => views.apply(execution, mutations, locked, write_type),
        // Only Ilion's own statements have no views, for example those that store the progress of builds.
        None => execution
            .store
            .apply_decided(mutations)
            .map_err(|refused| refused.of_write(execution.options.consistency, write_type)),
    }
}

/// Applies mutations to tables without views. If partitions are locked, the mutations depend on earlier reads. Counters do not need
/// `apply_decided`: their cells contain the counts before them.
fn apply_alone(
    store: &dyn Store,
    mutations: Vec<Mutation>,
    locked: &[(TableId, DecoratedKey)],
    write_type: WriteType,
) -> Result<Option<Awaited>, StoreError> {
    match write_type {
        WriteType::Batch if locked.is_empty() => store.apply_logged(mutations),
        WriteType::Counter => store.apply(mutations),
        _ if locked.is_empty() => store.apply(mutations),
        _ => store.apply_decided(mutations),
    }
}

fn broken(mutation: &Mutation, reason: &str) -> Error {
    Error::Invalid(format!(
        "Cannot write to {}.{}: a materialized view of it cannot be kept up to date, drop it first ({reason})",
        mutation.table.keyspace, mutation.table.name
    ))
}

/// True if writes to this table must update views.
pub(crate) fn has_views(schema: &Schema, table: &TableSchema) -> bool {
    schema
        .keyspace(&table.keyspace)
        .is_some_and(|keyspace| keyspace.views_of(&table.name).next().is_some())
}
