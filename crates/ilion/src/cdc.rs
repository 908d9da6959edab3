//! `ilion cdc tail`: the changes of a table, from a running node or from the files of a stopped one.

use std::io::{IsTerminal as _, Write as _};

use ilion_env::{Env as _, RealEnv};
use ilion_query::Identity;
use ilion_server::{ChangeStream, ChangesFormat, ChangesOrder, ServerNode};
use ilion_tools::Bar;
use serde_json::Value;

use crate::Failure;
use crate::ask::{client, path};
use crate::cdc_file::ChangesFile;
use crate::cli::{CdcTailArguments, ChangeFormat, ServeArguments};
use crate::serve;

/// Prints changes until the stream ends.
pub fn tail(arguments: &CdcTailArguments) -> Result<(), Failure> {
    let named = arguments.table.split_once('.');
    let (keyspace, table) = named.ok_or_else(|| {
        Failure::Usage(format!(
            "{} names no table: expected KEYSPACE.TABLE",
            arguments.table
        ))
    })?;
    let order = ChangesOrder {
        keyspace: keyspace.to_owned(),
        table: table.to_owned(),
        from: arguments.from.clone(),
        once: arguments.once || arguments.data.is_some(),
        format: match arguments.format {
            ChangeFormat::Json => ChangesFormat::Json,
            ChangeFormat::Avro => ChangesFormat::Avro,
        },
        progress: has_bar(),
        ..ChangesOrder::default()
    };
    let mut lines = Lines::new(arguments);
    match &arguments.data {
        Some(_) => of_files(arguments, &order, &mut lines)?,
        None => {
            let parts = [
                ("keyspace", Some(keyspace)),
                ("table", Some(table)),
                ("from", Some(order.from.as_str())),
                (
                    "format",
                    Some(match arguments.format {
                        ChangeFormat::Json => "json",
                        ChangeFormat::Avro => "avro",
                    }),
                ),
                ("once", Some(if order.once { "true" } else { "false" })),
                ("progress", order.progress.then_some("true")),
            ];
            let path = path("changes", &parts);
            let read = client(&arguments.admin)?.lines(&path, &mut |line| lines.take(line));
            read.map_err(Failure::of)?;
        }
    }
    match lines.failed {
        Some(failed) => Err(failed),
        None if lines.has_ended => Ok(()),
        None => Err(Failure::Failed(
            "the stream broke off: the node stopped, or what reads here was too slow; go on from the last `resume`".to_owned(),
        )),
    }
}

/// Prints the changes in the files of a stopped node. Opens its directory like a start does, so the log is replayed.
fn of_files(arguments: &CdcTailArguments, order: &ChangesOrder, lines: &mut Lines) -> Result<(), Failure> {
    let (env, mut settings) = serve::of_stopped_node(&ServeArguments {
        data: arguments.data.clone(),
        config: arguments.config.clone(),
        set: arguments.set.clone(),
        ..ServeArguments::default()
    })?;
    // Otherwise changes that were captured before CDC was switched off could not be read.
    settings.cdc_enabled = true;
    let node = ServerNode::open(env, &settings).map_err(Failure::of)?;
    let mut changes = ChangeStream::open(&node, order, Identity::Internal).map_err(Failure::Failed)?;
    while let Some(part) = changes.next_part() {
        if !part.lines().all(|line| lines.take(line)) {
            break;
        }
    }
    Ok(())
}

/// Whether a bar can be seen, and does not garble lines on the same terminal.
fn has_bar() -> bool {
    std::io::stderr().is_terminal() && !std::io::stdout().is_terminal()
}

/// Writes the lines of a stream to stdout.
struct Lines {
    /// The Avro file that is written; `None` for lines of JSON.
    file: Option<ChangesFile>,
    /// Made by the first line that says how much is left, with that number of bytes.
    bar: Option<(Bar, u64)>,
    has_ended: bool,
    failed: Option<Failure>,
}

impl Lines {
    fn new(arguments: &CdcTailArguments) -> Self {
        let file = match arguments.format {
            ChangeFormat::Json => None,
            ChangeFormat::Avro => {
                let mut marker = [0; 16];
                RealEnv::new().random_bytes(&mut marker);
                Some(ChangesFile::new(marker, &arguments.from))
            }
        };
        Self {
            file,
            bar: None,
            has_ended: false,
            failed: None,
        }
    }

    /// Writes a line; returns false if no more lines are wanted.
    fn take(&mut self, line: &str) -> bool {
        if line.starts_with("{\"left_bytes\":") {
            self.show_left(line);
            return true;
        }
        // No change begins with this field: only the last line of a stream has it.
        self.has_ended = line.starts_with("{\"end\":");
        let is_failed = line.starts_with("{\"error\":");
        let outcome = match &mut self.file {
            _ if self.has_ended || is_failed => {
                self.file.as_mut().map_or(Ok(()), |file| write(&[&file.finish()]))
            }
            Some(file) => file.take(line).and_then(|bytes| write(&[&bytes])),
            None => write(&[line.as_bytes(), b"\n"]),
        };
        self.failed = outcome.err();
        if is_failed {
            let last: Option<Value> = serde_json::from_str(line).ok();
            let text = last
                .as_ref()
                .and_then(|last| last["error"].as_str())
                .unwrap_or(line);
            self.failed = Some(Failure::Failed(text.to_owned()));
        }
        self.failed.is_none() && !self.has_ended
    }

    fn show_left(&mut self, line: &str) {
        let Some(left) = left_bytes(line) else { return };
        let (bar, total) = self
            .bar
            .get_or_insert_with(|| (Bar::of_bytes("cdc tail", left), left));
        bar.at(total.saturating_sub(left));
    }
}

/// The number in `{"left_bytes": ..}`.
fn left_bytes(line: &str) -> Option<u64> {
    let told: Value = serde_json::from_str(line).ok()?;
    told["left_bytes"].as_u64()
}

fn write(parts: &[&[u8]]) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let written = parts.iter().try_for_each(|part| stdout.write_all(part));
    written.and_then(|()| stdout.flush()).map_err(Failure::of)
}
