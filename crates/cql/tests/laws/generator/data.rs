//! Random INSERT, UPDATE, DELETE, batches, relations and conditions.

use ilion_cql::ast::{
    Assignment, AssignmentOperation, Batch, BatchKind, ColumnPart, Condition, Delete, IfClause, Insert,
    InsertSource, Literal, Modification, Operand, Operator, Relation, Span, Subject, Term, Update, Using,
};

use super::Generator;

const COMPARISONS: [Operator; 6] = [
    Operator::Equal,
    Operator::NotEqual,
    Operator::Less,
    Operator::LessOrEqual,
    Operator::Greater,
    Operator::GreaterOrEqual,
];

impl Generator {
    pub(super) fn insert(&mut self) -> Insert {
        let table = self.qualified();
        let source = if self.random.once_in(4) {
            let value = match self.coin() {
                true => Term::Bind(self.marker()),
                false => Term::Literal(Literal::String(self.string())),
            };
            InsertSource::Json {
                value,
                default_unset: self.coin(),
            }
        } else {
            let columns = self.several(1, Self::column);
            InsertSource::Values {
                columns,
                values: self.several(1, |this| this.term(3)),
            }
        };
        Insert {
            table,
            source,
            if_not_exists: self.coin(),
            using: self.using(),
        }
    }

    fn using(&mut self) -> Using {
        if self.coin() {
            let timestamp = self.maybe(Self::integer_or_marker);
            return Using {
                timestamp,
                ttl: self.maybe(Self::integer_or_marker),
            };
        }
        let ttl = self.maybe(Self::integer_or_marker);
        Using {
            timestamp: self.maybe(Self::integer_or_marker),
            ttl,
        }
    }

    pub(super) fn update(&mut self) -> Update {
        let (table, using) = (self.qualified(), self.using());
        let count = 1 + self.random.below(3);
        // Setting a column twice is refused, so each has its own name.
        let assignments = (0..count).map(|index| self.assignment(index)).collect();
        Update {
            table,
            using,
            assignments,
            relations: self.several(1, Self::relation),
            condition: self.if_clause(),
        }
    }

    fn assignment(&mut self, index: usize) -> Assignment {
        let column = if index == 0 {
            self.column()
        } else {
            format!("{}{index}", self.name())
        };
        let operation = match self.random.below(6) {
            0 => AssignmentOperation::Set(self.term(3)),
            1 => AssignmentOperation::Add(self.term(2)),
            2 => AssignmentOperation::Subtract(self.term(2)),
            3 => AssignmentOperation::Prepend(self.term(2)),
            4 => AssignmentOperation::SetElement {
                key: self.term(1),
                value: self.term(2),
            },
            _ => AssignmentOperation::SetField {
                field: self.name(),
                value: self.term(2),
            },
        };
        Assignment { column, operation }
    }

    pub(super) fn delete(&mut self) -> Delete {
        let targets = self.several(0, Self::column_part);
        let table = self.qualified();
        let using = Using {
            timestamp: self.maybe(Self::integer_or_marker),
            ttl: None,
        };
        Delete {
            targets,
            table,
            using,
            relations: self.several(1, Self::relation),
            condition: self.if_clause(),
        }
    }

    fn column_part(&mut self) -> ColumnPart {
        let column = self.column();
        match self.random.below(4) {
            0 => ColumnPart::Element {
                column,
                key: self.term(1),
            },
            1 => ColumnPart::Field {
                column,
                field: self.name(),
            },
            _ => ColumnPart::Column(column),
        }
    }

    pub(super) fn batch(&mut self) -> Batch {
        let kind = *self
            .random
            .pick(&[BatchKind::Logged, BatchKind::Unlogged, BatchKind::Counter]);
        let using = self.using();
        let modifications = self.several(0, |this| match this.random.below(3) {
            0 => Modification::Insert(Box::new(this.insert())),
            1 => Modification::Update(Box::new(this.update())),
            _ => Modification::Delete(Box::new(this.delete())),
        });
        Batch {
            kind,
            using,
            modifications,
        }
    }

    fn if_clause(&mut self) -> IfClause {
        match self.random.below(4) {
            0 => IfClause::Exists,
            1 => IfClause::Conditions(self.several(1, Self::condition)),
            _ => IfClause::None,
        }
    }

    fn condition(&mut self) -> Condition {
        let subject = self.column_part();
        let (operator, operand) = match self.random.below(4) {
            0 => (Operator::In, self.in_operand(|this| this.term(2))),
            1 if matches!(subject, ColumnPart::Column(_)) => {
                let operator = *self.random.pick(&[Operator::Contains, Operator::ContainsKey]);
                (operator, Operand::Term(self.term(2)))
            }
            _ => (*self.random.pick(&COMPARISONS), Operand::Term(self.term(2))),
        };
        Condition {
            subject,
            operator,
            operand,
        }
    }

    fn in_operand(&mut self, member: impl Fn(&mut Self) -> Term) -> Operand {
        if self.coin() {
            Operand::Term(Term::Bind(self.marker()))
        } else {
            Operand::List(self.several(0, member))
        }
    }

    pub(super) fn relation(&mut self) -> Relation {
        let (subject, operator, operand) = match self.random.below(8) {
            0 => self.columns_relation(),
            1 => {
                let columns = self.several(1, Self::column);
                (
                    Subject::Token(columns),
                    *self.random.pick(&COMPARISONS),
                    Operand::Term(self.term(2)),
                )
            }
            2 => {
                let subject = Subject::Element {
                    column: self.column(),
                    key: self.term(1),
                };
                (
                    subject,
                    *self.random.pick(&COMPARISONS),
                    Operand::Term(self.term(2)),
                )
            }
            3 => (
                Subject::Index(self.name()),
                Operator::IndexExpression,
                Operand::Term(self.term(2)),
            ),
            _ => self.column_relation(),
        };
        Relation {
            subject,
            operator,
            operand,
            span: Span::default(),
        }
    }

    fn column_relation(&mut self) -> (Subject, Operator, Operand) {
        let subject = Subject::Column(self.column());
        match self.random.below(8) {
            0 => (subject, Operator::IsNotNull, Operand::None),
            1 => (subject, Operator::In, self.in_operand(|this| this.term(2))),
            2 => {
                let operators = [
                    Operator::Contains,
                    Operator::ContainsKey,
                    Operator::Like,
                    Operator::AnalyzerMatches,
                ];
                (
                    subject,
                    *self.random.pick(&operators),
                    Operand::Term(self.term(2)),
                )
            }
            _ => (
                subject,
                *self.random.pick(&COMPARISONS),
                Operand::Term(self.term(2)),
            ),
        }
    }

    fn columns_relation(&mut self) -> (Subject, Operator, Operand) {
        let subject = Subject::Columns(self.several(1, Self::column));
        match self.random.below(4) {
            0 => (
                subject,
                Operator::In,
                self.in_operand(|this| Term::Bind(this.marker())),
            ),
            1 => (subject, Operator::In, self.in_operand(Self::tuple)),
            2 => (
                subject,
                *self.random.pick(&COMPARISONS),
                Operand::Term(Term::Bind(self.marker())),
            ),
            _ => (
                subject,
                *self.random.pick(&COMPARISONS),
                Operand::Term(self.tuple()),
            ),
        }
    }

    fn tuple(&mut self) -> Term {
        Term::Tuple(self.several(1, |this| this.term(1)))
    }
}
