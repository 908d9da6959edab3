//! `EXPLAIN SELECT` and `EXPLAIN ANALYZE SELECT`, which Cassandra does not have.
//!
//! Neither word is a keyword. They have a meaning only at the start of a statement and before a SELECT, so all other texts are
//! parsed as in Cassandra.

use super::Parser;
use crate::ast::{Explain, Statement};
use crate::keyword::Keyword;
use crate::parser::Result;
use crate::token::Kind;

impl Parser<'_> {
    /// The statement, if an EXPLAIN starts here.
    pub(super) fn explain(&mut self) -> Result<Option<Statement>> {
        if !self.at_plain_word(0, "explain") {
            return Ok(None);
        }
        let is_analyzed = self.at_plain_word(1, "analyze");
        let words = 1 + usize::from(is_analyzed);
        if !self.peek_word(words, Keyword::Select) {
            return Ok(None);
        }
        self.position += words;
        Ok(match self.select()? {
            Statement::Select(select) => Some(Statement::Explain(Explain { is_analyzed, select })),
            other => Some(other),
        })
    }

    fn at_plain_word(&self, ahead: usize, word: &str) -> bool {
        let token = self.token(ahead);
        token.kind == Kind::Identifier
            && self.text[token.start as usize..token.end as usize].eq_ignore_ascii_case(word)
    }
}
