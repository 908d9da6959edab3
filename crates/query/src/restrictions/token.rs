//! Restrictions by `token(..)`.
//!
//! Compat: `TokenRestriction` of Cassandra 5.0. The minimum token as an upper end means the end of the ring.

use ilion_rows::{DecoratedKey, KeyBound, KeyRange};
use ilion_types::{Partitioner, Token};

use super::expression::given;
use crate::context::Execution;
use crate::term::Term;
use crate::{Error, Value};

/// The restriction of the token.
#[derive(Debug, Default)]
pub(super) struct TokenRestriction {
    pub equal: Option<TokenEdge>,
    pub start: Option<TokenEdge>,
    pub end: Option<TokenEdge>,
}

/// One end of a range of tokens.
#[derive(Debug)]
pub(super) struct TokenEdge {
    pub term: Term,
    pub is_inclusive: bool,
}

impl TokenRestriction {
    /// Merges both restrictions. `key` names the partition key columns in messages.
    pub fn merge(&mut self, other: Self, key: &str) -> Result<(), Error> {
        if self.equal.is_some() {
            return Err(Error::invalid(format!(
                "{key} cannot be restricted by more than one relation if it includes an Equal"
            )));
        }
        if other.equal.is_some() {
            return Err(Error::invalid(format!(
                "Columns \"{key}\" cannot be restricted by both an equality and an inequality relation"
            )));
        }
        if self.start.is_some() && other.start.is_some() {
            return Err(Error::invalid(format!(
                "More than one restriction was found for the start bound on {key}"
            )));
        }
        if self.end.is_some() && other.end.is_some() {
            return Err(Error::invalid(format!(
                "More than one restriction was found for the end bound on {key}"
            )));
        }
        self.start = self.start.take().or(other.start);
        self.end = self.end.take().or(other.end);
        Ok(())
    }

    /// The range of partitions; `None` if it is empty.
    pub fn range(
        &self,
        partitioner: Partitioner,
        execution: &Execution<'_>,
    ) -> Result<Option<KeyRange>, Error> {
        let evaluate = |edge: &Option<TokenEdge>| {
            let edge = edge.as_ref();
            edge.map(|edge| Ok::<_, Error>((edge.token(partitioner, execution)?, edge.is_inclusive)))
                .transpose()
        };
        if let Some((token, _)) = evaluate(&self.equal)? {
            return Ok(Some(KeyRange {
                start: KeyBound::BeforeToken(token.clone()),
                end: KeyBound::AfterToken(token),
            }));
        }
        Ok(range_between(evaluate(&self.start)?, evaluate(&self.end)?))
    }
}

fn range_between(start: Option<(Token, bool)>, end: Option<(Token, bool)>) -> Option<KeyRange> {
    // The minimum token as a start excludes no key; as an end it is the end of the ring.
    let start = start.filter(|(token, _)| !token.is_minimum());
    let end = end.filter(|(token, _)| !token.is_minimum());
    if let (Some((start, start_is_inside)), Some((end, end_is_inside))) = (&start, &end)
        && (start > end || (start == end && !(*start_is_inside && *end_is_inside)))
    {
        return None;
    }
    Some(KeyRange {
        start: match start {
            None => KeyBound::Start,
            Some((token, true)) => KeyBound::BeforeToken(token),
            Some((token, false)) => KeyBound::AfterToken(token),
        },
        end: match end {
            None => KeyBound::End,
            Some((token, true)) => KeyBound::AfterToken(token),
            Some((token, false)) => KeyBound::BeforeToken(token),
        },
    })
}

impl TokenEdge {
    fn token(&self, partitioner: Partitioner, execution: &Execution<'_>) -> Result<Token, Error> {
        let value = self.term.evaluate(execution)?;
        if value == Value::Null {
            return Err(Error::invalid("Invalid null token value"));
        }
        Ok(partitioner.token_from_bytes(&given(value, &[])?)?)
    }
}

/// Keeps the keys in a range.
pub(super) fn keep_within(keys: &mut Vec<DecoratedKey>, range: Option<&KeyRange>) {
    keys.retain(|key| range.is_some_and(|range| range.contains(key)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn murmur(token: i64, is_inclusive: bool) -> Option<(Token, bool)> {
        Some((Token::Murmur3(token), is_inclusive))
    }

    #[test]
    fn tokens_that_exclude_each_other_give_no_range() {
        assert_eq!(range_between(murmur(5, true), murmur(4, true)), None);
        assert_eq!(range_between(murmur(5, true), murmur(5, false)), None);
        assert_eq!(
            range_between(murmur(5, true), murmur(5, true)),
            Some(KeyRange {
                start: KeyBound::BeforeToken(Token::Murmur3(5)),
                end: KeyBound::AfterToken(Token::Murmur3(5)),
            })
        );
    }

    #[test]
    fn the_minimum_token_is_no_end() {
        assert_eq!(
            range_between(murmur(i64::MIN, false), murmur(i64::MIN, true)),
            Some(KeyRange::all())
        );
    }
}
