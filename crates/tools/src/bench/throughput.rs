//! Writes, counts, reads by key and scans of cassandra-stress's table: throughput, latency, CPU and memory.

use std::sync::Arc;

use anyhow::Context;
use ilion_env::{Env, RealEnv};

use crate::bench::counts::Counts;
use crate::bench::dataset::Dataset;
use crate::bench::load::run_clients;
use crate::bench::process::Usage;
use crate::bench::read::Reads;
use crate::bench::report::{Measurement, ThroughputReport};
use crate::bench::scan::Scan;
use crate::bench::settings::{BenchArgs, Workload};
use crate::bench::tally::Tally;
use crate::bench::work::{Phase, Plan, Work};
use crate::bench::write::Writes;
use ilion_client::Connection;

/// Runs a workload and prints its result.
///
/// # Errors
/// The server cannot be reached, or an operation failed or returned a wrong row.
#[expect(clippy::print_stdout, reason = "the report is the product of this tool")]
pub fn run(args: &BenchArgs) -> anyhow::Result<()> {
    let env: Arc<dyn Env> = RealEnv::new();
    let plan = Arc::new(Plan::new(args, Dataset::new(args.seed, args.value_size)));
    if matches!(args.workload, Workload::Write | Workload::Count) {
        create_table(&plan)?;
    }
    if let Some(warm_up) = Phase::warm_up(args) {
        run_phase(&env, &plan, &Arc::new(warm_up)).context("warming up")?;
    }
    let measurement = measure(&env, &plan, args)?;
    let report = ThroughputReport::new(args, &measurement);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("{report}");
    }
    measurement.tally.check()
}

fn measure(env: &Arc<dyn Env>, plan: &Arc<Plan>, args: &BenchArgs) -> anyhow::Result<Measurement> {
    let usage = |pid: u32| Usage::of(env.as_ref(), pid);
    let own = std::process::id();
    let server_before = args.pid.map(usage).transpose()?;
    let client_before = usage(own)?;
    let begin = env.monotonic_nanos();
    let phase = Arc::new(Phase::measured(args));
    let mut tally = run_phase(env, plan, &phase)?;
    phase.conclude(args, &mut tally);
    Ok(Measurement {
        tally,
        elapsed_nanos: env.monotonic_nanos() - begin,
        server_before,
        server_after: args.pid.map(usage).transpose()?,
        client_cpu_secs: usage(own)?.cpu_secs - client_before.cpu_secs,
    })
}

fn run_phase(env: &Arc<dyn Env>, plan: &Arc<Plan>, phase: &Arc<Phase>) -> anyhow::Result<Tally> {
    let make = |connection: &mut Connection| {
        Ok(match plan.workload {
            Workload::Write => Box::new(Writes::new(plan, phase, connection)?) as Box<dyn Work + Send>,
            Workload::Count => Box::new(Counts::new(plan, phase, connection)?),
            Workload::Read => Box::new(Reads::new(plan, phase, connection)?),
            Workload::Scan => Box::new(Scan::new(plan, phase, connection)?),
        })
    };
    phase.with_bar(plan.workload.name(), || run_clients(env, &plan.crowd, &make))
}

/// Creates keyspace and table as cassandra-stress does, if they do not exist.
fn create_table(plan: &Plan) -> anyhow::Result<()> {
    let mut connection = Connection::open(&plan.crowd.target)?;
    for text in plan.schema() {
        connection.query(&text)?;
    }
    Ok(())
}
