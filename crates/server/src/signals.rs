//! Waits for SIGINT, SIGTERM or an order to stop; calls a function on SIGHUP. Before that, [`StartSignals`] ends a start.

use std::io;
use std::process;
use std::thread::JoinHandle;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

/// Handlers for SIGINT, SIGTERM and SIGHUP. From their creation on, these signals no longer end the process by themselves.
pub struct StopSignals {
    runtime: Runtime,
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    orders: mpsc::Sender<()>,
    ordered: mpsc::Receiver<()>,
}

impl StopSignals {
    /// Installs the handlers. A signal that comes before [`StopSignals::wait`] is not lost.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn watch() -> io::Result<Self> {
        let runtime = runtime()?;
        let entered = runtime.enter();
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        let hang_up = signal(SignalKind::hangup())?;
        drop(entered);
        let (orders, ordered) = mpsc::channel(1);
        Ok(Self {
            runtime,
            interrupt,
            terminate,
            hang_up,
            orders,
            ordered,
        })
    }

    /// Returns a function that stops the node, as SIGTERM does.
    pub fn order(&self) -> impl Fn() + Send + Sync + use<> {
        let orders = self.orders.clone();
        move || {
            // Fails only if an earlier order waits, which has the same effect.
            let _ = orders.try_send(());
        }
    }

    /// Waits for SIGINT, SIGTERM or an order, and returns its name; until then, calls `on_hang_up` for each SIGHUP. Afterwards a second signal
    /// ends the process at once.
    ///
    /// # Errors
    /// The thread that waits for the second signal cannot be started.
    pub fn wait(mut self, on_hang_up: impl Fn()) -> io::Result<&'static str> {
        let name = self.next(on_hang_up);
        std::thread::Builder::new()
            .name("ilion-signals".to_owned())
            .spawn(move || {
                self.next(|| {});
                process::exit(HURRIED_EXIT_CODE);
            })?;
        Ok(name)
    }

    fn next(&mut self, on_hang_up: impl Fn()) -> &'static str {
        let (interrupt, terminate, hang_up) = (&mut self.interrupt, &mut self.terminate, &mut self.hang_up);
        let ordered = &mut self.ordered;
        loop {
            let name = self.runtime.block_on(async {
                tokio::select! {
                    _ = interrupt.recv() => Some("SIGINT"),
                    _ = terminate.recv() => Some("SIGTERM"),
                    _ = ordered.recv() => Some("an order of the administration"),
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
/// The exit code that shells report for a process ended by SIGTERM.
const TERMINATED_EXIT_CODE: i32 = 143;

fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// While it lives, SIGINT and SIGTERM end the process at once.
///
/// They do so anyway, except for the first process of a container, which the kernel gives no default actions: without this, `docker stop`
/// of a node that is starting would wait for its time limit and then kill it. A node that starts has acknowledged nothing yet.
///
/// Drop it after [`StopSignals::watch`]: then each signal reaches one of them.
#[must_use]
pub struct StartSignals {
    /// `None` unless this is the first process of a container.
    watcher: Option<Watcher>,
}

struct Watcher {
    /// Its drop ends the thread.
    ended: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl StartSignals {
    /// Watches, if this is the first process of a container.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn watch() -> io::Result<Self> {
        if process::id() != 1 {
            return Ok(Self { watcher: None });
        }
        let runtime = runtime()?;
        let entered = runtime.enter();
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        drop(entered);
        let (sender, receiver) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("ilion-starting".to_owned())
            .spawn(move || {
                let code = runtime.block_on(signal_before(receiver, &mut interrupt, &mut terminate));
                if let Some(code) = code {
                    tracing::info!("a signal ends the start");
                    process::exit(code);
                }
            })?;
        let watcher = Watcher {
            ended: sender,
            thread,
        };
        Ok(Self {
            watcher: Some(watcher),
        })
    }
}

impl Drop for StartSignals {
    fn drop(&mut self) {
        if let Some(Watcher { ended, thread }) = self.watcher.take() {
            drop(ended);
            // Fails only if the thread has panicked, which the panic hook has reported.
            let _ = thread.join();
        }
    }
}

/// Waits for a signal, or until the sender of `ended` is dropped; returns the exit code for the signal. If both have happened, the signal
/// counts: [`StopSignals`] may have been created after it, and would not get it.
async fn signal_before(
    ended: oneshot::Receiver<()>,
    interrupt: &mut Signal,
    terminate: &mut Signal,
) -> Option<i32> {
    tokio::select! {
        biased;
        _ = interrupt.recv() => Some(HURRIED_EXIT_CODE),
        _ = terminate.recv() => Some(TERMINATED_EXIT_CODE),
        _ = ended => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_comes_as_the_start_ends_is_not_lost() {
        let runtime = runtime().unwrap();
        let entered = runtime.enter();
        let mut interrupt = signal(SignalKind::interrupt()).unwrap();
        let mut terminate = signal(SignalKind::terminate()).unwrap();
        // Without an order, `select!` would choose by chance, so once is not enough.
        for _ in 0..64 {
            let mut seen = signal(SignalKind::terminate()).unwrap();
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM).unwrap();
            runtime.block_on(seen.recv());
            let (sender, ended) = oneshot::channel();
            drop(sender);
            let code = runtime.block_on(signal_before(ended, &mut interrupt, &mut terminate));
            assert_eq!(code, Some(TERMINATED_EXIT_CODE));
        }
        let (sender, ended) = oneshot::channel();
        drop(sender);
        let code = runtime.block_on(signal_before(ended, &mut interrupt, &mut terminate));
        assert_eq!(code, None);
        drop(entered);
    }
}
