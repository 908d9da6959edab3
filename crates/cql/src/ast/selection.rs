//! `SELECT`, and what a selection may compute.

use super::{
    ArithmeticOperator, BindMarker, CqlTypeName, Identifier, Literal, NativeType, QualifiedName, Relation,
    Term,
};

/// `EXPLAIN [ANALYZE] SELECT`: how a SELECT is carried out. Not a statement of Cassandra's.
#[derive(Clone, Debug, PartialEq)]
pub struct Explain {
    /// The SELECT is carried out, too, and what it cost is told.
    pub is_analyzed: bool,
    /// The SELECT.
    pub select: Box<Select>,
}

/// `SELECT`
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// `SELECT JSON`: each row as one text column.
    pub json: bool,
    /// `SELECT DISTINCT`
    pub distinct: bool,
    /// What is selected.
    pub selection: Selection,
    /// The table or view.
    pub table: QualifiedName,
    /// `WHERE`, joined by `AND`; empty if there is none.
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

/// What a `SELECT` or a view selects.
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
    /// `f(a, b)`, among them `token(a, b)` and aggregates
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
    /// `(int) a`: says which type is meant, converts nothing
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
    /// `a[from..to]`, both ends inclusive and at least one present
    Slice {
        /// The collection.
        of: Box<Selector>,
        /// First key, or the collection's first.
        from: Option<Term>,
        /// Last key, or the collection's last.
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
        /// What stands before it.
        left: Box<Selector>,
        /// What stands after it.
        right: Box<Selector>,
    },
    /// `-a`
    Negate(Box<Selector>),
    /// `[a, b]`
    List(Vec<Selector>),
    /// `{a, b}`; the empty one may also be meant as a map
    Set(Vec<Selector>),
    /// `{a: b}`: a map, or a user type if all keys are columns and the receiver is one
    MapOrUserType(Vec<(Selector, Selector)>),
    /// `(a, b)` with two elements or more; parentheses around one only group
    Tuple(Vec<Selector>),
}

/// One member of `ORDER BY`.
#[derive(Clone, Debug, PartialEq)]
pub struct Ordering {
    /// The column.
    pub column: Identifier,
    /// `ANN OF term`: order by distance from this vector instead of by value.
    pub ann_of: Option<Term>,
    /// `ASC` unless written otherwise.
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
