//! Sorts by numbers, digit by digit from the lowest: what stands in order by its low digits keeps that by the higher ones.
//!
//! Digits that are the same everywhere cost nothing, so small numbers and those that begin alike are sorted sooner.

const DIGIT_BITS: u32 = 8;
const DIGITS: usize = 1 << DIGIT_BITS;
/// Fewer items are compared with each other.
const ITEMS_MIN: usize = 128;

#[inline]
fn digit_of(key: u64, shift: u32) -> usize {
    usize::from((key >> shift).to_le_bytes()[0])
}

/// Sorts items by a key; equal ones stay as they stand. `spare` is memory to use.
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

/// Puts the items into `to` by one digit.
fn pass<T: Copy>(items: &[T], to: &mut Vec<T>, digit_of: impl Fn(&T) -> usize) {
    let mut ends = [0_usize; DIGITS];
    for item in items {
        ends[digit_of(item)] += 1;
    }
    let mut start = 0;
    for end in &mut ends {
        start += std::mem::replace(end, start);
    }
    // Each place is written once.
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
