//! Waits for SIGINT or SIGTERM.

use std::io;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Handlers for SIGINT and SIGTERM. From their creation on, these signals no longer end the process by themselves.
pub struct StopSignals {
    runtime: Runtime,
    interrupt: Signal,
    terminate: Signal,
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
        drop(entered);
        Ok(Self {
            runtime,
            interrupt,
            terminate,
        })
    }

    /// Waits for a signal and returns its name. From then on, a second signal ends the process at once.
    ///
    /// # Errors
    /// The thread that waits for the second signal cannot be started.
    pub fn wait(mut self) -> io::Result<&'static str> {
        let name = self.next();
        std::thread::Builder::new()
            .name("ilion-signals".to_owned())
            .spawn(move || {
                self.next();
                std::process::exit(HURRIED_EXIT_CODE);
            })?;
        Ok(name)
    }

    fn next(&mut self) -> &'static str {
        let (interrupt, terminate) = (&mut self.interrupt, &mut self.terminate);
        self.runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => "SIGINT",
                _ = terminate.recv() => "SIGTERM",
            }
        })
    }
}

/// The exit code that shells report for a process ended by SIGINT.
const HURRIED_EXIT_CODE: i32 = 130;
