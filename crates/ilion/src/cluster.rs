//! A node of a cluster: its logs in Kafka, its place among the members, and its connections to the other nodes.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bytes::Bytes;
use ilion_cluster::{ClusterView, Endpoint, Location, META_TABLET, Node as NodeNumber};
use ilion_coordinator::ReadOptions;
use ilion_engine::Engine;
use ilion_env::Env;
use ilion_internode::{
    CallError, Client, Identity, Internode, Kind, Lane, Options, Peers, ReadService, RemoteReplicas, Served,
    ServedCall, Service, ServiceError, Services, Setup, StoragePort,
};
use ilion_kafka_client::{Credentials, Mechanism, Security};
use ilion_kafka_log::KafkaLogs;
use ilion_kafka_url::Url;
use ilion_member::{
    JoinError, Member, MemberClient, MemberListener, MemberOptions, NewCluster, NotHanded, Parts, Replaced,
};
use ilion_node::{OpenError, RELEASE_VERSION, refused_in_a_cluster};
use ilion_query::{AccessControl, Store};
use ilion_schema::SchemaEvent;
use ilion_server::admin::RingAdmin;
use ilion_server::{Certificates, Entry, ServerNode, server_encryption};
use ilion_settings::{LogPlace, SaslMechanism, Settings};
use uuid::Uuid;

use crate::cluster_facts::{ClusterFacts, Probe, StandingService};
use crate::ring_admin::MemberRing;

/// While a node joins, it logs its progress this often.
const JOINING: Duration = Duration::from_secs(10);
/// How often a node that copies tablets checks whether it must stop. After `SILENCE_MAX` without a part it gives the copy up.
const LOOK_UP: Duration = Duration::from_millis(500);
const SILENCE_MAX: Duration = Duration::from_secs(300);
/// Largest file with certificates or a password.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The parts that only a node of a cluster has.
pub struct Cluster {
    member: Arc<Member>,
    internode: Option<Internode>,
    shown: OnceLock<Arc<Shown>>,
    probe: Arc<Probe>,
}

impl Cluster {
    /// Shows the cluster to clients of this node, from now on.
    pub fn show(&self, node: &ServerNode) -> Result<(), OpenError> {
        if let Some(view) = self.member.view() {
            let peers = ilion_node::Peers::new(view);
            node.follow(&peers)?;
            let probe: Weak<Probe> = Arc::downgrade(&self.probe);
            node.show_traffic(&peers, probe);
            let shown = Arc::new(Shown {
                peers,
                access: Arc::downgrade(node.processor().access()),
                entry: OnceLock::new(),
            });
            // `show` is called once, so the cell is empty.
            let _ = self.shown.set(shown.clone());
            self.member.listen(shown);
        }
        let member = Arc::downgrade(&self.member);
        node.settings().of_cluster(move |settings| {
            if let Some(member) = member.upgrade() {
                member.set_write_timeout(settings.write_request_timeout);
            }
        });
        Ok(())
    }

    /// Closes the port for CQL clients (`entry`) when the node has left the cluster.
    pub fn close_when_left(&self, entry: Entry) {
        if let Some(shown) = self.shown.get() {
            let _ = shown.entry.set(entry);
            if self.member.ring().has_left() {
                shown.left();
            }
        }
    }

    /// The ring, for the administration port.
    pub fn ring(&self) -> Arc<dyn RingAdmin> {
        Arc::new(MemberRing(Arc::downgrade(&self.member)))
    }

    /// The certificates of the server and of the connections between nodes, as one, so that both are read again together.
    pub fn certificates(&self, of_server: Certificates) -> Certificates {
        let internode = self.internode.as_ref();
        of_server.and(internode.and_then(Internode::encryption))
    }

    /// Answers the questions of the administration about the cluster.
    pub fn probe(&self) -> Arc<Probe> {
        self.probe.clone()
    }

    /// Stops following the logs, and closes the connections to other nodes.
    pub fn stop(mut self) {
        self.member.stop();
        drop(self.internode.take());
    }
}

/// Joins the cluster that the settings name, and waits until this node is a complete member. Returns the cluster as the storage of the node.
pub fn join(
    settings: &Settings,
    url: &Url,
    port: StoragePort,
    engine: &Arc<Engine>,
    local: Arc<dyn Store>,
) -> Result<(Cluster, Arc<dyn Store>), OpenError> {
    refused_in_a_cluster(settings).map_err(OpenError::Settings)?;
    let env = engine.env().clone();
    let failed = |error: &dyn std::fmt::Display| OpenError::Cluster(error.to_string());
    let logs = Arc::new(open_logs(&*env, settings, url)?);
    let handed = Arc::<HandedOver>::default();
    let options = member_options(settings, engine, local.random_uuid()).map_err(OpenError::Settings)?;
    let member = Member::start(engine, local, logs.clone(), handed.clone(), options);
    let member = Arc::new(member.map_err(|error| failed(&error))?);
    // Only the number of the node is needed to connect to other nodes. Its data comes later, copied over these connections.
    let node = wait_for(&member, Member::wait_numbered)?;
    let cluster = member.state().map_or(Uuid::nil(), |state| state.cluster);
    let identity = Identity {
        cluster,
        node,
        session: member.session(),
        host: engine.id(),
    };
    let of_commands = CommandService(Arc::downgrade(&member));
    let facts = Arc::new(ClusterFacts {
        engine: engine.clone(),
        member: member.clone(),
        logs,
    });
    let services = Services::new()
        .with(Kind::READ, Arc::new(ReadService::new(Arc::new(member.reader()))))
        .with(Kind::COMMAND, Arc::new(of_commands))
        .with(Kind::COPY, Arc::new(CopyService(Arc::downgrade(&member))))
        .with(Kind::STANDING, Arc::new(StandingService(Arc::downgrade(&facts))));
    let setup = Setup {
        env: env.clone(),
        identity,
        peers: Arc::new(KnownPeers(member.clone())),
        services,
        options: Options::default(),
        tls: server_encryption(settings),
    };
    let internode = Internode::start(setup, port).map_err(|error| failed(&error))?;
    // This is the only place that sets it.
    let _ = handed.0.set((env, internode.client().clone()));
    wait_for(&member, Member::wait_joined)?;
    let client = internode.client().clone();
    let replicas = RemoteReplicas::new(client.clone());
    let store = member.store(Arc::new(replicas), ReadOptions::default());
    tracing::info!(node, %cluster, storage = %internode.address(), "this node is a member of the cluster");
    let cluster = Cluster {
        member,
        internode: Some(internode),
        shown: OnceLock::new(),
        probe: Arc::new(Probe { facts, client }),
    };
    Ok((cluster, Arc::new(store)))
}

/// The address on which this node listens for other nodes.
pub fn storage_address(settings: &Settings) -> SocketAddr {
    SocketAddr::new(listen_address(settings), settings.storage_port)
}

fn listen_address(settings: &Settings) -> IpAddr {
    settings.listen_address.unwrap_or(settings.rpc_address)
}

fn wait_for(
    member: &Member,
    wait: impl Fn(&Member, Duration) -> Result<NodeNumber, JoinError>,
) -> Result<NodeNumber, OpenError> {
    loop {
        match wait(member, JOINING) {
            Ok(node) => return Ok(node),
            Err(JoinError::TooSlow(_)) => {
                let step = match (member.state(), member.lacking()) {
                    (None, _) => "it has read nothing of the meta log",
                    (Some(_), 1..) => "it copies tablets from other nodes",
                    (Some(state), 0) if state.transition.is_some() => {
                        "the ring is changing: a node copies tablets, or applies their logs"
                    }
                    (Some(_), 0) => "it applies the logs of its tablets",
                };
                tracing::info!(step, tablets = member.lacking(), "joining");
            }
            Err(error) => return Err(OpenError::Cluster(error.to_string())),
        }
    }
}

/// `new_id` becomes the id of the cluster if this node creates one.
fn member_options(settings: &Settings, engine: &Engine, new_id: Uuid) -> Result<MemberOptions, String> {
    let rpc_address = settings.broadcast_rpc_address.unwrap_or(settings.rpc_address);
    let endpoint = Endpoint {
        ip: settings.listen_address.unwrap_or(rpc_address),
        native_port: settings.native_transport_port,
        storage_port: settings.storage_port,
    };
    let location = Location {
        datacenter: settings.data_center.clone(),
        rack: settings.rack.clone(),
    };
    let replaces = settings.replace_address_first_boot.as_deref().map(replaced);
    Ok(MemberOptions {
        create: Some(NewCluster {
            // Not the id of the node, which may later join another cluster.
            cluster: new_id,
            tablets: settings.tablets.0,
            down_max: settings.down_max,
        }),
        slices: settings.num_tokens.map(u32::from),
        replaces: replaces.transpose()?,
        write_timeout: settings.write_request_timeout,
        ..MemberOptions::new(engine.id(), endpoint, location, RELEASE_VERSION)
    })
}

/// The lost node that `replace_address_first_boot` names.
fn replaced(text: &str) -> Result<Replaced, String> {
    let address = text.parse().map(Replaced::Address);
    let found = address.or_else(|_| text.parse().map(Replaced::Host));
    found.map_err(|_| format!("replace_address_first_boot: {text} is no IP address and no host id"))
}

/// Connects to the brokers.
fn open_logs(env: &dyn Env, settings: &Settings, url: &Url) -> Result<KafkaLogs, OpenError> {
    let read = |name: &str, path: &PathBuf| {
        let bytes = env.read_all(path, FILE_BYTES_MAX);
        bytes.map_err(|error| OpenError::Settings(format!("log_options: {name}: {error}")))
    };
    let issuers = settings.log_options_tls_ca.as_ref();
    let issuers = issuers.map(|path| read("tls_ca", path)).transpose()?;
    let password = settings.log_options_sasl_password_file.as_ref();
    let password = password
        .map(|path| read("sasl_password_file", path))
        .transpose()?;
    let credentials = settings
        .log_options_sasl_username
        .clone()
        .zip(password)
        .map(|(username, password)| Credentials {
            mechanism: match settings.log_options_sasl {
                SaslMechanism::Plain => Mechanism::Plain,
                SaslMechanism::ScramSha256 => Mechanism::ScramSha256,
                SaslMechanism::ScramSha512 => Mechanism::ScramSha512,
            },
            username,
            password: String::from_utf8_lossy(&password).trim_end().to_owned(),
        });
    let security = Security {
        is_encrypted: settings.log_options_tls || issuers.is_some(),
        issuers,
        credentials,
    };
    // Records are marked with a hash of the cluster's name, so that topics of two clusters cannot be mixed up. Its id is not known yet: it
    // is in the meta log.
    let marked = Uuid::from_bytes(ilion_codec::md5(url.prefix.as_bytes()));
    let mut options =
        ilion_kafka_log::Options::new(url.clone(), security, marked, settings.tablets.0, META_TABLET);
    options.replication_factor = settings.log_options_replication_factor;
    options.partitions = settings.log_options_partitions.into();
    KafkaLogs::open(options).map_err(|error| OpenError::Cluster(error.to_string()))
}

/// Publishes changes of the cluster to clients.
struct Shown {
    peers: Arc<ilion_node::Peers>,
    /// Weak, since the access control holds the member, which holds this.
    access: Weak<AccessControl>,
    /// The port for CQL clients, once it is open.
    entry: OnceLock<Entry>,
}

impl MemberListener for Shown {
    fn changed(&self, view: ClusterView) {
        self.peers.publish(view);
    }

    fn schema_changed(&self, event: &SchemaEvent) {
        self.peers.schema_changed(std::slice::from_ref(event));
    }

    fn roles_changed(&self) {
        if let Some(access) = self.access.upgrade() {
            access.forget();
        }
    }

    fn left(&self) {
        let Some(entry) = self.entry.get() else {
            return;
        };
        match entry.close() {
            Ok(()) => {
                tracing::warn!(
                    "this node has left the cluster and takes no clients any more: stop it, and remove its data directory before it joins again"
                );
            }
            Err(reason) => tracing::warn!(%reason, "the port of clients cannot be closed"),
        }
    }
}

/// Finds the addresses of other nodes.
struct KnownPeers(Arc<Member>);

impl Peers for KnownPeers {
    fn address(&self, node: NodeNumber) -> Option<SocketAddr> {
        let state = self.0.state()?;
        let endpoint = state.members.get(&node)?.endpoint;
        Some(SocketAddr::new(endpoint.ip, endpoint.storage_port))
    }
}

/// Sends commands to other nodes, and fetches copies of tablets from them. Refuses both until this node has its number.
#[derive(Default)]
struct HandedOver(OnceLock<(Arc<dyn Env>, Client)>);

impl MemberClient for HandedOver {
    fn execute(&self, node: NodeNumber, request: Bytes, ends_nanos: u64) -> Result<Bytes, NotHanded> {
        let Some((env, client)) = self.0.get() else {
            return Err(NotHanded::Before("this node has not joined yet".to_owned()));
        };
        let left = Duration::from_nanos(ends_nanos.saturating_sub(env.monotonic_nanos()));
        let call = client.call(node, Kind::COMMAND, Lane::Waiting, request, Some(left));
        call.wait(ends_nanos).map_err(|error| match error {
            CallError::Refused(reason) => NotHanded::Before(reason),
            error => NotHanded::Unknown(error.to_string()),
        })
    }

    fn copy<'a>(&'a self, node: NodeNumber, request: Bytes, is_wanted: &'a dyn Fn() -> bool) -> Parts<'a> {
        let Some((env, client)) = self.0.get() else {
            let reason = "this node does not talk to others yet".to_owned();
            return Box::new(std::iter::once(Err(reason)));
        };
        Box::new(Copied {
            parts: client.fetch(node, Kind::COPY, Lane::Copy, request, None),
            last_nanos: env.monotonic_nanos(),
            env: env.clone(),
            is_wanted,
        })
    }
}

/// The parts of a copy that another node sends.
struct Copied<'a> {
    env: Arc<dyn Env>,
    parts: ilion_internode::Parts,
    is_wanted: &'a dyn Fn() -> bool,
    /// When the last part came, on the monotonic clock.
    last_nanos: u64,
}

impl Iterator for Copied<'_> {
    type Item = Result<Bytes, String>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let now = self.env.monotonic_nanos();
            match self.parts.next_part(now.saturating_add(nanos(LOOK_UP))) {
                Ok(part) => {
                    self.last_nanos = now;
                    return part.map(Ok);
                }
                Err(CallError::TimedOut) if !(self.is_wanted)() => {
                    return Some(Err("this node stops".to_owned()));
                }
                Err(CallError::TimedOut) if now.saturating_sub(self.last_nanos) < nanos(SILENCE_MAX) => {}
                Err(error) => return Some(Err(error.to_string())),
            }
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Sends copies of tablets to other nodes.
struct CopyService(Weak<Member>);

impl Service for CopyService {
    fn answer(&self, request: Bytes, _call: &ServedCall) -> Result<Served, ServiceError> {
        let member = self.0.upgrade();
        let member = member.ok_or_else(|| ServiceError::Refused("the node stops".to_owned()))?;
        let parts = member.copy_for(&request).map_err(ServiceError::Refused)?;
        let parts = parts.map(|part| part.map_err(ServiceError::Failed));
        Ok(Served::Parts(Box::new(parts)))
    }
}

/// Executes commands of other nodes.
struct CommandService(Weak<Member>);

impl Service for CommandService {
    fn answer(&self, request: Bytes, _call: &ServedCall) -> Result<Served, ServiceError> {
        let member = self.0.upgrade();
        let member = member.ok_or_else(|| ServiceError::Refused("the node stops".to_owned()))?;
        Ok(Served::Whole(member.execute_for(&request).into()))
    }
}

/// The URL of the logs; `None` for a single node.
pub fn log_url(settings: &Settings) -> Option<&Url> {
    match &settings.log {
        LogPlace::Local => None,
        LogPlace::Kafka(url) => Some(url),
    }
}
