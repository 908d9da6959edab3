//! The clients of the queues, over the socket and embedded: each has one queue, and one statement under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use ilion_env::Env;
use ilion_protocol::{Consistency, Response, ResultBody};
use parking_lot::Mutex;

use crate::bench::job::{Turns, Until};
use crate::bench::load::{gather, run_clients};
use crate::bench::queue::consumer::{Consumer, Queues, Stage};
use crate::bench::soak::{LatencyHistograms, Seconds};
use crate::bench::store::{Embedded, Prepared, Store};
use crate::bench::tally::Tally;
use crate::bench::template::Template;
use crate::bench::work::{Crowd, Work, wrong_answer};

/// All clients.
pub struct Clients<'a> {
    store: &'a Store,
    shared: Arc<Shared>,
}

struct Shared {
    queues: Arc<Queues>,
    consumers: Vec<Mutex<Consumer>>,
    latencies: Seconds,
}

/// What clients do until the turns are over.
#[derive(Clone, Copy)]
enum Goal {
    /// A turn is one INSERT.
    Fill,
    /// A turn is one cycle.
    Cycle,
}

impl<'a> Clients<'a> {
    pub fn new(store: &'a Store, queues: &Arc<Queues>, count: u16) -> anyhow::Result<Self> {
        let consumers = (0..count).map(|queue| Mutex::new(Consumer::new(queue)));
        Ok(Self {
            store,
            shared: Arc::new(Shared {
                queues: queues.clone(),
                consumers: consumers.collect(),
                latencies: Seconds::new(usize::from(count))?,
            }),
        })
    }

    /// Fills each queue with this many entries.
    pub fn fill(&self, depth: u64) -> anyhow::Result<()> {
        self.run(Goal::Fill, depth * self.shared.consumers.len() as u64)?;
        self.take_latencies()?;
        Ok(())
    }

    /// Carries out this many cycles, of all queues together.
    pub fn cycle(&self, cycles: u64) -> anyhow::Result<()> {
        self.run(Goal::Cycle, cycles)
    }

    /// The latencies since the last call.
    pub fn take_latencies(&self) -> anyhow::Result<LatencyHistograms> {
        self.shared.latencies.take()
    }

    fn run(&self, goal: Goal, turns: u64) -> anyhow::Result<()> {
        let turns = Arc::new(Turns::new(&self.store.env, &Until::Operations(0..turns)));
        let tally = turns.with_bar(|| match self.store.embedded() {
            None => self.over_socket(goal, &turns),
            Some(database) => self.embedded(goal, &turns, database),
        })?;
        tally.check()
    }

    fn over_socket(&self, goal: Goal, turns: &Arc<Turns>) -> anyhow::Result<Tally> {
        let crowd = Crowd {
            target: self.store.target(),
            clients: u16::try_from(self.shared.consumers.len())?,
            in_flight: 1,
        };
        let next_client = AtomicUsize::new(0);
        run_clients(&self.store.env, &crowd, &|connection| {
            let queues = &self.shared.queues;
            let requests: anyhow::Result<Vec<Template>> = Stage::ALL
                .into_iter()
                .map(|stage| {
                    let prepared = connection.prepare(queues.text(stage))?;
                    let sizes = queues.sizes(stage);
                    Template::execute(connection.version(), &prepared, &sizes, Consistency::One)
                })
                .collect();
            Ok(Box::new(OnSocket {
                client: next_client.fetch_add(1, Relaxed),
                shared: self.shared.clone(),
                goal,
                turns: turns.clone(),
                requests: requests?,
            }) as Box<dyn Work + Send>)
        })
    }

    fn embedded(
        &self,
        goal: Goal,
        turns: &Arc<Turns>,
        database: &Arc<dyn Embedded>,
    ) -> anyhow::Result<Tally> {
        let statements: anyhow::Result<Vec<Arc<dyn Prepared>>> = Stage::ALL
            .into_iter()
            .map(|stage| Ok(Arc::from(database.prepare(&self.shared.queues.text(stage))?)))
            .collect();
        let statements = Arc::new(statements?);
        let caller = |client| Caller {
            env: self.store.env.clone(),
            client,
            shared: self.shared.clone(),
            goal,
            turns: turns.clone(),
            statements: statements.clone(),
        };
        let callers = (0..self.shared.consumers.len()).map(caller);
        gather(callers.collect(), Caller::run)
    }
}

impl Shared {
    /// True if the client has another statement; takes a turn if one begins.
    fn begins(&self, client: usize, turns: &Turns) -> bool {
        self.consumers[client].lock().stage != Stage::Insert || turns.take().is_some()
    }

    fn advance(&self, client: usize, goal: Goal) {
        let mut consumer = self.consumers[client].lock();
        match goal {
            Goal::Fill => consumer.advance_to_insert(),
            Goal::Cycle => consumer.advance(),
        }
    }
}

/// A client with a connection.
struct OnSocket {
    client: usize,
    shared: Arc<Shared>,
    goal: Goal,
    turns: Arc<Turns>,
    requests: Vec<Template>,
}

impl Work for OnSocket {
    fn next(&mut self, slot: usize, out: &mut Vec<u8>) -> anyhow::Result<bool> {
        if !self.shared.begins(self.client, &self.turns) {
            return Ok(false);
        }
        let consumer = self.shared.consumers[self.client].lock();
        let request = &self.requests[consumer.stage as usize];
        request.append(i16::try_from(slot)?, out, |index, place| {
            consumer.fill(&self.shared.queues, index, place);
        });
        Ok(true)
    }

    fn check(&mut self, _slot: usize, response: Response) -> Result<u64, String> {
        let mut consumer = self.shared.consumers[self.client].lock();
        match response {
            Response::Result(ResultBody::Void) => consumer.check(&self.shared.queues, &[]),
            Response::Result(ResultBody::Rows(rows)) => {
                let rows: Vec<_> = rows.rows().collect();
                consumer.check(&self.shared.queues, &rows)
            }
            other => Err(wrong_answer("the statement", &other)),
        }
    }

    /// Called after `check`.
    fn observe(&mut self, _slot: usize, sent_nanos: u64, now_nanos: u64) {
        let is_write = self.shared.consumers[self.client].lock().stage != Stage::Select;
        let nanos = now_nanos.saturating_sub(sent_nanos);
        self.shared.latencies.count(self.client, is_write, nanos);
        self.shared.advance(self.client, self.goal);
    }
}

/// A client with an embedded database, on a thread of its own.
struct Caller {
    env: Arc<dyn Env>,
    client: usize,
    shared: Arc<Shared>,
    goal: Goal,
    turns: Arc<Turns>,
    statements: Arc<Vec<Arc<dyn Prepared>>>,
}

impl Caller {
    fn run(self) -> anyhow::Result<Tally> {
        let queues = self.shared.queues.clone();
        let mut tally = Tally::new()?;
        let mut places: Vec<Vec<Vec<u8>>> = Stage::ALL
            .into_iter()
            .map(|stage| queues.sizes(stage).iter().map(|size| vec![0; *size]).collect())
            .collect();
        while self.shared.begins(self.client, &self.turns) {
            let mut consumer = self.shared.consumers[self.client].lock();
            let stage = consumer.stage;
            let places = &mut places[stage as usize];
            for (index, place) in places.iter_mut().enumerate() {
                consumer.fill(&queues, index, place);
            }
            let values: Vec<&[u8]> = places.iter().map(Vec::as_slice).collect();
            let begun = self.env.monotonic_nanos();
            let statement = &self.statements[stage as usize];
            let outcome = statement.execute(&values, &mut |rows| consumer.check(&queues, rows))?;
            let nanos = self.env.monotonic_nanos().saturating_sub(begun);
            drop(consumer);
            let latencies = &self.shared.latencies;
            latencies.count(self.client, stage != Stage::Select, nanos);
            tally.count(outcome, nanos);
            self.shared.advance(self.client, self.goal);
        }
        Ok(tally)
    }
}
