//! Terms of texts for LIKE. Pure.
//!
//! For `LIKE '%abc%'`, every suffix of a text is a term, cut to [`SUFFIX_LEN_MAX`]. The first byte of a term distinguishes
//! whole texts from suffixes.

use super::analyzer::Analyzer;
use super::lookup::TermRange;
use super::term::TERM_LEN_MAX;
use crate::Predicate;

/// Longer suffixes are cut.
const SUFFIX_LEN_MAX: usize = 64;
const WHOLE: u8 = 1;
const SUFFIX: u8 = 2;

/// True if a token has a part at the required position.
type Compares = fn(&[u8], &[u8]) -> bool;

/// The LIKE patterns that an index serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patterns {
    /// None.
    None,
    /// `'abc'` and `'abc%'`.
    Prefix,
    /// `'abc'`, `'abc%'`, `'%abc'` and `'%abc%'`.
    Contains,
}

impl Patterns {
    /// Passes the terms of a token to `take`.
    pub(super) fn each_term<E>(
        self,
        token: &[u8],
        buffer: &mut Vec<u8>,
        take: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self != Self::Contains {
            return take(token);
        }
        buffer.clear();
        buffer.push(WHOLE);
        buffer.extend_from_slice(&token[..token.len().min(TERM_LEN_MAX)]);
        take(buffer)?;
        for start in 1..token.len() {
            if is_boundary(token[start]) {
                buffer.clear();
                buffer.push(SUFFIX);
                buffer.extend_from_slice(suffix(&token[start..]));
                take(buffer)?;
            }
        }
        Ok(())
    }

    /// The term of a whole token.
    pub(super) fn whole(self, token: &[u8]) -> TermRange {
        match self {
            Self::Contains => TermRange::one([&[WHOLE], token].concat()),
            _ => TermRange::one(token.to_vec()),
        }
    }

    /// The terms that a LIKE needs; `None` if it is not served.
    pub(super) fn lookup(self, like: &Predicate, analyzer: &Analyzer) -> Option<Vec<TermRange>> {
        let (pattern, is_inner) = match like {
            Predicate::LikePrefix(pattern) | Predicate::LikeEqual(pattern) => (pattern, false),
            Predicate::LikeSuffix(pattern) | Predicate::LikeContains(pattern) => (pattern, true),
            _ => return None,
        };
        if self == Self::None || (is_inner && self == Self::Prefix) {
            return None;
        }
        // Compat: SASI does not store the position of a token in its text.
        if self == Self::Contains && analyzer.splits() && matches!(like, Predicate::LikePrefix(_)) {
            return None;
        }
        let Some(token) = analyzer.longest_token(pattern) else {
            return Some(Vec::new());
        };
        let tagged = |tag: u8, part: &[u8]| [&[tag], part].concat();
        Some(match like {
            Predicate::LikePrefix(_) if self == Self::Contains => {
                vec![TermRange::starting_with(tagged(WHOLE, &token))]
            }
            Predicate::LikePrefix(_) => vec![TermRange::starting_with(token)],
            Predicate::LikeSuffix(_) if !token.is_empty() => {
                vec![self.whole(&token), TermRange::one(tagged(SUFFIX, suffix(&token)))]
            }
            Predicate::LikeSuffix(_) | Predicate::LikeContains(_) => vec![
                TermRange::starting_with(tagged(WHOLE, &token)),
                TermRange::starting_with(tagged(SUFFIX, suffix(&token))),
            ],
            _ => vec![self.whole(&token)],
        })
    }

    /// Whether an analyzed text matches a LIKE: each token of the pattern matches a token of the text. `None` if `like` is
    /// another predicate.
    pub(super) fn passes(self, like: &Predicate, value: &[u8], analyzer: &Analyzer) -> Option<bool> {
        let (pattern, has): (_, Compares) = match like {
            Predicate::LikePrefix(pattern) => (pattern, |token, part| token.starts_with(part)),
            Predicate::LikeSuffix(pattern) => (pattern, |token, part| token.ends_with(part)),
            Predicate::LikeContains(pattern) => (pattern, |token, part| {
                part.is_empty() || token.windows(part.len()).any(|window| window == part)
            }),
            Predicate::LikeEqual(pattern) => (pattern, |token, part| token == part),
            _ => return None,
        };
        let (parts, tokens) = (analyzer.tokens(pattern), analyzer.tokens(value));
        let is_met = |part: &Vec<u8>| tokens.iter().any(|token| has(token, part));
        Some(!parts.is_empty() && parts.iter().all(is_met))
    }
}

/// True for the first byte of a character.
fn is_boundary(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

fn suffix(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(SUFFIX_LEN_MAX)]
}
