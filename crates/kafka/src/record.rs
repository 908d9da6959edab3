//! Records, and how they are cut into requests.

use std::collections::VecDeque;

/// Bytes of a record in a request beside its key, value and headers.
const OVERHEAD_BYTES: usize = 32;
/// A request has about this many bytes, or one record. Kafka's limit of a batch is 1 MiB, unless the topic has another.
const REQUEST_BYTES: usize = 512 << 10;

/// A record of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its key.
    pub key: Option<Vec<u8>>,
    /// Its value.
    pub value: Vec<u8>,
    /// Its headers.
    pub headers: Vec<(&'static str, Vec<u8>)>,
    /// Its time. Topics with `LogAppendTime` have their own.
    pub created_millis: i64,
}

impl Record {
    /// About how many bytes it takes in a request.
    pub fn size_bytes(&self) -> usize {
        let headers: usize = self
            .headers
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum();
        OVERHEAD_BYTES + self.key.as_ref().map_or(0, Vec::len) + self.value.len() + headers
    }
}

/// Cuts records into requests, in their order.
pub(crate) fn cut(records: Vec<Record>) -> VecDeque<Vec<Record>> {
    let mut requests: VecDeque<Vec<Record>> = VecDeque::new();
    let mut last_bytes = usize::MAX;
    for record in records {
        let bytes = record.size_bytes();
        match requests.back_mut() {
            Some(last) if last_bytes.saturating_add(bytes) <= REQUEST_BYTES => {
                last_bytes += bytes;
                last.push(record);
            }
            _ => {
                last_bytes = bytes;
                requests.push_back(vec![record]);
            }
        }
    }
    requests
}

/// Puts two halves in the place of the first request. Returns false if it has one record only.
pub(crate) fn halve(requests: &mut VecDeque<Vec<Record>>) -> bool {
    let Some(first) = requests.front_mut().filter(|first| first.len() > 1) else {
        return false;
    };
    let second = first.split_off(first.len() / 2);
    requests.insert(1, second);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: u8, bytes: usize) -> Record {
        Record {
            key: None,
            value: vec![number; bytes - OVERHEAD_BYTES],
            headers: Vec::new(),
            created_millis: 0,
        }
    }

    fn numbers(requests: &VecDeque<Vec<Record>>) -> Vec<Vec<u8>> {
        let of_one = |records: &Vec<Record>| records.iter().map(|record| record.value[0]).collect();
        requests.iter().map(of_one).collect()
    }

    #[test]
    fn requests_are_full_and_keep_the_order() {
        let half = REQUEST_BYTES / 2;
        let records = vec![
            record(1, half),
            record(2, half),
            record(3, half),
            record(4, 2 * REQUEST_BYTES),
            record(5, 64),
        ];
        assert_eq!(numbers(&cut(records)), [vec![1, 2], vec![3], vec![4], vec![5]]);
        assert!(cut(Vec::new()).is_empty());
    }

    #[test]
    fn a_request_that_is_too_large_is_halved_in_order() {
        let mut requests = cut((1..=3)
            .map(|number| record(number, 64))
            .chain([record(4, REQUEST_BYTES)])
            .collect());
        assert!(halve(&mut requests));
        assert_eq!(numbers(&requests), [vec![1], vec![2, 3], vec![4]]);
        assert!(!halve(&mut requests), "one record cannot be halved");
    }
}
