//! All verbs of Cassandra 5.0's nodetool, and what they are here.

use crate::Failure;

use super::call::Call;
use super::shape::{Flag, Shape};
use super::{files, guardrails, node, ring, settings, tables};

/// What a verb is here.
#[derive(Clone, Copy)]
pub enum Act {
    /// It is done here.
    Own(fn(&Call) -> Result<(), Failure>),
    /// It is another name of a command of `ilion`, whose first arguments these are.
    Is(&'static [&'static str]),
    /// It is refused, for this reason.
    Refused(&'static str),
}

/// A verb.
#[derive(Clone, Copy)]
pub struct Verb {
    /// Its name.
    pub name: &'static str,
    /// Its options, but for those that name the node.
    pub options: &'static [Flag],
    /// Names of its other arguments: with `?` if it may be left out, with `*` if there may be any number.
    pub values: &'static [&'static str],
    /// What it is here.
    pub act: Act,
    /// What it does; empty if it is refused.
    pub does: &'static str,
}

impl Verb {
    /// What its arguments look like.
    pub fn shape(&self) -> Shape {
        Shape {
            name: self.name,
            options: self.options,
            values: self.values,
        }
    }

    /// How it is used.
    pub fn help(&self) -> String {
        let refused = match self.act {
            Act::Refused(reason) => {
                return format!("nodetool {} means nothing here: {reason}", self.name);
            }
            Act::Is(command) => {
                return format!(
                    "nodetool {}: {}\nIts arguments are those of: ilion {} --help",
                    self.name,
                    self.does,
                    command.join(" ")
                );
            }
            Act::Own(_) => self.does,
        };
        let options = self.options.iter().map(|option| {
            let names = match option.short {
                "" => option.long.to_owned(),
                short => format!("{short}|{}", option.long),
            };
            match option.value {
                Some(value) => format!(" [{names} <{value}>]"),
                None => format!(" [{names}]"),
            }
        });
        let values = self
            .values
            .iter()
            .zip(self.shape().value_names())
            .map(|(name, plain)| match name.chars().last() {
                Some('?') => format!(" [<{plain}>]"),
                Some('*') => format!(" [<{plain}>...]"),
                _ => format!(" <{plain}>"),
            });
        format!(
            "nodetool {}: {refused}\nusage: nodetool [-h <host>] [-p <port>] [-u <username>] [-pw <password> | -pwf <file>] {}{}{}",
            self.name,
            self.name,
            options.collect::<String>(),
            values.collect::<String>()
        )
    }
}

/// The list of verbs.
pub fn list() -> String {
    let done = VERBS.iter().filter(|verb| !matches!(verb.act, Act::Refused(_)));
    let lines: Vec<String> = done
        .map(|verb| format!("    {:<35} {}", verb.name, verb.does))
        .collect();
    format!(
        "usage: nodetool [-h <host>] [-p <port>] [-u <username>] [-pw <password> | -pwf <file>] <command> [<args>]\n\n\
         -h and -p are the node's admin_address and admin_port. The commands are:\n{}\n\n\
         See 'nodetool help <command>' for more information on a specific command.",
        lines.join("\n")
    )
}

const fn flag(short: &'static str, long: &'static str) -> Flag {
    Flag {
        short,
        long,
        value: None,
    }
}

const fn valued(short: &'static str, long: &'static str, value: &'static str) -> Flag {
    Flag {
        short,
        long,
        value: Some(value),
    }
}

const fn own(
    name: &'static str,
    options: &'static [Flag],
    values: &'static [&'static str],
    run: fn(&Call) -> Result<(), Failure>,
    does: &'static str,
) -> Verb {
    Verb {
        name,
        options,
        values,
        act: Act::Own(run),
        does,
    }
}

const fn is(name: &'static str, command: &'static [&'static str], does: &'static str) -> Verb {
    Verb {
        name,
        options: &[],
        values: &[],
        act: Act::Is(command),
        does,
    }
}

const fn refused(name: &'static str, reason: &'static str) -> Verb {
    Verb {
        name,
        options: &[],
        values: &[],
        act: Act::Refused(reason),
        does: "",
    }
}

/// All verbs, by name.
pub const VERBS: &[Verb] = &[
    refused("assassinate", "there is one node"),
    refused("autorepairstatus", "one node has nothing to repair"),
    refused("bootstrap", "there is one node"),
    own(
        "cfhistograms",
        &[],
        &["keyspace?", "table?"],
        tables::histograms,
        "The old name of tablehistograms.",
    ),
    own(
        "cfstats",
        &[
            flag("-H", "--human-readable"),
            valued("-F", "--format", "format"),
            flag("-i", "--ignore"),
        ],
        &["tables*"],
        tables::stats,
        "The old name of tablestats.",
    ),
    refused("checktokenmetadata", "there is one node"),
    refused(
        "cidrfilteringstats",
        "groups of addresses are in system_auth.cidr_groups: read and change them by CQL",
    ),
    own(
        "cleanup",
        &[valued("-j", "--jobs", "jobs")],
        &["keyspace?", "tables*"],
        files::cleanup,
        "Nothing is to be done: the one node has all ranges.",
    ),
    is("clearsnapshot", &["clear-snapshot"], "Removes snapshots."),
    is(
        "clientstats",
        &["clients"],
        "Counts clients, or lists their connections (--all).",
    ),
    own(
        "compact",
        &[
            flag("-s", "--split-output"),
            valued("-st", "--start-token", "start_token"),
            valued("-et", "--end-token", "end_token"),
            flag("", "--user-defined"),
        ],
        &["keyspace?", "tables*"],
        files::compact,
        "Compacts tables, or SSTables (--user-defined).",
    ),
    is(
        "compactionhistory",
        &["compaction-history"],
        "Compactions of the last week.",
    ),
    own(
        "compactionstats",
        &[flag("-H", "--human-readable"), flag("-V", "--vtable")],
        &[],
        node::compaction_stats,
        "Running and pending compactions.",
    ),
    is("datapaths", &["data-paths"], "Directories of tables."),
    refused("decommission", "there is one node"),
    own(
        "describecluster",
        &[],
        &[],
        ring::describe_cluster,
        "Name, schema version and keyspaces.",
    ),
    own(
        "describering",
        &[],
        &["keyspace"],
        ring::describe_ring,
        "The ranges of tokens of a keyspace.",
    ),
    is(
        "disableauditlog",
        &["audit-log", "off"],
        "Switches the audit log off.",
    ),
    own(
        "disableautocompaction",
        &[],
        &["keyspace?", "tables*"],
        tables::disable_autocompaction,
        "Switches automatic compaction of tables off.",
    ),
    own(
        "disablebackup",
        &[],
        &[],
        node::disable_backup,
        "Switches incremental backups off.",
    ),
    own(
        "disablebinary",
        &[],
        &[],
        node::disable_binary,
        "Ends all connections when their requests are answered, and takes no new ones.",
    ),
    refused(
        "disablefullquerylog",
        "there is no full query log; the audit log has the category QUERY (enableauditlog)",
    ),
    refused("disablegossip", "there is one node"),
    refused("disablehandoff", "there are no hints, since there is one node"),
    refused("disablehintsfordc", "there are no hints, since there is one node"),
    refused("disableoldprotocolversions", "v3, v4 and v5 are all served"),
    own(
        "drain",
        &[],
        &[],
        node::drain,
        "Flushes everything, so that the next start has nothing to replay.",
    ),
    refused(
        "dropcidrgroup",
        "groups of addresses are in system_auth.cidr_groups: read and change them by CQL",
    ),
    is(
        "enableauditlog",
        &["audit-log", "on"],
        "Switches the audit log on.",
    ),
    own(
        "enableautocompaction",
        &[],
        &["keyspace?", "tables*"],
        tables::enable_autocompaction,
        "Switches automatic compaction of tables on.",
    ),
    own(
        "enablebackup",
        &[],
        &[],
        node::enable_backup,
        "Switches incremental backups on.",
    ),
    own(
        "enablebinary",
        &[],
        &[],
        node::enable_binary,
        "Opens the port of clients again.",
    ),
    refused(
        "enablefullquerylog",
        "there is no full query log; the audit log has the category QUERY (enableauditlog)",
    ),
    refused("enablegossip", "there is one node"),
    refused("enablehandoff", "there are no hints, since there is one node"),
    refused("enablehintsfordc", "there are no hints, since there is one node"),
    refused("enableoldprotocolversions", "v3, v4 and v5 are all served"),
    own(
        "failuredetector",
        &[],
        &[],
        node::no_failures,
        "An empty table: there are no other nodes.",
    ),
    own(
        "flush",
        &[],
        &["keyspace?", "tables*"],
        files::flush,
        "Writes memtables to disk.",
    ),
    refused(
        "forcecompact",
        "compact of the table or of a range of tokens (-st, -et) removes tombstones past gc_grace_seconds",
    ),
    refused("garbagecollect", "compact removes what is deleted or overwritten"),
    refused("gcstats", "there is no garbage collector"),
    is("getauditlog", &["audit-log"], "The state of the audit log."),
    own(
        "getauthcacheconfig",
        &[valued("", "--cache-name", "cache_name")],
        &[],
        settings::get_auth_cache,
        "How long roles, permissions or passwords are kept.",
    ),
    refused("getautorepairconfig", "one node has nothing to repair"),
    refused(
        "getbatchlogreplaythrottle",
        "there is no batch log: a batch is one record of the commit log",
    ),
    refused(
        "getcidrgroupsofip",
        "groups of addresses are in system_auth.cidr_groups: read and change them by CQL",
    ),
    refused(
        "getcolumnindexsize",
        "the size of blocks of the row index is fixed",
    ),
    refused(
        "getcompactionthreshold",
        "thresholds are options of the table's compaction: DESCRIBE TABLE shows them, ALTER TABLE changes them",
    ),
    own(
        "getcompactionthroughput",
        &[flag("-d", "--precise-mib")],
        &[],
        settings::get_compaction_throughput,
        "The limit of the rate of compactions.",
    ),
    refused(
        "getconcurrency",
        "there are no stages: tpstats lists the threads, native_transport_max_threads and native_transport_max_heavy_threads set their number",
    ),
    own(
        "getconcurrentcompactors",
        &[],
        &[],
        settings::get_compactors,
        "How many compactions run at once.",
    ),
    refused("getconcurrentviewbuilders", "one thread builds views"),
    refused("getdefaultrf", "CREATE KEYSPACE names the replication factor"),
    own(
        "getendpoints",
        &[],
        &["keyspace", "table", "key"],
        ring::endpoints,
        "The address of the node, if the table exists.",
    ),
    refused(
        "getfullquerylog",
        "there is no full query log; the audit log has the category QUERY (enableauditlog)",
    ),
    own(
        "getguardrailsconfig",
        &[valued("-c", "--category", "category")],
        &["guardrail?"],
        guardrails::get,
        "The guardrails.",
    ),
    refused("getinterdcstreamthroughput", "there is one node"),
    own(
        "getlogginglevels",
        &[],
        &[],
        settings::get_levels,
        "What is logged.",
    ),
    refused("getmaxhintwindow", "there are no hints, since there is one node"),
    own(
        "getseeds",
        &[],
        &[],
        node::no_seeds,
        "That there are no other nodes.",
    ),
    own(
        "getsnapshotthrottle",
        &[],
        &[],
        settings::get_snapshot_throttle,
        "Files that snapshots link per second.",
    ),
    is(
        "getsstables",
        &["get-sstables"],
        "SSTables that may have a partition.",
    ),
    refused("getstreamthroughput", "there is one node"),
    own(
        "gettimeout",
        &[],
        &["timeout_type?"],
        settings::get_timeout,
        "The timeout of SELECTs: read or range.",
    ),
    own(
        "gettraceprobability",
        &[],
        &[],
        settings::get_trace_probability,
        "The share of requests that are traced.",
    ),
    own(
        "gossipinfo",
        &[],
        &[],
        ring::gossip,
        "What the node would tell other nodes.",
    ),
    own(
        "help",
        &[],
        &["command?"],
        node::nothing,
        "The list of verbs, or how one is used.",
    ),
    is(
        "import",
        &["sstable", "import"],
        "Brings SSTables of a directory into a table.",
    ),
    own(
        "info",
        &[flag("-T", "--tokens")],
        &[],
        node::info,
        "Identity, load, memory and caches of the node.",
    ),
    own(
        "invalidatecidrpermissionscache",
        &[],
        &["roles*"],
        files::invalidate_roles,
        "The same.",
    ),
    own(
        "invalidatecountercache",
        &[],
        &[],
        files::invalidate_counters,
        "Empties the cache of counters.",
    ),
    own(
        "invalidatecredentialscache",
        &[],
        &["roles*"],
        files::invalidate_roles,
        "Empties the cache of roles, permissions and passwords, for all roles.",
    ),
    refused("invalidatejmxpermissionscache", "there is no JMX"),
    own(
        "invalidatekeycache",
        &[],
        &[],
        files::invalidate_keys,
        "Empties the cache of keys.",
    ),
    own(
        "invalidatenetworkpermissionscache",
        &[],
        &["roles*"],
        files::invalidate_roles,
        "The same.",
    ),
    own(
        "invalidatepermissionscache",
        &[],
        &["roles*"],
        files::invalidate_roles,
        "Empties the cache of roles, permissions and passwords, for all roles.",
    ),
    own(
        "invalidaterolescache",
        &[],
        &["roles*"],
        files::invalidate_roles,
        "Empties the cache of roles, permissions and passwords, for all roles.",
    ),
    own(
        "invalidaterowcache",
        &[],
        &[],
        files::invalidate_rows,
        "Empties the cache of rows.",
    ),
    refused("join", "there is one node"),
    refused(
        "listcidrgroups",
        "groups of addresses are in system_auth.cidr_groups: read and change them by CQL",
    ),
    own(
        "listpendinghints",
        &[],
        &[],
        node::no_pending_hints,
        "That there are no hints.",
    ),
    is("listsnapshots", &["list-snapshots"], "Lists snapshots."),
    refused("move", "there is one node"),
    refused("netstats", "there is one node"),
    refused("pausehandoff", "there are no hints, since there is one node"),
    own(
        "profileload",
        &[
            valued("-k", "--k", "topCount"),
            valued("-s", "--size", "capacity"),
        ],
        &["keyspace?", "table?", "duration?"],
        tables::top_partitions,
        "The same.",
    ),
    own(
        "proxyhistograms",
        &[],
        &[],
        node::proxy_histograms,
        "Percentiles of the latency of reads, writes and range reads.",
    ),
    refused(
        "rangekeysample",
        "SSTables are found by token maps, of which there is no sample; system.size_estimates has the sizes of ranges",
    ),
    refused("rebuild", "there is one node"),
    own(
        "rebuild_index",
        &[],
        &["keyspace", "table", "indexes*"],
        files::rebuild_index,
        "Rebuilds indexes from their table.",
    ),
    refused(
        "recompress_sstables",
        "upgradesstables -a writes all SSTables with the compression of their table",
    ),
    refused("refresh", "import takes SSTables of another directory"),
    own(
        "refreshsizeestimates",
        &[],
        &[],
        tables::size_estimates,
        "Nothing is to be done: size_estimates is computed when it is read.",
    ),
    own(
        "reloadcidrgroupscache",
        &[],
        &[],
        files::invalidate_roles,
        "The same.",
    ),
    refused(
        "reloadlocalschema",
        "the schema in memory is that of system_schema",
    ),
    own(
        "reloadseeds",
        &[],
        &[],
        node::no_seeds,
        "That there are no other nodes.",
    ),
    own(
        "reloadssl",
        &[],
        &[],
        node::reload_certificates,
        "Reads the certificates of client connections.",
    ),
    refused("reloadtriggers", "there are no triggers in Java"),
    refused("relocatesstables", "there is one data directory"),
    refused("removenode", "there is one node"),
    own(
        "repair",
        &[
            flag("-full", "--full"),
            flag("-pr", "--partitioner-range"),
            flag("-seq", "--sequential"),
            flag("-dcpar", "--dc-parallel"),
            flag("-local", "--in-local-dc"),
            valued("-j", "--job-threads", "job_threads"),
        ],
        &["keyspace?", "tables*"],
        files::repair,
        "Tells that nothing is to be repaired: one node has the data.",
    ),
    refused("repair_admin", "there is one node"),
    refused(
        "replaybatchlog",
        "there is no batch log: a batch is one record of the commit log",
    ),
    refused(
        "resetfullquerylog",
        "there is no full query log; the audit log has the category QUERY (enableauditlog)",
    ),
    refused("resetlocalschema", "there is one node"),
    refused("resumehandoff", "there are no hints, since there is one node"),
    own("ring", &[], &["keyspace?"], ring::ring, "The tokens of the node."),
    refused(
        "scrub",
        "stop the node and use ilion sstable scrub; verify finds damage while it runs",
    ),
    own(
        "setauthcacheconfig",
        &[
            valued("", "--cache-name", "cache_name"),
            valued("", "--validity-period", "validity_period"),
            valued("", "--update-interval", "update_interval"),
            valued("", "--max-entries", "max_entries"),
            flag("", "--enable-active-update"),
            flag("", "--disable-active-update"),
        ],
        &[],
        settings::set_auth_cache,
        "Sets how long roles, permissions or passwords are kept.",
    ),
    refused("setautorepairconfig", "one node has nothing to repair"),
    refused(
        "setbatchlogreplaythrottle",
        "there is no batch log: a batch is one record of the commit log",
    ),
    own(
        "setcachecapacity",
        &[],
        &[
            "key-cache-capacity",
            "row-cache-capacity",
            "counter-cache-capacity",
        ],
        settings::set_cache_capacity,
        "Sets the sizes of the caches, in MiB.",
    ),
    own(
        "setcachekeystosave",
        &[],
        &[
            "key-cache-keys-to-save",
            "row-cache-keys-to-save",
            "counter-cache-keys-to-save",
        ],
        settings::set_cache_keys,
        "Sets how many keys of the caches are saved; -1: all.",
    ),
    refused(
        "setcolumnindexsize",
        "the size of blocks of the row index is fixed",
    ),
    refused(
        "setcompactionthreshold",
        "thresholds are options of the table's compaction: DESCRIBE TABLE shows them, ALTER TABLE changes them",
    ),
    own(
        "setcompactionthroughput",
        &[],
        &["compaction_throughput"],
        settings::set_compaction_throughput,
        "Limits the rate of compactions, in MiB/s; 0: no limit.",
    ),
    refused(
        "setconcurrency",
        "there are no stages: tpstats lists the threads, native_transport_max_threads and native_transport_max_heavy_threads set their number",
    ),
    refused(
        "setconcurrentcompactors",
        "the threads are made at the start: set concurrent_compactors in the file",
    ),
    refused("setconcurrentviewbuilders", "one thread builds views"),
    refused("setdefaultrf", "CREATE KEYSPACE names the replication factor"),
    own(
        "setguardrailsconfig",
        &[flag("-l", "--list")],
        &["setter?", "values*"],
        guardrails::set,
        "Sets a guardrail; of thresholds the failure comes first.",
    ),
    refused(
        "sethintedhandoffthrottlekb",
        "there are no hints, since there is one node",
    ),
    refused("setinterdcstreamthroughput", "there is one node"),
    own(
        "setlogginglevel",
        &[],
        &["component?", "level?"],
        settings::set_level,
        "What is logged: a level for ROOT or a module such as ilion_server; without arguments as at the start.",
    ),
    refused("setmaxhintwindow", "there are no hints, since there is one node"),
    own(
        "setsnapshotthrottle",
        &[],
        &["snapshot_throttle"],
        settings::set_snapshot_throttle,
        "Limits the files that snapshots link per second; 0: no limit.",
    ),
    refused("setstreamthroughput", "there is one node"),
    own(
        "settimeout",
        &[],
        &["timeout_type?", "timeout_in_ms?"],
        settings::set_timeout,
        "Sets the timeout of SELECTs: read or range.",
    ),
    own(
        "settraceprobability",
        &[],
        &["trace_probability"],
        settings::set_trace_probability,
        "Sets this share.",
    ),
    refused(
        "sjk",
        "there is no Java; the dashboard and /metrics show what the node does",
    ),
    is("snapshot", &["snapshot"], "Takes snapshots."),
    refused("sstablerepairedset", "one node has nothing to repair"),
    own(
        "status",
        &[],
        &["keyspace?"],
        ring::status,
        "The node, its load and its token.",
    ),
    own(
        "statusautocompaction",
        &[flag("-a", "--all")],
        &["keyspace?", "tables*"],
        tables::status_autocompaction,
        "Whether automatic compaction is on.",
    ),
    own(
        "statusbackup",
        &[],
        &[],
        node::status_backup,
        "Whether incremental backups are on.",
    ),
    own(
        "statusbinary",
        &[],
        &[],
        node::status_binary,
        "Whether clients may connect.",
    ),
    refused("statusgossip", "there is one node"),
    own(
        "statushandoff",
        &[],
        &[],
        node::no_hints,
        "That no hints are stored.",
    ),
    is("stop", &["stop"], "Stops compactions."),
    refused(
        "stopdaemon",
        "stop the service (systemctl stop ilion), or send SIGTERM to the process",
    ),
    own(
        "tablehistograms",
        &[],
        &["keyspace?", "table?"],
        tables::histograms,
        "Percentiles of latencies, SSTables per read, sizes and cells of partitions.",
    ),
    own(
        "tablestats",
        &[
            flag("-H", "--human-readable"),
            valued("-F", "--format", "format"),
            flag("-i", "--ignore"),
        ],
        &["tables*"],
        tables::stats,
        "Statistics of tables.",
    ),
    own(
        "toppartitions",
        &[
            valued("-k", "--k", "topCount"),
            valued("-s", "--size", "capacity"),
        ],
        &["keyspace?", "table?", "duration?"],
        tables::top_partitions,
        "Samples which partitions are read and written most.",
    ),
    is("tpstats", &["thread-pools"], "Threads and their queues."),
    refused("truncatehints", "there are no hints, since there is one node"),
    refused(
        "updatecidrgroup",
        "groups of addresses are in system_auth.cidr_groups: read and change them by CQL",
    ),
    own(
        "upgradesstables",
        &[
            flag("-a", "--include-all-sstables"),
            valued("-j", "--jobs", "jobs"),
        ],
        &["keyspace?", "tables*"],
        files::upgrade,
        "Writes SSTables of other formats anew, one by one; -a: all of them, which also gives them the table's compression.",
    ),
    own(
        "verify",
        &[
            flag("-f", "--force"),
            flag("-e", "--extended-verify"),
            flag("-c", "--check-version"),
            flag("-q", "--quick"),
        ],
        &["keyspace?", "tables*"],
        files::verify,
        "Checks SSTables against themselves. The check is always the extended one.",
    ),
    own(
        "version",
        &[],
        &[],
        node::version,
        "The version of Cassandra that clients are told.",
    ),
    own(
        "viewbuildstatus",
        &[],
        &["keyspace", "view?"],
        tables::view_build_status,
        "Whether a materialized view is built.",
    ),
];
