//! `ilion serve`: loads the settings, opens log, ports, node and server, waits for a signal, and closes them in reverse order.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use ilion_engine::Engine;
use ilion_env::{Env, RealEnv, raise_descriptor_limit, use_small_pages};
use ilion_internode::StoragePort;
use ilion_node::{OpenError, Opening, ReplayProgress};
use ilion_server::admin::{Admin as _, AdminDoor, DoorOptions, EngineAdmin, RoleLogins};
use ilion_server::{
    Certificates, ClientPorts, Entrance, Exposure, FirstStart, NewSuperuser, Port, Progress, Server,
    ServerNode, ServerOptions, StartSignals, Starting, StopSignals, SuperuserChoice, check_exposure,
    reopen_log, start_logging,
};
use ilion_settings::{Authenticator, Loaded, LogFormat, LogTarget, SETTINGS, Settings};

use sd_notify::NotifyState;

use crate::Failure;
use crate::cli::ServeArguments;
use crate::cluster::{Cluster, join, log_url, storage_address};

/// How long the server waits for clients to read their answers when it stops.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a node until a signal stops it.
pub fn run(arguments: &ServeArguments) -> Result<(), Failure> {
    let real = RealEnv::new();
    let env: Arc<dyn Env> = real.clone();
    let loaded = load(&*env, arguments)?;
    let settings = loaded.settings;
    let exposure = match arguments.insecure {
        true => Exposure::Accepted,
        false => Exposure::Refused,
    };
    check_exposure(&settings, exposure).map_err(Failure::Usage)?;
    let superuser =
        SuperuserChoice::of(&*env, std::env::vars_os()).map_err(|error| Failure::Usage(error.to_string()))?;
    real.set_umask(settings.umask.0);
    let log_path = start_logging(&env, &settings).map_err(Failure::Failed)?;
    let start_signals = StartSignals::watch().map_err(failed("cannot wait for signals"))?;
    let began = env.monotonic_nanos();
    tell_start(&settings);
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    use_small_pages();
    if let Some(descriptors) = raise_descriptor_limit() {
        tracing::info!(descriptors, "files and sockets that may be open");
    }
    let door_options = DoorOptions::of(&env, &settings).map_err(|error| Failure::Usage(error.to_string()))?;
    let is_door_encrypted = door_options.is_encrypted();
    let options = ServerOptions::of(&settings);
    let admin_address = SocketAddr::new(settings.admin_address, settings.admin_port);
    let ports = ClientPorts::take(&options).map_err(failed("cannot start"))?;
    let admin_port = Port::take(Entrance::Administration, admin_address).map_err(failed("cannot start"))?;
    let progress = Arc::<StartProgress>::default();
    let told: Progress = Arc::new({
        let progress = progress.clone();
        move || progress.to_string()
    });
    let starting = Starting::begin((&ports, &options), (&admin_port, &door_options), &told)
        .map_err(failed("cannot start"))?;
    let first_start = FirstStart::find(&*env, &settings).map_err(failed("cannot prepare the first start"))?;
    let opened = open(&env, &settings, &progress);
    let (node, cluster) = opened.map_err(|error| match error {
        OpenError::Settings(_) => Failure::Usage(error.to_string()),
        error => failed("cannot open the data directory")(error),
    })?;
    let created = node
        .ensure_superuser(&superuser, &settings.directory)
        .map_err(failed("cannot create the first superuser"))?;
    if let Some(created) = created {
        tell_superuser(&created);
    }
    if let Some(first_start) = first_start {
        first_start
            .run(&node)
            .map_err(failed("cannot finish the first start"))?;
    }
    // Watch signals before the port is open: a client that can connect may also send a signal.
    let signals = StopSignals::watch().map_err(failed("cannot wait for signals"))?;
    drop(start_signals);
    drop(starting);
    let server = node.serve_at(ports, &options).map_err(failed("cannot start"))?;
    let certificates = match &cluster {
        Some(cluster) => cluster.certificates(server.certificates()),
        None => server.certificates(),
    };
    let admin = EngineAdmin::new(&node, &server, &settings)
        .with_certificates(certificates.clone())
        .with_reloading(reloading(&env, arguments))
        .with_stopping(signals.order())
        .with_salvaging(|env, data, directory| {
            ilion_tools::sstable::salvage(env, data, directory).map_err(|error| format!("{error:#}"))
        });
    let admin = match &cluster {
        Some(cluster) => {
            cluster.close_when_left(server.entry());
            admin.with_ring(cluster.ring()).with_cluster(cluster.probe())
        }
        None => admin,
    };
    let admin = Arc::new(admin);
    if let Some(telemetry) = &node.observers().telemetry {
        let admin = Arc::downgrade(&admin);
        telemetry.send_metrics_of(move || Some(admin.upgrade()?.metrics()));
    }
    let roles = RoleLogins::of(&node, &server);
    let door = AdminDoor::open(admin_port, door_options, roles, admin).map_err(failed("cannot start"))?;
    tell_serving(&node, &server, &door, env.monotonic_nanos().saturating_sub(began));
    let scheme = if is_door_encrypted { "https" } else { "http" };
    let page = format!("{scheme}://{}", door.address());
    // Whoever collects the output of a container expects that each line is a JSON object.
    let logs_to_stderr_only = settings.log_to.targets().eq([LogTarget::Stderr]);
    if !(logs_to_stderr_only && settings.log_format == LogFormat::Json) {
        greet(&settings, &server, &page, log_path.as_deref());
    }
    tell_service_manager(&[NotifyState::Ready]);
    let signal = signals
        .wait(|| hang_up(&certificates))
        .map_err(failed("cannot wait for signals"))?;
    let began = env.monotonic_nanos();
    tracing::info!(signal, "stopping");
    tell_service_manager(&[NotifyState::Stopping]);
    node.end_long_reads();
    server.stop(PATIENCE);
    if let Some(telemetry) = &node.observers().telemetry {
        telemetry.stop();
    }
    drop(door);
    if let Some(cluster) = cluster {
        cluster.stop();
    }
    node.engine().drain().map_err(failed("cannot drain"))?;
    // Dropping the node ends its background threads, which may still log.
    drop(node);
    let millis = env.monotonic_nanos().saturating_sub(began) / 1_000_000;
    tracing::info!(millis, "stopped");
    Ok(())
}

/// How far the start is.
#[derive(Default)]
pub struct StartProgress {
    replay: Arc<ReplayProgress>,
    /// In a cluster, after the data directory was opened.
    is_joining: AtomicBool,
}

impl fmt::Display for StartProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_joining.load(Relaxed) {
            false => self.replay.fmt(f),
            true => f.write_str("it joins its cluster, and copies the data that it lacks from other nodes"),
        }
    }
}

/// Opens the node, alone or as a member of a cluster.
///
/// # Errors
/// The settings do not fit to each other or to the data directory, it cannot be opened, or the node cannot join its cluster.
pub fn open(
    env: &Arc<dyn Env>,
    settings: &Settings,
    progress: &StartProgress,
) -> Result<(ServerNode, Option<Cluster>), OpenError> {
    let opening = Opening {
        progress: progress.replay.clone(),
        ..Opening::default()
    };
    let Some(url) = log_url(settings) else {
        if settings.replace_address_first_boot.is_some() {
            return Err(OpenError::Settings(
                "replace_address_first_boot: there is no other node to replace, since this one has no log of a cluster (--log)".to_owned(),
            ));
        }
        let node = ServerNode::open_alone(env.clone(), settings, opening)?;
        return Ok((node, None));
    };
    let port = StoragePort::take(storage_address(settings));
    let port = port.map_err(|error| OpenError::Cluster(error.to_string()))?;
    let mut cluster = None;
    let over = |engine: &Arc<Engine>, local| {
        progress.is_joining.store(true, Relaxed);
        let (joined, store) = join(settings, url, port, engine, local)?;
        cluster = Some(joined);
        Ok(store)
    };
    let node = ServerNode::open_over(env.clone(), settings, opening, over)?;
    if let Some(cluster) = &cluster {
        cluster.show(&node)?;
    }
    Ok((node, cluster))
}

/// The environment and settings for work on the data directory of a stopped node, which must exist.
pub fn of_stopped_node(arguments: &ServeArguments) -> Result<(Arc<dyn Env>, Settings), Failure> {
    let real = RealEnv::new();
    let env: Arc<dyn Env> = real.clone();
    let settings = load(&*env, arguments)?.settings;
    real.set_umask(settings.umask.0);
    let data = settings.data_path();
    if !env.exists(&data) {
        return Err(Failure::Failed(format!(
            "there is no data directory {}",
            absolute(&data).display()
        )));
    }
    Ok((env, settings))
}

/// Reports these states to systemd, if it has started the node (`Type=notify`).
fn tell_service_manager(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(false, states) {
        tracing::warn!(%error, "the service manager cannot be told");
    }
}

/// Returns a function that reads all sources of the settings again, for `ilion reload`.
fn reloading(
    env: &Arc<dyn Env>,
    arguments: &ServeArguments,
) -> impl Fn() -> Result<Loaded, String> + Send + Sync + use<> {
    let (env, arguments) = (env.clone(), arguments.clone());
    move || load(&*env, &arguments).map_err(|failure| failure.to_string())
}

/// On SIGHUP, opens the log file again, which may have been renamed, and reads the certificates again.
fn hang_up(certificates: &Certificates) {
    match reopen_log() {
        Ok(()) => tracing::info!("SIGHUP: the log file was opened again"),
        Err(error) => tracing::error!("the log file cannot be opened again: {error}"),
    }
    if let Err(error) = certificates.reload() {
        tracing::error!(%error, "certificates cannot be used: the old ones stay in use");
    }
}

/// Logs the version, the directories, and settings that differ from their defaults.
fn tell_start(settings: &Settings) {
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        pid = std::process::id(),
        data = %absolute(&settings.data_path()).display(),
        commitlog = %absolute(&settings.commitlog_path()).display(),
        "Ilion starts"
    );
    let chosen: Vec<String> = SETTINGS
        .iter()
        .zip(settings.printed())
        .filter(|(setting, (_, value))| setting.default != value)
        .map(|(_, (name, value))| format!("{name}={value}"))
        .collect();
    match chosen.is_empty() {
        true => tracing::info!("all settings have their defaults"),
        false => tracing::info!("settings that differ from their defaults: {}", chosen.join(", ")),
    }
}

/// Logs that the first superuser was created, and where its password is.
fn tell_superuser(created: &NewSuperuser) {
    let role = &created.role;
    match &created.password_file {
        None => tracing::info!(
            role,
            "created the first superuser, with the password that was given"
        ),
        Some(path) => {
            let path = absolute(path);
            tracing::info!(
                role,
                password_file = %path.display(),
                "created the first superuser; read its password in the file, log in, change it and remove the file"
            );
        }
    }
}

fn tell_serving(node: &ServerNode, server: &Server, door: &AdminDoor, elapsed_nanos: u64) {
    let tables = node.engine().table_facts();
    tracing::info!(
        cql = %server.address(),
        admin = %door.address(),
        tables = tables.len(),
        sstables = tables.iter().map(|table| table.sstables).sum::<u64>(),
        sstable_bytes = tables.iter().map(|table| table.sstable_bytes).sum::<u64>(),
        millis = elapsed_nanos / 1_000_000,
        "serving"
    );
    // Compat: programs wait for this line of Cassandra's log (CassandraDaemon), Testcontainers for one.
    tracing::info!("Startup complete");
}

/// Logs an error, also to stderr, while the log is open.
fn failed<E: std::error::Error>(doing: &'static str) -> impl Fn(E) -> Failure {
    move |error| {
        tracing::error!("{doing}: {error}");
        Failure::Logged
    }
}

/// The settings of all sources: file, environment, flags, `--set`. Later sources win.
pub fn load(env: &dyn Env, arguments: &ServeArguments) -> Result<Loaded, Failure> {
    let mut loaded = Loaded::default();
    let usage = |error: ilion_settings::SettingsError| Failure::Usage(error.to_string());
    if let Some(path) = &arguments.config {
        loaded.add_file(env, path).map_err(usage)?;
    }
    loaded.add_environment(std::env::vars_os()).map_err(usage)?;
    for (flag, name, value) in arguments.flags() {
        loaded.set(name, &value, || flag.to_owned()).map_err(usage)?;
    }
    for assignment in &arguments.set {
        loaded.set_assignment(assignment).map_err(usage)?;
    }
    Ok(loaded)
}

/// Prints where the node listens, and where it keeps its data.
#[expect(clippy::print_stdout, reason = "what the operator wants to know first")]
fn greet(settings: &Settings, server: &Server, page: &str, log_path: Option<&Path>) {
    let address = server.address();
    println!(
        "Ilion {} keeps its data in {}, its commit log in {}.",
        env!("CARGO_PKG_VERSION"),
        absolute(&settings.data_path()).display(),
        absolute(&settings.commitlog_path()).display(),
    );
    println!(
        "CQL clients connect to {address}, for instance: cqlsh {}{} {}",
        match settings.authenticator {
            Authenticator::AllowAll | Authenticator::MutualTls => "",
            Authenticator::Password | Authenticator::MutualTlsWithPasswordFallback => "-u ROLE ",
        },
        address.ip(),
        address.port()
    );
    if let Some(address) = server.encrypted_address() {
        println!("Clients that encrypt connect to {address}.");
    }
    let place = match log_path {
        Some(path) => format!("The log is in {}; dashboard", absolute(path).display()),
        None => "Dashboard".to_owned(),
    };
    println!("{place}, metrics and administration at {page}.");
}

pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}
