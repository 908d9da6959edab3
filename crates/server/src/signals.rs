//! Waits for SIGINT or SIGTERM; on SIGHUP, what is given is done.

use std::io;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Handlers for SIGINT, SIGTERM and SIGHUP. From their creation on, these signals no longer end the process by themselves.
pub struct StopSignals {
    runtime: Runtime,
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl StopSignals {
    /// Installs the handlers. A signal that comes before [`StopSignals::wait`] is not lost.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn watch() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let entered = runtime.enter();
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        let hang_up = signal(SignalKind::hangup())?;
        drop(entered);
        Ok(Self {
            runtime,
            interrupt,
            terminate,
            hang_up,
        })
    }

    /// Waits for SIGINT or SIGTERM and returns its name; calls `on_hang_up` for each SIGHUP until then. From then on, a second signal ends the process at once.
    ///
    /// # Errors
    /// The thread that waits for the second signal cannot be started.
    pub fn wait(mut self, on_hang_up: impl Fn()) -> io::Result<&'static str> {
        let name = self.next(on_hang_up);
        std::thread::Builder::new()
            .name("ilion-signals".to_owned())
            .spawn(move || {
                self.next(|| {});
                std::process::exit(HURRIED_EXIT_CODE);
            })?;
        Ok(name)
    }

    fn next(&mut self, on_hang_up: impl Fn()) -> &'static str {
        let (interrupt, terminate, hang_up) = (&mut self.interrupt, &mut self.terminate, &mut self.hang_up);
        loop {
            let name = self.runtime.block_on(async {
                tokio::select! {
                    _ = interrupt.recv() => Some("SIGINT"),
                    _ = terminate.recv() => Some("SIGTERM"),
                    _ = hang_up.recv() => None,
                }
            });
            match name {
                Some(name) => return name,
                None => on_hang_up(),
            }
        }
    }
}

/// The exit code that shells report for a process ended by SIGINT.
const HURRIED_EXIT_CODE: i32 = 130;
