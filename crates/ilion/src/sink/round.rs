//! Changes on their way to a topic, by partition.

use ilion_kafka::{Record, partition_of};

use super::line::ConsumerProgress;

/// A round with at least this many bytes is full.
const BYTES_MAX: usize = 1 << 20;

/// Changes that are sent together. Changes of one key are in one partition, in their order.
#[derive(Debug)]
pub struct Round {
    partitions: Vec<Vec<Record>>,
    bytes: usize,
    /// Position of the consumer once all are sent; `None` if it has not moved.
    place: Option<ConsumerProgress>,
}

impl Round {
    /// An empty round for a topic with `partitions` partitions.
    pub fn new(partitions: usize) -> Self {
        Self {
            partitions: vec![Vec::new(); partitions],
            bytes: 0,
            place: None,
        }
    }

    /// Adds a change. A change without a key is sent to all partitions.
    pub fn add(&mut self, place: ConsumerProgress, key: Option<Vec<u8>>, envelope: Vec<u8>) {
        let record = Record {
            key,
            value: envelope,
            headers: Vec::new(),
            created_millis: place.logged_millis,
        };
        match &record.key {
            Some(key) => {
                let partition = partition_of(key, self.partitions.len());
                self.bytes += record.size_bytes();
                self.partitions[partition].push(record);
            }
            None => {
                for partition in &mut self.partitions {
                    self.bytes += record.size_bytes();
                    partition.push(record.clone());
                }
            }
        }
        self.place = Some(place);
    }

    /// Moves the position of the consumer without adding a change.
    pub fn advance(&mut self, place: ConsumerProgress) {
        self.place = Some(place);
    }

    /// True if the round has neither changes nor a new position.
    pub fn is_empty(&self) -> bool {
        self.place.is_none()
    }

    /// True if the round has `BYTES_MAX` bytes or more.
    pub fn is_full(&self) -> bool {
        self.bytes >= BYTES_MAX
    }

    /// Empties the round; returns its records by partition, and its position.
    pub fn take(&mut self) -> (Vec<(usize, Vec<Record>)>, Option<ConsumerProgress>) {
        let partitions = self.partitions.len();
        let taken = std::mem::replace(self, Self::new(partitions));
        (taken.partitions.into_iter().enumerate().collect(), taken.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(position: &str) -> ConsumerProgress {
        ConsumerProgress {
            position: position.to_owned(),
            logged_millis: 1,
        }
    }

    fn values(round: &mut Round) -> Vec<Vec<String>> {
        let text = |record: &Record| String::from_utf8(record.value.clone()).unwrap();
        let (partitions, _) = round.take();
        partitions
            .iter()
            .map(|(_, records)| records.iter().map(text).collect())
            .collect()
    }

    #[test]
    fn changes_of_a_key_stay_together_in_order_and_a_truncation_is_everywhere() {
        let mut round = Round::new(3);
        // The keys are in partitions 1, 2 and 1.
        for (number, key) in [
            (1, Some("{\"k\":1}")),
            (2, Some("{\"k\":2}")),
            (3, Some("{\"k\":1}")),
            (4, None),
            (5, Some("{\"k\":1}")),
        ] {
            round.add(place("7:1"), key.map(Vec::from), number.to_string().into_bytes());
        }
        let mut partitions = values(&mut round);
        partitions.sort();
        assert_eq!(partitions, [vec!["1", "3", "4", "5"], vec!["2", "4"], vec!["4"]]);
    }

    #[test]
    fn a_round_ends_where_its_last_change_or_position_says() {
        let mut round = Round::new(1);
        assert!(round.is_empty());
        round.add(place("7:1"), Some(b"1".to_vec()), b"x".to_vec());
        round.advance(place("7:9"));
        assert_eq!(round.take().1, Some(place("7:9")));
        assert!(round.is_empty());
    }

    #[test]
    fn a_round_is_bounded() {
        let mut round = Round::new(2);
        let mut added = 0;
        while !round.is_full() {
            round.add(place("7:1"), Some(b"1".to_vec()), vec![b'x'; 1000]);
            added += 1;
        }
        assert!(added <= 1 + BYTES_MAX / 1000, "{added}");
    }
}
