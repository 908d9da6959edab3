//! `ilion cql`: the shell for CQL.

use std::sync::Arc;

use ilion_env::{Env, RealEnv};
use ilion_shell::{Ended, ShellArgs};

use crate::Failure;

/// Runs the shell.
pub fn run(arguments: &ShellArgs) -> Result<(), Failure> {
    let env: Arc<dyn Env> = RealEnv::new();
    match ilion_shell::run(arguments, &env) {
        Ok(Ended::Well) => Ok(()),
        Ok(Ended::WithFailures) => Err(Failure::Statement),
        Err(error) => Err(Failure::of_tool(error)),
    }
}
