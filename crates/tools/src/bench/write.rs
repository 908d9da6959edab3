//! The writing workload: INSERT of whole rows, in the order of their numbers.

use std::sync::Arc;

use ilion_protocol::{Response, ResultBody};

use crate::bench::dataset::{COLUMN_COUNT, KEY_BYTES};
use crate::bench::template::Template;
use crate::bench::work::{Phase, Plan, Work, wrong_answer};
use ilion_client::Connection;

/// The writes of one client.
pub struct Writes {
    plan: Arc<Plan>,
    phase: Arc<Phase>,
    insert: Template,
}

impl Writes {
    /// Prepares the statement.
    pub fn new(plan: &Arc<Plan>, phase: &Arc<Phase>, connection: &mut Connection) -> anyhow::Result<Self> {
        let text = format!(
            "INSERT INTO {} (key, {}) VALUES (?{}){}",
            plan.table(),
            Plan::columns(),
            ", ?".repeat(COLUMN_COUNT),
            if plan.if_not_exists { " IF NOT EXISTS" } else { "" }
        );
        let prepared = connection.prepare(text)?;
        let mut sizes = vec![KEY_BYTES];
        sizes.resize(1 + COLUMN_COUNT, plan.dataset.value_bytes());
        Ok(Self {
            plan: Arc::clone(plan),
            phase: Arc::clone(phase),
            insert: Template::execute(connection.version(), &prepared, &sizes, plan.consistency)?,
        })
    }
}

impl Work for Writes {
    fn next(&mut self, slot: usize, out: &mut Vec<u8>) -> anyhow::Result<bool> {
        let Some(number) = self.phase.take() else {
            return Ok(false);
        };
        let row = number % self.plan.keys;
        let dataset = self.plan.dataset;
        self.insert
            .append(i16::try_from(slot)?, out, |index, place| match index {
                0 => place.copy_from_slice(&dataset.key(row)),
                _ => dataset.fill(row, index - 1, place),
            });
        Ok(true)
    }

    fn check(&mut self, _slot: usize, response: Response) -> Result<u64, String> {
        match response {
            Response::Result(ResultBody::Void) => Ok(1),
            // A conditional INSERT returns the column `[applied]`, which is false if the row existed. Both outcomes are right.
            Response::Result(ResultBody::Rows(_)) if self.plan.if_not_exists => Ok(1),
            other => Err(wrong_answer("INSERT", &other)),
        }
    }
}
