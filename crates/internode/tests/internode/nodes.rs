//! Nodes of a test.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use ilion_cluster::Node;
use ilion_env::{Env, RealEnv};
use ilion_internode::{
    CallError, Hello, Identity, Internode, Kind, Lane, Options, Peers, Served, ServedCall, Service,
    ServiceError, Services, Setup, StartError, StoragePort,
};
use ilion_tls::TlsOptions;
use parking_lot::Mutex;
use uuid::Uuid;

/// Longer than anything takes here.
pub const LONG: Duration = Duration::from_secs(30);

/// A kind of requests of these tests.
pub const KIND: Kind = Kind(77);

/// Addresses by node; they change during a test.
#[derive(Clone, Default)]
pub struct Addresses {
    known: Arc<Mutex<BTreeMap<Node, SocketAddr>>>,
    /// Nodes that may not connect, and why.
    banned: Arc<Mutex<BTreeMap<Node, String>>>,
}

impl Addresses {
    pub fn set(&self, node: Node, address: SocketAddr) {
        self.known.lock().insert(node, address);
    }

    pub fn ban(&self, node: Node, reason: &str) {
        self.banned.lock().insert(node, reason.to_owned());
    }
}

impl Peers for Addresses {
    fn address(&self, node: Node) -> Option<SocketAddr> {
        self.known.lock().get(&node).copied()
    }

    fn admit(&self, hello: &Hello) -> Result<(), String> {
        match self.banned.lock().get(&hello.identity.node) {
            Some(reason) => Err(reason.clone()),
            None => Ok(()),
        }
    }
}

pub fn identity(node: Node) -> Identity {
    Identity {
        cluster: Uuid::from_u128(7),
        node,
        session: Uuid::from_u128(100 + u128::from(node)),
        host: Uuid::from_u128(200 + u128::from(node)),
    }
}

/// How a node is started.
pub struct Start {
    pub identity: Identity,
    pub env: Arc<dyn Env>,
    pub services: Services,
    pub options: Options,
    pub tls: Option<TlsOptions>,
}

impl Start {
    pub fn node(node: Node) -> Self {
        Self {
            identity: identity(node),
            env: RealEnv::new(),
            services: Services::new(),
            options: Options::default(),
            tls: None,
        }
    }

    pub fn serving(self, service: impl Service + 'static) -> Self {
        Self {
            services: self.services.with(KIND, Arc::new(service)),
            ..self
        }
    }

    pub fn options(mut self, adjust: impl FnOnce(&mut Options)) -> Self {
        adjust(&mut self.options);
        self
    }

    pub fn try_start(self, addresses: &Addresses) -> Result<Internode, StartError> {
        let port = StoragePort::take(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let node = self.identity.node;
        let setup = Setup {
            env: self.env,
            identity: self.identity,
            peers: Arc::new(addresses.clone()),
            services: self.services,
            options: self.options,
            tls: self.tls,
        };
        let started = Internode::start(setup, port)?;
        addresses.set(node, started.address());
        Ok(started)
    }

    /// The node; it notes its address.
    pub fn start(self, addresses: &Addresses) -> Internode {
        self.try_start(addresses).unwrap()
    }
}

/// A service that is a function.
pub struct Function<F>(pub F);

impl<F> Service for Function<F>
where
    F: Fn(Bytes, &ServedCall) -> Result<Served, ServiceError> + Send + Sync,
{
    fn answer(&self, request: Bytes, call: &ServedCall) -> Result<Served, ServiceError> {
        (self.0)(request, call)
    }
}

/// Answers each request with its own bytes.
pub fn echo() -> impl Service + 'static {
    Function(|request, _: &ServedCall| Ok(Served::Whole(request)))
}

/// Two nodes; the second one has the service.
pub fn pair(service: impl Service + 'static) -> (Internode, Internode, Addresses) {
    let addresses = Addresses::default();
    let asked = Start::node(2).serving(service).start(&addresses);
    (Start::node(1).start(&addresses), asked, addresses)
}

/// A deadline on the clock of [`Start::node`]'s nodes: `u64::MAX` would hide a hang.
pub fn in_time() -> u64 {
    // The clock of each node begins when it is made.
    u64::try_from(LONG.as_nanos()).unwrap() * 100
}

/// Waits until the node has noted a refusal with these words.
pub fn refuses(node: &Internode, words: &str) {
    let begun = Instant::now();
    loop {
        let refusals = node.refusals();
        if refusals.iter().any(|(_, reason)| reason.contains(words)) {
            return;
        }
        assert!(begun.elapsed() < LONG, "{words}: {refusals:?}");
        std::thread::yield_now();
    }
}

/// Asks a node, and waits.
pub fn ask(from: &Internode, node: Node, request: impl Into<Bytes>) -> Result<Bytes, CallError> {
    from.client()
        .call(node, KIND, Lane::Point, request.into(), Some(LONG))
        .wait(in_time())
}
