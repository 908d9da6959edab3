//! The counting workload: UPDATE that adds 1 to every counter of a row, in the order of the rows' numbers.

use std::sync::Arc;

use ilion_protocol::{Response, ResultBody};

use crate::bench::dataset::{COLUMN_COUNT, KEY_BYTES};
use crate::bench::template::Template;
use crate::bench::work::{Phase, Plan, Work, wrong_answer};
use ilion_client::Connection;

/// The counting updates of one client.
pub struct Counts {
    plan: Arc<Plan>,
    phase: Arc<Phase>,
    update: Template,
}

impl Counts {
    /// Prepares the statement.
    pub fn new(plan: &Arc<Plan>, phase: &Arc<Phase>, connection: &mut Connection) -> anyhow::Result<Self> {
        let add = |column| format!("\"C{column}\" = \"C{column}\" + 1");
        let adds: Vec<String> = (0..COLUMN_COUNT).map(add).collect();
        let text = format!("UPDATE {} SET {} WHERE key = ?", plan.table(), adds.join(", "));
        let prepared = connection.prepare(text)?;
        Ok(Self {
            plan: Arc::clone(plan),
            phase: Arc::clone(phase),
            update: Template::execute(connection.version(), &prepared, &[KEY_BYTES], plan.consistency)?,
        })
    }
}

impl Work for Counts {
    fn next(&mut self, slot: usize, out: &mut Vec<u8>) -> anyhow::Result<bool> {
        let Some(number) = self.phase.take() else {
            return Ok(false);
        };
        let key = self.plan.dataset.key(number % self.plan.keys);
        self.update
            .append(i16::try_from(slot)?, out, |_, place| place.copy_from_slice(&key));
        Ok(true)
    }

    fn check(&mut self, _slot: usize, response: Response) -> Result<u64, String> {
        match response {
            Response::Result(ResultBody::Void) => Ok(1),
            other => Err(wrong_answer("UPDATE", &other)),
        }
    }
}
