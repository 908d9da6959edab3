//! Literals of collections, tuples, user types and vectors.

use ilion_cql::ast;
use ilion_types::{CqlType, UserType};

use super::Term;
use super::assemble::assemble;
use super::assignment::Assignment;
use super::functions::{Argument, known_type, test_assignment};
use crate::context::{Execution, PlanContext};
use crate::{ColumnSpec, Error, Value};

/// A literal with parts that are not all constant. The parts of a map are keys and values in turn.
#[derive(Clone, Debug)]
pub(crate) struct Compound {
    ty: CqlType,
    parts: Vec<Term>,
}

impl Compound {
    pub(super) fn parts(&self) -> &[Term] {
        &self.parts
    }

    pub(super) fn evaluate(&self, execution: &Execution<'_>) -> Result<Value, Error> {
        let values = self
            .parts
            .iter()
            .map(|part| part.evaluate(execution))
            .collect::<Result<Vec<_>, _>>()?;
        assemble(&self.ty, values)
    }
}

/// Plans a literal for its receiver.
///
/// Each kind of literal has a function of its own: literals nest deeply, so stack frames must be small.
pub(super) fn plan(ast: &ast::Term, receiver: &ColumnSpec, context: &PlanContext<'_>) -> Result<Term, Error> {
    match (ast, &receiver.ty) {
        // One term in parentheses is a tuple only if the receiver is one.
        (ast::Term::Tuple(terms), ty)
            if terms.len() == 1 && !matches!(ty, CqlType::Tuple(_) | CqlType::Udt { .. }) =>
        {
            Term::plan(&terms[0], receiver, context)
        }
        _ => {
            let parts = plan_parts(ast, receiver, context)?;
            of_parts(parts, receiver)
        }
    }
}

pub(super) fn of_parts(parts: Vec<Term>, receiver: &ColumnSpec) -> Result<Term, Error> {
    if !parts.iter().all(Term::is_constant) {
        let ty = receiver.ty.clone();
        return Ok(Term::Compound(Box::new(Compound { ty, parts })));
    }
    let values = parts.into_iter().map(constant_value).collect();
    Ok(match assemble(&receiver.ty, values)? {
        Value::Bytes(bytes) => Term::Constant(bytes),
        Value::Null | Value::Unset => Term::Null,
    })
}

fn plan_parts(ast: &ast::Term, receiver: &ColumnSpec, context: &PlanContext<'_>) -> Result<Vec<Term>, Error> {
    match (ast, &receiver.ty) {
        (ast::Term::List(terms), CqlType::List { element, .. }) => {
            let parts = plan_elements("list", terms, element, receiver, context)?;
            refuse_markers("list", parts, receiver)
        }
        (ast::Term::List(terms), CqlType::Vector { element, dimension }) => {
            check_dimension(terms.len(), *dimension, receiver)?;
            plan_elements("vector", terms, element, receiver, context)
        }
        (ast::Term::Set(terms), CqlType::Set { element, .. }) => {
            let parts = plan_elements("set", terms, element, receiver, context)?;
            refuse_markers("set", parts, receiver)
        }
        (ast::Term::Set(terms), CqlType::Map { .. }) if terms.is_empty() => Ok(Vec::new()),
        (ast::Term::Map(entries), CqlType::Map { key, value, .. }) => {
            let parts = plan_entries(entries, [key, value], receiver, context)?;
            refuse_markers("map", parts, receiver)
        }
        (ast::Term::Tuple(terms), CqlType::Tuple(types)) => {
            let types: Vec<_> = types.iter().collect();
            plan_components(terms, &types, receiver, context)
        }
        (ast::Term::Tuple(terms), CqlType::Udt { definition, .. }) => {
            let types: Vec<_> = definition.fields.iter().map(|(_, ty)| ty).collect();
            plan_components(terms, &types, receiver, context)
        }
        (ast::Term::UserType(fields), CqlType::Udt { definition, .. }) => {
            plan_fields(fields, definition, receiver, context)
        }
        _ => Err(unexpected(ast, receiver)),
    }
}

/// The error for a literal that does not fit its receiver.
fn unexpected(ast: &ast::Term, receiver: &ColumnSpec) -> Error {
    let ty = &receiver.ty;
    Error::Invalid(match ast {
        ast::Term::List(_) => {
            format!("Unexpected receiver type '{ty}'; only list and vector are expected")
        }
        _ => format!(
            "Invalid {} literal for {} of type {ty}",
            literal_kind(ast),
            receiver.name
        ),
    })
}

fn check_dimension(count: usize, dimension: u32, receiver: &ColumnSpec) -> Result<(), Error> {
    if count == dimension as usize {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "Invalid vector literal for {} of type {}; expected {dimension} elements, but given {count}",
        receiver.name, receiver.ty
    )))
}

fn literal_kind(ast: &ast::Term) -> &'static str {
    match ast {
        ast::Term::List(_) => "list",
        ast::Term::Set(_) => "set",
        ast::Term::Map(_) => "map",
        ast::Term::UserType(_) => "user type",
        _ => "tuple type",
    }
}

fn constant_value(term: Term) -> Value {
    match term {
        Term::Constant(bytes) => Value::Bytes(bytes),
        _ => Value::Null,
    }
}

#[derive(Clone, Copy)]
enum LiteralPart {
    Key,
    Value,
}

fn part_spec(receiver: &ColumnSpec, ty: &CqlType, part: LiteralPart) -> ColumnSpec {
    let name = match part {
        LiteralPart::Key => format!("key({})", receiver.name),
        LiteralPart::Value => format!("value({})", receiver.name),
    };
    named(receiver, name, ty)
}

fn named(receiver: &ColumnSpec, name: String, ty: &CqlType) -> ColumnSpec {
    ColumnSpec {
        name: name.into(),
        ty: ty.clone(),
        ..receiver.clone()
    }
}

fn check_part(
    kind: &str,
    what: impl FnOnce() -> String,
    term: &ast::Term,
    part: &ColumnSpec,
    receiver: &ColumnSpec,
    context: &PlanContext<'_>,
) -> Result<(), Error> {
    if test_assignment(term, part, context) == Assignment::No {
        return Err(Error::Invalid(format!(
            "Invalid {kind} literal for {}: {} is not of type {}",
            receiver.name,
            what(),
            part.ty
        )));
    }
    Ok(())
}

fn plan_elements(
    kind: &str,
    terms: &[ast::Term],
    element: &CqlType,
    receiver: &ColumnSpec,
    context: &PlanContext<'_>,
) -> Result<Vec<Term>, Error> {
    let part = part_spec(receiver, element, LiteralPart::Value);
    for term in terms {
        check_part(kind, || format!("value {term}"), term, &part, receiver, context)?;
    }
    // A loop takes less stack than iterator adapters, and literals nest deeply.
    let mut parts = Vec::with_capacity(terms.len());
    for term in terms {
        parts.push(Term::plan(term, &part, context)?);
    }
    Ok(parts)
}

fn plan_entries(
    entries: &[(ast::Term, ast::Term)],
    [key, value]: [&CqlType; 2],
    receiver: &ColumnSpec,
    context: &PlanContext<'_>,
) -> Result<Vec<Term>, Error> {
    let key = part_spec(receiver, key, LiteralPart::Key);
    let value = part_spec(receiver, value, LiteralPart::Value);
    for (key_term, value_term) in entries {
        let (key_text, value_text) = (|| format!("key {key_term}"), || format!("value {value_term}"));
        check_part("map", key_text, key_term, &key, receiver, context)?;
        check_part("map", value_text, value_term, &value, receiver, context)?;
    }
    let mut parts = Vec::with_capacity(entries.len() * 2);
    for (key_term, value_term) in entries {
        parts.push(Term::plan(key_term, &key, context)?);
        parts.push(Term::plan(value_term, &value, context)?);
    }
    Ok(parts)
}

fn plan_components(
    terms: &[ast::Term],
    types: &[&CqlType],
    receiver: &ColumnSpec,
    context: &PlanContext<'_>,
) -> Result<Vec<Term>, Error> {
    let mut parts = Vec::with_capacity(terms.len());
    for (index, term) in terms.iter().enumerate() {
        let Some(ty) = types.get(index) else {
            return Err(Error::Invalid(format!(
                "Invalid tuple literal for {}: too many elements. Type {} expects {} but got {}",
                receiver.name,
                receiver.ty,
                types.len(),
                terms.len()
            )));
        };
        let part = named(receiver, format!("{}[{index}]", receiver.name), ty);
        check_part(
            "tuple",
            || format!("component {index}"),
            term,
            &part,
            receiver,
            context,
        )?;
        parts.push(Term::plan(term, &part, context)?);
    }
    Ok(parts)
}

fn plan_fields(
    fields: &[(ast::Identifier, ast::Term)],
    definition: &UserType,
    receiver: &ColumnSpec,
    context: &PlanContext<'_>,
) -> Result<Vec<Term>, Error> {
    let mut parts = vec![Term::Null; definition.fields.len()];
    for (name, term) in fields {
        let (index, ty) = definition.field(name).ok_or_else(|| {
            Error::Invalid(format!(
                "Unknown field '{name}' in value of user defined type {}",
                definition.name
            ))
        })?;
        let part = named(receiver, format!("{}.{name}", receiver.name), ty);
        check_part(
            "user type",
            || format!("field {name}"),
            term,
            &part,
            receiver,
            context,
        )?;
        parts[index] = Term::plan(term, &part, context)?;
    }
    Ok(parts)
}

fn refuse_markers(kind: &str, parts: Vec<Term>, receiver: &ColumnSpec) -> Result<Vec<Term>, Error> {
    if parts.iter().any(Term::has_marker) {
        return Err(Error::Invalid(format!(
            "Invalid {kind} literal for {}: bind variables are not supported inside collection literals",
            receiver.name
        )));
    }
    Ok(parts)
}

/// How well a literal fits its receiver.
pub(super) fn test(ast: &ast::Term, receiver: &ColumnSpec, context: &PlanContext<'_>) -> Assignment {
    let of = |term: &ast::Term, ty: &CqlType| {
        test_assignment(term, &part_spec(receiver, ty, LiteralPart::Value), context)
    };
    match (ast, &receiver.ty) {
        (ast::Term::Set(terms), CqlType::Map { .. }) if terms.is_empty() => Assignment::Weak,
        (ast::Term::List(terms), CqlType::Vector { dimension, .. }) if terms.len() != *dimension as usize => {
            Assignment::No
        }
        (ast::Term::List(terms), CqlType::List { element, .. } | CqlType::Vector { element, .. })
        | (ast::Term::Set(terms), CqlType::Set { element, .. }) => {
            if terms.is_empty() {
                return Assignment::Weak;
            }
            Assignment::all(terms.iter().map(|term| of(term, element)))
        }
        (ast::Term::Map(entries), CqlType::Map { key, value, .. }) => {
            let each = |(key_term, value_term): &(ast::Term, ast::Term)| {
                of(key_term, key).min(of(value_term, value))
            };
            Assignment::all(entries.iter().map(each))
        }
        (ast::Term::Tuple(terms), CqlType::Tuple(types)) if terms.len() <= types.len() => {
            all_fit(terms.iter().zip(types.iter()).map(|(term, ty)| of(term, ty)))
        }
        (ast::Term::Tuple(terms), CqlType::Udt { definition, .. })
            if terms.len() <= definition.fields.len() =>
        {
            all_fit(
                terms
                    .iter()
                    .zip(&definition.fields)
                    .map(|(term, (_, ty))| of(term, ty)),
            )
        }
        (ast::Term::Tuple(terms), CqlType::Tuple(_) | CqlType::Udt { .. }) if terms.len() != 1 => {
            Assignment::No
        }
        (ast::Term::Tuple(terms), _) if terms.len() == 1 => test_assignment(&terms[0], receiver, context),
        (ast::Term::UserType(fields), CqlType::Udt { definition, .. }) => {
            all_fit(fields.iter().map(|(name, term)| match definition.field(name) {
                Some((_, ty)) => of(term, ty),
                None => Assignment::No,
            }))
        }
        _ => Assignment::No,
    }
}

/// The worst fit of the parts of a tuple; it is never exact.
fn all_fit(each: impl Iterator<Item = Assignment>) -> Assignment {
    Assignment::all(each).min(Assignment::Weak)
}

/// The type of a literal without a receiver; `None` if its first parts have no type of their own.
pub(super) fn own_type(ast: &ast::Term, context: &PlanContext<'_>) -> Option<CqlType> {
    let of_first = |terms: &[ast::Term]| {
        let known = terms.iter().find_map(|term| known_type(term, context))?;
        Some(std::sync::Arc::new(known.freeze()))
    };
    match ast {
        ast::Term::List(terms) => of_first(terms).map(|element| CqlType::List {
            element,
            frozen: false,
        }),
        ast::Term::Set(terms) => of_first(terms).map(|element| CqlType::Set {
            element,
            frozen: false,
        }),
        ast::Term::Map(entries) => {
            let of = |part: fn(&(ast::Term, ast::Term)) -> &ast::Term| {
                let known = entries
                    .iter()
                    .find_map(|entry| known_type(part(entry), context))?;
                Some(std::sync::Arc::new(known.freeze()))
            };
            Some(CqlType::Map {
                key: of(|entry| &entry.0)?,
                value: of(|entry| &entry.1)?,
                frozen: false,
            })
        }
        ast::Term::Tuple(terms) => terms
            .iter()
            .map(|term| Argument::Term(term).known_type(context))
            .collect::<Option<Vec<_>>>()
            .map(|types| CqlType::Tuple(types.into())),
        _ => None,
    }
}
