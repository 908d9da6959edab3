//! Prints `SELECT` and selectors.

use std::fmt::{Display, Formatter, Result};

use super::data::where_clause;
use super::{List, QualifiedFunction, separated, when};
use crate::ast::{ArithmeticOperator, Direction, Literal, Ordering, Select, SelectItem, Selection, Selector};
use crate::quote::{Name, SelectedName};

impl Display for Select {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let (json, distinct) = (when(self.json, "JSON "), when(self.distinct, "DISTINCT "));
        write!(
            out,
            "SELECT {json}{distinct}{} FROM {}",
            self.selection, self.table
        )?;
        where_clause(out, &self.relations)?;
        if !self.group_by.is_empty() {
            write!(out, " GROUP BY {}", List(&self.group_by))?;
        }
        if !self.order_by.is_empty() {
            write!(out, " ORDER BY {}", List(&self.order_by))?;
        }
        if let Some(limit) = &self.per_partition_limit {
            write!(out, " PER PARTITION LIMIT {limit}")?;
        }
        if let Some(limit) = &self.limit {
            write!(out, " LIMIT {limit}")?;
        }
        out.write_str(when(self.allow_filtering, " ALLOW FILTERING"))
    }
}

impl Display for Selection {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::All => out.write_str("*"),
            Self::Items(items) => List(items).fmt(out),
        }
    }
}

impl Display for SelectItem {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        self.selector.fmt(out)?;
        match &self.alias {
            Some(alias) => write!(out, " AS {}", Name(alias)),
            None => Ok(()),
        }
    }
}

impl Display for Ordering {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        Name(&self.column).fmt(out)?;
        if let Some(term) = &self.ann_of {
            write!(out, " ANN OF {term}")?;
        }
        out.write_str(when(self.direction == Direction::Descending, " DESC"))
    }
}

impl Display for Direction {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        out.write_str(match self {
            Self::Ascending => "ASC",
            Self::Descending => "DESC",
        })
    }
}

/// How strongly the outermost operator of a selector binds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Sum,
    Product,
    Sign,
    Modifier,
    Primary,
}

fn binding(selector: &Selector) -> Binding {
    match selector {
        Selector::Arithmetic { operator, .. } if operator.is_multiplicative() => Binding::Product,
        Selector::Arithmetic { .. } => Binding::Sum,
        Selector::Negate(_) => Binding::Sign,
        Selector::Element { .. } | Selector::Slice { .. } | Selector::Field { .. } => Binding::Modifier,
        _ => Binding::Primary,
    }
}

/// True if the last token of a primary is a number, which would include a following dot.
fn ends_with_number(selector: &Selector) -> bool {
    match selector {
        Selector::Literal(Literal::Integer(_) | Literal::Float(_)) => true,
        Selector::TypeHint { selector, .. } => ends_with_number(selector),
        _ => false,
    }
}

/// A selector in a place that requires at least this binding.
struct Bound<'a>(&'a Selector, Binding);

impl Display for Bound<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        // `7.f` would start with the number `7.`.
        if self.1 == Binding::Modifier && ends_with_number(self.0) {
            return write!(out, "({})", self.0);
        }
        // `(a.b)` alone could be parsed as a hint of the type `a.b`.
        if self.1 == Binding::Primary && matches!(self.0, Selector::Field { .. }) {
            return write!(out, "(({}))", self.0);
        }
        if binding(self.0) < self.1 {
            write!(out, "({})", self.0)
        } else {
            self.0.fmt(out)
        }
    }
}

impl Display for Selector {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Column(name) => SelectedName(name).fmt(out),
            Self::Literal(literal) => literal.fmt(out),
            Self::Bind(marker) => marker.fmt(out),
            Self::CountRows => out.write_str("count(*)"),
            Self::Function { name, arguments } => {
                write!(out, "{}({})", QualifiedFunction(name), List(arguments))
            }
            Self::Writetime(of) => write!(out, "writetime({of})"),
            Self::MaxWritetime(of) => write!(out, "maxwritetime({of})"),
            Self::Ttl(of) => write!(out, "ttl({of})"),
            Self::Cast {
                selector,
                native_type,
            } => write!(out, "CAST({selector} AS {native_type})"),
            Self::TypeHint { type_name, selector } => {
                write!(out, "({type_name}){}", Bound(selector, Binding::Primary))
            }
            Self::Element { of, key } => write!(out, "{}[{key}]", Bound(of, Binding::Modifier)),
            Self::Slice { of, from, to } => {
                write!(out, "{}[", Bound(of, Binding::Modifier))?;
                from.iter().try_for_each(|from| from.fmt(out))?;
                out.write_str("..")?;
                to.iter().try_for_each(|to| to.fmt(out))?;
                out.write_str("]")
            }
            Self::Field { of, field } => write!(out, "{}.{}", Bound(of, Binding::Modifier), Name(field)),
            Self::Arithmetic {
                operator,
                left,
                right,
            } => arithmetic(out, *operator, left, right),
            Self::Negate(inner) => write!(out, "- {}", Bound(inner, Binding::Sign)),
            Self::List(members) => write!(out, "[{}]", List(members)),
            Self::Set(members) => write!(out, "{{{}}}", List(members)),
            Self::MapOrUserType(entries) => {
                out.write_str("{")?;
                separated(out, entries, ", ", |out, (key, value)| {
                    write!(out, "{key}: {value}")
                })?;
                out.write_str("}")
            }
            Self::Tuple(members) => write!(out, "({})", List(members)),
        }
    }
}

fn arithmetic(
    out: &mut Formatter<'_>,
    operator: ArithmeticOperator,
    left: &Selector,
    right: &Selector,
) -> Result {
    let (left_binding, right_binding) = if operator.is_multiplicative() {
        (Binding::Product, Binding::Sign)
    } else {
        (Binding::Sum, Binding::Product)
    };
    write!(
        out,
        "{} {} {}",
        Bound(left, left_binding),
        operator.symbol(),
        Bound(right, right_binding)
    )
}
