//! Patterns of `LIKE`: a word with a `%` before it, after it, or both. A `%` within the word stands for itself.
//!
//! Compat: `SingleColumnRestriction.LikeRestriction` of Cassandra 5.0.

use bytes::Bytes;
use ilion_index::Predicate;

use crate::Error;

/// The predicate of a pattern.
///
/// # Errors
/// The pattern has no word.
pub(super) fn pattern(text: &Bytes) -> Result<Predicate, Error> {
    let is_open = |end: Option<&u8>| end == Some(&b'%');
    let (opens, closes) = (is_open(text.first()), text.len() > 1 && is_open(text.last()));
    let word = text.slice(usize::from(opens)..text.len() - usize::from(closes));
    if word.is_empty() {
        return Err(Error::invalid("LIKE value can't be empty."));
    }
    Ok(match (opens, closes) {
        (false, false) => Predicate::LikeEqual(word),
        (false, true) => Predicate::LikePrefix(word),
        (true, false) => Predicate::LikeSuffix(word),
        (true, true) => Predicate::LikeContains(word),
    })
}

/// The predicate as messages name it.
pub(super) fn describe(predicate: &Predicate) -> String {
    let (form, word) = match predicate {
        Predicate::LikePrefix(word) => ("LIKE '<term>%'", word),
        Predicate::LikeSuffix(word) => ("LIKE '%<term>'", word),
        Predicate::LikeContains(word) => ("LIKE '%<term>%'", word),
        Predicate::LikeEqual(word) => ("LIKE '<term>'", word),
        _ => return String::new(),
    };
    format!("{form} {}", String::from_utf8_lossy(word))
}

/// True if a value matches a pattern, byte by byte.
pub(super) fn is_like(value: &[u8], predicate: &Predicate) -> bool {
    match predicate {
        Predicate::LikePrefix(word) => value.starts_with(word),
        Predicate::LikeSuffix(word) => value.ends_with(word),
        Predicate::LikeContains(word) => value.windows(word.len()).any(|part| part == &**word),
        Predicate::LikeEqual(word) => value == &**word,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &'static str) -> String {
        match pattern(&Bytes::from_static(text.as_bytes())) {
            Ok(predicate) => describe(&predicate),
            Err(refused) => refused.to_string(),
        }
    }

    #[test]
    fn percent_signs_at_the_ends_open_a_pattern() {
        assert_eq!(asked("abc"), "LIKE '<term>' abc");
        assert_eq!(asked("abc%"), "LIKE '<term>%' abc");
        assert_eq!(asked("%abc"), "LIKE '%<term>' abc");
        assert_eq!(asked("%abc%"), "LIKE '%<term>%' abc");
        assert_eq!(asked("a%c"), "LIKE '<term>' a%c");
        for empty in ["", "%", "%%"] {
            assert_eq!(asked(empty), "LIKE value can't be empty.");
        }
    }

    #[test]
    fn values_are_compared_byte_by_byte() {
        let is_like = |value: &str, text: &'static str| {
            is_like(
                value.as_bytes(),
                &pattern(&Bytes::from_static(text.as_bytes())).unwrap(),
            )
        };
        assert!(is_like("abcd", "ab%") && !is_like("xab", "ab%"));
        assert!(is_like("xab", "%ab") && !is_like("abx", "%ab"));
        assert!(is_like("xaby", "%ab%") && !is_like("a", "%ab%"));
        assert!(is_like("ab", "ab") && !is_like("abc", "ab"));
    }
}
