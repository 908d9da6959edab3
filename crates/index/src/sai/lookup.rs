//! Ranges of terms. Pure.

use super::term::TERM_LEN_MAX;

/// A range of terms; the end is exclusive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TermRange {
    /// The first term.
    pub(super) from: Vec<u8>,
    /// The first term behind the range; `None` if the range has no end.
    pub(super) to: Option<Vec<u8>>,
}

impl TermRange {
    /// One term, cut to the maximum length.
    pub(super) fn one(mut term: Vec<u8>) -> Self {
        term.truncate(TERM_LEN_MAX);
        Self {
            to: Some(next_of(&term)),
            from: term,
        }
    }

    /// All terms with this prefix.
    pub(super) fn starting_with(mut prefix: Vec<u8>) -> Self {
        prefix.truncate(TERM_LEN_MAX);
        Self {
            to: after_prefix(&prefix),
            from: prefix,
        }
    }

    /// The terms between two limits; the flag says whether the limit is inclusive. A cut limit is always inclusive.
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

    /// The only term of the range; `None` if it may have several.
    pub(super) fn only(&self) -> Option<&[u8]> {
        let to = self.to.as_ref()?;
        let (last, rest) = to.split_last()?;
        (*last == 0 && rest == self.from).then_some(&self.from)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.to.as_ref().is_some_and(|to| *to <= self.from)
    }

    /// True if the range starts after the term.
    pub(super) fn is_after(&self, term: &[u8]) -> bool {
        term < &self.from[..]
    }

    /// True if the range ends before the term.
    pub(super) fn is_before(&self, term: &[u8]) -> bool {
        self.to.as_ref().is_some_and(|to| term >= &to[..])
    }

    #[cfg(test)]
    pub(super) fn has(&self, term: &[u8]) -> bool {
        !self.is_after(term) && !self.is_before(term)
    }
}

/// The next possible term.
fn next_of(term: &[u8]) -> Vec<u8> {
    [term, &[0]].concat()
}

/// The first term above all that begin with `prefix`; `None` if there is none.
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
