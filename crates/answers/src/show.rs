//! Prints answers as lines: columns with their types, values as CQL literals, errors with code and message.

use ilion_protocol::{ColumnSpec, Response, ResponseFrame, ResultBody, Rows, SchemaChange, SchemaTarget};

/// Prints all pages of a statement.
pub(crate) fn show(pages: &[ResponseFrame], is_unordered: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for (index, page) in pages.iter().enumerate() {
        if index > 0 {
            lines.push("more".to_owned());
        }
        show_page(page, index == 0, is_unordered, &mut lines);
    }
    lines
}

fn show_page(page: &ResponseFrame, is_first: bool, is_unordered: bool, lines: &mut Vec<String>) {
    match &page.response {
        Response::Error(error) => {
            let code = error.detail.code().number();
            lines.push(format!(
                "error 0x{code:04X} {}",
                without_accidents(&one_line(&error.message))
            ));
        }
        Response::Result(ResultBody::Void) => lines.push("ok".to_owned()),
        Response::Result(ResultBody::SetKeyspace(name)) => lines.push(format!("keyspace {name}")),
        Response::Result(ResultBody::SchemaChange(change)) => lines.push(show_change(change)),
        Response::Result(ResultBody::Rows(rows)) => show_rows(rows, is_first, is_unordered, lines),
        other => lines.push(format!("{other:?}")),
    }
    for warning in &page.warnings {
        lines.push(format!("warning {}", one_line(warning)));
    }
}

fn show_change(change: &SchemaChange) -> String {
    let kind = format!("{:?}", change.change).to_lowercase();
    let keyspace = &change.keyspace;
    match &change.target {
        SchemaTarget::Keyspace => format!("{kind} keyspace {keyspace}"),
        SchemaTarget::Table(name) => format!("{kind} table {keyspace}.{name}"),
        SchemaTarget::Type(name) => format!("{kind} type {keyspace}.{name}"),
        SchemaTarget::Function { name, arguments } => {
            format!("{kind} function {keyspace}.{name}({})", arguments.join(", "))
        }
        SchemaTarget::Aggregate { name, arguments } => {
            format!("{kind} aggregate {keyspace}.{name}({})", arguments.join(", "))
        }
    }
}

fn show_rows(rows: &Rows, is_first: bool, is_unordered: bool, lines: &mut Vec<String>) {
    let columns = rows.metadata.columns.as_deref().unwrap_or_default();
    if is_first {
        let heads: Vec<_> = columns
            .iter()
            .map(|column| format!("{} {}", column.name, column.cql_type))
            .collect();
        lines.push(heads.join(" | "));
    }
    let mut shown: Vec<String> = rows
        .rows()
        .map(|row| {
            let cells: Vec<_> = row
                .iter()
                .zip(columns)
                .map(|(cell, column)| show_cell(*cell, column))
                .collect();
            cells.join(" | ")
        })
        .collect();
    if is_unordered {
        shown.sort();
    }
    lines.extend(shown);
}

fn show_cell(cell: Option<&[u8]>, column: &ColumnSpec) -> String {
    let Some(bytes) = cell else {
        return "null".to_owned();
    };
    let literal = column.cql_type.print_literal(bytes);
    one_line(&literal.unwrap_or_else(|error| format!("{bytes:02x?} ({error})")))
}

/// Removes white space at the end, and escapes line ends, which would end the comment, and backslashes.
fn one_line(text: &str) -> String {
    let text = text.trim_end();
    text.replace('\\', "\\\\")
        .replace('\n', "\\n")
        .replace('\r', "\\r")
}

/// Cuts parts of Cassandra's messages that vary: signatures of functions in the order of a hash, and addresses of objects.
fn without_accidents(message: &str) -> String {
    if let Some((before, _)) = message.split_once("(got org.apache.cassandra.") {
        return format!("{before}(got ...)");
    }
    let Some((before, rest)) = message.split_once("signatures: ") else {
        return message.to_owned();
    };
    match rest.rsplit_once(')') {
        Some((_, after)) => format!("{before}signatures: ...){after}"),
        None => message.to_owned(),
    }
}
