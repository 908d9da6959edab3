//! What planning and executing are given: the schema, the session's keyspace, the bind markers and their values.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;

use ilion_cql::Marker;
use ilion_cql::ast::QualifiedName;
use ilion_env::patience::Patience;
use ilion_rows::{DecoratedKey, Mutation};
use ilion_schema::{Applied, Keyspace, Schema, SchemaChange, TableId, TableSchema};
use ilion_script::CallBudget;

use crate::{ColumnSpec, Error, ExecuteOptions, LogPosition, QueryOptions, Store, Value, WriteType};

/// What planning a statement needs.
pub(crate) struct PlanContext<'a> {
    pub schema: &'a Arc<Schema>,
    pub store: &'a dyn Store,
    pub options: &'a QueryOptions,
    /// Of names that have none.
    pub keyspace: Option<&'a str>,
    marker_names: &'a [Marker],
    /// What each bind marker receives, as far as planning came.
    markers: RefCell<Vec<Option<ColumnSpec>>>,
    /// How often it was asked which function a call means.
    pub resolutions: Cell<u32>,
    functions: RefCell<BTreeSet<(String, String)>>,
}

impl<'a> PlanContext<'a> {
    /// A context in which nothing was planned yet.
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
        }
    }

    /// Remembers that the statement may call a function or an aggregate of a user.
    pub fn calls(&self, keyspace: &str, function: &str) {
        let called = (keyspace.to_owned(), function.to_owned());
        self.functions.borrow_mut().insert(called);
    }

    /// Functions and aggregates of users that the statement may call, by keyspace and name.
    pub fn functions(&self) -> Vec<(String, String)> {
        self.functions.take().into_iter().collect()
    }

    /// The keyspace that a name is in.
    ///
    /// # Errors
    /// Neither the name nor the session says one.
    pub fn keyspace_of<'n>(&'n self, name: &'n QualifiedName) -> Result<&'n str, Error> {
        name.keyspace.as_deref().or(self.keyspace).ok_or_else(no_keyspace)
    }

    /// The keyspace of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn keyspace_named(&self, name: &str) -> Result<&Arc<Keyspace>, Error> {
        self.schema
            .keyspace(name)
            .ok_or_else(|| Error::invalid(format!("keyspace {name} does not exist")))
    }

    /// The table of this name, with Cassandra's errors.
    ///
    /// # Errors
    /// No keyspace is said, or there is no such keyspace or table.
    pub fn table(&self, name: &QualifiedName) -> Result<Arc<TableSchema>, Error> {
        let keyspace = self.keyspace_named(self.keyspace_of(name)?)?;
        match keyspace.tables.get(&name.name) {
            Some(table) => Ok(table.clone()),
            None => Err(Error::invalid(format!("table {} does not exist", name.name))),
        }
    }

    /// Remembers what marker `index` receives. A named marker keeps its own name.
    pub fn mark(&self, index: usize, mut spec: ColumnSpec) {
        if let Some(name) = self
            .marker_names
            .get(index)
            .and_then(|marker| marker.name.as_deref())
        {
            spec.name = Arc::from(name);
        }
        if let Some(slot) = self.markers.borrow_mut().get_mut(index) {
            *slot = Some(spec);
        }
    }

    /// True if there are bind markers in the statement.
    pub fn has_markers(&self) -> bool {
        !self.marker_names.is_empty()
    }

    /// What the markers receive, in the order of the text.
    ///
    /// # Errors
    /// A marker was not planned, which is our own fault.
    pub fn variables(&self) -> Result<Vec<ColumnSpec>, Error> {
        let markers = self.markers.take();
        markers
            .into_iter()
            .enumerate()
            .map(|(index, spec)| {
                spec.ok_or_else(|| Error::ServerError(format!("bind marker {index} was left without a type")))
            })
            .collect()
    }
}

/// Compat: `RequestValidations` and `ClientState` of Cassandra 5.0.
pub(crate) fn no_keyspace() -> Error {
    Error::invalid("No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename")
}

/// Carries out what concerns materialized views as well. A trait, so that those who execute statements need not know how views
/// are kept.
pub(crate) trait KeepViews {
    /// Applies mutations together with what they mean for views. `locked` are the partitions that the caller holds.
    ///
    /// # Errors
    /// Nothing was applied.
    fn apply(
        &self,
        execution: &Execution<'_>,
        mutations: Vec<Mutation>,
        locked: &[(TableId, DecoratedKey)],
        write_type: WriteType,
    ) -> Result<Option<LogPosition>, Error>;

    /// Carries out a change of the schema while no write is under way that would not know of it.
    fn change_schema(&self, change: &SchemaChange, carry_out: &dyn Fn() -> Altered) -> Altered;

    /// Removes all data of a table and of its views. A crash in between leaves views that are built anew.
    fn truncate(&self, table: TableId, execution: &Execution<'_>) -> Result<(), Error>;
}

/// A change of the schema that was carried out; `None` if there was nothing to change.
pub(crate) type Altered = Result<Option<Applied>, Error>;

/// What executing a statement needs beside its plan.
#[derive(Clone, Copy)]
pub(crate) struct Execution<'a> {
    pub store: &'a dyn Store,
    pub schema: &'a Arc<Schema>,
    /// One for each bind marker.
    pub values: &'a [Value],
    pub options: &'a ExecuteOptions,
    pub query_options: &'a QueryOptions,
    /// The clock that TTLs are measured by: the request's if it brought one.
    pub now_secs: i64,
    /// Who keeps materialized views up to date; `None` where only tables without views are written.
    pub views: Option<&'a dyn KeepViews>,
    /// Who ends long reads; `None` where they may last.
    pub patience: Option<&'a Arc<dyn Patience>>,
    /// Sentences for the client.
    pub warnings: &'a RefCell<Vec<String>>,
    /// What calls of functions of users may still take.
    pub calls: &'a CallBudget,
}

impl Execution<'_> {
    /// The value of a bind marker.
    ///
    /// # Errors
    /// There is none: values were not counted, which is our own fault.
    pub fn value(&self, index: usize) -> Result<&Value, Error> {
        self.values
            .get(index)
            .ok_or_else(|| Error::ServerError(format!("bind marker {index} has no value")))
    }

    /// The timestamp of a write that says none itself; another one at each call if the request has none.
    pub fn timestamp_micros(&self) -> i64 {
        self.options
            .timestamp_micros
            .unwrap_or_else(|| self.store.unique_micros())
    }

    /// Says a sentence to the client.
    pub fn warn(&self, sentence: String) {
        self.warnings.borrow_mut().push(sentence);
    }
}
