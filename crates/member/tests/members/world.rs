//! Several members, each with an engine on a disk in memory that can lose its power.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use ilion_cluster::{Endpoint, FEATURE_LEVEL_MAX, Location};
use ilion_commitlog::{
    AppendCallback, AppendError, Capabilities, EndCallback, Envelope, SharedLogs, SharedTail, TailError,
};
use ilion_coordinator::ReadOptions;
use ilion_engine::{Engine, EngineOptions};
use ilion_env::parking::{self, Attempt, Given, Parks};
use ilion_env::{CrashRule, Env, MemEnv, RealEnv};
use ilion_member::{InProcess, JoinError, MemLogs, Member, MemberOptions, NewCluster, Replaced};
use ilion_query::{
    Awaited, ClientState, ClusterFacts, Consistency, Decided, EngineStore, Error, ExecuteOptions, Executed,
    Outcome, QueryOptions, QueryProcessor, Store, Value, Values,
};
use uuid::Uuid;

/// Logs are kept so long for a member that is silent.
pub(crate) const DOWN_MAX: Duration = Duration::from_millis(400);
/// A member that gives no sign of life for so long is thought to be down.
const SILENCE: Duration = Duration::from_secs(2);
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A member that runs.
pub(crate) struct Running {
    pub env: MemEnv,
    pub member: Arc<Member>,
    pub power: Power,
    /// Executes statements of clients.
    pub processor: QueryProcessor,
    /// Reads this node's own data.
    pub local: QueryProcessor,
}

/// The power of a member. Without it, nothing that the member does gets to the logs.
#[derive(Clone, Default)]
pub(crate) struct Power {
    is_gone: Arc<RwLock<bool>>,
}

impl Power {
    /// Switches the power off, after the appends and deletions that are running.
    fn goes(&self) {
        *self.is_gone.write().unwrap() = true;
    }

    /// Does something while there is power.
    fn with<T>(&self, act: impl FnOnce() -> T) -> Option<T> {
        let is_gone = self.is_gone.read().unwrap();
        (!*is_gone).then(act)
    }
}

/// The logs as a member with power sees them.
struct PoweredLogs {
    logs: MemLogs,
    power: Power,
}

impl SharedLogs for PoweredLogs {
    fn append(&self, envelope: &Envelope<'_>, done: AppendCallback) {
        let answer = Arc::new(Mutex::new(None));
        let told = answer.clone();
        let appended = self.power.with(|| {
            let keep = Box::new(move |result| *told.lock().unwrap() = Some(result));
            self.logs.append(envelope, keep);
        });
        // Callbacks append, too, so they must not hold the power.
        let result = answer.lock().unwrap().take();
        match appended {
            Some(()) => done(result.unwrap()),
            None => done(Err(AppendError::Unknown("the power is gone".to_owned()))),
        }
    }

    fn find_end(&self, log: u32, done: EndCallback) {
        self.logs.find_end(log, done);
    }

    fn tail(&self, from: &[(u32, u64)]) -> Result<Box<dyn SharedTail>, TailError> {
        self.logs.tail(from)
    }

    fn sequence_of(&self, log: u32) -> u32 {
        self.logs.sequence_of(log)
    }

    fn delete_below(&self, log: u32, offset: u64) -> Result<(), TailError> {
        self.power
            .with(|| self.logs.delete_below(log, offset))
            .unwrap_or(Ok(()))
    }

    fn caps(&self) -> Capabilities {
        self.logs.caps()
    }
}

/// Members by their place, beginning with 0.
pub(crate) struct World {
    pub logs: MemLogs,
    pub tablets: u32,
    /// Members that start from now on finish logged batches of others after so long.
    pub finish_after: Duration,
    /// Memory for memtables of members that start from now on.
    pub memtable_bytes: usize,
    /// The feature level of members that start from now on.
    pub understands: u32,
    /// How members that start from now on execute statements of clients.
    pub query_options: QueryOptions,
    /// Changes the options of members that start from now on.
    pub change_options: fn(&mut MemberOptions),
    peers: InProcess,
    members: Vec<RwLock<Option<Arc<Running>>>>,
    clock: Option<JoinHandle<()>>,
    envs: Arc<RwLock<Vec<MemEnv>>>,
    /// The host id that each place had last.
    hosts: RwLock<BTreeMap<usize, u128>>,
    is_over: Arc<AtomicBool>,
}

impl World {
    /// `count` members that have joined.
    pub fn new(count: usize, tablets: u32) -> Self {
        Self::with_room(count, count, tablets)
    }

    /// `count` members that have joined, of `most`.
    pub fn with_room(count: usize, most: usize, tablets: u32) -> Self {
        let envs: Arc<RwLock<Vec<MemEnv>>> = Arc::default();
        let is_over = Arc::new(AtomicBool::new(false));
        // Clocks of disks in memory stand still by themselves.
        let clock = {
            let (envs, is_over) = (envs.clone(), is_over.clone());
            std::thread::spawn(move || {
                let real = RealEnv::new();
                let mut last = real.monotonic_nanos();
                while !is_over.load(Relaxed) {
                    std::thread::sleep(Duration::from_millis(1));
                    let now = real.monotonic_nanos();
                    let micros = i64::try_from((now - last) / 1000).unwrap();
                    last += u64::try_from(micros).unwrap() * 1000;
                    envs.read()
                        .unwrap()
                        .iter()
                        .for_each(|env| env.advance_micros(micros));
                }
            })
        };
        let world = Self {
            // As a new cluster on Kafka keeps them.
            logs: MemLogs::new(RealEnv::new()).in_sequences(1),
            tablets,
            finish_after: Duration::from_millis(300),
            memtable_bytes: EngineOptions::below(Path::new("/ilion")).memtable_bytes_max,
            understands: FEATURE_LEVEL_MAX,
            query_options: QueryOptions::default(),
            change_options: |_| {},
            peers: InProcess::default(),
            members: (0..most).map(|_| RwLock::default()).collect(),
            clock: Some(clock),
            envs,
            hosts: RwLock::default(),
            is_over,
        };
        for place in 0..count {
            world.start(place, MemEnv::new(place as u64 + 1));
        }
        world
    }

    /// The member at a place; `None` while it is down.
    pub fn at(&self, place: usize) -> Option<Arc<Running>> {
        self.members[place].read().unwrap().clone()
    }

    /// Opens a node on a disk, and waits until it is a complete member.
    pub fn start(&self, place: usize, env: MemEnv) {
        self.start_as(place, env, 100 + place as u128, None).unwrap();
    }

    /// Starts a member again with the host id that it had last.
    pub fn start_again(&self, place: usize, env: MemEnv) -> Result<(), JoinError> {
        let host = self.hosts.read().unwrap().get(&place).copied();
        self.start_as(place, env, host.unwrap(), None)
    }

    /// As [`Self::start`], with a host id, and perhaps in the place of another node.
    pub fn start_as(
        &self,
        place: usize,
        env: MemEnv,
        host: u128,
        replaces: Option<Replaced>,
    ) -> Result<(), JoinError> {
        self.hosts.write().unwrap().insert(place, host);
        self.envs.write().unwrap().push(env.clone());
        let mut options = EngineOptions::below(Path::new("/ilion"));
        options.commit_log.segment_bytes = 256 << 10;
        options.memtable_bytes_max = self.memtable_bytes;
        let engine = Arc::new(Engine::open(env.shared(), options).unwrap());
        let local: Arc<dyn Store> = Arc::new(EngineStore::new(engine.clone(), ClusterFacts::default()));
        let endpoint = Endpoint {
            ip: [127, 0, 0, place as u8 + 1].into(),
            native_port: 9042,
            storage_port: 7000,
        };
        let location = Location {
            datacenter: "datacenter1".to_owned(),
            rack: format!("rack{place}"),
        };
        let mut options = MemberOptions {
            create: Some(NewCluster {
                cluster: Uuid::from_u128(7),
                tablets: self.tablets,
                down_max: DOWN_MAX,
            }),
            heartbeat: Duration::from_millis(100),
            write_timeout: Duration::from_secs(1),
            finish_batches_after: self.finish_after,
            save_bytes: 20_000,
            // The first block has all that a test does before it looks for differences.
            block_length: 64,
            trim_interval: Duration::from_millis(50),
            trim_records: 20,
            silence_max: SILENCE,
            replaces,
            understands: self.understands,
            ..MemberOptions::new(Uuid::from_u128(host), endpoint, location, &release_of(place))
        };
        (self.change_options)(&mut options);
        let power = Power::default();
        let logs = Arc::new(PoweredLogs {
            logs: self.logs.clone(),
            power: power.clone(),
        });
        let member = Member::start(
            &engine,
            local.clone(),
            logs,
            Arc::new(self.peers.clone()),
            options,
        )
        .unwrap();
        let node = member.wait_joined(PATIENCE)?;
        let member = Arc::new(member);
        self.peers.add(node, &member);
        let store = member.store(Arc::new(self.peers.readers.clone()), ReadOptions::default());
        let running = Running {
            env,
            processor: QueryProcessor::new(Arc::new(store), self.query_options.clone()),
            local: QueryProcessor::new(local, QueryOptions::default()),
            member,
            power,
        };
        *self.members[place].write().unwrap() = Some(Arc::new(running));
        Ok(())
    }

    /// Checks that the members at these places have the same state of the cluster after the same record of the meta log.
    pub fn check_states(&self, places: &[usize]) {
        let nodes: Vec<_> = places.iter().map(|place| self.at(*place).unwrap()).collect();
        wait("they are never at the same record", || {
            let states: Vec<_> = nodes.iter().map(|node| node.member.state().unwrap()).collect();
            let are_together = states.iter().all(|state| state.position == states[0].position);
            if are_together {
                states.iter().for_each(|state| assert_eq!(*state, states[0]));
            }
            are_together
        });
    }

    /// The power of a member goes, and comes back. Its clients do not notice at once.
    pub fn crash(&self, place: usize, rule: CrashRule) {
        if let Some(disk) = self.lose(place, rule) {
            self.start_again(place, disk).unwrap();
        }
    }

    /// Stops a member as an operator does. Returns its disk.
    pub fn stop(&self, place: usize) -> MemEnv {
        let running = self.members[place].write().unwrap().take().unwrap();
        running.member.stop();
        running.env.crash(CrashRule::KeepAll)
    }

    /// The power of a member goes. Returns its disk.
    pub fn lose(&self, place: usize, rule: CrashRule) -> Option<MemEnv> {
        let running = self.members[place].write().unwrap().take()?;
        // What it does from now on must not be seen: else it could report what the copy of its disk does not have.
        running.power.goes();
        let after = running.env.crash(rule);
        running.member.stop();
        Some(after)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for member in &self.members {
            if let Some(running) = member.write().unwrap().take() {
                running.member.stop();
            }
        }
        self.is_over.store(true, Relaxed);
        drop(self.clock.take().map(JoinHandle::join));
    }
}

/// The release that the member at a place tells the others.
pub(crate) fn release_of(place: usize) -> String {
    format!("5.0.{place}")
}

/// Executes a statement with numbers. Returns its rows: the cells of each as numbers.
pub(crate) fn run(
    processor: &QueryProcessor,
    text: &str,
    values: &[i64],
    level: Consistency,
) -> Result<Vec<Vec<Option<i64>>>, Error> {
    let values = values
        .iter()
        .map(|value| Value::Bytes(Bytes::copy_from_slice(&value.to_be_bytes())));
    let options = ExecuteOptions {
        values: Values::Positional(values.collect()),
        consistency: level,
        ..ExecuteOptions::default()
    };
    let executed = execute(processor, text, &options)?;
    if let Some(Awaited::Cluster(write)) = executed.awaited {
        let (sender, done) = crossbeam_channel::bounded(1);
        write.on_done(move |result| drop(sender.send(result)));
        done.recv().unwrap()?;
    }
    let Outcome::Rows(rows) = executed.outcome else {
        return Ok(Vec::new());
    };
    let columns = rows.columns.len();
    let bytes = rows.cells.into_vec();
    let (mut cells, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let length = i32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        at += 4;
        cells.push(usize::try_from(length).ok().map(|length| {
            at += length;
            let value = &bytes[at - length..at];
            value
                .iter()
                .fold(0, |number: i64, byte| number << 8 | i64::from(*byte))
        }));
    }
    Ok(cells.chunks(columns).map(<[_]>::to_vec).collect())
}

/// Executes a statement as the server does: a read of a row is parked while it waits for its barrier, and every second time a statement with a
/// condition or a counter while it waits for its outcome.
fn execute(processor: &QueryProcessor, text: &str, options: &ExecuteOptions) -> Result<Executed, Error> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let options = &ExecuteOptions {
        may_park: COUNT.fetch_add(1, Relaxed).is_multiple_of(2),
        ..options.clone()
    };
    let mut given = Given::default();
    loop {
        let execute = || match parking::outcome() {
            None | Some(Decided(Err(Error::Overtaken))) => {
                processor.query(&mut ClientState::default(), text, options)
            }
            Some(Decided(decided)) => decided,
        };
        match parking::attempt(given, Parks::Events, execute) {
            Attempt::Done(executed) => return executed,
            Attempt::WaitsFor(event) => given = event.wait(),
            Attempt::Waits(read) => panic!("{read:?} was to be read without waiting"),
        }
    }
}

/// An error that leaves open what became of the request, or says that nothing did.
pub(crate) fn is_passing(error: &Error) -> bool {
    matches!(
        error,
        Error::Overloaded(_)
            | Error::WriteFailure { .. }
            | Error::WriteTimeout { .. }
            | Error::CasWriteUnknown { .. }
            | Error::ReadTimeout { .. }
            | Error::ReadFailure { .. }
            | Error::Unavailable { .. }
    )
}

/// Waits until something is so; `what` says what is wrong if it never is.
pub(crate) fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
