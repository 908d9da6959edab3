//! A thread that repeats an action.

use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};

/// Repeats an action until the ticker is dropped. The drop waits until a running action has ended.
#[derive(Debug)]
pub(crate) struct Ticker {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Starts a thread that calls `act` every `interval`, first after one interval.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(name: &str, interval: Duration, act: impl Fn() + Send + 'static) -> io::Result<Self> {
        let (stop, stopped) = bounded::<()>(0);
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(interval) {
                act();
            }
        })?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
