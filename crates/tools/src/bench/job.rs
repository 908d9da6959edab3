//! One statement executed many times, over the socket or embedded: its bind values, and the checks of its answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ilion_env::Env;
use ilion_protocol::{Consistency, Response, ResultBody};

use crate::bar::{Bar, while_counting};
use crate::bench::template::Template;
use crate::bench::work::{Work, wrong_answer};
use ilion_client::Connection;

/// A row of an answer, cell by cell.
pub type Cells<'a> = Vec<Option<&'a [u8]>>;

/// One kind of operation. The number of an operation determines its values and its answer.
pub trait Job: Send + Sync {
    /// The statement.
    fn text(&self) -> String;

    /// Size of each bind value.
    fn sizes(&self) -> Vec<usize>;

    /// Writes the value at `index` of an operation.
    fn fill(&self, number: u64, index: usize, place: &mut [u8]);

    /// Checks the answer of an operation. Returns the number of rows written or read, or what is wrong.
    fn check(&self, number: u64, rows: &[Cells<'_>]) -> Result<u64, String>;
}

/// When a job ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Until {
    /// After the operations with these numbers.
    Operations(std::ops::Range<u64>),
    /// After this many seconds.
    Secs(f64),
}

/// Gives the numbers of operations to the clients until the job ends.
pub struct Turns {
    env: Arc<dyn Env>,
    next: AtomicU64,
    first: u64,
    limit: u64,
    began_nanos: u64,
    deadline_nanos: u64,
}

impl Turns {
    /// Starts the clock.
    pub fn new(env: &Arc<dyn Env>, until: &Until) -> Self {
        let (numbers, deadline_nanos) = match until {
            Until::Operations(numbers) => (numbers.clone(), u64::MAX),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "seconds that somebody waits for"
            )]
            Until::Secs(secs) => (0..u64::MAX, env.monotonic_nanos() + (secs * 1e9) as u64),
        };
        Self {
            env: Arc::clone(env),
            next: AtomicU64::new(numbers.start),
            first: numbers.start,
            limit: numbers.end,
            began_nanos: env.monotonic_nanos(),
            deadline_nanos,
        }
    }

    /// Runs `work` with a bar that shows how many operations were begun; for a job with a duration, it shows the elapsed time.
    pub fn with_bar<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.deadline_nanos == u64::MAX {
            let done = || self.next.load(Ordering::Relaxed).saturating_sub(self.first);
            return while_counting("bench", self.limit - self.first, done, work);
        }
        let millis_since = |nanos: u64| nanos.saturating_sub(self.began_nanos) / 1_000_000;
        let bar = Bar::of_milliseconds("bench", millis_since(self.deadline_nanos));
        let look = |bar: &Bar| bar.at(millis_since(self.env.monotonic_nanos()));
        bar.during(Duration::from_millis(250), look, work)
    }

    /// The number of the next operation; `None` at the end.
    pub fn take(&self) -> Option<u64> {
        if self.deadline_nanos != u64::MAX && self.env.monotonic_nanos() >= self.deadline_nanos {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.limit).then_some(number)
    }
}

/// A job on one connection.
pub struct JobOnSocket {
    job: Arc<dyn Job>,
    turns: Arc<Turns>,
    request: Template,
    /// The number of the current operation of each slot.
    numbers: Vec<u64>,
}

impl JobOnSocket {
    /// Prepares the statement.
    pub fn new(
        job: &Arc<dyn Job>,
        turns: &Arc<Turns>,
        in_flight: u16,
        connection: &mut Connection,
    ) -> anyhow::Result<Self> {
        let prepared = connection.prepare(job.text())?;
        Ok(Self {
            job: Arc::clone(job),
            turns: Arc::clone(turns),
            request: Template::execute(connection.version(), &prepared, &job.sizes(), Consistency::One)?,
            numbers: vec![0; usize::from(in_flight)],
        })
    }
}

impl Work for JobOnSocket {
    fn next(&mut self, slot: usize, out: &mut Vec<u8>) -> anyhow::Result<bool> {
        let Some(number) = self.turns.take() else {
            return Ok(false);
        };
        self.numbers[slot] = number;
        self.request.append(i16::try_from(slot)?, out, |index, place| {
            self.job.fill(number, index, place);
        });
        Ok(true)
    }

    fn check(&mut self, slot: usize, response: Response) -> Result<u64, String> {
        let number = self.numbers[slot];
        match response {
            Response::Result(ResultBody::Void) => self.job.check(number, &[]),
            Response::Result(ResultBody::Rows(rows)) => {
                let rows: Vec<_> = rows.rows().collect();
                self.job.check(number, &rows)
            }
            other => Err(wrong_answer("the statement", &other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use ilion_env::RealEnv;

    use super::*;

    #[test]
    fn numbers_are_given_once_and_end_where_they_should() {
        let env: Arc<dyn Env> = RealEnv::new();
        let turns = Turns::new(&env, &Until::Operations(5..7));
        assert_eq!(
            [turns.take(), turns.take(), turns.take()],
            [Some(5), Some(6), None]
        );
        assert_eq!(Turns::new(&env, &Until::Secs(0.0)).take(), None);
    }
}
