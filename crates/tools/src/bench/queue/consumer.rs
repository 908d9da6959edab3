//! One queue: its entries, and the statement that is next.

use crate::bench::dataset::Dataset;
use crate::bench::job::Cells;

/// The table of all queues.
#[derive(Debug)]
pub struct Queues {
    /// Keyspace and table.
    pub table: String,
    /// The bodies of the entries.
    pub dataset: Dataset,
}

/// A statement of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Insert,
    Select,
    Delete,
}

impl Stage {
    /// In the order of a cycle.
    pub const ALL: [Self; 3] = [Self::Insert, Self::Select, Self::Delete];
}

impl Queues {
    /// The statement that creates the table.
    pub fn create_text(&self, with: Option<&str>) -> String {
        let with = with.map_or_else(String::new, |with| format!(" WITH {with}"));
        format!(
            "CREATE TABLE {} (q bigint, id bigint, body blob, PRIMARY KEY (q, id)){with}",
            self.table
        )
    }

    /// The statement of a stage.
    pub fn text(&self, stage: Stage) -> String {
        let table = &self.table;
        match stage {
            Stage::Insert => format!("INSERT INTO {table} (q, id, body) VALUES (?, ?, ?)"),
            Stage::Select => format!("SELECT id, body FROM {table} WHERE q = ? LIMIT 1"),
            Stage::Delete => format!("DELETE FROM {table} WHERE q = ? AND id = ?"),
        }
    }

    /// Sizes of the statement's values.
    pub fn sizes(&self, stage: Stage) -> Vec<usize> {
        match stage {
            Stage::Insert => vec![8, 8, self.dataset.value_bytes()],
            Stage::Select => vec![8],
            Stage::Delete => vec![8, 8],
        }
    }
}

/// The state of one queue. Entries have the numbers from `head` to `tail`.
#[derive(Clone, Copy, Debug)]
pub struct Consumer {
    pub queue: u16,
    pub stage: Stage,
    head: u64,
    tail: u64,
}

impl Consumer {
    /// An empty queue.
    pub fn new(queue: u16) -> Self {
        Self {
            queue,
            stage: Stage::Insert,
            head: 0,
            tail: 0,
        }
    }

    /// Writes a value of the statement.
    pub fn fill(&self, queues: &Queues, index: usize, place: &mut [u8]) {
        match (index, self.stage) {
            (0, _) => place.copy_from_slice(&i64::from(self.queue).to_be_bytes()),
            (1, Stage::Insert) => place.copy_from_slice(&self.tail.to_be_bytes()),
            (1, _) => place.copy_from_slice(&self.head.to_be_bytes()),
            _ => queues.dataset.fill(self.tail, 0, place),
        }
    }

    /// Checks the answer, which must have the oldest entry if the queue was read.
    pub fn check(&self, queues: &Queues, rows: &[Cells<'_>]) -> Result<u64, String> {
        if self.stage != Stage::Select {
            return Ok(1);
        }
        let head = self.head;
        match rows {
            [cells] => match cells[..] {
                [Some(id), Some(body)]
                    if id == head.to_be_bytes() && queues.dataset.is_value(head, 0, body) =>
                {
                    Ok(1)
                }
                _ => Err(format!(
                    "queue {}: entry {head} was expected, another came back",
                    self.queue
                )),
            },
            _ => Err(format!("queue {}: {} rows came back", self.queue, rows.len())),
        }
    }

    /// Moves on behind the statement. Requires: it was executed.
    pub fn advance(&mut self) {
        self.stage = match self.stage {
            Stage::Insert => {
                self.tail += 1;
                Stage::Select
            }
            Stage::Select => Stage::Delete,
            Stage::Delete => {
                self.head += 1;
                Stage::Insert
            }
        };
    }

    /// As [`Self::advance`], behind an INSERT that another one follows.
    pub fn advance_to_insert(&mut self) {
        self.advance();
        self.stage = Stage::Insert;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entry_is_expected_and_then_deleted() {
        let queues = Queues {
            table: "q".to_owned(),
            dataset: Dataset::new(1, 10),
        };
        let mut consumer = Consumer::new(3);
        for _ in 0..2 {
            consumer.advance_to_insert();
        }
        assert_eq!((consumer.head, consumer.tail), (0, 2));
        consumer.advance();
        let mut body = [0; 10];
        queues.dataset.fill(0, 0, &mut body);
        let answer = |id: u64| consumer.check(&queues, &[vec![Some(&id.to_be_bytes()), Some(&body)]]);
        assert_eq!(answer(0), Ok(1));
        assert!(answer(1).is_err());
        assert!(consumer.check(&queues, &[]).is_err());
        consumer.advance();
        let mut id = [0xff; 8];
        consumer.fill(&queues, 1, &mut id);
        assert_eq!((consumer.stage, id), (Stage::Delete, [0; 8]));
        consumer.advance();
        assert_eq!(
            (consumer.stage, consumer.head, consumer.tail),
            (Stage::Insert, 1, 3)
        );
    }
}
