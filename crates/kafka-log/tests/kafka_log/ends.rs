//! The ends of logs: they are known without an append, and a leader that was cut off is not believed.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use ilion_commitlog::SharedLogs;
use ilion_kafka_log::KafkaLogs;

use crate::brokers::Brokers;
use crate::{META_LOG, PATIENCE, TABLETS, options, outcome};

fn start(count: usize, replicas: u16) -> (Arc<Brokers>, KafkaLogs) {
    let brokers = Brokers::start(count);
    let logs = open(&brokers, replicas);
    (brokers, logs)
}

fn open(brokers: &Brokers, replicas: u16) -> KafkaLogs {
    open_with(brokers, replicas, PATIENCE)
}

fn open_with(brokers: &Brokers, replicas: u16, end_timeout: Duration) -> KafkaLogs {
    let mut options = options(brokers);
    options.replication_factor = replicas;
    options.client.request_timeout = Duration::from_millis(400);
    options.end_timeout = end_timeout;
    KafkaLogs::open(options).unwrap()
}

/// Appends a record, and returns its offset.
fn append(logs: &KafkaLogs, log: u32, seq: u64) -> u64 {
    outcome(&crate::append(logs, log, seq)).unwrap()
}

fn end(logs: &KafkaLogs, log: u32) -> Option<u64> {
    let (sender, receiver) = mpsc::channel();
    logs.find_end(log, Box::new(move |end| sender.send(end).unwrap()));
    receiver.recv_timeout(PATIENCE).unwrap()
}

/// The end of a log as soon as it is known.
fn end_at_last(logs: &KafkaLogs, log: u32) -> u64 {
    let deadline = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < deadline, "the end of {log} stays unknown");
        if let Some(end) = end(logs, log) {
            return end;
        }
    }
}

#[test]
fn ends_of_all_logs_are_known_without_an_append() {
    for (count, replicas) in [(1, 1), (3, 3)] {
        let (brokers, logs) = start(count, replicas);
        for (seq, log) in (1..).zip([0, 1, 1, META_LOG]) {
            append(&logs, log, seq);
        }
        let appends = brokers.appends();
        let ends = [0, 1, 2, META_LOG].map(|log| end(&logs, log));
        assert_eq!(ends, [Some(1), Some(2), Some(0), Some(1)], "{count} brokers");
        assert_eq!(end(&logs, TABLETS), None, "there is no such log");
        assert_eq!(brokers.appends(), appends);
    }
}

#[test]
fn callers_at_the_same_time_are_all_answered() {
    let (_brokers, logs) = start(3, 3);
    let (sender, receiver) = mpsc::channel();
    let offset = append(&logs, 2, 1);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for log in (0..TABLETS).cycle().take(200) {
                    let sender = sender.clone();
                    logs.find_end(log, Box::new(move |end| sender.send((log, end)).unwrap()));
                }
            });
        }
    });
    for _ in 0..800 {
        let (log, end) = receiver.recv_timeout(PATIENCE).unwrap();
        assert_eq!(end, Some(if log == 2 { offset + 1 } else { 0 }));
    }
    assert_eq!(end(&logs, 2), Some(offset + 1), "one caller after a crowd");
}

#[test]
fn the_end_is_that_of_the_new_leader_after_an_election() {
    let (brokers, logs) = start(3, 3);
    append(&logs, 1, 1);
    assert_eq!(end(&logs, 1), Some(1));
    brokers.elect(2);
    append(&logs, 1, 2);
    assert_eq!(end_at_last(&logs, 1), 2);
}

#[test]
fn a_leader_that_was_cut_off_is_not_believed() {
    let (brokers, logs) = start(3, 3);
    let writer = open(&brokers, 3);
    append(&writer, 1, 1);
    assert_eq!(end(&logs, 1), Some(1));
    brokers.cut_off(0);
    assert_eq!(
        end(&logs, 1),
        Some(1),
        "as long as no other leads, that is the end"
    );
    brokers.elect(1);
    for seq in 2..20 {
        let acknowledged = append(&writer, 1, seq);
        if let Some(end) = end(&logs, 1) {
            assert!(
                end > acknowledged,
                "the end {end} is stale: {acknowledged} was acknowledged"
            );
        }
    }
    assert_eq!(end_at_last(&logs, 1), 19, "the others are enough");
    brokers.heal(0);
    assert_eq!(end_at_last(&logs, 1), 19);
}

#[test]
fn a_silent_follower_is_not_needed_and_a_silent_leader_is() {
    let (brokers, logs) = start(3, 3);
    append(&logs, 1, 1);
    brokers.set_silent(2, true);
    for _ in 0..50 {
        assert_eq!(end(&logs, 1), Some(1));
    }
    brokers.set_silent(2, false);
    let impatient = open_with(&brokers, 3, Duration::from_millis(50));
    brokers.set_silent(0, true);
    for _ in 0..20 {
        assert_eq!(end(&impatient, 1), None);
    }
    brokers.set_silent(0, false);
    assert_eq!(end_at_last(&logs, 1), 1);
}

#[test]
fn only_as_many_brokers_are_asked_as_are_needed_and_those_that_answered_last() {
    let (brokers, logs) = start(3, 3);
    append(&logs, 1, 1);
    let requests = |count| {
        let before = logs.counts().end_requests;
        for _ in 0..count {
            assert_eq!(end(&logs, 1), Some(1));
        }
        logs.counts().end_requests - before
    };
    assert_eq!(requests(10), 20);
    // Of the two that are asked, one is the leader, 0.
    for follower in [1, 2] {
        brokers.set_silent(follower, true);
        requests(2);
        assert_eq!(requests(10), 20, "the other one is asked from now on");
        brokers.set_silent(follower, false);
    }
}

#[test]
fn too_few_brokers_confirm_nothing() {
    let (brokers, logs) = start(3, 3);
    append(&logs, 1, 1);
    brokers.set_down(1, true);
    assert_eq!(end_at_last(&logs, 1), 1, "two of three");
    brokers.set_down(2, true);
    assert_eq!(end(&logs, 1), None, "one of three");
    brokers.set_down(2, false);
    assert_eq!(end_at_last(&logs, 1), 1);
}

#[test]
fn callers_are_answered_when_the_logs_are_closed() {
    let (brokers, logs) = start(1, 1);
    brokers.set_silent(0, true);
    let (sender, receiver) = mpsc::channel();
    for log in 0..TABLETS {
        let sender = sender.clone();
        logs.find_end(log, Box::new(move |end| sender.send(end).unwrap()));
    }
    drop(logs);
    for _ in 0..TABLETS {
        assert_eq!(receiver.recv_timeout(PATIENCE).unwrap(), None);
    }
}
