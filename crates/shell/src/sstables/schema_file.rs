//! The file of `--schema`: which of its statements are executed. Pure.
//!
//! It may be the output of DESCRIBE, or the schema.cql of a snapshot, which does not create its keyspace.

use std::collections::BTreeSet;

use ilion_cql::ast::{QualifiedName, Statement};
use ilion_cql::{parse, quote_identifier, split_statements};

/// What a schema file says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SchemaFile {
    /// The statements that create keyspaces, types and tables, in order.
    pub statements: Vec<String>,
    /// The beginnings of statements that are left out, because SSTables of their objects are not read.
    pub left_out: Vec<String>,
}

/// Reads a schema file.
///
/// # Errors
/// It has a statement that is no CQL, or that does not belong into a schema.
pub(super) fn read_schema(text: &str) -> Result<SchemaFile, String> {
    let mut file = SchemaFile::default();
    let (mut created, mut used) = (BTreeSet::new(), BTreeSet::new());
    for text in split_statements(text) {
        let statement = parse(text)
            .map_err(|error| format!("{error}: {}", beginning(text)))?
            .statement;
        match &statement {
            Statement::CreateKeyspace(create) => {
                created.insert(create.keyspace.clone());
            }
            Statement::Use(keyspace) => {
                used.insert(keyspace.clone());
            }
            Statement::CreateTable(create) => used.extend(keyspace_of(&create.table)),
            Statement::CreateType(create) => used.extend(keyspace_of(&create.name)),
            Statement::CreateTableLike(_)
            | Statement::AlterKeyspace(_)
            | Statement::AlterTable(_)
            | Statement::AlterType(_)
            | Statement::DropKeyspace(_)
            | Statement::DropTable(_)
            | Statement::DropType(_) => {}
            Statement::CreateIndex(_)
            | Statement::CreateView(_)
            | Statement::AlterView(_)
            | Statement::CreateTrigger(_)
            | Statement::CreateFunction(_)
            | Statement::CreateAggregate(_)
            | Statement::CreateRole(_)
            | Statement::GrantPermissions(_)
            | Statement::GrantRole(_) => {
                file.left_out.push(beginning(text));
                continue;
            }
            _ => return Err(format!("this is no statement of a schema: {}", beginning(text))),
        }
        file.statements.push(text.to_owned());
    }
    let missing: Vec<String> = used
        .difference(&created)
        .map(|keyspace| create_keyspace(keyspace))
        .collect();
    file.statements.splice(0..0, missing);
    Ok(file)
}

fn keyspace_of(name: &QualifiedName) -> Option<String> {
    name.keyspace.clone()
}

fn create_keyspace(name: &str) -> String {
    let name = quote_identifier(name);
    format!(
        "CREATE KEYSPACE {name} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    )
}

/// The first words of a statement.
fn beginning(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().take(7).collect();
    let (all, first) = (text.split_whitespace().count(), words.len());
    let dots = if all > first { " .." } else { "" };
    format!("{}{dots}", words.join(" "))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

    use super::*;

    #[test]
    fn a_keyspace_that_the_file_does_not_create_is_created_first() {
        let file = read_schema("CREATE TABLE \"Shop\".t (a int PRIMARY KEY);").unwrap();
        assert_eq!(
            file.statements,
            [
                "CREATE KEYSPACE \"Shop\" WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
                "CREATE TABLE \"Shop\".t (a int PRIMARY KEY)",
            ]
        );
        let whole = "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}; USE k; \
                     CREATE TABLE t (a int PRIMARY KEY)";
        assert_eq!(read_schema(whole).unwrap().statements.len(), 3);
    }

    #[test]
    fn indexes_and_views_are_left_out_and_named() {
        let text = "CREATE TABLE k.t (a int PRIMARY KEY, b int); CREATE INDEX i ON k.t (b);";
        let file = read_schema(text).unwrap();
        assert_eq!(file.left_out, ["CREATE INDEX i ON k.t (b)"]);
        assert_eq!(file.statements.len(), 2);
    }

    #[test]
    fn statements_that_write_rows_are_refused() {
        let error = read_schema("INSERT INTO k.t (a) VALUES (1);").unwrap_err();
        assert_eq!(
            error,
            "this is no statement of a schema: INSERT INTO k.t (a) VALUES (1)"
        );
        assert!(read_schema("CREATE TABEL k.t (a int PRIMARY KEY)").is_err());
    }
}
