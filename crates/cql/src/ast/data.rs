//! INSERT, UPDATE, DELETE and batches, with their relations and conditions.

use super::{Identifier, QualifiedName, Term};

/// `INSERT`
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// The table.
    pub table: QualifiedName,
    /// The values.
    pub source: InsertSource,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// `USING`
    pub using: Using,
}

/// The values of an `INSERT`.
#[derive(Clone, Debug, PartialEq)]
pub enum InsertSource {
    /// `(a, b) VALUES (1, 2)`. The planner checks that both have the same length.
    Values {
        /// The columns, in order.
        columns: Vec<Identifier>,
        /// The values, in order.
        values: Vec<Term>,
    },
    /// `JSON '..'`
    Json {
        /// A string literal or a marker.
        value: Term,
        /// `DEFAULT UNSET`: columns that are not in the JSON keep their values, instead of becoming null.
        default_unset: bool,
    },
}

/// `USING TIMESTAMP .. AND TTL ..`; each an integer literal or a marker.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Using {
    /// Microseconds since the epoch.
    pub timestamp: Option<Term>,
    /// Seconds to live. Always `None` in a `DELETE`.
    pub ttl: Option<Term>,
}

/// `UPDATE`
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// The table.
    pub table: QualifiedName,
    /// `USING`
    pub using: Using,
    /// `SET`, at least one.
    pub assignments: Vec<Assignment>,
    /// `WHERE`, at least one.
    pub relations: Vec<Relation>,
    /// `IF`
    pub condition: IfClause,
}

/// One member of `SET`.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// The column.
    pub column: Identifier,
    /// The operation.
    pub operation: AssignmentOperation,
}

/// An operation of `SET` on a column.
#[derive(Clone, Debug, PartialEq)]
pub enum AssignmentOperation {
    /// `c = value`
    Set(Term),
    /// `c = c + value`, `c += value`; also `c = c -1` of a counter, which has no space after the minus
    Add(Term),
    /// `c = c - value`, `c -= value`
    Subtract(Term),
    /// `c = value + c`
    Prepend(Term),
    /// `c[key] = value`
    SetElement {
        /// A map's key, or a list's index.
        key: Term,
        /// The new value.
        value: Term,
    },
    /// `c.field = value`
    SetField {
        /// The field of the user type.
        field: Identifier,
        /// The new value.
        value: Term,
    },
}

/// `DELETE`
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// The parts of each row to delete; empty for the whole row.
    pub targets: Vec<ColumnPart>,
    /// The table.
    pub table: QualifiedName,
    /// `USING TIMESTAMP`
    pub using: Using,
    /// `WHERE`, at least one.
    pub relations: Vec<Relation>,
    /// `IF`
    pub condition: IfClause,
}

/// A column or a part of it, in DELETE or in a condition.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnPart {
    /// `c`
    Column(Identifier),
    /// `c[key]`
    Element {
        /// The collection column.
        column: Identifier,
        /// A map's key, a set's member or a list's index.
        key: Term,
    },
    /// `c.field`
    Field {
        /// The user type column.
        column: Identifier,
        /// The field.
        field: Identifier,
    },
}

/// `BEGIN BATCH .. APPLY BATCH`
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// `Logged` if the text names no kind.
    pub kind: BatchKind,
    /// `USING`
    pub using: Using,
    /// The members, in order; may be empty.
    pub modifications: Vec<Modification>,
}

/// The kinds of batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BatchKind {
    /// `BEGIN BATCH`
    Logged,
    /// `BEGIN UNLOGGED BATCH`
    Unlogged,
    /// `BEGIN COUNTER BATCH`
    Counter,
}

impl BatchKind {
    /// What stands between `BEGIN ` and `BATCH`, with a space behind it.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Logged => "",
            Self::Unlogged => "UNLOGGED ",
            Self::Counter => "COUNTER ",
        }
    }
}

/// A statement that is allowed in a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum Modification {
    /// `INSERT`
    Insert(Box<Insert>),
    /// `UPDATE`
    Update(Box<Update>),
    /// `DELETE`
    Delete(Box<Delete>),
}

/// `IF` on an `UPDATE` or `DELETE`.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum IfClause {
    /// Unconditional.
    #[default]
    None,
    /// `IF EXISTS`
    Exists,
    /// `IF a = 1 AND b[2] > 3`, at least one.
    Conditions(Vec<Condition>),
}

/// One condition of `IF`.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The left side.
    pub subject: ColumnPart,
    /// `=`, `<`, `<=`, `>`, `>=`, `!=`, `IN`, `CONTAINS` or `CONTAINS KEY`.
    pub operator: Operator,
    /// The right side.
    pub operand: Operand,
}

/// One member of `WHERE`.
#[derive(Clone, Debug, PartialEq)]
pub struct Relation {
    /// The left side.
    pub subject: Subject,
    pub operator: Operator,
    /// The right side.
    pub operand: Operand,
    /// The position of the relation in the text.
    pub span: Span,
}

/// The left side of a relation.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    /// `c`
    Column(Identifier),
    /// `(a, b)`
    Columns(Vec<Identifier>),
    /// `token(a, b)`
    Token(Vec<Identifier>),
    /// `c[key]`
    Element {
        /// The map column.
        column: Identifier,
        /// The key.
        key: Term,
    },
    /// `expr(index, ..)`; the operator is `Operator::IndexExpression`
    Index(Identifier),
    /// `a AND b OR c`: branches, one of which must hold; the operator is `Operator::Or`. Not in Cassandra's grammar.
    AnyOf(Vec<Vec<Relation>>),
}

/// The operator of a relation or condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `IN`
    In,
    /// `CONTAINS`
    Contains,
    /// `CONTAINS KEY`
    ContainsKey,
    /// `LIKE`
    Like,
    /// `:`, a match by the analyzer of an index
    AnalyzerMatches,
    /// `IS NOT NULL`; the operand is `Operand::None`
    IsNotNull,
    /// `expr(index, term)`
    IndexExpression,
    /// `OR`; the operand is `Operand::None`
    Or,
}

/// The right side of a relation or condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// One value; after `IN`, a marker for the whole list.
    Term(Term),
    /// `IN (a, b)`; may be empty. For several columns each member is a `Tuple` or a marker.
    List(Vec<Term>),
    /// No right side, after `IS NOT NULL`.
    None,
}

/// A range of bytes of the parsed text.
///
/// All spans are equal: a position does not change the meaning.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The text of the span. `text` must be the parsed text.
    pub fn of(self, text: &str) -> Option<&str> {
        text.get(self.start..self.end)
    }
}

impl PartialEq for Span {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
