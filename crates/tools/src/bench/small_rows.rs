//! The rows of the experiments: a key of ten bytes and one value, usually of 40 bytes.

use std::sync::Arc;

use ilion_types::{Partitioner, Token};

use crate::bench::dataset::{Dataset, KEY_BYTES, mix};
use crate::bench::job::{Cells, Job};
use crate::bench::read::check_values;

/// The rows, and their table.
#[derive(Clone, Debug)]
pub struct SmallRows {
    /// Keyspace and table.
    pub table: String,
    /// Keys and values.
    pub dataset: Dataset,
    /// Number of rows.
    pub count: u64,
    /// Seed of the order of reads.
    pub seed: u64,
    /// The partitioner of the table.
    pub partitioner: Partitioner,
}

/// INSERT of one row: the operation's number is that of the row.
pub struct Inserts(pub Arc<SmallRows>);

/// SELECT of a row by its key.
pub struct Points {
    /// All rows.
    pub rows: Arc<SmallRows>,
    /// Rows that are read in turn; `None` reads random rows.
    pub chosen: Option<Vec<u64>>,
}

/// SELECT of the rows after a token.
pub struct Ranges {
    /// All rows.
    pub rows: Arc<SmallRows>,
    /// Number of rows of one read.
    pub limit: usize,
}

impl SmallRows {
    /// The statement that creates the table.
    pub fn create_text(&self, options: &str) -> String {
        let table = &self.table;
        format!("CREATE TABLE IF NOT EXISTS {table} (k blob PRIMARY KEY, v blob){options}")
    }

    fn any_row(&self, number: u64) -> u64 {
        mix(self.seed ^ mix(number + 1)) % self.count
    }

    /// The token of a row.
    pub fn token(&self, row: u64) -> Token {
        self.partitioner.token(&self.dataset.key(row))
    }
}

impl Job for Inserts {
    fn text(&self) -> String {
        format!("INSERT INTO {} (k, v) VALUES (?, ?)", self.0.table)
    }

    fn sizes(&self) -> Vec<usize> {
        vec![KEY_BYTES, self.0.dataset.value_bytes()]
    }

    fn fill(&self, number: u64, index: usize, place: &mut [u8]) {
        match index {
            0 => place.copy_from_slice(&self.0.dataset.key(number)),
            _ => self.0.dataset.fill(number, 0, place),
        }
    }

    fn check(&self, _number: u64, _rows: &[Cells<'_>]) -> Result<u64, String> {
        Ok(1)
    }
}

impl Points {
    fn row(&self, number: u64) -> u64 {
        match &self.chosen {
            None => self.rows.any_row(number),
            #[expect(clippy::cast_possible_truncation, reason = "below the length")]
            Some(chosen) => chosen[(number % chosen.len() as u64) as usize],
        }
    }
}

impl Job for Points {
    fn text(&self) -> String {
        format!("SELECT v FROM {} WHERE k = ?", self.rows.table)
    }

    fn sizes(&self) -> Vec<usize> {
        vec![KEY_BYTES]
    }

    fn fill(&self, number: u64, _index: usize, place: &mut [u8]) {
        place.copy_from_slice(&self.rows.dataset.key(self.row(number)));
    }

    fn check(&self, number: u64, rows: &[Cells<'_>]) -> Result<u64, String> {
        let row = self.row(number);
        let [cells] = rows else {
            return Err(format!("row {row}: {} rows came back", rows.len()));
        };
        check_values(&self.rows.dataset, row, cells.iter().copied())?;
        Ok(1)
    }
}

impl Job for Ranges {
    fn text(&self) -> String {
        format!(
            "SELECT k, v FROM {} WHERE token(k) > ? LIMIT {}",
            self.rows.table, self.limit
        )
    }

    fn sizes(&self) -> Vec<usize> {
        vec![self.rows.token(0).to_bytes().len()]
    }

    fn fill(&self, number: u64, _index: usize, place: &mut [u8]) {
        let token = self.rows.token(self.rows.any_row(number));
        place.copy_from_slice(&token.to_bytes());
    }

    fn check(&self, number: u64, rows: &[Cells<'_>]) -> Result<u64, String> {
        let begin = self.rows.token(self.rows.any_row(number));
        // A read near the end of the ring may return fewer rows. The exact end is unknown without sorting all keys.
        let is_whole = rows.len() == self.limit
            || share_behind(&begin) < 32.0 * self.limit as f64 / self.rows.count as f64;
        if !is_whole {
            return Err(format!("{} rows came back behind token {begin}", rows.len()));
        }
        let mut before = begin;
        for cells in rows {
            before = self.check_row(cells, before)?;
        }
        Ok(rows.len() as u64)
    }
}

impl Ranges {
    /// Checks a row; returns its token.
    fn check_row(&self, cells: &[Option<&[u8]>], before: Token) -> Result<Token, String> {
        let [Some(key), value] = cells else {
            return Err("a row without a key came back".to_owned());
        };
        let row = self.rows.dataset.row_of(key).filter(|row| *row < self.rows.count);
        let row = row.ok_or_else(|| "a key that was never written came back".to_owned())?;
        let token = self.rows.token(row);
        if token <= before {
            return Err(format!("token {token} came behind {before}"));
        }
        check_values(&self.rows.dataset, row, [*value].into_iter())?;
        Ok(token)
    }
}

/// The share of the ring after a token. The ring counts only as far as the dataset has keys.
fn share_behind(token: &Token) -> f64 {
    match token {
        Token::Murmur3(token) => (i64::MAX as f64 - *token as f64) / u64::MAX as f64,
        Token::Bytes(bytes) | Token::Comparable(bytes) => {
            let spread = bytes.get(2..10).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
            1.0 - u64::from_be_bytes(spread.unwrap_or_default()) as f64 / u64::MAX as f64
        }
        Token::Random(token) => 1.0 - token.value().unwrap_or(0) as f64 / (1u128 << 127) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(partitioner: Partitioner) -> Arc<SmallRows> {
        Arc::new(SmallRows {
            table: "ks.t".to_owned(),
            dataset: Dataset::new(1, 8),
            count: 1000,
            seed: 1,
            partitioner,
        })
    }

    fn cells_of(rows: &SmallRows, row: u64) -> (Vec<u8>, Vec<u8>) {
        let mut value = vec![0; 8];
        rows.dataset.fill(row, 0, &mut value);
        (rows.dataset.key(row).to_vec(), value)
    }

    /// Rows in token order.
    fn in_order(rows: &SmallRows) -> Vec<u64> {
        let mut order: Vec<u64> = (0..rows.count).collect();
        order.sort_by_key(|row| rows.token(*row));
        order
    }

    #[test]
    fn the_two_rows_behind_a_token_pass_and_others_do_not() {
        for partitioner in [Partitioner::Murmur3, Partitioner::ByteOrdered] {
            let rows = rows(partitioner);
            let order = in_order(&rows);
            let job = Ranges {
                rows: rows.clone(),
                limit: 2,
            };
            let place = |number: u64| {
                let row = rows.any_row(number);
                order.iter().position(|other| *other == row).unwrap()
            };
            let number = (0..).find(|number| (10..500).contains(&place(*number))).unwrap();
            let place = place(number);
            let found: Vec<_> = order[place + 1..place + 3]
                .iter()
                .map(|row| cells_of(&rows, *row))
                .collect();
            let cells: Vec<Cells<'_>> = found
                .iter()
                .map(|(k, v)| vec![Some(&k[..]), Some(&v[..])])
                .collect();
            assert_eq!(job.check(number, &cells), Ok(2));
            assert!(job.check(number, &cells[..1]).is_err(), "one is missing");
            let turned = [cells[1].clone(), cells[0].clone()];
            assert!(job.check(number, &turned).is_err(), "out of order");
            let spoilt = [cells[0].clone(), vec![cells[1][0], cells[0][1]]];
            assert!(job.check(number, &spoilt).is_err(), "another row's value");
        }
    }

    #[test]
    fn chosen_rows_are_read_in_turn() {
        let job = Points {
            rows: rows(Partitioner::Murmur3),
            chosen: Some(vec![7, 9]),
        };
        assert_eq!([job.row(0), job.row(1), job.row(2)], [7, 9, 7]);
        let (_, value) = cells_of(&job.rows, 9);
        assert_eq!(job.check(1, &[vec![Some(&value)]]), Ok(1));
        assert!(job.check(0, &[vec![Some(&value)]]).is_err());
        assert!(job.check(1, &[]).is_err());
    }
}
