//! The rows of experiment 2: three columns with values that many rows share. An update gives a row other values.

use std::sync::Arc;

use crate::bench::dataset::{Dataset, KEY_BYTES, mix};
use crate::bench::job::{Cells, Job};

/// The rows, and their table.
#[derive(Clone, Debug)]
pub struct IndexedRows {
    /// Keyspace and table.
    pub table: String,
    /// Keys, and values of the column without an index.
    pub dataset: Dataset,
    /// Number of rows.
    pub count: u64,
    /// Number of rows that are updated: the first ones.
    pub updated: u64,
    /// Number of distinct values of an indexed column.
    pub values: u64,
    /// Seed of the values.
    pub seed: u64,
    /// Whether compactions run.
    pub compacts: bool,
}

impl IndexedRows {
    /// The statement that creates the table.
    pub fn create_text(&self) -> String {
        format!(
            "CREATE TABLE {} (k blob PRIMARY KEY, a int, b int, c int, v blob) \
             WITH compaction = {{'class': 'SizeTieredCompactionStrategy', 'enabled': '{}'}}",
            self.table, self.compacts
        )
    }

    /// The value of an indexed column (0 to 2) of a row.
    fn value(&self, row: u64, column: u64, generation: u64) -> i32 {
        let value = mix(mix(row ^ self.seed) ^ (generation * 3 + column)) % self.values;
        i32::try_from(value).unwrap_or(i32::MAX)
    }

    /// The value of a row after the updates.
    fn last_value(&self, row: u64, column: u64) -> i32 {
        self.value(row, column, u64::from(row < self.updated))
    }
}

/// INSERT of one row: the operation's number is that of the row.
pub struct Puts {
    /// All rows.
    pub rows: Arc<IndexedRows>,
    /// 0 for the first values, 1 for the updated ones.
    pub generation: u64,
}

impl Job for Puts {
    fn text(&self) -> String {
        format!(
            "INSERT INTO {} (k, a, b, c, v) VALUES (?, ?, ?, ?, ?)",
            self.rows.table
        )
    }

    fn sizes(&self) -> Vec<usize> {
        vec![KEY_BYTES, 4, 4, 4, self.rows.dataset.value_bytes()]
    }

    fn fill(&self, number: u64, index: usize, place: &mut [u8]) {
        match index {
            0 => place.copy_from_slice(&self.rows.dataset.key(number)),
            1..=3 => {
                let value = self.rows.value(number, index as u64 - 1, self.generation);
                place.copy_from_slice(&value.to_be_bytes());
            }
            _ => self.rows.dataset.fill(number, 0, place),
        }
    }

    fn check(&self, _number: u64, _rows: &[Cells<'_>]) -> Result<u64, String> {
        Ok(1)
    }
}

/// SELECT of the rows with one value of the first indexed column.
pub struct QueriesByValue {
    rows: Arc<IndexedRows>,
    /// Number of rows with each value after the updates.
    counts: Vec<u32>,
}

impl QueriesByValue {
    /// Counts the expected rows of each value.
    pub fn new(rows: &Arc<IndexedRows>) -> anyhow::Result<Self> {
        let mut counts = vec![0; usize::try_from(rows.values)?];
        for row in 0..rows.count {
            counts[usize::try_from(rows.last_value(row, 0))?] += 1;
        }
        Ok(Self {
            rows: rows.clone(),
            counts,
        })
    }

    fn value(&self, number: u64) -> i32 {
        i32::try_from(mix(self.rows.seed ^ mix(number + 1)) % self.rows.values).unwrap_or(0)
    }
}

impl Job for QueriesByValue {
    fn text(&self) -> String {
        format!("SELECT k FROM {} WHERE a = ?", self.rows.table)
    }

    fn sizes(&self) -> Vec<usize> {
        vec![4]
    }

    fn fill(&self, number: u64, _index: usize, place: &mut [u8]) {
        place.copy_from_slice(&self.value(number).to_be_bytes());
    }

    fn check(&self, number: u64, found: &[Cells<'_>]) -> Result<u64, String> {
        let value = self.value(number);
        let wanted = usize::try_from(value).ok().and_then(|at| self.counts.get(at));
        if wanted.is_none_or(|wanted| *wanted as usize != found.len()) {
            return Err(format!(
                "a = {value}: {} rows came back, not {wanted:?}",
                found.len()
            ));
        }
        for cells in found {
            let key = cells.first().copied().flatten().unwrap_or_default();
            let row = self.rows.dataset.row_of(key).filter(|row| *row < self.rows.count);
            if row.is_none_or(|row| self.rows.last_value(row, 0) != value) {
                return Err(format!("a = {value}: row {row:?} came back"));
            }
        }
        Ok(found.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> QueriesByValue {
        let rows = Arc::new(IndexedRows {
            compacts: false,
            table: "ks.t".to_owned(),
            dataset: Dataset::new(1, 10),
            count: 1000,
            updated: 500,
            values: 100,
            seed: 1,
        });
        QueriesByValue::new(&rows).unwrap()
    }

    #[test]
    fn answers_with_stale_or_missing_rows_are_found_out() {
        let asked = asked();
        let number = (0..)
            .find(|number| asked.counts[asked.value(*number) as usize] > 2)
            .unwrap();
        let value = asked.value(number);
        let keys: Vec<[u8; KEY_BYTES]> = (0..1000)
            .filter(|row| asked.rows.last_value(*row, 0) == value)
            .map(|row| asked.rows.dataset.key(row))
            .collect();
        let answer: Vec<Cells<'_>> = keys.iter().map(|key| vec![Some(&key[..])]).collect();
        assert_eq!(asked.check(number, &answer), Ok(keys.len() as u64));
        assert!(asked.check(number, &answer[1..]).is_err());
        let stale = (0..500)
            .find(|row| asked.rows.value(*row, 0, 0) == value && asked.rows.last_value(*row, 0) != value);
        let stale_key = asked.rows.dataset.key(stale.unwrap());
        let mut wrong = answer[1..].to_vec();
        wrong.push(vec![Some(&stale_key[..])]);
        assert!(asked.check(number, &wrong).is_err());
    }
}
