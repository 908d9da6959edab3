//! The relations of a WHERE, resolved and sorted by what they restrict, before any decision.

use ilion_schema::TableSchema;

use super::alternatives::Alternatives;
use super::restriction::Restriction;
use super::token::TokenRestriction;

/// The statement that the WHERE belongs to. `only_statics` is true if, beside the partition key, the statement selects or
/// changes static columns only (and at least one).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RestrictionUse {
    Select {
        allow_filtering: bool,
        only_statics: bool,
    },
    Update {
        only_statics: bool,
    },
    Delete {
        only_statics: bool,
    },
}

/// Relations, sorted by what they restrict.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    pub partition: Vec<Restriction>,
    pub token: Option<TokenRestriction>,
    pub clustering: Vec<Restriction>,
    pub others: Vec<Restriction>,
    pub alternatives: Vec<Alternatives>,
}

/// True if `=` or `IN` restricts each column of the partition key.
pub(super) fn gives_keys(table: &TableSchema, restrictions: &[Restriction]) -> bool {
    restrictions.len() == table.partition_key().len()
        && restrictions
            .iter()
            .all(|restriction| restriction.is_equal() || restriction.is_in())
}
