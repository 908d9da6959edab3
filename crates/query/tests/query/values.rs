//! Values of bind markers, written as CQL terms: `1, 'x', [1, 2], null, unset()`, or `{name: 1, other: 'x'}`.

use bytes::Bytes;
use ilion_cql::ast::{Literal, Term};
use ilion_query::{ColumnSpec, Value, Values};
use ilion_types::{CqlType, encode_list, encode_map, encode_tuple, encode_vector};

/// The values of a line; none if it is empty.
pub fn parse_values(line: &str, variables: &[ColumnSpec]) -> Values {
    let line = line.trim();
    if line.is_empty() {
        return Values::None;
    }
    if line.starts_with('{')
        && let Ok(Term::UserType(fields)) = ilion_cql::parse_term(line)
    {
        let named = fields.iter().map(|(name, term)| {
            let variable = variables.iter().find(|variable| *variable.name == **name);
            let ty = variable.map_or(CqlType::Int, |variable| variable.ty.clone());
            (name.clone(), value_of(term, &ty))
        });
        return Values::Named(named.collect());
    }
    let Term::Tuple(terms) = ilion_cql::parse_term(&format!("({line})")).unwrap() else {
        panic!("no list of values: {line}");
    };
    let values = terms.iter().enumerate().map(|(index, term)| {
        let ty = variables
            .get(index)
            .map_or(CqlType::Int, |variable| variable.ty.clone());
        value_of(term, &ty)
    });
    Values::Positional(values.collect())
}

fn value_of(term: &Term, ty: &CqlType) -> Value {
    match term {
        Term::Literal(Literal::Null) => Value::Null,
        Term::Function { name, .. } if name.name == "unset" => Value::Unset,
        // A blob for a column of another type is a serialized value, valid or not.
        Term::Literal(Literal::Blob(digits)) => {
            Value::Bytes(Bytes::from(CqlType::Blob.parse_plain(digits).unwrap()))
        }
        term => Value::Bytes(Bytes::from(encode(term, ty))),
    }
}

fn encode(term: &Term, ty: &CqlType) -> Vec<u8> {
    let all = |terms: &[Term], ty: &CqlType| -> Vec<Vec<u8>> {
        terms.iter().map(|term| encode(term, ty)).collect()
    };
    match (term, ty) {
        (Term::Literal(literal), ty) => constant(literal, ty),
        (
            Term::List(terms) | Term::Set(terms),
            CqlType::List { element, .. } | CqlType::Set { element, .. },
        ) => encode_list(all(terms, element).iter().map(Vec::as_slice)),
        (Term::List(terms), CqlType::Vector { element, .. }) => {
            encode_vector(all(terms, element).iter().map(Vec::as_slice), element)
        }
        (Term::Map(entries), CqlType::Map { key, value, .. }) => {
            let entries: Vec<(Vec<u8>, Vec<u8>)> = entries
                .iter()
                .map(|(k, v)| (encode(k, key), encode(v, value)))
                .collect();
            encode_map(entries.iter().map(|(k, v)| (k.as_slice(), v.as_slice())))
        }
        (Term::Tuple(terms), CqlType::Tuple(types)) => {
            let members: Vec<Option<Vec<u8>>> = terms
                .iter()
                .zip(types.iter())
                .map(|(term, ty)| (*term != Term::NULL).then(|| encode(term, ty)))
                .collect();
            encode_tuple(members.iter().map(Option::as_deref))
        }
        (Term::UserType(fields), CqlType::Udt { definition, .. }) => {
            let members: Vec<Option<Vec<u8>>> = definition
                .fields
                .iter()
                .map(|(name, ty)| {
                    let given = fields.iter().find(|(field, _)| field == name);
                    given.map(|(_, term)| encode(term, ty))
                })
                .collect();
            encode_tuple(members.iter().map(Option::as_deref))
        }
        (term, ty) => panic!("{term:?} is no {ty}"),
    }
}

fn constant(literal: &Literal, ty: &CqlType) -> Vec<u8> {
    let text = match literal {
        Literal::String(text)
        | Literal::Integer(text)
        | Literal::Float(text)
        | Literal::Uuid(text)
        | Literal::Blob(text)
        | Literal::Duration(text) => text.clone(),
        Literal::Boolean(value) => value.to_string(),
        other => panic!("no value in tests: {other:?}"),
    };
    ty.parse_plain(&text).unwrap()
}
