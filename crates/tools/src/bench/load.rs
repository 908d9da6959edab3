//! The loop of one client, and all clients at once.

use std::sync::Arc;
use std::thread;

use anyhow::{Context, anyhow, bail};
use hdrhistogram::Histogram;
use ilion_env::Env;
use ilion_protocol::{Response, ResponseFrame};

use crate::bench::connection::Connection;
use crate::bench::work::Work;

/// What was done.
#[derive(Debug)]
pub struct Tally {
    /// Answers, also those that were errors.
    pub operations: u64,
    /// Rows written or read.
    pub rows: u64,
    /// From the sending of a request to its answer, in nanoseconds.
    pub latency: Histogram<u64>,
    /// What went wrong.
    pub faults: Faults,
}

/// Failures: how many, and what the first ones were.
#[derive(Debug, Default)]
pub struct Faults {
    count: u64,
    messages: Vec<String>,
}

const MESSAGES_MAX: usize = 5;
const LATENCY_MAX_NANOS: u64 = 120_000_000_000;

impl Faults {
    /// Counts a failure.
    pub fn add(&mut self, message: String) {
        self.count += 1;
        if self.messages.len() < MESSAGES_MAX && !self.messages.contains(&message) {
            self.messages.push(message);
        }
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The first.
    pub fn first(&self) -> Option<&str> {
        self.messages.first().map(String::as_str)
    }

    /// The first few that differ.
    pub fn messages(&self) -> &[String] {
        &self.messages
    }

    fn merge(&mut self, other: Self) {
        let known = other.messages.len() as u64;
        for message in other.messages {
            self.add(message);
        }
        self.count += other.count - known;
    }
}

impl Tally {
    /// Nothing yet.
    ///
    /// # Errors
    /// Never with these bounds; the histogram's constructor checks them.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self {
            operations: 0,
            rows: 0,
            latency: Histogram::new_with_bounds(100, LATENCY_MAX_NANOS, 3)?,
            faults: Faults::default(),
        })
    }

    /// One wrong answer spoils a measurement.
    ///
    /// # Errors
    /// There was one.
    pub fn check(&self) -> anyhow::Result<()> {
        match self.faults.first() {
            None => Ok(()),
            Some(first) => bail!("{} operations failed; the first: {first}", self.faults.count()),
        }
    }

    /// Counts an answer.
    pub fn count(&mut self, outcome: Result<u64, String>, latency_nanos: u64) {
        self.operations += 1;
        self.latency.saturating_record(latency_nanos);
        match outcome {
            Ok(rows) => self.rows += rows,
            Err(message) => self.faults.add(message),
        }
    }

    /// Adds what another client did.
    ///
    /// # Errors
    /// Never: all histograms have the same bounds.
    pub fn merge(&mut self, other: Self) -> anyhow::Result<()> {
        self.operations += other.operations;
        self.rows += other.rows;
        self.latency.add(other.latency)?;
        self.faults.merge(other.faults);
        Ok(())
    }
}

/// Connections and what goes on at once on each.
#[derive(Clone, Debug)]
pub struct Crowd {
    /// Host and port.
    pub address: String,
    /// Connections.
    pub clients: u16,
    /// Requests under way on each.
    pub in_flight: u16,
}

/// Makes the work of a client: prepares its statement, for instance.
pub type MakeWork<'a> = &'a dyn Fn(&mut Connection) -> anyhow::Result<Box<dyn Work + Send>>;

/// Runs work on all connections; each is opened, and its statement prepared, before the first operation of any.
pub fn run_clients(env: &Arc<dyn Env>, crowd: &Crowd, make_work: MakeWork<'_>) -> anyhow::Result<Tally> {
    let clients: Vec<Client> = (0..crowd.clients)
        .map(|_| Client::open(env, crowd, make_work))
        .collect::<anyhow::Result<_>>()?;
    gather(clients, Client::run)
}

/// Gives each client a thread and adds up what they did.
pub fn gather<C: Send + 'static>(
    clients: Vec<C>,
    run: impl Fn(C) -> anyhow::Result<Tally> + Copy + Send + 'static,
) -> anyhow::Result<Tally> {
    let threads: Vec<_> = clients
        .into_iter()
        .map(|client| {
            thread::Builder::new()
                .name("bench".to_owned())
                .spawn(move || run(client))
        })
        .collect::<std::io::Result<_>>()
        .context("starting a thread")?;
    let mut tally = Tally::new()?;
    for thread in threads {
        let part = thread.join().map_err(|_| anyhow!("a client panicked"))??;
        tally.merge(part)?;
    }
    Ok(tally)
}

/// One connection and its work.
struct Client {
    env: Arc<dyn Env>,
    connection: Connection,
    work: Box<dyn Work + Send>,
    /// When each slot's request was sent; `None` if the slot is free.
    sent_nanos: Vec<Option<u64>>,
    under_way: usize,
    tally: Tally,
}

impl Client {
    fn open(env: &Arc<dyn Env>, crowd: &Crowd, make_work: MakeWork<'_>) -> anyhow::Result<Self> {
        let mut connection = Connection::open(&crowd.address)?;
        let work = make_work(&mut connection)?;
        Ok(Self {
            env: Arc::clone(env),
            connection,
            work,
            sent_nanos: vec![None; usize::from(crowd.in_flight)],
            under_way: 0,
            tally: Tally::new()?,
        })
    }

    fn run(mut self) -> anyhow::Result<Tally> {
        let mut free: Vec<usize> = (0..self.sent_nanos.len()).collect();
        loop {
            self.send(&mut free)?;
            if self.under_way == 0 {
                return Ok(self.tally);
            }
            self.connection.receive()?;
            self.take_answers(&mut free)?;
        }
    }

    /// Gives every free slot its next request and sends them all at once.
    fn send(&mut self, free: &mut Vec<usize>) -> anyhow::Result<()> {
        let now = self.env.monotonic_nanos();
        while let Some(slot) = free.pop() {
            // A slot without work is let go, but another one may still have pages to ask for.
            if self.work.next(slot, &mut self.connection.output)? {
                self.sent_nanos[slot] = Some(now);
                self.under_way += 1;
            }
        }
        self.connection.send()
    }

    fn take_answers(&mut self, free: &mut Vec<usize>) -> anyhow::Result<()> {
        let now = self.env.monotonic_nanos();
        while let Some(frame) = self.connection.next_frame()? {
            let answer = ResponseFrame::decode(&frame)?;
            if matches!(answer.response, Response::Event(_)) {
                continue;
            }
            let (slot, sent) = self.slot_of(answer.stream)?;
            let outcome = self.work.check(slot, answer.response);
            self.tally.count(outcome, now - sent);
            self.under_way -= 1;
            free.push(slot);
        }
        Ok(())
    }

    fn slot_of(&mut self, stream: i16) -> anyhow::Result<(usize, u64)> {
        usize::try_from(stream)
            .ok()
            .and_then(|slot| Some((slot, self.sent_nanos.get_mut(slot)?.take()?)))
            .ok_or_else(|| anyhow!("the server answered on stream {stream}, where nothing was asked"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_all_counted_and_told_once() {
        let mut faults = Faults::default();
        for _ in 0..10 {
            faults.add("timed out".to_owned());
        }
        let mut other = Faults::default();
        other.add("timed out".to_owned());
        other.add("wrong".to_owned());
        other.add("wrong".to_owned());
        faults.merge(other);
        assert_eq!(faults.count(), 13);
        assert_eq!(faults.messages(), ["timed out", "wrong"]);
    }
}
