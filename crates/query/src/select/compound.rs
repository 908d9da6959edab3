//! Selectors of collections, tuples and user types that contain columns.

use ilion_cql::ast::Selector;
use ilion_types::CqlType;

use super::compile::{Compiled, Compiler, cannot_infer};
use super::expression::Expr;
use super::selector_term::as_term;
use crate::Error;
use crate::term::{Assignment, test_type_assignment};

impl Compiler<'_> {
    /// A literal that contains a column or a call.
    pub(super) fn compound(
        &mut self,
        selector: &Selector,
        expected: Option<&CqlType>,
    ) -> Result<Compiled, Error> {
        match (selector, expected) {
            (Selector::List(members) | Selector::Set(members), _) => {
                self.collection(selector, members, expected)
            }
            (Selector::Tuple(members), _) => self.tuple(members, expected),
            (Selector::MapOrUserType(entries), Some(ty)) => match ty {
                CqlType::Map { key, value, .. } => self.map(entries, key, value),
                CqlType::Udt { .. } => self.user_type(entries, ty),
                _ => Err(cannot_infer(&selector.to_string())),
            },
            // Without a receiver's type, the braces could be a map or a user type.
            (other, _) => Err(cannot_infer(&other.to_string())),
        }
    }

    /// A list, or a set.
    fn collection(
        &mut self,
        selector: &Selector,
        members: &[Selector],
        expected: Option<&CqlType>,
    ) -> Result<Compiled, Error> {
        let (members, element) = self.members(selector, members, element_of(expected))?;
        let whole = Whole::of(&members);
        let (texts, members) = (texts(&members), exprs(members));
        let (set_of, frozen) = (Some(element.clone()), false);
        let element = element.into();
        let (set_of, ty, text) = match selector {
            Selector::Set(_) => (set_of, CqlType::Set { element, frozen }, format!("{{{texts}}}")),
            _ => (None, CqlType::List { element, frozen }, format!("[{texts}]")),
        };
        Ok(whole.compiled(Expr::List { members, set_of }, ty, text))
    }

    fn map(
        &mut self,
        entries: &[(Selector, Selector)],
        key: &CqlType,
        value: &CqlType,
    ) -> Result<Compiled, Error> {
        let mut keys = Vec::with_capacity(entries.len());
        let mut values = Vec::with_capacity(entries.len());
        for (key_selector, value_selector) in entries {
            keys.push(self.member(key_selector, key)?);
            values.push(self.member(value_selector, value)?);
        }
        let whole = Whole::of(keys.iter().chain(&values));
        let pairs = keys.iter().zip(&values);
        let pairs: Vec<String> = pairs
            .map(|(key, value)| format!("{}: {}", key.text, value.text))
            .collect();
        let expr = Expr::Map {
            entries: exprs(keys).into_iter().zip(exprs(values)).collect(),
            key: key.clone(),
        };
        let ty = CqlType::Map {
            key: key.clone().into(),
            value: value.clone().into(),
            frozen: false,
        };
        Ok(whole.compiled(expr, ty, format!("{{{}}}", pairs.join(", "))))
    }

    fn tuple(&mut self, members: &[Selector], expected: Option<&CqlType>) -> Result<Compiled, Error> {
        let wanted: &[CqlType] = match expected {
            Some(CqlType::Tuple(types)) => types,
            _ => &[],
        };
        let members = members
            .iter()
            .enumerate()
            .map(|(index, member)| self.compile(member, wanted.get(index)))
            .collect::<Result<Vec<_>, _>>()?;
        let whole = Whole::of(&members);
        let text = format!("({})", texts(&members));
        let ty = CqlType::Tuple(members.iter().map(|member| member.ty.clone()).collect());
        let members = exprs(members).into_iter().map(Some).collect();
        Ok(whole.compiled(Expr::Tuple(members), ty, text))
    }

    fn user_type(&mut self, entries: &[(Selector, Selector)], ty: &CqlType) -> Result<Compiled, Error> {
        let CqlType::Udt { definition, .. } = ty else {
            return Err(Error::ServerError(format!("{ty} is not a user type")));
        };
        let mut fields: Vec<Option<Expr>> = definition.fields.iter().map(|_| None).collect();
        let mut members = Vec::with_capacity(entries.len());
        let mut pairs = Vec::with_capacity(entries.len());
        let mut places = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let name = match key {
                Selector::Column(name) => name.clone(),
                other => other.to_string(),
            };
            let (index, field) = definition.field(&name).ok_or_else(|| {
                Error::invalid(format!(
                    "Unknown field '{name}' in value of user defined type {}",
                    definition.name
                ))
            })?;
            let member = self.member(value, field)?;
            pairs.push(format!("{name}: {}", member.text));
            places.push(index);
            members.push(member);
        }
        let whole = Whole::of(&members);
        for (index, expr) in places.into_iter().zip(exprs(members)) {
            fields[index] = Some(expr);
        }
        let text = format!("{{{}}}", pairs.join(", "));
        Ok(whole.compiled(Expr::Tuple(fields), ty.clone(), text))
    }

    /// Members of one type: the expected one, else that of the first member with a type of its own. Constants get that type.
    fn members(
        &mut self,
        selector: &Selector,
        members: &[Selector],
        expected: Option<&CqlType>,
    ) -> Result<(Vec<Compiled>, CqlType), Error> {
        let mut ty = expected.cloned();
        let mut typed = Vec::with_capacity(members.len());
        for member in members {
            if as_term(member).is_some() {
                typed.push(None);
                continue;
            }
            let compiled = self.compile(member, ty.as_ref())?;
            let wanted = ty.get_or_insert_with(|| compiled.ty.clone());
            typed.push(Some(checked(compiled, wanted)?));
        }
        let ty = ty.ok_or_else(|| cannot_infer(&selector.to_string()))?;
        let mut all = Vec::with_capacity(typed.len());
        for (member, compiled) in members.iter().zip(typed) {
            all.push(match compiled {
                Some(compiled) => compiled,
                None => self.member(member, &ty)?,
            });
        }
        Ok((all, ty))
    }

    fn member(&mut self, member: &Selector, ty: &CqlType) -> Result<Compiled, Error> {
        let compiled = self.compile(member, Some(ty))?;
        checked(compiled, ty)
    }
}

fn element_of(expected: Option<&CqlType>) -> Option<&CqlType> {
    match expected {
        Some(CqlType::List { element, .. } | CqlType::Set { element, .. }) => Some(element),
        _ => None,
    }
}

fn checked(compiled: Compiled, ty: &CqlType) -> Result<Compiled, Error> {
    if test_type_assignment(ty, &compiled.ty) == Assignment::No {
        return Err(Error::invalid(format!(
            "Invalid value {} of type {}: {ty} is wanted",
            compiled.text, compiled.ty
        )));
    }
    Ok(compiled)
}

fn texts(members: &[Compiled]) -> String {
    let texts: Vec<&str> = members.iter().map(|member| member.text.as_str()).collect();
    texts.join(", ")
}

fn exprs(members: Vec<Compiled>) -> Vec<Expr> {
    members.into_iter().map(|member| member.expr).collect()
}

/// What the members of a compound have in common.
struct Whole {
    is_aggregate: bool,
    has_column: bool,
}

impl Whole {
    fn of<'m>(members: impl IntoIterator<Item = &'m Compiled>) -> Self {
        let mut whole = Self {
            is_aggregate: false,
            has_column: false,
        };
        for member in members {
            whole.is_aggregate |= member.is_aggregate;
            whole.has_column |= member.has_column;
        }
        whole
    }

    fn compiled(self, expr: Expr, ty: CqlType, text: String) -> Compiled {
        Compiled {
            expr,
            ty,
            text,
            is_aggregate: self.is_aggregate,
            has_column: self.has_column,
        }
    }
}
