//! Tests of `KafkaLogs` with brokers that are threads of the test (`brokers`): each test decides what they do wrong.
//!
//! | module | what it shows |
//! | --- | --- |
//! | `logs` | appends and reads when answers are lost, leaders move, brokers are silent, or logs are not what they were |
//! | `ends` | the ends of logs: a leader that was cut off is not believed |
//!
//! tests/smoke/test_kafka_log.py has the same against real brokers that are killed.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

mod brokers;
mod ends;
mod logs;

use std::sync::mpsc;
use std::time::Duration;

use brokers::Brokers;
use ilion_commitlog::{AppendError, Envelope, Origin, SharedLogs};
use ilion_kafka_client::Security;
use ilion_kafka_log::{KafkaLogs, Options};
use ilion_kafka_url::parse_url;
use uuid::Uuid;

const META_LOG: u32 = u32::MAX;
const TABLETS: u32 = 4;
/// What does not happen in this time fails the test.
const PATIENCE: Duration = Duration::from_secs(30);

fn options(brokers: &Brokers) -> Options {
    let url = parse_url(&brokers.url()).unwrap();
    let mut options = Options::new(url, Security::default(), Uuid::from_u128(7), TABLETS, META_LOG);
    options.replication_factor = 1;
    options.partitions = TABLETS;
    options
}

fn impatient(brokers: &Brokers) -> Options {
    let mut options = options(brokers);
    options.client.request_timeout = Duration::from_millis(100);
    options.append_timeout = Duration::from_millis(400);
    options.unreachable_after = Duration::from_millis(200);
    options
}

type Outcome = Result<u64, AppendError>;

fn append(logs: &KafkaLogs, log: u32, seq: u64) -> mpsc::Receiver<Outcome> {
    let (sender, receiver) = mpsc::channel();
    let envelope = Envelope {
        tablet: log,
        origin: Origin {
            node: 1,
            incarnation: 1,
            seq,
        },
        ..Envelope::mutation(b"body")
    };
    logs.append(&envelope, Box::new(move |outcome| sender.send(outcome).unwrap()));
    receiver
}

fn outcome(receiver: &mpsc::Receiver<Outcome>) -> Outcome {
    receiver.recv_timeout(PATIENCE).unwrap()
}
