//! `system`: state of the node and its peers.

use std::collections::BTreeMap;

use super::definition::{Definition, keyspace as keyspace_of, table};
use crate::options::compaction;
use crate::{DroppedColumn, Keyspace, Release, Replication, TableBuilder};

const TABLES: [Definition; 23] = [
    table(
        "local",
        "information about the local node",
        "key text pk; bootstrapped text; broadcast_address inet; broadcast_port int; cluster_name text; \
         cql_version text; data_center text; gossip_generation int; host_id uuid; listen_address inet; \
         listen_port int; native_protocol_version text; partitioner text; rack text; release_version text; \
         rpc_address inet; rpc_port int; schema_version uuid; tokens set<text>; truncated_at map<uuid, blob>",
    ),
    table(
        "peers_v2",
        "information about known peers in the cluster",
        "peer inet pk; peer_port int ck; data_center text; host_id uuid; native_address inet; native_port int; \
         preferred_ip inet; preferred_port int; rack text; release_version text; schema_version uuid; \
         tokens set<text>",
    ),
    table(
        "peers",
        "information about known peers in the cluster",
        "peer inet pk; data_center text; host_id uuid; preferred_ip inet; rack text; release_version text; \
         rpc_address inet; schema_version uuid; tokens set<text>",
    ),
    table(
        "peer_events_v2",
        "events related to peers",
        "peer inet pk; peer_port int ck; hints_dropped map<timeuuid, int>",
    ),
    table(
        "peer_events",
        "events related to peers",
        "peer inet pk; hints_dropped map<timeuuid, int>",
    ),
    table(
        "batches",
        "batches awaiting replay",
        "id timeuuid pk; mutations list<blob>; version int",
    ),
    table(
        "paxos",
        "in-progress paxos proposals",
        "row_key blob pk; cf_id uuid ck; in_progress_ballot timeuuid; in_progress_read_ballot timeuuid; \
         most_recent_commit blob; most_recent_commit_at timeuuid; most_recent_commit_version int; \
         proposal blob; proposal_ballot timeuuid; proposal_version int",
    ),
    table(
        "paxos_repair_history",
        "paxos repair history",
        "keyspace_name text pk; table_name text ck; points frozen<list<frozen<tuple<blob, timeuuid>>>>",
    ),
    table(
        "IndexInfo",
        "built column indexes",
        "table_name text pk; index_name text ck; value blob",
    ),
    table(
        "compaction_history",
        "week-long compaction history",
        "id timeuuid pk; bytes_in bigint; bytes_out bigint; columnfamily_name text; compacted_at timestamp; \
         compaction_properties frozen<map<text, text>>; keyspace_name text; rows_merged map<int, bigint>",
    ),
    table(
        "sstable_activity_v2",
        "historic sstable read rates",
        "keyspace_name text pk; table_name text pk; id text pk; rate_120m double; rate_15m double",
    ),
    table(
        "sstable_activity",
        "historic sstable read rates",
        "keyspace_name text pk; columnfamily_name text pk; generation int pk; rate_120m double; rate_15m double",
    ),
    table(
        "size_estimates",
        "per-table primary range size estimates, table is deprecated in favor of table_estimates",
        "keyspace_name text pk; table_name text ck; range_start text ck; range_end text ck; \
         mean_partition_size bigint; partitions_count bigint",
    ),
    table(
        "table_estimates",
        "per-table range size estimates",
        "keyspace_name text pk; table_name text ck; range_type text ck; range_start text ck; range_end text ck; \
         mean_partition_size bigint; partitions_count bigint",
    ),
    table(
        "available_ranges_v2",
        "available keyspace/ranges during bootstrap/replace that are ready to be served",
        "keyspace_name text pk; full_ranges set<blob>; transient_ranges set<blob>",
    ),
    table(
        "available_ranges",
        "available keyspace/ranges during bootstrap/replace that are ready to be served",
        "keyspace_name text pk; ranges set<blob>",
    ),
    table(
        "transferred_ranges_v2",
        "record of transferred ranges for streaming operation",
        "operation text pk; keyspace_name text pk; peer inet ck; peer_port int ck; ranges set<blob>",
    ),
    table(
        "transferred_ranges",
        "record of transferred ranges for streaming operation",
        "operation text pk; keyspace_name text pk; peer inet ck; ranges set<blob>",
    ),
    table(
        "view_builds_in_progress",
        "views builds current progress",
        "keyspace_name text pk; view_name text ck; start_token text ck; end_token text ck; keys_built bigint; \
         last_token text",
    ),
    table(
        "built_views",
        "built views",
        "keyspace_name text pk; view_name text ck; status_replicated boolean",
    ),
    table(
        "prepared_statements",
        "prepared statements",
        "prepared_id blob pk; logged_keyspace text; query_string text",
    ),
    table(
        "repairs",
        "repairs",
        "parent_id timeuuid pk; cfids set<uuid>; coordinator inet; coordinator_port int; last_update timestamp; \
         participants set<inet>; participants_wp set<text>; ranges set<blob>; repaired_at timestamp; \
         started_at timestamp; state int",
    ),
    table(
        "top_partitions",
        "Stores the top partitions",
        "keyspace_name text pk; table_name text ck; top_type text ck; last_update timestamp; \
         top frozen<list<frozen<tuple<text, bigint>>>>",
    ),
];

pub(super) fn keyspace(release: Release) -> Keyspace {
    keyspace_of(release, "system", Replication::local(), &TABLES, |builder| {
        builder.options.gc_grace_secs = 0;
        builder.options.memtable_flush_period_ms = 3_600_000;
        match builder.name.as_str() {
            "batches" => compact(
                builder,
                &[("class", "SizeTieredCompactionStrategy"), ("min_threshold", "2")],
            ),
            "paxos" => compact(builder, &[("class", "LeveledCompactionStrategy")]),
            "compaction_history" => builder.options.default_time_to_live_secs = 7 * 86_400,
            "local" => forget(builder, "thrift_version"),
            _ => {}
        }
    })
}

pub(super) fn compact(builder: &mut TableBuilder, options: &[(&str, &str)]) {
    let given: BTreeMap<String, String> = options
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    if let Ok(compaction) = compaction::parse(&given) {
        if compaction::class_of(&compaction) == "LeveledCompactionStrategy" {
            builder.options.bloom_filter_fp_chance = 0.1;
        }
        builder.options.compaction = compaction;
    }
}

/// Adds a dropped column that old versions wrote, so that its cells are skipped, whatever their timestamps.
fn forget(builder: &mut TableBuilder, name: &str) {
    let dropped = DroppedColumn {
        name: name.to_owned(),
        kind: crate::ColumnKind::Regular,
        ty: ilion_types::CqlType::Text,
        dropped_micros: i64::MAX,
    };
    builder.dropped.insert(name.to_owned(), dropped);
}
