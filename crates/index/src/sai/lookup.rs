//! What is looked up: ranges of terms. Pure.

use super::term::TERM_LEN_MAX;

/// Terms from one on, up to another that does not belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TermRange {
    /// The least term.
    pub(super) from: Vec<u8>,
    /// The least term above; `None`: all that follow.
    pub(super) to: Option<Vec<u8>>,
}

impl TermRange {
    /// One term, cut if it is too long.
    pub(super) fn one(mut term: Vec<u8>) -> Self {
        term.truncate(TERM_LEN_MAX);
        Self {
            to: Some(next_of(&term)),
            from: term,
        }
    }

    /// Terms that begin with these bytes.
    pub(super) fn starting_with(mut prefix: Vec<u8>) -> Self {
        prefix.truncate(TERM_LEN_MAX);
        Self {
            to: after_prefix(&prefix),
            from: prefix,
        }
    }

    /// Between limits: bytes, and whether they belong to it. Limits that are cut do.
    pub(super) fn between(from: Option<(Vec<u8>, bool)>, to: Option<(Vec<u8>, bool)>) -> Self {
        let from = from.map_or_else(Vec::new, |(mut term, is_inclusive)| {
            let is_cut = term.len() > TERM_LEN_MAX;
            term.truncate(TERM_LEN_MAX);
            if is_inclusive || is_cut {
                term
            } else {
                next_of(&term)
            }
        });
        let to = to.map(|(mut term, is_inclusive)| {
            let is_cut = term.len() > TERM_LEN_MAX;
            term.truncate(TERM_LEN_MAX);
            if is_inclusive || is_cut {
                next_of(&term)
            } else {
                term
            }
        });
        Self { from, to }
    }

    /// The only term that it can have, if there is but one.
    pub(super) fn only(&self) -> Option<&[u8]> {
        let to = self.to.as_ref()?;
        let (last, rest) = to.split_last()?;
        (*last == 0 && rest == self.from).then_some(&self.from)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.to.as_ref().is_some_and(|to| *to <= self.from)
    }

    /// True if the term is before the range.
    pub(super) fn is_after(&self, term: &[u8]) -> bool {
        term < &self.from[..]
    }

    /// True if the term is behind the range.
    pub(super) fn is_before(&self, term: &[u8]) -> bool {
        self.to.as_ref().is_some_and(|to| term >= &to[..])
    }

    #[cfg(test)]
    pub(super) fn has(&self, term: &[u8]) -> bool {
        !self.is_after(term) && !self.is_before(term)
    }
}

/// The least term above.
fn next_of(term: &[u8]) -> Vec<u8> {
    [term, &[0]].concat()
}

/// The least term above all that begin with `prefix`, if there is one.
pub(super) fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut after = prefix[..=kept].to_vec();
    after[kept] += 1;
    Some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_what_lies_between_its_limits() {
        let range = TermRange::between(Some((b"b".to_vec(), false)), Some((b"d".to_vec(), true)));
        let inside: Vec<&[u8]> = [&b"a"[..], b"b", b"b\0", b"ba", b"c", b"d", b"d\0"]
            .into_iter()
            .filter(|term| range.has(term))
            .collect();
        assert_eq!(inside, [&b"b\0"[..], b"ba", b"c", b"d"]);
        assert_eq!(TermRange::one(b"x".to_vec()).only(), Some(&b"x"[..]));
        assert_eq!(range.only(), None);
        assert!(TermRange::between(Some((b"b".to_vec(), false)), Some((b"b".to_vec(), true))).is_empty());
    }

    #[test]
    fn a_prefix_has_all_that_begin_with_it() {
        for prefix in [&b""[..], b"a", b"a\xFF", b"\xFF\xFF"] {
            let range = TermRange::starting_with(prefix.to_vec());
            for term in [
                &b"a"[..],
                b"a\xFF",
                b"a\xFF\xFF\xFF",
                b"b",
                b"\xFF",
                b"\xFF\xFF",
                b"\xFF\xFF\xFFz",
            ] {
                assert_eq!(range.has(term), term.starts_with(prefix), "{prefix:?} {term:?}");
            }
        }
    }

    #[test]
    fn limits_that_are_cut_leave_nothing_out() {
        let long = vec![b'x'; TERM_LEN_MAX + 5];
        let kept = &long[..TERM_LEN_MAX];
        assert!(TermRange::one(long.clone()).has(kept));
        assert!(TermRange::between(Some((long.clone(), false)), None).has(kept));
        assert!(TermRange::between(None, Some((long.clone(), false))).has(kept));
        assert!(TermRange::starting_with(long.clone()).has(kept));
    }
}
