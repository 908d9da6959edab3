//! Appends to the logs of a cluster on Kafka and reads them, for tests with real brokers and for figures.
//!
//! ```text
//! kafka_log append URL [name=value].. > acknowledged     a line each: log offset node seq
//! kafka_log tail URL [name=value]..   > delivered        a line each: log offset node seq
//! kafka_log delete URL log=N below=OFFSET
//! kafka_log latency URL [name=value]..                   from acknowledgement to delivery in one process
//! kafka_log ask URL [name=value]..                       for each line of its input: append LOG, or end LOG; a line each: a number or none
//! ```
//! Names: `node` (number of the sender, 1), `tablets` (16), `partitions` (as many), `replicas` (1), `cluster` (a number, 1), `count` (records, 10000), `secs`
//! (ends then), `until=stdin` (an append or a tail goes on at least until its standard input ends), `in-flight` (64), `bytes` (of a body,
//! 260: with envelope and frame 321), `rate` (records a second; no limit), `idle` (a tail ends when nothing came for this many seconds,
//! 3), `from` (offset in the logs of tablets, 0), `ca` (file with the certificates of the trusted issuers: TLS), `user`, `password`,
//! `sasl` (plain, scram-sha-256, scram-sha-512). What happened and the figures go to standard error. Exit code 1: it failed.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a program for tests")]

use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ilion_commitlog::{AppendError, Delivered, Envelope, Kind, Origin, SharedLogs, TailError};
use ilion_kafka_client::{Credentials, Mechanism, Security};
use ilion_kafka_log::{KafkaLogs, Options};
use ilion_kafka_url::parse_url;
use parking_lot::{Condvar, Mutex};
use uuid::Uuid;

const META_LOG: u32 = u32::MAX;

struct Settings(BTreeMap<String, String>);

impl Settings {
    fn number(&self, name: &str, default: u64) -> u64 {
        let text = self.0.get(name);
        text.map_or(default, |text| text.parse().expect("a number"))
    }

    fn security(&self) -> Security {
        let text = |name: &str| self.0.get(name).cloned();
        Security {
            is_encrypted: self.0.contains_key("ca"),
            issuers: text("ca").map(|path| std::fs::read(path).unwrap()),
            credentials: text("user").map(|username| Credentials {
                mechanism: match text("sasl").as_deref() {
                    Some("scram-sha-256") => Mechanism::ScramSha256,
                    Some("scram-sha-512") => Mechanism::ScramSha512,
                    _ => Mechanism::Plain,
                },
                username,
                password: text("password").unwrap(),
            }),
        }
    }

    /// When standard input ended, if the program waits for that.
    fn input(&self) -> Arc<Mutex<Option<Instant>>> {
        let waits = self.0.get("until").is_some_and(|until| until == "stdin");
        let ended = Arc::new(Mutex::new((!waits).then(Instant::now)));
        if waits {
            let ended = Arc::clone(&ended);
            std::thread::spawn(move || {
                std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
                *ended.lock() = Some(Instant::now());
            });
        }
        ended
    }

    fn log(&self, index: u64) -> u32 {
        u32::try_from(index % self.number("tablets", 16)).unwrap()
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [verb, url, settings @ ..] = &arguments[..] else {
        panic!("kafka_log append|tail|delete|latency|ask URL [name=value]..");
    };
    let settings = Settings(
        settings
            .iter()
            .map(|setting| {
                let (name, value) = setting.split_once('=').expect("name=value");
                (name.to_owned(), value.to_owned())
            })
            .collect(),
    );
    let mut options = Options::new(
        parse_url(url).expect("a URL"),
        settings.security(),
        Uuid::from_u128(settings.number("cluster", 1).into()),
        u32::try_from(settings.number("tablets", 16)).unwrap(),
        META_LOG,
    );
    options.partitions = u32::try_from(settings.number("partitions", options.tablets.into())).unwrap();
    options.replication_factor = u16::try_from(settings.number("replicas", 1)).unwrap();
    let logs = match KafkaLogs::open(options) {
        Ok(logs) => logs,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    };
    match verb.as_str() {
        "append" => append(&logs, &settings),
        "tail" => tail(&logs, &settings),
        "delete" => {
            let log = u32::try_from(settings.number("log", 0)).unwrap();
            if let Err(error) = logs.delete_below(log, settings.number("below", 0)) {
                eprintln!("{error}");
                std::process::exit(1);
            }
        }
        "latency" => latency(&logs, &settings),
        "ask" => ask(&logs, &settings),
        other => panic!("{other} is no verb"),
    }
}

#[derive(Default)]
struct Progress {
    in_flight: u64,
    acknowledged: Vec<(u32, u64, u64)>,
    latencies: Vec<Duration>,
    unknown: u64,
    refused: u64,
    problem: Option<String>,
    last: HashMap<u32, Instant>,
    /// The longest time between two acknowledgements of the same log.
    longest_gap: Duration,
}

impl Progress {
    fn note(&mut self, log: u32, seq: u64, sent: Instant, outcome: Result<u64, AppendError>) {
        self.in_flight -= 1;
        let now = Instant::now();
        match outcome {
            Ok(offset) => {
                self.acknowledged.push((log, offset, seq));
                self.latencies.push(now - sent);
                if let Some(last) = self.last.insert(log, now) {
                    self.longest_gap = self.longest_gap.max(now - last);
                }
            }
            Err(AppendError::Unknown(problem)) => {
                self.unknown += 1;
                self.problem.get_or_insert(problem);
            }
            Err(AppendError::Refused(problem)) => {
                self.refused += 1;
                self.problem.get_or_insert(problem);
            }
        }
    }
}

fn append(logs: &KafkaLogs, settings: &Settings) {
    let started = Instant::now();
    let (count, secs) = (
        settings.number("count", 10_000),
        settings.number("secs", u64::MAX),
    );
    let in_flight_max = settings.number("in-flight", 64);
    let rate = settings.0.get("rate").map(|_| settings.number("rate", 0));
    let node = u32::try_from(settings.number("node", 1)).unwrap();
    let body = vec![b'x'; usize::try_from(settings.number("bytes", 260)).unwrap()];
    let progress = Arc::new((Mutex::new(Progress::default()), Condvar::new()));
    let mut sent = 0;
    let (is_timed, input) = (settings.0.contains_key("secs"), settings.input());
    while (is_timed || sent < count || input.lock().is_none()) && started.elapsed().as_secs() < secs {
        if let Some(rate) = rate {
            let due = started + Duration::from_secs_f64(sent as f64 / rate as f64);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        let mut now = progress.0.lock();
        while now.in_flight >= in_flight_max {
            progress.1.wait(&mut now);
        }
        now.in_flight += 1;
        drop(now);
        let (log, seq) = (settings.log(sent), sent / settings.number("tablets", 16) + 1);
        let envelope = Envelope {
            kind: Kind::Mutation,
            tablet: log,
            origin: Origin {
                node,
                incarnation: 1,
                seq,
            },
            ..Envelope::mutation(&body)
        };
        let (progress, begun) = (Arc::clone(&progress), Instant::now());
        logs.append(
            &envelope,
            Box::new(move |outcome| {
                progress.0.lock().note(log, seq, begun, outcome);
                progress.1.notify_all();
            }),
        );
        sent += 1;
    }
    let mut now = progress.0.lock();
    while now.in_flight > 0 {
        progress.1.wait(&mut now);
    }
    let elapsed = started.elapsed();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for (log, offset, seq) in &now.acknowledged {
        writeln!(out, "{log} {offset} {node} {seq}").unwrap();
    }
    out.flush().unwrap();
    let acknowledged = now.acknowledged.len();
    let rate = acknowledged as f64 / elapsed.as_secs_f64();
    eprintln!(
        "appended {acknowledged} of {sent}, unknown {}, refused {}, {rate:.0}/s, {}, longest gap of a log {:.0} ms{}",
        now.unknown,
        now.refused,
        percentiles(&mut now.latencies.clone()),
        now.longest_gap.as_secs_f64() * 1e3,
        now.problem
            .as_ref()
            .map_or(String::new(), |problem| format!(", first problem: {problem}"))
    );
}

fn percentiles(latencies: &mut [Duration]) -> String {
    latencies.sort_unstable();
    let at = |share: f64| {
        let index = ((latencies.len() as f64 * share) as usize).min(latencies.len().saturating_sub(1));
        latencies
            .get(index)
            .map_or(0.0, |latency| latency.as_secs_f64() * 1e3)
    };
    format!(
        "p50 {:.2} ms, p99 {:.2} ms, max {:.1} ms",
        at(0.5),
        at(0.99),
        at(1.0)
    )
}

fn tail(logs: &KafkaLogs, settings: &Settings) {
    let from = settings.number("from", 0);
    let all: Vec<(u32, u64)> = (0..settings.number("tablets", 16))
        .map(|index| (settings.log(index), from))
        .chain([(META_LOG, 0)])
        .collect();
    let mut tail = logs.tail(&all).unwrap();
    let idle = Duration::from_secs(settings.number("idle", 3));
    let (started, mut last, mut count, mut longest) = (Instant::now(), Instant::now(), 0, Duration::ZERO);
    let mut last_of: HashMap<u32, Instant> = HashMap::new();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut has_failed = false;
    let input = settings.input();
    while input.lock().is_none_or(|ended| last.max(ended).elapsed() < idle) {
        match tail.next(Duration::from_millis(100)) {
            Ok(delivered) => {
                for one in delivered {
                    let Delivered::Record {
                        log, offset, record, ..
                    } = one
                    else {
                        continue;
                    };
                    let origin = record.origin;
                    writeln!(out, "{log} {offset} {} {}", origin.node, origin.seq).unwrap();
                    last = Instant::now();
                    if let Some(before) = last_of.insert(log, last) {
                        longest = longest.max(last - before);
                    }
                    count += 1;
                }
            }
            Err(error) => {
                eprintln!("{error}");
                has_failed |= !matches!(error, TailError::Unreachable(_));
            }
        }
    }
    out.flush().unwrap();
    let elapsed = (last - started).as_secs_f64();
    eprintln!(
        "delivered {count}, {:.0}/s, longest gap of a log {:.0} ms",
        count as f64 / elapsed,
        longest.as_secs_f64() * 1e3
    );
    if has_failed {
        std::process::exit(1);
    }
}

/// From acknowledgement to delivery: a record is delivered before it is acknowledged now and then, which counts as 0.
fn latency(logs: &KafkaLogs, settings: &Settings) {
    let count = settings.number("count", 10_000);
    let mut tail = logs.tail(&[]).unwrap();
    let mut ends: HashMap<u32, u64> = HashMap::new();
    let acknowledged: Arc<Mutex<HashMap<(u32, u64), Instant>>> = Arc::default();
    // Appends one record to each log, to find where it ends.
    for index in 0..settings.number("tablets", 16) {
        let log = settings.log(index);
        let (sender, receiver) = std::sync::mpsc::channel();
        let envelope = Envelope {
            tablet: log,
            kind: Kind::Noop,
            ..Envelope::mutation(b"")
        };
        logs.append(
            &envelope,
            Box::new(move |outcome| sender.send(outcome.unwrap()).unwrap()),
        );
        ends.insert(log, receiver.recv().unwrap() + 1);
    }
    for (log, end) in &ends {
        tail.follow(*log, *end);
    }
    let delivering = std::thread::spawn(move || {
        let mut delivered = HashMap::new();
        while (delivered.len() as u64) < count {
            for one in tail.next(Duration::from_secs(1)).unwrap() {
                if let Delivered::Record { log, offset, .. } = one {
                    delivered.insert((log, offset), Instant::now());
                }
            }
        }
        delivered
    });
    let body = vec![b'x'; usize::try_from(settings.number("bytes", 260)).unwrap()];
    let pause = Duration::from_secs_f64(1.0 / settings.number("rate", 1000) as f64);
    let begun = Instant::now();
    for number in 0..count {
        let log = settings.log(number);
        let acknowledged = Arc::clone(&acknowledged);
        let due = begun + pause * u32::try_from(number).unwrap();
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let envelope = Envelope {
            tablet: log,
            ..Envelope::mutation(&body)
        };
        logs.append(
            &envelope,
            Box::new(move |outcome| {
                // A record that is delivered first may be acknowledged after the end.
                if let Ok(offset) = outcome {
                    acknowledged.lock().insert((log, offset), Instant::now());
                }
            }),
        );
    }
    let delivered = delivering.join().unwrap();
    let acknowledged = acknowledged.lock();
    let mut latencies: Vec<Duration> = acknowledged
        .iter()
        .filter_map(|(place, at)| Some(delivered.get(place)?.saturating_duration_since(*at)))
        .collect();
    eprintln!(
        "{} from acknowledgement to delivery: {}",
        latencies.len(),
        percentiles(&mut latencies)
    );
}

/// Answers questions one by one: the offset of a record that is appended, or the end of a log.
fn ask(logs: &KafkaLogs, settings: &Settings) {
    let node = u32::try_from(settings.number("node", 1)).unwrap();
    for (seq, question) in (1..).zip(std::io::stdin().lines()) {
        let question = question.unwrap();
        let (verb, log) = question.split_once(' ').expect("append LOG or end LOG");
        let tablet: u32 = log.parse().expect("the number of a log");
        let (sender, receiver) = std::sync::mpsc::channel();
        match verb {
            "append" => {
                let origin = Origin {
                    node,
                    incarnation: 1,
                    seq,
                };
                let envelope = Envelope {
                    tablet,
                    origin,
                    ..Envelope::mutation(b"body")
                };
                let done = move |outcome: Result<u64, AppendError>| sender.send(outcome.ok()).unwrap();
                logs.append(&envelope, Box::new(done));
            }
            "end" => logs.find_end(tablet, Box::new(move |end| sender.send(end).unwrap())),
            other => panic!("{other} is no question"),
        }
        match receiver.recv().unwrap() {
            Some(number) => println!("{number}"),
            None => println!("none"),
        }
    }
}
