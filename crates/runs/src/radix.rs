//! Sorts by an integer key, digit by digit from the lowest. The sort by a higher digit keeps the order of the lower ones.
//!
//! Digits that are equal in all keys cost no pass, so small numbers and common prefixes are sorted faster.

const DIGIT_BITS: u32 = 8;
const DIGITS: usize = 1 << DIGIT_BITS;
/// Fewer items than this are sorted by comparison.
const ITEMS_MIN: usize = 128;

#[inline]
fn digit_of(key: u64, shift: u32) -> usize {
    usize::from((key >> shift).to_le_bytes()[0])
}

/// Sorts items by a key; stable. `spare` is memory to use.
pub fn sort_by_key<T: Copy>(items: &mut Vec<T>, spare: &mut Vec<T>, key_of: impl Fn(&T) -> u64) {
    let Some(first) = items.first() else {
        return;
    };
    let first_key = key_of(first);
    let differing = items
        .iter()
        .fold(0, |differing, item| differing | (key_of(item) ^ first_key));
    if differing == 0 {
        return;
    }
    if items.len() < ITEMS_MIN {
        items.sort_by_key(key_of);
        return;
    }
    let mut shift = differing.trailing_zeros();
    while shift < u64::BITS {
        if digit_of(differing, shift) > 0 {
            pass(items, spare, |item| digit_of(key_of(item), shift));
            std::mem::swap(items, spare);
        }
        shift += DIGIT_BITS;
    }
    spare.clear();
}

/// Distributes the items to `to` by one digit.
fn pass<T: Copy>(items: &[T], to: &mut Vec<T>, digit_of: impl Fn(&T) -> usize) {
    let mut ends = [0_usize; DIGITS];
    for item in items {
        ends[digit_of(item)] += 1;
    }
    let mut start = 0;
    for end in &mut ends {
        start += std::mem::replace(end, start);
    }
    // Fills `to`; the loop below overwrites each item once.
    to.clear();
    to.extend_from_slice(items);
    for item in items {
        let place = &mut ends[digit_of(item)];
        to[*place] = *item;
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn items_come_in_order_and_equal_ones_as_they_stood(
            keys in prop::collection::vec(any::<u64>(), 0..600),
            mask in prop_oneof![Just(u64::MAX), Just(0xff), Just(0x7_8000_0000_0000), any::<u64>()],
        ) {
            let mut items: Vec<(u64, usize)> = keys.iter().map(|key| key & mask).zip(0..).collect();
            let mut expected = items.clone();
            expected.sort();
            sort_by_key(&mut items, &mut Vec::new(), |item| item.0);
            prop_assert_eq!(items, expected);
        }
    }
}
