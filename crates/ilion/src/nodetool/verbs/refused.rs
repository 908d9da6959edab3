//! Verbs that make no sense for Ilion, each with the reason.

use super::verb::{Verb, refused};

/// Sorted by name.
pub const REFUSED: &[Verb] = &[
    refused(
        "assassinate",
        "a lost node is taken out by removenode, which copies its data from others",
    ),
    refused(
        "autorepairstatus",
        "there is nothing to repair: all replicas apply the same log",
    ),
    refused(
        "bootstrap",
        "a node joins a cluster by its start (ilion serve --log)",
    ),
    refused(
        "checktokenmetadata",
        "the ring is that of the log; a node that is alone has all of it",
    ),
    refused(
        "disablefullquerylog",
        "there is no full query log; the audit log has the category QUERY (enableauditlog)",
    ),
    refused(
        "disablegossip",
        "there is no gossip: nodes of a cluster know each other from the log",
    ),
    refused(
        "disablehandoff",
        "there are no hints: what a node of a cluster missed, it reads from the log",
    ),
    refused(
        "disablehintsfordc",
        "there are no hints: what a node of a cluster missed, it reads from the log",
    ),
    refused(
        "enablefullquerylog",
        "there is no full query log; the audit log has the category QUERY (enableauditlog)",
    ),
    refused(
        "enablegossip",
        "there is no gossip: nodes of a cluster know each other from the log",
    ),
    refused(
        "enablehandoff",
        "there are no hints: what a node of a cluster missed, it reads from the log",
    ),
    refused(
        "enablehintsfordc",
        "there are no hints: what a node of a cluster missed, it reads from the log",
    ),
    refused("gcstats", "there is no garbage collector"),
    refused(
        "getautorepairconfig",
        "there is nothing to repair: all replicas apply the same log",
    ),
    refused(
        "getbatchlogreplaythrottle",
        "there is no batch log: a batch is one record of the commit log",
    ),
    refused("getdefaultrf", "CREATE KEYSPACE names the replication factor"),
    refused(
        "getfullquerylog",
        "there is no full query log; the audit log has the category QUERY (enableauditlog)",
    ),
    refused(
        "getinterdcstreamthroughput",
        "there are no streams; files that a joining node copies have no limit",
    ),
    refused(
        "getmaxhintwindow",
        "there are no hints: what a node of a cluster missed, it reads from the log",
    ),
    refused(
        "getstreamthroughput",
        "there are no streams; files that a joining node copies have no limit",
    ),
    refused("invalidatejmxpermissionscache", "there is no JMX"),
    refused("join", "a node joins a cluster by its start (ilion serve --log)"),
    refused(
        "move",
        "the tokens of a node are the ends of its tablets: ilion rebalance spreads them",
    ),
    refused(
        "pausehandoff",
        "there are no hints: what a node of a cluster missed, it reads from the log",
    ),
    refused("rebuild", "a node copies what it lacks by itself"),
    refused("reloadtriggers", "there are no triggers in Java"),
    refused(
        "repair_admin",
        "there is nothing to repair: all replicas apply the same log",
    ),
    refused(
        "replaybatchlog",
        "there is no batch log: a batch is one record of the commit log",
    ),
    refused(
        "resetfullquerylog",
        "there is no full query log; the audit log has the category QUERY (enableauditlog)",
    ),
    refused(
        "resetlocalschema",
        "the schema is that of the log; a node that is alone has the only one",
    ),
    refused(
        "resumehandoff",
        "there are no hints: what a node of a cluster missed, it reads from the log",
    ),
    refused(
        "setautorepairconfig",
        "there is nothing to repair: all replicas apply the same log",
    ),
    refused(
        "setbatchlogreplaythrottle",
        "there is no batch log: a batch is one record of the commit log",
    ),
    refused(
        "setconcurrency",
        "the threads are made at the start: native_transport_max_threads and native_transport_max_heavy_threads set their number",
    ),
    refused("setconcurrentviewbuilders", "one thread builds views"),
    refused("setdefaultrf", "CREATE KEYSPACE names the replication factor"),
    refused(
        "sethintedhandoffthrottlekb",
        "there are no hints: what a node of a cluster missed, it reads from the log",
    ),
    refused(
        "setinterdcstreamthroughput",
        "there are no streams; files that a joining node copies have no limit",
    ),
    refused(
        "setmaxhintwindow",
        "there are no hints: what a node of a cluster missed, it reads from the log",
    ),
    refused(
        "setstreamthroughput",
        "there are no streams; files that a joining node copies have no limit",
    ),
    refused(
        "sjk",
        "there is no Java; the dashboard and /metrics show what the node does",
    ),
    refused(
        "sstablerepairedset",
        "there is nothing to repair: all replicas apply the same log",
    ),
    refused(
        "truncatehints",
        "there are no hints: what a node of a cluster missed, it reads from the log",
    ),
];
