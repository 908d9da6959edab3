//! A consumer of a table's changes: reads captured records of the commit log and prints them as lines of JSON.
//!
//! A stream may begin and go on while the table is written and altered. Before each part it checks again that its client may read
//! the table, and that the table is still the same.

use std::sync::Arc;
use std::time::Duration;

use ilion_cdc::{Place, changes_of, print_json};
use ilion_commitlog::{Changes, Position};
use ilion_engine::Engine;
use ilion_query::{AccessControl, Identity};
use ilion_schema::TableId;
use serde::Deserialize;
use serde_json::json;

use crate::consumers::{CONSUMERS_MAX, Consumer};
use crate::node::Node;

/// A part ends with the record that reaches this number of bytes.
const PART_BYTES: usize = 64 << 10;
/// A part ends after this number of records, even if none of them is of the table.
const PART_RECORDS: usize = 10_000;
/// How long a part waits for changes.
const WAIT: Duration = Duration::from_millis(500);

/// Which changes a consumer reads.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ChangesOrder {
    /// Keyspace of the table.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// Where the stream begins: earliest, latest, or a position.
    pub from: String,
    /// Whether the stream ends with the last change that was acknowledged when it began.
    #[serde(default)]
    pub once: bool,
}

/// The changes of one table, in parts.
pub struct ChangeStream {
    engine: Arc<Engine>,
    access: Arc<AccessControl>,
    identity: Identity,
    table: TableId,
    changes: Changes,
    /// Where it ends; `None` follows the log without end.
    end: Option<Position>,
    has_ended: bool,
    /// Listed for the metrics while the stream lives.
    consumer: Arc<Consumer>,
}

impl ChangeStream {
    /// Begins to read; the error is a text for the client.
    ///
    /// # Errors
    /// There is no such table, it captures no changes, the client may not read it, or the place is invalid.
    pub fn open(node: &Node, order: &ChangesOrder, identity: Identity) -> Result<Self, String> {
        let engine = node.engine().clone();
        let access = node.processor().access().clone();
        let schema = engine.schema();
        let (keyspace, name) = (&order.keyspace, &order.table);
        let table = schema.table(keyspace, name);
        let table = table.ok_or_else(|| format!("table {keyspace}.{name} does not exist"))?;
        let checked = access.check_changes(&identity, table);
        checked.map_err(|error| error.to_string())?;
        if engine.capture().is_none() {
            return Err("change data capture is off on this node: set cdc_enabled: true".to_owned());
        }
        if !table.options.cdc {
            return Err(format!(
                "changes of {keyspace}.{name} are not captured: ALTER TABLE {keyspace}.{name} WITH cdc = true"
            ));
        }
        let text = |error: ilion_engine::Error| error.to_string();
        if order.once {
            engine.sync_changes().map_err(text)?;
        }
        let end = engine.end_of_changes().map_err(text)?;
        let from = match order.from.parse()? {
            Place::Earliest => Position::START,
            Place::Latest => end,
            Place::At(position) => position,
        };
        let changes = engine.changes(from).map_err(text)?;
        let consumer = node.consumers().add(engine.env().now_micros());
        let too_many = || format!("{CONSUMERS_MAX} consumers of changes read already, and no more may");
        Ok(Self {
            identity,
            table: table.id,
            changes,
            end: order.once.then_some(end),
            has_ended: false,
            consumer: consumer.ok_or_else(too_many)?,
            engine,
            access,
        })
    }

    /// The next changes, one line each; empty if there are none for a while, `None` at the end. The last line of a stream that ends is
    /// `{"end": position}`, or `{"error": text}`.
    pub fn next_part(&mut self) -> Option<String> {
        if self.has_ended {
            return None;
        }
        let mut part = String::new();
        let last = match self.read_into(&mut part) {
            Ok(false) => return Some(part),
            Ok(true) => json!({ "end": self.end.unwrap_or(self.changes.position()).to_string() }),
            Err(error) => json!({ "error": error }),
        };
        self.has_ended = true;
        part.push_str(&last.to_string());
        part.push('\n');
        Some(part)
    }

    /// Returns true at the end.
    fn read_into(&mut self, part: &mut String) -> Result<bool, String> {
        if self.end.is_none() {
            let waited = self.engine.wait_for_changes(self.changes.position(), WAIT);
            waited.map_err(|error| error.to_string())?;
        }
        let schema = self.engine.schema();
        let table = schema.table_by_id(self.table).ok_or("the table was dropped")?;
        let checked = self.access.check_changes(&self.identity, table);
        checked.map_err(|error| error.to_string())?;
        for _ in 0..PART_RECORDS {
            if self.end.is_some_and(|end| self.changes.position() >= end) {
                return Ok(true);
            }
            let Some(next) = self.changes.next() else {
                self.consumer.caught_up();
                return Ok(self.end.is_some());
            };
            let (position, record, behind) = next.map_err(|error| error.to_string())?;
            self.consumer.reads(record.time_micros);
            if self.end.is_some_and(|end| position >= end) {
                return Ok(true);
            }
            let changes = changes_of(table, position, &record, behind);
            for change in changes.map_err(|error| error.to_string())? {
                let printed = print_json(&change, part);
                printed
                    .map_err(|problem| format!("the record at {position} has a wrong value: {problem}"))?;
                part.push('\n');
            }
            if part.len() >= PART_BYTES {
                break;
            }
        }
        Ok(false)
    }
}
