//! The loop of one client, and the threads of all clients.

use std::sync::Arc;
use std::thread;

use anyhow::{Context, anyhow};
use ilion_env::Env;
use ilion_protocol::{Response, ResponseFrame};

use crate::bench::tally::Tally;
use crate::bench::work::{Crowd, Work};
use ilion_client::Connection;

/// Creates the work of a client, for example by preparing its statement.
pub type MakeWork<'a> = &'a dyn Fn(&mut Connection) -> anyhow::Result<Box<dyn Work + Send>>;

/// Runs work on all connections. All connections are opened, and their statements prepared, before the first operation.
pub fn run_clients(env: &Arc<dyn Env>, crowd: &Crowd, make_work: MakeWork<'_>) -> anyhow::Result<Tally> {
    let clients: Vec<Client> = (0..crowd.clients)
        .map(|_| Client::open(env, crowd, make_work))
        .collect::<anyhow::Result<_>>()?;
    gather(clients, Client::run)
}

/// Runs each client on a thread of its own, and adds up their counts.
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
        let mut connection = Connection::open(&crowd.target)?;
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

    /// Fills every free slot with its next request, and sends all of them at once.
    fn send(&mut self, free: &mut Vec<usize>) -> anyhow::Result<()> {
        let now = self.env.monotonic_nanos();
        while let Some(slot) = free.pop() {
            // A slot without work is not used again. Another slot may still have pages to read.
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
            self.work.observe(slot, sent, now);
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
