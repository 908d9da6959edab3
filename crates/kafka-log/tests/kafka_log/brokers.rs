//! Brokers of tests: they keep topics in memory, speak the protocol over sockets, and fail as they are told.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use ilion_codec::Writer;
use ilion_kafka_client::messages::*;
use ilion_kafka_client::wire::{Input, Wire};
use ilion_kafka_client::{batch, codes};
use parking_lot::{Condvar, Mutex};

/// What a broker does with the next appends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It appends and answers.
    Good,
    /// It appends so many requests, and closes the connection without an answer.
    LoseAnswers(u32),
    /// It answers so many requests with an error and does not append.
    Fail(u32, i16),
}

#[derive(Default)]
struct Log {
    start: i64,
    end: i64,
    batches: Vec<(i64, Bytes)>,
    leader: usize,
    epoch: i32,
}

/// What a broker knows of a partition.
#[derive(Clone, Copy)]
struct Known {
    leader: usize,
    epoch: i32,
    end: i64,
}

impl Log {
    fn known(&self) -> Known {
        Known {
            leader: self.leader,
            epoch: self.epoch,
            end: self.end,
        }
    }
}

struct State {
    logs: BTreeMap<(String, i32), Log>,
    /// Brokers that hear nothing from the others, with what they knew before.
    cut_off: BTreeMap<usize, BTreeMap<(String, i32), Known>>,
    settings: BTreeMap<String, BTreeMap<String, String>>,
    mode: Mode,
    /// Brokers that close each connection, and are in no answer.
    down: BTreeSet<usize>,
    /// Brokers that accept and do not answer.
    silent: BTreeSet<usize>,
    /// So many more requests for settings are answered as if the topics were not known yet.
    unknown: usize,
    /// Requests for records are answered as if there were none.
    hides_records: bool,
    /// What the fields of batches call their time.
    time_millis: i64,
    requests: usize,
    /// Requests to append that have arrived, also at silent brokers.
    arrived: usize,
}

/// Brokers, and what they share.
pub struct Brokers {
    state: Mutex<State>,
    appended: Condvar,
    ports: Vec<u16>,
}

impl Brokers {
    /// Starts so many. Their threads end with the process.
    pub fn start(count: usize) -> Arc<Self> {
        let listeners: Vec<TcpListener> = (0..count)
            .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
            .collect();
        let brokers = Arc::new(Self {
            state: Mutex::new(State {
                logs: BTreeMap::new(),
                cut_off: BTreeMap::new(),
                settings: BTreeMap::new(),
                mode: Mode::Good,
                down: BTreeSet::new(),
                silent: BTreeSet::new(),
                unknown: 0,
                hides_records: false,
                time_millis: 1_000_000,
                requests: 0,
                arrived: 0,
            }),
            appended: Condvar::new(),
            ports: listeners
                .iter()
                .map(|listener| listener.local_addr().unwrap().port())
                .collect(),
        });
        for (index, listener) in listeners.into_iter().enumerate() {
            let brokers = Arc::clone(&brokers);
            std::thread::spawn(move || {
                for socket in listener.incoming() {
                    let brokers = Arc::clone(&brokers);
                    std::thread::spawn(move || brokers.serve(index, socket.unwrap()));
                }
            });
        }
        brokers
    }

    pub fn url(&self) -> String {
        let addresses: Vec<String> = self
            .ports
            .iter()
            .map(|port| format!("127.0.0.1:{port}"))
            .collect();
        format!("kafka://{}/p", addresses.join(","))
    }

    pub fn set_mode(&self, mode: Mode) {
        self.state.lock().mode = mode;
    }

    pub fn set_down(&self, broker: usize, is_down: bool) {
        let down = &mut self.state.lock().down;
        match is_down {
            true => down.insert(broker),
            false => down.remove(&broker),
        };
    }

    pub fn set_silent(&self, broker: usize, is_silent: bool) {
        let silent = &mut self.state.lock().silent;
        match is_silent {
            true => silent.insert(broker),
            false => silent.remove(&broker),
        };
        self.appended.notify_all();
    }

    /// From now on a broker answers clients, but hears nothing from the other brokers.
    pub fn cut_off(&self, broker: usize) {
        let mut state = self.state.lock();
        let logs = state.logs.iter();
        let known = logs.map(|(name, log)| (name.clone(), log.known())).collect();
        state.cut_off.insert(broker, known);
    }

    /// A broker that was cut off learns what it has missed.
    pub fn heal(&self, broker: usize) {
        self.state.lock().cut_off.remove(&broker);
    }

    /// Has the brokers answer so many requests for settings as if they did not know the topics yet.
    pub fn forget_topics(&self, requests: usize) {
        self.state.lock().unknown = requests;
    }

    /// Has the brokers answer requests for records as if there were none.
    pub fn hide_records(&self, hides_records: bool) {
        self.state.lock().hides_records = hides_records;
        self.appended.notify_all();
    }

    /// Makes this broker the leader of every partition.
    pub fn elect(&self, broker: usize) {
        for log in self.state.lock().logs.values_mut() {
            (log.leader, log.epoch) = (broker, log.epoch + 1);
        }
    }

    pub fn set(&self, topic: &str, name: &str, value: &str) {
        let mut state = self.state.lock();
        let settings = state.settings.get_mut(topic).unwrap();
        settings.insert(name.to_owned(), value.to_owned());
    }

    pub fn settings(&self, topic: &str) -> BTreeMap<String, String> {
        self.state.lock().settings[topic].clone()
    }

    /// Appends what anybody may have sent.
    pub fn append(&self, topic: &str, partition: i32, value: &[u8]) {
        let entry = batch::Entry {
            key: None,
            value,
            headers: &[],
            created_millis: 0,
        };
        let batch = batch::encode([entry].into_iter());
        self.state.lock().append(topic, partition, &batch);
        self.appended.notify_all();
    }

    /// Takes what a partition has, as if the topic were created anew.
    pub fn forget(&self, topic: &str, partition: i32) {
        let mut state = self.state.lock();
        let log = state.logs.get_mut(&(topic.to_owned(), partition)).unwrap();
        (log.start, log.end) = (0, 0);
        log.batches.clear();
    }

    /// Gives a topic one more partition.
    pub fn add_partition(&self, topic: &str) {
        let mut state = self.state.lock();
        let count = state.logs.keys().filter(|(name, _)| name == topic).count();
        let index = i32::try_from(count).unwrap();
        state.logs.insert((topic.to_owned(), index), Log::default());
    }

    /// Requests to append that have arrived, also at silent brokers.
    pub fn arrived(&self) -> usize {
        self.state.lock().arrived
    }

    /// Requests to append until now.
    pub fn appends(&self) -> usize {
        self.state.lock().requests
    }

    fn serve(&self, broker: usize, mut socket: TcpStream) {
        while let Some(request) = read(&mut socket) {
            let Some(answer) = self.answer(broker, &request) else {
                return;
            };
            let mut bytes = u32::try_from(answer.len() + 4).unwrap().to_be_bytes().to_vec();
            bytes.extend_from_slice(&request[4..8]);
            bytes.extend_from_slice(&answer);
            if socket.write_all(&bytes).is_err() {
                return;
            }
        }
    }

    /// `None` closes the connection.
    fn answer(&self, broker: usize, request: &Bytes) -> Option<Vec<u8>> {
        let mut input = Input::new(request);
        let key = i16::decode(&mut input).unwrap();
        i16::decode(&mut input).unwrap();
        i32::decode(&mut input).unwrap();
        Option::<String>::decode(&mut input).unwrap();
        let mut state = self.state.lock();
        state.arrived += usize::from(key == Produce::KEY);
        while state.silent.contains(&broker) {
            self.appended.wait(&mut state);
        }
        if state.down.contains(&broker) {
            return None;
        }
        let mut out = Writer::new();
        match key {
            ApiVersions::KEY => versions().encode(&mut out),
            Metadata::KEY => {
                let asked = Metadata::decode(&mut input).unwrap();
                state.metadata(broker, &asked, &self.ports).encode(&mut out);
            }
            CreateTopics::KEY => {
                let asked = CreateTopics::decode(&mut input).unwrap();
                state.create(asked).encode(&mut out);
            }
            DescribeConfigs::KEY => {
                let asked = DescribeConfigs::decode(&mut input).unwrap();
                state.describe(asked).encode(&mut out);
            }
            Produce::KEY => {
                let asked = Produce::decode(&mut input).unwrap();
                let answer = state.produce(broker, &asked);
                self.appended.notify_all();
                answer?.encode(&mut out);
            }
            Fetch::KEY => {
                let asked = Fetch::decode(&mut input).unwrap();
                let wait = Duration::from_millis(u64::try_from(asked.max_wait_millis).unwrap());
                let deadline = Instant::now() + wait;
                let answer = loop {
                    let (answer, has_news) = state.fetch(broker, &asked);
                    if has_news || self.appended.wait_until(&mut state, deadline).timed_out() {
                        break answer;
                    }
                };
                while state.silent.contains(&broker) {
                    self.appended.wait(&mut state);
                }
                answer.encode(&mut out);
            }
            ListOffsets::KEY => {
                let asked = ListOffsets::decode(&mut input).unwrap();
                state.offsets(broker, &asked).encode(&mut out);
            }
            DeleteRecords::KEY => {
                let asked = DeleteRecords::decode(&mut input).unwrap();
                state.delete(&asked).encode(&mut out);
            }
            other => panic!("request {other}"),
        }
        Some(out.into_vec())
    }
}

fn read(socket: &mut TcpStream) -> Option<Bytes> {
    let mut length = [0; 4];
    socket.read_exact(&mut length).ok()?;
    let mut request = vec![0; u32::from_be_bytes(length) as usize];
    socket.read_exact(&mut request).ok()?;
    Some(request.into())
}

fn versions() -> ApiVersionsAnswer {
    let requests = REQUESTS.iter();
    ApiVersionsAnswer {
        error: codes::NONE,
        requests: requests
            .map(|(key, version, _)| ApiVersion {
                key: *key,
                min: 0,
                max: *version,
            })
            .collect(),
    }
}

impl State {
    fn log(&mut self, topic: &str, partition: i32) -> &mut Log {
        self.logs.get_mut(&(topic.to_owned(), partition)).unwrap()
    }

    fn append(&mut self, topic: &str, partition: i32, batch: &[u8]) -> i64 {
        self.time_millis += 1;
        let time_millis = self.time_millis;
        let log = self.log(topic, partition);
        let base_offset = log.end;
        let mut batch = batch.to_vec();
        batch::place(&mut batch, base_offset, time_millis);
        let bytes = Bytes::from(batch);
        let placed = batch::split(&mut bytes.clone()).unwrap().unwrap();
        placed.records().unwrap();
        log.end = placed.last_offset + 1;
        log.batches.push((placed.last_offset, bytes));
        base_offset
    }

    /// What a broker knows of a partition.
    fn known(&self, broker: usize, name: &(String, i32)) -> Known {
        let frozen = self.cut_off.get(&broker).and_then(|known| known.get(name));
        frozen.copied().unwrap_or_else(|| self.logs[name].known())
    }

    fn metadata(&self, broker: usize, asked: &Metadata, ports: &[u16]) -> MetadataAnswer {
        let up = ports
            .iter()
            .enumerate()
            .filter(|(index, _)| !self.down.contains(index));
        let topic = |name: &String| {
            let partitions = self.logs.iter().filter(|((topic, _), _)| topic == name);
            let partitions = partitions.map(|(name, _)| (name.1, self.known(broker, name)));
            let partitions: Vec<MetadataPartition> = partitions
                .map(|(index, known)| MetadataPartition {
                    index,
                    leader: i32::try_from(known.leader).unwrap(),
                    leader_epoch: known.epoch,
                    replicas: (0..i32::try_from(ports.len()).unwrap()).collect(),
                    ..MetadataPartition::default()
                })
                .collect();
            MetadataTopic {
                error: match partitions.is_empty() {
                    true => codes::UNKNOWN_TOPIC_OR_PARTITION,
                    false => codes::NONE,
                },
                name: name.clone(),
                is_internal: false,
                partitions,
            }
        };
        let is_up = |index: &usize| !self.down.contains(index);
        MetadataAnswer {
            // Any broker takes requests for the controller.
            controller_id: (0..ports.len())
                .rfind(is_up)
                .map_or(-1, |index| i32::try_from(index).unwrap()),
            brokers: up
                .map(|(index, port)| MetadataBroker {
                    id: i32::try_from(index).unwrap(),
                    host: "127.0.0.1".to_owned(),
                    port: i32::from(*port),
                    rack: None,
                })
                .collect(),
            topics: asked.topics.iter().flatten().map(topic).collect(),
            ..MetadataAnswer::default()
        }
    }

    fn create(&mut self, asked: CreateTopics) -> CreatedTopics {
        let mut topics = Vec::new();
        for topic in asked.topics {
            let error = match self.settings.contains_key(&topic.name) {
                true => codes::TOPIC_ALREADY_EXISTS,
                false => codes::NONE,
            };
            if error == codes::NONE {
                let configs = topic.configs.into_iter();
                let settings = configs.map(|config| (config.name, config.value.unwrap()));
                self.settings.insert(topic.name.clone(), settings.collect());
                for index in 0..topic.partitions {
                    self.logs.insert((topic.name.clone(), index), Log::default());
                }
            }
            topics.push(CreatedTopic {
                name: topic.name,
                error,
                message: None,
            });
        }
        CreatedTopics {
            topics,
            ..CreatedTopics::default()
        }
    }

    fn describe(&mut self, asked: DescribeConfigs) -> DescribedConfigs {
        let error = match self.unknown {
            0 => codes::NONE,
            _ => codes::UNKNOWN_TOPIC_OR_PARTITION,
        };
        self.unknown = self.unknown.saturating_sub(1);
        let described = |resource: DescribeResource| DescribedResource {
            error,
            kind: resource.kind,
            settings: self.settings[&resource.name]
                .iter()
                .map(|(name, value)| DescribedSetting {
                    name: name.clone(),
                    value: Some(value.clone()),
                    ..DescribedSetting::default()
                })
                .collect(),
            name: resource.name,
            ..DescribedResource::default()
        };
        DescribedConfigs {
            resources: asked.resources.into_iter().map(described).collect(),
            ..DescribedConfigs::default()
        }
    }

    fn produce(&mut self, broker: usize, asked: &Produce) -> Option<Produced> {
        assert_eq!(asked.acks, -1);
        self.requests += 1;
        let (error, is_lost) = match &mut self.mode {
            Mode::Good => (codes::NONE, false),
            Mode::LoseAnswers(left) | Mode::Fail(left, _) if *left == 0 => (codes::NONE, false),
            Mode::LoseAnswers(left) => {
                *left -= 1;
                (codes::NONE, true)
            }
            Mode::Fail(left, code) => {
                *left -= 1;
                (*code, false)
            }
        };
        let mut topics = Vec::new();
        for topic in &asked.topics {
            let mut partitions = Vec::new();
            for partition in &topic.partitions {
                let is_led = self.log(&topic.name, partition.index).leader == broker;
                let error = match is_led {
                    _ if self.cut_off.contains_key(&broker) => codes::NOT_ENOUGH_REPLICAS,
                    true => error,
                    false => codes::NOT_LEADER_OR_FOLLOWER,
                };
                let base_offset = match error {
                    codes::NONE => self.append(&topic.name, partition.index, &partition.records),
                    _ => -1,
                };
                partitions.push(ProducedPartition {
                    index: partition.index,
                    error,
                    base_offset,
                    log_append_time_millis: if base_offset < 0 { -1 } else { self.time_millis },
                    ..ProducedPartition::default()
                });
            }
            let name = topic.name.clone();
            topics.push(ProducedTopic { name, partitions });
        }
        let answer = Produced {
            topics,
            throttle_millis: 0,
        };
        (!is_lost).then_some(answer)
    }

    /// The answer, and whether it may go at once.
    fn fetch(&mut self, broker: usize, asked: &Fetch) -> (Fetched, bool) {
        let (mut topics, mut has_news) = (Vec::new(), false);
        let hides_records = self.hides_records;
        for topic in &asked.topics {
            let mut partitions = Vec::new();
            for partition in &topic.partitions {
                let log = self.log(&topic.name, partition.index);
                let from = partition.fetch_offset;
                let error = match log.leader == broker {
                    false => codes::NOT_LEADER_OR_FOLLOWER,
                    true if from < log.start || from > log.end => codes::OFFSET_OUT_OF_RANGE,
                    true => codes::NONE,
                };
                let batches = log
                    .batches
                    .iter()
                    .filter(|(last, _)| *last >= from && !hides_records);
                let records: Vec<u8> = match error {
                    codes::NONE => batches.flat_map(|(_, bytes)| bytes.to_vec()).collect(),
                    _ => Vec::new(),
                };
                has_news |= error != codes::NONE || !records.is_empty();
                partitions.push(FetchedPartition {
                    index: partition.index,
                    error,
                    high_watermark: log.end,
                    records: records.into(),
                    ..FetchedPartition::default()
                });
            }
            let name = topic.name.clone();
            topics.push(FetchedTopic { name, partitions });
        }
        let answer = Fetched {
            topics,
            ..Fetched::default()
        };
        (answer, has_news)
    }

    fn offsets(&mut self, broker: usize, asked: &ListOffsets) -> ListedOffsets {
        let mut answer = ListedOffsets::default();
        for topic in &asked.topics {
            let mut partitions = Vec::new();
            for partition in &topic.partitions {
                let known = self.known(broker, &(topic.name.clone(), partition.index));
                let log = self.log(&topic.name, partition.index);
                let error = match partition.current_leader_epoch {
                    epoch if (0..known.epoch).contains(&epoch) => codes::FENCED_LEADER_EPOCH,
                    epoch if epoch > known.epoch => codes::UNKNOWN_LEADER_EPOCH,
                    _ if asked.replica_id != ANYBODY && known.leader != broker => {
                        codes::NOT_LEADER_OR_FOLLOWER
                    }
                    _ => codes::NONE,
                };
                partitions.push(ListedOffsetsPartition {
                    index: partition.index,
                    error,
                    offset: match partition.timestamp {
                        _ if error != codes::NONE => -1,
                        EARLIEST => log.start,
                        LATEST => known.end,
                        other => panic!("timestamp {other}"),
                    },
                    leader_epoch: known.epoch,
                    ..ListedOffsetsPartition::default()
                });
            }
            let name = topic.name.clone();
            answer.topics.push(ListedOffsetsTopic { name, partitions });
        }
        answer
    }

    fn delete(&mut self, asked: &DeleteRecords) -> DeletedRecords {
        let mut answer = DeletedRecords::default();
        for topic in &asked.topics {
            let mut partitions = Vec::new();
            for partition in &topic.partitions {
                let log = self.log(&topic.name, partition.index);
                let is_there = partition.offset <= log.end;
                if is_there {
                    log.start = log.start.max(partition.offset);
                    log.batches.retain(|(last, _)| *last >= partition.offset);
                }
                partitions.push(DeletedRecordsPartition {
                    index: partition.index,
                    low_watermark: log.start,
                    error: match is_there {
                        true => codes::NONE,
                        false => codes::OFFSET_OUT_OF_RANGE,
                    },
                });
            }
            let name = topic.name.clone();
            answer.topics.push(DeletedRecordsTopic { name, partitions });
        }
        answer
    }
}
