//! `SELECT` and selectors.

use super::{
    ArithmeticOperator, BindMarker, CqlTypeName, Identifier, Literal, NativeType, QualifiedName, Relation,
    Term,
};

/// `EXPLAIN [ANALYZE] SELECT`: how a SELECT is executed. Not in Cassandra.
#[derive(Clone, Debug, PartialEq)]
pub struct Explain {
    /// True to execute the SELECT and report its cost.
    pub is_analyzed: bool,
    /// The SELECT.
    pub select: Box<Select>,
}

/// `SELECT`
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// `SELECT JSON`: each row is one text column.
    pub json: bool,
    /// `SELECT DISTINCT`
    pub distinct: bool,
    /// The selected columns.
    pub selection: Selection,
    /// The table or view.
    pub table: QualifiedName,
    /// `WHERE`; all must hold. May be empty.
    pub relations: Vec<Relation>,
    /// `GROUP BY`
    pub group_by: Vec<Selector>,
    /// `ORDER BY`
    pub order_by: Vec<Ordering>,
    /// `PER PARTITION LIMIT`: an integer literal or a marker.
    pub per_partition_limit: Option<Term>,
    /// `LIMIT`: an integer literal or a marker.
    pub limit: Option<Term>,
    /// `ALLOW FILTERING`
    pub allow_filtering: bool,
}

/// The selection of a `SELECT` or a view.
#[derive(Clone, Debug, PartialEq)]
pub enum Selection {
    /// `*`
    All,
    /// At least one expression.
    Items(Vec<SelectItem>),
}

/// One selected expression.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectItem {
    /// The expression.
    pub selector: Selector,
    /// `AS alias`
    pub alias: Option<Identifier>,
}

/// An expression over the columns of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Selector {
    /// A column.
    Column(Identifier),
    /// A constant or null.
    Literal(Literal),
    /// `?` or `:name`
    Bind(BindMarker),
    /// `count(*)`; `count(1)` is an ordinary `Function`
    CountRows,
    /// `f(a, b)`, including `token(a, b)` and aggregates
    Function {
        /// The function's name.
        name: QualifiedName,
        /// The arguments, in order.
        arguments: Vec<Selector>,
    },
    /// `writetime(c)`; the argument is a `Column`, or an `Element`, `Slice` or `Field` of one
    Writetime(Box<Selector>),
    /// `maxwritetime(c)`, as `Writetime`
    MaxWritetime(Box<Selector>),
    /// `ttl(c)`, as `Writetime`
    Ttl(Box<Selector>),
    /// `CAST(a AS int)`
    Cast {
        /// The value to convert.
        selector: Box<Selector>,
        /// The type to convert to.
        native_type: NativeType,
    },
    /// `(int) a`: declares the type, without a conversion
    TypeHint {
        /// The type that the value is declared to have.
        type_name: CqlTypeName,
        /// The value.
        selector: Box<Selector>,
    },
    /// `a[k]`
    Element {
        /// The collection.
        of: Box<Selector>,
        /// The key or index.
        key: Term,
    },
    /// `a[from..to]`, with both ends included and at least one given
    Slice {
        /// The collection.
        of: Box<Selector>,
        /// First key; `None` is unbounded.
        from: Option<Term>,
        /// Last key; `None` is unbounded.
        to: Option<Term>,
    },
    /// `a.f`
    Field {
        /// The user type value.
        of: Box<Selector>,
        /// The field.
        field: Identifier,
    },
    /// `a + b` and the like
    Arithmetic {
        /// The operator.
        operator: ArithmeticOperator,
        /// The left operand.
        left: Box<Selector>,
        /// The right operand.
        right: Box<Selector>,
    },
    /// `-a`
    Negate(Box<Selector>),
    /// `[a, b]`
    List(Vec<Selector>),
    /// `{a, b}`; the empty one may also be a map
    Set(Vec<Selector>),
    /// `{a: b}`: a map, or a user type if all keys are columns and the receiver is a user type
    MapOrUserType(Vec<(Selector, Selector)>),
    /// `(a, b)` with at least two elements; parentheses around one element only group
    Tuple(Vec<Selector>),
}

/// One member of `ORDER BY`.
#[derive(Clone, Debug, PartialEq)]
pub struct Ordering {
    /// The column.
    pub column: Identifier,
    /// `ANN OF term`: orders by the distance from this vector instead of by value.
    pub ann_of: Option<Term>,
    /// `Ascending` if the text names no direction.
    pub direction: Direction,
}

/// An order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// `ASC`
    Ascending,
    /// `DESC`
    Descending,
}
