//! Laws that can be checked without a search. Each value has a version: a timestamp, or a number that grows.

use std::collections::BTreeMap;
use std::fmt;

/// A law that a history breaks, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// A write of a version; the highest version wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The cell.
    pub key: u64,
    /// Its version.
    pub version: u64,
    /// When it was acknowledged. `None` if that is unknown.
    pub acknowledged: Option<u64>,
}

/// A read of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The session or replica that sees the reads in this order.
    pub reader: u32,
    /// The cell.
    pub key: u64,
    /// When it was called.
    pub called: u64,
    /// When it was answered.
    pub returned: u64,
    /// The version found; 0 if there was none.
    pub version: u64,
}

/// A read at QUORUM returns the newest write that was acknowledged before its call, or a newer one. It never returns a version that
/// nobody wrote.
///
/// # Errors
/// The first read that breaks the law.
pub fn check_fresh(writes: &[Write], reads: &[Read]) -> Result<(), Violation> {
    for read in reads {
        let of_key = || writes.iter().filter(|write| write.key == read.key);
        let acknowledged = of_key().filter(|write| write.acknowledged.is_some_and(|time| time < read.called));
        let newest = acknowledged.map(|write| write.version).max().unwrap_or(0);
        if read.version < newest {
            let (key, found, called) = (read.key, read.version, read.called);
            return Err(Violation(format!(
                "stale: key {key} at {called} had version {found}, though version {newest} was acknowledged before"
            )));
        }
        if read.version != 0 && !of_key().any(|write| write.version == read.version) {
            let (key, found) = (read.key, read.version);
            return Err(Violation(format!(
                "invented: key {key} had version {found}, which nobody wrote"
            )));
        }
    }
    Ok(())
}

/// A reader that has seen a version sees no older one later.
///
/// # Errors
/// The first read that goes back.
pub fn check_monotonic(reads: &[Read]) -> Result<(), Violation> {
    let mut in_order: Vec<&Read> = reads.iter().collect();
    in_order.sort_by_key(|read| read.called);
    let mut newest: BTreeMap<(u32, u64), Vec<(u64, u64)>> = BTreeMap::new();
    for read in in_order {
        let before = newest.entry((read.reader, read.key)).or_default();
        let earlier = before.iter().filter(|(returned, _)| *returned < read.called);
        let seen = earlier.map(|(_, version)| *version).max().unwrap_or(0);
        if read.version < seen {
            let (reader, key, found) = (read.reader, read.key, read.version);
            return Err(Violation(format!(
                "back in time: reader {reader} saw version {seen} of key {key}, and later {found}"
            )));
        }
        before.push((read.returned, read.version));
    }
    Ok(())
}

/// An addition to a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Add {
    /// The counter.
    pub key: u64,
    /// The amount that was added.
    pub amount: i64,
    /// When it was called.
    pub called: u64,
    /// When it was acknowledged. `None` if that is unknown.
    pub acknowledged: Option<u64>,
}

/// A read of a counter, which must see all acknowledged additions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterRead {
    /// The counter.
    pub key: u64,
    /// When it was called.
    pub called: u64,
    /// When it was answered.
    pub returned: u64,
    /// The value found.
    pub value: i64,
}

/// A counter is the sum of all additions that were acknowledged before the read, and of some of those that were unknown or in progress.
///
/// # Errors
/// The first read that is out of these bounds.
pub fn check_counter(adds: &[Add], reads: &[CounterRead]) -> Result<(), Violation> {
    for read in reads {
        let (mut least, mut most) = (0, 0);
        for add in adds
            .iter()
            .filter(|add| add.key == read.key && add.called <= read.returned)
        {
            let is_settled = add.acknowledged.is_some_and(|time| time < read.called);
            least += if is_settled { add.amount } else { add.amount.min(0) };
            most += if is_settled { add.amount } else { add.amount.max(0) };
        }
        if read.value < least || read.value > most {
            let (key, value, called) = (read.key, read.value, read.called);
            return Err(Violation(format!(
                "counter {key} at {called} was {value}, and must be {least} to {most}"
            )));
        }
    }
    Ok(())
}

/// A logged batch: it writes the same version to several cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The version of all its writes.
    pub version: u64,
    /// Its cells.
    pub keys: Vec<u64>,
    /// Whether it was acknowledged.
    pub is_acknowledged: bool,
}

/// After all clients have stopped, a batch is visible as a whole or not at all. `last` has the final version of each cell. A cell with a
/// newer version does not show whether an older batch took effect.
///
/// # Errors
/// The first batch that is visible in part, or not visible although it was acknowledged.
pub fn check_batches(batches: &[Batch], last: &BTreeMap<u64, u64>) -> Result<(), Violation> {
    let version_of = |key: &u64| last.get(key).copied().unwrap_or(0);
    for batch in batches {
        let is_there = batch.is_acknowledged || batch.keys.iter().any(|key| version_of(key) == batch.version);
        let missing = batch.keys.iter().find(|key| version_of(key) < batch.version);
        if let (true, Some(key)) = (is_there, missing) {
            let (version, found) = (batch.version, version_of(key));
            return Err(Violation(format!(
                "batch {version} is there in part: key {key} has version {found}"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{
        Add, Batch, CounterRead, Read, Write, check_batches, check_counter, check_fresh, check_monotonic,
    };

    fn write(version: u64, acknowledged: Option<u64>) -> Write {
        let key = 1;
        Write {
            key,
            version,
            acknowledged,
        }
    }

    fn read(called: u64, returned: u64, version: u64) -> Read {
        let (reader, key) = (7, 1);
        Read {
            reader,
            key,
            called,
            returned,
            version,
        }
    }

    #[test]
    fn a_read_sees_what_was_acknowledged_before_it() {
        let writes = [write(1, Some(10)), write(2, Some(20)), write(3, None)];
        for good in [
            read(5, 6, 0),
            read(5, 6, 3),
            read(15, 16, 1),
            read(20, 21, 1),
            read(21, 22, 2),
            read(99, 99, 3),
        ] {
            assert_eq!(check_fresh(&writes, &[good]), Ok(()), "{good:?}");
        }
        for bad in [read(11, 12, 0), read(21, 22, 1), read(5, 6, 9)] {
            assert!(check_fresh(&writes, &[bad]).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_reader_does_not_go_back() {
        assert_eq!(
            check_monotonic(&[read(1, 2, 5), read(3, 4, 5), read(5, 6, 7)]),
            Ok(())
        );
        // The second is called before the first returns.
        assert_eq!(check_monotonic(&[read(1, 4, 5), read(3, 9, 4)]), Ok(()));
        assert!(check_monotonic(&[read(3, 4, 4), read(1, 2, 5)]).is_err());
        // A read that overlaps both does not hide it.
        assert!(check_monotonic(&[read(1, 2, 5), read(1, 99, 3), read(3, 4, 4)]).is_err());
    }

    #[test]
    fn a_counter_is_the_sum_of_what_was_acknowledged_and_some_of_the_rest() {
        let add = |amount, called, acknowledged| Add {
            key: 1,
            amount,
            called,
            acknowledged,
        };
        let adds = [add(5, 1, Some(2)), add(-3, 3, None), add(10, 4, Some(8))];
        let check = |called, returned, value| {
            check_counter(
                &adds,
                &[CounterRead {
                    key: 1,
                    called,
                    returned,
                    value,
                }],
            )
        };
        assert!(check(9, 10, 15).is_ok() && check(9, 10, 12).is_ok());
        assert!(check(9, 10, 11).is_err() && check(9, 10, 16).is_err());
        assert!(check(5, 6, 2).is_ok() && check(5, 6, 15).is_ok() && check(5, 6, 16).is_err());
        assert!(check(0, 0, 0).is_ok() && check(0, 0, 5).is_err());
    }

    #[test]
    fn a_batch_is_there_as_a_whole_or_not() {
        let batch = |version, is_acknowledged| Batch {
            version,
            keys: vec![1, 2],
            is_acknowledged,
        };
        let check = |batch: Batch, one, other| check_batches(&[batch], &[(1, one), (2, other)].into());
        assert!(check(batch(5, true), 5, 5).is_ok() && check(batch(5, true), 6, 5).is_ok());
        assert!(check(batch(5, true), 5, 4).is_err() && check(batch(5, true), 4, 4).is_err());
        assert!(check(batch(5, false), 4, 4).is_ok() && check(batch(5, false), 5, 4).is_err());
        assert!(check(batch(5, false), 6, 4).is_ok());
    }
}
