//! Terms: values outside of a selection.

use super::{CqlTypeName, Identifier, QualifiedName};

/// A constant. It is kept as text where the type of the receiver decides how to parse it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Literal {
    /// `null`
    Null,
    /// A string without its quotes; doubled quotes are single.
    String(String),
    /// Decimal digits of any number, with an optional minus.
    Integer(String),
    /// A decimal with a point or an exponent, as written.
    Float(String),
    /// `NaN` or `-NaN`, which are equal
    NaN,
    /// `Infinity`
    Infinity,
    /// `-Infinity`
    NegativeInfinity,
    /// `true` or `false`
    Boolean(bool),
    /// The 36 characters of a UUID, as written.
    Uuid(String),
    /// The hex digits of a blob, without `0x`; may be an odd number.
    Blob(String),
    /// A duration, as written (`1y2mo`, `P1Y2M`, `P0001-02-03T04:05:06`).
    Duration(String),
}

/// A placeholder for a value that the client sends with each execution.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BindMarker {
    /// Index in the list of all markers of the statement, from 0.
    pub index: usize,
    /// The name in `:name`; `None` for `?`.
    pub name: Option<Identifier>,
}

/// The operators between two terms or selectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArithmeticOperator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
}

impl ArithmeticOperator {
    /// The character of the operator.
    pub fn symbol(self) -> char {
        match self {
            Self::Add => '+',
            Self::Subtract => '-',
            Self::Multiply => '*',
            Self::Divide => '/',
            Self::Modulo => '%',
        }
    }

    /// True for `*`, `/` and `%`, which bind more strongly than `+` and `-`.
    pub fn is_multiplicative(self) -> bool {
        !matches!(self, Self::Add | Self::Subtract)
    }
}

/// An expression for one value. It contains no columns.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// A constant or null.
    Literal(Literal),
    /// `?` or `:name`
    Bind(BindMarker),
    /// `[a, b]`: a list, or a vector if the receiver is one
    List(Vec<Term>),
    /// `{a, b}`; the empty one may also be a map
    Set(Vec<Term>),
    /// `{a: b}`
    Map(Vec<(Term, Term)>),
    /// `{field: value}`
    UserType(Vec<(Identifier, Term)>),
    /// `(a, b)`, with at least one element
    Tuple(Vec<Term>),
    /// `f(a, b)`
    Function {
        /// The function's name.
        name: QualifiedName,
        /// The arguments, in order.
        arguments: Vec<Term>,
    },
    /// `(int) a`: declares the type, without a conversion
    TypeHint {
        /// The type that the value is declared to have.
        type_name: CqlTypeName,
        /// The value.
        term: Box<Term>,
    },
    /// `CAST(a AS int)`: converts
    Cast {
        /// The value to convert.
        term: Box<Term>,
        /// The native type to convert to.
        type_name: CqlTypeName,
    },
    /// `a + b` and the like
    Arithmetic {
        /// The operator.
        operator: ArithmeticOperator,
        /// The left operand.
        left: Box<Term>,
        /// The right operand.
        right: Box<Term>,
    },
    /// `-a`; a number with a sign is a literal instead
    Negate(Box<Term>),
}

impl Term {
    /// The null literal.
    pub const NULL: Self = Self::Literal(Literal::Null);

    /// The marker, if the whole term is a marker.
    pub fn as_bind_marker(&self) -> Option<&BindMarker> {
        match self {
            Self::Bind(marker) => Some(marker),
            _ => None,
        }
    }
}
