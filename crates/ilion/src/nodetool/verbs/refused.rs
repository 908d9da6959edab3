//! Verbs that mean nothing here, with the reason.

use super::verb::{Verb, refused};

/// By name.
pub const REFUSED: &[Verb] = &[
    refused("assassinate", "there is one node"),
    refused("autorepairstatus", "one node has nothing to repair"),
    refused("bootstrap", "there is one node"),
    refused("checktokenmetadata", "there is one node"),
    refused(
        "disablefullquerylog",
        "there is no full query log; the audit log has the category QUERY (enableauditlog)",
    ),
    refused("disablegossip", "there is one node"),
    refused("disablehandoff", "there are no hints, since there is one node"),
    refused("disablehintsfordc", "there are no hints, since there is one node"),
    refused(
        "enablefullquerylog",
        "there is no full query log; the audit log has the category QUERY (enableauditlog)",
    ),
    refused("enablegossip", "there is one node"),
    refused("enablehandoff", "there are no hints, since there is one node"),
    refused("enablehintsfordc", "there are no hints, since there is one node"),
    refused("gcstats", "there is no garbage collector"),
    refused("getautorepairconfig", "one node has nothing to repair"),
    refused(
        "getbatchlogreplaythrottle",
        "there is no batch log: a batch is one record of the commit log",
    ),
    refused(
        "getcolumnindexsize",
        "the size of blocks of the row index is fixed",
    ),
    refused("getdefaultrf", "CREATE KEYSPACE names the replication factor"),
    refused(
        "getfullquerylog",
        "there is no full query log; the audit log has the category QUERY (enableauditlog)",
    ),
    refused("getinterdcstreamthroughput", "there is one node"),
    refused("getmaxhintwindow", "there are no hints, since there is one node"),
    refused("getstreamthroughput", "there is one node"),
    refused("invalidatejmxpermissionscache", "there is no JMX"),
    refused("join", "there is one node"),
    refused(
        "move",
        "the tokens of a node are the ends of its slices of the ring: ilion rebalance spreads them",
    ),
    refused("pausehandoff", "there are no hints, since there is one node"),
    refused("rebuild", "there is one node"),
    refused("reloadtriggers", "there are no triggers in Java"),
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
    refused("setautorepairconfig", "one node has nothing to repair"),
    refused(
        "setbatchlogreplaythrottle",
        "there is no batch log: a batch is one record of the commit log",
    ),
    refused(
        "setcolumnindexsize",
        "the size of blocks of the row index is fixed",
    ),
    refused(
        "setconcurrency",
        "the threads are made at the start: native_transport_max_threads and native_transport_max_heavy_threads set their number",
    ),
    refused("setconcurrentviewbuilders", "one thread builds views"),
    refused("setdefaultrf", "CREATE KEYSPACE names the replication factor"),
    refused(
        "sethintedhandoffthrottlekb",
        "there are no hints, since there is one node",
    ),
    refused("setinterdcstreamthroughput", "there is one node"),
    refused("setmaxhintwindow", "there are no hints, since there is one node"),
    refused("setstreamthroughput", "there is one node"),
    refused(
        "sjk",
        "there is no Java; the dashboard and /metrics show what the node does",
    ),
    refused("sstablerepairedset", "one node has nothing to repair"),
    refused("truncatehints", "there are no hints, since there is one node"),
];
