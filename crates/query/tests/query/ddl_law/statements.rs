//! Random schema statements on the objects of a schema.

use std::collections::VecDeque;

use ilion_env::Seeded;
use ilion_schema::{Keyspace, Schema, TableKind, TableSchema, is_system_keyspace};
use ilion_types::{CqlType, TYPE_CLASS_LEN_MAX, UserType};

use super::names::{ODD_NAMES, quoted};

/// A keyspace whose expanded types have more bytes than this is dropped.
const HEAVY: usize = 1 << 20;
const TOO_HEAVY: usize = 24 << 20;

/// The generator of statements.
pub(super) struct Statements {
    pub(super) random: Seeded,
    /// Number of names made so far.
    pub(super) made: u64,
    /// Statements to return first.
    queued: VecDeque<String>,
}

impl Statements {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: Seeded::new(seed ^ 0xDD1),
            made: 0,
            queued: VecDeque::new(),
        }
    }

    pub(super) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[usize::try_from(self.random.below(from.len() as u64)).unwrap()]
    }

    pub(super) fn one_of<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        let at = self.random.below(from.len() as u64);
        from.get(usize::try_from(at).unwrap()).cloned()
    }

    /// Queues drops of keyspaces that would make every check slow: their types take long to print again and again.
    pub(super) fn tidy(&mut self, schema: &Schema) {
        for keyspace in schema.keyspaces.values() {
            if is_system_keyspace(&keyspace.name) {
                continue;
            }
            let weight = weight(keyspace);
            if weight > HEAVY && (weight > TOO_HEAVY || self.random.one_in(3)) {
                let name = quoted_name(&keyspace.name);
                self.queued.push_back(format!("DROP KEYSPACE {name}"));
            }
        }
    }

    pub(super) fn statement(&mut self, schema: &Schema) -> String {
        if let Some(queued) = self.queued.pop_front() {
            return queued;
        }
        let keyspaces: Vec<_> = schema
            .keyspaces
            .values()
            .filter(|keyspace| !is_system_keyspace(&keyspace.name))
            .cloned()
            .collect();
        let Some(keyspace) = self.one_of(&keyspaces).filter(|_| !self.random.one_in(40)) else {
            return self.create_keyspace();
        };
        let ks = quoted_name(&keyspace.name);
        let types: Vec<String> = keyspace
            .types
            .keys()
            .map(|name| ilion_types::quote_type_name(name).into_owned())
            .collect();
        let names: Vec<String> = keyspace.tables.keys().cloned().collect();
        let table = self
            .one_of(&names)
            .and_then(|name| keyspace.tables.get(&name).cloned());
        let is_crowded = names.len() > 12 || types.len() > 16;
        let choice = self.random.below(if is_crowded { 64 } else { 56 });
        match (choice, table) {
            (0..10, _) => self.create_type(&ks, &types, heaviest(&keyspace)),
            (10, _) => self.create_wide_table(&ks, heaviest(&keyspace)),
            (11..26, _) | (_, None) => self.create_table(&ks, &types),
            (26..39, Some(table)) => self.alter_table(choice, &ks, &table, &types),
            (39..44, _) => self.alter_type(choice, &ks, &keyspace, &types),
            (44..50, Some(table)) => self.create_index(&ks, &table),
            (50..52, Some(table)) => self.create_view(&ks, &table),
            (52, _) => {
                let (name, ty) = (self.name(), self.type_name(0, &types));
                format!(
                    "CREATE FUNCTION {ks}.{name} (a {ty}) CALLED ON NULL INPUT RETURNS {ty} LANGUAGE lua AS 'return a'"
                )
            }
            (53, _) => {
                let index = self.any_name(keyspace.indexes.keys());
                format!("DROP INDEX {ks}.{index}")
            }
            (54, _) => {
                let function = self.any_name(keyspace.functions.iter().map(|function| &function.name));
                format!("DROP FUNCTION {ks}.{function}")
            }
            (55, _) if self.random.one_in(4) => format!("DROP KEYSPACE {ks}"),
            (55..58, _) => {
                let name = self.one_of(&types).unwrap_or("t".to_owned());
                format!("DROP TYPE {ks}.{name}")
            }
            (_, Some(table)) => {
                let kind = match table.kind {
                    TableKind::View => "MATERIALIZED VIEW",
                    _ => "TABLE",
                };
                format!("DROP {kind} {ks}.{}", quoted_name(&table.name))
            }
        }
    }

    /// One of the names, quoted; another one if there is none.
    fn any_name<'n>(&mut self, names: impl Iterator<Item = &'n String>) -> String {
        let names: Vec<&String> = names.collect();
        let name = self.one_of(&names);
        quoted_name(name.map_or("none", |name| name))
    }

    fn any_column(&mut self, table: &TableSchema) -> String {
        self.any_name(table.select_order().iter().map(|column| &column.name))
    }

    fn alter_table(&mut self, choice: u64, ks: &str, table: &TableSchema, types: &[String]) -> String {
        let change = match choice {
            26..32 => {
                let (name, ty) = (self.name(), self.type_name(0, types));
                let is_static = if self.random.one_in(5) { " static" } else { "" };
                format!("ADD {name} {ty}{is_static}")
            }
            32..35 => format!("DROP {}", self.any_column(table)),
            35 => {
                let from = self.any_name(key_columns(table));
                format!("RENAME {from} TO {}", self.name())
            }
            _ => format!("WITH {}", self.option()),
        };
        format!("ALTER TABLE {ks}.{} {change}", quoted_name(&table.name))
    }

    fn alter_type(&mut self, choice: u64, ks: &str, keyspace: &Keyspace, types: &[String]) -> String {
        if choice < 43 {
            let (name, field) = (self.one_of(types).unwrap_or("t".to_owned()), self.name());
            let ty = self.type_name(0, types);
            return format!("ALTER TYPE {ks}.{name} ADD {field} {ty}");
        }
        let definitions: Vec<_> = keyspace.types.values().collect();
        let Some(definition) = self.one_of(&definitions) else {
            return format!("DROP TYPE {ks}.t");
        };
        let from = self.any_name(definition.fields.iter().map(|(name, _)| name));
        let name = ilion_types::quote_type_name(&definition.name);
        format!("ALTER TYPE {ks}.{name} RENAME {from} TO {}", self.name())
    }

    fn create_index(&mut self, ks: &str, table: &TableSchema) -> String {
        let column = self.any_column(table);
        let name = if self.random.one_in(2) {
            self.name()
        } else {
            String::new()
        };
        let target = match self.random.below(8) {
            0 => format!("keys({column})"),
            1 => format!("entries({column})"),
            2 => format!("full({column})"),
            3 => format!("values({column})"),
            _ => column,
        };
        let (custom, using) = match self.random.below(4) {
            0 => (" CUSTOM", " USING 'StorageAttachedIndex'"),
            1 => (" CUSTOM", " USING 'org.apache.cassandra.index.sasi.SASIIndex'"),
            2 if self.random.one_in(4) => (" CUSTOM", " USING 'com.example.Index'"),
            _ => ("", ""),
        };
        let table = quoted_name(&table.name);
        format!("CREATE{custom} INDEX {name} ON {ks}.{table} ({target}){using}")
    }

    fn create_view(&mut self, ks: &str, table: &TableSchema) -> String {
        let view = self.name();
        let mut names: Vec<String> = key_columns(table).map(|name| quoted_name(name)).collect();
        if let Some(column) = table.regulars().next().filter(|_| self.random.one_in(2)) {
            names.insert(0, quoted_name(&column.name));
        }
        let first = self.random.below(names.len() as u64);
        names.rotate_left(usize::try_from(first).unwrap());
        let conditions: Vec<String> = names.iter().map(|name| format!("{name} IS NOT NULL")).collect();
        format!(
            "CREATE MATERIALIZED VIEW {ks}.{view} AS SELECT * FROM {ks}.{} WHERE {} PRIMARY KEY ({})",
            quoted_name(&table.name),
            conditions.join(" AND "),
            names.join(", ")
        )
    }

    fn create_keyspace(&mut self) -> String {
        let name = match self.random.below(4) {
            0 => self.name(),
            1 => "\"Ab\"".to_owned(),
            2 => "a".to_owned(),
            _ => "b".to_owned(),
        };
        format!(
            "CREATE KEYSPACE {name} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        )
    }

    fn create_type(&mut self, ks: &str, types: &[String], heaviest: Option<String>) -> String {
        let name = match self.random.one_in(6) {
            true => quoted(self.pick(&ODD_NAMES)),
            false => self.name(),
        };
        // Four uses of the same type: types of types grow large.
        let inner = match heaviest.filter(|_| !self.random.one_in(4)) {
            Some(heaviest) => Some(heaviest),
            None => self.one_of(types),
        };
        let fields: Vec<String> = match inner.filter(|_| self.random.one_in(2)) {
            Some(inner) => ["a", "b", "c", "d"]
                .map(|field| format!("{field} frozen<{inner}>"))
                .to_vec(),
            None => (0..1 + self.random.below(3))
                .map(|_| format!("{} {}", self.name(), self.type_name(0, types)))
                .collect(),
        };
        format!("CREATE TYPE {ks}.{name} ({})", fields.join(", "))
    }

    /// A table with as much of the largest type as it may have, or more.
    fn create_wide_table(&mut self, ks: &str, heaviest: Option<String>) -> String {
        let ty = heaviest.map_or("int".to_owned(), |name| format!("frozen<{name}>"));
        let columns: Vec<String> = (0..1 + self.random.below(24))
            .map(|number| format!("c{number} {ty}"))
            .collect();
        let name = self.name();
        format!(
            "CREATE TABLE {ks}.{name} (k int PRIMARY KEY, {})",
            columns.join(", ")
        )
    }

    fn create_table(&mut self, ks: &str, types: &[String]) -> String {
        let key = match self.random.one_in(6) {
            true => self.type_name(1, types),
            false => "int".to_owned(),
        };
        let mut columns = vec![format!("k {key}")];
        let mut primary_key = "k".to_owned();
        let mut order = String::new();
        if self.random.one_in(2) {
            let clustering = match self.random.one_in(3) {
                true => self.type_name(1, types),
                false => "text".to_owned(),
            };
            columns.push(format!("c {clustering}"));
            primary_key.push_str(", c");
            if self.random.one_in(3) {
                order = "CLUSTERING ORDER BY (c DESC)".to_owned();
            }
        }
        for _ in 0..self.random.below(4) {
            let is_static = if self.random.one_in(6) { " static" } else { "" };
            columns.push(format!("{} {}{is_static}", self.name(), self.type_name(0, types)));
        }
        let mut with: Vec<String> = Vec::from_iter((!order.is_empty()).then_some(order));
        if self.random.one_in(3) {
            with.push(self.option());
        }
        let with = match with.is_empty() {
            true => String::new(),
            false => format!(" WITH {}", with.join(" AND ")),
        };
        format!(
            "CREATE TABLE {ks}.{} ({}, PRIMARY KEY ({primary_key})){with}",
            self.name(),
            columns.join(", ")
        )
    }
}

fn quoted_name(name: &str) -> String {
    ilion_types::quote_name(name).into_owned()
}

fn key_columns(table: &TableSchema) -> impl Iterator<Item = &String> {
    table
        .partition_key()
        .chain(table.clustering())
        .map(|column| &column.name)
}

/// The user type that is longest in expanded form.
fn heaviest(keyspace: &Keyspace) -> Option<String> {
    let of = |definition: &UserType| -> usize {
        let fields = definition.fields.iter();
        fields.map(|(name, ty)| name.len() + len_of(ty)).sum()
    };
    let heaviest = keyspace.types.values().max_by_key(|definition| of(definition))?;
    Some(ilion_types::quote_type_name(&heaviest.name).into_owned())
}

/// Approximate length of its types and tables, with all types expanded.
fn weight(keyspace: &Keyspace) -> usize {
    let tables = keyspace.tables.values();
    let of_columns = tables.flat_map(|table| table.every_column());
    let of_columns = of_columns.map(|column| column.name.len() + len_of(&column.ty));
    let fields = keyspace.types.values().flat_map(|definition| &definition.fields);
    let of_fields = fields.map(|(name, ty)| name.len() + len_of(ty));
    of_columns.chain(of_fields).sum()
}

fn len_of(ty: &CqlType) -> usize {
    ty.class_len_within(TYPE_CLASS_LEN_MAX)
        .unwrap_or(TYPE_CLASS_LEN_MAX)
}
