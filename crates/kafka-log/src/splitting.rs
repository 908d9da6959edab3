//! [`Splitting`]: what was read of partitions, split by log. Pure.
//!
//! A log may be followed from an offset that its partition was read beyond, for the other logs in it. Then the partition is read again from
//! there, and the other logs are not told again what they were told before.

use std::collections::{BTreeMap, VecDeque};

use ilion_commitlog::{Delivered, TailError};

use crate::following::{Failed, Failure, Placed};
use crate::topics::Sharing;

/// A log that is followed. It has no records from `told` up to `seen`, apart from those that were delivered.
#[derive(Clone, Copy, Debug)]
struct Followed {
    /// The caller knows of the log up to here.
    told: u64,
    /// It was read up to here.
    seen: u64,
}

/// A partition, and those of its logs that are followed.
#[derive(Debug, Default)]
struct Partition {
    /// Records from here on will come.
    next: u64,
    logs: BTreeMap<u32, Followed>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Splitting {
    sharing: Sharing,
    partitions: BTreeMap<u32, Partition>,
    /// Failures of logs, in the order in which [`Self::take_failure`] returns them.
    failed: VecDeque<TailError>,
}

/// From where a partition must be read now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadFrom {
    pub partition: u32,
    pub offset: u64,
}

impl Splitting {
    pub(crate) fn new(sharing: Sharing) -> Self {
        Self {
            sharing,
            partitions: BTreeMap::new(),
            failed: VecDeque::new(),
        }
    }

    /// Follows a log from an offset on. `None`: its partition is read already, and not beyond this offset.
    pub(crate) fn follow(&mut self, log: u32, from: u64) -> Option<ReadFrom> {
        let number = self.sharing.partition_of(log)?;
        self.forget_failure(log);
        let partition = self.partitions.entry(number).or_default();
        let has_others = partition.logs.keys().any(|other| *other != log);
        let is_read = has_others && partition.next <= from;
        let followed = Followed {
            told: from,
            seen: from,
        };
        partition.logs.insert(log, followed);
        if is_read {
            return None;
        }
        partition.next = from;
        Some(ReadFrom {
            partition: number,
            offset: from,
        })
    }

    /// Follows a log no longer. Returns its partition if that need not be read any more.
    pub(crate) fn leave(&mut self, log: u32) -> Option<u32> {
        self.forget_failure(log);
        let number = self.sharing.partition_of(log)?;
        let partition = self.partitions.get_mut(&number)?;
        partition.logs.remove(&log);
        if !partition.logs.is_empty() {
            return None;
        }
        self.partitions.remove(&number);
        Some(number)
    }

    fn forget_failure(&mut self, log: u32) {
        let is_of_other = |error: &TailError| match error {
            TailError::Deleted { log: of, .. } | TailError::Unreadable { log: of, .. } => *of != log,
            TailError::Unreachable(_) | TailError::Refused(_) => true,
        };
        self.failed.retain(is_of_other);
    }

    /// What comes next of each log. Requires: the records of a partition come in order, from where it must be read.
    pub(crate) fn split(&mut self, placed: Vec<Placed>) -> Vec<Delivered> {
        let mut delivered = Vec::with_capacity(placed.len());
        for Placed {
            partition: number,
            offset,
            record,
        } in placed
        {
            let Some(partition) = self.partitions.get_mut(&number) else {
                continue;
            };
            if offset != partition.next {
                // The records between were lost. All logs go on behind the gap, so the `from` of what is delivered next shows it to the caller.
                partition.see();
                partition.logs.values_mut().for_each(|log| log.go_on_at(offset));
            }
            partition.next = offset + 1;
            let log = record.tablet;
            let followed = partition.logs.get_mut(&log);
            if let Some(followed) = followed.filter(|followed| followed.seen <= offset) {
                delivered.push(Delivered::Record {
                    log,
                    from: followed.told,
                    offset,
                    record,
                });
                (followed.told, followed.seen) = (offset + 1, offset + 1);
            }
        }
        for partition in self.partitions.values_mut() {
            partition.see();
            partition.tell(&mut delivered);
        }
        delivered
    }

    /// Takes a failure of a partition: which of its logs fail. Returns where the partition must be read for the others.
    pub(crate) fn fail(&mut self, failed: Failed) -> Option<ReadFrom> {
        let Failed {
            partition: number,
            failure,
        } = failed;
        let mut partition = self.partitions.remove(&number)?;
        match failure {
            Failure::Refused(problem) => self.failed.push_back(TailError::Refused(problem)),
            Failure::Unreadable { offset, reason } => {
                let errors = partition.logs.keys().map(|log| TailError::Unreadable {
                    log: *log,
                    offset,
                    reason: reason.clone(),
                });
                self.failed.extend(errors);
            }
            Failure::Deleted { start } => {
                // Those of the others were read before, or begin later.
                let lacking = partition.logs.extract_if(.., |_, log| log.seen < start);
                let errors = lacking.map(|(log, _)| TailError::Deleted { log, start });
                self.failed.extend(errors);
                if !partition.logs.is_empty() {
                    partition.next = start;
                    self.partitions.insert(number, partition);
                    return Some(ReadFrom {
                        partition: number,
                        offset: start,
                    });
                }
            }
        }
        None
    }

    /// Whether [`Self::take_failure`] has one.
    pub(crate) fn has_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// The next failure of a log.
    pub(crate) fn take_failure(&mut self) -> Option<TailError> {
        self.failed.pop_front()
    }
}

impl Partition {
    /// Notes that all logs were read as far as the partition.
    fn see(&mut self) {
        let next = self.next;
        self.logs
            .values_mut()
            .for_each(|log| log.seen = log.seen.max(next));
    }

    /// Tells what was read of logs that have no record there.
    fn tell(&mut self, delivered: &mut Vec<Delivered>) {
        let untold = self
            .logs
            .iter_mut()
            .filter(|(_, followed)| followed.told < followed.seen);
        delivered.extend(untold.map(|(log, followed)| Delivered::Passed {
            log: *log,
            from: std::mem::replace(&mut followed.told, followed.seen),
            to: followed.seen,
        }));
    }
}

impl Followed {
    /// Goes on behind a gap, unless the log is read beyond it already.
    fn go_on_at(&mut self, offset: u64) {
        if self.seen < offset {
            (self.told, self.seen) = (offset, offset);
        }
    }
}

#[cfg(test)]
mod tests {
    use ilion_commitlog::Envelope;

    use super::*;

    const SHARING: Sharing = Sharing {
        tablets: 6,
        partitions: 2,
        meta_log: u32::MAX,
    };

    fn placed(partition: u32, offset: u64, log: u32) -> Placed {
        let envelope = Envelope {
            tablet: log,
            ..Envelope::mutation(b"")
        };
        Placed {
            partition,
            offset,
            record: envelope.to_record(),
        }
    }

    /// Records of partition 0, the first at this offset, of these logs.
    fn of_logs(first: u64, logs: &[u32]) -> Vec<Placed> {
        let placed = |(offset, log): (u64, &u32)| placed(0, offset, *log);
        (first..).zip(logs).map(placed).collect()
    }

    /// What was delivered, in short: the log, from where, and the offset of the record or up to where there is none.
    fn told(delivered: &[Delivered]) -> Vec<String> {
        let told = |one: &Delivered| match one {
            Delivered::Record {
                log, from, offset, ..
            } => format!("{log}: {from} record {offset}"),
            Delivered::Passed { log, from, to } => format!("{log}: {from} none to {to}"),
        };
        delivered.iter().map(told).collect()
    }

    fn begun(logs: &[(u32, u64)]) -> Splitting {
        let mut splitting = Splitting::new(SHARING);
        for (log, from) in logs {
            splitting.follow(*log, *from);
        }
        splitting
    }

    #[test]
    fn each_log_is_told_its_records_and_how_far_it_was_read() {
        let mut splitting = begun(&[(0, 3), (2, 3), (u32::MAX, 7)]);
        let mut read = of_logs(3, &[2, 4, 0, 2, 4]);
        read.push(placed(u32::MAX, 7, u32::MAX));
        let expected = [
            "2: 3 record 3",
            "0: 3 record 5",
            "2: 4 record 6",
            "4294967295: 7 record 7",
            "0: 6 none to 8",
            "2: 7 none to 8",
        ];
        assert_eq!(told(&splitting.split(read)), expected);
        assert_eq!(
            told(&splitting.split(of_logs(8, &[0]))),
            ["0: 8 record 8", "2: 8 none to 9"]
        );
    }

    #[test]
    fn a_log_that_begins_earlier_makes_its_partition_be_read_again() {
        let from = |offset| Some(ReadFrom { partition: 0, offset });
        let mut splitting = begun(&[]);
        assert_eq!(splitting.follow(0, 5), from(5));
        assert_eq!(splitting.follow(2, 7), None);
        splitting.split(of_logs(5, &[0, 2, 2]));
        assert_eq!(splitting.follow(4, 6), from(6));
        let expected = [
            "4: 6 record 7",
            "2: 8 record 8",
            "0: 8 none to 9",
            "4: 8 none to 9",
        ];
        assert_eq!(told(&splitting.split(of_logs(6, &[2, 4, 2]))), expected);
        // It had been read up to 9.
        assert_eq!(splitting.follow(2, 9), None);
        assert_eq!(splitting.follow(2, 8), from(8));
    }

    #[test]
    fn a_partition_is_read_as_long_as_one_of_its_logs_is_followed() {
        let mut splitting = begun(&[(0, 0), (2, 0)]);
        assert_eq!(splitting.leave(0), None);
        assert_eq!(told(&splitting.split(of_logs(0, &[0, 2]))), ["2: 0 record 1"]);
        assert_eq!(splitting.leave(2), Some(0));
        assert_eq!(splitting.leave(2), None);
        assert!(splitting.split(of_logs(2, &[0, 2])).is_empty());
    }

    #[test]
    fn lost_records_are_not_told_as_passed() {
        let mut splitting = begun(&[(0, 0), (2, 0), (4, 9)]);
        let mut read = of_logs(0, &[0, 0]);
        read.extend(of_logs(5, &[2]));
        let expected = [
            "0: 0 record 0",
            "0: 1 record 1",
            "2: 5 record 5",
            "0: 5 none to 6",
        ];
        assert_eq!(told(&splitting.split(read)), expected);
    }

    #[test]
    fn logs_that_need_what_is_deleted_fail_and_the_others_go_on() {
        let mut splitting = begun(&[(0, 2), (2, 8), (4, 3)]);
        let failure = Failure::Deleted { start: 5 };
        let from = splitting.fail(Failed {
            partition: 0,
            failure,
        });
        let expected = ReadFrom {
            partition: 0,
            offset: 5,
        };
        assert_eq!(from, Some(expected));
        // The caller leaves log 4 before it takes the failure of that log.
        splitting.leave(4);
        assert_eq!(
            splitting.take_failure(),
            Some(TailError::Deleted { log: 0, start: 5 })
        );
        assert!(!splitting.has_failed());
        let read = of_logs(5, &[2, 0, 2, 2]);
        assert_eq!(told(&splitting.split(read)), ["2: 8 record 8"]);
    }

    #[test]
    fn a_record_that_cannot_be_read_stops_all_logs_of_its_partition() {
        let mut splitting = begun(&[(0, 2), (2, 2), (1, 2)]);
        let failure = Failure::Unreadable {
            offset: 3,
            reason: "damaged".to_owned(),
        };
        assert_eq!(
            splitting.fail(Failed {
                partition: 0,
                failure
            }),
            None
        );
        let failed: Vec<TailError> = std::iter::from_fn(|| splitting.take_failure()).collect();
        let expected = [0, 2].map(|log| TailError::Unreadable {
            log,
            offset: 3,
            reason: "damaged".to_owned(),
        });
        assert_eq!(failed, expected);
        assert!(splitting.split(of_logs(3, &[0])).is_empty());
        assert_eq!(told(&splitting.split(vec![placed(1, 2, 1)])), ["1: 2 record 2"]);
    }
}
