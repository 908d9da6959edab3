//! A consumer of a table's changes: reads captured records of the commit log and prints them as lines.
//!
//! ```text
//! json:   a change is its envelope
//! keyed:  a change is `RESUME TAB LOGGED_MS TAB KEY TAB ENVELOPE`; KEY is the partition key as an object, `null` for TRUNCATE
//!         `{"at": POSITION, "logged_ms": ..}`: everything before it was printed; so the positions of consumers of a quiet table advance
//! avro:   as keyed, but KEY and ENVELOPE are data of Avro in base64. Before the first change, and again when the table was altered:
//!         `{"schema": TEXT, "key_schema": TEXT}`, the schemas of the changes that follow. Behind each part: `{"at": ..}`
//! all:    the last line is `{"end": POSITION}` or `{"error": TEXT}`; with `progress`, some parts begin with `{"left_bytes": ..}`
//! ```
//!
//! A stream may begin and go on while the table is written and altered. Before each part it checks again that its client may read
//! the table, and that the table was not dropped.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ilion_cdc::{AvroTable, Change, Place, changes_of, print_json, print_key};
use ilion_commitlog::{Changes, Position};
use ilion_engine::Engine;
use ilion_query::{AccessControl, Identity};
use ilion_schema::{TableId, TableSchema};
use serde::Deserialize;
use serde_json::json;

use crate::consumers::{CONSUMERS_MAX, Consumer};
use crate::named_consumers::{Entry, Progress};
use crate::server_node::ServerNode;

/// A part ends with the record that reaches this number of bytes.
const PART_BYTES: usize = 64 << 10;
/// A part ends after this number of records, even if none of them is of the table.
const PART_RECORDS: usize = 10_000;
/// The answer of a node that captures no changes.
pub(crate) const IS_OFF: &str = "change data capture is off on this node: set cdc_enabled: true";
/// After this many parts without a line, a stream with positions sends one: its consumer sees that the node is alive.
const SILENT_PARTS_MAX: u32 = 20;
/// The sizes of segments are looked at once in this many parts of a stream.
const PARTS_A_LOOK: u64 = 16;
/// How long the stream waits for changes before it returns an empty part.
const WAIT: Duration = Duration::from_millis(500);

/// How changes are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangesFormat {
    /// The envelope as JSON.
    #[default]
    Json,
    /// The envelope as JSON, behind the position and the key.
    Keyed,
    /// The envelope and the key as Avro, in base64, behind the position.
    Avro,
}

/// Which changes a consumer reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ChangesOrder {
    /// Keyspace of the table.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// Where the stream begins: earliest, latest, stored, or a position.
    pub from: String,
    /// Name of the consumer, if the node keeps its position.
    #[serde(default)]
    pub consumer: Option<String>,
    /// The named consumer begins anew at `from`, whatever it has processed.
    #[serde(default)]
    pub begins: bool,
    /// How changes are printed.
    #[serde(default)]
    pub format: ChangesFormat,
    /// Whether the stream ends with the last change that was acknowledged when it began.
    #[serde(default)]
    pub once: bool,
    /// Whether a stream that ends tells now and then how much is left.
    #[serde(default)]
    pub progress: bool,
}

/// The changes of one table, in parts.
pub struct ChangeStream {
    engine: Arc<Engine>,
    access: Arc<AccessControl>,
    identity: Identity,
    table: TableId,
    changes: Changes,
    format: ChangesFormat,
    /// The schemas that were last sent to the consumer.
    avro: Option<AvroTable>,
    /// The last position that was sent to the consumer: it may resume there.
    told: Position,
    /// How many parts in a row had no line.
    silent_parts: u32,
    /// Where the stream ends; `None` if it follows the log without end.
    end: Option<Position>,
    has_ended: bool,
    /// How many parts were read; `None` if the consumer does not want to know how much is left.
    progress: Option<u64>,
    /// Shows the stream in metrics and reports while it lives.
    consumer: Arc<Consumer>,
}

impl ChangeStream {
    /// Begins to read; the error is a text for the client.
    ///
    /// # Errors
    /// There is no such table, it captures no changes, the client may not read it, or the place is invalid.
    pub fn open(node: &ServerNode, order: &ChangesOrder, identity: Identity) -> Result<Self, String> {
        let engine = node.engine().clone();
        let access = node.processor().access().clone();
        let (keyspace, name) = (&order.keyspace, &order.table);
        let table = readable_table(node, keyspace, name, &identity)?;
        if !table.options.cdc {
            return Err(format!(
                "changes of {keyspace}.{name} are not captured: ALTER TABLE {keyspace}.{name} WITH cdc = true"
            ));
        }
        let consumers = node.named_consumers().ok_or(IS_OFF)?;
        let named = order.consumer.as_ref().map(|consumer| Entry {
            consumer: consumer.clone(),
            keyspace: keyspace.clone(),
            table: name.clone(),
        });
        let text = |error: ilion_engine::Error| error.to_string();
        if order.once {
            engine.sync_log().map_err(text)?;
        }
        let end = engine.end_of_changes().map_err(text)?;
        let now_micros = engine.env().now_micros();
        let mut logged_micros = now_micros;
        let from = match (order.from.parse()?, &named) {
            (Place::Earliest, _) => Position::START,
            (Place::Latest, _) => end,
            (Place::At(position), _) => position,
            (Place::Stored, Some(entry)) => {
                let progress = consumers.progress(entry)?;
                logged_micros = progress.map_or(now_micros, |progress| progress.logged_micros);
                progress.map_or(Position::START, |progress| progress.position)
            }
            (Place::Stored, None) => return Err("only a named consumer has a stored position".to_owned()),
        };
        let changes = engine.changes(from).map_err(text)?;
        // A consumer that reconnects at a position may have read further than it has processed: its stored position stays.
        let is_registered = order.begins || order.from == "stored";
        if let Some(entry) = named.as_ref().filter(|_| is_registered) {
            let progress = Progress {
                position: from,
                logged_micros,
            };
            consumers.begin(entry.clone(), progress)?;
        }
        let consumer = node.consumers().add(named, now_micros);
        let too_many = || format!("{CONSUMERS_MAX} consumers of changes read already, and no more may");
        Ok(Self {
            identity,
            table: table.id,
            changes,
            format: order.format,
            avro: None,
            told: from,
            silent_parts: 0,
            end: order.once.then_some(end),
            has_ended: false,
            progress: (order.once && order.progress).then_some(0),
            consumer: consumer.ok_or_else(too_many)?,
            engine,
            access,
        })
    }

    /// The next changes, one line each; an empty text if there were none for a while, `None` after the last part. The last line of a
    /// stream that ends is `{"end": position}` or `{"error": text}`.
    pub fn next_part(&mut self) -> Option<String> {
        if self.has_ended {
            return None;
        }
        let progress = self.progress_line();
        let mut part = String::new();
        let last = match self.read_into(&mut part) {
            Ok(false) => None,
            Ok(true) => Some(json!({ "end": self.end.unwrap_or(self.changes.position()).to_string() })),
            Err(error) => Some(json!({ "error": error })),
        };
        if let Some(last) = last {
            self.has_ended = true;
            part.push_str(&last.to_string());
            part.push('\n');
        }
        if let Some(line) = progress {
            part.insert_str(0, &line);
        }
        Some(part)
    }

    /// A line with about how many bytes of the log are still to be read. `None`: the consumer does not want it, a line came a few parts ago,
    /// or the sizes of the segments cannot be read.
    fn progress_line(&mut self) -> Option<String> {
        let (parts, end) = (self.progress.as_mut()?, self.end?);
        let is_time = parts.is_multiple_of(PARTS_A_LOOK);
        *parts += 1;
        let left = is_time.then(|| self.changes.bytes_until(end).ok()).flatten()?;
        Some(format!("{}\n", json!({ "left_bytes": left })))
    }

    /// Appends the next lines to `part`. Returns true at the end of the stream.
    fn read_into(&mut self, part: &mut String) -> Result<bool, String> {
        if self.end.is_none() {
            let waited = self.engine.wait_for_changes(self.changes.position(), WAIT);
            waited.map_err(|error| error.to_string())?;
        }
        let schema = self.engine.schema();
        let table = schema.table_by_id(self.table).ok_or("the table was dropped")?;
        let checked = self.access.check_changes(&self.identity, table);
        checked.map_err(|error| error.to_string())?;
        let table = Arc::clone(table);
        self.tell_schema(&table, part)?;
        for _ in 0..PART_RECORDS {
            if self.end.is_some_and(|end| self.changes.position() >= end) {
                self.tell_position(self.changes.position(), part);
                return Ok(true);
            }
            let Some(next) = self.changes.next() else {
                self.consumer.caught_up();
                self.tell_position(self.changes.position(), part);
                return Ok(self.end.is_some());
            };
            let (position, record, behind) = next.map_err(|error| error.to_string())?;
            if self.end.is_some_and(|end| position >= end) {
                self.tell_position(position, part);
                return Ok(true);
            }
            self.consumer.reads(record.time_micros);
            let changes = changes_of(&table, position, &record, behind);
            for change in changes.map_err(|error| error.to_string())? {
                self.print(&change, part)
                    .map_err(|problem| format!("the record at {position} has a wrong value: {problem}"))?;
                self.told = change.resume;
            }
            if part.len() >= PART_BYTES {
                break;
            }
        }
        self.tell_position(self.changes.position(), part);
        Ok(false)
    }

    /// Sends the schemas to a consumer of Avro: before the first change, and again when they have changed.
    fn tell_schema(&mut self, table: &Arc<TableSchema>, part: &mut String) -> Result<(), String> {
        let is_told = self.avro.as_ref().is_some_and(|avro| avro.is_of(table));
        if self.format != ChangesFormat::Avro || is_told {
            return Ok(());
        }
        let avro = AvroTable::of(table)?;
        let texts =
            |avro: &AvroTable| json!({ "schema": avro.envelope_schema(), "key_schema": avro.key_schema() });
        let told = texts(&avro);
        if self.avro.as_ref().map(texts).as_ref() != Some(&told) {
            part.push_str(&told.to_string());
            part.push('\n');
        }
        self.avro = Some(avro);
        Ok(())
    }

    /// Prints a change as one line.
    fn print(&self, change: &Change, part: &mut String) -> Result<(), String> {
        if self.format != ChangesFormat::Json {
            let logged_millis = change.logged_micros.div_euclid(1000);
            part.push_str(&format!("{}\t{logged_millis}\t", change.resume));
        }
        match &self.avro {
            Some(avro) => {
                match avro.encode_key(change)? {
                    Some(key) => STANDARD.encode_string(key, part),
                    None => part.push_str("null"),
                }
                part.push('\t');
                STANDARD.encode_string(avro.encode(change)?, part);
            }
            None => {
                if self.format == ChangesFormat::Keyed {
                    print_key(change, part)?;
                    part.push('\t');
                }
                print_json(change, part)?;
            }
        }
        part.push('\n');
        Ok(())
    }

    /// Sends a position, from which the consumer may resume: if it does not have that position yet, at the end of a block of Avro, or
    /// after [`SILENT_PARTS_MAX`] parts without a line. JSON has no positions.
    fn tell_position(&mut self, position: Position, part: &mut String) {
        self.silent_parts = if part.is_empty() { self.silent_parts + 1 } else { 0 };
        // A consumer that writes blocks of Avro ends a block with each part.
        let ends_block = self.format == ChangesFormat::Avro && !part.is_empty();
        let has_news = position != self.told || ends_block || self.silent_parts >= SILENT_PARTS_MAX;
        if self.format == ChangesFormat::Json || !has_news {
            return;
        }
        self.silent_parts = 0;
        self.told = position;
        let logged_millis = self.consumer.logged_micros().div_euclid(1000);
        part.push_str(&json!({ "at": position.to_string(), "logged_ms": logged_millis }).to_string());
        part.push('\n');
    }
}

/// Finds the table, if the client may read its changes; the error is a text for the client.
pub(crate) fn readable_table(
    node: &ServerNode,
    keyspace: &str,
    name: &str,
    identity: &Identity,
) -> Result<Arc<TableSchema>, String> {
    let schema = node.engine().schema();
    let table = schema.table(keyspace, name);
    let table = table.ok_or_else(|| format!("table {keyspace}.{name} does not exist"))?;
    let checked = node.processor().access().check_changes(identity, table);
    checked.map_err(|error| error.to_string())?;
    if node.engine().capture().is_none() {
        return Err(IS_OFF.to_owned());
    }
    Ok(Arc::clone(table))
}
