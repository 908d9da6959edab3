//! [`Topics`]: which partition of which topic a log is.

use std::collections::HashMap;

use ilion_kafka_client::View;

use crate::Options;

/// The topics of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Topics {
    pub data: String,
    pub meta: String,
    pub tablets: u32,
    pub meta_log: u32,
}

impl Topics {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            data: format!("{}.data", options.prefix),
            meta: format!("{}.meta", options.prefix),
            tablets: options.tablets,
            meta_log: options.meta_log,
        }
    }

    /// The topic and the partition of a log; `None` if it is none of this cluster's.
    pub(crate) fn place(&self, log: u32) -> Option<(&str, i32)> {
        match log {
            _ if log == self.meta_log => Some((&self.meta, 0)),
            _ if log < self.tablets => Some((&self.data, i32::try_from(log).ok()?)),
            _ => None,
        }
    }

    /// The log of a partition.
    pub(crate) fn log(&self, topic: &str, partition: i32) -> Option<u32> {
        match u32::try_from(partition).ok()? {
            0 if topic == self.meta => Some(self.meta_log),
            log if topic == self.data && log < self.tablets => Some(log),
            _ => None,
        }
    }

    /// The leader of each log that has one.
    pub(crate) fn leaders(&self, view: &View) -> HashMap<u32, i32> {
        let leaders = self.logs().filter_map(|log| {
            let (topic, partition) = self.place(log)?;
            Some((log, view.leader(topic, partition)?))
        });
        leaders.collect()
    }

    /// The partitions of a request, by topic. Each is made from its index and belongs to a log; those of unknown logs are left out.
    pub(crate) fn group<P, T>(
        &self,
        of_logs: impl Iterator<Item = (u32, impl FnOnce(i32) -> P)>,
        topic: impl Fn(String, Vec<P>) -> T,
    ) -> Vec<T> {
        let (mut data, mut meta) = (Vec::new(), Vec::new());
        for (log, partition) in of_logs {
            let Some((_, index)) = self.place(log) else {
                continue;
            };
            let of_topic = if log == self.meta_log {
                &mut meta
            } else {
                &mut data
            };
            of_topic.push(partition(index));
        }
        let topics = [(&self.data, data), (&self.meta, meta)].into_iter();
        let topics = topics.filter(|(_, partitions)| !partitions.is_empty());
        topics
            .map(|(name, partitions)| topic(name.clone(), partitions))
            .collect()
    }

    /// All logs.
    pub(crate) fn logs(&self) -> impl Iterator<Item = u32> {
        (0..self.tablets).chain([self.meta_log])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_and_its_partition_belong_to_each_other() {
        let topics = Topics {
            data: "p.data".to_owned(),
            meta: "p.meta".to_owned(),
            tablets: 4,
            meta_log: u32::MAX,
        };
        for log in topics.logs() {
            let (topic, partition) = topics.place(log).unwrap();
            assert_eq!(topics.log(topic, partition), Some(log));
        }
        assert_eq!(topics.logs().count(), 5);
        assert_eq!(topics.place(4), None);
        let grouped = topics.group(
            [1, 9, u32::MAX, 3]
                .map(|log| (log, move |index| (log, index)))
                .into_iter(),
            |name, all| (name, all),
        );
        let [data, meta] = ["p.data", "p.meta"].map(str::to_owned);
        assert_eq!(
            grouped,
            [(data, vec![(1, 1), (3, 3)]), (meta, vec![(u32::MAX, 0)])]
        );
        for (topic, partition) in [("p.data", 4), ("p.data", -1), ("p.meta", 1), ("q.data", 0)] {
            assert_eq!(topics.log(topic, partition), None);
        }
    }
}
