//! `ilion cdc`: the changes of a table, of a running node or of the files of a stopped one.

use std::io::Write as _;
use std::sync::Arc;

use ilion_env::{Env, RealEnv};
use ilion_query::Identity;
use ilion_server::admin::ClientError;
use ilion_server::{ChangeStream, ChangesOrder, Node};
use serde_json::Value;

use crate::Failure;
use crate::ask::{client, path};
use crate::cli::{CdcTailArguments, ChangeFormat, ServeArguments};
use crate::serve;

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::of(error)
    }
}

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
            client(&arguments.admin)?.lines(&path, &mut |line| lines.take(line))?;
        }
    }
    match lines.has_ended {
        true => Ok(()),
        false => Err(Failure::Failed(
            "the stream broke off: the node stopped, or what reads here was too slow; go on from the last `resume`".to_owned(),
        )),
    }
}

/// Opens the directory as a start does.
fn of_files(arguments: &CdcTailArguments, order: &ChangesOrder, lines: &mut Lines) -> Result<(), Failure> {
    let real = RealEnv::new();
    let env: Arc<dyn Env> = real.clone();
    let mut settings = serve::load(
        &*env,
        &ServeArguments {
            data: arguments.data.clone(),
            config: arguments.config.clone(),
            set: arguments.set.clone(),
            ..ServeArguments::default()
        },
    )?
    .settings;
    real.set_umask(settings.umask.0);
    let data = settings.data_path();
    if !env.exists(&data) {
        return Err(Failure::Failed(format!(
            "there is no data directory {}",
            serve::absolute(&data).display()
        )));
    }
    // What was captured before it was switched off can still be read.
    settings.cdc_enabled = true;
    let node = Node::open(env, &settings).map_err(Failure::of)?;
    let mut changes = ChangeStream::open(&node, order, Identity::Internal).map_err(Failure::Failed)?;
    while let Some(part) = changes.next_part() {
        part.lines().try_for_each(|line| lines.take(line))?;
    }
    Ok(())
}

/// What prints the lines of a stream.
#[derive(Default)]
struct Lines {
    has_ended: bool,
}

impl Lines {
    fn take(&mut self, line: &str) -> Result<(), Failure> {
        // The last line of a stream has a field that no change has.
        if line.starts_with("{\"end\":") {
            self.has_ended = true;
            return Ok(());
        }
        if line.starts_with("{\"error\":") {
            let last: Value = serde_json::from_str(line).map_err(Failure::of)?;
            return Err(Failure::Failed(last["error"].as_str().unwrap_or(line).to_owned()));
        }
        let mut stdout = std::io::stdout().lock();
        let printed = stdout
            .write_all(line.as_bytes())
            .and_then(|()| stdout.write_all(b"\n"));
        printed.and_then(|()| stdout.flush()).map_err(Failure::of)
    }
}
