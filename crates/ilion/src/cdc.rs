//! `ilion cdc`: the changes of a table, of a running node or of the files of a stopped one.

use std::io::Write as _;

use ilion_query::Identity;
use ilion_server::{ChangeStream, ChangesOrder, Node};
use serde_json::Value;

use crate::Failure;
use crate::ask::{client, path};
use crate::cli::{CdcTailArguments, ChangeFormat, ServeArguments};
use crate::serve;

/// Prints changes until the stream ends.
pub fn tail(arguments: &CdcTailArguments) -> Result<(), Failure> {
    let ChangeFormat::Json = arguments.format;
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
        ..ChangesOrder::default()
    };
    let mut lines = Lines::default();
    match &arguments.data {
        Some(_) => of_files(arguments, &order, &mut lines)?,
        None => {
            let parts = [
                ("keyspace", Some(keyspace)),
                ("table", Some(table)),
                ("from", Some(order.from.as_str())),
                ("once", Some(if order.once { "true" } else { "false" })),
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

/// Opens the directory as a start does.
fn of_files(arguments: &CdcTailArguments, order: &ChangesOrder, lines: &mut Lines) -> Result<(), Failure> {
    let (env, mut settings) = serve::of_stopped_node(&ServeArguments {
        data: arguments.data.clone(),
        config: arguments.config.clone(),
        set: arguments.set.clone(),
        ..ServeArguments::default()
    })?;
    // Changes that were captured before it was switched off can still be read.
    settings.cdc_enabled = true;
    let node = Node::open(env, &settings).map_err(Failure::of)?;
    let mut changes = ChangeStream::open(&node, order, Identity::Internal).map_err(Failure::Failed)?;
    while let Some(part) = changes.next_part() {
        if !part.lines().all(|line| lines.take(line)) {
            break;
        }
    }
    Ok(())
}

/// Prints the lines of a stream.
#[derive(Default)]
struct Lines {
    has_ended: bool,
    failed: Option<Failure>,
}

impl Lines {
    /// Prints a line; returns false if no more lines are wanted.
    fn take(&mut self, line: &str) -> bool {
        // The last line of a stream has a field that no change has.
        self.has_ended = line.starts_with("{\"end\":");
        if self.has_ended {
            return false;
        }
        if line.starts_with("{\"error\":") {
            let last: Option<Value> = serde_json::from_str(line).ok();
            let text = last
                .as_ref()
                .and_then(|last| last["error"].as_str())
                .unwrap_or(line);
            self.failed = Some(Failure::Failed(text.to_owned()));
            return false;
        }
        let mut stdout = std::io::stdout().lock();
        let printed = stdout
            .write_all(line.as_bytes())
            .and_then(|()| stdout.write_all(b"\n"));
        self.failed = printed.and_then(|()| stdout.flush()).err().map(Failure::of);
        self.failed.is_none()
    }
}
