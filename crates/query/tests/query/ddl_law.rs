//! The law of schema statements. After an error, nothing has changed. After success, the schema and DESCRIBE are the same after
//! a restart, a flush and another restart.
//!
//! Statements are random (`statements`), with types, names and options at and beyond every limit (`names`, `options`), and with
//! rare classes. The node is restarted after several accepted statements. If that fails, the same statements are run again with
//! a restart after each, so that the failure names one. After some hundred statements a new directory is used, with another
//! format.
//!
//! `DDL_STATEMENTS=100000` for a longer run, `DDL_SEED=n` for another one. `DDL_RECORD=file` writes statements and answers, for
//! `scripts/compare_ddl.py` to compare with a real Cassandra.

mod deep;
mod names;
mod node;
mod options;
mod statements;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;

use ilion_schema::{Diff, Schema, TableId, diff};

use node::{Node, stored};
use statements::Statements;

const STATEMENTS: u64 = 160;
/// Number of statements in one directory.
const HISTORY_LEN: usize = 400;
/// Largest number of accepted statements between two restarts.
const ACCEPTED_MAX: usize = 20;

/// The statements in one directory.
struct History {
    seed: u64,
    node: Node,
    asked: Vec<String>,
    /// Number of them before the last restarts.
    checked: usize,
    /// Number of accepted statements since then.
    accepted: usize,
    /// Tables that were created or altered since then.
    changed: BTreeSet<TableId>,
}

/// A description of the failure.
type Broken = String;

impl History {
    fn new(seed: u64) -> Self {
        Self {
            seed,
            node: Node::new(seed),
            asked: Vec::new(),
            checked: 0,
            accepted: 0,
            changed: BTreeSet::new(),
        }
    }

    /// Runs the statement; returns its error if it was refused.
    fn ask(&mut self, statement: &str) -> Result<Option<String>, Broken> {
        let before = self.node.schema();
        self.asked.push(statement.to_owned());
        let answer = self.node.execute(statement);
        let after = self.node.schema();
        if let Some(failure) = self.node.failure() {
            return Err(format!("writes are refused for good: {failure}"));
        }
        match answer {
            Ok(_) => {
                self.accepted += 1;
                self.note_tables(&before, &after);
                Ok(None)
            }
            Err(refused) => {
                let refused = refused.to_string();
                if !Arc::ptr_eq(&before, &after) && stored(&before) != stored(&after) {
                    return Err(format!("it was refused and changed something: {refused}"));
                }
                match refused.contains("java") || refused.contains("panic") {
                    true => Err(format!("it was refused with an inner error: {refused}")),
                    false => Ok(Some(refused)),
                }
            }
        }
    }

    fn note_tables(&mut self, before: &Schema, after: &Schema) {
        for diff in diff(before, after) {
            if let Diff::Table(it) = diff {
                self.changed.insert(it.object().id);
            }
        }
    }

    /// Restarts, from the log and from files. The rows to flush are written before the restart every other time.
    fn check(&mut self) -> Result<(), Broken> {
        let before = stored(&self.node.schema());
        let changed = std::mem::take(&mut self.changed);
        let is_filled_first = self.checked.is_multiple_of(2);
        self.checked = self.asked.len();
        self.accepted = 0;
        if is_filled_first {
            self.node.fill(&changed);
        }
        for step in ["a restart", "a flush and a restart"] {
            self.node.restart().map_err(|error| format!("{step}: {error}"))?;
            let after = stored(&self.node.schema());
            if before.1 != after.1 {
                let lost = before.1.iter().filter(|element| !after.1.contains(element));
                let lost = lost.map(|element| shown(element)).collect::<Vec<_>>();
                let new = after.1.iter().filter(|element| !before.1.contains(element));
                let new = new.map(|element| shown(element)).collect::<Vec<_>>();
                return Err(format!("after {step} there is no {lost:#?}, but {new:#?}"));
            }
            if before.0 != after.0 {
                return Err(format!("the version differs after {step}"));
            }
            self.node.fill(&changed);
            self.node.flush()?;
        }
        Ok(())
    }

    /// Runs the same in a new directory, with restarts after each statement since the last restarts.
    fn culprit(&self, checked: usize) -> String {
        let mut again = Self::new(self.seed);
        for (number, statement) in self.asked.iter().enumerate() {
            let outcome = again.ask(statement).and_then(|refused| {
                let is_checked = number + 1 == checked || (number >= checked && refused.is_none());
                if is_checked { again.check() } else { Ok(()) }
            });
            if let Err(broken) = outcome {
                return format!("{} | {broken}", shown(statement));
            }
        }
        let last: Vec<String> = self.asked[checked..].iter().map(|cql| shown(cql)).collect();
        format!("one of these, and only with all of them: {last:#?}")
    }
}

fn shown(text: &str) -> String {
    text.chars().take(400).collect()
}

#[test]
fn what_is_accepted_survives_a_restart_and_what_is_refused_changes_nothing() {
    let number = |name, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (seed, count) = (number("DDL_SEED", 1), number("DDL_STATEMENTS", STATEMENTS));
    let mut record = std::env::var("DDL_RECORD")
        .ok()
        .map(|path| File::create(path).unwrap());
    let mut random = Statements::new(seed);
    let mut history = History::new(seed);
    let mut total = 0;
    for _ in 0..count {
        if history.asked.len() >= HISTORY_LEN {
            check(&mut history);
            history = History::new(history.seed + 1);
            if let Some(record) = &mut record {
                writeln!(record, "{}", serde_json::json!({ "new": "directory" })).unwrap();
            }
        }
        let statement = random.statement(&history.node.schema());
        let refused = history.ask(&statement).unwrap_or_else(|broken| {
            panic!("seed {seed}: {} | {broken}", shown(&statement));
        });
        total += u64::from(refused.is_none());
        if let Some(record) = &mut record {
            let line = serde_json::json!({ "cql": statement, "refused": refused });
            writeln!(record, "{line}").unwrap();
        }
        if history.accepted >= ACCEPTED_MAX || random.random.one_in(40) {
            check(&mut history);
            random.tidy(&history.node.schema());
        }
    }
    check(&mut history);
    println!(
        "campaign | schema | {count} | {total} accepted, all there after restarts and flushes; the others changed nothing"
    );
    assert!(
        total > count / 10,
        "{total} of {count} were accepted: too few to say anything"
    );
}

fn check(history: &mut History) {
    let checked = history.checked;
    if let Err(broken) = history.check() {
        panic!("{broken}\nmade by {}", history.culprit(checked));
    }
}
