//! Columns that a SELECT reads only in part: some elements of a map, or only facts of the cells (`writetime`, `ttl`). Their other
//! values are not read.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use ilion_cql::ast::{self, Selection, Selector};
use ilion_rows::WantedElements;
use ilion_schema::{Column, ColumnId, TableSchema};
use ilion_types::CqlType;

use super::collection_parts::element_key;
use super::compile::Compiler;
use crate::Error;
use crate::context::{Execution, PlanContext};
use crate::restrictions::relation::existing;
use crate::term::Term;

/// The elements of a map that are read. If empty, no values of the column are read, only the facts of its cells.
#[derive(Debug)]
pub(super) struct ElementKeys {
    column: Column,
    keys: Vec<Term>,
}

/// How the columns of a selection are read, by name: `Some` has the keys of the elements to read, `None` reads the whole column.
type Uses<'s> = BTreeMap<&'s str, Option<Vec<&'s ast::Term>>>;

/// The columns that are read in part. `is_needed` marks those that the rest of the statement needs as a whole.
///
/// # Errors
/// A key does not fit its map.
pub(super) fn element_keys(
    selection: &Selection,
    table: &TableSchema,
    is_needed: impl Fn(ColumnId) -> bool,
    context: &PlanContext<'_>,
) -> Result<Vec<ElementKeys>, Error> {
    let Selection::Items(items) = selection else {
        return Ok(Vec::new());
    };
    let mut uses = Uses::new();
    items.iter().for_each(|item| note(&item.selector, &mut uses));
    let mut all = Vec::new();
    for (name, keys) in uses {
        let Some(keys) = keys else { continue };
        let column = existing(table, name)?;
        if column.is_primary_key() || is_needed(column.id) {
            continue;
        }
        if keys.is_empty() {
            all.push(ElementKeys {
                column: column.clone(),
                keys: Vec::new(),
            });
            continue;
        }
        let CqlType::Map { key: key_type, .. } = &column.ty else {
            continue;
        };
        if !column.is_complex() || !is_equal_as_bytes(key_type) {
            continue;
        }
        let spec = Compiler::new(table, context).spec(&format!("key({name})"), CqlType::clone(key_type));
        let keys = keys.into_iter().map(|key| Term::plan(key, &spec, context));
        all.push(ElementKeys {
            column: column.clone(),
            keys: keys.collect::<Result<_, _>>()?,
        });
    }
    Ok(all)
}

/// The elements for one execution; `None` if every column is read as a whole. A column with a null or unset key is left out here: the
/// selection refuses the key when it computes a row.
pub(super) fn wanted_elements(
    all: &[ElementKeys],
    execution: &Execution<'_>,
) -> Option<Arc<[WantedElements]>> {
    if all.is_empty() {
        return None;
    }
    let wanted = all.iter().filter_map(|keys| {
        let key = |term: &Term| element_key(term, &keys.column.name, execution).ok();
        Some(WantedElements {
            column: keys.column.id,
            paths: keys.keys.iter().map(key).collect::<Option<Vec<Bytes>>>()?,
        })
    });
    Some(wanted.collect())
}

/// True if equal keys of this type have the same bytes.
fn is_equal_as_bytes(ty: &CqlType) -> bool {
    matches!(
        ty,
        CqlType::Ascii
            | CqlType::Text
            | CqlType::Blob
            | CqlType::TinyInt
            | CqlType::SmallInt
            | CqlType::Int
            | CqlType::BigInt
            | CqlType::Timestamp
            | CqlType::Date
            | CqlType::Time
            | CqlType::Uuid
            | CqlType::TimeUuid
            | CqlType::Inet
    )
}

fn note<'s>(selector: &'s Selector, uses: &mut Uses<'s>) {
    match selector {
        Selector::Column(name) => {
            uses.insert(name, None);
        }
        Selector::Element { of, key } => match &**of {
            Selector::Column(name) => {
                if let Some(keys) = uses.entry(name).or_insert_with(|| Some(Vec::new())) {
                    keys.push(key);
                }
            }
            of => note(of, uses),
        },
        Selector::Literal(_) | Selector::Bind(_) | Selector::CountRows => {}
        Selector::Function { arguments: parts, .. }
        | Selector::List(parts)
        | Selector::Set(parts)
        | Selector::Tuple(parts) => parts.iter().for_each(|part| note(part, uses)),
        Selector::Writetime(of) | Selector::MaxWritetime(of) | Selector::Ttl(of) => match column_of(of) {
            Some(name) => {
                uses.entry(name).or_insert_with(|| Some(Vec::new()));
            }
            None => note(of, uses),
        },
        Selector::Negate(of)
        | Selector::Cast { selector: of, .. }
        | Selector::TypeHint { selector: of, .. }
        | Selector::Slice { of, .. }
        | Selector::Field { of, .. } => note(of, uses),
        Selector::Arithmetic { left, right, .. } => {
            note(left, uses);
            note(right, uses);
        }
        Selector::MapOrUserType(entries) => {
            for (key, value) in entries {
                note(key, uses);
                note(value, uses);
            }
        }
    }
}

/// The column that a selector is, or is a part of; `None` for other selectors.
fn column_of(selector: &Selector) -> Option<&str> {
    match selector {
        Selector::Column(name) => Some(name),
        Selector::Element { of, .. } | Selector::Slice { of, .. } | Selector::Field { of, .. } => match &**of
        {
            Selector::Column(name) => Some(name),
            _ => None,
        },
        _ => None,
    }
}
