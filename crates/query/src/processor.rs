//! The entry point of this crate: [`QueryProcessor`].

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use ilion_auth::Resource;
use ilion_env::patience::Patience;
use ilion_env::{spectrogram, trace};
use ilion_rows::Mutation;
use ilion_schema::TableId;
use parking_lot::{Mutex, RwLock};
use quick_cache::Equivalent;
use quick_cache::sync::Cache;

use crate::access::AccessControl;
use crate::batch::{self, Member};
use crate::bind::{BoundBy, bind};
use crate::commanding;
use crate::context::{Execution, Sight};
use crate::function_calls::FunctionCalls;
use crate::invalidation::Invalidated;
use crate::overtaken::again_if_overtaken;
use crate::plan::Plan;
use crate::planned::Planned;
use crate::prepared::{metadata_id, statement_id};
use crate::read_patience::ReadPatience;
use crate::statement_cache::StatementCache;
use crate::term::functions::function_calls;
use crate::views::Views;
use crate::{Awaited, BatchSizes, WriteType};
use crate::{
    BatchKind, ClientState, Consistency, Error, ExecuteOptions, Executed, Form, Outcome, Prepared,
    QueryOptions, Shape, Store, Value, Values,
};

/// Number of unprepared texts whose plans are cached.
const TEXTS_KEPT: usize = 1024;
/// Longest text, in bytes, whose plan is cached.
const TEXT_LEN_KEPT: usize = 8 * 1024;

/// A member of a protocol batch.
#[derive(Clone, Debug)]
pub enum BatchStatement {
    /// Text of a statement.
    Text(String),
    /// A prepared statement.
    Prepared(Arc<Prepared>),
}

impl BatchStatement {
    /// The shape of the statement. Calls `of_text` for the shape of an unprepared text.
    pub fn shape(&self, of_text: impl FnOnce(&str) -> Arc<Shape>) -> Cow<'_, Arc<Shape>> {
        match self {
            Self::Text(text) => Cow::Owned(of_text(text)),
            Self::Prepared(prepared) => Cow::Borrowed(prepared.shape()),
        }
    }
}

/// Parses, prepares and executes statements.
pub struct QueryProcessor {
    store: Arc<dyn Store>,
    options: ArcSwap<CurrentOptions>,
    is_stopping: Arc<AtomicBool>,
    batch_sizes: Arc<BatchSizes>,
    prepared: StatementCache,
    texts: Cache<TextKey, Arc<Planned>>,
    views: Arc<Views>,
    access: Arc<AccessControl>,
    patience: Arc<dyn Patience>,
    /// Held while a schema statement is planned and executed, so that the schema it was planned against does not change.
    schema_turn: Mutex<()>,
    /// True while a schema statement is executed, which may wait for other nodes. A statement that is prepared holds the lock until it is
    /// in the table of prepared statements, so a change that begins then finds it there.
    is_schema_changing: RwLock<bool>,
}

/// The current options.
struct CurrentOptions {
    of_all: QueryOptions,
    /// The options without guardrails, which do not apply to superusers.
    of_superusers: QueryOptions,
}

impl CurrentOptions {
    fn of(options: QueryOptions) -> Self {
        Self {
            of_superusers: QueryOptions {
                guardrails: options.guardrails.of_superusers(),
                ..options.clone()
            },
            of_all: options,
        }
    }

    fn of_client(&self, client: &ClientState) -> &QueryOptions {
        match client.identity.is_superuser() {
            true => &self.of_superusers,
            false => &self.of_all,
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TextKey {
    keyspace: Option<String>,
    text: String,
}

/// A borrowed [`TextKey`] with the same hash, to look up a text without a copy.
#[derive(Hash)]
struct TextRef<'t> {
    keyspace: Option<&'t str>,
    text: &'t str,
}

impl Equivalent<TextKey> for TextRef<'_> {
    fn equivalent(&self, key: &TextKey) -> bool {
        self.keyspace == key.keyspace.as_deref() && self.text == key.text
    }
}

impl QueryProcessor {
    pub fn new(store: Arc<dyn Store>, options: QueryOptions) -> Self {
        let options = match store.commands() {
            Some(_) => options.of_cluster(),
            None => options,
        };
        let views = Arc::new(Views::of(store.clone(), options.clone()));
        views.build_missing();
        let prepared = StatementCache::new(store.clone(), options.clone());
        Self {
            store: store.clone(),
            views,
            access: Arc::new(AccessControl::new(store.clone(), &options)),
            prepared,
            texts: Cache::new(TEXTS_KEPT),
            patience: Arc::new(ReadPatience {
                store,
                is_stopping: options.is_stopping.clone(),
            }),
            is_stopping: options.is_stopping.clone(),
            batch_sizes: options.batch_sizes.clone(),
            options: ArcSwap::from_pointee(CurrentOptions::of(options)),
            schema_turn: Mutex::new(()),
            is_schema_changing: RwLock::new(false),
        }
    }

    /// Writes mutations of an operator's tool as the storage does for statements, without permissions and guardrails. Each partition's part is
    /// applied as a whole.
    ///
    /// # Errors
    /// The storage refuses them.
    pub fn write(&self, mutations: Vec<Mutation>) -> Result<Option<Awaited>, Error> {
        let written = self.store.apply(mutations);
        written.map_err(|error| error.of_write(Consistency::QUORUM, WriteType::UnloggedBatch))
    }

    /// Logins and permissions.
    pub fn access(&self) -> &Arc<AccessControl> {
        &self.access
    }

    /// Changes the options of statements that are planned or executed from now on: guardrails, limits and timeouts. A prepared
    /// statement keeps the checks of its planning. Sizes of caches, names and the authenticator stay as they were at the start.
    pub fn change_options(&self, options: &QueryOptions) {
        let kept = self.options.load_full();
        let changed = QueryOptions {
            prepared_count_max: kept.of_all.prepared_count_max,
            prepared_bytes_max: kept.of_all.prepared_bytes_max,
            expiry_secs_max: kept.of_all.expiry_secs_max,
            data_center: kept.of_all.data_center.clone(),
            disk_usage: kept.of_all.disk_usage.clone(),
            batch_sizes: kept.of_all.batch_sizes.clone(),
            is_stopping: kept.of_all.is_stopping.clone(),
            dynamic_data_masking_enabled: kept.of_all.dynamic_data_masking_enabled,
            ..options.clone()
        };
        self.access.change_validity(&changed.access);
        self.options.store(Arc::new(CurrentOptions::of(changed)));
        // Plans of texts were checked against the old options.
        self.texts.clear();
    }

    /// Ends all long reads, running and later ones. Called when the node stops.
    pub fn end_long_reads(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    /// How many partitions batches have changed.
    pub fn batch_sizes(&self) -> &Arc<BatchSizes> {
        &self.batch_sizes
    }

    /// The number of prepared statements in memory, and the number of those evicted since the start.
    pub fn prepared_counts(&self) -> (u64, u64) {
        self.prepared.counts()
    }

    /// True if a materialized view of this name has been built.
    ///
    /// # Errors
    /// `system.built_views` cannot be read.
    pub fn is_view_built(&self, keyspace: &str, view: &str) -> Result<bool, Error> {
        self.views.is_built_named(keyspace, view)
    }

    /// Blocks until no materialized view is being built. For tests.
    pub fn wait_for_views(&self) {
        self.views.wait_built();
    }

    /// Executes the text of a statement.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn query(
        &self,
        client: &mut ClientState,
        cql: &str,
        options: &ExecuteOptions,
    ) -> Result<Executed, Error> {
        again_if_overtaken(|| self.query_once(client, cql, options))
    }

    fn query_once(
        &self,
        client: &mut ClientState,
        cql: &str,
        options: &ExecuteOptions,
    ) -> Result<Executed, Error> {
        let keyspace = options.keyspace.as_deref().or(client.keyspace.as_deref());
        let planned = self.planned(cql, keyspace)?;
        self.admit(client, &planned)?;
        let values = bind(&planned.variables, &options.values, BoundBy::Query)?;
        let mut executed = self.run(client, &planned, &values, options)?;
        executed.shape = Some(planned.shape.clone());
        Ok(remember_keyspace(executed, client))
    }

    /// The tables that a statement uses.
    ///
    /// # Errors
    /// The statement cannot be planned.
    pub fn tables_of(&self, cql: &str, keyspace: Option<&str>) -> Result<Vec<TableId>, Error> {
        let planned = self.planned(cql, keyspace)?;
        Ok(planned.plan.tables().map(|table| table.id).collect())
    }

    /// The shape of a text: that of its cached plan, or one made from the text alone.
    pub fn shape_of(&self, client: &ClientState, cql: &str, keyspace: Option<&str>) -> Arc<Shape> {
        let keyspace = keyspace.or(client.keyspace.as_deref());
        match self.texts.get(&TextRef { keyspace, text: cql }) {
            Some(known) => known.shape.clone(),
            None => Arc::new(Shape::of(cql, keyspace)),
        }
    }

    /// Prepares a statement and caches it. Unqualified names are in `keyspace`, if it is given, else in the client's keyspace.
    ///
    /// # Errors
    /// The statement cannot be planned.
    pub fn prepare(
        &self,
        client: &ClientState,
        cql: &str,
        keyspace: Option<&str>,
    ) -> Result<Arc<Prepared>, Error> {
        let keyspace = keyspace.or(client.keyspace.as_deref());
        if let Some(known) = self.known(cql, keyspace) {
            self.check_guardrails(client, &known.planned)?;
            return Ok(known);
        }
        let is_schema_changing = self.is_schema_changing.read();
        self.prepared.check_size(cql)?;
        let planned = self.plan(cql, keyspace)?;
        self.check_guardrails(client, &planned)?;
        let id_keyspace = keyspace.filter(|_| !planned.is_qualified);
        let is_about_access = matches!(planned.plan, Plan::Access(_));
        let prepared = Prepared::new(statement_id(cql, id_keyspace), Arc::new(planned));
        if is_about_access {
            // The text may have a password, which must not get into the table of prepared statements.
            let prepared = Arc::new(prepared);
            self.prepared.renew(prepared.clone());
            return Ok(prepared);
        }
        // The change did not see this statement, so it does not remove it from the table: after a crash, the table could have it with
        // columns that its clients do not know. In memory it is planned again once the schema has changed (`current`).
        if *is_schema_changing {
            return Ok(self.prepared.add_in_memory(prepared));
        }
        Ok(self.prepared.add(prepared, cql, id_keyspace))
    }

    /// The prepared statement of this text, if there is one.
    ///
    /// Compat: a fully qualified text is prepared once for all sessions; its id then does not depend on the keyspace.
    fn known(&self, cql: &str, keyspace: Option<&str>) -> Option<Arc<Prepared>> {
        let epoch = self.store.schema().epoch;
        let is_meant = |known: &Prepared| {
            let planned = &known.planned;
            planned.schema_epoch == epoch && (planned.is_qualified || planned.keyspace.as_deref() == keyspace)
        };
        [None, keyspace]
            .into_iter()
            .filter_map(|keyspace| self.prepared(&statement_id(cql, keyspace)))
            .find(|known| is_meant(known))
    }

    /// The statement prepared under `id`, planned against the current schema; `None` if clients must prepare it again.
    pub fn prepared(&self, id: &[u8]) -> Option<Arc<Prepared>> {
        let id: [u8; 16] = id.try_into().ok()?;
        let found = self.prepared.get(&id).or_else(|| self.restored(&id))?;
        self.current(&found).ok()
    }

    /// Plans a statement again that was evicted from memory; `None` if its text is not in the table, or cannot be planned.
    fn restored(&self, id: &[u8; 16]) -> Option<Arc<Prepared>> {
        let remembered = self.prepared.remembered(id)?;
        match self.plan(&remembered.text, remembered.keyspace.as_deref()) {
            Ok(planned) => {
                let prepared = Arc::new(Prepared::new(*id, Arc::new(planned)));
                self.prepared.renew(prepared.clone());
                Some(prepared)
            }
            Err(_) => {
                self.prepared.forget_on_disk(id);
                None
            }
        }
    }

    /// Executes a prepared statement.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn execute(
        &self,
        client: &mut ClientState,
        prepared: &Arc<Prepared>,
        options: &ExecuteOptions,
    ) -> Result<Executed, Error> {
        again_if_overtaken(|| self.execute_once(client, prepared, options))
    }

    fn execute_once(
        &self,
        client: &mut ClientState,
        prepared: &Arc<Prepared>,
        options: &ExecuteOptions,
    ) -> Result<Executed, Error> {
        let prepared = self.current(prepared)?;
        self.admit(client, &prepared.planned)?;
        let values = bind(&prepared.variables, &options.values, BoundBy::Execute)?;
        let mut executed = self.run(client, &prepared.planned, &values, options)?;
        if let Outcome::Rows(rows) = &mut executed.outcome {
            rows.metadata_id = match &prepared.result_columns {
                Some(columns) if Arc::ptr_eq(columns, &rows.columns) => Some(prepared.result_metadata_id),
                // Compat: the columns of a conditional statement's answer vary, so clients must not cache them.
                None if matches!(prepared.planned.plan, Plan::Modify(_) | Plan::Batch(_)) => None,
                _ => Some(metadata_id(&rows.columns)),
            };
        }
        Ok(remember_keyspace(executed, client))
    }

    /// Executes a protocol batch, all of it or none.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn batch(
        &self,
        client: &mut ClientState,
        kind: BatchKind,
        statements: Vec<(BatchStatement, Values)>,
        options: &ExecuteOptions,
    ) -> Result<Executed, Error> {
        again_if_overtaken(|| self.batch_once(client, kind, &statements, options))
    }

    fn batch_once(
        &self,
        client: &ClientState,
        kind: BatchKind,
        statements: &[(BatchStatement, Values)],
        options: &ExecuteOptions,
    ) -> Result<Executed, Error> {
        let keyspace = options.keyspace.as_deref().or(client.keyspace.as_deref());
        trace::note(|| format!("Preparing {} statements", statements.len()));
        let planned = self.members_of_batch(statements, keyspace)?;
        for same in planned.chunk_by(Arc::ptr_eq) {
            self.admit(client, &same[0])?;
        }
        let masked: Vec<Resource> = planned
            .iter()
            .flat_map(|planned| planned.masked.clone())
            .collect();
        let sight = self.access.sight(&client.identity, &masked)?;
        let values = planned
            .iter()
            .zip(statements)
            .map(|(planned, (_, values))| bind(&planned.variables, values, BoundBy::Batch))
            .collect::<Result<Vec<Cow<'_, [Value]>>, _>>()?;
        let plans = planned
            .iter()
            .map(|planned| planned.plan.modification())
            .collect::<Result<Vec<_>, _>>()?;
        batch::check(kind, plans.iter().copied(), batch::OwnTimestamp::Absent)?;
        let schema = self.store.schema();
        let current = self.options.load();
        let (warnings, calls) = (
            RefCell::default(),
            function_calls(&current.of_all, options.function_results.clone()),
        );
        let level = options.serial_consistency.unwrap_or(Consistency::SERIAL);
        let leveled = self.store.at_level(level);
        let base = Execution {
            sight,
            store: leveled.as_deref().unwrap_or(&*self.store),
            ..self.execution(
                current.of_client(client),
                &schema,
                &[],
                options,
                &warnings,
                &calls,
            )
        };
        let members: Vec<Member<'_>> = plans
            .into_iter()
            .zip(&values)
            .map(|(plan, values)| Member {
                plan,
                execution: Execution { values, ..base },
            })
            .collect();
        let reason = commanding::reason_of(members.iter().map(|member| member.plan));
        let by_log = match (self.store.commands(), reason) {
            (Some(commands), Some(reason)) => {
                let texts = planned.iter().map(|planned| planned.text.clone());
                let statements = texts
                    .zip(&values)
                    .map(|(text, values)| (text, values.to_vec()))
                    .collect();
                let (form, keyspace) = (Form::Batch(kind), commanding::keyspace_of(&planned)?);
                commanding::send(commands, reason, form, statements, keyspace, &members, &base)?
            }
            _ => None,
        };
        let mut executed = match by_log {
            Some(executed) => executed,
            None => batch::execute(kind, &members, base.timestamp_micros(), &base)?,
        };
        executed.warnings.extend(warnings.take());
        Ok(executed)
    }

    /// The plans of the members. Often they are the same prepared statement, which is looked up once.
    fn members_of_batch(
        &self,
        statements: &[(BatchStatement, Values)],
        keyspace: Option<&str>,
    ) -> Result<Vec<Arc<Planned>>, Error> {
        let is_same =
            |left: &(BatchStatement, Values), right: &(BatchStatement, Values)| match (&left.0, &right.0) {
                (BatchStatement::Prepared(left), BatchStatement::Prepared(right)) => Arc::ptr_eq(left, right),
                _ => false,
            };
        let mut planned = Vec::with_capacity(statements.len());
        for same in statements.chunk_by(is_same) {
            let plan = match &same[0].0 {
                BatchStatement::Text(text) => self.planned(text, keyspace)?,
                BatchStatement::Prepared(prepared) => self.current(prepared)?.planned.clone(),
            };
            planned.extend(std::iter::repeat_n(plan, same.len()));
        }
        Ok(planned)
    }

    /// The statement planned against the current schema; an older plan in the cache is replaced.
    ///
    /// # Errors
    /// Its markers or columns changed, and clients must prepare it again.
    fn current(&self, prepared: &Arc<Prepared>) -> Result<Arc<Prepared>, Error> {
        let epoch = self.store.schema().epoch;
        if prepared.planned.schema_epoch == epoch {
            return Ok(prepared.clone());
        }
        let unprepared = || Error::Unprepared {
            id: prepared.id.to_vec(),
        };
        let latest = self.prepared.get(&prepared.id).ok_or_else(unprepared)?;
        if latest.planned.schema_epoch == epoch {
            return Ok(latest);
        }
        let planned = self.plan(&latest.planned.text, latest.planned.keyspace.as_deref());
        let Some(renewed) = planned.ok().and_then(|planned| latest.renewed(Arc::new(planned))) else {
            self.prepared.forget(&latest);
            return Err(unprepared());
        };
        let renewed = Arc::new(renewed);
        self.prepared.renew(renewed.clone());
        Ok(renewed)
    }

    /// The plan of a text, cached or new.
    fn planned(&self, text: &str, keyspace: Option<&str>) -> Result<Arc<Planned>, Error> {
        let known = self.texts.get(&TextRef { keyspace, text });
        if let Some(known) = known
            && known.schema_epoch == self.store.schema().epoch
        {
            return Ok(known);
        }
        let planned = Arc::new(self.plan(text, keyspace)?);
        if text.len() <= TEXT_LEN_KEPT && planned.is_worth_keeping() {
            let key = TextKey {
                keyspace: keyspace.map(str::to_owned),
                text: text.to_owned(),
            };
            self.texts.insert(key, planned.clone());
        }
        Ok(planned)
    }

    fn plan(&self, text: &str, keyspace: Option<&str>) -> Result<Planned, Error> {
        trace::note(|| format!("Parsing {}", ilion_cql::hide_secrets(text)));
        Planned::of(text, keyspace, &*self.store, &self.options.load().of_all)
    }

    fn run(
        &self,
        client: &ClientState,
        planned: &Planned,
        values: &[Value],
        options: &ExecuteOptions,
    ) -> Result<Executed, Error> {
        let before = spectrogram::set_statement(planned.shape.id);
        let executed = match &planned.plan {
            Plan::Schema(_) => self.change_schema(client, planned, options),
            Plan::Access(plan) => self.access.execute(plan, &client.identity, &self.store.schema()),
            _ => self.run_now(client, planned, values, options),
        };
        spectrogram::set_statement(before);
        executed
    }

    /// Executes a schema statement, planned against the current schema, and invalidates the prepared statements that depend
    /// on it.
    fn change_schema(
        &self,
        client: &ClientState,
        planned: &Planned,
        options: &ExecuteOptions,
    ) -> Result<Executed, Error> {
        let _turn = self.schema_turn.lock();
        let _changing = Changing::begin(&self.is_schema_changing);
        let renewed;
        let planned = match planned.schema_epoch == self.store.schema().epoch {
            true => planned,
            false => {
                renewed = self.plan(&planned.text, planned.keyspace.as_deref())?;
                self.admit(client, &renewed)?;
                &renewed
            }
        };
        let Plan::Schema(change) = &planned.plan else {
            return self.run_now(client, planned, &[], options);
        };
        let (mut diffs, mut invalid) = (Vec::new(), Vec::new());
        let mut executed = self.run_with(client, planned, &[], options, |execution| {
            change.execute(execution, |foreseen| {
                diffs = foreseen;
                let changed = Invalidated::by(&diffs);
                if !changed.is_empty() {
                    invalid = self.prepared.invalid(&changed);
                    self.prepared.forget_before_change(&invalid);
                }
            })
        })?;
        self.prepared.forget_after_change(&invalid);
        match self.access.follow(&diffs, &client.identity) {
            Ok(awaited) => executed.awaited = Awaited::both(executed.awaited.take(), awaited),
            Err(error) => {
                tracing::warn!(%error, "the schema has changed, but not the permissions that follow from it");
                executed.warnings.push(format!(
                    "The permissions of the change could not be written: {error}"
                ));
            }
        }
        Ok(executed)
    }

    fn run_now(
        &self,
        client: &ClientState,
        planned: &Planned,
        values: &[Value],
        options: &ExecuteOptions,
    ) -> Result<Executed, Error> {
        if let Some(commands) = self.store.commands() {
            let changes = commanding::changes_of(&planned.plan);
            if let Some(reason) = commanding::reason_of(changes.iter()) {
                return self.run_with(client, planned, values, options, |execution| {
                    let execution = *execution;
                    let member = |plan| Member { plan, execution };
                    let members: Vec<Member<'_>> = changes.iter().map(member).collect();
                    let statements = vec![(planned.text.clone(), values.to_vec())];
                    let keyspace = planned.keyspace.as_deref();
                    let form = Form::Statement;
                    let by_log =
                        commanding::send(commands, reason, form, statements, keyspace, &members, &execution)?;
                    match by_log {
                        Some(executed) => Ok(executed),
                        None => planned.plan.execute(&execution),
                    }
                });
            }
        }
        self.run_with(client, planned, values, options, |execution| {
            planned.plan.execute(execution)
        })
    }

    fn run_with(
        &self,
        client: &ClientState,
        planned: &Planned,
        values: &[Value],
        options: &ExecuteOptions,
        run: impl FnOnce(&Execution<'_>) -> Result<Executed, Error>,
    ) -> Result<Executed, Error> {
        let sight = self.access.sight(&client.identity, &planned.masked)?;
        let schema = self.store.schema();
        let current = self.options.load();
        let (warnings, calls) = (
            RefCell::default(),
            function_calls(&current.of_all, options.function_results.clone()),
        );
        let leveled = self.store.at_level(planned.plan.read_level(options));
        let execution = Execution {
            sight,
            store: leveled.as_deref().unwrap_or(&*self.store),
            ..self.execution(
                current.of_client(client),
                &schema,
                values,
                options,
                &warnings,
                &calls,
            )
        };
        let mut executed = run(&execution)?;
        executed.warnings.extend(warnings.take());
        Ok(executed)
    }

    /// Checks whether the client may execute a statement.
    fn admit(&self, client: &ClientState, planned: &Planned) -> Result<(), Error> {
        self.access.check(&client.identity, &planned.needs)?;
        self.check_guardrails(client, planned)
    }

    fn check_guardrails(&self, client: &ClientState, planned: &Planned) -> Result<(), Error> {
        match &planned.forbidden {
            Some(error) if !client.identity.is_superuser() => Err(error.clone()),
            _ => Ok(()),
        }
    }

    fn execution<'e>(
        &'e self,
        query_options: &'e QueryOptions,
        schema: &'e Arc<ilion_schema::Schema>,
        values: &'e [Value],
        options: &'e ExecuteOptions,
        warnings: &'e RefCell<Vec<String>>,
        calls: &'e FunctionCalls,
    ) -> Execution<'e> {
        Execution {
            store: &*self.store,
            schema,
            values,
            options,
            query_options,
            views: Some(&self.views),
            patience: Some(&self.patience),
            now_secs: options
                .now_secs
                .map_or_else(|| self.store.now_micros().div_euclid(1_000_000), i64::from),
            warnings,
            calls,
            sight: Sight::Clear,
        }
    }
}

/// Sets a flag for as long as it lives.
struct Changing<'f>(&'f RwLock<bool>);

impl<'f> Changing<'f> {
    fn begin(flag: &'f RwLock<bool>) -> Self {
        *flag.write() = true;
        Self(flag)
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        *self.0.write() = false;
    }
}

impl Drop for QueryProcessor {
    fn drop(&mut self) {
        self.views.stop();
    }
}

fn remember_keyspace(executed: Executed, client: &mut ClientState) -> Executed {
    if let Outcome::SetKeyspace(keyspace) = &executed.outcome {
        client.keyspace = Some(keyspace.clone());
    }
    executed
}
