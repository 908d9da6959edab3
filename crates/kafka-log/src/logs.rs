//! [`KafkaLogs`]: what callers see. They block; tasks on a runtime of its own speak to the brokers.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};

use ilion_commitlog::{
    AppendCallback, Capabilities, EndCallback, Envelope, SharedLogs, SharedTail, TailError,
};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::arrivals::Tails;
use crate::counts::{Counting, LogCounts};
use crate::delete::delete_below;
use crate::ends::Ends;
use crate::open::open;
use crate::sending::Sending;
use crate::shared::Shared;
use crate::tail::Tail;
use crate::{OpenError, Options};

/// Threads that speak to the brokers. A callback of `append` runs on one of them.
const THREADS: usize = 2;

/// The logs of a cluster on topics of Kafka.
///
/// A callback of `append` that waits keeps others waiting: it runs on one of two threads.
pub struct KafkaLogs {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    sending: Arc<Sending>,
    ends: Arc<Ends>,
    threads: Threads,
}

/// The runtime. It ends without waiting, so its last user (also a tail) may be dropped anywhere, even in a callback.
struct Threads(Option<Runtime>);

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.sending.close();
        self.ends.close();
    }
}

impl KafkaLogs {
    /// Connects, creates the topics if they are missing, and checks them. Waits for that.
    ///
    /// # Errors
    /// No broker answers, or the topics are not as they must be. The message says who must do what.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let refused = |problem: String| OpenError::Refused(format!("threads for Kafka: {problem}"));
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("ilion-kafka")
            .enable_all()
            .build()
            .map_err(|error| refused(error.to_string()))?;
        let handle = runtime.handle().clone();
        let threads = Threads(Some(runtime));
        let opening = async move {
            open(&options).await.map(|(cluster, topics)| Shared {
                cluster,
                topics,
                options,
                counting: Counting::default(),
                tails: Tails::default(),
            })
        };
        let opened = wait_for(&handle, opening);
        let shared = Arc::new(opened.unwrap_or_else(|| Err(refused("they have ended".to_owned())))?);
        let sending = Arc::new(Sending::new(Arc::clone(&shared)));
        handle.spawn(Arc::clone(&sending).run());
        let ends = Arc::new(Ends::new(Arc::clone(&shared)));
        handle.spawn(Arc::clone(&ends).run());
        Ok(Self {
            inner: Arc::new(Inner {
                shared,
                sending,
                ends,
                threads,
            }),
        })
    }

    /// Counts since the logs were opened.
    pub fn counts(&self) -> LogCounts {
        self.inner.shared.counting.counts()
    }

    /// Where each sequence ends ([`SharedLogs::sequence_of`]): the offset behind its last record. Has the sequences that this process has read
    /// or appended to. While a broker does not answer, its sequences may be longer.
    pub fn ends(&self) -> BTreeMap<u32, u64> {
        self.inner.shared.counting.ends()
    }
}

impl Inner {
    fn handle(&self) -> Option<&Handle> {
        self.threads.0.as_ref().map(Runtime::handle)
    }
}

impl SharedLogs for KafkaLogs {
    fn append(&self, envelope: &Envelope<'_>, done: AppendCallback) {
        self.inner.sending.append(envelope, done);
    }

    fn find_end(&self, log: u32, done: EndCallback) {
        self.inner.ends.ask(log, done);
    }

    fn sequence_of(&self, log: u32) -> u32 {
        // Logs of no cluster are in no sequence with others.
        self.inner.shared.topics.sharing.partition_of(log).unwrap_or(log)
    }

    fn tail(&self, from: &[(u32, u64)]) -> Result<Box<dyn SharedTail>, TailError> {
        let inner = &self.inner;
        let handle = inner.handle().ok_or_else(ended)?;
        Ok(Box::new(Tail::start(
            &inner.shared,
            from,
            handle,
            Arc::clone(inner),
        )))
    }

    fn delete_below(&self, log: u32, offset: u64) -> Result<(), TailError> {
        let inner = &self.inner;
        let shared = Arc::clone(&inner.shared);
        let deleting = async move { delete_below(&shared.cluster, &shared.topics, log, offset).await };
        let handle = inner.handle().ok_or_else(ended)?;
        wait_for(handle, deleting).unwrap_or_else(|| Err(ended()))
    }

    fn caps(&self) -> Capabilities {
        Capabilities {
            record_bytes_max: self.inner.shared.options.record_bytes_max,
            is_shared: true,
            // The power loss of one machine: other brokers have the record.
            survives_power_loss: self.inner.shared.options.replication_factor > 1,
        }
    }
}

fn ended() -> TailError {
    TailError::Refused("the log was closed".to_owned())
}

/// Waits for a task, on any thread; `None` if it ended without a result.
fn wait_for<T: Send + 'static>(handle: &Handle, task: impl Future<Output = T> + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    handle.spawn(async move { sender.send(task.await) });
    receiver.recv().ok()
}
