//! The inputs of planning and executing: the schema, the session's keyspace, the bind markers and their values.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;

use ilion_auth::Resource;
use ilion_cql::Marker;
use ilion_cql::ast::QualifiedName;
use ilion_env::patience::Patience;
use ilion_rows::{DecoratedKey, Mutation};
use ilion_schema::{Applied, Keyspace, Schema, SchemaChange, TableId, TableSchema};
use ilion_types::CqlType;

use crate::access::function_resource;
use crate::function_calls::FunctionCalls;
use crate::{Awaited, ColumnSpec, Error, ExecuteOptions, QueryOptions, Store, Value, WriteType};

/// What planning a statement needs.
pub(crate) struct PlanContext<'a> {
    pub schema: &'a Arc<Schema>,
    pub store: &'a dyn Store,
    pub options: &'a QueryOptions,
    /// The keyspace of unqualified names.
    pub keyspace: Option<&'a str>,
    marker_names: &'a [Marker],
    /// The spec of each bind marker; `None` until its term is planned.
    markers: RefCell<Vec<Option<ColumnSpec>>>,
    /// How many calls of functions were resolved so far.
    pub resolutions: Cell<u32>,
    functions: RefCell<BTreeSet<(String, String)>>,
    executed: RefCell<BTreeSet<Resource>>,
    forbidden: RefCell<Option<Error>>,
}

impl<'a> PlanContext<'a> {
    /// A context before anything is planned.
    pub fn new(
        store: &'a dyn Store,
        schema: &'a Arc<Schema>,
        options: &'a QueryOptions,
        keyspace: Option<&'a str>,
        markers: &'a [Marker],
    ) -> Self {
        Self {
            schema,
            store,
            options,
            keyspace,
            marker_names: markers,
            markers: RefCell::new(vec![None; markers.len()]),
            resolutions: Cell::default(),
            functions: RefCell::default(),
            executed: RefCell::default(),
            forbidden: RefCell::default(),
        }
    }

    /// Keeps the first error of a guardrail for the execution. Clients share plans, and guardrails do not apply to superusers.
    pub fn forbid(&self, checked: Result<(), Error>) {
        let mut forbidden = self.forbidden.borrow_mut();
        *forbidden = forbidden.take().or(checked.err());
    }

    /// The error for clients that are not superusers, if a guardrail forbids the statement.
    pub fn forbidden(&self) -> Option<Error> {
        self.forbidden.take()
    }

    /// Records that the statement may call a user-defined function or aggregate.
    pub fn calls(&self, keyspace: &str, function: &str) {
        let called = (keyspace.to_owned(), function.to_owned());
        self.functions.borrow_mut().insert(called);
    }

    /// Records that the statement calls this user-defined function or aggregate.
    pub fn executes(&self, keyspace: &str, function: &str, argument_types: &[CqlType]) {
        let function = function_resource(keyspace, function, argument_types);
        self.executed.borrow_mut().insert(function);
    }

    /// The user-defined functions and aggregates that the statement calls.
    pub fn executed(&self) -> Vec<Resource> {
        self.executed.take().into_iter().collect()
    }

    /// User-defined functions and aggregates that the statement may call, by keyspace and name.
    pub fn functions(&self) -> Vec<(String, String)> {
        self.functions.take().into_iter().collect()
    }

    /// The keyspace of a name.
    ///
    /// # Errors
    /// Neither the name nor the session has a keyspace.
    pub fn keyspace_of<'n>(&'n self, name: &'n QualifiedName) -> Result<&'n str, Error> {
        name.keyspace
            .as_deref()
            .or(self.keyspace)
            .ok_or_else(Error::no_keyspace)
    }

    /// The keyspace of this name.
    ///
    /// # Errors
    /// The keyspace does not exist.
    pub fn keyspace_named(&self, name: &str) -> Result<&Arc<Keyspace>, Error> {
        self.schema
            .keyspace(name)
            .ok_or_else(|| Error::invalid(format!("keyspace {name} does not exist")))
    }

    /// The table of this name.
    ///
    /// # Errors
    /// No keyspace is given, or the keyspace or table does not exist.
    pub fn table(&self, name: &QualifiedName) -> Result<Arc<TableSchema>, Error> {
        let keyspace = self.keyspace_named(self.keyspace_of(name)?)?;
        match keyspace.tables.get(&name.name) {
            Some(table) => Ok(table.clone()),
            None => Err(Error::invalid(format!("table {} does not exist", name.name))),
        }
    }

    /// Sets the receiver of marker `index`.
    pub fn mark(&self, index: usize, receiver: ColumnSpec) {
        if let Some(slot) = self.markers.borrow_mut().get_mut(index) {
            *slot = Some(receiver);
        }
    }

    /// True if the statement has bind markers.
    pub fn has_markers(&self) -> bool {
        !self.marker_names.is_empty()
    }

    /// The receivers of the markers, in the order of the text.
    ///
    /// # Errors
    /// A marker was not planned, which is a bug.
    pub fn receivers(&self) -> Result<Vec<ColumnSpec>, Error> {
        let markers = self.markers.take();
        markers
            .into_iter()
            .enumerate()
            .map(|(index, receiver)| {
                receiver
                    .ok_or_else(|| Error::ServerError(format!("bind marker {index} was left without a type")))
            })
            .collect()
    }

    /// The markers as PREPARE describes them: each has the type of its receiver, and its own name if it has one, else the receiver's.
    pub fn variables(&self, mut receivers: Vec<ColumnSpec>) -> Vec<ColumnSpec> {
        for (receiver, marker) in receivers.iter_mut().zip(self.marker_names) {
            if let Some(name) = &marker.name {
                receiver.name = Arc::from(name.as_str());
            }
        }
        receivers
    }
}

/// Applies writes and schema changes together with their effects on materialized views. A trait, so that the modules that
/// execute statements do not depend on `views`.
pub(crate) trait KeepViews {
    /// Applies mutations together with the updates of views that follow from them. `locked` are the partitions that the caller
    /// has locked.
    ///
    /// # Errors
    /// If it fails, nothing was applied.
    fn apply(
        &self,
        execution: &Execution<'_>,
        mutations: Vec<Mutation>,
        locked: &[(TableId, DecoratedKey)],
        write_type: WriteType,
    ) -> Result<Option<Awaited>, Error>;

    /// Runs `carry_out` while no write is in progress that was planned with the old views.
    fn change_schema(&self, change: &SchemaChange, carry_out: &dyn Fn() -> Altered) -> Altered;

    /// Removes all data of a table and of its views. After a crash in the middle, the views are built again.
    fn truncate(&self, table: TableId) -> Result<(), Error>;
}

/// The result of a schema change; `None` if there was nothing to change.
pub(crate) type Altered = Result<Option<Applied>, Error>;

/// Whether an execution shows values as they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Values are shown as they are stored.
    Clear,
    /// Values of masked columns are masked.
    Masked,
}

/// The inputs of executing a statement, beside its plan.
#[derive(Clone, Copy)]
pub(crate) struct Execution<'a> {
    pub store: &'a dyn Store,
    pub schema: &'a Arc<Schema>,
    /// One value for each bind marker.
    pub values: &'a [Value],
    pub options: &'a ExecuteOptions,
    pub query_options: &'a QueryOptions,
    /// The current time for TTLs, in seconds since 1970: the request's, if it has one.
    pub now_secs: i64,
    /// Keeps materialized views up to date; `None` where only tables without views are written.
    pub views: Option<&'a dyn KeepViews>,
    /// Ends long reads; `None` where a read may take any time.
    pub patience: Option<&'a Arc<dyn Patience>>,
    /// Warnings for the client.
    pub warnings: &'a RefCell<Vec<String>>,
    /// The calls of user-defined functions.
    pub calls: &'a FunctionCalls,
    /// Whether masked columns are shown as they are stored.
    pub sight: Sight,
}

impl Execution<'_> {
    /// The value of a bind marker.
    ///
    /// # Errors
    /// The value is missing. That is a bug: `bind` has not counted the values.
    pub fn value(&self, index: usize) -> Result<&Value, Error> {
        self.values
            .get(index)
            .ok_or_else(|| Error::ServerError(format!("bind marker {index} has no value")))
    }

    /// The current time for TTLs as SSTables store it.
    pub fn ttl_now_secs(&self) -> u32 {
        u32::try_from(self.now_secs.max(0)).unwrap_or(u32::MAX - 1)
    }

    /// The timestamp of a write without one of its own. If the request has none either, each call returns a new one.
    pub fn timestamp_micros(&self) -> i64 {
        self.options
            .timestamp_micros
            .unwrap_or_else(|| self.store.unique_micros())
    }

    /// Adds a warning for the client.
    pub fn warn(&self, sentence: String) {
        self.warnings.borrow_mut().push(sentence);
    }
}
