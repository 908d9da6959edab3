//! [`Topics`]: the topics of a cluster, and the partition that keeps the records of a log.
//!
//! Tablet `t` is kept in partition `t % P` of the data topic, which has `P` partitions, at most as many as there are tablets. In this crate,
//! partitions have numbers as logs have: those of the data topic their index, and the only one of the meta topic the number of the meta log.

use std::collections::HashMap;

use ilion_kafka_client::View;

use crate::Options;

/// Which logs there are, and how they share partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sharing {
    pub tablets: u32,
    /// Partitions of the data topic: 1 to `tablets`.
    pub partitions: u32,
    pub meta_log: u32,
}

impl Sharing {
    /// The number of the partition that a log is kept in; `None` if it is none of this cluster's logs.
    pub(crate) fn partition_of(self, log: u32) -> Option<u32> {
        match log {
            _ if log == self.meta_log => Some(log),
            _ if log < self.tablets => log.checked_rem(self.partitions),
            _ => None,
        }
    }

    /// The logs that are kept in a partition.
    pub(crate) fn logs_in(self, partition: u32) -> impl Iterator<Item = u32> {
        let all = (0..self.tablets).chain([self.meta_log]);
        all.filter(move |log| self.partition_of(*log) == Some(partition))
    }

    /// Whether each tablet has a partition of its own.
    pub(crate) fn is_separate(self) -> bool {
        self.partitions == self.tablets
    }
}

/// The topics of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Topics {
    pub data: String,
    pub meta: String,
    pub sharing: Sharing,
}

impl Topics {
    /// `partitions`: of the data topic.
    pub(crate) fn new(options: &Options, partitions: u32) -> Self {
        Self {
            data: format!("{}.data", options.prefix),
            meta: format!("{}.meta", options.prefix),
            sharing: Sharing {
                tablets: options.tablets,
                partitions,
                meta_log: options.meta_log,
            },
        }
    }

    /// The topic and the index of a partition; `None` if there is none of this number.
    pub(crate) fn place(&self, partition: u32) -> Option<(&str, i32)> {
        match partition {
            _ if partition == self.sharing.meta_log => Some((&self.meta, 0)),
            _ if partition < self.sharing.partitions => Some((&self.data, i32::try_from(partition).ok()?)),
            _ => None,
        }
    }

    /// The number of a partition.
    pub(crate) fn number(&self, topic: &str, index: i32) -> Option<u32> {
        match u32::try_from(index).ok()? {
            0 if topic == self.meta => Some(self.sharing.meta_log),
            index if topic == self.data && index < self.sharing.partitions => Some(index),
            _ => None,
        }
    }

    /// The leader of each partition that has one.
    pub(crate) fn leaders(&self, view: &View) -> HashMap<u32, i32> {
        let leaders = self.partitions().filter_map(|partition| {
            let (topic, index) = self.place(partition)?;
            Some((partition, view.leader(topic, index)?))
        });
        leaders.collect()
    }

    /// What a request has for partitions, by topic. Each is made from the index of its partition; those of unknown partitions are left out.
    pub(crate) fn group<P, T>(
        &self,
        of_partitions: impl Iterator<Item = (u32, impl FnOnce(i32) -> P)>,
        topic: impl Fn(String, Vec<P>) -> T,
    ) -> Vec<T> {
        let (mut data, mut meta) = (Vec::new(), Vec::new());
        for (partition, make) in of_partitions {
            let Some((_, index)) = self.place(partition) else {
                continue;
            };
            let of_topic = if partition == self.sharing.meta_log {
                &mut meta
            } else {
                &mut data
            };
            of_topic.push(make(index));
        }
        let topics = [(&self.data, data), (&self.meta, meta)].into_iter();
        let topics = topics.filter(|(_, partitions)| !partitions.is_empty());
        topics
            .map(|(name, partitions)| topic(name.clone(), partitions))
            .collect()
    }

    /// The numbers of all partitions.
    pub(crate) fn partitions(&self) -> impl Iterator<Item = u32> {
        (0..self.sharing.partitions).chain([self.sharing.meta_log])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARING: Sharing = Sharing {
        tablets: 7,
        partitions: 4,
        meta_log: u32::MAX,
    };

    #[test]
    fn a_partition_and_its_place_belong_to_each_other() {
        let topics = Topics {
            data: "p.data".to_owned(),
            meta: "p.meta".to_owned(),
            sharing: SHARING,
        };
        for partition in topics.partitions() {
            let (topic, index) = topics.place(partition).unwrap();
            assert_eq!(topics.number(topic, index), Some(partition));
        }
        assert_eq!(topics.partitions().count(), 5);
        assert_eq!(topics.place(4), None);
        let grouped = topics.group(
            [1, 9, u32::MAX, 3]
                .map(|partition| (partition, move |index| (partition, index)))
                .into_iter(),
            |name, all| (name, all),
        );
        let [data, meta] = ["p.data", "p.meta"].map(str::to_owned);
        assert_eq!(
            grouped,
            [(data, vec![(1, 1), (3, 3)]), (meta, vec![(u32::MAX, 0)])]
        );
        for (topic, index) in [("p.data", 4), ("p.data", -1), ("p.meta", 1), ("q.data", 0)] {
            assert_eq!(topics.number(topic, index), None);
        }
    }

    #[test]
    fn each_log_is_in_one_partition() {
        let logs_in = |partition| SHARING.logs_in(partition).collect::<Vec<u32>>();
        assert_eq!(
            [0, 1, 2, 3].map(logs_in),
            [vec![0, 4], vec![1, 5], vec![2, 6], vec![3]]
        );
        assert_eq!(logs_in(u32::MAX), [u32::MAX]);
        assert_eq!(
            [SHARING.partition_of(7), SHARING.partition_of(u32::MAX - 1)],
            [None, None]
        );
    }
}
