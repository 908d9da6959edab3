//! [`World`]: a run: its nodes, logs and clients, and the steps that the seed chooses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ilion_cluster::{ClusterState, Moment};
use ilion_env::turns::{TaskId, Turns};
use ilion_env::{Env as _, MemEnv, Seeded};
use ilion_histories::Violation;
use ilion_member::InProcess;
use ilion_query::Consistency;
use parking_lot::Mutex;

use crate::command::{CELLS, COUNTER, Command, REGISTERS, own_cells};
use crate::history::{History, Ran};
use crate::log::{LogFaults, Side};
use crate::members::logs::ClusterLogs;
use crate::members::node::{Cluster, SimNode, Standing};
use crate::members::ring_work::RingWork;
use crate::members::statements::ROLE;
use crate::members::{shown, statements};
use crate::plan::{Fault, Plan};
use crate::request::{Reply, Request};

/// At the beginning. Nodes may leave, and join up to the number of tablets.
const NODES: [usize; 8] = [3, 3, 3, 3, 4, 4, 4, 5];
const CLIENTS: usize = 8;
/// The names of their tasks begin with this.
const CLIENT: &str = "client";
/// Minimum number of tablets.
const TABLETS: u32 = 4;
/// How many records of a log replicas compare at once: in half of the runs so many that no block ends.
const BLOCKS: [u64; 2] = [4, 1024];
/// Maximum number of requests and answers of logs that are delivered in a step.
const DELIVERIES_MAX: u64 = 6;
/// The longest step: in most runs, requests take long and time out often; in the others, faults last for several requests. While the
/// cluster comes to rest, steps are shorter, so that nodes catch up with their logs; when the tables are made and the last values are read,
/// so little time passes that no request times out.
const STEP_MICROS: [u64; 4] = [6000, 6000, 6000, 1500];
const REST_MICROS: u64 = 2000;
const SLOW_MICROS: u64 = 600;
/// Maximum number of steps in which a cluster must come to rest.
const STEPS_TO_REST: u64 = 100_000;
/// Maximum time in which a cluster must come to rest. A node that needs longer waits for a timeout.
const MICROS_TO_REST: i64 = 60_000_000;
/// Rows of a page of the last scans: more than the first page that nodes ask each other for.
const PAGE_LAST: u32 = 8;
/// Several times `finish_batches_after` of the members.
const FINISH_MICROS: i64 = 1_500_000;
/// States that are kept to be compared.
const STATES_MAX: usize = 200;

/// Answers of clients that the history does not have yet.
type Replies = Arc<Mutex<Vec<(u64, (Reply, Option<String>))>>>;

pub(super) struct World {
    pub plan: Plan,
    pub random: Seeded,
    pub cluster: Cluster,
    pub nodes: Vec<SimNode>,
    /// True in half of the runs: few nodes lose their power or their logs, so that clients get many answers.
    is_calm: bool,
    /// How many nodes have each row: three in half of the runs, two or one in the others.
    pub replicas: usize,
    pub history: History,
    replies: Replies,
    /// Requests that changed something, and whose clients have not looked at it yet.
    changed: Vec<Request>,
    /// Why the last request without an outcome has none.
    last_error: Option<String>,
    pub ring_work: Option<RingWork>,
    /// The key that most clients want for a while, and the node that they ask.
    focus: (u64, usize),
    next_value: u64,
    /// The longest step.
    step_micros_max: u64,
    /// The longest step while there are faults.
    usual_step_micros: u64,
    /// The value that a client wanted to set last, of each register.
    wanted: [u64; REGISTERS as usize],
    /// The state of the cluster after each record of the meta log.
    states: BTreeMap<u64, Arc<ClusterState>>,
    /// The last state of each node that was compared.
    compared: BTreeMap<usize, Arc<ClusterState>>,
    /// The node that is looked at in the next step.
    next_look: usize,
    /// Nodes that have crashed, until clients read from their next process at ONE.
    crashed: BTreeSet<usize>,
}

/// So that other choices of a seed do not depend on the number of sequences.
const SEQUENCES_SEED: u64 = 0x5e90_e4ce;

impl World {
    pub fn new(plan: Plan) -> Self {
        let seed = plan.seed;
        let mut random = Seeded::new(seed);
        let nodes = NODES[random.below(8) as usize];
        let replicas = [3, 3, 2, 1][random.below(4) as usize];
        let is_calm = random.one_in(2);
        let envs: Vec<MemEnv> = (0..nodes).map(|_| MemEnv::new(random.next_u64())).collect();
        let tablets = TABLETS.max(nodes as u32);
        // Each tablet has a sequence of its own, or they share one or two.
        let sequences = [tablets, tablets, 1, 2][Seeded::new(seed ^ SEQUENCES_SEED).below(4) as usize];
        let cluster = Cluster {
            turns: Turns::default(),
            logs: ClusterLogs::new(seed, sequences, envs[0].now_micros()),
            peers: InProcess::default(),
            tablets,
            block_length: BLOCKS[random.below(2) as usize],
        };
        let nodes = envs.into_iter().enumerate();
        // The first node makes the cluster with the level that it understands. Others may join with a newer one.
        let are_old = random.one_in(2) && plan.has(Fault::OldLevel);
        let nodes = nodes.map(|(place, env)| SimNode::new(place, &cluster, env, None, are_old));
        Self {
            nodes: nodes.collect(),
            is_calm,
            replicas,
            plan,
            cluster,
            random,
            history: History::default(),
            replies: Replies::default(),
            changed: Vec::new(),
            last_error: None,
            ring_work: None,
            focus: (0, 0),
            next_value: 1,
            step_micros_max: STEP_MICROS[0],
            usual_step_micros: STEP_MICROS[0],
            wanted: [0; REGISTERS as usize],
            states: BTreeMap::new(),
            compared: BTreeMap::new(),
            next_look: 0,
            crashed: BTreeSet::new(),
        }
    }

    /// Lets the nodes join, and creates the tables. Faults begin after this.
    pub fn begin(&mut self) -> Result<(), Violation> {
        self.rest("joins", |world| {
            world.nodes.iter().all(|node| node.process().is_some())
        })?;
        self.step_micros_max = SLOW_MICROS;
        for text in statements::schema(self.replicas) {
            let Some(process) = self.nodes[0].process() else {
                return Err(Violation("begin: a node has ended".to_owned()));
            };
            let done: Arc<Mutex<Option<_>>> = Arc::default();
            let (of_task, of_client) = (done.clone(), text.clone());
            let body = move || {
                let result = statements::run(&process, &of_client, &[], Consistency::QUORUM);
                *of_task.lock() = Some(result.map(drop));
            };
            self.cluster.spawn(CLIENT, body);
            self.rest(&text, |_| done.lock().is_some())?;
            if let Some(Err(error)) = done.lock().take() {
                return Err(Violation(format!("{text}: {error}")));
            }
        }
        let known = |node: &SimNode| {
            let engine = node.engine();
            engine.is_some_and(|engine| engine.schema().table("ks", "cells").is_some())
        };
        self.rest("tables", |world| world.nodes.iter().all(known))?;
        let one_in_12 = |fault| if self.plan.has(fault) { 12 } else { 0 };
        self.cluster.logs.set_faults(LogFaults {
            lost_request: one_in_12(Fault::Loss),
            lost_answer: one_in_12(Fault::Loss),
            duplicate: one_in_12(Fault::Repeat),
            duplicate_micros_max: 1_000_000,
            keeps_order: true,
        });
        (0..self.nodes.len()).for_each(|place| self.choose_lateness(place));
        self.usual_step_micros = STEP_MICROS[self.random.below(4) as usize];
        self.step_micros_max = self.usual_step_micros;
        for node in &self.nodes {
            let hour = 3_600_000_000;
            let micros = self.random.below(2 * hour) as i64 - hour as i64;
            if self.plan.has(Fault::Clocks) {
                node.env().step_clock(micros);
            }
        }
        Ok(())
    }

    /// A node's requests to the logs, their answers and what it reads are often late from now on, or only some of these, or none.
    fn choose_lateness(&mut self, place: usize) {
        let [requests, answers, deliveries] = [(); 3].map(|()| [0, 4][self.random.below(2) as usize]);
        if self.plan.has(Fault::Lateness) {
            self.nodes[place].logs().be_late(requests, answers, deliveries);
        }
    }

    /// Takes steps without crashes until `is_so` returns true.
    fn rest(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) -> Result<(), Violation> {
        let begun = self.now_micros();
        for _ in 0..STEPS_TO_REST {
            if is_so(self) {
                return Ok(());
            }
            if self.now_micros() - begun > MICROS_TO_REST {
                break;
            }
            self.go_on()?;
        }
        let tasks = self.cluster.turns.names();
        let nodes = self.describe();
        Err(Violation(format!(
            "rest: {what}: not in {STEPS_TO_REST} steps or {MICROS_TO_REST} us; {nodes}; {tasks:?} go on"
        )))
    }

    /// How far each node is, and what it should have, for violations.
    fn describe(&self) -> String {
        let nodes = self.nodes.iter().enumerate().map(|(place, node)| {
            let Some(member) = node.member() else {
                return format!("node {place} does not run");
            };
            let serves = node.process().is_some();
            let position = member.state().map(|state| state.position);
            let (lacking, change) = (member.lacking(), member.ring().current());
            let tablets = member.facts().tablets;
            format!("node {place}: serves {serves}, {position:?} of the meta log, lacks {lacking} tablets, {change:?}, {tablets:?}")
        });
        let nodes = nodes.collect::<Vec<String>>().join("; ");
        let placement = self.newest_state().map(|state| {
            let replicas = |moment| state.all_replicas(moment);
            let trimmed: Vec<u64> = (0..self.cluster.tablets)
                .map(|tablet| state.trimmed(tablet).segment.0)
                .collect();
            let stranded: Vec<_> = state
                .members
                .keys()
                .map(|node| (node, state.stranded(*node)))
                .collect();
            format!(
                "now {:?}, afterwards {:?}, trimmed {trimmed:?}, stranded {stranded:?}",
                replicas(Moment::Now),
                replicas(Moment::Afterwards)
            )
        });
        format!("{} replicas; {nodes}; {placement:?}", self.replicas)
    }

    /// Takes a step without faults, except those of the logs.
    fn go_on(&mut self) -> Result<(), Violation> {
        self.pass_time();
        let node = self.choose_place();
        self.changed.clear();
        match self.random.below(10) {
            0..6 => self.turn(false)?,
            6..9 => self.deliver(),
            _ => self.nodes[node].work(&mut self.random),
        }
        self.look()
    }

    /// The place of a random member.
    pub fn choose_place(&mut self) -> usize {
        let places = self.places();
        places[self.random.below(places.len() as u64) as usize]
    }

    fn pass_time(&mut self) {
        self.history.tick();
        let micros = self.random.below(self.step_micros_max) as i64;
        self.cluster.logs.advance_micros(micros);
        self.nodes.iter().for_each(|node| node.advance_micros(micros));
        self.end_outages();
    }

    /// Logs take some requests, and some of their answers arrive.
    fn deliver(&mut self) {
        for _ in 0..=self.random.below(DELIVERIES_MAX) {
            self.cluster.logs.step();
        }
    }

    /// A random task. Most turns are for the threads that follow logs and for clients: the others have little to do.
    fn choose_task(&mut self) -> Option<TaskId> {
        let wanted = match self.random.below(8) {
            0..3 => "ilion-follower",
            3..6 => CLIENT,
            _ => "",
        };
        let tasks = self.cluster.turns.tasks(wanted);
        let chosen = self.random.below(tasks.len() as u64) as usize;
        tasks.get(chosen).copied()
    }

    /// Gives a random task its turn. If the turn is dangerous, the node of the task may lose its power meanwhile.
    fn turn(&mut self, is_dangerous: bool) -> Result<(), Violation> {
        let Some(task) = self.choose_task() else {
            return Ok(());
        };
        if is_dangerous {
            // The node of this task is the only one that writes to its disk in this turn.
            for node in self.nodes.iter().filter(|node| !node.is_gone()) {
                node.endanger(&mut self.random);
            }
        }
        let done = self.cluster.turns.run(task);
        self.recover();
        done.map_err(Violation)
    }

    pub fn step(&mut self) -> Result<(), Violation> {
        let node = self.choose_place();
        let one_in = if self.is_calm { 30 } else { 10 };
        let is_dangerous = self.random.one_in(one_in) && self.plan.has(Fault::PowerLoss);
        self.pass_time();
        match self.random.below(400) {
            382 | 384 | 388..391 if self.is_calm && !self.random.one_in(4) => {}
            0..40 => self.ask(),
            40..130 => self.deliver(),
            130..350 => self.turn(is_dangerous)?,
            350..382 => {
                if is_dangerous {
                    self.nodes[node].endanger(&mut self.random);
                }
                self.nodes[node].work(&mut self.random);
                self.recover();
            }
            382 if self.random.one_in(4) => self.lose_all_power(),
            382 => self.lose_power(node),
            383 => self.choose_lateness(node),
            384 if self.plan.has(Fault::Isolation) => {
                self.cluster.logs.isolate(self.random.next_u64());
                self.history.ran.isolations += 1;
            }
            385..388 if self.plan.has(Fault::Ring) => self.change_ring(),
            388 | 389 => self.nodes[node].logs().talk_to(Side::Isolated),
            390 if self.plan.has(Fault::FullDisk) => self.fill_disk(node),
            _ => self.heal(),
        }
        self.look()?;
        self.look_at_changes();
        Ok(())
    }

    /// Most clients read at once what they have changed, through any nodes.
    fn look_at_changes(&mut self) {
        for request in std::mem::take(&mut self.changed) {
            let reads = match request {
                _ if self.random.one_in(4) => continue,
                Request::Change(Command::Write(key, _) | Command::CompareAndSet(key, ..)) => {
                    vec![Request::Register(key)]
                }
                Request::Change(Command::Add(key, _)) => vec![Request::Counter(key)],
                Request::Change(Command::Batch(..)) if self.random.one_in(3) => {
                    vec![Request::Scan(1 + self.random.below(8) as u32)]
                }
                Request::Change(Command::Batch(keys, _)) => keys.map(Request::Register).to_vec(),
                _ => continue,
            };
            for read in reads {
                let node = self.choose_asked();
                self.send(node, read);
            }
        }
    }

    fn heal(&mut self) {
        self.cluster.logs.heal();
        for node in &mut self.nodes {
            node.logs().talk_to(Side::Majority);
            node.make_room();
        }
    }

    /// Starts nodes again that have lost their power in the middle of a step.
    fn recover(&mut self) {
        for place in 0..self.nodes.len() {
            if self.nodes[place].recover() {
                self.note_crash(place);
            }
        }
    }

    pub fn note_crash(&mut self, place: usize) {
        self.history.ran.crashes += 1;
        self.crashed.insert(place);
        self.note_end(place);
    }

    /// The clients of a node get no answer any more.
    fn note_end(&mut self, place: usize) {
        for (client, _) in self.history.waiting_for(place) {
            self.history.answer(client, Reply::Unknown);
        }
    }

    /// Takes the answers of clients. Checks that the next node follows its logs, and agrees with others on the state of the cluster.
    fn look(&mut self) -> Result<(), Violation> {
        for (client, (reply, error)) in std::mem::take(&mut *self.replies.lock()) {
            self.changed.extend(self.history.answer(client, reply));
            self.last_error = error.or(self.last_error.take());
        }
        // One node after another: all of them in each step would be a fifth of the time of a run.
        self.next_look = (self.next_look + 1) % self.nodes.len();
        self.look_at(self.next_look)?;
        self.go_on_with_ring();
        Ok(())
    }

    fn look_at(&mut self, place: usize) -> Result<(), Violation> {
        if self.nodes[place].is_gone() {
            return Ok(());
        }
        match self.nodes[place].standing() {
            Standing::Goes => {
                // A process must not answer before it has applied again what the crashed one had answered.
                if self.nodes[place].process().is_some() && self.crashed.remove(&place) {
                    CELLS
                        .into_iter()
                        .for_each(|key| self.send(place, Request::Nearest(key)));
                }
                return self.compare_state(place);
            }
            Standing::HasLeft => {
                self.note_end(place);
                self.nodes[place].leave();
                self.history.ran.leaves += 1;
            }
            Standing::IsEarly => self.nodes[place].restart(),
            Standing::IsUseless => self.nodes[place].leave(),
            Standing::Halted(reason) => {
                return Err(Violation(format!("halted: node {place}: {reason}")));
            }
        }
        Ok(())
    }

    /// Compares the state of the cluster that a node knows with that of other nodes after the same record.
    fn compare_state(&mut self, place: usize) -> Result<(), Violation> {
        let state = self.nodes[place].member().and_then(|member| member.state());
        let Some(state) = state else {
            return Ok(());
        };
        let before = self.compared.insert(place, state.clone());
        if before.is_some_and(|before| Arc::ptr_eq(&before, &state)) {
            return Ok(());
        }
        let position = state.position.segment.0;
        let other = self.states.entry(position).or_insert_with(|| state.clone());
        if !Arc::ptr_eq(other, &state) && **other != *state {
            return Err(Violation(format!(
                "states: node {place} at {position} of the meta log: {state:?}, another {other:?}"
            )));
        }
        while self.states.len() > STATES_MAX {
            self.states.pop_first();
        }
        Ok(())
    }

    /// The node that a client asks: half of them ask the same one for a while.
    fn choose_asked(&mut self) -> usize {
        match self.random.one_in(2) && self.nodes[self.focus.1].process().is_some() {
            true => self.focus.1,
            false => self.choose_place(),
        }
    }

    /// A register or a cell: half of the clients want the same one for a while.
    fn choose_key(&mut self, keys: &[u64]) -> u64 {
        match keys.contains(&self.focus.0) && self.random.one_in(2) {
            true => self.focus.0,
            false => keys[self.random.below(keys.len() as u64) as usize],
        }
    }

    fn choose_focus(&mut self) {
        let keys = [0, 1, CELLS[0], CELLS[1]];
        self.focus = (keys[self.random.below(4) as usize], self.choose_place());
    }

    fn ask(&mut self) {
        if self.history.waiting() >= CLIENTS {
            return;
        }
        if self.random.one_in(10) {
            self.choose_focus();
        }
        let place = self.choose_asked();
        let request = self.choose();
        if matches!(request, Request::Alter(_) | Request::Role(_)) && !self.plan.has(Fault::Schema) {
            return;
        }
        // A node holds a lock while it changes the schema: a task with a second change would block without giving its turn.
        let waiting = self.history.waiting_for(place);
        let is_alter = |request: &Request| matches!(request, Request::Alter(_));
        if is_alter(&request) && waiting.iter().any(|(_, other)| is_alter(other)) {
            return;
        }
        self.send(place, request);
    }

    fn send(&mut self, place: usize, request: Request) {
        let Some(process) = self.nodes[place].process() else {
            return;
        };
        let client = self.history.ask(request, place);
        let replies = self.replies.clone();
        let body = move || {
            let reply = statements::execute(&process, request);
            replies.lock().push((client, reply));
        };
        self.cluster.spawn(&format!("{CLIENT} {request:?}"), body);
    }

    fn choose(&mut self) -> Request {
        if self.random.one_in(5) {
            return match self.random.below(9) {
                kind @ 0..6 => Request::Alter(kind),
                _ => {
                    self.next_value += 1;
                    Request::Role(self.next_value)
                }
            };
        }
        let key = self.choose_key(&[0, 1]);
        self.next_value += 1;
        let value = self.next_value;
        match self.random.below(14) {
            kind @ 0..4 => {
                let before = std::mem::replace(&mut self.wanted[key as usize], value);
                Request::Change(match kind {
                    0 | 1 => Command::Write(key, value),
                    _ => Command::CompareAndSet(key, (before > 0).then_some(before), value),
                })
            }
            4 => Request::Change(Command::Add(COUNTER, 1 + self.random.below(100) as i64)),
            5 => Request::Change(Command::Batch(CELLS, value)),
            6 => Request::Change(Command::Batch(own_cells(value), value)),
            7 => Request::Nearest(self.choose_key(&CELLS)),
            8 if self.random.one_in(2) => Request::Scan(1 + self.random.below(8) as u32),
            8 => Request::Register(self.choose_key(&CELLS)),
            9 => Request::Register(key),
            10 => Request::Counter(COUNTER),
            _ => Request::Register(self.focus.0),
        }
    }

    /// Heals everything, waits until all requests are answered and all nodes serve clients, and reads all values through each node.
    pub fn settle(&mut self) -> Result<(), Violation> {
        self.heal();
        self.nodes.iter_mut().for_each(SimNode::end_outage);
        self.nodes.iter().for_each(|node| node.logs().be_late(0, 0, 0));
        self.cluster.logs.set_faults(LogFaults {
            keeps_order: true,
            ..LogFaults::default()
        });
        loop {
            self.step_micros_max = REST_MICROS;
            self.rest("settles", |world| {
                let serves = |place: &usize| world.nodes[*place].process().is_some();
                world.history.waiting() == 0 && world.is_ring_at_rest() && world.places().iter().all(serves)
            })?;
            // At once, through the node that knows the last change of the ring: others may not know it yet.
            let places = self.places();
            let known = |place: &&usize| self.nodes[**place].member()?.state().map(|state| state.position);
            let first = places.iter().max_by_key(known).into_iter();
            let first = first.flat_map(|place| (0..REGISTERS).map(|key| (*place, Request::Register(key))));
            if !self.read_all("first reads", &places, first.collect())? {
                continue;
            }
            // Batches of lost coordinators are finished within this time.
            self.step_micros_max = STEP_MICROS[0];
            let finished = self.now_micros() + FINISH_MICROS;
            self.rest("finishes batches", |world| world.now_micros() > finished)?;
            let places = self.places();
            // The replicas of the other cells are compared, so one node is enough.
            let cells = self.history.cells().into_iter();
            let cells = cells.map(|cell| (places[0], Request::Register(cell)));
            let of_each = |place: &usize| {
                let place = *place;
                let registers = (0..REGISTERS).chain(CELLS).map(Request::Register);
                let all = registers.chain([Request::Counter(COUNTER), Request::Scan(PAGE_LAST)]);
                all.map(move |request| (place, request))
            };
            let last = places.iter().flat_map(of_each).chain(cells).collect();
            if self.read_all("last reads", &places, last)? {
                break;
            }
        }
        self.rest("catches up", Self::is_caught_up)
    }

    /// Sends each request to the node at its place, and waits for all answers. Returns false if `places` are no longer the members: then
    /// the caller must begin again.
    ///
    /// # Errors
    /// A request got no answer.
    fn read_all(
        &mut self,
        what: &str,
        places: &[usize],
        requests: Vec<(usize, Request)>,
    ) -> Result<bool, Violation> {
        self.step_micros_max = SLOW_MICROS;
        // No other reads meanwhile: a node that does not know the last change of the ring yet may refuse them.
        self.crashed.clear();
        let unknown = self.history.ran.unknown;
        for (place, request) in requests {
            self.send(place, request);
        }
        self.rest(what, |world| world.history.waiting() == 0)?;
        // A late record may have let a node leave.
        if self.places() != places {
            return Ok(false);
        }
        if self.history.ran.unknown == unknown {
            return Ok(true);
        }
        let (error, nodes) = (&self.last_error, self.describe());
        Err(Violation(format!(
            "settle: a node does not answer: {error:?}; {nodes}"
        )))
    }

    /// True if all nodes have applied all that is in the logs.
    fn is_caught_up(&self) -> bool {
        let ends = |node: &SimNode| -> BTreeMap<u32, u64> {
            let tablets = node.member().map(|member| member.facts().tablets);
            let tablets = tablets.into_iter().flatten();
            tablets.map(|tablet| (tablet.tablet, tablet.applied)).collect()
        };
        let logs = &self.cluster.logs;
        let is_at_end = |(tablet, applied): (u32, u64)| logs.end(tablet) == applied;
        self.nodes
            .iter()
            .all(|node| ends(node).into_iter().all(is_at_end))
    }

    /// Compares the schemas of all nodes, dropped columns with the times of their drops included.
    fn compare_schemas(&self) -> Result<(), Violation> {
        let engines = self.nodes.iter().enumerate();
        let engines = engines.filter_map(|(place, node)| Some((place, node.engine()?)));
        let mut schemas = engines.map(|(place, engine)| (place, engine.schema().version));
        let Some((first, version)) = schemas.next() else {
            return Ok(());
        };
        match schemas.find(|(_, other)| *other != version) {
            None => Ok(()),
            Some((place, other)) => Err(Violation(format!(
                "schemas: node {first} has version {version}, node {place} has {other}"
            ))),
        }
    }

    /// Compares the roles of all nodes. None that was acknowledged is missing.
    fn compare_roles(&self) -> Result<(), Violation> {
        let names = self.history.roles().iter();
        let names = names.map(|(number, is_made)| (number.to_string(), *is_made));
        for (name, is_made) in names.chain([(ROLE.to_owned(), false)]) {
            let mut first: Option<(usize, String)> = None;
            for (place, node) in self.nodes.iter().enumerate() {
                let Some(engine) = node.engine() else {
                    continue;
                };
                let shown = shown::role(&engine, &name);
                if is_made && shown.is_empty() {
                    return Err(Violation(format!("roles: node {place} lacks role {name}")));
                }
                match &first {
                    Some((other, before)) if *before != shown => {
                        return Err(Violation(format!(
                            "roles: {name}: node {place} has {shown}, node {other} {before}"
                        )));
                    }
                    Some(_) => {}
                    None => first = Some((place, shown)),
                }
            }
        }
        Ok(())
    }

    /// Compares the data of the replicas of each tablet, which have applied the same records.
    fn compare(&self) -> Result<(), Violation> {
        let mut seen: BTreeMap<(&str, u64), (usize, String)> = BTreeMap::new();
        let cells = self.history.cells();
        for (place, node) in self.nodes.iter().enumerate() {
            let (Some(engine), Some(member)) = (node.engine(), node.member()) else {
                continue;
            };
            let Some(ring) = member.state().map(|state| state.tablets) else {
                continue;
            };
            let tablets = member.facts().tablets;
            let is_here = |tablet: u32| tablets.iter().any(|here| here.tablet == tablet);
            for (partition, data) in shown::partitions(&engine, &cells, |token| is_here(ring.of(token))) {
                let (other, first) = seen.entry(partition).or_insert_with(|| (place, data.clone()));
                if *first != data {
                    return Err(Violation(format!(
                        "replicas: {partition:?}: node {place} has {data}, node {other} {first}"
                    )));
                }
            }
        }
        Ok(())
    }

    pub fn finish(mut self) -> Result<Ran, Violation> {
        self.compare_schemas()?;
        self.compare_roles()?;
        self.compare()?;
        let cells = self.history.cells().into_iter();
        let last = cells.map(|cell| (cell, self.history.last_read(cell)));
        self.history.check(&[last.collect()])?;
        self.nodes.iter_mut().for_each(SimNode::stop);
        // Waits of processes that have lost their power are over soon.
        self.step_micros_max = 20_000;
        self.rest("stops", |world| world.cluster.turns.tasks("").is_empty())?;
        Ok(self.history.ran)
    }
}
