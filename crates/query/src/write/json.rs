//! INSERT JSON: the columns and values are in one text, which is known only at execution.

use bytes::Bytes;
use ilion_cql::ast;
use ilion_schema::TableSchema;
use ilion_types::CqlType;
use ilion_types::json::{Json, column_name};

use super::condition::Condition;
use super::modify::{Kind, ModifyPlan};
use super::operation::{Action, Operations, operation};
use super::target::target_of_values;
use crate::context::{Execution, PlanContext};
use crate::term::Term;
use crate::{ColumnSpec, Error};

/// The text, and the treatment of columns that it does not name.
#[derive(Debug)]
pub(super) struct JsonSource {
    text: Term,
    default_unset: bool,
}

impl JsonSource {
    pub(super) fn plan(
        value: &ast::Term,
        default_unset: bool,
        table: &TableSchema,
        context: &PlanContext<'_>,
    ) -> Result<Self, Error> {
        Ok(Self {
            text: Term::plan(value, &ColumnSpec::of(table, "[json]", CqlType::Text), context)?,
            default_unset,
        })
    }
}

/// The INSERT of values that is equivalent to the text.
pub(super) fn bind(
    plan: &ModifyPlan,
    source: &JsonSource,
    execution: &Execution<'_>,
) -> Result<ModifyPlan, Error> {
    let text = source
        .text
        .evaluate_set(execution, || {
            "Invalid unset value for INSERT JSON values".to_owned()
        })?
        .ok_or_else(|| Error::invalid("Got null for INSERT JSON values"))?;
    let mut members = members(&text)?;
    let table = &plan.table;
    let mut keys = Vec::new();
    let mut operations = Vec::new();
    for column in table.select_order() {
        let value = take(&mut members, &column.name);
        if value.is_none() && source.default_unset && !column.is_primary_key() {
            continue;
        }
        let term = match value {
            None | Some(Json::Null) => Term::Null,
            Some(json) => constant(&column.ty, &column.name, &json)?,
        };
        if column.is_primary_key() {
            keys.push((column, term));
        } else {
            operations.push(operation(column, Action::Set(term)));
        }
    }
    if let Some((name, _)) = members.first() {
        return Err(Error::Invalid(format!(
            "JSON values map contains unrecognized column: {name}"
        )));
    }
    let operations = Operations::new(operations);
    let condition = match plan.condition {
        Condition::NotExists => Condition::NotExists,
        _ => Condition::None,
    };
    Ok(ModifyPlan {
        target: target_of_values(table, keys, &operations, &condition)?,
        table: table.clone(),
        kind: Kind::Insert,
        operations,
        timing: plan.timing.clone(),
        condition,
        has_views: plan.has_views,
        masks: plan.masks.clone(),
    })
}

fn members(text: &Bytes) -> Result<Vec<(String, Json)>, Error> {
    let text = String::from_utf8_lossy(text);
    const REFUSED: &str = "Could not decode JSON string as a map: ";
    let refused = |what: &dyn std::fmt::Display| {
        let what = what.to_string();
        let reason = what.strip_prefix(REFUSED).unwrap_or(&what);
        Error::Invalid(format!("{REFUSED}{reason}. (String was: {text})"))
    };
    match Json::parse(&text).map_err(|error| refused(&error))? {
        Json::Null => Err(Error::invalid("Got null for INSERT JSON values")),
        Json::Object(members) => Ok(members
            .into_iter()
            .map(|(name, value)| (column_name(&name), value))
            .collect()),
        _ => Err(refused(&"it is no map")),
    }
}

/// Takes the value of a member. If the name is repeated, the last member counts.
fn take(members: &mut Vec<(String, Json)>, name: &str) -> Option<Json> {
    let mut found = None;
    while let Some(index) = members.iter().position(|(known, _)| known == name) {
        found = Some(members.remove(index).1);
    }
    found
}

fn constant(ty: &CqlType, name: &str, json: &Json) -> Result<Term, Error> {
    let parsed = ty.parse_json(json).map_err(|error| {
        Error::Invalid(match (ty, json) {
            // Compat: an error about a duration has no column name.
            (CqlType::Duration, Json::String(_)) => error.to_string(),
            _ => format!("Error decoding JSON value for {name}: {error}"),
        })
    })?;
    Ok(parsed.map_or(Term::Null, |bytes| Term::Constant(bytes.into())))
}
