//! Random trees of the kind that the parser produces.

mod data;
mod definition;
mod role;
mod selector;

use ilion_cql::Marker;
use ilion_cql::ast::{
    ArithmeticOperator, BindMarker, CqlTypeName, Describe, DescribeTarget, Explain, Literal, NativeType,
    QualifiedName, Statement, Term,
};

use crate::random::Random;

/// Names that are plain, keywords of each class, or need quotes.
pub const NAMES: &[&str] = &[
    "a",
    "b",
    "k1",
    "some_name",
    "Upper",
    "with space",
    "q\"uote",
    "1digit",
    "\u{e9}t\u{e9}",
    "select",
    "from",
    "token",
    "set",
    "full",
    "entries",
    "nan",
    "infinity",
    "true",
    "null",
    "ttl",
    "count",
    "key",
    "json",
    "distinct",
    "cast",
    "writetime",
    "as",
    "int",
    "text",
    "date",
    "counter",
    "list",
    "map",
    "tuple",
    "frozen",
    "vector",
    "all",
    "values",
    "keys",
    "exists",
    "expr",
    "byte",
    "type",
    "function",
    "aggregate",
    "cluster",
    "keyspaces",
    "tables",
    "only",
    "compact",
    "clustering",
    "static",
    "masked",
    "default",
    "per",
    "group",
    "like",
    "contains",
    "role",
    "user",
    "p1y",
    "P1Y",
    "Infinity",
    "deadbeef",
    "indexes",
    "nano",
    "mbean",
    "functions",
];

const STRINGS: &[&str] = &[
    "",
    "x",
    "it's",
    "''",
    "two words",
    "$$",
    "line\nbreak",
    "\u{1F600}",
    "--",
    "\"",
    "*",
];

/// A generator of trees, with the markers of the current one.
pub struct Generator {
    random: Random,
    pub markers: Vec<Marker>,
    /// Number of further nodes; keeps trees small.
    budget: usize,
}

impl Generator {
    pub fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            markers: Vec::new(),
            budget: 60,
        }
    }

    pub fn statement(&mut self) -> Statement {
        match self.random.below(15) {
            14 => Statement::Explain(Explain {
                is_analyzed: self.random.once_in(2),
                select: Box::new(self.select()),
            }),
            0..=3 => Statement::Select(Box::new(self.select())),
            4 => Statement::Insert(Box::new(self.insert())),
            5 => Statement::Update(Box::new(self.update())),
            6 => Statement::Delete(Box::new(self.delete())),
            7 => Statement::Batch(self.batch()),
            8..=10 => self.definition(),
            11 | 12 => self.role_statement(),
            _ => Statement::Describe(self.describe()),
        }
    }

    fn name(&mut self) -> String {
        (*self.random.pick(NAMES)).into()
    }

    /// A column's name, where the empty one is allowed.
    fn column(&mut self) -> String {
        if self.random.once_in(30) {
            String::new()
        } else {
            self.name()
        }
    }

    fn string(&mut self) -> String {
        (*self.random.pick(STRINGS)).into()
    }

    fn coin(&mut self) -> bool {
        self.random.coin()
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.random.once_in(3) {
            Some(make(self))
        } else {
            None
        }
    }

    /// At least `least` items.
    fn several<T>(&mut self, least: usize, make: impl Fn(&mut Self) -> T) -> Vec<T> {
        let count = least + self.random.below(3);
        (0..count).map(|_| make(self)).collect()
    }

    fn qualified(&mut self) -> QualifiedName {
        QualifiedName {
            keyspace: self.maybe(Self::name),
            name: self.name(),
        }
    }

    fn marker(&mut self) -> BindMarker {
        let name = self.maybe(Self::name);
        self.markers.push(Marker { name: name.clone() });
        BindMarker {
            index: self.markers.len() - 1,
            name,
        }
    }

    pub fn type_name(&mut self, depth: usize) -> CqlTypeName {
        let choices = if depth == 0 { 3 } else { 9 };
        match self.random.below(choices) {
            0 => CqlTypeName::Native(*self.random.pick(&NativeType::ALL)),
            1 => CqlTypeName::User(self.qualified()),
            2 => CqlTypeName::Custom(self.string()),
            3 => CqlTypeName::List(Box::new(self.type_name(depth - 1))),
            4 => CqlTypeName::Set(Box::new(self.type_name(depth - 1))),
            5 => CqlTypeName::Map(
                Box::new(self.type_name(depth - 1)),
                Box::new(self.type_name(depth - 1)),
            ),
            6 => CqlTypeName::Tuple(self.several(1, |this| this.type_name(depth - 1))),
            7 => CqlTypeName::Vector(
                Box::new(self.type_name(depth - 1)),
                1 + self.random.below(2000) as u32,
            ),
            _ => match self.type_name(depth - 1) {
                simple @ (CqlTypeName::Native(_) | CqlTypeName::Custom(_)) => simple,
                inner => CqlTypeName::Frozen(Box::new(inner)),
            },
        }
    }

    fn literal(&mut self) -> Literal {
        match self.random.below(12) {
            0 => Literal::Null,
            1 => Literal::String(self.string()),
            2 | 3 => Literal::Integer((*self.random.pick(&["0", "-1", "12345678901234567890", "7"])).into()),
            4 => Literal::Float((*self.random.pick(&["1.", "-1.5", "1e5", "2.5E-10", "0.0"])).into()),
            5 => Literal::NaN,
            6 => Literal::Infinity,
            7 => Literal::NegativeInfinity,
            8 => Literal::Boolean(self.coin()),
            9 => Literal::Uuid("123e4567-E89B-12d3-a456-426614174000".into()),
            10 => Literal::Blob((*self.random.pick(&["", "0", "cafeBABE"])).into()),
            _ => Literal::Duration(
                (*self.random.pick(&[
                    "1y2mo",
                    "-3d4h5m6s7ms8us9ns",
                    "P1Y2M3DT4H",
                    "-P2W",
                    "PT1S",
                    "12\u{b5}s",
                ]))
                .into(),
            ),
        }
    }

    /// A sum of products.
    pub fn term(&mut self, depth: usize) -> Term {
        let mut term = self.term_product(depth);
        while depth > 0 && self.random.once_in(8) {
            let operator = *self
                .random
                .pick(&[ArithmeticOperator::Add, ArithmeticOperator::Subtract]);
            let right = self.term_product(depth);
            term = Term::Arithmetic {
                operator,
                left: Box::new(term),
                right: Box::new(right),
            };
        }
        term
    }

    fn term_product(&mut self, depth: usize) -> Term {
        let mut term = self.signed_term(depth);
        while depth > 0 && self.random.once_in(8) {
            let operator = *self.random.pick(&[
                ArithmeticOperator::Multiply,
                ArithmeticOperator::Divide,
                ArithmeticOperator::Modulo,
            ]);
            let right = self.signed_term(depth);
            term = Term::Arithmetic {
                operator,
                left: Box::new(term),
                right: Box::new(right),
            };
        }
        term
    }

    fn signed_term(&mut self, depth: usize) -> Term {
        let term = self.simple_term(depth);
        if self.random.once_in(10) {
            Term::Negate(Box::new(term))
        } else {
            term
        }
    }

    fn simple_term(&mut self, depth: usize) -> Term {
        self.budget = self.budget.saturating_sub(1);
        let choices = if depth == 0 || self.budget == 0 { 3 } else { 11 };
        match self.random.below(choices) {
            0 | 1 => Term::Literal(self.literal()),
            2 => Term::Bind(self.marker()),
            3 => Term::List(self.several(0, |this| this.term(depth - 1))),
            4 => Term::Set(self.several(0, |this| this.term(depth - 1))),
            5 => Term::Map(self.several(1, |this| (this.term(depth - 1), this.term(depth - 1)))),
            6 => Term::UserType(self.several(1, |this| (this.name(), this.term(depth - 1)))),
            7 => Term::Tuple(self.several(1, |this| this.term(depth - 1))),
            8 => Term::Function {
                name: self.qualified(),
                arguments: self.several(0, |this| this.term(depth - 1)),
            },
            9 => {
                let type_name = self.type_name(1);
                Term::TypeHint {
                    type_name,
                    term: Box::new(self.simple_term(depth - 1)),
                }
            }
            _ => {
                let term = Box::new(self.simple_term(depth - 1));
                Term::Cast {
                    term,
                    type_name: CqlTypeName::Native(*self.random.pick(&NativeType::ALL)),
                }
            }
        }
    }

    fn integer_or_marker(&mut self) -> Term {
        if self.coin() {
            Term::Bind(self.marker())
        } else {
            Term::Literal(Literal::Integer("10".into()))
        }
    }

    fn describe(&mut self) -> Describe {
        let target = match self.random.below(17) {
            0 => DescribeTarget::Cluster,
            1 => DescribeTarget::Schema,
            2 => DescribeTarget::FullSchema,
            3 => DescribeTarget::Keyspaces,
            4 => DescribeTarget::Keyspace(self.maybe(Self::name)),
            5 => DescribeTarget::OnlyKeyspace(self.maybe(Self::name)),
            6 => DescribeTarget::Tables,
            7 => DescribeTarget::Table(self.qualified()),
            8 => DescribeTarget::Index(self.qualified()),
            9 => DescribeTarget::View(self.qualified()),
            10 => DescribeTarget::Types,
            11 => DescribeTarget::Type(self.qualified()),
            12 => DescribeTarget::Functions,
            13 => DescribeTarget::Function(self.qualified()),
            14 => DescribeTarget::Aggregates,
            15 => DescribeTarget::Aggregate(self.qualified()),
            _ => DescribeTarget::Any(self.qualified()),
        };
        Describe {
            target,
            with_internals: self.coin(),
        }
    }
}
