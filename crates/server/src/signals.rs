//! Waiting for the operator to say stop.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Returns when SIGINT or SIGTERM comes, and says which. The process no longer ends by itself then: a second signal,
/// for those in a hurry, does that.
///
/// # Errors
/// The operating system gives no handler.
pub fn wait_for_stop_signal() -> io::Result<&'static str> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let name = runtime.block_on(next_signal())?;
    std::thread::Builder::new()
        .name("ilion-signals".to_owned())
        .spawn(move || {
            if runtime.block_on(next_signal()).is_ok() {
                std::process::exit(HURRIED_EXIT_CODE);
            }
        })?;
    Ok(name)
}

/// As shells tell of a process that SIGINT has ended.
const HURRIED_EXIT_CODE: i32 = 130;

async fn next_signal() -> io::Result<&'static str> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => Ok("SIGINT"),
        _ = terminate.recv() => Ok("SIGTERM"),
    }
}
