//! One queue: its entries, and the statement that is next.

use std::collections::BTreeSet;

use clap::ValueEnum;
use serde::Serialize;

use crate::bench::dataset::Dataset;
use crate::bench::job::Cells;

/// How a waiting entry is found, and taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// A queue is a partition: its first row is read and deleted
    Partition,
    /// An entry is a partition with a status: a table index finds one that is new, and its status is updated
    TableIndex,
    /// As table-index, with a storage-attached index
    Sai,
}

/// The table of all queues.
#[derive(Debug)]
pub struct Queues {
    /// Keyspace and table.
    pub table: String,
    pub finding: Finding,
    /// The bodies of the entries.
    pub dataset: Dataset,
}

/// A statement of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Insert,
    Select,
    TakeOut,
}

impl Stage {
    /// In the order of a cycle.
    pub const ALL: [Self; 3] = [Self::Insert, Self::Select, Self::TakeOut];
}

impl Queues {
    /// The statements that create the table, and its index.
    pub fn create_texts(&self, with: Option<&str>) -> Vec<String> {
        let table = &self.table;
        let with = with.map_or_else(String::new, |with| format!(" WITH {with}"));
        let columns = match self.finding {
            Finding::Partition => "q bigint, id bigint, body blob, PRIMARY KEY (q, id)",
            Finding::TableIndex | Finding::Sai => "id bigint PRIMARY KEY, status bigint, body blob",
        };
        let mut texts = vec![format!("CREATE TABLE {table} ({columns}){with}")];
        match self.finding {
            Finding::Partition => {}
            Finding::TableIndex => texts.push(format!("CREATE INDEX ON {table} (status)")),
            Finding::Sai => texts.push(format!("CREATE INDEX ON {table} (status) USING 'sai'")),
        }
        texts
    }

    /// The statement of a stage.
    pub fn text(&self, stage: Stage) -> String {
        let table = &self.table;
        let column = match self.finding {
            Finding::Partition => "q",
            Finding::TableIndex | Finding::Sai => "status",
        };
        match (stage, self.finding) {
            (Stage::Insert, _) => format!("INSERT INTO {table} ({column}, id, body) VALUES (?, ?, ?)"),
            (Stage::Select, _) => format!("SELECT id, body FROM {table} WHERE {column} = ? LIMIT 1"),
            (Stage::TakeOut, Finding::Partition) => format!("DELETE FROM {table} WHERE q = ? AND id = ?"),
            (Stage::TakeOut, _) => format!("UPDATE {table} SET status = ? WHERE id = ?"),
        }
    }

    /// Sizes of the statement's values.
    pub fn sizes(&self, stage: Stage) -> Vec<usize> {
        match stage {
            Stage::Insert => vec![8, 8, self.dataset.value_bytes()],
            Stage::Select => vec![8],
            Stage::TakeOut => vec![8, 8],
        }
    }
}

/// The state of one queue.
#[derive(Debug)]
pub struct Consumer {
    queue: u16,
    pub stage: Stage,
    /// The id of the next entry.
    next: u64,
    /// Ids of the entries that wait.
    waiting: BTreeSet<u64>,
    /// Id of the entry that was read last.
    found: u64,
}

impl Consumer {
    /// An empty queue.
    pub fn new(queue: u16) -> Self {
        Self {
            queue,
            stage: Stage::Insert,
            // Ids of different queues differ.
            next: u64::from(queue) << 40,
            waiting: BTreeSet::new(),
            found: 0,
        }
    }

    /// The partition, or the status, that the statement has.
    fn place(&self, finding: Finding) -> i64 {
        let queue = i64::from(self.queue);
        match (finding, self.stage) {
            (Finding::Partition, _) => queue,
            (_, Stage::Insert | Stage::Select) => 2 * queue,
            (_, Stage::TakeOut) => 2 * queue + 1,
        }
    }

    /// Writes a value of the statement.
    pub fn fill(&self, queues: &Queues, index: usize, place: &mut [u8]) {
        match (index, self.stage) {
            (0, _) => place.copy_from_slice(&self.place(queues.finding).to_be_bytes()),
            (1, Stage::Insert) => place.copy_from_slice(&self.next.to_be_bytes()),
            (1, _) => place.copy_from_slice(&self.found.to_be_bytes()),
            _ => queues.dataset.fill(self.next, 0, place),
        }
    }

    /// Checks the answer. If the queue was read, it must have the oldest entry, or with an index any entry that waits.
    pub fn check(&mut self, queues: &Queues, rows: &[Cells<'_>]) -> Result<u64, String> {
        if self.stage != Stage::Select {
            return Ok(1);
        }
        let queue = self.queue;
        let [cells] = rows else {
            return Err(format!("queue {queue}: {} rows came back", rows.len()));
        };
        let [Some(id), Some(body)] = cells[..] else {
            return Err(format!("queue {queue}: a row with nulls came back"));
        };
        let id = u64::from_be_bytes(id.try_into().map_err(|_| format!("queue {queue}: not an id"))?);
        let is_expected = match queues.finding {
            Finding::Partition => self.waiting.first() == Some(&id),
            Finding::TableIndex | Finding::Sai => self.waiting.contains(&id),
        };
        if !is_expected || !queues.dataset.is_value(id, 0, body) {
            let first = self.waiting.first();
            return Err(format!(
                "queue {queue}: entry {id} came back; the oldest that waits is {first:?}"
            ));
        }
        self.found = id;
        Ok(1)
    }

    /// Moves on behind the statement. Requires: it was executed.
    pub fn advance(&mut self) {
        self.stage = match self.stage {
            Stage::Insert => {
                self.waiting.insert(self.next);
                self.next += 1;
                Stage::Select
            }
            Stage::Select => Stage::TakeOut,
            Stage::TakeOut => {
                self.waiting.remove(&self.found);
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

    fn queues(finding: Finding) -> Queues {
        Queues {
            table: "q".to_owned(),
            finding,
            dataset: Dataset::new(1, 10),
        }
    }

    fn answer(consumer: &mut Consumer, queues: &Queues, id: u64) -> Result<u64, String> {
        let mut body = [0; 10];
        queues.dataset.fill(id, 0, &mut body);
        consumer.check(queues, &[vec![Some(&id.to_be_bytes()), Some(&body)]])
    }

    fn value(consumer: &Consumer, queues: &Queues, index: usize) -> u64 {
        let mut value = [0xff; 8];
        consumer.fill(queues, index, &mut value);
        u64::from_be_bytes(value)
    }

    #[test]
    fn the_oldest_entry_is_expected_and_then_deleted() {
        let queues = queues(Finding::Partition);
        let (mut consumer, first) = (Consumer::new(3), 3 << 40);
        consumer.advance_to_insert();
        consumer.advance();
        assert!(answer(&mut consumer, &queues, first + 1).is_err());
        assert!(consumer.check(&queues, &[]).is_err());
        assert_eq!(answer(&mut consumer, &queues, first), Ok(1));
        consumer.advance();
        assert_eq!(consumer.stage, Stage::TakeOut);
        assert_eq!([0, 1].map(|index| value(&consumer, &queues, index)), [3, first]);
        consumer.advance();
        assert_eq!(consumer.stage, Stage::Insert);
        assert_eq!(consumer.waiting, BTreeSet::from([first + 1]));
    }

    #[test]
    fn an_index_may_find_any_entry_that_waits() {
        let queues = queues(Finding::Sai);
        let mut consumer = Consumer::new(0);
        consumer.advance_to_insert();
        consumer.advance();
        assert_eq!(value(&consumer, &queues, 0), 0);
        assert_eq!(answer(&mut consumer, &queues, 1), Ok(1));
        consumer.advance();
        assert_eq!([0, 1].map(|index| value(&consumer, &queues, index)), [1, 1]);
        consumer.advance();
        consumer.advance();
        assert!(answer(&mut consumer, &queues, 1).is_err());
        assert_eq!(answer(&mut consumer, &queues, 2), Ok(1));
    }
}
