//! Chooses the leads: the one with the fewest rows, and storage-attached indexes to intersect with it, as long as that costs
//! less than reading the rows that they exclude.

use std::cmp::Reverse;

/// If the best lead has at most this many rows, it is not intersected with others.
const ROWS_READ_ANYWAY: u64 = 8;
/// Number of index entries that cost as much as one row of the table.
const ENTRIES_OF_ROW: u64 = 32;

/// The properties of a lead that the choice depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    pub rows: u64,
    /// True if the lead can be intersected with others.
    pub is_attached: bool,
}

/// The offers to take, the best first. Pure.
pub(super) fn choose(offers: &[Offer]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..offers.len()).collect();
    // Of equal offers, an attached index comes first, since it can be intersected.
    order.sort_by_key(|index| (offers[*index].rows, Reverse(offers[*index].is_attached)));
    let Some(best) = order.first().map(|index| offers[*index]) else {
        return order;
    };
    let mut is_first = true;
    order.retain(|index| {
        let pays = best.is_attached
            && offers[*index].is_attached
            && best.rows > ROWS_READ_ANYWAY
            && offers[*index].rows / ENTRIES_OF_ROW <= best.rows;
        std::mem::take(&mut is_first) || pays
    });
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(offers: &[(u64, bool)]) -> Vec<usize> {
        let offers: Vec<Offer> = offers
            .iter()
            .map(|(rows, is_attached)| Offer {
                rows: *rows,
                is_attached: *is_attached,
            })
            .collect();
        choose(&offers)
    }

    #[test]
    fn of_table_indexes_the_one_with_the_fewest_rows_is_asked() {
        assert_eq!(chosen(&[(100, false), (10, false), (50, false)]), [1]);
        assert_eq!(chosen(&[(100, true), (10, false)]), [1]);
        assert!(chosen(&[]).is_empty());
    }

    #[test]
    fn attached_indexes_are_intersected_the_cheapest_first() {
        assert_eq!(chosen(&[(1000, true), (100, true), (500, true)]), [1, 2, 0]);
        assert_eq!(chosen(&[(100, true), (10, false), (100, true)]), [1]);
    }

    #[test]
    fn an_index_that_costs_more_than_the_rows_it_spares_is_left_out() {
        assert_eq!(chosen(&[(5, true), (6, true)]), [0]);
        assert_eq!(chosen(&[(100, true), (100_000, true)]), [0]);
        assert_eq!(chosen(&[(100, true), (3200, true)]), [0, 1]);
    }
}
