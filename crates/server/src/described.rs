//! Requests as text, for traces, the slow-query log and `system_views.queries`; without passwords.

use ilion_cql::hide_secrets;
use ilion_protocol::{Batch, QueryParams, Request, StatementSource, Values};
use ilion_query::{ColumnSpec, Consistency, Shape};

use crate::statements::Statements;
use crate::subject::Subject;

/// Longer statements are cut.
const TEXT_CHARS_MAX: usize = 1000;
/// Longer values are cut. Compat: `QueryEvents` of Cassandra cuts them at 50 characters, its traces at 100.
const VALUE_CHARS_MAX: usize = 50;
/// Most values that are shown.
const VALUES_MAX: usize = 20;

/// True for requests with statements: only these are traced.
pub(crate) fn is_traceable(request: &Request) -> bool {
    matches!(
        request,
        Request::Query(_) | Request::Prepare(_) | Request::Execute(_) | Request::Batch(_)
    )
}

/// The kind of a traced request. Compat: the words of `QueryMessage` and its siblings.
pub(crate) fn request_name(request: &Request) -> &'static str {
    match request {
        Request::Query(_) => "Execute CQL3 query",
        Request::Prepare(_) => "Preparing CQL3 query",
        Request::Execute(_) => "Execute CQL3 prepared query",
        Request::Batch(_) => "Execute batch of CQL3 queries",
        _ => "",
    }
}

/// The parameters of a traced request. Compat: the names of `QueryMessage` and its siblings.
pub(crate) fn parameters(request: &Request, subject: &Subject) -> Vec<(String, String)> {
    let mut parameters = Vec::new();
    let mut add = |name: &str, value: String| parameters.push((name.to_owned(), value));
    match request {
        Request::Query(query) => {
            add("query", hide_secrets(&query.text).into_owned());
            of_params(&query.params, &mut add);
        }
        Request::Prepare(prepare) => add("query", hide_secrets(&prepare.text).into_owned()),
        Request::Execute(execute) => {
            if let Subject::Prepared(prepared) = subject {
                add("query", hide_secrets(prepared.text()).into_owned());
                let values = &execute.params.values;
                for (index, variable) in prepared.variables.iter().enumerate().take(values.len()) {
                    let name = format!("bound_var_{index}_{}", variable.name);
                    add(&name, shown_value(values, index, Some(variable)));
                }
            }
            of_params(&execute.params, &mut add);
        }
        Request::Batch(batch) => {
            add(
                "consistency_level",
                Consistency(batch.consistency.number()).to_string(),
            );
            let serial = batch
                .serial_consistency
                .map_or(Consistency::SERIAL, |level| Consistency(level.number()));
            add("serial_consistency_level", serial.to_string());
            add("statements", batch.statements.len().to_string());
        }
        _ => {}
    }
    parameters
}

fn of_params(params: &QueryParams, add: &mut impl FnMut(&str, String)) {
    add(
        "consistency_level",
        Consistency(params.consistency.number()).to_string(),
    );
    let serial = params
        .serial_consistency
        .map_or(Consistency::SERIAL, |level| Consistency(level.number()));
    add("serial_consistency_level", serial.to_string());
    if let Some(size) = params.page_size {
        add("page_size", size.to_string());
    }
}

/// The text of a running request. Compat: similar to what `QueryMessage` and its siblings print.
pub(crate) fn task_text(request: &Request, statements: &dyn Statements) -> String {
    let paged = |params: &QueryParams| match params.page_size {
        Some(size) => format!(" [pageSize = {size}]"),
        None => String::new(),
    };
    match request {
        Request::Query(query) => {
            format!(
                "QUERY {}{}",
                cut(&hide_secrets(&query.text), TEXT_CHARS_MAX),
                paged(&query.params)
            )
        }
        Request::Prepare(prepare) => format!("PREPARE {}", cut(&hide_secrets(&prepare.text), TEXT_CHARS_MAX)),
        Request::Execute(execute) => {
            let prepared = statements.prepared(&execute.id);
            let text = prepared.as_ref().map_or("", |prepared| prepared.text());
            format!(
                "EXECUTE {}{}",
                cut(&hide_secrets(text), TEXT_CHARS_MAX),
                paged(&execute.params)
            )
        }
        Request::Batch(batch) => {
            format!(
                "BATCH of {} statements{}",
                batch.statements.len(),
                first_text(batch)
            )
        }
        _ => String::new(),
    }
}

/// The statement with its values, abbreviated.
pub(crate) fn shown(request: &Request, subject: &Subject, shape: &Shape) -> String {
    match (request, subject) {
        (Request::Query(query), _) => {
            let values = shown_values(&query.params.values, &[]);
            format!("{}{values}", cut(&hide_secrets(&query.text), TEXT_CHARS_MAX))
        }
        (Request::Execute(execute), Subject::Prepared(prepared)) => {
            let values = shown_values(&execute.params.values, &prepared.variables);
            format!("{}{values}", cut(&hide_secrets(prepared.text()), TEXT_CHARS_MAX))
        }
        (Request::Batch(batch), _) => {
            let text = cut(&shape.text, TEXT_CHARS_MAX);
            format!(
                "{text} of {} statements{}",
                batch.statements.len(),
                first_text(batch)
            )
        }
        _ => cut(&shape.text, TEXT_CHARS_MAX),
    }
}

/// The first statement of a batch that is sent as text: the shape of a batch shows no values.
fn first_text(batch: &Batch) -> String {
    let texts = batch
        .statements
        .iter()
        .filter_map(|statement| match &statement.source {
            StatementSource::Text(text) => Some(text),
            StatementSource::Prepared(_) => None,
        });
    let mut texts = texts.map(|text| format!(", the first {}", cut(&hide_secrets(text), TEXT_CHARS_MAX)));
    texts.next().unwrap_or_default()
}

fn shown_values(values: &Values, variables: &[ColumnSpec]) -> String {
    if values.is_empty() {
        return String::new();
    }
    let shown =
        (0..values.len().min(VALUES_MAX)).map(|index| shown_value(values, index, variables.get(index)));
    let shown = shown.collect::<Vec<_>>().join(", ");
    let more = if values.len() > VALUES_MAX { ", .." } else { "" };
    format!(" with ({shown}{more})")
}

fn shown_value(values: &Values, index: usize, variable: Option<&ColumnSpec>) -> String {
    let Some(bytes) = values.value_bytes(index) else {
        return match values.value(index) {
            Some(ilion_protocol::Value::Unset) => "unset".to_owned(),
            _ => "null".to_owned(),
        };
    };
    // Only the beginning of a long value is shown, so the rest is not printed.
    let start = bytes.slice(..bytes.len().min(4 * VALUE_CHARS_MAX));
    let literal = variable
        .filter(|_| start.len() == bytes.len())
        .and_then(|variable| variable.ty.print_literal(&bytes).ok());
    let shown = literal.unwrap_or_else(|| format!("0x{}", ilion_types::hex::print(&start)));
    cut(&shown, VALUE_CHARS_MAX)
}

fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}..", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("\u{e9}\u{e9}\u{e9}", 2), "\u{e9}\u{e9}..");
    }
}
