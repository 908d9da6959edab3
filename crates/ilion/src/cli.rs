//! The command line.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use ilion_settings::parse_address;
use uuid::Uuid;

/// A Cassandra-compatible column-family store.
///
/// Exit codes: 0 success; 1 failure, with the reason on stderr; 2 wrong arguments or settings; 130 ended by a second signal.
#[derive(Parser)]
#[command(name = "ilion", version, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand)]
pub enum Command {
    /// Runs a node until SIGINT or SIGTERM.
    Serve(ServeArguments),
    /// A shell for CQL, on a server or on a data directory; cqlsh's commands work in it.
    Cql(Box<ilion_shell::ShellArgs>),
    /// Prints the state of a running node and its tables, and the members of its cluster.
    Status(AdminArguments),
    /// Prints the tokens of the ring, each with its node.
    Ring(RingArguments),
    /// Checks whether a running node serves clients and accepts writes; exit code 1 if not. For health checks: it needs no login.
    Ready(ReadyArguments),
    /// Prints identity, versions, addresses and directories of a running node.
    Info(AdminArguments),
    /// Writes memtables to disk, and waits for it.
    Flush(TableArguments),
    /// Runs a major compaction of tables, or compacts some SSTables, and waits for it.
    Compact(CompactArguments),
    /// Lists running compactions, and tables in which compactions are due.
    Compactions(AdminArguments),
    /// Stops compactions; their inputs stay in use.
    Stop(StopArguments),
    /// Switches automatic compaction on or off, until the next start.
    Autocompaction(AutocompactionArguments),
    /// Limits how fast all compactions together read, until the next start.
    CompactionThroughput(ThroughputArguments),
    /// Empties caches: rows, counters, keys or chunks, or all of them.
    InvalidateCaches(CacheArguments),
    /// Changes the size of a cache, until the next start.
    SetCacheCapacity(CacheCapacityArguments),
    /// Changes how many keys of a cache are saved, until the next start.
    SetCacheKeysToSave(CacheKeysArguments),
    /// Lists the costs of statements, those that took most time first; or resets them (reset).
    Statements(StatementsArguments),
    /// Prints or sets the share of requests that are traced without being asked to, until the next start.
    TraceProbability(TraceProbabilityArguments),
    /// Prints statistics of tables: sizes, reads and writes.
    TableStats(TableArguments),
    /// Prints percentiles of tables: latencies, SSTables per read, sizes and cells of partitions.
    TableHistograms(TableArguments),
    /// Rebuilds an index, or compares it with its table.
    #[command(subcommand)]
    Index(IndexCommand),
    /// Samples for a while which partitions are read and written most.
    TopPartitions(TopPartitionsArguments),
    /// Backs up a node to a directory or an object store, and restores it; without a command, shows whether incremental backups are on.
    Backup(Box<BackupArguments>),
    /// Reads the changes of a table WITH cdc = true.
    #[command(subcommand)]
    Cdc(CdcCommand),
    /// Switches the audit log on or off, until the next start; or prints its state.
    AuditLog(AuditLogArguments),
    /// Lists the compactions of the last week, the last one first.
    CompactionHistory(AdminArguments),
    /// Prints the threads of the node and their queues.
    ThreadPools(AdminArguments),
    /// Counts the connected clients, or lists their connections (--all).
    Clients(ClientsArguments),
    /// Prints the directories of tables.
    DataPaths(DataPathsArguments),
    /// Prints the SSTables that may have a partition.
    GetSstables(GetSstablesArguments),
    /// Takes a snapshot of tables: hard links of their files, under a tag.
    Snapshot(SnapshotArguments),
    /// Lists snapshots, and the space that they take.
    #[command(visible_alias = "listsnapshots")]
    ListSnapshots(ListSnapshotsArguments),
    /// Removes snapshots.
    #[command(visible_alias = "clearsnapshot")]
    ClearSnapshot(ClearSnapshotArguments),
    /// Flushes everything, so that the next start has nothing to replay.
    Drain(AdminArguments),
    /// Makes a running node read its settings file again and adopt what can be changed while it runs. Exit code 1 if some need a restart.
    Reload(AdminArguments),
    /// Gives the data of a node of a cluster to the others, and takes it out of the cluster.
    Decommission(DecommissionArguments),
    /// Takes a lost node out of the cluster; others copy its data from other replicas.
    #[command(visible_alias = "removenode")]
    RemoveNode(RemoveNodeArguments),
    /// Spreads the slices of the ring evenly over the nodes of each data center.
    Rebalance(AdminArguments),
    /// Gives up the change of the ring that is under way.
    CancelRingChange(AdminArguments),
    /// Removes the data of slices of the ring that a node does not hold any more.
    Cleanup(AdminArguments),
    /// Sets passwords on a stopped node.
    #[command(subcommand)]
    Auth(AuthCommand),
    /// Benchmarks any CQL server over the socket, or Ilion in this process.
    #[command(subcommand)]
    Bench(ilion_tools::bench::Command),
    /// Inspects, checks and converts SSTable files; exports and imports them.
    #[command(subcommand)]
    Sstable(SstableCommand),
}

/// Arguments of `decommission`.
#[derive(Args)]
pub struct DecommissionArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// Also if a keyspace then has fewer replicas than it wants.
    #[arg(short, long)]
    pub force: bool,
}

/// Arguments of `remove-node`.
#[derive(Args)]
pub struct RemoveNodeArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// The host id of the lost node (see nodetool status), or `status` to see what is under way.
    #[arg(value_name = "HOST_ID|status")]
    pub node: String,
}

/// What to do with SSTable files. All but import and export need no node.
#[derive(Subcommand)]
pub enum SstableCommand {
    #[command(flatten)]
    Offline(ilion_tools::sstable::Command),
    /// Exports the SSTables of a table of a running node on this machine to a directory, as hard links if possible.
    Export(ExportArguments),
    /// Imports the SSTables of a directory into a table of a running node on this machine; exit code 1 if it refused some.
    Import(ImportArguments),
    /// Loads the SSTables of directories into a running node, which may be on another machine; exit code 1 if it refused some.
    Load(LoadArguments),
}

/// Arguments of `sstable export`.
#[derive(Args)]
pub struct ExportArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// Converts the SSTables to this format [default: no conversion].
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<ilion_tools::sstable::OutputFormat>,
    /// The table's keyspace.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// An empty directory; created if absent.
    #[arg(value_name = "OUT_DIR")]
    pub directory: PathBuf,
}

/// Arguments of `sstable import`.
#[derive(Args)]
pub struct ImportArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// Keeps the files; without it, files that were imported are removed.
    #[arg(long)]
    pub copy_data: bool,
    /// The table's keyspace.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// A directory with SSTables of the table.
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// Arguments of `sstable load`.
#[derive(Args)]
pub struct LoadArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// The table's keyspace [default: as the path of each directory says: KEYSPACE/TABLE or KEYSPACE/TABLE-ID].
    #[arg(long, value_name = "NAME")]
    pub keyspace: Option<String>,
    /// The table [default: as the path of each directory says].
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// Most MiB per second [default: no limit].
    #[arg(long, value_name = "MIB_PER_SEC", value_parser = clap::value_parser!(u64).range(1..))]
    pub throttle: Option<u64>,
    /// Directories with SSTables; also snapshots of a table.
    #[arg(value_name = "DIR", required = true)]
    pub directories: Vec<PathBuf>,
}

/// Arguments of `serve`.
#[derive(Args, Clone, Default)]
#[command(
    after_help = "Flags beat ILION_* variables, which beat the file. docs/settings.md lists all settings."
)]
pub struct ServeArguments {
    /// Directory of data, commit log and logs [default: ilion-data].
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Port for CQL clients; 0 is any free port [default: 9042].
    #[arg(long)]
    pub port: Option<u16>,
    /// Address for CQL clients [default: 127.0.0.1].
    #[arg(long, value_name = "IP")]
    pub address: Option<IpAddr>,
    /// Port for dashboard, metrics and administration; 0 is any free port [default: 9043].
    #[arg(long, value_name = "PORT")]
    pub admin_port: Option<u16>,
    /// Where writes are logged: local for a single node, or kafka://HOST:PORT,HOST:PORT/NAME for a node of the cluster NAME [default: local].
    #[arg(long, value_name = "LOG")]
    pub log: Option<String>,
    /// Settings file (YAML, with the names of cassandra.yaml).
    #[arg(long, value_name = "FILE", env = "ILION_CONFIG")]
    pub config: Option<PathBuf>,
    /// A setting by its name in the file; may be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Accepts connections from other machines even though no login is needed.
    #[arg(long)]
    pub insecure: bool,
}

/// What to do with changes.
#[derive(Subcommand)]
pub enum CdcCommand {
    /// Prints the changes of a table, one line each, and waits for further ones.
    Tail(Box<CdcTailArguments>),
    /// Sends the changes of tables into topics of Kafka: at least once, each partition in order.
    Sink(Box<CdcSinkArguments>),
    /// Lists named consumers of changes: how far they are, and how far behind.
    Consumers(AdminArguments),
    /// Removes segments of the commit log whose changes all named consumers have processed.
    Release(CdcReleaseArguments),
    /// Forgets a named consumer: its position is lost, and segments are no longer kept for it.
    Forget(CdcForgetArguments),
}

/// Arguments of `cdc release`.
#[derive(Args)]
pub struct CdcReleaseArguments {
    /// Removes segments before this position, whatever consumers have processed.
    #[arg(long, value_name = "POSITION")]
    pub before: Option<String>,
    #[command(flatten)]
    pub admin: AdminArguments,
}

/// Arguments of `cdc forget`.
#[derive(Args)]
pub struct CdcForgetArguments {
    /// The consumer.
    #[arg(value_name = "CONSUMER")]
    pub consumer: String,
    #[command(flatten)]
    pub admin: AdminArguments,
}

/// Logins at brokers of Kafka.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum SaslMechanism {
    /// PLAIN.
    Plain,
    /// SCRAM-SHA-256.
    #[value(name = "scram-sha-256")]
    ScramSha256,
    /// SCRAM-SHA-512.
    #[value(name = "scram-sha-512")]
    ScramSha512,
}

/// Arguments of `cdc sink`.
#[derive(Args)]
pub struct CdcSinkArguments {
    /// Brokers, and what the names of topics begin with: the topic of a table is PREFIX.KEYSPACE.TABLE.
    #[arg(value_name = "kafka://HOST:PORT,HOST:PORT/PREFIX")]
    pub url: String,
    /// The tables, as KEYSPACE.TABLE.
    #[arg(value_name = "KEYSPACE.TABLE", required = true)]
    pub tables: Vec<String>,
    /// The name under which the node keeps how far this sink is [default: PREFIX].
    #[arg(long, value_name = "NAME")]
    pub consumer: Option<String>,
    /// Begins anew there: earliest, latest, or a position [default: where the consumer stopped, or the earliest].
    #[arg(long, value_name = "PLACE")]
    pub from: Option<String>,
    /// Ends with the last change that was acknowledged when it began.
    #[arg(long)]
    pub once: bool,
    /// Removes segments of the commit log as soon as all named consumers have processed them.
    #[arg(long)]
    pub release: bool,
    /// Creates topics that do not exist, with the replication factor that the brokers have by default.
    #[arg(long)]
    pub create_topics: bool,
    /// With --create-topics: the number of partitions [default: that of the brokers].
    #[arg(long, value_name = "N", requires = "create_topics", value_parser = clap::value_parser!(u32).range(1..))]
    pub partitions: Option<u32>,
    /// If a broker does not answer within this time, the request is sent again over another connection.
    #[arg(long, value_name = "MS", default_value_t = 15_000, value_parser = clap::value_parser!(u64).range(100..))]
    pub request_timeout_ms: u64,
    /// Sends Avro instead of JSON: the registry that gives its schemas numbers, as Confluent's serializers write them.
    #[arg(long, value_name = "URL")]
    pub schema_registry: Option<String>,
    /// Logs in to the registry as this user.
    #[arg(long, value_name = "USER", requires_all = ["schema_registry", "schema_registry_password_file"])]
    pub schema_registry_user: Option<String>,
    /// A file with its password.
    #[arg(long, value_name = "FILE", requires = "schema_registry_user")]
    pub schema_registry_password_file: Option<PathBuf>,
    /// PEM file with the certificates of the issuers of the registry's certificate [default: the issuers that the system trusts].
    #[arg(long, value_name = "FILE", requires = "schema_registry")]
    pub schema_registry_ca: Option<PathBuf>,
    /// Encrypts connections to the brokers, whose certificates must come from issuers that the system trusts.
    #[arg(long)]
    pub tls: bool,
    /// Encrypts connections to the brokers: PEM file with the certificates of the issuers of the brokers' certificates.
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
    /// Logs in to the brokers as this user.
    #[arg(long, value_name = "USER", requires = "sasl_password_file")]
    pub sasl_username: Option<String>,
    /// A file with its password.
    #[arg(long, value_name = "FILE", requires = "sasl_username")]
    pub sasl_password_file: Option<PathBuf>,
    /// How the client proves its password to the brokers. PLAIN sends the password, so it is safe over encrypted connections only.
    #[arg(long, value_enum, value_name = "MECHANISM", default_value = "plain")]
    pub sasl: SaslMechanism,
    #[command(flatten)]
    pub admin: AdminArguments,
}

/// How a change is printed.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum ChangeFormat {
    /// JSON, in the envelope of Debezium's connector for Cassandra.
    Json,
    /// The same in Avro: an object container file.
    Avro,
}

/// Arguments of `cdc tail`.
#[derive(Args)]
pub struct CdcTailArguments {
    /// The table, as KEYSPACE.TABLE.
    #[arg(value_name = "KEYSPACE.TABLE")]
    pub table: String,
    /// Where to begin: earliest, latest, or a position (`resume` of the last change that was processed).
    #[arg(long, value_name = "PLACE", default_value = "latest")]
    pub from: String,
    /// How a change is printed.
    #[arg(long, value_enum, default_value = "json")]
    pub format: ChangeFormat,
    /// Ends with the last change that was acknowledged when it began.
    #[arg(long)]
    pub once: bool,
    /// Reads the files of a stopped node in this directory, then ends. The directory is opened as by a start: the log is replayed.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// With --data: settings file (YAML, with the names of cassandra.yaml).
    #[arg(long, value_name = "FILE", env = "ILION_CONFIG")]
    pub config: Option<PathBuf>,
    /// With --data: a setting by its name in the file; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", requires = "data")]
    pub set: Vec<String>,
    #[command(flatten)]
    pub admin: AdminArguments,
}

/// What to do with roles.
#[derive(Subcommand)]
pub enum AuthCommand {
    /// Gives a role a new password, for an operator who has lost it. The node must be stopped. A node of a cluster needs its settings
    /// (--config) and joins the cluster meanwhile: all nodes get the password. Without --password-file and --stdin the password is a
    /// random one, and is printed.
    ResetPassword(ResetPasswordArguments),
}

/// Arguments of `auth reset-password`.
#[derive(Args)]
pub struct ResetPasswordArguments {
    /// Directory of data, commit log and logs [default: ilion-data].
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Settings file (YAML, with the names of cassandra.yaml).
    #[arg(long, value_name = "FILE", env = "ILION_CONFIG")]
    pub config: Option<PathBuf>,
    /// A setting by its name in the file; may be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// A file with the new password.
    #[arg(long, value_name = "FILE", conflicts_with = "stdin")]
    pub password_file: Option<PathBuf>,
    /// Reads the new password from stdin.
    #[arg(long)]
    pub stdin: bool,
    /// The role.
    pub role: String,
}

/// Arguments of `ready`.
#[derive(Args)]
pub struct ReadyArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// Checks only whether the process answers: a node that is alive but not ready needs no restart.
    #[arg(long)]
    pub alive: bool,
}

/// Arguments of `ring`.
#[derive(Args)]
pub struct RingArguments {
    /// Shows how much of this keyspace each node has.
    pub keyspace: Option<String>,
    #[command(flatten)]
    pub admin: AdminArguments,
}

/// Arguments that name a node.
#[derive(Args)]
pub struct AdminArguments {
    /// The node's admin_address.
    #[arg(long, visible_alias = "host", value_name = "IP", env = "ILION_ADMIN_ADDRESS", default_value = "127.0.0.1", value_parser = parse_address)]
    pub admin_address: IpAddr,
    /// The node's admin_port.
    #[arg(long, value_name = "PORT", env = "ILION_ADMIN_PORT", default_value_t = 9043)]
    pub admin_port: u16,
    /// The node's admin_token_file.
    #[arg(long, value_name = "FILE", env = "ILION_ADMIN_TOKEN_FILE", conflicts_with_all = ["username", "password", "password_file"])]
    pub admin_token_file: Option<PathBuf>,
    #[command(flatten)]
    pub login: LoginArguments,
    /// Encrypts requests; a PEM file with the certificate of the issuer of the node's certificate.
    #[arg(long, value_name = "FILE", env = "ILION_ADMIN_CA")]
    pub admin_ca: Option<PathBuf>,
    /// The name in the node's certificate [default: its admin_address].
    #[arg(
        long,
        value_name = "NAME",
        env = "ILION_ADMIN_HOST_NAME",
        requires = "admin_ca"
    )]
    pub admin_host_name: Option<String>,
    /// Prints JSON.
    #[arg(long)]
    pub json: bool,
}

/// The login at a node with logins.
#[derive(Args, Default)]
pub struct LoginArguments {
    /// Role to log in as.
    #[arg(short, long, value_name = "ROLE", env = "ILION_USERNAME")]
    pub username: Option<String>,
    /// Its password; other processes of the same machine can see it.
    #[arg(long, env = "ILION_PASSWORD", hide_env_values = true, requires = "username")]
    pub password: Option<String>,
    /// A file with a line for each role: its name, a blank and its password. With one line, --username may be left out.
    #[arg(
        long,
        value_name = "FILE",
        env = "ILION_PASSWORD_FILE",
        conflicts_with = "password"
    )]
    pub password_file: Option<PathBuf>,
}

/// Arguments of `invalidate-caches`.
#[derive(Args)]
pub struct CacheArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// rows, counters, keys, chunks or roles (with permissions and passwords) [default: all].
    pub cache: Option<String>,
}

/// Arguments of `set-cache-capacity`.
#[derive(Args)]
pub struct CacheCapacityArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// rows, counters, keys or chunks.
    pub cache: String,
    /// Size in MiB; 0 disables the cache.
    pub mebibytes: u64,
}

/// Arguments of `set-cache-keys-to-save`.
#[derive(Args)]
pub struct CacheKeysArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// rows, counters or keys.
    pub cache: String,
    /// Most keys to save; -1 is all.
    #[arg(allow_hyphen_values = true, value_parser = clap::value_parser!(i64).range(-1..))]
    pub keys: i64,
}

/// Arguments of `statements`.
#[derive(Args)]
pub struct StatementsArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// Number of statements to list.
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    pub top: usize,
    /// Resets the costs.
    #[arg(value_enum)]
    pub action: Option<StatementsAction>,
}

/// An action on the costs of statements.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum StatementsAction {
    Reset,
}

/// Arguments of `top-partitions`.
#[derive(Args)]
pub struct TopPartitionsArguments {
    #[command(flatten)]
    pub tables: TableArguments,
    /// Length of the sampling in milliseconds.
    #[arg(long, value_name = "MILLIS", default_value_t = 10_000)]
    pub duration: u64,
    /// Number of partitions in each list.
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub top: usize,
}

/// Arguments of `trace-probability`.
#[derive(Args)]
pub struct TraceProbabilityArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// From 0 (none) to 1 (all); without it, prints the current value.
    pub probability: Option<f64>,
}

/// Arguments that name tables of a node.
#[derive(Args)]
pub struct TableArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// Only tables of this keyspace.
    pub keyspace: Option<String>,
    /// Only this table.
    pub table: Option<String>,
}

/// Arguments of `compact`.
#[derive(Args)]
pub struct CompactArguments {
    #[command(flatten)]
    pub tables: TableArguments,
    /// Only SSTables with tokens above this one.
    #[arg(long, value_name = "TOKEN", allow_hyphen_values = true)]
    pub start_token: Option<String>,
    /// Only SSTables with tokens up to this one.
    #[arg(long, value_name = "TOKEN", allow_hyphen_values = true)]
    pub end_token: Option<String>,
    /// Writes several SSTables where the strategy would write one.
    #[arg(long)]
    pub split_output: bool,
    /// Only these SSTables: names or paths of Data.db.
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["start_token", "end_token", "split_output"])]
    pub user_defined: Vec<String>,
}

/// Arguments of `backup`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BackupArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    #[command(subcommand)]
    pub command: Option<BackupCommand>,
}

/// What to do with backups. DEST is a directory, or s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX.
#[derive(Subcommand)]
pub enum BackupCommand {
    /// Links each SSTable that is flushed into `backups/` of its table (incremental_backups), until the next start.
    On(AdminArguments),
    /// Links no more SSTables into `backups/`, until the next start.
    Off(AdminArguments),
    /// Backs up a node on this machine: all tables at one moment. Uploads only what the destination does not have.
    Create(CreateArguments),
    /// Uploads the archived commit log of a node on this machine (commitlog_archive_directory), for a restore to a point in time.
    Log(LogArguments),
    /// Lists backups.
    List(ListArguments),
    /// Reads backups back and compares all checksums; exit code 1 if something is damaged.
    Verify(VerifyArguments),
    /// Restores a node into a new directory, or tables into a node on this machine.
    Restore(RestoreArguments),
    /// Removes backups and the data that no other backup needs; without names, only data that no backup needs.
    Delete(DeleteArguments),
}

/// A node on this machine.
#[derive(Args)]
pub struct NodeArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// The node is stopped: its directory is opened, as a start would do.
    #[arg(long)]
    pub stopped: bool,
    /// With --stopped: directory of data, commit log and logs [default: ilion-data].
    #[arg(long, value_name = "DIR", requires = "stopped")]
    pub data: Option<PathBuf>,
    /// With --stopped: settings file (YAML, with the names of cassandra.yaml).
    #[arg(long, value_name = "FILE", requires = "stopped")]
    pub config: Option<PathBuf>,
    /// With --stopped: a setting by its name in the file; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", requires = "stopped")]
    pub set: Vec<String>,
}

/// Rate and parallelism of copying.
#[derive(Args)]
pub struct MoveArguments {
    /// Most MiB per second, all threads together [default: no limit].
    #[arg(long, value_name = "MIB_PER_SEC", value_parser = clap::value_parser!(u64).range(1..))]
    pub rate: Option<u64>,
    /// Chunks of 16 MiB that are copied at a time; each is in memory.
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub jobs: u16,
}

/// Arguments of `backup create`.
#[derive(Args)]
pub struct CreateArguments {
    #[command(flatten)]
    pub node: NodeArguments,
    #[command(flatten)]
    pub moved: MoveArguments,
    /// Name of the backup [default: its moment].
    #[arg(long)]
    pub name: Option<String>,
    /// Removes archived segments of the commit log from the archive once they are at the destination.
    #[arg(long)]
    pub prune_archive: bool,
    /// Where backups are.
    #[arg(value_name = "DEST")]
    pub destination: String,
}

/// Arguments of `backup log`.
#[derive(Args)]
pub struct LogArguments {
    #[command(flatten)]
    pub node: NodeArguments,
    #[command(flatten)]
    pub moved: MoveArguments,
    /// Removes archived segments from the archive once they are at the destination.
    #[arg(long)]
    pub prune_archive: bool,
    /// Where backups are.
    #[arg(value_name = "DEST")]
    pub destination: String,
}

/// Arguments of `backup list`.
#[derive(Args)]
pub struct ListArguments {
    /// Prints JSON.
    #[arg(long)]
    pub json: bool,
    /// Where backups are.
    #[arg(value_name = "DEST")]
    pub destination: String,
}

/// Arguments of `backup verify`.
#[derive(Args)]
pub struct VerifyArguments {
    #[command(flatten)]
    pub moved: MoveArguments,
    /// Prints JSON.
    #[arg(long)]
    pub json: bool,
    /// Where backups are.
    #[arg(value_name = "DEST")]
    pub destination: String,
    /// The backups [default: all, and the archived commit log].
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
}

/// Arguments of `backup delete`.
#[derive(Args)]
pub struct DeleteArguments {
    /// Deletes even if the mark of a running backup exists: for a backup that was killed and will not be run again.
    #[arg(long)]
    pub force: bool,
    /// Prints JSON.
    #[arg(long)]
    pub json: bool,
    /// Where backups are.
    #[arg(value_name = "DEST")]
    pub destination: String,
    /// The backups.
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
}

/// Arguments of `backup restore`.
#[derive(Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["into", "keyspace"]))]
pub struct RestoreArguments {
    #[command(flatten)]
    pub node: NodeArguments,
    #[command(flatten)]
    pub moved: MoveArguments,
    /// Restores the node into this directory, which must be empty or absent; then: ilion serve --data DIR.
    #[arg(long, value_name = "DIR")]
    pub into: Option<PathBuf>,
    /// Restores tables of this keyspace into a node on this machine.
    #[arg(long, value_name = "NAME")]
    pub keyspace: Option<String>,
    /// Only this table.
    #[arg(long, value_name = "NAME", requires = "keyspace")]
    pub table: Option<String>,
    /// Another name for the table, perhaps in another keyspace.
    #[arg(
        long = "as",
        value_name = "[KEYSPACE.]NAME",
        requires = "table",
        conflicts_with = "merge"
    )]
    pub renamed: Option<String>,
    /// Adds the rows to an existing table; later writes and deletions win.
    #[arg(long, requires = "keyspace")]
    pub merge: bool,
    /// Directory for the files before the node imports them [default: beside the node's data directory].
    #[arg(long, value_name = "DIR", requires = "keyspace")]
    pub scratch: Option<PathBuf>,
    /// Restores the state of this time (2026-11-24T05:30:00Z), or `latest`: the end of the archived commit log [default: the backup itself].
    #[arg(long, value_name = "TIME", conflicts_with = "name")]
    pub to: Option<String>,
    /// The node that was backed up, if the destination has several.
    #[arg(long, value_name = "ID")]
    pub of_node: Option<Uuid>,
    /// Where backups are.
    #[arg(value_name = "DEST")]
    pub destination: String,
    /// The backup [default: the newest one].
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}

/// Arguments of `audit-log`. Without an option, the node's setting applies.
#[derive(Args)]
pub struct AuditLogArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// on or off; without it, prints the current state.
    #[arg(value_enum)]
    pub switch: Option<Switch>,
    /// FileAuditLogger.
    #[arg(long)]
    pub logger: Option<String>,
    /// Only statements in these keyspaces, with commas.
    #[arg(long)]
    pub included_keyspaces: Option<String>,
    /// No statements in these keyspaces.
    #[arg(long)]
    pub excluded_keyspaces: Option<String>,
    /// Only these categories, of QUERY, DML, DDL, DCL, OTHER, AUTH, ERROR, PREPARE.
    #[arg(long)]
    pub included_categories: Option<String>,
    /// Not these categories.
    #[arg(long)]
    pub excluded_categories: Option<String>,
    /// Only requests of these roles.
    #[arg(long)]
    pub included_users: Option<String>,
    /// No requests of these roles.
    #[arg(long)]
    pub excluded_users: Option<String>,
}

/// Arguments of `clients`.
#[derive(Args)]
pub struct ClientsArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// Lists the connections.
    #[arg(long)]
    pub all: bool,
}

/// Arguments of `data-paths`.
#[derive(Args)]
pub struct DataPathsArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// Only these tables, as KEYSPACE or KEYSPACE.TABLE [default: all].
    #[arg(value_name = "TABLE")]
    pub tables: Vec<String>,
}

/// Arguments of `get-sstables`.
#[derive(Args)]
pub struct GetSstablesArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// The key is hexadecimal.
    #[arg(long)]
    pub hex_format: bool,
    /// The table's keyspace.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// The partition key as text; parts of a composite one separated by colons.
    #[arg(allow_hyphen_values = true)]
    pub key: String,
}

/// Arguments of `snapshot`.
#[derive(Args)]
pub struct SnapshotArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// Name of the snapshot [default: milliseconds since 1970].
    #[arg(short, long, value_name = "TAG")]
    pub tag: Option<String>,
    /// How long it is kept, such as 30d or 12h; at least 60s [default: until it is cleared].
    #[arg(long, value_name = "DURATION")]
    pub ttl: Option<String>,
    /// Leaves out data that is only in memory (also -sf).
    #[arg(long)]
    pub skip_flush: bool,
    /// Only this table, of one keyspace (also -cf).
    #[arg(long, value_name = "TABLE", alias = "column-family")]
    pub table: Option<String>,
    /// Only these tables, as KEYSPACE.TABLE, separated by commas (also -kt).
    #[arg(long, value_name = "LIST", aliases = ["kc-list", "kc.list"])]
    pub kt_list: Option<String>,
    /// Only tables of these keyspaces [default: all].
    #[arg(value_name = "KEYSPACE")]
    pub keyspaces: Vec<String>,
}

/// Arguments of `list-snapshots`.
#[derive(Args)]
pub struct ListSnapshotsArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// Leaves out snapshots that expire (also -nt).
    #[arg(long)]
    pub no_ttl: bool,
    /// Includes snapshots that Cassandra took for a repair.
    #[arg(short, long)]
    pub ephemeral: bool,
}

/// Arguments of `clear-snapshot`.
#[derive(Args)]
pub struct ClearSnapshotArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// Name of the snapshot.
    #[arg(short, long, value_name = "TAG")]
    pub tag: Option<String>,
    /// All snapshots, whatever their names.
    #[arg(long)]
    pub all: bool,
    /// Only those older than this, such as 30d; goes with --all.
    #[arg(long, value_name = "DURATION")]
    pub older_than: Option<String>,
    /// Only those taken before this instant, such as 2026-11-23T23:16:45Z; goes with --all.
    #[arg(long, value_name = "INSTANT")]
    pub older_than_timestamp: Option<String>,
    /// Only those of tables in these keyspaces [default: all].
    #[arg(value_name = "KEYSPACE")]
    pub keyspaces: Vec<String>,
}

/// An action on an index.
#[derive(Subcommand)]
pub enum IndexCommand {
    /// Rebuilds an index from its table, and waits for it; queries cannot use the index meanwhile.
    Rebuild(IndexArguments),
    /// Compares an index with its table, row by row and entry by entry, and reports differences.
    Verify(VerifyIndexArguments),
}

/// Arguments that name an index.
#[derive(Args)]
pub struct IndexArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub index: String,
}

/// Arguments of `index verify`.
#[derive(Args)]
pub struct VerifyIndexArguments {
    #[command(flatten)]
    pub index: IndexArguments,
    /// Repairs differences.
    #[arg(long)]
    pub repair: bool,
}

/// Arguments of `stop`.
#[derive(Args)]
pub struct StopArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// Only the compaction with this id, as listed by `ilion compactions`.
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
}

/// Arguments of `autocompaction`.
#[derive(Args)]
pub struct AutocompactionArguments {
    /// on or off.
    #[arg(value_enum)]
    pub switch: Switch,
    #[command(flatten)]
    pub tables: TableArguments,
}

/// On or off.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Switch {
    On,
    Off,
}

/// Arguments of `compaction-throughput`.
#[derive(Args)]
pub struct ThroughputArguments {
    #[command(flatten)]
    pub admin: AdminArguments,
    /// MiB per second; 0 is no limit.
    pub mebibytes_per_sec: u64,
}

impl ServeArguments {
    /// The settings given by flags: flag, name and value.
    pub fn flags(&self) -> Vec<(&'static str, &'static str, String)> {
        let mut flags = Vec::new();
        if let Some(data) = &self.data {
            flags.push(("--data", "directory", data.display().to_string()));
        }
        if let Some(port) = self.port {
            flags.push(("--port", "native_transport_port", port.to_string()));
        }
        if let Some(address) = self.address {
            flags.push(("--address", "rpc_address", address.to_string()));
        }
        if let Some(port) = self.admin_port {
            flags.push(("--admin-port", "admin_port", port.to_string()));
        }
        if let Some(log) = &self.log {
            flags.push(("--log", "log", log.clone()));
        }
        flags
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn no_two_options_of_a_command_have_one_name() {
        super::Cli::command().debug_assert();
    }
}
