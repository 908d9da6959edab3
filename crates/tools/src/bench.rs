//! The benchmark client: writes, reads by key and scans over the socket, against any CQL server.
//!
//! One thread for each connection, blocking sockets, and as many requests under way as `--in-flight` says: a thread reads
//! what has arrived, judges every answer, and sends the next requests with one system call. The client is meant to cost a
//! small part of what the server does; its own CPU is part of the result.
//!
//! | module | what |
//! | --- | --- |
//! | `settings` | what the user asks for |
//! | `dataset` | the rows, made from a seed, and how to know them again |
//! | `connection` | a socket that speaks the protocol |
//! | `template` | a request encoded once, filled in often |
//! | `work`, `write`, `read`, `scan` | what is sent and how answers are judged |
//! | `load` | the loop of one client, and all clients at once |
//! | `process` | CPU and memory of a process |
//! | `report` | the result for people and for programs |
//!
//! Every row that comes back is compared with the row that was written: a wrong or missing one is an error, and a run with
//! errors fails.

mod connection;
mod dataset;
mod load;
mod process;
mod read;
mod report;
mod scan;
mod settings;
mod template;
mod work;
mod write;

use std::sync::Arc;

use anyhow::{Context, bail};
use ilion_env::{Env, RealEnv};
use ilion_protocol::{Query, QueryParams, Request};

use crate::bench::connection::Connection;
use crate::bench::dataset::Dataset;
use crate::bench::load::{Tally, run_clients};
use crate::bench::process::Usage;
use crate::bench::report::{Measurement, Report};
use crate::bench::work::{Phase, Plan};

pub use crate::bench::settings::{BenchArgs, Workload};

/// Runs a workload and prints what it cost.
///
/// # Errors
/// The server cannot be reached, or an operation failed or brought back something that was not written.
#[expect(clippy::print_stdout, reason = "the report is the product of this tool")]
pub fn run(args: BenchArgs) -> anyhow::Result<()> {
    let env: Arc<dyn Env> = RealEnv::new();
    let plan = Arc::new(Plan::new(&args, Dataset::new(args.seed, args.value_size)));
    if args.workload == Workload::Write {
        create_table(&plan)?;
    }
    if let Some(warm_up) = Phase::warm_up(&args) {
        run_clients(&env, &plan, &Arc::new(warm_up)).context("warming up")?;
    }
    let measurement = measure(&env, &plan, &args)?;
    let report = Report::new(&args, &measurement);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("{report}");
    }
    judge(&measurement.tally)
}

fn measure(env: &Arc<dyn Env>, plan: &Arc<Plan>, args: &BenchArgs) -> anyhow::Result<Measurement> {
    let usage = |pid: u32| Usage::of(env.as_ref(), pid);
    let own = std::process::id();
    let server_before = args.pid.map(usage).transpose()?;
    let client_before = usage(own)?;
    let begin = env.monotonic_nanos();
    let phase = Arc::new(Phase::measured(args));
    let mut tally = run_clients(env, plan, &phase)?;
    phase.conclude(args, &mut tally);
    Ok(Measurement {
        tally,
        elapsed_nanos: env.monotonic_nanos() - begin,
        server_before,
        server_after: args.pid.map(usage).transpose()?,
        client_cpu_secs: usage(own)?.cpu_secs - client_before.cpu_secs,
    })
}

/// Creates keyspace and table as cassandra-stress does, if they are not there.
fn create_table(plan: &Plan) -> anyhow::Result<()> {
    let mut connection = Connection::open(&plan.address)?;
    for text in plan.schema() {
        let query = Query {
            text: text.clone(),
            params: QueryParams::default(),
        };
        connection
            .ask(Request::Query(query))
            .with_context(|| format!("running {text}"))?;
    }
    Ok(())
}

fn judge(tally: &Tally) -> anyhow::Result<()> {
    match tally.faults.first() {
        None => Ok(()),
        Some(first) => bail!("{} operations failed; the first: {first}", tally.faults.count()),
    }
}
