//! The reading workload: SELECT of whole rows by random keys.

use std::sync::Arc;

use ilion_protocol::{Response, ResultBody, Rows};

use crate::bench::dataset::{COLUMN_COUNT, Dataset, KEY_BYTES, mix};
use crate::bench::template::Template;
use crate::bench::work::{Phase, Plan, Work, wrong_answer};
use ilion_client::Connection;

/// The reads of one client.
pub struct Reads {
    plan: Arc<Plan>,
    phase: Arc<Phase>,
    select: Template,
    /// The row that each slot has requested.
    asked: Vec<u64>,
}

impl Reads {
    /// Prepares the statement.
    pub fn new(plan: &Arc<Plan>, phase: &Arc<Phase>, connection: &mut Connection) -> anyhow::Result<Self> {
        let text = format!("SELECT {} FROM {} WHERE key = ?", Plan::columns(), plan.table());
        let prepared = connection.prepare(text)?;
        Ok(Self {
            plan: Arc::clone(plan),
            phase: Arc::clone(phase),
            select: Template::execute(connection.version(), &prepared, &[KEY_BYTES], plan.consistency)?,
            asked: vec![0; usize::from(plan.crowd.in_flight)],
        })
    }
}

impl Work for Reads {
    fn next(&mut self, slot: usize, out: &mut Vec<u8>) -> anyhow::Result<bool> {
        let Some(number) = self.phase.take() else {
            return Ok(false);
        };
        let row = mix(self.plan.seed ^ mix(number + 1)) % self.plan.keys;
        self.asked[slot] = row;
        let key = self.plan.dataset.key(row);
        self.select
            .append(i16::try_from(slot)?, out, |_, place| place.copy_from_slice(&key));
        Ok(true)
    }

    fn check(&mut self, slot: usize, response: Response) -> Result<u64, String> {
        match response {
            Response::Result(ResultBody::Rows(rows)) => {
                check_one(&self.plan.dataset, self.asked[slot], &rows)
            }
            other => Err(wrong_answer("SELECT", &other)),
        }
    }
}

fn check_one(dataset: &Dataset, row: u64, rows: &Rows) -> Result<u64, String> {
    if rows.row_count != 1 || rows.metadata.column_count != COLUMN_COUNT {
        return Err(format!(
            "row {row}: {} rows of {} columns came back",
            rows.row_count, rows.metadata.column_count
        ));
    }
    check_values(dataset, row, rows.cells())?;
    Ok(1)
}

/// Compares the columns of a row with the written values.
pub fn check_values<'a>(
    dataset: &Dataset,
    row: u64,
    values: impl Iterator<Item = Option<&'a [u8]>>,
) -> Result<(), String> {
    for (column, value) in values.enumerate() {
        if !value.is_some_and(|value| dataset.is_value(row, column, value)) {
            return Err(format!("row {row}: column C{column} is not what was written"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ilion_protocol::RowsMetadata;

    use super::*;

    fn rows(count: usize, spoil: Option<usize>) -> Rows {
        let dataset = Dataset::new(1, 34);
        let mut values = vec![vec![0; 34]; COLUMN_COUNT];
        for (column, value) in values.iter_mut().enumerate() {
            dataset.fill(5, column, value);
        }
        let metadata = RowsMetadata {
            column_count: COLUMN_COUNT,
            ..RowsMetadata::none()
        };
        let cell = |column: usize| (Some(column) != spoil).then(|| values[column].as_slice());
        Rows::new(metadata, (0..count).map(|_| (0..COLUMN_COUNT).map(cell)))
    }

    #[test]
    fn the_row_that_was_written_passes() {
        assert_eq!(check_one(&Dataset::new(1, 34), 5, &rows(1, None)), Ok(1));
    }

    #[test]
    fn a_missing_row_another_row_and_a_lost_cell_are_errors() {
        let dataset = Dataset::new(1, 34);
        assert!(check_one(&dataset, 5, &rows(0, None)).is_err());
        assert!(check_one(&dataset, 6, &rows(1, None)).is_err());
        assert!(
            check_one(&dataset, 5, &rows(1, Some(2)))
                .unwrap_err()
                .contains("C2")
        );
    }
}
