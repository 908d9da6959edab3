//! `ilion auth`: passwords on a stopped node. A node of a cluster takes part in it meanwhile: the password is that of all nodes.

use std::io::Read as _;

use ilion_server::{password_of, random_password, read_password};

use crate::Failure;
use crate::cli::{ResetPasswordArguments, ServeArguments};
use crate::serve::{self, StartProgress};

/// Longest password on stdin.
const STDIN_BYTES_MAX: u64 = 4096;

/// Gives a role a new password. The lock of the data directory refuses this while a node runs.
pub fn reset_password(arguments: &ResetPasswordArguments) -> Result<(), Failure> {
    let (env, settings) = serve::of_stopped_node(&ServeArguments {
        data: arguments.data.clone(),
        config: arguments.config.clone(),
        set: arguments.set.clone(),
        ..ServeArguments::default()
    })?;
    let usage = |error: ilion_server::SuperuserError| Failure::Usage(error.to_string());
    let (password, is_random) = match &arguments.password_file {
        Some(path) => (read_password(&*env, path).map_err(usage)?, false),
        None if arguments.stdin => {
            let mut bytes = Vec::new();
            let read = std::io::stdin().take(STDIN_BYTES_MAX).read_to_end(&mut bytes);
            read.map_err(Failure::of)?;
            (password_of("stdin", bytes).map_err(usage)?, false)
        }
        None => (random_password(&*env), true),
    };
    let opened = serve::open(&env, &settings, &StartProgress::default());
    let (node, cluster) = opened.map_err(Failure::of)?;
    let written = node
        .processor()
        .access()
        .reset_password(&arguments.role, &password);
    let written = written.map_err(Failure::of)?;
    node.wait_durable(&written).map_err(Failure::of)?;
    if let Some(cluster) = cluster {
        cluster.stop();
    }
    node.engine().drain().map_err(Failure::of)?;
    tell(&arguments.role, is_random.then_some(&password));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the password is what was asked for")]
fn tell(role: &str, made: Option<&String>) {
    match made {
        Some(password) => println!("{password}"),
        None => println!("{role} has the new password."),
    }
}
