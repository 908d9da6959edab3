//! Appends and reads when answers are lost, leaders move, brokers are silent, or logs are not what they were.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ilion_commitlog::{AppendError, Delivered, Record, SharedLogs, SharedTail, TailError};
use ilion_kafka_client::codes;
use ilion_kafka_log::{KafkaLogs, Missing, OpenError};
use uuid::Uuid;

use crate::brokers::{Brokers, Mode};
use crate::{META_LOG, PATIENCE, TABLETS, append, impatient, options, outcome};

/// The next records, at least so many; without what has none.
fn read(tail: &mut dyn SharedTail, count: usize) -> Vec<Delivered> {
    let (mut read, deadline) = (Vec::new(), Instant::now() + PATIENCE);
    while read.len() < count {
        assert!(Instant::now() < deadline, "only {} of {count} came", read.len());
        match tail.next(Duration::from_secs(1)) {
            Ok(delivered) => {
                let records = delivered.into_iter();
                read.extend(records.filter(|one| matches!(one, Delivered::Record { .. })));
            }
            Err(TailError::Unreachable(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    read
}

fn failure(tail: &mut dyn SharedTail) -> TailError {
    let deadline = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < deadline, "it does not fail");
        if let Err(error) = tail.next(Duration::from_secs(1)) {
            return error;
        }
    }
}

fn seqs(delivered: &[Delivered]) -> Vec<u64> {
    delivered.iter().map(|one| placed(one).1.origin.seq).collect()
}

/// The offset of a record, and the record.
fn placed(delivered: &Delivered) -> (u64, &Record) {
    match delivered {
        Delivered::Record { offset, record, .. } => (*offset, record),
        Delivered::Passed { .. } => panic!("{delivered:?} is no record"),
    }
}

#[test]
fn two_readers_read_the_same_of_all_logs() {
    let brokers = Brokers::start(1);
    let logs = KafkaLogs::open(options(&brokers)).unwrap();
    let other = KafkaLogs::open(options(&brokers)).unwrap();
    let all: Vec<(u32, u64)> = (0..TABLETS).chain([META_LOG]).map(|log| (log, 0)).collect();
    let mut early = other.tail(&all).unwrap();
    let mut own = logs.tail(&all).unwrap();
    let mut acknowledged = Vec::new();
    for seq in 1..=50 {
        for (log, _) in &all {
            acknowledged.push((*log, seq, append(&logs, *log, seq)));
        }
    }
    let acknowledged: Vec<(u32, u64, u64)> = acknowledged
        .into_iter()
        .map(|(log, seq, receiver)| (log, seq, outcome(&receiver).unwrap()))
        .collect();
    let mut late = logs.tail(&all).unwrap();
    let by_log = |delivered: Vec<Delivered>| {
        let mut by_log: BTreeMap<u32, Vec<Delivered>> = BTreeMap::new();
        for one in delivered {
            by_log.entry(one.log()).or_default().push(one);
        }
        by_log
    };
    let early = by_log(read(&mut *early, acknowledged.len()));
    assert_eq!(early, by_log(read(&mut *late, acknowledged.len())));
    assert_eq!(early, by_log(read(&mut *own, acknowledged.len())));
    let ends = all.iter().map(|(log, _)| (*log, 50));
    assert_eq!(logs.ends(), ends.collect(), "where the logs end");
    for (log, seq, offset) in acknowledged {
        let (found, record) = placed(&early[&log][usize::try_from(offset).unwrap()]);
        assert_eq!((found, record.origin.seq), (offset, seq));
        assert_eq!((record.tablet, &record.body[..]), (log, &b"body"[..]));
        assert!(record.time_micros > 1_000_000_000, "the time is that of the log");
    }
}

#[test]
fn a_lost_answer_makes_a_copy_and_no_disorder() {
    let brokers = Brokers::start(1);
    let logs = KafkaLogs::open(options(&brokers)).unwrap();
    brokers.set_mode(Mode::LoseAnswers(1));
    let first = append(&logs, 1, 1);
    let deadline = Instant::now() + PATIENCE;
    while brokers.appends() == 0 {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
    let rest: Vec<_> = (2..=5).map(|seq| append(&logs, 1, seq)).collect();
    assert_eq!(
        outcome(&first),
        Ok(1),
        "the offset of the copy that is acknowledged"
    );
    assert!(rest.iter().all(|receiver| outcome(receiver).is_ok()));
    let mut tail = logs.tail(&[(1, 0)]).unwrap();
    assert_eq!(seqs(&read(&mut *tail, 6)), [1, 1, 2, 3, 4, 5]);
}

#[test]
fn what_a_silent_broker_was_sent_is_unknown_and_what_it_was_not_is_refused() {
    let brokers = Brokers::start(1);
    let logs = KafkaLogs::open(impatient(&brokers)).unwrap();
    outcome(&append(&logs, 1, 1)).unwrap();
    brokers.set_silent(0, true);
    let sent = append(&logs, 1, 2);
    let Err(AppendError::Unknown(problem)) = outcome(&sent) else {
        panic!("it was sent")
    };
    assert!(
        problem.starts_with("not within 400ms: broker 127.0.0.1:")
            && problem.contains("did not answer within"),
        "{problem}"
    );
    let unsent = append(&logs, 2, 1);
    assert!(matches!(outcome(&unsent), Err(AppendError::Refused(_))));
    brokers.set_silent(0, false);
    // It goes on by itself.
    let deadline = Instant::now() + PATIENCE;
    let mut seq = 3;
    while outcome(&append(&logs, 1, seq)).is_err() {
        assert!(Instant::now() < deadline);
        seq += 1;
    }
}

#[test]
fn a_broker_that_answers_late_has_no_copies() {
    let brokers = Brokers::start(1);
    let mut options = options(&brokers);
    options.client.request_timeout = PATIENCE;
    options.append_timeout = Duration::from_millis(100);
    let logs = KafkaLogs::open(options).unwrap();
    outcome(&append(&logs, 1, 1)).unwrap();
    brokers.set_silent(0, true);
    let (late, deadline) = (append(&logs, 1, 2), Instant::now() + PATIENCE);
    while brokers.arrived() < 2 {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
    // Records that wait for the end of that request are given up, so its own deadline is over, too.
    let waiting = append(&logs, 2, 1);
    assert!(matches!(outcome(&waiting), Err(AppendError::Refused(_))));
    brokers.set_silent(0, false);
    assert_eq!(outcome(&late), Ok(1));
    let last = append(&logs, 1, 3);
    assert_eq!(outcome(&last), Ok(2));
    let mut tail = logs.tail(&[(1, 0)]).unwrap();
    assert_eq!(seqs(&read(&mut *tail, 3)), [1, 2, 3]);
}

#[test]
fn records_follow_a_leader_that_moves() {
    let brokers = Brokers::start(3);
    let logs = KafkaLogs::open(options(&brokers)).unwrap();
    let mut tail = logs.tail(&[(1, 0)]).unwrap();
    let mut receivers = vec![append(&logs, 1, 1)];
    outcome(&receivers[0]).unwrap();
    assert_eq!(seqs(&read(&mut *tail, 1)), [1]);
    for (leader, seq) in [(1, 2), (2, 3), (0, 4)] {
        brokers.elect(leader);
        receivers.push(append(&logs, 1, seq));
        outcome(&receivers[receivers.len() - 1]).unwrap();
        assert_eq!(seqs(&read(&mut *tail, 1)), [seq]);
    }
    // The leader is down, and another one leads.
    brokers.set_down(0, true);
    brokers.elect(1);
    outcome(&append(&logs, 1, 5)).unwrap();
    assert_eq!(seqs(&read(&mut *tail, 1)), [5]);
}

#[test]
fn errors_that_pass_are_tried_again_and_others_refused_with_what_to_do() {
    let brokers = Brokers::start(1);
    let logs = KafkaLogs::open(options(&brokers)).unwrap();
    brokers.set_mode(Mode::Fail(3, codes::NOT_ENOUGH_REPLICAS));
    assert_eq!(outcome(&append(&logs, 1, 1)), Ok(0));
    assert_eq!(brokers.appends(), 4);
    let counts = logs.counts();
    assert_eq!((counts.produce_requests, counts.produce_errors), (4, 3));
    brokers.set_mode(Mode::Fail(1, codes::TOPIC_AUTHORIZATION_FAILED));
    let Err(AppendError::Refused(problem)) = outcome(&append(&logs, 1, 2)) else {
        panic!("it may not write")
    };
    assert!(
        problem.contains("grant the login of Ilion the permission Write"),
        "{problem}"
    );
    // A batch that may be there already is not refused.
    brokers.set_mode(Mode::Fail(1, codes::NOT_ENOUGH_REPLICAS_AFTER_APPEND));
    let receiver = append(&logs, 1, 3);
    let deadline = Instant::now() + PATIENCE;
    while brokers.appends() < 6 {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
    brokers.set_mode(Mode::Fail(1, codes::TOPIC_AUTHORIZATION_FAILED));
    assert!(matches!(outcome(&receiver), Err(AppendError::Unknown(_))));
}

#[test]
fn records_that_are_too_large_or_of_no_log_are_refused() {
    let brokers = Brokers::start(1);
    let mut small = options(&brokers);
    small.record_bytes_max = 43;
    let logs = KafkaLogs::open(small).unwrap();
    assert_eq!(
        outcome(&append(&logs, 1, 1)),
        Err(AppendError::Refused(
            "it has 44 bytes, and 43 are permitted".to_owned()
        ))
    );
    assert_eq!(
        outcome(&append(&logs, TABLETS, 1)),
        Err(AppendError::Refused("there is no log 4".to_owned()))
    );
    assert_eq!(brokers.appends(), 0);
}

#[test]
fn appends_wait_for_room_and_are_refused_when_none_comes() {
    let brokers = Brokers::start(1);
    let mut narrow = impatient(&brokers);
    narrow.append_records_max = 2;
    let logs = KafkaLogs::open(narrow).unwrap();
    brokers.set_mode(Mode::Fail(u32::MAX, codes::NOT_ENOUGH_REPLICAS));
    let begun = Instant::now();
    let waiting = [append(&logs, 1, 1), append(&logs, 1, 2)];
    // The third one waits until the first ones are given up, or for its own time.
    let third = append(&logs, 1, 3);
    assert!(begun.elapsed() >= Duration::from_millis(300));
    for receiver in &waiting {
        assert!(matches!(outcome(receiver), Err(AppendError::Refused(_))));
    }
    assert!(matches!(outcome(&third), Err(AppendError::Refused(_))));
}

#[test]
fn a_tail_tells_what_was_deleted_and_goes_on_from_where_it_is_told() {
    let brokers = Brokers::start(1);
    let logs = KafkaLogs::open(options(&brokers)).unwrap();
    for seq in 1..=5 {
        outcome(&append(&logs, 1, seq)).unwrap();
    }
    logs.delete_below(1, 3).unwrap();
    let mut tail = logs.tail(&[(1, 0), (2, 0)]).unwrap();
    assert_eq!(failure(&mut *tail), TailError::Deleted { log: 1, start: 3 });
    tail.follow(1, 3);
    outcome(&append(&logs, 2, 1)).unwrap();
    let mut read = read(&mut *tail, 3);
    read.sort_by_key(|one| (one.log(), placed(one).0));
    assert_eq!(seqs(&read), [4, 5, 1]);
    assert!(matches!(logs.delete_below(1, 9), Err(TailError::Refused(_))));
}

#[test]
fn a_log_that_is_shorter_than_it_was_is_refused() {
    let brokers = Brokers::start(1);
    let logs = KafkaLogs::open(options(&brokers)).unwrap();
    let mut tail = logs.tail(&[(1, 0)]).unwrap();
    for seq in 1..=5 {
        outcome(&append(&logs, 1, seq)).unwrap();
    }
    read(&mut *tail, 5);
    brokers.forget("p.data", 1);
    let TailError::Refused(problem) = failure(&mut *tail) else {
        panic!("it is another log")
    };
    assert!(
        problem.starts_with(
            "topic p.data, partition 1 ends at offset 0, and this node has read up to 5: the topic was created anew"
        ),
        "{problem}"
    );
}

#[test]
fn a_record_of_another_cluster_stops_its_log_only() {
    let brokers = Brokers::start(1);
    let logs = KafkaLogs::open(options(&brokers)).unwrap();
    let mut foreign = options(&brokers);
    foreign.cluster = Uuid::from_u128(8);
    let foreign = KafkaLogs::open(foreign).unwrap();
    outcome(&append(&logs, 1, 1)).unwrap();
    outcome(&append(&foreign, 1, 1)).unwrap();
    let mut tail = logs.tail(&[(1, 0), (2, 0)]).unwrap();
    assert_eq!(seqs(&read(&mut *tail, 1)), [1]);
    let TailError::Unreadable { log, offset, reason } = failure(&mut *tail) else {
        panic!("it is of another cluster")
    };
    assert_eq!((log, offset), (1, 1));
    assert!(
        reason.contains("two clusters use the same prefix of topics"),
        "{reason}"
    );
    brokers.append("p.data", 2, b"hello");
    let TailError::Unreadable { log: 2, reason, .. } = failure(&mut *tail) else {
        panic!("it is no record of Ilion")
    };
    assert!(reason.contains("something else writes to this topic"), "{reason}");
    tail.follow(3, 0);
    outcome(&append(&logs, 3, 9)).unwrap();
    assert_eq!(seqs(&read(&mut *tail, 1)), [9]);
}

#[test]
fn a_tail_tells_of_silence_and_goes_on_after_it() {
    let brokers = Brokers::start(2);
    let logs = KafkaLogs::open(impatient(&brokers)).unwrap();
    let mut tail = logs.tail(&[(1, 0)]).unwrap();
    outcome(&append(&logs, 1, 1)).unwrap();
    assert_eq!(read(&mut *tail, 1).len(), 1);
    brokers.set_silent(0, true);
    brokers.set_down(1, true);
    let TailError::Unreachable(problem) = failure(&mut *tail) else {
        panic!("it may pass")
    };
    assert!(
        problem.starts_with("1 of 1 partitions, such as that of log 1, for more than 200ms: broker "),
        "{problem}"
    );
    brokers.append("p.data", 1, b"");
    brokers.set_silent(0, false);
    let error = loop {
        match failure(&mut *tail) {
            TailError::Unreachable(_) => {}
            error => break error,
        }
    };
    assert!(
        matches!(
            error,
            TailError::Unreadable {
                log: 1,
                offset: 1,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn what_a_node_has_appended_comes_without_a_broker_unless_others_came_before() {
    let brokers = Brokers::start(1);
    let logs = KafkaLogs::open(options(&brokers)).unwrap();
    let other = KafkaLogs::open(options(&brokers)).unwrap();
    let (mut own, mut of_other) = (logs.tail(&[(1, 0)]).unwrap(), other.tail(&[(1, 0)]).unwrap());
    brokers.hide_records(true);
    for seq in 1..=3 {
        outcome(&append(&logs, 1, seq)).unwrap();
    }
    assert_eq!(seqs(&read(&mut *own, 3)), [1, 2, 3]);
    outcome(&append(&other, 1, 4)).unwrap();
    outcome(&append(&logs, 1, 5)).unwrap();
    assert_eq!(own.next(Duration::ZERO).unwrap(), [], "5 must not come before 4");
    brokers.hide_records(false);
    assert_eq!(seqs(&read(&mut *own, 2)), [4, 5]);
    assert_eq!(seqs(&read(&mut *of_other, 5)), [1, 2, 3, 4, 5]);
}

#[test]
fn a_log_that_is_left_does_not_come() {
    let brokers = Brokers::start(1);
    let logs = KafkaLogs::open(options(&brokers)).unwrap();
    let mut tail = logs.tail(&[(1, 0), (2, 0)]).unwrap();
    tail.leave(1);
    outcome(&append(&logs, 1, 1)).unwrap();
    outcome(&append(&logs, 2, 2)).unwrap();
    assert_eq!(seqs(&read(&mut *tail, 1)), [2]);
    tail.follow(1, 0);
    assert_eq!(seqs(&read(&mut *tail, 1)), [1]);
}

#[test]
fn logs_that_share_a_partition_are_read_apart_and_share_their_end() {
    let brokers = Brokers::start(1);
    let mut shared = options(&brokers);
    shared.partitions = 2;
    let logs = KafkaLogs::open(shared).unwrap();
    // The topic exists, so the number of partitions in the options of the next node has no effect.
    let other = KafkaLogs::open(options(&brokers)).unwrap();
    assert_eq!(
        [0, 1, 2, 3, META_LOG].map(|log| other.sequence_of(log)),
        [0, 1, 0, 1, META_LOG]
    );
    let (mut own, mut of_other) = (
        logs.tail(&[(0, 0)]).unwrap(),
        other.tail(&[(0, 0), (2, 0)]).unwrap(),
    );
    let receivers =
        [(0, 1), (2, 1), (0, 2), (2, 2), (3, 1), (2, 3)].map(|(log, seq)| append(&logs, log, seq));
    let offsets = receivers.map(|receiver| outcome(&receiver).unwrap());
    assert_eq!(offsets, [0, 1, 2, 3, 0, 4]);
    let mut all = read(&mut *of_other, 5);
    all.sort_by_key(|one| (one.log(), placed(one).0));
    assert_eq!(seqs(&all), [1, 2, 1, 2, 3]);
    // This tail has been told how far the log was read, too: up to the end of the partition.
    let (mut upto, deadline) = (0, Instant::now() + PATIENCE);
    while upto < 5 {
        assert!(Instant::now() < deadline);
        for one in own.next(Duration::from_secs(1)).unwrap() {
            (upto, _) = match one {
                Delivered::Record { from, offset, .. } => (offset + 1, assert_eq!(from, upto)),
                Delivered::Passed { from, to, .. } => (to, assert_eq!(from, upto)),
            };
        }
    }
    // A log that is followed later is read from its beginning, and the others are not read twice.
    own.follow(2, 0);
    assert_eq!(seqs(&read(&mut *own, 3)), [1, 2, 3]);
    assert_eq!((logs.ends()[&0], other.ends()[&0]), (5, 5));
    // Both logs lack what is deleted.
    logs.delete_below(0, 4).unwrap();
    let mut late = other.tail(&[(0, 0), (2, 3)]).unwrap();
    let failed = [failure(&mut *late), failure(&mut *late)];
    assert_eq!(failed, [0, 2].map(|log| TailError::Deleted { log, start: 4 }));
}

#[test]
fn records_are_not_read_if_their_topic_was_given_more_partitions() {
    let brokers = Brokers::start(1);
    let mut shared = options(&brokers);
    shared.partitions = 1;
    let logs = KafkaLogs::open(shared).unwrap();
    outcome(&append(&logs, META_LOG, 1)).unwrap();
    outcome(&append(&logs, 3, 1)).unwrap();
    brokers.add_partition("p.data");
    let other = KafkaLogs::open(options(&brokers)).unwrap();
    for log in [META_LOG, 2] {
        let mut tail = other.tail(&[(log, 0)]).unwrap();
        let TailError::Unreadable { reason, .. } = failure(&mut *tail) else {
            panic!("its tablets may be in other partitions")
        };
        assert!(
            reason.starts_with("its sender knew 1 partitions of the topic for tablets, and there are 2 now"),
            "{reason}"
        );
    }
}

#[test]
fn topics_are_created_once_and_checked_from_then_on() {
    let brokers = Brokers::start(1);
    let mut refusing = options(&brokers);
    refusing.missing = Missing::Refuse;
    let refused = KafkaLogs::open(refusing.clone()).err().unwrap().to_string();
    assert!(
        refused.starts_with("there is no topic p.data and p.meta"),
        "{refused}"
    );
    let mut three = options(&brokers);
    three.replication_factor = 3;
    let refused = KafkaLogs::open(three.clone()).err().unwrap().to_string();
    assert!(
        refused.contains("1 brokers are up, and each log must be on 3"),
        "{refused}"
    );
    // Brokers learn of topics one after another.
    brokers.forget_topics(3);
    KafkaLogs::open(options(&brokers)).unwrap();
    KafkaLogs::open(refusing).unwrap();
    assert_eq!(
        brokers.settings("p.meta")["message.timestamp.type"],
        "LogAppendTime"
    );
    brokers.set("p.data", "retention.ms", "1000");
    brokers.set("p.meta", "cleanup.policy", "compact");
    let Some(OpenError::WrongTopics { problems }) = KafkaLogs::open(options(&brokers)).err() else {
        panic!("the topics are wrong")
    };
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].starts_with("topic p.data has retention.ms=1000, wanted -1"));
    assert!(problems[1].starts_with("topic p.meta has cleanup.policy=compact, wanted delete"));
    let mut other = options(&brokers);
    other.tablets = 3;
    let refused = KafkaLogs::open(other).err().unwrap().to_string();
    assert!(
        refused.contains("has 4 partitions, and this cluster at most 3 logs in it"),
        "{refused}"
    );
}

#[test]
fn brokers_that_are_not_there_are_named() {
    let brokers = Brokers::start(2);
    brokers.set_silent(0, true);
    brokers.set_down(1, true);
    let refused = KafkaLogs::open(impatient(&brokers)).err().unwrap();
    assert!(matches!(refused, OpenError::NoBroker { .. }));
    assert!(refused.to_string().contains("check the addresses"), "{refused}");
    brokers.set_down(1, false);
    brokers.elect(1);
    KafkaLogs::open(options(&brokers)).unwrap();
}

#[test]
fn who_closes_the_logs_hears_of_every_record() {
    let brokers = Brokers::start(1);
    let logs = Arc::new(KafkaLogs::open(options(&brokers)).unwrap());
    brokers.set_silent(0, true);
    let receivers: Vec<_> = (1..=3).map(|seq| append(&logs, 1, seq)).collect();
    let tail = logs.tail(&[(1, 0)]).unwrap();
    drop(logs);
    drop(tail);
    for receiver in &receivers {
        assert!(outcome(receiver).is_err());
    }
}
