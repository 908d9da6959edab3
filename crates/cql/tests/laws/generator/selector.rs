//! Random selections.

use ilion_cql::ast::{
    ArithmeticOperator, Direction, NativeType, Ordering, Select, SelectItem, Selection, Selector,
};

use super::Generator;

const OPERATORS: [ArithmeticOperator; 5] = [
    ArithmeticOperator::Add,
    ArithmeticOperator::Subtract,
    ArithmeticOperator::Multiply,
    ArithmeticOperator::Divide,
    ArithmeticOperator::Modulo,
];

impl Generator {
    pub(super) fn select(&mut self) -> Select {
        Select {
            json: self.random.once_in(4),
            distinct: self.random.once_in(4),
            selection: self.selection(),
            table: self.qualified(),
            relations: self.several(0, Self::relation),
            group_by: self
                .maybe(|this| this.several(1, |this| this.selector(2)))
                .unwrap_or_default(),
            order_by: self
                .maybe(|this| this.several(1, Self::ordering))
                .unwrap_or_default(),
            per_partition_limit: self.maybe(Self::integer_or_marker),
            limit: self.maybe(Self::integer_or_marker),
            allow_filtering: self.coin(),
        }
    }

    fn ordering(&mut self) -> Ordering {
        Ordering {
            column: self.column(),
            ann_of: self.maybe(|this| this.term(2)),
            direction: self.direction(),
        }
    }

    pub(super) fn direction(&mut self) -> Direction {
        if self.coin() {
            Direction::Ascending
        } else {
            Direction::Descending
        }
    }

    pub(super) fn selection(&mut self) -> Selection {
        if self.random.once_in(4) {
            return Selection::All;
        }
        Selection::Items(self.several(1, |this| SelectItem {
            selector: this.selector(3),
            alias: this.maybe(Self::name),
        }))
    }

    pub(super) fn selector(&mut self, depth: usize) -> Selector {
        self.budget = self.budget.saturating_sub(1);
        if depth == 0 || self.budget == 0 {
            return self.leaf();
        }
        match self.random.below(18) {
            0..=3 => self.leaf(),
            4 => Selector::CountRows,
            5 => {
                let name = self.qualified();
                Selector::Function {
                    name,
                    arguments: self.several(0, |this| this.selector(depth - 1)),
                }
            }
            6 => {
                let part = Box::new(self.part());
                match self.random.below(3) {
                    0 => Selector::Writetime(part),
                    1 => Selector::MaxWritetime(part),
                    _ => Selector::Ttl(part),
                }
            }
            7 => {
                let selector = Box::new(self.selector(depth - 1));
                Selector::Cast {
                    selector,
                    native_type: *self.random.pick(&NativeType::ALL),
                }
            }
            8 => {
                let type_name = self.type_name(1);
                Selector::TypeHint {
                    type_name,
                    selector: Box::new(self.selector(depth - 1)),
                }
            }
            9 => Selector::Negate(Box::new(self.selector(depth - 1))),
            10 => Selector::List(self.several(0, |this| this.selector(depth - 1))),
            11 => Selector::Set(self.several(0, |this| this.selector(depth - 1))),
            12 => Selector::MapOrUserType(
                self.several(1, |this| (this.selector(depth - 1), this.selector(depth - 1))),
            ),
            13 => Selector::Tuple(self.several(2, |this| this.selector(depth - 1))),
            14 => {
                let of = self.selector(depth - 1);
                self.modified(of)
            }
            _ => {
                let left = Box::new(self.selector(depth - 1));
                let operator = *self.random.pick(&OPERATORS);
                Selector::Arithmetic {
                    operator,
                    left,
                    right: Box::new(self.selector(depth - 1)),
                }
            }
        }
    }

    fn leaf(&mut self) -> Selector {
        match self.random.below(4) {
            0 => Selector::Literal(self.literal()),
            1 => Selector::Bind(self.marker()),
            _ => Selector::Column(self.name()),
        }
    }

    /// A column or a part of it.
    fn part(&mut self) -> Selector {
        let mut part = Selector::Column(self.name());
        while self.coin() {
            part = self.modified(part);
        }
        part
    }

    fn modified(&mut self, of: Selector) -> Selector {
        let of = Box::new(of);
        match self.random.below(5) {
            0 => Selector::Field {
                of,
                field: self.name(),
            },
            1 => Selector::Element {
                of,
                key: self.term(1),
            },
            2 => Selector::Slice {
                of,
                from: Some(self.term(1)),
                to: None,
            },
            3 => Selector::Slice {
                of,
                from: None,
                to: Some(self.term(1)),
            },
            _ => Selector::Slice {
                of,
                from: Some(self.term(1)),
                to: Some(self.term(1)),
            },
        }
    }
}
