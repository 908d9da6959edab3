//! The `ilion` binary: one match on the subcommand.
//!
//! Exit codes: 0 success; 1 failure, with the reason on stderr; 2 wrong arguments or settings; 130 ended by a second signal.

mod ask;
mod audit_log;
mod auth;
mod backup;
mod bar;
mod bench;
mod cdc;
mod cdc_consumers;
mod cdc_file;
mod cli;
mod cluster;
mod cluster_facts;
mod compactions;
mod cql;
mod indexes;
mod load;
mod members;
mod nodetool;
mod ring_admin;
mod ring_changes;
mod serve;
mod sink;
mod snapshots;
mod statements;
mod tables;
mod transfer;

use std::process::ExitCode;

use clap::Parser as _;
use ilion_server::admin::{
    ClientError, CompactionReport, InfoReport, TableHistogramsReport, TableStatsReport,
};

use cli::{AuthCommand, CdcCommand, Cli, Command, SstableCommand};
use nodetool::Route;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let outcome = match nodetool::route(std::env::args_os()) {
        Ok(Route::Ilion(arguments)) => run(Cli::parse_from(arguments).command),
        Ok(Route::Alias(arguments)) => Cli::try_parse_from(arguments)
            .map_err(|error| Failure::nodetool(first_line(&error)))
            .and_then(|cli| run(cli.command))
            .map_err(Failure::into_nodetool),
        Ok(Route::Verb(run, call)) => run(&call).map_err(Failure::into_nodetool),
        Ok(Route::Help(text)) => {
            ask::say(&text);
            Ok(())
        }
        Err(failure) => Err(failure),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}

/// The first line of the error, without the usage text.
fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Cql(arguments) => cql::run(&arguments),
        Command::Status(arguments) => members::status(&arguments),
        Command::Ring(arguments) => members::ring(&arguments),
        Command::Ready(arguments) => ask::ready(&arguments),
        Command::Info(arguments) => ask::report::<InfoReport>(&arguments, "/admin/info"),
        Command::Flush(arguments) => ask::flush(&arguments),
        Command::Compact(arguments) => compactions::compact(&arguments),
        Command::Compactions(arguments) => ask::report::<CompactionReport>(&arguments, "/admin/compactions"),
        Command::Stop(arguments) => compactions::stop(&arguments),
        Command::Autocompaction(arguments) => compactions::switch(&arguments),
        Command::CompactionThroughput(arguments) => compactions::limit(&arguments),
        Command::InvalidateCaches(arguments) => ask::invalidate_caches(&arguments),
        Command::SetCacheCapacity(arguments) => ask::set_cache_capacity(&arguments),
        Command::SetCacheKeysToSave(arguments) => ask::set_cache_keys(&arguments),
        Command::Statements(arguments) => statements::statements(&arguments),
        Command::TraceProbability(arguments) => statements::trace_probability(&arguments),
        Command::TableStats(arguments) => statements::tables::<TableStatsReport>(&arguments),
        Command::TableHistograms(arguments) => statements::tables::<TableHistogramsReport>(&arguments),
        Command::Index(command) => indexes::run(&command),
        Command::TopPartitions(arguments) => statements::top_partitions(&arguments),
        Command::Backup(arguments) => backup::run(&arguments),
        Command::Cdc(command) => match command {
            CdcCommand::Tail(arguments) => cdc::tail(&arguments),
            CdcCommand::Sink(arguments) => sink::run(&arguments),
            CdcCommand::Consumers(arguments) => cdc_consumers::list(&arguments),
            CdcCommand::Release(arguments) => cdc_consumers::release(&arguments),
            CdcCommand::Forget(arguments) => cdc_consumers::forget(&arguments),
        },
        Command::AuditLog(arguments) => audit_log::run(&arguments),
        Command::CompactionHistory(arguments) => tables::compaction_history(&arguments),
        Command::ThreadPools(arguments) => tables::thread_pools(&arguments),
        Command::Clients(arguments) => tables::clients(&arguments),
        Command::DataPaths(arguments) => tables::data_paths(&arguments),
        Command::GetSstables(arguments) => tables::with_key(&arguments),
        Command::Snapshot(arguments) => snapshots::take(&arguments),
        Command::ListSnapshots(arguments) => snapshots::list(&arguments),
        Command::ClearSnapshot(arguments) => snapshots::clear(&arguments),
        Command::Decommission(arguments) => ring_changes::decommission(&arguments),
        Command::RemoveNode(arguments) => ring_changes::remove_node(&arguments),
        Command::Rebalance(arguments) => ring_changes::rebalance(&arguments),
        Command::CancelRingChange(arguments) => ring_changes::cancel(&arguments),
        Command::Cleanup(arguments) => ring_changes::cleanup(&arguments),
        Command::Drain(arguments) => ask::drain(&arguments),
        Command::Reload(arguments) => ask::reload(&arguments),
        Command::Sstable(SstableCommand::Offline(command)) => {
            ilion_tools::sstable::run(&command).map_err(Failure::of_tool)
        }
        Command::Sstable(SstableCommand::Export(arguments)) => transfer::export(&arguments),
        Command::Sstable(SstableCommand::Import(arguments)) => transfer::import(&arguments),
        Command::Sstable(SstableCommand::Load(arguments)) => load::load(&arguments),
        Command::Auth(AuthCommand::ResetPassword(arguments)) => auth::reset_password(&arguments),
        Command::Bench(arguments) => {
            // An embedded node then runs as `ilion serve` does, and clients do not measure the zeroing of their own memory.
            ilion_env::use_small_pages();
            ilion_tools::bench::run(arguments, &bench::InProcess).map_err(Failure::of_tool)
        }
    }
}

/// Why a command failed.
#[derive(Debug)]
enum Failure {
    /// The action failed.
    Failed(String),
    /// Arguments or settings are wrong.
    Usage(String),
    /// The action failed, and the log on stderr has the reason.
    Logged,
    /// The action failed, and the output has the reason.
    Told,
    /// A statement of the shell failed, and the output has the reason. Exit code 2, like cqlsh.
    Statement,
    /// nodetool was used wrongly, or the node refused. Exit code 1, like Cassandra's nodetool.
    Nodetool(String),
    /// The node failed to do what nodetool requested. Exit code 2, like Cassandra's nodetool.
    NodetoolFailed(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Failed(message)
            | Self::Usage(message)
            | Self::Nodetool(message)
            | Self::NodetoolFailed(message) => f.write_str(message),
            Self::Logged | Self::Told | Self::Statement => Ok(()),
        }
    }
}

impl Failure {
    /// Joins the message and its causes. Skips a cause if the message already ends with it.
    fn of_tool(error: anyhow::Error) -> Self {
        let mut message = error.to_string();
        for cause in error.chain().skip(1).map(ToString::to_string) {
            if !message.ends_with(&cause) {
                message = format!("{message}: {cause}");
            }
        }
        Self::Failed(message)
    }

    fn of(error: impl std::error::Error) -> Self {
        Self::Failed(error.to_string())
    }

    fn nodetool(message: impl Into<String>) -> Self {
        Self::Nodetool(message.into())
    }

    /// The failure of a request that a verb of nodetool sent.
    fn of_client(error: ClientError) -> Self {
        match error {
            ClientError::Refused(reason) => Self::Nodetool(reason),
            ClientError::Failed(reason) => Self::NodetoolFailed(reason),
            other => Self::Nodetool(other.to_string()),
        }
    }

    /// The same failure with the exit code of nodetool.
    fn into_nodetool(self) -> Self {
        match self {
            Self::Failed(message) | Self::Usage(message) => Self::Nodetool(message),
            other => other,
        }
    }

    #[expect(clippy::print_stderr, reason = "this is how a program tells why it failed")]
    fn tell(self) -> ExitCode {
        let (message, code) = match self {
            Self::Failed(message) => (message, 1),
            Self::Usage(message) => (message, 2),
            Self::Logged | Self::Told => return ExitCode::from(1),
            Self::Statement => return ExitCode::from(2),
            Self::Nodetool(message) => {
                eprintln!("nodetool: {message}\nSee 'nodetool help' or 'nodetool help <command>'.");
                return ExitCode::from(1);
            }
            Self::NodetoolFailed(message) => {
                eprintln!("error: {message}");
                return ExitCode::from(2);
            }
        };
        eprintln!("ilion: {message}");
        ExitCode::from(code)
    }
}
