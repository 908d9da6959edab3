//! Selectors that are terms: without columns and calls, so that their receiver may decide their type.

use ilion_cql::ast::{Selector, Term};

/// The selector as a term; `None` if it contains a column or a call.
pub(super) fn as_term(selector: &Selector) -> Option<Term> {
    let all = |members: &[Selector]| members.iter().map(as_term).collect::<Option<Vec<_>>>();
    Some(match selector {
        Selector::Literal(literal) => Term::Literal(literal.clone()),
        Selector::Bind(marker) => Term::Bind(marker.clone()),
        Selector::TypeHint { type_name, selector } => Term::TypeHint {
            type_name: type_name.clone(),
            term: Box::new(as_term(selector)?),
        },
        Selector::Arithmetic {
            operator,
            left,
            right,
        } => Term::Arithmetic {
            operator: *operator,
            left: Box::new(as_term(left)?),
            right: Box::new(as_term(right)?),
        },
        Selector::Negate(of) => Term::Negate(Box::new(as_term(of)?)),
        Selector::List(members) => Term::List(all(members)?),
        Selector::Set(members) => Term::Set(all(members)?),
        Selector::Tuple(members) => Term::Tuple(all(members)?),
        Selector::MapOrUserType(entries) => map_or_user_type(entries)?,
        _ => return None,
    })
}

/// `{name: value}` is a user type, since a name as a map key would be a column.
fn map_or_user_type(entries: &[(Selector, Selector)]) -> Option<Term> {
    let fields = entries.iter().map(|(key, value)| match key {
        Selector::Column(name) => Some((name.clone(), as_term(value)?)),
        _ => None,
    });
    if let Some(fields) = fields.collect::<Option<Vec<_>>>() {
        return Some(Term::UserType(fields));
    }
    let entries = entries
        .iter()
        .map(|(key, value)| Some((as_term(key)?, as_term(value)?)));
    entries.collect::<Option<Vec<_>>>().map(Term::Map)
}
