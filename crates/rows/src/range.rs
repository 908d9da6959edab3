//! Ranges of partitions.

use std::cmp::Ordering;

use ilion_types::Token;

use crate::DecoratedKey;

/// A position between partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyBound {
    /// Before every partition.
    Start,
    /// Before all partitions with this token.
    BeforeToken(Token),
    /// After all partitions with this token.
    AfterToken(Token),
    /// Just before this partition.
    Before(DecoratedKey),
    /// Just after this partition.
    After(DecoratedKey),
    /// After every partition.
    End,
}

impl KeyBound {
    /// Orders the bound against a partition. Never returns `Equal`.
    #[inline]
    pub fn compare(&self, key: &DecoratedKey) -> Ordering {
        self.compare_by(|token| token.cmp(&key.token), |bound| bound.cmp(key))
    }

    /// As [`Self::compare`], but the caller compares: the closures return the order of a token or a key relative to the partition.
    #[inline]
    pub fn compare_by(
        &self,
        compare_token: impl FnOnce(&Token) -> Ordering,
        compare_key: impl FnOnce(&DecoratedKey) -> Ordering,
    ) -> Ordering {
        let (ordering, at) = match self {
            Self::Start => return Ordering::Less,
            Self::End => return Ordering::Greater,
            Self::BeforeToken(token) => (compare_token(token), Ordering::Less),
            Self::AfterToken(token) => (compare_token(token), Ordering::Greater),
            Self::Before(bound) => (compare_key(bound), Ordering::Less),
            Self::After(bound) => (compare_key(bound), Ordering::Greater),
        };
        ordering.then(at)
    }

    /// The token of this position; `None` for `Start` and `End`.
    pub fn token(&self) -> Option<&Token> {
        match self {
            Self::Start | Self::End => None,
            Self::BeforeToken(token) | Self::AfterToken(token) => Some(token),
            Self::Before(key) | Self::After(key) => Some(&key.token),
        }
    }
}

/// A range of partitions; empty if the start is not below the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// The lower end.
    pub start: KeyBound,
    /// The upper end.
    pub end: KeyBound,
}

impl KeyRange {
    /// The range of all partitions.
    pub fn all() -> Self {
        Self {
            start: KeyBound::Start,
            end: KeyBound::End,
        }
    }

    /// The range of one partition.
    pub fn exactly(key: &DecoratedKey) -> Self {
        Self {
            start: KeyBound::Before(key.clone()),
            end: KeyBound::After(key.clone()),
        }
    }

    /// True if the partition is in the range.
    #[inline]
    pub fn contains(&self, key: &DecoratedKey) -> bool {
        self.start.compare(key) == Ordering::Less && self.end.compare(key) == Ordering::Greater
    }

    /// True if no partition from `first` to `last` can be in the range.
    pub fn misses(&self, first: &DecoratedKey, last: &DecoratedKey) -> bool {
        self.end.compare(first) == Ordering::Less || self.start.compare(last) == Ordering::Greater
    }
}
