//! EXPLAIN and EXPLAIN ANALYZE: how a SELECT is executed. Each row of the answer is a step and its details.
//!
//! `SelectPlan::describe_access` describes what a SELECT reads; [`cost_steps`] lists its costs.

use std::sync::Arc;

use ilion_cql::ast;
use ilion_env::Cost;
use ilion_env::cost::{self, Count};
use ilion_types::CqlType;

use crate::context::{Execution, PlanContext};
use crate::select::SelectPlan;
use crate::{ColumnSpec, Error, Executed, Outcome, ResultSet};

/// A planned EXPLAIN.
#[derive(Debug)]
pub(crate) struct ExplainPlan {
    select: SelectPlan,
    is_analyzed: bool,
    columns: Arc<[ColumnSpec]>,
}

/// The rows of the answer: each is a step and its details.
#[derive(Debug, Default)]
pub(crate) struct Steps(Vec<(String, String)>);

impl Steps {
    /// Adds a row.
    pub fn say(&mut self, step: impl Into<String>, detail: impl Into<String>) {
        self.0.push((step.into(), detail.into()));
    }
}

impl ExplainPlan {
    /// Resolves the SELECT.
    pub fn plan(ast: &ast::Explain, context: &PlanContext<'_>) -> Result<Self, Error> {
        let column = |name: &str| ColumnSpec {
            keyspace: "system".into(),
            table: "explain".into(),
            name: name.into(),
            ty: CqlType::Text,
        };
        Ok(Self {
            select: SelectPlan::plan(&ast.select, context)?,
            is_analyzed: ast.is_analyzed,
            columns: ["step", "detail"].map(column).into(),
        })
    }

    /// The SELECT.
    pub fn select(&self) -> &SelectPlan {
        &self.select
    }

    /// The columns of its rows.
    pub fn columns(&self) -> &Arc<[ColumnSpec]> {
        &self.columns
    }

    /// Returns all rows. ANALYZE executes the SELECT up to its first page.
    pub fn execute(&self, execution: &Execution<'_>) -> Result<Executed, Error> {
        let mut steps = Steps::default();
        self.select.describe_access(execution, &mut steps)?;
        if self.is_analyzed {
            let before = execution.store.monotonic_nanos();
            let scope = cost::begin();
            let rows = self.select.execute(execution)?;
            let cost = scope.so_far();
            let elapsed = execution.store.monotonic_nanos().saturating_sub(before);
            if rows.paging_state.is_some() {
                steps.say("page", format!("the first of several, {} rows", rows.row_count));
            }
            steps.say("elapsed_micros", micros(elapsed));
            cost_steps(&cost, &mut steps);
        }
        Ok(Executed::of(Outcome::Rows(self.answer(&steps))))
    }

    fn answer(&self, steps: &Steps) -> ResultSet {
        let mut cells = Vec::new();
        for text in steps.0.iter().flat_map(|(step, detail)| [step, detail]) {
            let len = i32::try_from(text.len()).unwrap_or(i32::MAX);
            cells.extend(len.to_be_bytes());
            cells.extend(text.as_bytes());
        }
        ResultSet {
            columns: self.columns.clone(),
            metadata_id: None,
            row_count: u32::try_from(steps.0.len()).unwrap_or(u32::MAX),
            cells: cells.into(),
            paging_state: None,
        }
    }
}

/// Adds the costs that are not zero, named as in `system_views.statements`.
fn cost_steps(cost: &Cost, steps: &mut Steps) {
    for count in Count::ALL {
        let (amount, is_answer) = (
            cost.of(count),
            matches!(count, Count::RowsReturned | Count::BytesReturned),
        );
        if amount == 0 && !is_answer {
            continue;
        }
        match count.name().strip_suffix("_nanos") {
            Some(name) => steps.say(format!("{name}_micros"), micros(amount)),
            None => steps.say(count.name(), amount.to_string()),
        }
    }
    steps.say("disk_reads", cost.io.reads.to_string());
    steps.say("disk_bytes", cost.io.bytes_read.to_string());
    if cost.io.reads > 0 {
        let percent = cost.amplification_percent();
        steps.say(
            "read_amplification",
            format!("{}.{:02}", percent / 100, percent % 100),
        );
        steps.say("disk_wait_micros", micros(cost.io.read_nanos));
    }
}

fn micros(nanos: u64) -> String {
    nanos.div_ceil(1000).to_string()
}
