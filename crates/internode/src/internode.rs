//! [`Internode`]: the connections of a node to others, and of others to it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use ilion_env::Env;
use ilion_tls::{Encryption, TlsOptions};
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::client::Client;
use crate::counts::Counting;
use crate::error::StartError;
use crate::hello::Identity;
use crate::incoming::Bounds;
use crate::lanes::{LaneThreads, Lanes};
use crate::listener::{Listener, Refusals};
use crate::options::Options;
use crate::peers::Peers;
use crate::service::Services;
use crate::serving::Server;
use crate::shared::Shared;
use crate::welcome::Door;

/// Maximum number of connections that wait to be accepted; the kernel may allow fewer.
const BACKLOG: u32 = 1024;
/// How long the tasks of connections have to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// The port for other nodes, bound before the node opens, so that a second node on it fails at once. Connections are refused until
/// [`Internode::start`].
#[derive(Debug)]
pub struct StoragePort {
    socket: TcpSocket,
    address: SocketAddr,
}

impl StoragePort {
    /// Binds a port; port 0 is any free port.
    ///
    /// # Errors
    /// Another program has the port, or the address cannot be used.
    pub fn take(address: SocketAddr) -> Result<Self, StartError> {
        let failed = |source| StartError::Port { address, source };
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4(),
            SocketAddr::V6(_) => TcpSocket::new_v6(),
        }
        .map_err(failed)?;
        // Without this, connections in TIME_WAIT block the port.
        socket.set_reuseaddr(true).map_err(failed)?;
        socket.bind(address).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self { socket, address })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The input of [`Internode::start`].
pub struct Setup {
    /// The clock of deadlines, which must be that of the coordinator and the engine; randomness; the files of certificates.
    pub env: Arc<dyn Env>,
    /// The identity of this node.
    pub identity: Identity,
    /// The other nodes.
    pub peers: Arc<dyn Peers>,
    /// The services for requests of other nodes.
    pub services: Services,
    /// Limits and times.
    pub options: Options,
    /// The encryption; `None`: connections are not encrypted.
    pub tls: Option<TlsOptions>,
}

/// See the module. Dropping it stops it, like [`Self::stop`].
pub struct Internode {
    address: SocketAddr,
    client: Client,
    encryption: Option<Arc<Encryption>>,
    refusals: Arc<Refusals>,
    stopping: watch::Sender<bool>,
    /// `None` after the stop.
    running: Option<Running>,
}

struct Running {
    runtime: Runtime,
    listening: JoinHandle<()>,
    threads: LaneThreads,
}

impl Internode {
    /// Starts to listen, and to connect when calls need it.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(setup: Setup, port: StoragePort) -> Result<Self, StartError> {
        let Setup {
            env,
            identity,
            peers,
            services,
            options,
            tls,
        } = setup;
        let encryption = tls.map(|tls| Encryption::load(&env, tls).map(Arc::new));
        let encryption = encryption.transpose()?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(options.io_threads.max(1))
            .thread_name("ilion-nodes")
            .enable_all()
            .build()
            .map_err(StartError::Threads)?;
        let (stopping, told) = watch::channel(false);
        let listener = listen(&runtime, port.socket, port.address)?;
        let (lanes, threads) = Lanes::start(&options).map_err(StartError::Threads)?;
        let counting = Arc::<Counting>::default();
        let server = Server {
            env: env.clone(),
            options: options.clone(),
            services,
            lanes,
            counting: counting.clone(),
            stopping: told.clone(),
        };
        let door = Door {
            identity,
            peers: peers.clone(),
            encryption: encryption.clone(),
        };
        let refusals = Arc::<Refusals>::default();
        let accepting = Listener {
            door: Arc::new(door),
            server: Arc::new(server),
            refusals: refusals.clone(),
        };
        let client = Client::new(Shared {
            env,
            identity,
            peers,
            bounds: Arc::new(Bounds {
                part_bytes_max: options.part_bytes_max,
                all_bytes_max: options.received_bytes_max,
                all_bytes: AtomicUsize::new(0),
            }),
            counting,
            options,
            encryption: encryption.clone(),
            handle: runtime.handle().clone(),
            stopping: told,
        });
        let listening = runtime.spawn(accepting.run(listener));
        Ok(Self {
            address: port.address,
            client,
            encryption,
            refusals,
            stopping,
            running: Some(Running {
                runtime,
                listening,
                threads,
            }),
        })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The way to other nodes.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The encryption of the connections, to read its files again; `None` without.
    pub fn encryption(&self) -> Option<&Arc<Encryption>> {
        self.encryption.as_ref()
    }

    /// Connections that were refused lately: the address, and the reason as it was logged.
    pub fn refusals(&self) -> Vec<(IpAddr, String)> {
        self.refusals.lately()
    }

    /// Closes all connections. Calls of this node fail; requests of others end when their service checks
    /// [`is_wanted`](crate::ServedCall::is_wanted) or its deadline.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.stopping.send_replace(true);
        let Some(Running {
            runtime,
            listening,
            threads,
        }) = self.running.take()
        else {
            return;
        };
        // The listener owns the queues of the threads, so these end after it.
        let ended = runtime.block_on(async { timeout(PATIENCE, listening).await });
        if ended.is_err() {
            tracing::warn!("connections of other nodes did not end in time");
        }
        runtime.shutdown_timeout(PATIENCE);
        threads.join();
    }
}

impl Drop for Internode {
    fn drop(&mut self) {
        self.end();
    }
}

fn listen(runtime: &Runtime, socket: TcpSocket, address: SocketAddr) -> Result<TcpListener, StartError> {
    let _inside = runtime.enter();
    socket
        .listen(BACKLOG)
        .map_err(|source| StartError::Port { address, source })
}
