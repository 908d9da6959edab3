//! Terms that are coded by what they share with the term before, read from a lower bound on.

use super::tree::{Damaged, common_len};

/// Reads coded terms one after the other, and builds only those that are not before the bound.
///
/// Let a term be before the bound. If the next term shares more bytes with it than the bound does, both terms differ from the bound at
/// the same byte. So the next term is also before the bound, and its own bytes need not be compared.
pub(super) struct CodedTerms<'b> {
    bound: &'b [u8],
    /// Length of the common prefix of the last term and the bound, until a term is not before the bound.
    common: usize,
    /// Length of the last term.
    len: usize,
    /// The last term, once one is not before the bound.
    term: Option<Vec<u8>>,
}

impl<'b> CodedTerms<'b> {
    pub(super) fn from(bound: &'b [u8]) -> Self {
        Self {
            bound,
            common: 0,
            len: 0,
            term: None,
        }
    }

    /// Reads the next term: `shared` bytes of the one before, then `rest`. Returns it; `None` if it is before the bound. Requires: terms
    /// ascend.
    ///
    /// # Errors
    /// The term before is shorter than `shared`.
    pub(super) fn next(&mut self, shared: usize, rest: &[u8]) -> Result<Option<&[u8]>, Damaged> {
        if shared > self.len {
            return Err(Damaged);
        }
        self.len = shared + rest.len();
        if let Some(term) = &mut self.term {
            term.truncate(shared);
            term.extend_from_slice(rest);
        } else {
            if self.passes(shared, rest) {
                return Ok(None);
            }
            self.term = Some([&self.bound[..shared], rest].concat());
        }
        Ok(self.term.as_deref())
    }

    /// True if the next term is before the bound. Requires: the last one was.
    fn passes(&mut self, shared: usize, rest: &[u8]) -> bool {
        if shared > self.common {
            return true;
        }
        let bound = &self.bound[shared..];
        let common = common_len(rest, bound);
        self.common = shared + common;
        // A term that ends here is before a longer bound.
        rest.get(common) < bound.get(common)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn any_term() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop_oneof![Just(0), Just(1), Just(255)], 0..5)
    }

    proptest! {
        #[test]
        fn terms_from_the_bound_on_are_built(
            terms in prop::collection::btree_set(any_term(), 0..40),
            bound in any_term(),
            less_shared in prop::collection::vec(0_usize..3, 40),
        ) {
            let mut coded = CodedTerms::from(&bound);
            let mut before: &[u8] = &[];
            let mut found = BTreeSet::new();
            for (term, less) in terms.iter().zip(less_shared) {
                // A writer need not share all that it could.
                let shared = common_len(before, term).saturating_sub(less);
                found.extend(coded.next(shared, &term[shared..]).unwrap().map(<[u8]>::to_vec));
                before = term;
            }
            let expected: BTreeSet<Vec<u8>> = terms.range(bound.clone()..).cloned().collect();
            prop_assert_eq!(found, expected);
            prop_assert!(coded.next(before.len() + 1, &[]).is_err());
        }
    }
}
