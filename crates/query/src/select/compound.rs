//! Collections, tuples and user types made of columns.

use ilion_cql::ast::Selector;
use ilion_types::CqlType;

use super::compile::{Compiled, Compiler, cannot_infer};
use super::expression::Expr;
use super::selector_term::as_term;
use crate::Error;
use crate::term::{Assignment, test_type_assignment};

impl Compiler<'_> {
    /// A selector in brackets that holds a column or a call.
    pub(super) fn compound(
        &mut self,
        selector: &Selector,
        expected: Option<&CqlType>,
    ) -> Result<Compiled, Error> {
        match selector {
            Selector::List(members) | Selector::Set(members) => self.list(selector, members, expected),
            Selector::Tuple(members) => self.tuple(selector, members, expected),
            Selector::MapOrUserType(entries) => match expected {
                Some(CqlType::Udt { .. }) => self.user_type(selector, entries, expected),
                _ => self.map(selector, entries, expected),
            },
            other => Err(cannot_infer(&other.to_string())),
        }
    }

    fn list(
        &mut self,
        selector: &Selector,
        members: &[Selector],
        expected: Option<&CqlType>,
    ) -> Result<Compiled, Error> {
        let element = match expected {
            Some(CqlType::List { element, .. } | CqlType::Set { element, .. }) => Some(&**element),
            _ => None,
        };
        let mut whole = Whole::default();
        let (members, element) = self.members(selector, members.iter(), element, &mut whole)?;
        let is_set = matches!(selector, Selector::Set(_));
        let expr = Expr::List {
            members,
            set_of: is_set.then(|| element.clone()),
        };
        let element = element.into();
        let ty = if is_set {
            CqlType::Set {
                element,
                frozen: false,
            }
        } else {
            CqlType::List {
                element,
                frozen: false,
            }
        };
        Ok(whole.compiled(expr, ty, selector))
    }

    fn map(
        &mut self,
        selector: &Selector,
        entries: &[(Selector, Selector)],
        expected: Option<&CqlType>,
    ) -> Result<Compiled, Error> {
        let (key, value) = match expected {
            Some(CqlType::Map { key, value, .. }) => (Some(&**key), Some(&**value)),
            _ => (None, None),
        };
        let mut whole = Whole::default();
        let keys = entries.iter().map(|entry| &entry.0);
        let (keys, key) = self.members(selector, keys, key, &mut whole)?;
        let values = entries.iter().map(|entry| &entry.1);
        let (values, value) = self.members(selector, values, value, &mut whole)?;
        let expr = Expr::Map {
            entries: keys.into_iter().zip(values).collect(),
            key: key.clone(),
        };
        let ty = CqlType::Map {
            key: key.into(),
            value: value.into(),
            frozen: false,
        };
        Ok(whole.compiled(expr, ty, selector))
    }

    fn tuple(
        &mut self,
        selector: &Selector,
        members: &[Selector],
        expected: Option<&CqlType>,
    ) -> Result<Compiled, Error> {
        let types = match expected {
            Some(CqlType::Tuple(types)) if types.len() >= members.len() => types.to_vec(),
            _ => Vec::new(),
        };
        let mut whole = Whole::default();
        let mut exprs = Vec::with_capacity(members.len());
        let mut found = Vec::with_capacity(members.len());
        for (index, member) in members.iter().enumerate() {
            let compiled = self.compile(member, types.get(index))?;
            found.push(compiled.ty.clone());
            exprs.push(Some(whole.take(compiled)));
        }
        let ty = CqlType::Tuple(found.into());
        Ok(whole.compiled(Expr::Tuple(exprs), ty, selector))
    }

    fn user_type(
        &mut self,
        selector: &Selector,
        entries: &[(Selector, Selector)],
        expected: Option<&CqlType>,
    ) -> Result<Compiled, Error> {
        let Some(ty @ CqlType::Udt { definition, .. }) = expected else {
            return Err(cannot_infer(&selector.to_string()));
        };
        let mut whole = Whole::default();
        let mut exprs: Vec<Option<Expr>> = definition.fields.iter().map(|_| None).collect();
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
            exprs[index] = Some(self.member(value, field, &mut whole)?);
        }
        Ok(whole.compiled(Expr::Tuple(exprs), ty.clone(), selector))
    }

    /// Members of one type: the expected one, or that of the first member that has one by itself. Constants take it.
    fn members<'s>(
        &mut self,
        selector: &Selector,
        members: impl Iterator<Item = &'s Selector> + Clone,
        expected: Option<&CqlType>,
        whole: &mut Whole,
    ) -> Result<(Vec<Expr>, CqlType), Error> {
        let mut ty = expected.cloned();
        let mut exprs: Vec<Option<Expr>> = Vec::new();
        for member in members.clone() {
            if as_term(member).is_some() {
                exprs.push(None);
                continue;
            }
            let compiled = self.compile(member, ty.as_ref())?;
            let wanted = ty.get_or_insert_with(|| compiled.ty.clone());
            exprs.push(Some(checked(compiled, wanted, whole)?));
        }
        let ty = ty.ok_or_else(|| cannot_infer(&selector.to_string()))?;
        let mut all = Vec::with_capacity(exprs.len());
        for (member, compiled) in members.zip(exprs) {
            all.push(match compiled {
                Some(expr) => expr,
                None => self.member(member, &ty, whole)?,
            });
        }
        Ok((all, ty))
    }

    fn member(&mut self, member: &Selector, ty: &CqlType, whole: &mut Whole) -> Result<Expr, Error> {
        let compiled = self.compile(member, Some(ty))?;
        checked(compiled, ty, whole)
    }
}

fn checked(compiled: Compiled, ty: &CqlType, whole: &mut Whole) -> Result<Expr, Error> {
    if test_type_assignment(ty, &compiled.ty) == Assignment::No {
        return Err(Error::invalid(format!(
            "Invalid value {} of type {}: {ty} is wanted",
            compiled.text, compiled.ty
        )));
    }
    Ok(whole.take(compiled))
}

/// What the members of a compound have among them.
#[derive(Default)]
struct Whole {
    is_aggregate: bool,
    has_column: bool,
}

impl Whole {
    fn take(&mut self, member: Compiled) -> Expr {
        self.is_aggregate |= member.is_aggregate;
        self.has_column |= member.has_column;
        member.expr
    }

    fn compiled(self, expr: Expr, ty: CqlType, selector: &Selector) -> Compiled {
        Compiled {
            expr,
            ty,
            text: selector.to_string(),
            is_aggregate: self.is_aggregate,
            has_column: self.has_column,
        }
    }
}
