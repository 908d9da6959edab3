//! Waiting for the operator to say stop.

use std::io;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Watches for SIGINT and SIGTERM from the moment it is made: neither ends the process by itself any more.
pub struct StopSignals {
    runtime: Runtime,
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// Begins to watch. A signal that comes before [`StopSignals::wait`] is not lost.
    ///
    /// # Errors
    /// The operating system gives no handler.
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

    /// Returns the name of the signal when one comes. From then on a second one ends the process, for those in a hurry.
    ///
    /// # Errors
    /// The operating system gives no thread.
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

/// As shells tell of a process that SIGINT has ended.
const HURRIED_EXIT_CODE: i32 = 130;
