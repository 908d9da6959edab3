//! Rows to keyspaces. Types are decoded first, since all other objects use them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use ilion_types::{CqlType, TYPE_DEPTH_MAX, UserType};

use super::SchemaRow;
use super::changes::is_virtual;
use super::compare::missing_rows;
use super::decode_table::{Columns, decode_table, decode_view};
use crate::names::LOCAL_KEYSPACES;
use crate::system::Own;
use crate::{
    AggregateSchema, Error, FunctionSchema, IndexKind, IndexSchema, Keyspace, Release, Replication, Schema,
    TableId, TriggerSchema,
};

/// The schema at the start of a node.
#[derive(Debug)]
pub struct LoadedSchema {
    /// The objects in the rows, and the server's own keyspaces.
    pub schema: Schema,
    /// The objects that cannot be decoded.
    pub faults: Vec<SchemaFault>,
    /// The rows of the server's own keyspaces that are not stored, or not as they should be.
    pub missing: Vec<SchemaRow>,
}

impl Schema {
    /// The schema at the start of a node: its own keyspaces as the release defines them, and the objects in the rows. Rows of
    /// the node's own keyspaces are ignored; missing tables of the replicated ones are added.
    ///
    /// Objects that cannot be decoded are left out and returned, for two reasons. One bad object must not stop the node. And a replay of
    /// the commit log sees rows of different times: a part of a later DROP may already be on disk.
    pub fn from_rows_in_part(release: Release, rows: impl IntoIterator<Item = SchemaRow>) -> LoadedSchema {
        let own = Own::of(release);
        let mut stored = by_keyspace(rows);
        let mut missing = Vec::new();
        // Own keyspaces that are as they were made need not be decoded.
        for (name, made) in &own.schema.keyspaces {
            let rows = stored.remove(name).unwrap_or_default();
            let wanted = own.rows(name);
            let lacking = missing_rows(&rows, wanted);
            let is_as_made = LOCAL_KEYSPACES.contains(&name.as_str())
                || rows.is_empty()
                || (lacking.is_empty() && rows.len() == wanted.len());
            if !is_as_made {
                stored.insert(name.clone(), rows);
            } else if !is_virtual(made) {
                missing.extend(lacking.into_iter().cloned());
            }
        }
        let (mut schema, faults) = decode_keyspaces(&stored);
        schema.release = release;
        for (name, made) in &own.schema.keyspaces {
            let keyspace = schema
                .keyspaces
                .entry(name.clone())
                .or_insert_with(|| made.clone());
            if !Arc::ptr_eq(keyspace, made) {
                let keyspace = Arc::make_mut(keyspace);
                for (name, table) in &made.tables {
                    let stored = keyspace.tables.entry(name.clone());
                    stored.or_insert_with(|| table.clone());
                }
            }
            if let Some(rows) = stored.get(name) {
                let wanted = own.rows_of(keyspace);
                missing.extend(missing_rows(rows, &wanted).into_iter().cloned());
            }
        }
        LoadedSchema {
            schema: schema.sealed(0),
            faults,
            missing,
        }
    }
}

/// An object whose rows cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaFault {
    /// Its keyspace.
    pub keyspace: String,
    /// Its kind: `keyspace`, `table`, `view`, `type`, `function`, `aggregate`, `index` or `trigger`.
    pub kind: &'static str,
    /// Its name, as far as it can be decoded.
    pub name: String,
    /// The id of a table or view, if it can be decoded.
    pub id: Option<TableId>,
    pub error: Error,
}

impl SchemaFault {
    fn of(row: &SchemaRow, error: Error) -> Self {
        let (kind, place) = match row.table {
            "tables" => ("table", 0),
            "views" => ("view", 0),
            "types" => ("type", 0),
            "functions" => ("function", 0),
            "aggregates" => ("aggregate", 0),
            "indexes" => ("index", 1),
            "triggers" => ("trigger", 1),
            _ => ("keyspace", 0),
        };
        let name = match (kind, row.clustering.get(place)) {
            ("keyspace", _) | (_, None) => row.keyspace.clone(),
            (_, Some(name)) => String::from_utf8_lossy(name).into_owned(),
        };
        Self {
            keyspace: row.keyspace.clone(),
            kind,
            name,
            id: row.uuid("id").ok().flatten().map(TableId),
            error,
        }
    }
}

/// Collects the objects that cannot be decoded.
#[derive(Default)]
struct Faults(Vec<SchemaFault>);

impl Faults {
    fn take<T>(&mut self, row: &SchemaRow, decoded: Result<T, Error>) -> Option<T> {
        decoded
            .map_err(|error| self.0.push(SchemaFault::of(row, error)))
            .ok()
    }
}

/// The schema of these rows alone: the server's own keyspaces are not added. It has no version.
///
/// # Errors
/// Rows cannot be decoded, or contradict each other.
pub(crate) fn decode_schema(rows: impl IntoIterator<Item = SchemaRow>) -> Result<Schema, Error> {
    let (schema, faults) = decode_keyspaces(&by_keyspace(rows));
    match faults.into_iter().next() {
        Some(fault) => Err(fault.error),
        None => Ok(schema),
    }
}

fn by_keyspace(rows: impl IntoIterator<Item = SchemaRow>) -> BTreeMap<String, Vec<SchemaRow>> {
    let mut grouped: BTreeMap<String, Vec<SchemaRow>> = BTreeMap::new();
    for row in rows {
        match grouped.get_mut(&row.keyspace) {
            Some(rows) => rows.push(row),
            None => drop(grouped.insert(row.keyspace.clone(), vec![row])),
        }
    }
    grouped
}

fn decode_keyspaces(by_keyspace: &BTreeMap<String, Vec<SchemaRow>>) -> (Schema, Vec<SchemaFault>) {
    let mut schema = Schema::default();
    let mut faults = Faults::default();
    for (name, rows) in by_keyspace {
        // A concurrent write may leave rows of a dropped keyspace. A keyspace exists only if it has its own row.
        if let Some(row) = rows.iter().find(|row| row.table == "keyspaces") {
            let keyspace = decode_keyspace(name, row, rows, &mut faults);
            if let Some(keyspace) = faults.take(row, keyspace) {
                schema.keyspaces.insert(name.clone(), Arc::new(keyspace));
            }
        }
    }
    (schema, faults.0)
}

fn decode_keyspace(
    name: &str,
    row: &SchemaRow,
    rows: &[SchemaRow],
    faults: &mut Faults,
) -> Result<Keyspace, Error> {
    let options = row.required("replication", row.text_map("replication")?)?;
    let durable_writes = row.boolean("durable_writes").unwrap_or(true);
    let mut keyspace = Keyspace::new(name, Replication { options }, durable_writes);
    keyspace.types = decode_types(name, rows, faults)?;
    let columns = Columns::of(rows)?;
    for row in rows {
        let decoded = decode_object(row, &columns, &mut keyspace);
        faults.take(row, decoded);
    }
    keyspace.sort_functions();
    keyspace.complete_views();
    Ok(keyspace)
}

/// Adds the object of one row.
fn decode_object(row: &SchemaRow, columns: &Columns<'_>, keyspace: &mut Keyspace) -> Result<(), Error> {
    match row.table {
        "tables" => {
            let table = decode_table(row, columns, keyspace)?;
            keyspace.tables.insert(table.name.clone(), table);
        }
        "views" => {
            let (view, table) = decode_view(row, columns, keyspace)?;
            keyspace.tables.insert(table.name.clone(), table);
            keyspace.views.insert(view.name.clone(), view);
        }
        "indexes" => {
            let index = decode_index(row)?;
            keyspace.indexes.insert(index.name.clone(), Arc::new(index));
        }
        "triggers" => keyspace.triggers.push(Arc::new(decode_trigger(row)?)),
        "functions" => {
            let function = decode_function(row, keyspace)?;
            keyspace.functions.push(Arc::new(function));
        }
        "aggregates" => {
            let aggregate = decode_aggregate(row, keyspace)?;
            keyspace.aggregates.push(Arc::new(aggregate));
        }
        _ => {}
    }
    Ok(())
}

fn decode_types(
    keyspace: &str,
    rows: &[SchemaRow],
    faults: &mut Faults,
) -> Result<BTreeMap<String, Arc<UserType>>, Error> {
    let rows: BTreeMap<String, &SchemaRow> = rows
        .iter()
        .filter(|row| row.table == "types")
        .map(|row| Ok((row.key_text(0)?, row)))
        .collect::<Result<_, Error>>()?;
    let resolver = TypeResolver {
        keyspace,
        rows: &rows,
        progress: RefCell::default(),
        depth: Cell::default(),
        error: RefCell::default(),
    };
    for (name, row) in &rows {
        resolver.find(name);
        if let Some(error) = resolver.error.take() {
            faults.take(row, Err::<(), _>(error));
        }
    }
    let resolved = resolver.progress.into_inner();
    Ok(resolved
        .into_iter()
        .filter_map(|(name, definition)| Some((name, definition?)))
        .collect())
}

/// Resolves user types that use each other, in any order.
struct TypeResolver<'a> {
    keyspace: &'a str,
    rows: &'a BTreeMap<String, &'a SchemaRow>,
    /// Resolved types; `None` for a type in progress. If that is met again, the types form a cycle.
    progress: RefCell<BTreeMap<String, Option<Arc<UserType>>>>,
    /// Number of types in progress.
    depth: Cell<usize>,
    error: RefCell<Option<Error>>,
}

impl TypeResolver<'_> {
    fn find(&self, name: &str) -> Option<Arc<UserType>> {
        if let Some(known) = self.progress.borrow().get(name) {
            return known.clone();
        }
        let row = self.rows.get(name)?;
        self.progress.borrow_mut().insert(name.to_owned(), None);
        self.depth.set(self.depth.get() + 1);
        let decoded = self.decode(name, row);
        self.depth.set(self.depth.get() - 1);
        match decoded {
            Ok(definition) => {
                let definition = Arc::new(definition);
                self.progress
                    .borrow_mut()
                    .insert(name.to_owned(), Some(definition.clone()));
                Some(definition)
            }
            Err(error) => {
                self.error.borrow_mut().get_or_insert(error);
                None
            }
        }
    }

    fn decode(&self, name: &str, row: &SchemaRow) -> Result<UserType, Error> {
        if self.depth.get() > TYPE_DEPTH_MAX {
            return Err(row.corrupt(format!("types nested in at most {TYPE_DEPTH_MAX} levels")));
        }
        let names = row.required("field_names", row.texts("field_names")?)?;
        let types = row.required("field_types", row.texts("field_types")?)?;
        if names.len() != types.len() {
            return Err(row.corrupt("as many field types as names"));
        }
        let parse = |text: &String| {
            CqlType::parse_cql(text, self.keyspace, &|inner| self.find(inner))
                .map_err(|refused| row.corrupt(format!("a type, not {text} ({refused})")))
        };
        let types = types.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        types.iter().try_for_each(|ty| row.check_limits(ty))?;
        Ok(UserType {
            keyspace: self.keyspace.to_owned(),
            name: name.to_owned(),
            fields: names.into_iter().zip(types).collect(),
        })
    }
}

fn decode_index(row: &SchemaRow) -> Result<IndexSchema, Error> {
    let kind = match row.text("kind")?.as_deref() {
        Some("KEYS") => IndexKind::Keys,
        Some("COMPOSITES") => IndexKind::Composites,
        Some("CUSTOM") => IndexKind::Custom,
        _ => return Err(row.corrupt("KEYS, COMPOSITES or CUSTOM in kind")),
    };
    Ok(IndexSchema {
        name: row.key_text(1)?,
        table: row.key_text(0)?,
        kind,
        options: row.text_map("options")?.unwrap_or_default(),
    })
}

fn decode_trigger(row: &SchemaRow) -> Result<TriggerSchema, Error> {
    Ok(TriggerSchema {
        name: row.key_text(1)?,
        table: row.key_text(0)?,
        options: row.text_map("options")?.unwrap_or_default(),
    })
}

/// The argument types in the clustering of functions and aggregates.
fn argument_types(row: &SchemaRow, keyspace: &Keyspace) -> Result<Vec<CqlType>, Error> {
    let bytes = row
        .clustering
        .get(1)
        .ok_or_else(|| row.corrupt("a longer clustering"))?;
    row.text_list(bytes)?
        .iter()
        .map(|text| row.parse_type(text, keyspace))
        .collect()
}

fn decode_function(row: &SchemaRow, keyspace: &Keyspace) -> Result<FunctionSchema, Error> {
    let types = argument_types(row, keyspace)?;
    let names = row.texts("argument_names")?.unwrap_or_default();
    if names.len() != types.len() {
        return Err(row.corrupt("as many argument names as types"));
    }
    let return_type = row.required("return_type", row.text("return_type")?)?;
    Ok(FunctionSchema {
        name: row.key_text(0)?,
        arguments: names.into_iter().zip(types).collect(),
        body: row.text("body")?.unwrap_or_default(),
        called_on_null_input: row.boolean("called_on_null_input").unwrap_or_default(),
        language: row.text("language")?.unwrap_or_default(),
        return_type: row.parse_type(&return_type, keyspace)?,
    })
}

fn decode_aggregate(row: &SchemaRow, keyspace: &Keyspace) -> Result<AggregateSchema, Error> {
    let return_type = row.required("return_type", row.text("return_type")?)?;
    let state_type = row.required("state_type", row.text("state_type")?)?;
    Ok(AggregateSchema {
        name: row.key_text(0)?,
        argument_types: argument_types(row, keyspace)?,
        state_func: row.required("state_func", row.text("state_func")?)?,
        state_type: row.parse_type(&state_type, keyspace)?,
        final_func: row.text("final_func")?,
        initcond: row.text("initcond")?,
        return_type: row.parse_type(&return_type, keyspace)?,
    })
}
