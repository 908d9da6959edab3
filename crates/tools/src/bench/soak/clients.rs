//! The clients of the soak, over the socket and embedded.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use ilion_env::Env;
use ilion_protocol::{Consistency, Response, ResultBody};

use crate::bench::drive::Load;
use crate::bench::load::{gather, run_clients};
use crate::bench::soak::rows::{SoakRows, Text};
use crate::bench::soak::seconds::Seconds;
use crate::bench::soak::turns::{Turn, Turns};
use crate::bench::store::{Embedded, Prepared, Store};
use crate::bench::tally::Tally;
use crate::bench::template::Template;
use crate::bench::work::{Crowd, Work, wrong_answer};

/// All clients.
pub struct Clients<'a> {
    pub store: &'a Store,
    pub rows: &'a Arc<SoakRows>,
    pub turns: &'a Arc<Turns>,
    pub seconds: &'a Arc<Seconds>,
    pub load: Load,
}

impl Clients<'_> {
    /// Runs the clients until the time is over.
    pub fn run(&self) -> anyhow::Result<Tally> {
        match self.store.embedded() {
            None => self.over_socket(),
            Some(database) => self.embedded(database),
        }
    }

    fn over_socket(&self) -> anyhow::Result<Tally> {
        let crowd = Crowd {
            target: self.store.target(),
            clients: self.load.clients,
            in_flight: self.load.in_flight,
        };
        let next_client = AtomicUsize::new(0);
        run_clients(&self.store.env, &crowd, &|connection| {
            let requests: anyhow::Result<Vec<Template>> = Text::all()
                .map(|text| {
                    let prepared = connection.prepare(self.rows.text(text))?;
                    Template::execute(
                        connection.version(),
                        &prepared,
                        &self.rows.sizes(text),
                        Consistency::One,
                    )
                })
                .collect();
            Ok(Box::new(OnSocket {
                client: next_client.fetch_add(1, Relaxed),
                rows: self.rows.clone(),
                turns: self.turns.clone(),
                seconds: self.seconds.clone(),
                requests: requests?,
                slots: vec![None; usize::from(self.load.in_flight)],
            }) as Box<dyn Work + Send>)
        })
    }

    fn embedded(&self, database: &Arc<dyn Embedded>) -> anyhow::Result<Tally> {
        let statements: anyhow::Result<Vec<Arc<dyn Prepared>>> = Text::all()
            .map(|text| Ok(Arc::from(database.prepare(&self.rows.text(text))?)))
            .collect();
        let statements = Arc::new(statements?);
        let caller = |client| Caller {
            env: self.store.env.clone(),
            client,
            rows: self.rows.clone(),
            turns: self.turns.clone(),
            seconds: self.seconds.clone(),
            statements: statements.clone(),
        };
        let callers = (0..usize::from(self.load.clients)).map(caller);
        gather(callers.collect(), |caller| caller.run())
    }
}

fn is_write(text: Text) -> bool {
    matches!(text, Text::Insert | Text::Update(_))
}

/// A client with a connection.
struct OnSocket {
    client: usize,
    rows: Arc<SoakRows>,
    turns: Arc<Turns>,
    seconds: Arc<Seconds>,
    requests: Vec<Template>,
    /// The current request of each slot.
    slots: Vec<Option<Turn>>,
}

impl Work for OnSocket {
    fn next(&mut self, slot: usize, out: &mut Vec<u8>) -> anyhow::Result<bool> {
        let second = self.slots[slot].and_then(Turn::second);
        let next = second.or_else(|| self.turns.take());
        self.slots[slot] = next;
        let Some(Turn { asked, .. }) = next else {
            return Ok(false);
        };
        let request = &self.requests[asked.text.index()];
        request.append(i16::try_from(slot)?, out, |index, place| {
            self.rows.fill(asked, index, place)
        });
        Ok(true)
    }

    fn check(&mut self, slot: usize, response: Response) -> Result<u64, String> {
        let Some(Turn { asked, .. }) = self.slots[slot] else {
            return Err("an answer came back where nothing was asked".to_owned());
        };
        match response {
            Response::Result(ResultBody::Void) => {
                self.turns.note_written(self.rows.written_bytes(asked.text));
                self.rows.check(asked, &[])
            }
            Response::Result(ResultBody::Rows(rows)) => {
                let rows: Vec<_> = rows.rows().collect();
                self.rows.check(asked, &rows)
            }
            other => Err(wrong_answer("the statement", &other)),
        }
    }

    fn observe(&mut self, slot: usize, sent_nanos: u64, now_nanos: u64) {
        if let Some(Turn { asked, due_nanos, .. }) = self.slots[slot] {
            let from = due_nanos.unwrap_or(sent_nanos);
            let nanos = now_nanos.saturating_sub(from);
            self.seconds.count(self.client, is_write(asked.text), nanos);
        }
    }
}

/// A client with an embedded database, on a thread of its own.
struct Caller {
    env: Arc<dyn Env>,
    client: usize,
    rows: Arc<SoakRows>,
    turns: Arc<Turns>,
    seconds: Arc<Seconds>,
    statements: Arc<Vec<Arc<dyn Prepared>>>,
}

impl Caller {
    fn run(self) -> anyhow::Result<Tally> {
        let mut tally = Tally::new()?;
        let mut places: Vec<Vec<Vec<u8>>> = Text::all()
            .map(|text| self.rows.sizes(text).iter().map(|size| vec![0; *size]).collect())
            .collect();
        let mut next = self.turns.take();
        while let Some(turn) = next {
            self.ask(turn, &mut places[turn.asked.text.index()], &mut tally)?;
            next = turn.second().or_else(|| self.turns.take());
        }
        Ok(tally)
    }

    fn ask(&self, turn: Turn, places: &mut [Vec<u8>], tally: &mut Tally) -> anyhow::Result<()> {
        let asked = turn.asked;
        for (index, place) in places.iter_mut().enumerate() {
            self.rows.fill(asked, index, place);
        }
        let values: Vec<&[u8]> = places.iter().map(Vec::as_slice).collect();
        let begin = turn.due_nanos.unwrap_or_else(|| self.env.monotonic_nanos());
        let statement = &self.statements[asked.text.index()];
        let outcome = statement.execute(&values, &mut |rows| self.rows.check(asked, rows))?;
        let nanos = self.env.monotonic_nanos().saturating_sub(begin);
        self.turns.note_written(self.rows.written_bytes(asked.text));
        self.seconds.count(self.client, is_write(asked.text), nanos);
        tally.count(outcome, nanos);
        Ok(())
    }
}
