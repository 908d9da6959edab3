//! The `ilion` binary: one match on the subcommand.
//!
//! Exit codes: 0 done; 1 it failed, stderr says why; 2 wrong arguments or settings; 130 stopped by a second signal.

mod cli;
mod serve;

use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Bench(arguments) => ilion_tools::bench::run(arguments).map_err(Failure::of),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}

/// Why a command did not do what it should.
enum Failure {
    /// It could not be done.
    Failed(String),
    /// It was asked for wrongly.
    Usage(String),
}

impl Failure {
    fn of(error: impl Into<anyhow::Error>) -> Self {
        Self::Failed(format!("{:#}", error.into()))
    }

    #[expect(clippy::print_stderr, reason = "this is how a program tells why it failed")]
    fn tell(self) -> ExitCode {
        let (message, code) = match self {
            Self::Failed(message) => (message, 1),
            Self::Usage(message) => (message, 2),
        };
        eprintln!("ilion: {message}");
        ExitCode::from(code)
    }
}
