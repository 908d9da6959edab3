//! All settings of Ilion. The struct, the defaults, the document and `system_views.settings` come from this list.
//!
//! A line is `name: type = "default"`, then old names in Cassandra, each with the unit of its bare numbers. The name itself may be
//! among them, if it also accepts bare numbers.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use ilion_auth::Secret;
use ilion_types::Partitioner;

use crate::choices::{
    AuditLogger, Authenticator, Authorizer, BlockSize, Categories, CertificateValidator, CidrAuthorizer,
    CidrMode, ClientCertificates, CommitLogSync, InternodeEncryption, LogFormat, LogTargets,
    NetworkAuthorizer, RoleManager, RollCycle, SSTableFormat, SSTableLookup, SaslMechanism,
    StorageCompatibility,
};
use crate::compaction::DefaultCompaction;
use crate::form::{Form, Limit, LogFilter, Names, Rate, Size, Umask};
use crate::log_place::{LogPlace, TabletCount};

/// Description of one setting.
pub struct Setting {
    /// Its name in the file.
    pub name: &'static str,
    /// Its default, as text.
    pub default: &'static str,
    /// Its description in the document.
    pub document: &'static str,
    /// Names in older versions of Cassandra, with the unit of their numbers.
    pub(crate) legacy: &'static [(&'static str, &'static str)],
    pub(crate) parse: fn(&mut Settings, &str) -> Result<(), String>,
    pub(crate) print: fn(&Settings) -> String,
    /// Copies the value of this setting from the first settings to the second ones.
    pub copy: fn(&Settings, &mut Settings),
    /// True if this setting has the same value in both. Also compares secrets, whose printed texts are all the same.
    pub is_same: fn(&Settings, &Settings) -> bool,
}

macro_rules! settings {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident: $form:ty = $default:literal $(, was $($legacy:literal in $unit:literal),+)?;
    )+) => {
        /// The value of each setting.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Settings {
            $($(#[doc = $doc])+ pub $name: $form,)+
        }

        /// All settings, in the order of the document.
        pub const SETTINGS: &[Setting] = &[$(
            Setting {
                name: stringify!($name),
                default: $default,
                document: concat!($($doc),+),
                legacy: &[$($(($legacy, $unit)),+)?],
                parse: |settings, text| {
                    settings.$name = Form::parse(text)?;
                    Ok(())
                },
                print: |settings| settings.$name.print(),
                copy: |from, to| to.$name.clone_from(&from.$name),
                is_same: |a, b| a.$name == b.$name,
            },
        )+];

        impl Default for Settings {
            fn default() -> Self {
                Self {
                    $($name: Form::parse($default).expect("the default parses"),)+
                }
            }
        }
    };
}

settings! {
    /// Name of the cluster; it must stay the same for a data directory.
    cluster_name: String = "Ilion";
    /// Directory for everything; the four settings below can move parts of it.
    directory: PathBuf = "ilion-data";
    /// Directory of the tables' files; a list of exactly one. auto: `data` in `directory`.
    data_file_directories: Option<PathBuf> = "auto";
    /// Directory of the commit log. auto: `commitlog` in `directory`.
    commitlog_directory: Option<PathBuf> = "auto";
    /// Directory of the keys of saved caches. auto: `saved_caches` in `directory`.
    saved_caches_directory: Option<PathBuf> = "auto";
    /// Directory of the log files. auto: `logs` in `directory`.
    log_directory: Option<PathBuf> = "auto";
    /// Directory of `.cql` files that the first start of a node executes, in the order of their names. auto: none.
    init_directory: Option<PathBuf> = "auto";
    /// Whether variables of the Cassandra image are settings, too: CASSANDRA_CLUSTER_NAME, CASSANDRA_DC, CASSANDRA_RACK, CASSANDRA_RPC_ADDRESS and so on.
    cassandra_variables: bool = "false";
    /// Permissions that new files and directories do not get, as the umask of a shell: 077 leaves them to their owner, 027 lets the group read. The umask of the process applies, too.
    umask: Umask = "077";
    /// How keys become tokens; it must stay the same for a data directory.
    partitioner: Partitioner = "org.apache.cassandra.dht.Murmur3Partitioner";
    /// The token of this node. auto: the stored one, or a random one if the data directory is new. A cluster refuses it: there, `num_tokens` decides.
    initial_token: Option<String> = "auto";
    /// Data center of this node; in a cluster it must stay the same for a data directory.
    data_center: String = "datacenter1";
    /// Rack of this node in its data center; in a cluster it must stay the same for a data directory.
    rack: String = "rack1";
    /// Where the commit log is: local (in `commitlog_directory`; the node is a single node), or kafka://HOST:PORT,HOST:PORT/PREFIX (in topics of Kafka whose names begin with PREFIX; nodes with the same log are a cluster). It has nothing to do with `log_level` and the like, which are about messages of the program.
    log: LogPlace = "local";
    /// Encrypts connections to the brokers of `log` with TLS. The certificate of a broker is accepted if the system trusts its issuer. In the file, this and the next six are a block, `log_options: {tls: true, ...}`.
    log_options_tls: bool = "false";
    /// PEM file with the certificates of the authorities that signed the certificates of the brokers; if it is set, connections are encrypted. auto: the authorities that the system trusts.
    log_options_tls_ca: Option<PathBuf> = "auto";
    /// SASL mechanism of logins to the brokers: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. PLAIN sends the password itself, so use it only on encrypted connections.
    log_options_sasl: SaslMechanism = "PLAIN";
    /// User name for logins to the brokers. auto: no login.
    log_options_sasl_username: Option<String> = "auto";
    /// File with the password of this user.
    log_options_sasl_password_file: Option<PathBuf> = "auto";
    /// Replication factor of the topics: the number of brokers that keep a copy of each log. Used when the topics are created, and checked at each start.
    log_options_replication_factor: u16 = "3";
    /// Number of partitions of the topic for tablets, used when a cluster creates it; it never changes then. Tablets share the partitions. One partition costs brokers and nodes the least CPU and gives the shortest waits, but one broker leads it, and each node reads all partitions that have one of its tablets: of twelve nodes with three replicas, each reads four times the records that it needs. A cluster that will have more than six nodes should have between half as many partitions as nodes, and as many.
    log_options_partitions: u16 = "1";
    /// Number of tablets (slices of the token ring) of a new cluster, from 1 to 4096. It cannot be changed later. All nodes of a cluster must have the same number. At most this many nodes can own data: with 64, each of up to 16 nodes has at least four tablets. A write to several tablets needs a record for each of them.
    tablets: TabletCount = "64";
    /// Number of tablets that a new node takes over from the others. auto: an equal share. A single node has one token, whatever this is. Unlike in Cassandra this is a number of tablets, not a weight: 16, as in Cassandra's file, means 16 of the `tablets`.
    num_tokens: Option<u16> = "auto";
    /// How long the log keeps records for nodes that are down; fixed when a cluster is created. A node that was down for longer copies its data again.
    down_max: Duration = "1d";
    /// The `listen_address` or the host id of a lost node of the cluster. A new node that joins takes its place. No effect after the node has joined.
    replace_address_first_boot: Option<String> = "auto";

    /// Address that CQL clients connect to.
    rpc_address: IpAddr = "127.0.0.1";
    /// Address that `system.local` and events give to drivers. auto: `rpc_address`.
    broadcast_rpc_address: Option<IpAddr> = "auto";
    /// Address that `system.local` names for other nodes; in a cluster they connect to it. auto: `rpc_address`.
    listen_address: Option<IpAddr> = "auto";
    /// Port of other nodes, in a cluster. A single node does not listen there.
    storage_port: u16 = "7000";
    /// Port of CQL clients; 0 takes a free one.
    native_transport_port: u16 = "9042";
    /// A second port of CQL clients, which is encrypted as `client_encryption_options` says, while the first one is not; 0 takes a free one. auto: there is one port. Deprecated, as in Cassandra: `optional` needs no second port.
    native_transport_port_ssl: Option<u16> = "auto";
    /// Longest request of v3 and v4; a longer one is skipped and refused (0x2200), and takes no memory.
    native_transport_max_frame_size: Size = "16MiB", was "native_transport_max_frame_size_in_mb" in "MiB";
    /// Longest request of v5. auto: half of `commitlog_segment_size`, or less if fewer bytes may be in flight.
    native_transport_max_message_size: Option<Size> = "auto";
    /// A page of a SELECT ends when its rows have this size, even if the client asked for more of them; 0B: never. Unpaged answers are not cut.
    native_transport_max_page_size: Size = "8MiB";
    /// Threads that execute requests. auto: twice the processors, at least 4; in a cluster 128, since they wait for logs and other nodes.
    native_transport_max_threads: Option<u16> = "auto";
    /// Threads that execute statements which may take long, such as scans, in addition to `native_transport_max_threads`. auto: as many as processors, at least 2; in a cluster 16.
    native_transport_max_heavy_threads: Option<u16> = "auto";
    /// Connections at a time; -1: no limit.
    native_transport_max_concurrent_connections: Limit = "-1";
    /// Connections at a time from one address; -1: no limit.
    native_transport_max_concurrent_connections_per_ip: Limit = "-1";
    /// A connection is closed after its client was idle for this time; 0s: never.
    native_transport_idle_timeout: Duration = "0s", was "native_transport_idle_timeout_in_ms" in "ms";
    /// A connection without a valid STARTUP is closed after this time.
    native_transport_startup_timeout: Duration = "30s";
    /// A connection is closed after its client stopped in the middle of a request, or read none of its answers, for this time (5s while memory for clients is short); 0s: never.
    native_transport_stall_timeout: Duration = "1m";
    /// Memory for requests and unread answers of all connections together. Beyond it requests wait for 2s and are then answered with 0x1001. auto: a fortieth of the machine's memory, at least 64MiB.
    native_transport_max_request_data_in_flight: Option<Size> = "auto",
        was "native_transport_max_concurrent_requests_in_bytes" in "B";
    /// Memory for requests and unread answers of all connections from one address; otherwise like `native_transport_max_request_data_in_flight`. auto: a quarter of that, at least 32MiB.
    native_transport_max_request_data_in_flight_per_ip: Option<Size> = "auto",
        was "native_transport_max_concurrent_requests_in_bytes_per_ip" in "B";
    /// Whether clients may speak v3 and v4 of the protocol. If not, each message of these versions is answered with an error (0x000A).
    native_transport_allow_older_protocols: bool = "true";
    /// Whether clients of v5 without THROW_ON_OVERLOAD in STARTUP get 0x1001 at once while memory for requests is short, instead of after 2s.
    native_transport_throw_on_overload: bool = "false";
    /// Whether `native_transport_max_requests_per_second` applies.
    native_transport_rate_limiting_enabled: bool = "false";
    /// Requests per second of all clients together, if `native_transport_rate_limiting_enabled`. Further requests wait for their turn; those of clients with THROW_ON_OVERLOAD are refused (0x1001).
    native_transport_max_requests_per_second: NonZeroU32 = "1000000";
    /// Requests of one connection that may wait or run at a time; while there are more, the node reads nothing from the connection.
    native_transport_max_requests_in_flight: u32 = "2048";
    /// Bytes of requests of one connection that may wait or run at a time; while there are more, the node reads nothing from the connection.
    native_transport_receive_queue_capacity: Size = "8MiB",
        was "native_transport_receive_queue_capacity_in_bytes" in "B";
    /// Bytes of answers that a connection may leave unread; beyond it, its requests wait.
    native_transport_send_queue_capacity: Size = "8MiB";
    /// Port of dashboard, metrics and administration; 0 takes a free one.
    admin_port: u16 = "9043";
    /// Address of `admin_port`. Any but the loopback address needs an `authenticator` and encryption, or `admin_token_file`.
    admin_address: IpAddr = "127.0.0.1";
    /// File whose first line is a token for programs: a request with this token may use metrics and administration without a login. auto: no token. If there is a token and no `authenticator`, every request needs the token.
    admin_token_file: Option<PathBuf> = "auto";
    /// Host names by which browsers may reach `admin_port` while clients must log in, in addition to IP addresses and localhost. Requests for other names are refused, against DNS rebinding.
    admin_host_names: Names = "none";
    /// Encrypts `admin_port` with TLS. auto: if other machines can reach `admin_address` and `client_encryption_options` is enabled. In the file, this and the next two are a block, `admin_encryption_options: {enabled: true, ...}`.
    admin_encryption_options_enabled: Option<bool> = "auto";
    /// Keystore for `admin_port`, as `keystore` of `client_encryption_options`. auto: the same file.
    admin_encryption_options_keystore: Option<PathBuf> = "auto";
    /// Password of this keystore, if it is PKCS#12.
    admin_encryption_options_keystore_password: Option<Secret> = "auto";
    /// An HTTP request that is not complete after this time is refused, and a connection without a request is closed.
    admin_timeout: Duration = "30s";
    /// Tables that have metrics of their own: those with the most statements since the start, then the largest. Each makes about 100 lines.
    metrics_tables_max: u32 = "100";
    /// Encrypts client connections with TLS. In the file, this and the next seven are a block, `client_encryption_options: {enabled: true, ...}`.
    client_encryption_options_enabled: bool = "false";
    /// Clients may also connect without encryption, on the same port.
    client_encryption_options_optional: bool = "false";
    /// File with the certificate of the node, those of its issuers, and its private key: PEM without a password, or PKCS#12. A changed file is read again when a client connects.
    client_encryption_options_keystore: PathBuf = "conf/.keystore";
    /// Password of a PKCS#12 keystore.
    client_encryption_options_keystore_password: Option<Secret> = "auto";
    /// File with the certificates of the authorities that sign the certificates of clients, PEM or PKCS#12; for `require_client_auth`.
    client_encryption_options_truststore: PathBuf = "conf/.truststore";
    /// Password of a PKCS#12 truststore.
    client_encryption_options_truststore_password: Option<Secret> = "auto";
    /// Whether clients must present a certificate: false, true, or optional (checked if there is one).
    client_encryption_options_require_client_auth: ClientCertificates = "false";
    /// Accepted versions of TLS: TLSv1.2, TLSv1.3; none: both.
    client_encryption_options_accepted_protocols: Names = "none";
    /// Encrypts connections between nodes with TLS: all or none. all is for nodes of a cluster: a single node refuses it. In the file, this and the next seven are a block, `server_encryption_options: {internode_encryption: all, ...}`.
    server_encryption_options_internode_encryption: InternodeEncryption = "none";
    /// File with the certificate that this node presents to other nodes, those of its issuers, and its private key: PEM without a password, or PKCS#12.
    server_encryption_options_keystore: PathBuf = "conf/.keystore";
    /// Password of a PKCS#12 keystore.
    server_encryption_options_keystore_password: Option<Secret> = "auto";
    /// File with the certificates of the authorities that sign the certificates of nodes, PEM or PKCS#12. They must sign for nothing else: whoever has such a certificate is accepted as a node.
    server_encryption_options_truststore: PathBuf = "conf/.truststore";
    /// Password of a PKCS#12 truststore.
    server_encryption_options_truststore_password: Option<Secret> = "auto";
    /// Whether a node that connects must present a certificate. The default differs from Cassandra's, which is false.
    server_encryption_options_require_client_auth: bool = "true";
    /// Whether the certificate of a node must name its address.
    server_encryption_options_require_endpoint_verification: bool = "false";
    /// Accepted versions of TLS: TLSv1.2, TLSv1.3; none: both.
    server_encryption_options_accepted_protocols: Names = "none";
    /// Who may connect: AllowAllAuthenticator (everybody, without a name), PasswordAuthenticator (roles with their passwords), MutualTlsAuthenticator (roles that the clients' certificates stand for) or MutualTlsWithPasswordFallbackAuthenticator (clients without a certificate log in with a password); see [security.md](security.md).
    authenticator: Authenticator = "AllowAllAuthenticator";
    /// The identity in a certificate: SpiffeCertificateValidator (a URI that starts with `spiffe://`) or CommonNameCertificateValidator (the common name of its subject). In the file: `authenticator: {class_name: MutualTlsAuthenticator, parameters: {validator_class_name: ...}}`.
    authenticator_parameters_validator_class_name: CertificateValidator = "SpiffeCertificateValidator";
    /// Who may do what: AllowAllAuthorizer (everybody everything) or CassandraAuthorizer (roles what was granted to them).
    authorizer: Authorizer = "AllowAllAuthorizer";
    /// Where roles are kept: in `system_auth`.
    role_manager: RoleManager = "CassandraRoleManager";
    /// Which data centers roles may use: all (AllowAllNetworkAuthorizer), or those of ACCESS TO DATACENTERS (CassandraNetworkAuthorizer).
    network_authorizer: NetworkAuthorizer = "AllowAllNetworkAuthorizer";
    /// Which addresses roles may be used from: AllowAllCIDRAuthorizer (all) or CassandraCIDRAuthorizer (those of the groups in ACCESS FROM CIDRS; the groups are rows of `system_auth.cidr_groups`).
    cidr_authorizer: CidrAuthorizer = "AllowAllCIDRAuthorizer";
    /// With CassandraCIDRAuthorizer: MONITOR logs logins from other addresses, ENFORCE refuses their statements. In the file, this and the next are `parameters` of `cidr_authorizer`.
    cidr_authorizer_parameters_cidr_authorizer_mode: CidrMode = "MONITOR";
    /// Whether this mode also applies to superusers.
    cidr_authorizer_parameters_cidr_checks_for_superusers: bool = "false";
    /// How long the node uses a role that it has read before it reads it again. Statements that change roles or permissions take effect at once; this is for rows of `system_auth` that were written in another way.
    roles_validity: Duration = "2s", was "roles_validity_in_ms" in "ms";
    /// How long the node uses permissions that it has read; the shorter of this and `roles_validity` applies to both.
    permissions_validity: Duration = "2s", was "permissions_validity_in_ms" in "ms";
    /// How long the node uses the hash of a password that it has read.
    credentials_validity: Duration = "2s", was "credentials_validity_in_ms" in "ms";
    /// Cost of hashing a password: 2 to the power of this many rounds, from 4 to 31. Each step doubles the time of a login.
    auth_bcrypt_work_factor: u16 = "10";
    /// Threads that check passwords.
    native_transport_max_auth_threads: u16 = "4";
    /// Writes the audit log: who did what (see [security.md](security.md)). In the file, this and the next twelve are a block, `audit_logging_options: {enabled: true, ...}`.
    audit_logging_options_enabled: bool = "false";
    /// FileAuditLogger (JSON lines in `audit.log`) or NoOpAuditLogger (no log). BinAuditLogger, which Cassandra's file has, is refused if the log is enabled.
    audit_logging_options_logger: AuditLogger = "FileAuditLogger";
    /// Directory of the audit log, for nothing else. auto: `audit` in `log_directory`.
    audit_logging_options_audit_logs_dir: Option<PathBuf> = "auto";
    /// Keyspaces whose statements are logged; none: all but `excluded_keyspaces`. If some are named, requests without a keyspace, such as logins, are not logged.
    audit_logging_options_included_keyspaces: Names = "none";
    /// Keyspaces whose statements are not logged.
    audit_logging_options_excluded_keyspaces: Names = "system, system_schema, system_virtual_schema";
    /// Categories that are logged, of QUERY, DML, DDL, DCL, OTHER, AUTH, ERROR, PREPARE; none: all but `excluded_categories`.
    audit_logging_options_included_categories: Categories = "none";
    /// Categories that are not logged.
    audit_logging_options_excluded_categories: Categories = "none";
    /// Roles whose requests are logged; none: all but `excluded_users`. A client without a login has the name anonymous.
    audit_logging_options_included_users: Names = "none";
    /// Roles whose requests are not logged.
    audit_logging_options_excluded_users: Names = "none";
    /// How long a file of the audit log is written: MINUTELY, HALF_HOURLY, HOURLY, SIX_HOURLY, DAILY and the like; FAST_HOURLY and HOURLY are the same. It ends earlier at an eighth of `max_log_size`.
    audit_logging_options_roll_cycle: RollCycle = "HOURLY";
    /// Whether requests wait while `max_queue_weight` is reached; otherwise their entries are dropped and counted.
    audit_logging_options_block: bool = "true";
    /// Bytes of entries that may wait to be written.
    audit_logging_options_max_queue_weight: Size = "256MiB", was "audit_logging_options_max_queue_weight" in "B";
    /// Bytes of complete files of the audit log beyond which the oldest are removed.
    audit_logging_options_max_log_size: Size = "16GiB", was "audit_logging_options_max_log_size" in "B";

    /// When writes are acknowledged: batch (after a sync), group (after the next sync of a fixed rhythm) or periodic (at once).
    commitlog_sync: CommitLogSync = "batch";
    /// Time between syncs when `commitlog_sync` is periodic. A power loss may lose the writes of this time.
    commitlog_sync_period: Duration = "10s", was "commitlog_sync_period_in_ms" in "ms";
    /// Time between syncs when `commitlog_sync` is group.
    commitlog_sync_group_window: Duration = "10ms", was "commitlog_sync_group_window_in_ms" in "ms";
    /// Size of a file of the commit log; half of it is the largest write to one partition.
    commitlog_segment_size: Size = "32MiB", was "commitlog_segment_size_in_mb" in "MiB";
    /// Directory where complete segments of the commit log are kept for `ilion backup` and restores to a point in time, for nothing else. It grows until `ilion backup` takes them with `--prune-archive`. auto: none are kept.
    commitlog_archive_directory: Option<PathBuf> = "auto";
    /// Size of the commit log above which the memtables with the oldest records are flushed.
    commitlog_total_space: Size = "8GiB", was "commitlog_total_space_in_mb" in "MiB";
    /// Whether the start skips damaged records of the commit log that had been synced: their data is lost. Otherwise the node does not start. Cassandra's `-Dcassandra.commitlog.ignorereplayerrors`.
    commitlog_ignore_replay_errors: bool = "false";

    /// Whether writes to tables WITH cdc = true are kept for consumers of changes (`ilion cdc`).
    cdc_enabled: bool = "false";
    /// Directory where segments of the commit log with such writes are kept until a consumer removes them. auto: `cdc_raw` in `directory`.
    cdc_raw_directory: Option<PathBuf> = "auto";
    /// Most bytes of segments with such writes. auto, or 0: 4GiB, or an eighth of the file system if that is less.
    cdc_total_space: Option<Size> = "auto", was "cdc_total_space_in_mb" in "MiB";
    /// How often the node checks whether consumers have removed segments, while `cdc_total_space` is used up.
    cdc_free_space_check_interval: Duration = "250ms", was "cdc_free_space_check_interval_ms" in "ms";
    /// What happens when `cdc_total_space` is used up: writes to these tables are refused until a consumer removes segments (true), or the oldest segments are removed (false).
    cdc_block_writes: bool = "true";

    /// Memory for memtables. auto: a quarter of the machine's, from 64MiB to 4GiB.
    memtable_heap_space: Option<Size> = "auto", was "memtable_heap_space_in_mb" in "MiB";
    /// Memory for chunks of SSTables. auto: a twelfth of the machine's, at most 512MiB.
    file_cache_size: Option<Size> = "auto", was "file_cache_size_in_mb" in "MiB";
    /// How partitions are found in SSTables: by token_map, by summary (as Cassandra does: Bloom filter, key cache, index summary), or by whole_index (the same, and the whole index is read at the start, as Cassandra 1.1 did). Only token_map writes token maps.
    sstable_lookup: SSTableLookup = "token_map";
    /// Memory for positions of partitions that were looked up in a partition index; used for SSTables without a token map. auto: 16MiB.
    key_cache_size: Option<Size> = "auto", was "key_cache_size_in_mb" in "MiB";
    /// How often the positions in the key cache are saved. They are saved at a regular stop, too. 0s: never.
    key_cache_save_period: Duration = "4h", was "key_cache_save_period" in "s";
    /// Most positions of the key cache that are saved; -1: all.
    key_cache_keys_to_save: Limit = "-1";
    /// Memory for index summaries of SSTables without a token map; they are thinned out to fit. auto: a fortieth of the machine's memory.
    index_summary_capacity: Option<Size> = "auto", was "index_summary_capacity_in_mb" in "MiB";
    /// Memory for sorted views: the order of the partitions of all SSTables of a table, about 1.5 bytes a partition. A table whose view does not fit is read without one; 0B makes none. auto: an eightieth of the machine's memory.
    sorted_view_capacity: Option<Size> = "auto";
    /// Memory for pages of token maps, cell maps and indexes of SSTables: pages stay in memory once they are read and checked. Pages that do not fit are read each time. auto: a quarter of the machine's memory less 256MiB and less the share of sorted views, at least an eighth.
    index_page_capacity: Option<Size> = "auto";
    /// How often index summaries are resized to `index_summary_capacity`; 0s: never.
    index_summary_resize_interval: Duration = "1h", was "index_summary_resize_interval_in_minutes" in "m";
    /// Memory for the rows of tables with `caching = {'rows_per_partition': ...}`; 0B: no row cache.
    row_cache_size: Size = "0B", was "row_cache_size_in_mb" in "MiB";
    /// How often the keys of the row cache are saved. They are saved at a regular stop, too. 0s: never.
    row_cache_save_period: Duration = "0s", was "row_cache_save_period" in "s";
    /// Most keys of the row cache that are saved; -1: all.
    row_cache_keys_to_save: Limit = "-1";
    /// Memory for current values of counters, so that writes of counters need not read them; 0B: no counter cache. auto: an eightieth of the machine's memory, at most 50MiB.
    counter_cache_size: Option<Size> = "auto", was "counter_cache_size_in_mb" in "MiB";
    /// How often the keys of the counter cache are saved. They are saved at a regular stop, too. 0s: never.
    counter_cache_save_period: Duration = "2h", was "counter_cache_save_period" in "s";
    /// Most keys of the counter cache that are saved; -1: all.
    counter_cache_keys_to_save: Limit = "-1";
    /// How long saved caches may take to load after a start, in the background.
    cache_load_timeout: Duration = "30s", was "cache_load_timeout_seconds" in "s";
    /// Format of the SSTables that are written: nb and oa are BIG, da is BTI; Cassandra 4.x reads nb only. All are read. The block `sstable` of cassandra.yaml selects da by `selected_format: bti`.
    sstable_format: SSTableFormat = "nb";
    /// Size of the blocks of a partition that its row index has entries for: smaller ones make reads within large partitions cheaper, and the index larger. For SSTables that are written from then on. auto: 64KiB, or 16KiB with da.
    column_index_size: Option<BlockSize> = "auto", was "column_index_size_in_kb" in "KiB";
    /// For the data directory of a Cassandra 4.x: CASSANDRA_4 keeps it readable by that version, and refuses what that version does not know; NONE converts it to 5.0, for good. Directories of 5.0 are not affected.
    storage_compatibility_mode: StorageCompatibility = "CASSANDRA_4";
    /// Compaction of tables that do not set it: a class, then its options as in `UnifiedCompactionStrategy; scaling_parameters=L4`, or a block as in cassandra.yaml.
    default_compaction: DefaultCompaction = "UnifiedCompactionStrategy";
    /// Compactions that may run at once. auto: half the processors, from 2 to 8.
    concurrent_compactors: Option<u16> = "auto";
    /// Whether TRUNCATE and DROP take a snapshot of a table before they remove its data. A table can opt out (`allow_auto_snapshot`).
    auto_snapshot: bool = "true";
    /// How long such snapshots are kept. auto: until they are cleared.
    auto_snapshot_ttl: Option<Duration> = "auto";
    /// Whether a snapshot of a table is taken before each compaction. They are never removed by themselves.
    snapshot_before_compaction: bool = "false";
    /// Whether each SSTable that is flushed or imported is linked into the directory `backups` of its table. A table can opt out (`incremental_backups`).
    incremental_backups: bool = "false";
    /// Files that snapshots link per second, at most; 0: no limit.
    snapshot_links_per_second: u32 = "0";
    /// Bytes per second that all compactions together may read, unless they are behind; 0B/s: no limit.
    compaction_throughput: Rate = "64MiB/s", was "compaction_throughput_mb_per_sec" in "MiB/s";
    /// A batch above this size gets a warning; 0B: never.
    batch_size_warn_threshold: Size = "5KiB", was "batch_size_warn_threshold_in_kb" in "KiB";
    /// A batch above this size is refused; 0B: never.
    batch_size_fail_threshold: Size = "50KiB", was "batch_size_fail_threshold_in_kb" in "KiB";
    /// Most prepared statements in memory; the oldest are evicted first.
    prepared_statements_max: usize = "10000";
    /// Memory for prepared statements; the oldest are evicted first, and one that would take more than a quarter of it is refused. auto: a 256th of the machine's memory, at least 10MiB.
    prepared_statements_cache_size: Option<Size> = "auto", was "prepared_statements_cache_size_mb" in "MiB";
    /// Whether ALLOW FILTERING is allowed.
    allow_filtering_enabled: bool = "true";
    /// Whether materialized views may be created.
    materialized_views_enabled: bool = "true", was "enable_materialized_views" in "";
    /// The index that CREATE INDEX without USING creates: legacy_local_table, or a class such as sai.
    default_secondary_index: String = "legacy_local_table";
    /// Whether CREATE INDEX without USING is allowed.
    default_secondary_index_enabled: bool = "true";
    /// Whether SASI indexes may be created.
    sasi_indexes_enabled: bool = "true", was "enable_sasi_indexes" in "";
    /// Whether user-defined functions and aggregates (LANGUAGE lua) may be created and called.
    user_defined_functions_enabled: bool = "true", was "enable_user_defined_functions" in "";
    /// How long one call of such a function may run before it fails.
    user_defined_functions_fail_timeout: Duration = "1500ms", was "user_defined_function_fail_timeout" in "ms";
    /// Whether columns may be masked (MASKED WITH), and whether masks apply.
    dynamic_data_masking_enabled: bool = "false";
    /// A SELECT of given partitions that takes longer, pages of an aggregate included, ends with 0x1200; 0s: never. Checked every few thousand rows.
    read_request_timeout: Duration = "5s", was "read_request_timeout_in_ms" in "ms";
    /// Timeout of a SELECT that does not name its partitions; otherwise like `read_request_timeout`.
    range_request_timeout: Duration = "10s", was "range_request_timeout_in_ms" in "ms";
    /// In a cluster: a write that the log and the replicas have not acknowledged after this time ends with 0x1100. Writes of a single node wait for no other node.
    write_request_timeout: Duration = "2s", was "write_request_timeout_in_ms" in "ms";
    /// Tombstones that a read may meet before its client is warned; -1: no limit.
    tombstone_warn_threshold: Limit = "1000";
    /// Tombstones that a read may meet before it is ended; -1: no limit.
    tombstone_failure_threshold: Limit = "100000";
    /// Warns above this many user keyspaces; -1: never.
    keyspaces_warn_threshold: Limit = "-1";
    /// Refuses more user keyspaces; -1: never.
    keyspaces_fail_threshold: Limit = "-1";
    /// Warns above this many tables of users; -1: never.
    tables_warn_threshold: Limit = "-1";
    /// Refuses more tables of users; -1: never.
    tables_fail_threshold: Limit = "-1";
    /// Warns above this many columns of a table; -1: never.
    columns_per_table_warn_threshold: Limit = "-1";
    /// Refuses more columns of a table; -1: never.
    columns_per_table_fail_threshold: Limit = "-1";
    /// Warns above this many materialized views of a table; -1: never.
    materialized_views_per_table_warn_threshold: Limit = "-1";
    /// Refuses more materialized views of a table; -1: never.
    materialized_views_per_table_fail_threshold: Limit = "-1";
    /// Warns above this many secondary indexes of a table; -1: never.
    secondary_indexes_per_table_warn_threshold: Limit = "-1";
    /// Refuses more secondary indexes of a table; -1: never.
    secondary_indexes_per_table_fail_threshold: Limit = "-1";
    /// Warns above this many files of a storage-attached index that one query may read; -1: never.
    sai_sstable_indexes_per_query_warn_threshold: Limit = "32";
    /// Refuses queries that may read more files of a storage-attached index; -1: never.
    sai_sstable_indexes_per_query_fail_threshold: Limit = "-1";
    /// Warns above this size of a text in a column with a storage-attached index; auto: never.
    sai_string_term_size_warn_threshold: Option<Size> = "auto";
    /// Refuses a text above this size in a column with a storage-attached index; auto: never.
    sai_string_term_size_fail_threshold: Option<Size> = "auto";
    /// Warns above this size of a frozen value in a column with a storage-attached index; auto: never.
    sai_frozen_term_size_warn_threshold: Option<Size> = "auto";
    /// Refuses a frozen value above this size in a column with a storage-attached index; auto: never.
    sai_frozen_term_size_fail_threshold: Option<Size> = "auto";
    /// Warns above this size of a vector in a column with a storage-attached index; auto: never.
    sai_vector_term_size_warn_threshold: Option<Size> = "auto";
    /// Refuses a vector above this size in a column with a storage-attached index; auto: never.
    sai_vector_term_size_fail_threshold: Option<Size> = "auto";
    /// Warns above this many fields of a user type; -1: never.
    fields_per_udt_warn_threshold: Limit = "-1";
    /// Refuses more fields of a user type; -1: never.
    fields_per_udt_fail_threshold: Limit = "-1";
    /// Warns above this many dimensions of a vector; -1: never.
    vector_dimensions_warn_threshold: Limit = "-1";
    /// Refuses more dimensions of a vector; -1: never.
    vector_dimensions_fail_threshold: Limit = "-1";
    /// Warns above this many rows of a page that a client asks for; -1: never.
    page_size_warn_threshold: Limit = "-1";
    /// Refuses more rows of a page that a client asks for; -1: never.
    page_size_fail_threshold: Limit = "-1";
    /// Warns above this many partitions in the IN of a SELECT; -1: never.
    partition_keys_in_select_warn_threshold: Limit = "-1";
    /// Refuses more partitions in the IN of a SELECT; -1: never.
    partition_keys_in_select_fail_threshold: Limit = "-1";
    /// Warns above this many combinations of the INs of a statement; -1: never.
    in_select_cartesian_product_warn_threshold: Limit = "-1";
    /// Refuses more combinations of the INs of a statement; -1: never.
    in_select_cartesian_product_fail_threshold: Limit = "-1";
    /// Warns above this many elements of a collection in one write; -1: never.
    items_per_collection_warn_threshold: Limit = "-1";
    /// Refuses more elements of a collection in one write; -1: never.
    items_per_collection_fail_threshold: Limit = "-1";
    /// Warns above this size of the collection of one write; auto: never.
    collection_size_warn_threshold: Option<Size> = "auto";
    /// Refuses the collection of one write above this size; auto: never.
    collection_size_fail_threshold: Option<Size> = "auto";
    /// Warns above this size of a value; auto: never.
    column_value_size_warn_threshold: Option<Size> = "auto";
    /// Refuses a value above this size; auto: never.
    column_value_size_fail_threshold: Option<Size> = "auto";
    /// Warns below this replication factor; -1: never.
    minimum_replication_factor_warn_threshold: Limit = "-1";
    /// Refuses replication factors below this one; -1: never.
    minimum_replication_factor_fail_threshold: Limit = "-1";
    /// Warns above this replication factor; -1: never.
    maximum_replication_factor_warn_threshold: Limit = "-1";
    /// Refuses replication factors above this one; -1: never.
    maximum_replication_factor_fail_threshold: Limit = "-1";
    /// Properties of tables for which clients are warned.
    table_properties_warned: Names = "none";
    /// Properties of tables that are ignored, with a warning.
    table_properties_ignored: Names = "none";
    /// Properties of tables that are refused.
    table_properties_disallowed: Names = "none";
    /// Consistency levels of reads for which clients are warned.
    read_consistency_levels_warned: Names = "none";
    /// Consistency levels of reads that are refused.
    read_consistency_levels_disallowed: Names = "none";
    /// Consistency levels of writes for which clients are warned.
    write_consistency_levels_warned: Names = "none";
    /// Consistency levels of writes that are refused.
    write_consistency_levels_disallowed: Names = "none";
    /// Warns of timestamps given by statements that are further in the future; auto: never.
    maximum_timestamp_warn_threshold: Option<Duration> = "auto";
    /// Refuses timestamps given by statements that are further in the future; auto: never.
    maximum_timestamp_fail_threshold: Option<Duration> = "auto";
    /// Warns of timestamps given by statements that are further in the past; auto: never.
    minimum_timestamp_warn_threshold: Option<Duration> = "auto";
    /// Refuses timestamps given by statements that are further in the past; auto: never.
    minimum_timestamp_fail_threshold: Option<Duration> = "auto";
    /// Warns of unlogged batches of more partitions; -1: never.
    unlogged_batch_across_partitions_warn_threshold: Limit = "10";
    /// Whether filtering by several columns outside the key gets a warning, at consistency levels of several nodes.
    intersect_filtering_query_warned: bool = "false";
    /// Whether filtering by several columns outside the key is allowed, at consistency levels of several nodes.
    intersect_filtering_query_enabled: bool = "true";
    /// Whether a table of TimeWindowCompactionStrategy without default_time_to_live gets a warning.
    zero_ttl_on_twcs_warned: bool = "false";
    /// Whether a table of TimeWindowCompactionStrategy may have no default_time_to_live.
    zero_ttl_on_twcs_enabled: bool = "true";
    /// Whether columns and fields may have the type vector.
    vector_type_enabled: bool = "true";
    /// Whether USE is allowed.
    use_statements_enabled: bool = "true";
    /// Whether ALTER TABLE DROP COMPACT STORAGE is allowed.
    drop_compact_storage_enabled: bool = "false", was "enable_drop_compact_storage" in "";
    /// Whether secondary indexes may be created.
    secondary_indexes_enabled: bool = "true";
    /// Whether a query may use an index without restricting the partition key.
    non_partition_restricted_index_query_enabled: bool = "true";
    /// Whether GROUP BY is allowed.
    group_by_enabled: bool = "true";
    /// Whether DROP TABLE and TRUNCATE are allowed.
    drop_truncate_table_enabled: bool = "true";
    /// Whether DROP KEYSPACE is allowed.
    drop_keyspace_enabled: bool = "true";
    /// Whether columns may be added, dropped and renamed.
    alter_table_enabled: bool = "true";
    /// Whether USING TIMESTAMP is allowed.
    user_timestamps_enabled: bool = "true";
    /// Whether tables without compression are allowed.
    uncompressed_tables_enabled: bool = "true";
    /// Whether new tables WITH COMPACT STORAGE are allowed.
    compact_tables_enabled: bool = "true";
    /// Whether changes of lists by position or value are allowed: they read before they write.
    read_before_write_list_operations_enabled: bool = "true";
    /// Whether SimpleStrategy is allowed.
    simplestrategy_enabled: bool = "true";
    /// Partitions larger than this are logged as warnings when they are flushed or compacted; auto: never.
    partition_size_warn_threshold: Option<Size> = "100MiB", was "compaction_large_partition_warning_threshold" in "",
        "compaction_large_partition_warning_threshold_mb" in "MiB";
    /// Partitions larger than this are logged as errors when they are flushed or compacted; auto: never.
    partition_size_fail_threshold: Option<Size> = "auto";
    /// Partitions with more tombstones are logged as warnings when they are flushed or compacted; -1: never.
    partition_tombstones_warn_threshold: Limit = "-1", was "compaction_tombstone_warning_threshold" in "";
    /// Partitions with more tombstones are logged as errors when they are flushed or compacted; -1: never.
    partition_tombstones_fail_threshold: Limit = "-1";
    /// Clients that write are warned while the data takes more percent of the disk; -1: never.
    data_disk_usage_percentage_warn_threshold: Limit = "-1";
    /// Writes are refused while the data takes more percent of the disk; -1: never.
    data_disk_usage_percentage_fail_threshold: Limit = "-1";
    /// Size of the disk for these percentages; auto: the size of the data plus the free space.
    data_disk_usage_max_disk_size: Option<Size> = "auto";
    /// Rows larger than this are logged as warnings when they are flushed or compacted; auto: never.
    row_size_warn_threshold: Option<Size> = "auto";
    /// Values larger than this are logged as warnings when they are flushed or compacted; auto: never.
    cell_size_warn_threshold: Option<Size> = "auto";
    /// Statements that take longer are logged, with their values and costs; 0ms: never. The wait for the commit log does not count.
    slow_query_log_timeout: Duration = "500ms", was "slow_query_log_timeout_in_ms" in "ms";
    /// How long traces of requests are kept.
    trace_type_query_ttl: Duration = "1d", was "tracetype_query_ttl" in "s";
    /// Address of an OpenTelemetry collector that takes OTLP over HTTP: http://127.0.0.1:4318. auto: nothing is sent.
    otlp_endpoint: Option<String> = "auto";
    /// Where spans go, as a whole URL; none: nowhere. auto: `/v1/traces` below `otlp_endpoint`.
    otlp_traces_endpoint: Option<String> = "auto";
    /// Where metrics go, as a whole URL; none: nowhere. auto: `/v1/metrics` below `otlp_endpoint`.
    otlp_metrics_endpoint: Option<String> = "auto";
    /// Headers for the collector: name=value, separated by commas, other bytes as %20.
    otlp_headers: Option<Secret> = "auto";
    /// How long a request to the collector may take.
    otlp_timeout: Duration = "10s";
    /// How often metrics are sent.
    otlp_metrics_interval: Duration = "1m";
    /// `service.name` of the node for the collector. auto: that of `otlp_resource_attributes`, or ilion.
    otlp_service_name: Option<String> = "auto";
    /// Attributes of the node for the collector: name=value, separated by commas, other bytes as %20.
    otlp_resource_attributes: Option<String> = "auto";
    /// What is logged, as a filter of `tracing`: info, debug, or ilion_server=debug,info.
    log_level: LogFilter = "info";
    /// Where the log goes: stderr, file (in `log_directory`), journal (of systemd), separated by commas; none: nowhere.
    log_to: LogTargets = "stderr, file";
    /// Lines of the log on stderr and in files: text, or json.
    log_format: LogFormat = "text";
}

impl Settings {
    /// Directory of the tables.
    pub fn data_path(&self) -> PathBuf {
        self.below_directory(self.data_file_directories.as_ref(), "data")
    }

    /// Directory of the commit log.
    pub fn commitlog_path(&self) -> PathBuf {
        self.below_directory(self.commitlog_directory.as_ref(), "commitlog")
    }

    /// Directory of segments that are kept for consumers of changes.
    pub fn cdc_raw_path(&self) -> PathBuf {
        self.below_directory(self.cdc_raw_directory.as_ref(), "cdc_raw")
    }

    /// Directory of the keys of saved caches.
    pub fn saved_caches_path(&self) -> PathBuf {
        self.below_directory(self.saved_caches_directory.as_ref(), "saved_caches")
    }

    /// Directory of the log files.
    pub fn log_path(&self) -> PathBuf {
        self.below_directory(self.log_directory.as_ref(), "logs")
    }

    /// Directory of the audit log.
    pub fn audit_path(&self) -> PathBuf {
        let given = self.audit_logging_options_audit_logs_dir.clone();
        given.unwrap_or_else(|| self.log_path().join("audit"))
    }

    fn below_directory(&self, given: Option<&PathBuf>, name: &str) -> PathBuf {
        given.cloned().unwrap_or_else(|| self.directory.join(name))
    }

    /// Names and values as text.
    pub fn printed(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        SETTINGS
            .iter()
            .map(|setting| (setting.name, (setting.print)(self)))
    }
}

/// The setting with this name or old name, and the unit to append to its value; empty for the current name.
pub(crate) fn find(name: &str) -> Option<(&'static Setting, &'static str)> {
    SETTINGS.iter().find_map(|setting| {
        if setting.name == name {
            return Some((setting, ""));
        }
        let legacy = setting.legacy.iter().find(|(legacy, _)| *legacy == name);
        legacy.map(|(_, unit)| (setting, *unit))
    })
}
