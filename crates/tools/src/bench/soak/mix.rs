//! The kind of each operation: a function of the seed and the number of the operation.

use crate::bench::dataset::mix as spread_bits;
use crate::bench::soak::args::Mix;

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads a whole row by its key.
    Read,
    /// Writes one column of a row.
    Update,
    /// Writes a new row.
    Insert,
    /// Reads consecutive rows, beginning with a given one.
    Scan,
    /// Reads a row, then updates it.
    ReadThenUpdate,
}

/// The shares of YCSB's workloads, in percent.
fn shares(mix: Mix) -> [(Kind, u64); 2] {
    match mix {
        Mix::A => [(Kind::Read, 50), (Kind::Update, 50)],
        Mix::B => [(Kind::Read, 95), (Kind::Update, 5)],
        Mix::C => [(Kind::Read, 100), (Kind::Update, 0)],
        Mix::D => [(Kind::Read, 95), (Kind::Insert, 5)],
        Mix::E => [(Kind::Scan, 95), (Kind::Insert, 5)],
        Mix::F => [(Kind::Read, 50), (Kind::ReadThenUpdate, 50)],
    }
}

/// The kind of an operation.
pub fn kind(mix: Mix, seed: u64, number: u64) -> Kind {
    let [(first, share), (second, _)] = shares(mix);
    match spread_bits(seed ^ spread_bits(number)) % 100 < share {
        true => first,
        false => second,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_ycsb() {
        for mix in [Mix::A, Mix::B, Mix::C, Mix::D, Mix::E, Mix::F] {
            let [(first, share), (_, rest)] = shares(mix);
            assert_eq!(share + rest, 100);
            let count = (0..10_000)
                .filter(|number| kind(mix, 1, *number) == first)
                .count() as u64;
            assert!(count.abs_diff(share * 100) < 200, "{mix:?}: {count}");
        }
    }
}
