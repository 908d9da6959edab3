//! Schema changes in a notation: their effects and refusals.
//!
//! ```text
//! apply                              one change; the first line says which, the others are its parts
//! create table ks.t [if]
//! k int pk
//! c text ck desc
//! v text [static]
//! with comment=x
//! with compaction.class=LeveledCompactionStrategy
//! ----
//! created table ks.t                 the diffs, or the error and its code
//!
//! describe                           the statement that creates a table, view or keyspace
//! ks.t
//! ----
//! CREATE TABLE ...
//! ```
//!
//! `REWRITE=1 cargo test -p ilion-schema` writes the answers; read the diff.

#![expect(clippy::unwrap_used, reason = "a mistake in a test file is to stop the test")]

use ilion_schema::describe::{Internals, describe_keyspace_elements, describe_table_elements};
use ilion_schema::{
    ClusteringOrder, CopyTable, CreateAggregate, CreateFunction, CreateIndex, CreateTable, CreateView, Diff,
    DropFunction, DropObject, Error, IndexPart, IndexTarget, NewColumn, Properties, PropertyValue, Schema,
    SchemaChange, TableAlteration, TypeAlteration,
};
use ilion_types::CqlType;

const NOW_MICROS: i64 = 1_700_000_000_000_000;

#[test]
fn changes_do_what_the_files_say() {
    datadriven::walk("testdata", |file| {
        let mut schema = Schema::with_system();
        file.run(|case| match case.directive.as_str() {
            "apply" => apply(&mut schema, case.input.trim_end()),
            "describe" => describe(&schema, case.input.trim()),
            other => panic!("unknown directive {other}"),
        });
    });
}

fn apply(schema: &mut Schema, input: &str) -> String {
    let change = parse(schema, input);
    match schema.apply(&change, NOW_MICROS) {
        Err(refused) => format!("{}: {refused}\n", code(&refused)),
        Ok(applied) => {
            let event = applied.event(&change);
            assert_eq!(event.is_some(), !applied.diffs.is_empty());
            assert_eq!(
                applied.schema.version != schema.version,
                !applied.diffs.is_empty()
            );
            *schema = applied.schema;
            match applied.diffs.as_slice() {
                [] => "nothing\n".to_owned(),
                diffs => diffs.iter().map(print).collect(),
            }
        }
    }
}

fn code(error: &Error) -> &'static str {
    match error {
        Error::AlreadyExists { .. } => "already exists",
        Error::Syntax(_) => "syntax",
        Error::Invalid(_) => "invalid",
        Error::Config(_) => "config",
        Error::Unauthorized(_) => "unauthorized",
        Error::Corrupt { .. } => "corrupt",
    }
}

fn print(diff: &Diff) -> String {
    let (kind, text) = match diff {
        Diff::Keyspace(it) => (it.kind(), format!("keyspace {}", it.object().name)),
        Diff::Table(it) => (
            it.kind(),
            format!("table {}.{}", it.object().keyspace, it.object().name),
        ),
        Diff::View(keyspace, it) => (it.kind(), format!("view {keyspace}.{}", it.object().name)),
        Diff::Type(it) => (
            it.kind(),
            format!("type {}.{}", it.object().keyspace, it.object().name),
        ),
        Diff::Function(keyspace, it) => (it.kind(), format!("function {keyspace}.{}", it.object().name)),
        Diff::Aggregate(keyspace, it) => (it.kind(), format!("aggregate {keyspace}.{}", it.object().name)),
        Diff::Index(keyspace, it) => (
            it.kind(),
            format!(
                "index {keyspace}.{} on {}",
                it.object().name,
                it.object().options["target"]
            ),
        ),
        Diff::Trigger(keyspace, it) => (it.kind(), format!("trigger {keyspace}.{}", it.object().name)),
    };
    format!("{} {text}\n", format!("{kind:?}").to_lowercase())
}

fn describe(schema: &Schema, name: &str) -> String {
    let elements = match name.split_once('.') {
        None => describe_keyspace_elements(schema.keyspace(name).unwrap(), Internals::Hidden),
        Some((keyspace, table)) => describe_table_elements(
            schema.keyspace(keyspace).unwrap(),
            schema.table(keyspace, table).unwrap(),
            Internals::Hidden,
        ),
    };
    elements
        .iter()
        .map(|element| format!("{}\n", element.create_statement))
        .collect()
}

/// The lines of one change.
struct Parts<'a> {
    schema: &'a Schema,
    words: Vec<&'a str>,
    lines: Vec<&'a str>,
}

fn parse(schema: &Schema, input: &str) -> SchemaChange {
    let mut lines = input.lines();
    let words: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    let parts = Parts {
        schema,
        words,
        lines: lines.collect(),
    };
    match (parts.words[0], parts.words[1]) {
        ("create", what) => parts.create(what),
        ("alter", what) => parts.alter(what),
        ("drop", what) => parts.drop(what),
        other => panic!("unknown change {other:?}"),
    }
}

fn names(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

impl Parts<'_> {
    fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    fn keyspace(&self) -> String {
        self.words[2].split('.').next().unwrap().to_owned()
    }

    fn name(&self) -> String {
        self.words[2]
            .split_once('.')
            .map_or("", |(_, name)| name)
            .to_owned()
    }

    fn ty(&self, text: &str) -> CqlType {
        let parsed = match self.schema.keyspace(&self.keyspace()) {
            Some(keyspace) => keyspace.parse_type(text),
            None => CqlType::parse_cql(text, "", &|_| None),
        };
        parsed.unwrap()
    }

    fn with(&self) -> Properties {
        let mut properties = Properties::default();
        for line in self.lines.iter().filter_map(|line| line.strip_prefix("with ")) {
            let (name, value) = line.split_once('=').unwrap();
            match name.split_once('.') {
                None => {
                    properties
                        .0
                        .insert(name.to_owned(), PropertyValue::Text(value.to_owned()));
                }
                Some((name, key)) => {
                    let empty = || PropertyValue::Map(Default::default());
                    let PropertyValue::Map(map) = properties.0.entry(name.to_owned()).or_insert_with(empty)
                    else {
                        panic!("{name} is a text and a map")
                    };
                    if !key.is_empty() {
                        map.insert(key.to_owned(), value.to_owned());
                    }
                }
            }
        }
        properties
    }

    fn after(&self, word: &str) -> Option<&str> {
        self.lines
            .iter()
            .find_map(|line| line.strip_prefix(word))
            .map(str::trim)
    }

    /// `name type` lines that start with none of the words that mean something else.
    fn columns(&self) -> Vec<(NewColumn, &str)> {
        let other = ["with ", "compact", "order ", "key ", "select", "where ", "body "];
        let is_column = |line: &&&str| !other.iter().any(|word| line.starts_with(word));
        let column = |line: &&str| {
            let (name, rest) = line.split_once(' ').unwrap();
            let role = [" pk", " ck desc", " ck asc", " ck", " static"]
                .into_iter()
                .find(|role| rest.ends_with(role));
            let role = role.map_or("", |role| role);
            let ty = self.ty(rest.strip_suffix(role).unwrap());
            (
                NewColumn {
                    name: name.to_owned(),
                    ty,
                    is_static: role == " static",
                    mask: None,
                },
                role,
            )
        };
        self.lines.iter().filter(is_column).map(column).collect()
    }

    fn fields(&self) -> Vec<(String, CqlType)> {
        self.columns()
            .into_iter()
            .map(|(column, _)| (column.name, column.ty))
            .collect()
    }

    fn order(&self) -> Vec<(String, ClusteringOrder)> {
        let order = |name: &str| match name.strip_suffix('-') {
            Some(name) => (name.to_owned(), ClusteringOrder::Desc),
            None => (name.to_owned(), ClusteringOrder::Asc),
        };
        self.after("order ")
            .unwrap_or("")
            .split_whitespace()
            .map(order)
            .collect()
    }

    fn create(&self, what: &str) -> SchemaChange {
        let (keyspace, name, if_not_exists) = (self.keyspace(), self.name(), self.has("if"));
        match what {
            "keyspace" => SchemaChange::CreateKeyspace {
                name: keyspace,
                properties: self.with(),
                if_not_exists,
            },
            "table" if self.has("like") => SchemaChange::CopyTable(Box::new(CopyTable {
                keyspace: keyspace.clone(),
                name,
                if_not_exists,
                source_keyspace: keyspace,
                source: self.words.last().unwrap().to_string(),
                properties: self.with(),
                id: None,
            })),
            "table" => self.create_table(),
            "type" => SchemaChange::CreateType {
                keyspace,
                name,
                fields: self.fields(),
                if_not_exists,
            },
            "index" => self.create_index(),
            "view" => self.create_view(),
            "function" => SchemaChange::CreateFunction(Box::new(CreateFunction {
                keyspace,
                name,
                arguments: self.fields(),
                return_type: self.ty(self.words[4]),
                called_on_null_input: !self.has("strict"),
                language: "java".into(),
                body: self.after("body ").unwrap_or("").to_owned(),
                or_replace: self.has("replace"),
                if_not_exists,
            })),
            "aggregate" => SchemaChange::CreateAggregate(Box::new(CreateAggregate {
                keyspace,
                name,
                argument_types: self.fields().into_iter().map(|(_, ty)| ty).collect(),
                state_func: self.words[3].into(),
                state_type: self.ty(self.words[4]),
                final_func: self
                    .words
                    .get(5)
                    .filter(|word| **word != "-")
                    .map(|word| (*word).into()),
                initcond: self.words.get(6).map(|word| (*word).into()),
                or_replace: self.has("replace"),
                if_not_exists,
            })),
            other => panic!("cannot create {other}"),
        }
    }

    fn create_table(&self) -> SchemaChange {
        let columns = self.columns();
        let with_role = |wanted: &str| {
            let of_role = columns.iter().filter(|(_, role)| role.starts_with(wanted));
            of_role.map(|(column, _)| column.name.clone()).collect::<Vec<_>>()
        };
        let key = self
            .after("key ")
            .map(|key| key.split_once('|').unwrap_or((key, "")));
        let mut clustering_order = self.order();
        for (column, role) in &columns {
            if role.ends_with("desc") {
                clustering_order.push((column.name.clone(), ClusteringOrder::Desc));
            } else if role.ends_with("asc") {
                clustering_order.push((column.name.clone(), ClusteringOrder::Asc));
            }
        }
        SchemaChange::CreateTable(Box::new(CreateTable {
            keyspace: self.keyspace(),
            name: self.name(),
            if_not_exists: self.has("if"),
            partition_key: key.map_or_else(|| with_role(" pk"), |(partition, _)| names(partition)),
            clustering: key.map_or_else(|| with_role(" ck"), |(_, clustering)| names(clustering)),
            columns: columns.into_iter().map(|(column, _)| column).collect(),
            clustering_order,
            compact_storage: self.lines.contains(&"compact"),
            properties: self.with(),
            id: None,
        }))
    }

    /// `create index ks.t values(c) [named n] [using class]`
    fn create_index(&self) -> SchemaChange {
        let value_of = |word: &str| {
            let at = self.words.iter().position(|known| *known == word)?;
            Some(self.words[at + 1].to_owned())
        };
        let target = |word: &str| {
            let (part, column) = match word.strip_suffix(')').and_then(|word| word.split_once('(')) {
                None => (IndexPart::Simple, word),
                Some(("values", column)) => (IndexPart::Values, column),
                Some(("keys", column)) => (IndexPart::Keys, column),
                Some(("entries", column)) => (IndexPart::Entries, column),
                Some((_, column)) => (IndexPart::Full, column),
            };
            IndexTarget {
                column: column.to_owned(),
                part,
            }
        };
        SchemaChange::CreateIndex(Box::new(CreateIndex {
            keyspace: self.keyspace(),
            table: self.name(),
            name: value_of("named"),
            if_not_exists: self.has("if"),
            is_custom: self.has("custom"),
            class: value_of("using"),
            targets: self.words[3].split(',').map(target).collect(),
            properties: self.with(),
        }))
    }

    fn create_view(&self) -> SchemaChange {
        let (partition_key, clustering) = self.after("key ").unwrap().split_once('|').unwrap();
        let words = |word: &str| names(self.after(word).unwrap_or(""));
        SchemaChange::CreateView(Box::new(CreateView {
            keyspace: self.keyspace(),
            name: self.name(),
            if_not_exists: self.has("if"),
            base_keyspace: self.keyspace(),
            base: self.words[4].to_owned(),
            selected: words("select"),
            where_clause: words("where ")
                .iter()
                .map(|name| format!("{name} IS NOT NULL"))
                .collect::<Vec<_>>()
                .join(" AND "),
            not_null: words("where "),
            restricted: Vec::new(),
            partition_key: names(partition_key),
            clustering: names(clustering),
            clustering_order: self.order(),
            properties: self.with(),
            id: None,
        }))
    }

    fn alter(&self, what: &str) -> SchemaChange {
        let (keyspace, name, if_exists) = (self.keyspace(), self.name(), self.has("if"));
        let renames = |lines: &[&str]| {
            let pairs = lines.iter().map(|line| line.split_once(" to ").unwrap());
            pairs
                .map(|(from, to)| (from.to_owned(), to.to_owned()))
                .collect::<Vec<_>>()
        };
        let action = self.words.get(3).copied().unwrap_or("with");
        match (what, action) {
            ("keyspace", _) => SchemaChange::AlterKeyspace {
                name: keyspace,
                properties: self.with(),
                if_exists,
            },
            ("view", _) => SchemaChange::AlterView {
                keyspace,
                view: name,
                if_exists,
                properties: self.with(),
            },
            ("table", action) => {
                let alteration = match action {
                    "add" => TableAlteration::AddColumns {
                        columns: self.columns().into_iter().map(|(column, _)| column).collect(),
                        if_not_exists: if_exists,
                    },
                    "drop" => TableAlteration::DropColumns {
                        columns: self.lines.iter().map(|line| (*line).to_owned()).collect(),
                        if_exists,
                        timestamp_micros: None,
                    },
                    "rename" => TableAlteration::RenameColumns {
                        renames: renames(&self.lines),
                        if_exists,
                    },
                    "retype" => TableAlteration::AlterColumnType,
                    "uncompact" => TableAlteration::DropCompactStorage,
                    _ => TableAlteration::Options(self.with()),
                };
                SchemaChange::AlterTable {
                    keyspace,
                    table: name,
                    if_exists,
                    alteration,
                }
            }
            ("type", "add") => {
                let (field, ty) = self.fields().remove(0);
                let alteration = TypeAlteration::AddField {
                    name: field,
                    ty,
                    if_not_exists: if_exists,
                };
                SchemaChange::AlterType {
                    keyspace,
                    name,
                    if_exists,
                    alteration,
                }
            }
            ("type", _) => {
                let alteration = TypeAlteration::RenameFields {
                    renames: renames(&self.lines),
                    if_exists,
                };
                SchemaChange::AlterType {
                    keyspace,
                    name,
                    if_exists,
                    alteration,
                }
            }
            other => panic!("cannot alter {other:?}"),
        }
    }

    fn drop(&self, what: &str) -> SchemaChange {
        let (keyspace, name, if_exists) = (self.keyspace(), self.name(), self.has("if"));
        let object = DropObject {
            keyspace: keyspace.clone(),
            name: name.clone(),
            if_exists,
        };
        let function = || DropFunction {
            keyspace: keyspace.clone(),
            name: name.clone(),
            argument_types: (!self.lines.is_empty())
                .then(|| self.lines.iter().map(|line| self.ty(line)).collect()),
            if_exists,
        };
        match what {
            "keyspace" => SchemaChange::DropKeyspace {
                name: keyspace,
                if_exists,
            },
            "table" => SchemaChange::DropTable(object),
            "type" => SchemaChange::DropType(object),
            "index" => SchemaChange::DropIndex(object),
            "view" => SchemaChange::DropView(object),
            "function" => SchemaChange::DropFunction(function()),
            "aggregate" => SchemaChange::DropAggregate(function()),
            other => panic!("cannot drop {other}"),
        }
    }
}
