//! [`SimNode`]: a place in a simulated cluster, with a disk in memory and the process that runs on it: an engine and an
//! `ilion_member::Member`. The threads of the process are tasks of the simulation.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ilion_cluster::{Endpoint, FEATURE_LEVEL_MAX, Location};
use ilion_coordinator::{PageSize, ReadOptions};
use ilion_engine::{Engine, EngineOptions};
use ilion_env::turns::Turns;
use ilion_env::{CrashRule, MemEnv, Seeded};
use ilion_member::{InProcess, Member, MemberOptions, NewCluster, Replaced};
use ilion_query::{ClusterFacts, EngineStore, QueryOptions, QueryProcessor, Store};
use parking_lot::Mutex;
use uuid::Uuid;

use super::logs::{ClusterLogs, NodeLogs};
use super::ring_work::host_of;

/// What all nodes of a cluster have in common.
#[derive(Clone)]
pub(super) struct Cluster {
    pub turns: Turns,
    pub logs: ClusterLogs,
    pub peers: InProcess,
    /// Slices of its ring.
    pub tablets: u32,
    /// Number of records that replicas compare at once.
    pub block_length: u64,
}

impl Cluster {
    /// Starts a task.
    pub fn spawn(&self, name: &str, body: impl FnOnce() + Send + 'static) {
        let spawned = self.turns.spawn(name, body);
        drop(spawned.unwrap_or_else(|error| panic!("{name}: {error}")));
    }
}

/// A process that serves clients.
pub(super) struct Process {
    /// Executes the statements of clients.
    pub cluster: QueryProcessor,
    /// The engine's own data.
    pub local: Arc<dyn Store>,
    pub member: Arc<Member>,
}

/// The parts of a process that exist so far. It begins with an engine, becomes a member, and then serves clients.
#[derive(Default)]
struct Begun {
    engine: Option<Arc<Engine>>,
    member: Option<Arc<Member>>,
    process: Option<Arc<Process>>,
    /// Why it could not become a member.
    failure: Option<String>,
    /// True if it was stopped, perhaps before its first turn.
    is_over: bool,
}

/// Whether a process follows its cluster.
pub(super) enum Standing {
    /// It does, or begins to.
    Goes,
    /// The node is not a member any more.
    HasLeft,
    /// It is to replace a node that a late record has made look alive: it must start again.
    IsEarly,
    /// It is to replace a node that has left meanwhile, since a late record asked for that: nobody needs it.
    IsUseless,
    /// It stopped, or stopped to follow a tablet, for this reason.
    Halted(String),
}

/// See the module.
pub(super) struct SimNode {
    place: usize,
    replaces: Option<Replaced>,
    /// It understands the feature level before the newest one only.
    is_old: bool,
    /// It is not a member any more, or has lost its disk.
    is_gone: bool,
    /// When it gets power again, by the clock of the logs. `None`: it has power.
    off_until_micros: Option<i64>,
    cluster: Cluster,
    env: MemEnv,
    logs: NodeLogs,
    begun: Arc<Mutex<Begun>>,
    /// The disk, if the power was lost in the middle of a step.
    lost_power: Arc<Mutex<Option<MemEnv>>>,
    /// Disks and engines of earlier processes. Some may not know yet that they have lost their power, and their clients still wait.
    past: Vec<(MemEnv, Arc<Mutex<Begun>>)>,
}

fn rule(random: &mut Seeded) -> CrashRule {
    match random.below(3) {
        0 => CrashRule::LoseUnsynced,
        1 => CrashRule::KeepAll,
        _ => CrashRule::Seeded(random.next_u64()),
    }
}

impl SimNode {
    /// An empty node, which starts.
    pub fn new(
        place: usize,
        cluster: &Cluster,
        env: MemEnv,
        replaces: Option<Replaced>,
        is_old: bool,
    ) -> Self {
        let mut node = Self {
            place,
            replaces,
            is_old,
            is_gone: false,
            off_until_micros: None,
            cluster: cluster.clone(),
            logs: NodeLogs::new(&cluster.logs),
            env,
            begun: Arc::default(),
            lost_power: Arc::default(),
            past: Vec::new(),
        };
        node.start();
        node
    }

    /// Starts a process on the disk.
    fn start(&mut self) {
        self.off_until_micros = None;
        self.logs = NodeLogs::new(&self.cluster.logs);
        self.begun = Arc::default();
        let (cluster, env, logs, begun) = (
            self.cluster.clone(),
            self.env.clone(),
            self.logs.clone(),
            self.begun.clone(),
        );
        let options = self.options();
        let place = self.place;
        let body = move || begin(&cluster, &env, logs, options, &begun);
        self.cluster.spawn(&format!("start of node {place}"), body);
    }

    fn options(&self) -> MemberOptions {
        let place = self.place as u8;
        let endpoint = Endpoint {
            ip: [127, 0, 0, place + 1].into(),
            native_port: 9042,
            storage_port: 7000,
        };
        let location = Location {
            datacenter: "datacenter1".to_owned(),
            rack: format!("rack{place}"),
        };
        let host = host_of(self.place);
        MemberOptions {
            create: Some(NewCluster {
                cluster: Uuid::from_u128(7),
                tablets: self.cluster.tablets,
                down_max: Duration::from_millis(800),
            }),
            heartbeat: Duration::from_millis(100),
            write_timeout: Duration::from_secs(1),
            finish_batches_after: Duration::from_millis(300),
            save_bytes: 2_000,
            block_length: self.cluster.block_length,
            trim_interval: Duration::from_millis(50),
            trim_records: 20,
            silence_max: Duration::from_secs(2),
            replaces: self.replaces,
            understands: FEATURE_LEVEL_MAX - u32::from(self.is_old),
            ..MemberOptions::new(host, endpoint, location, "5.0.0")
        }
    }

    /// The process, if it serves clients.
    pub fn process(&self) -> Option<Arc<Process>> {
        self.begun.lock().process.clone()
    }

    /// The member, if there is one already.
    pub fn member(&self) -> Option<Arc<Member>> {
        self.begun.lock().member.clone()
    }

    /// The engine, if it is open.
    pub fn engine(&self) -> Option<Arc<Engine>> {
        self.begun.lock().engine.clone()
    }

    /// Whether the process follows the cluster.
    pub fn standing(&self) -> Standing {
        let (failure, member) = {
            let begun = self.begun.lock();
            (begun.failure.clone(), begun.member.clone())
        };
        let Some(member) = member else {
            return Standing::Goes;
        };
        let reason = member.halted().or(failure);
        let has_left = |reason: &str| member.ring().has_left() || reason.contains("has left it");
        match reason {
            Some(reason) if has_left(&reason) => Standing::HasLeft,
            Some(reason) if reason.contains("Cannot replace a live node") => Standing::IsEarly,
            Some(reason) if reason.contains("to be replaced") => Standing::IsUseless,
            Some(reason) => Standing::Halted(reason),
            None => match member.halted_tablet() {
                Some(tablet) => Standing::Halted(format!("tablet {tablet}")),
                None => Standing::Goes,
            },
        }
    }

    /// The process's way to the logs.
    pub fn logs(&self) -> &NodeLogs {
        &self.logs
    }

    /// The disk.
    pub fn env(&self) -> &MemEnv {
        &self.env
    }

    /// Advances the clocks, also of processes that have lost their power.
    pub fn advance_micros(&self, micros: i64) {
        self.env.advance_micros(micros);
        self.past.iter().for_each(|(env, _)| env.advance_micros(micros));
    }

    /// Takes one step of the background work of the engine, and of the engines of earlier processes.
    pub fn work(&self, random: &mut Seeded) {
        for (_, begun) in &self.past {
            if let Some(engine) = begun.lock().engine.clone() {
                engine.step();
            }
        }
        let Some(engine) = self.engine() else {
            return;
        };
        match random.below(8) {
            0 => {
                let schema = engine.schema();
                let tables: Vec<_> = schema
                    .keyspace("ks")
                    .into_iter()
                    .flat_map(|ks| ks.tables.values())
                    .collect();
                if let Some(table) = tables.get(random.below(tables.len() as u64) as usize) {
                    drop(engine.flush(table.id));
                }
            }
            1 => engine.tick(),
            _ => {
                engine.step();
            }
        }
    }

    /// Makes the power fail at one of the next syncs, in the middle of a step, unless [`Self::recover`] is called before.
    pub fn endanger(&self, random: &mut Seeded) {
        let (left, rule) = (AtomicU64::new(random.below(12)), rule(random));
        let (lost_power, logs) = (self.lost_power.clone(), self.logs.clone());
        self.env.on_sync(move |env, _| {
            if left.fetch_sub(1, Relaxed) == 0 {
                *lost_power.lock() = Some(env.crash(rule));
                // Nothing that the process does from now on may reach the logs: the disk after the crash does not have it.
                logs.lose_power();
            }
        });
    }

    /// Starts the node again, if it lost power in the middle of a step. Returns whether it did.
    pub fn recover(&mut self) -> bool {
        self.env.on_sync(|_, _| {});
        let after = self.lost_power.lock().take();
        let is_lost = after.is_some();
        if let Some(after) = after {
            self.start_on(after);
        }
        is_lost
    }

    /// Loses the power, and starts the node again.
    pub fn crash(&mut self, random: &mut Seeded) {
        let after = self.env.crash(rule(random));
        self.start_on(after);
    }

    /// Ends the process, and starts another one on its disk.
    pub fn restart(&mut self) {
        let after = self.env.crash(CrashRule::KeepAll);
        self.start_on(after);
    }

    fn start_on(&mut self, env: MemEnv) {
        self.stop_on(env);
        self.start();
    }

    /// Ends the process. The next one finds this disk.
    fn stop_on(&mut self, env: MemEnv) {
        self.logs.lose_power();
        self.stop();
        self.env = env;
        // Somebody makes room before a node starts again.
        self.env.set_capacity_bytes(u64::MAX);
    }

    /// Loses the power, and gets it again at this time of the logs.
    pub fn lose_power_until(&mut self, random: &mut Seeded, micros: i64) {
        let after = self.env.crash(rule(random));
        self.stop_on(after);
        self.off_until_micros = Some(micros);
    }

    /// When it gets power again, by the clock of the logs; `None` if it has power.
    pub fn off_until_micros(&self) -> Option<i64> {
        self.off_until_micros
    }

    /// Starts it again, if it has no power.
    pub fn end_outage(&mut self) {
        if self.off_until_micros.is_some() && !self.is_gone {
            self.start();
        }
    }

    /// From now on, the disk has no room.
    pub fn fill_disk(&self) {
        self.env.set_capacity_bytes(0);
    }

    /// The disk has room again. A process that could not start without is started again.
    pub fn make_room(&mut self) {
        self.env.set_capacity_bytes(u64::MAX);
        let could_not_start = {
            let begun = self.begun.lock();
            begun.engine.is_none() && begun.failure.is_some()
        };
        if could_not_start {
            self.restart();
        }
    }

    /// The next process understands the newest feature level.
    pub fn upgrade(&mut self) {
        self.is_old = false;
    }

    /// The power goes, and the disk is lost.
    pub fn lose_disk(&mut self) {
        self.logs.lose_power();
        self.leave();
    }

    /// Ends the process: the node is not a member any more.
    pub fn leave(&mut self) {
        self.is_gone = true;
        self.stop();
    }

    /// True if the node is not a member any more.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Stops the process, which takes some turns.
    pub fn stop(&mut self) {
        let begun = std::mem::take(&mut self.begun);
        self.past.push((self.env.clone(), begun.clone()));
        let body = move || {
            let member = begun.lock().member.clone();
            if let Some(member) = member {
                member.stop();
            }
            *begun.lock() = Begun {
                is_over: true,
                ..Begun::default()
            };
        };
        self.cluster.spawn(&format!("stop of node {}", self.place), body);
    }
}

/// What a process does until it serves clients.
fn begin(cluster: &Cluster, env: &MemEnv, logs: NodeLogs, options: MemberOptions, begun: &Mutex<Begun>) {
    if begun.lock().is_over {
        return;
    }
    let engine = match Engine::open(env.shared(), engine_options()) {
        Ok(engine) => Arc::new(engine),
        Err(error) if env.capacity_bytes() == 0 => return begun.lock().failure = Some(error.to_string()),
        Err(error) => panic!("a node starts after any crash: {error}"),
    };
    begun.lock().engine = Some(engine.clone());
    let local: Arc<dyn Store> = Arc::new(EngineStore::new(engine.clone(), ClusterFacts::default()));
    let (peers, way) = (Arc::new(cluster.peers.clone()), logs.clone());
    let member = Member::start(&engine, local.clone(), Arc::new(logs), peers, options);
    let member = Arc::new(member.unwrap_or_else(|error| panic!("a member starts after any crash: {error}")));
    begun.lock().member = Some(member.clone());
    // The limit is long, since a node may have to wait until all others have joined.
    let limit = Duration::from_secs(3600);
    // Others may need what this node has before this node has got all that it lacks, as after a loss of power of all nodes.
    let numbered = member.wait_numbered(limit);
    let joined = numbered.and_then(|number| {
        // A process that has lost its power may get its turn when the next one has begun.
        if way.has_power() {
            cluster.peers.add(number, &member);
        }
        member.wait_joined(limit)
    });
    match joined {
        Err(error) => begun.lock().failure = Some(error.to_string()),
        Ok(_) => {
            let options = ReadOptions {
                page_first: PageSize {
                    rows: 2,
                    bytes: 64 << 10,
                },
                ..ReadOptions::default()
            };
            let store = member.store(Arc::new(cluster.peers.readers.clone()), options);
            let process = Process {
                cluster: QueryProcessor::new(Arc::new(store), QueryOptions::default()),
                local,
                member,
            };
            begun.lock().process = Some(Arc::new(process));
        }
    }
}

fn engine_options() -> EngineOptions {
    let mut options = EngineOptions::below(Path::new("/ilion"));
    options.is_stepped = true;
    options.memtable_shards = 1;
    options.compaction_bytes_per_sec = None;
    options.commit_log.segment_bytes = 64 << 10;
    options
}
