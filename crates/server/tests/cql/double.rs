//! Doubles of the query layer, which acts on words of a statement's text, and of a commit log that is durable on request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};
use ilion_codec::Rope;
use ilion_env::{MemEnv, handover, parking};
use ilion_node::NoListener;
use ilion_query::{
    Awaited, BatchKind, BatchStatement, ClientState, ColumnSpec, Decided, Error, ExecuteOptions, Executed,
    LogPosition, Outcome, Prepared, ResultSet, Values, WriteType,
};
use ilion_schema::{ChangeKind, EventTarget, SchemaEvent};
use ilion_server::{
    Auditor, ClientPorts, Durability, DurableCallback, LoginCheck, NoLog, NoLogins, Observers, OldVersions,
    Server, ServerOptions, Services, Statements, Trace, TraceStore,
};
use ilion_settings::Settings;
use ilion_types::CqlType;

pub struct Double {
    /// Statements that were started.
    pub begun: AtomicUsize,
    /// Each `SELECT wait` and `UPDATE wait` waits for a message.
    gate: Receiver<()>,
}

/// A server over doubles, and the means to control them.
pub struct Setup {
    pub server: Server,
    /// Its clock stands still until the test advances it.
    pub env: MemEnv,
    pub double: Arc<Double>,
    /// Each message lets one `SELECT wait` or `UPDATE wait` continue.
    pub gate: Sender<()>,
}

pub fn start() -> Setup {
    start_with(|_| {}, Arc::new(NoLog))
}

pub fn start_with(adjust: impl FnOnce(&mut ServerOptions), durability: Arc<dyn Durability>) -> Setup {
    start_over(adjust, durability, Arc::new(NoLogins), Observers::default())
}

/// A server that traces this share of the requests.
pub fn start_tracing(probability: f64) -> Setup {
    struct NoStore;
    impl TraceStore for NoStore {
        fn store(&self, _: Trace) {}
    }
    let observers = Observers {
        traces: Some(Arc::new(NoStore)),
        ..Observers::default()
    };
    observers.trace_probability.set(probability);
    start_over(|_| {}, Arc::new(NoLog), Arc::new(NoLogins), observers)
}

/// A server whose clients must log in.
pub fn start_with_logins(adjust: impl FnOnce(&mut ServerOptions), logins: Arc<dyn LoginCheck>) -> Setup {
    start_over(adjust, Arc::new(NoLog), logins, Observers::default())
}

fn start_over(
    adjust: impl FnOnce(&mut ServerOptions),
    durability: Arc<dyn Durability>,
    logins: Arc<dyn LoginCheck>,
    observers: Observers,
) -> Setup {
    let settings = Settings {
        native_transport_port: 0,
        ..Settings::default()
    };
    let mut options = ServerOptions::of(&settings);
    adjust(&mut options);
    let (gate, receiver) = unbounded();
    let double = Arc::new(Double {
        begun: AtomicUsize::new(0),
        gate: receiver,
    });
    let env = MemEnv::new(1);
    let services = Services {
        env: env.shared(),
        statements: double.clone(),
        durability,
        schema_listener: Arc::new(NoListener),
        logins,
        observers: Arc::new(observers),
        old_versions: Arc::new(OldVersions::new(true)),
        auditor: Arc::new(Auditor::new(env.shared(), options.address.ip())),
    };
    let ports = ClientPorts::take(&options).unwrap();
    let server = Server::start(ports, &options, services).unwrap();
    Setup {
        server,
        env,
        double,
        gate,
    }
}

impl Double {
    /// Returns when this many statements were started.
    pub fn wait_until_begun(&self, count: usize) {
        while self.begun.load(SeqCst) < count {
            std::thread::yield_now();
        }
    }
}

/// Parks the request until another thread tells the outcome of its command; the result is that of this attempt. A request that cannot be
/// parked gets the outcome at once.
fn park(outcome: Result<Executed, Error>) -> Result<Executed, Error> {
    let _may_park = parking::may_park();
    if !parking::may_wait() {
        return outcome;
    }
    parking::wait_for(move |done| drop(std::thread::spawn(move || done(Box::new(Decided(outcome))))));
    Err(Error::ServerError("this attempt was not to be seen".to_owned()))
}

/// A column `v` with these blobs.
fn blobs(cells: &[&[u8]]) -> Result<Executed, Error> {
    let mut encoded = Rope::default();
    for cell in cells {
        encoded.end().extend(length(cell.len()));
        encoded.end().extend_from_slice(cell);
    }
    rows(cells.len(), encoded)
}

/// One row with a blob that is not copied.
fn large(size: usize) -> Result<Executed, Error> {
    let mut encoded = Rope::default();
    encoded.end().extend(length(size));
    encoded.push(&vec![0; size].into());
    assert_eq!(encoded.shared_len(), size);
    rows(1, encoded)
}

fn length(bytes: usize) -> [u8; 4] {
    i32::try_from(bytes).unwrap().to_be_bytes()
}

fn rows(row_count: usize, cells: Rope) -> Result<Executed, Error> {
    let column = ColumnSpec {
        keyspace: "ks".into(),
        table: "t".into(),
        name: "v".into(),
        ty: CqlType::Blob,
    };
    Ok(Executed::of(Outcome::Rows(ResultSet {
        columns: vec![column].into(),
        metadata_id: None,
        row_count: u32::try_from(row_count).unwrap(),
        cells,
        paging_state: None,
    })))
}

fn schema_event(kind: ChangeKind, name: &str) -> SchemaEvent {
    SchemaEvent {
        kind,
        keyspace: "ks".to_owned(),
        target: EventTarget::Table(name.to_owned()),
    }
}

impl Statements for Double {
    fn query(
        &self,
        client: &mut ClientState,
        cql: &str,
        options: &ExecuteOptions,
    ) -> Result<Executed, Error> {
        self.begun.fetch_add(1, SeqCst);
        let words: Vec<&str> = cql.split(' ').collect();
        match words[..] {
            ["USE", keyspace] => {
                client.keyspace = Some(keyspace.to_owned());
                Ok(Executed::of(Outcome::SetKeyspace(keyspace.to_owned())))
            }
            ["INSERT"] => Ok(Executed {
                awaited: Some(Awaited::Log(LogPosition {
                    segment: 1,
                    offset: 1,
                })),
                ..Executed::of(Outcome::Void)
            }),
            ["CREATE", name] => Ok(Executed::of(Outcome::SchemaChange(vec![schema_event(
                ChangeKind::Created,
                name,
            )]))),
            ["CREATE", "IF", "NOT", "EXISTS", _] => Ok(Executed::of(Outcome::SchemaChange(Vec::new()))),
            ["SELECT", "keyspace", "where"] => {
                blobs(&[client.keyspace.as_deref().unwrap_or("none").as_bytes()])
            }
            ["SELECT", "override", "where"] => {
                blobs(&[options.keyspace.as_deref().unwrap_or("none").as_bytes()])
            }
            ["SELECT", "zeros", "where", size] => blobs(&[&vec![0; size.parse().unwrap()]]),
            ["SELECT", "large", "where", size] => large(size.parse().unwrap()),
            // Reads without a key run on the threads for statements that may take long.
            ["SELECT", "wait"] => {
                self.gate.recv_timeout(Duration::from_secs(20)).unwrap();
                blobs(&[b"waited"])
            }
            // As a request that waits for another node.
            ["UPDATE", "wait"] => {
                handover::before_wait();
                self.gate.recv_timeout(Duration::from_secs(20)).unwrap();
                blobs(&[b"waited"])
            }
            ["UPDATE", "decided", value] => park(blobs(&[value.as_bytes()])),
            ["UPDATE", "refused"] => park(Err(Error::Invalid("by its replica".to_owned()))),
            ["UPDATE", "overtaken"] => match parking::outcome::<Decided>() {
                None => park(Err(Error::Overtaken)),
                Some(_) => blobs(&[b"again"]),
            },
            ["SELECT", "warning", "where"] => Ok(Executed {
                warnings: vec!["careful".to_owned()],
                ..Executed::of(Outcome::Void)
            }),
            ["DELETE", "overloaded"] => Err(Error::Overloaded("later".to_owned())),
            ["DELETE", "unavailable"] => Err(Error::Unavailable {
                consistency: ilion_query::Consistency::ALL,
                required: 3,
                alive: 1,
            }),
            ["DELETE", "timeout", kind] => Err(timed_out(kind)),
            ["DELETE", "panic"] => panic!("as the test asked"),
            _ => Err(Error::Syntax(format!("no such statement: {cql}"))),
        }
    }

    fn prepare(&self, _: &ClientState, _: &str, _: Option<&str>) -> Result<Arc<Prepared>, Error> {
        Err(Error::Invalid("the double prepares nothing".to_owned()))
    }

    fn prepared(&self, id: &[u8]) -> Option<Arc<Prepared>> {
        // As if the statement had been sent as a command, and were forgotten while its request was parked.
        if id == b"forgotten" {
            let _ = park(blobs(&[b"executed"]));
        }
        None
    }

    fn execute(&self, _: &mut ClientState, _: &Arc<Prepared>, _: &ExecuteOptions) -> Result<Executed, Error> {
        Err(Error::Invalid("the double prepares nothing".to_owned()))
    }

    fn batch(
        &self,
        _: &mut ClientState,
        kind: BatchKind,
        statements: Vec<(BatchStatement, Values)>,
        _: &ExecuteOptions,
    ) -> Result<Executed, Error> {
        let seen = format!("{kind:?} of {}", statements.len());
        blobs(&[seen.as_bytes()])
    }
}

/// The error of a write, or of a read, that had one of two answers in time.
fn timed_out(kind: &str) -> Error {
    let kinds = [
        WriteType::Simple,
        WriteType::Batch,
        WriteType::UnloggedBatch,
        WriteType::Counter,
        WriteType::Cas,
        WriteType::BatchLog,
    ];
    let consistency = ilion_query::Consistency::LOCAL_QUORUM;
    let (received, block_for, message) = (1, 2, "too slow".to_owned());
    match kinds.into_iter().find(|known| known.name() == kind) {
        Some(write_type) => Error::WriteTimeout {
            consistency,
            write_type,
            received,
            block_for,
            message,
        },
        None if kind == "CAS_UNKNOWN" => Error::CasWriteUnknown {
            consistency,
            received,
            block_for,
            message,
        },
        None => Error::ReadTimeout {
            consistency,
            received,
            block_for,
            message,
        },
    }
}

/// A commit log whose records are durable when the test says so.
pub struct HeldLog {
    waiting: Sender<DurableCallback>,
    /// Callbacks in the order of their batches.
    pub callbacks: Receiver<DurableCallback>,
}

impl HeldLog {
    pub fn new() -> Arc<Self> {
        let (waiting, callbacks) = unbounded();
        Arc::new(Self { waiting, callbacks })
    }

    pub fn next(&self) -> DurableCallback {
        self.callbacks.recv_timeout(Duration::from_secs(20)).unwrap()
    }
}

impl Durability for HeldLog {
    fn on_durable(&self, _: LogPosition, callback: DurableCallback) {
        self.waiting.send(callback).unwrap();
    }
}
