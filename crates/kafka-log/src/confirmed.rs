//! [`Round`]: which replicas can be asked for the ends of partitions, and when an end is confirmed. Pure.
//!
//! A leader that was cut off does not know that another one was elected. It still answers, and the end that it knows is too low. So its word
//! alone is not enough:
//!
//! - A record is acknowledged once the leader and all in-sync replicas have it, at least `min.insync.replicas` brokers together. They
//!   have it from that leader, so each of them knows the leader's epoch, and does not go back to an older one.
//! - If `replicas - min.insync.replicas + 1` brokers, asked now, still know epoch `e` as the newest, there are too few others: no leader
//!   with a newer epoch has acknowledged a record before they were asked.
//! - If one of them is the leader of epoch `e`, then its high watermark is above all records that were acknowledged before, in this epoch
//!   or an older one. (A leader that was just elected does not tell its high watermark before that holds, KIP-207.)
//!
//! Brokers compare epochs themselves: a request names the epoch, and they refuse one that is older or newer than theirs (KIP-320).

use std::collections::BTreeMap;

use ilion_kafka_client::Partition;

/// What a broker is asked as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// The leader: for the high watermark.
    Leader,
    /// Another replica: only for the epoch.
    Follower,
}

/// A broker, and what it is asked as.
pub(crate) type Witness = (i32, Role);

/// The end of a partition, or `None` if it is not confirmed.
pub(crate) type Outcome = Option<u64>;

/// A partition whose end is not known yet.
#[derive(Debug)]
struct Open {
    /// The leader's high watermark.
    end: Option<u64>,
    /// Answers that know no newer epoch, and how many of them are needed.
    confirmed: usize,
    needed: usize,
    /// Witnesses that have not answered.
    expected: usize,
}

/// The ends of some partitions, all asked for at the same time.
#[derive(Debug, Default)]
pub(crate) struct Round {
    open: BTreeMap<u32, Open>,
}

impl Round {
    /// Adds a partition. Returns who can be asked, the leader first; empty if the end cannot be confirmed now.
    pub(crate) fn add(&mut self, number: u32, partition: &Partition, min_in_sync: usize) -> Vec<Witness> {
        let Some(leader) = partition.leader.filter(|_| partition.epoch >= 0) else {
            return Vec::new();
        };
        let others = partition.replicas.iter().filter(|broker| **broker != leader);
        let followers = others.map(|broker| (*broker, Role::Follower));
        let witnesses: Vec<Witness> = [(leader, Role::Leader)].into_iter().chain(followers).collect();
        let open = Open {
            end: None,
            confirmed: 0,
            needed: (witnesses.len() + 1).saturating_sub(min_in_sync).max(1),
            expected: witnesses.len(),
        };
        self.open.insert(number, open);
        witnesses
    }

    /// Takes an answer about a partition: what the broker gives as its end, or `None` if it does not answer, or refuses the epoch. Returns the
    /// outcome once it is certain.
    pub(crate) fn take(&mut self, number: u32, role: Role, answer: Option<u64>) -> Option<Outcome> {
        let open = self.open.get_mut(&number)?;
        open.expected = open.expected.saturating_sub(1);
        open.confirmed += usize::from(answer.is_some());
        let is_leader = role == Role::Leader;
        if is_leader {
            open.end = answer;
        }
        let outcome = match open.end {
            Some(end) if open.confirmed >= open.needed => Some(end),
            None if is_leader => None,
            _ if open.confirmed + open.expected < open.needed => None,
            _ => return None,
        };
        self.open.remove(&number);
        Some(outcome)
    }

    /// How many answers an end needs, that of the leader included; 0 if the partition has an outcome.
    pub(crate) fn needed(&self, number: u32) -> usize {
        self.open.get(&number).map_or(0, |open| open.needed)
    }

    /// Whether all partitions have an outcome.
    pub(crate) fn is_over(&self) -> bool {
        self.open.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEADER: Role = Role::Leader;
    const FOLLOWER: Role = Role::Follower;

    fn partition(replicas: &[i32]) -> Partition {
        Partition {
            leader: Some(1),
            epoch: 4,
            replicas: replicas.to_vec(),
        }
    }

    /// The outcome after each answer.
    fn outcomes(
        replicas: &[i32],
        min_in_sync: usize,
        answers: &[(Role, Option<u64>)],
    ) -> Vec<Option<Outcome>> {
        let mut round = Round::default();
        let witnesses = round.add(7, &partition(replicas), min_in_sync);
        assert_eq!(witnesses.len(), replicas.len());
        let answers = answers.iter();
        answers
            .map(|(role, answer)| round.take(7, *role, *answer))
            .collect()
    }

    #[test]
    fn the_leader_is_asked_for_its_end_and_the_others_for_the_epoch() {
        let witnesses = Round::default().add(7, &partition(&[3, 1, 2]), 2);
        assert_eq!(witnesses, [(1, LEADER), (3, FOLLOWER), (2, FOLLOWER)]);
    }

    #[test]
    fn the_end_of_the_leader_counts_once_another_replica_confirms_its_epoch() {
        let yes = [(LEADER, Some(9)), (FOLLOWER, Some(2))];
        assert_eq!(outcomes(&[1, 2, 3], 2, &yes), [None, Some(Some(9))]);
        let yes = [(FOLLOWER, Some(20)), (FOLLOWER, Some(2)), (LEADER, Some(9))];
        assert_eq!(outcomes(&[1, 2, 3], 2, &yes), [None, None, Some(Some(9))]);
        let one_is_down = [(FOLLOWER, None), (LEADER, Some(9)), (FOLLOWER, Some(9))];
        assert_eq!(outcomes(&[1, 2, 3], 2, &one_is_down), [None, None, Some(Some(9))]);
    }

    #[test]
    fn a_leader_that_nobody_confirms_is_not_believed() {
        let cut_off = [(LEADER, Some(9)), (FOLLOWER, None), (FOLLOWER, None)];
        assert_eq!(outcomes(&[1, 2, 3], 2, &cut_off), [None, None, Some(None)]);
    }

    #[test]
    fn without_the_leader_the_end_is_not_known() {
        let silent = [(FOLLOWER, Some(9)), (FOLLOWER, Some(9)), (LEADER, None)];
        assert_eq!(outcomes(&[1, 2, 3], 2, &silent), [None, None, Some(None)]);
        let mut leaderless = partition(&[1, 2, 3]);
        leaderless.leader = None;
        let mut round = Round::default();
        assert_eq!(round.add(7, &leaderless, 2), []);
        assert!(round.is_over());
    }

    #[test]
    fn as_many_must_confirm_as_leave_too_few_for_another_leader() {
        let alone = [(LEADER, Some(9))];
        assert_eq!(outcomes(&[1], 1, &alone), [Some(Some(9))]);
        assert_eq!(
            outcomes(&[1, 2], 2, &alone),
            [Some(Some(9))],
            "another leader needs both"
        );
        let two = [(LEADER, Some(9)), (FOLLOWER, Some(9)), (FOLLOWER, Some(9))];
        assert_eq!(outcomes(&[1, 2, 3], 1, &two), [None, None, Some(Some(9))]);
        assert_eq!(
            outcomes(&[1, 2, 3, 4, 5], 2, &two),
            [None; 3],
            "the two others may have another leader"
        );
        assert_eq!(outcomes(&[1, 2, 3, 4, 5], 3, &two), [None, None, Some(Some(9))]);
    }

    /// All histories of two leaders: whoever acknowledged a record before the question, the answers that confirm an end are not below it.
    #[test]
    fn no_confirmed_end_is_below_an_acknowledged_record() {
        for replicas in 1..=5_usize {
            for min_in_sync in 1..=replicas {
                // The in-sync replicas of the newer leader (bits), which is one of them, and those that answer.
                for in_sync in 0..1_u32 << replicas {
                    for answering in 0..1_u32 << replicas {
                        let has_acknowledged = in_sync.count_ones() as usize >= min_in_sync;
                        let brokers: Vec<i32> = (1..=replicas as i32).collect();
                        let mut round = Round::default();
                        let witnesses = round.add(7, &partition(&brokers), min_in_sync);
                        let mut outcome = None;
                        for (broker, role) in witnesses {
                            let bit = 1 << (broker - 1);
                            let knows_old = answering & bit != 0 && in_sync & bit == 0;
                            outcome = outcome.or(round.take(7, role, knows_old.then_some(9)));
                        }
                        if has_acknowledged {
                            assert_eq!(
                                outcome.flatten(),
                                None,
                                "{replicas} {min_in_sync} {in_sync:b} {answering:b}"
                            );
                        }
                    }
                }
            }
        }
    }
}
