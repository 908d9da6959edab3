//! `SELECT` and its clauses.

use super::{Parser, Result};
use crate::ast::{Direction, Ordering, Select, Selector, Statement, Term};
use crate::fault::Fault;
use crate::keyword::Keyword;
use crate::token::{Kind, Token};

impl Parser<'_> {
    pub(super) fn select(&mut self) -> Result<Statement> {
        self.expect_word(Keyword::Select)?;
        let first = (self.token(0), self.token(1));
        let json = self.eat_modifier(Keyword::Json);
        let distinct = self.eat_modifier(Keyword::Distinct);
        let modifier = (json || distinct).then_some(first);
        let selection = self.selection().map_err(|fault| if_modified(fault, modifier))?;
        self.expect_word(Keyword::From)?;
        let table = self.table_name()?;
        let relations = self.optional_where()?;
        let select = Select {
            json,
            distinct,
            selection,
            table,
            relations,
            group_by: self.group_by()?,
            order_by: self.order_by()?,
            per_partition_limit: self.per_partition_limit()?,
            limit: self.limit()?,
            allow_filtering: self.allow_filtering()?,
        };
        Ok(Statement::Select(Box::new(select)))
    }

    /// Takes `JSON` or `DISTINCT`, unless the word is the name of the first column. Compat: it is a modifier wherever a selection could
    /// start after it, even in `json - a` and `json(a)`.
    fn eat_modifier(&mut self, word: Keyword) -> bool {
        let is_modifier = self.at_word(word)
            && (matches!(self.peek(1), Kind::Star | Kind::Minus) || self.begins_primary(1));
        if is_modifier {
            self.advance();
        }
        is_modifier
    }

    fn group_by(&mut self) -> Result<Vec<Selector>> {
        if !self.eat_word(Keyword::Group) {
            return Ok(Vec::new());
        }
        self.expect_word(Keyword::By)?;
        self.list(Self::selector)
    }

    fn order_by(&mut self) -> Result<Vec<Ordering>> {
        if !self.eat_word(Keyword::Order) {
            return Ok(Vec::new());
        }
        self.expect_word(Keyword::By)?;
        self.list(Self::ordering)
    }

    fn ordering(&mut self) -> Result<Ordering> {
        let column = self.column()?;
        let mut ann_of = None;
        if self.eat_word(Keyword::Ann) {
            self.expect_word(Keyword::Of)?;
            ann_of = Some(self.term()?);
        }
        let direction = self.optional_direction().unwrap_or(Direction::Ascending);
        Ok(Ordering {
            column,
            ann_of,
            direction,
        })
    }

    /// `ASC` or `DESC`
    pub(super) fn optional_direction(&mut self) -> Option<Direction> {
        if self.eat_word(Keyword::Asc) {
            return Some(Direction::Ascending);
        }
        self.eat_word(Keyword::Desc).then_some(Direction::Descending)
    }

    fn per_partition_limit(&mut self) -> Result<Option<Term>> {
        if !self.eat_word(Keyword::Per) {
            return Ok(None);
        }
        self.expect_word(Keyword::Partition)?;
        self.expect_word(Keyword::Limit)?;
        self.integer_or_marker().map(Some)
    }

    fn limit(&mut self) -> Result<Option<Term>> {
        if !self.eat_word(Keyword::Limit) {
            return Ok(None);
        }
        self.integer_or_marker().map(Some)
    }

    fn allow_filtering(&mut self) -> Result<bool> {
        if !self.eat_word(Keyword::Allow) {
            return Ok(false);
        }
        self.expect_word(Keyword::Filtering)?;
        Ok(true)
    }
}

/// Compat: Cassandra reads the whole selection to decide whether JSON or DISTINCT is a modifier or a column. So an error in the
/// selection is reported at the modifier and the token after it.
fn if_modified(fault: Fault, modifier: Option<(Token, Token)>) -> Fault {
    match (fault, modifier) {
        (Fault::NoAlternative { seen, .. } | Fault::Mismatch { seen, .. }, Some((decision, offending))) => {
            Fault::NoAlternative {
                decision,
                offending,
                seen,
            }
        }
        (fault, _) => fault,
    }
}
