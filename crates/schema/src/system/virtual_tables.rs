//! `system_views` and `system_virtual_schema`: tables whose rows are computed at each read.

use super::cluster_views::CLUSTER_VIEWS;
use super::definition::{Definition, keyspace, table, virtual_kind};
use crate::{Keyspace, Release, Replication};

const VIEWS: [Definition; 28] = [
    table(
        "caches",
        "system caches",
        "name text pk; capacity_bytes bigint; entry_count int; hit_count bigint; hit_ratio double; \
         recent_hit_rate_per_second bigint; recent_request_rate_per_second bigint; request_count bigint; \
         size_bytes bigint",
    ),
    table(
        "clients",
        "currently connected clients",
        "address inet pk; port int ck; client_options frozen<map<text, text>>; connection_stage text; \
         driver_name text; driver_version text; hostname text; keyspace_name text; protocol_version int; \
         request_count bigint; ssl_cipher_suite text; ssl_enabled boolean; ssl_protocol text; username text",
    ),
    table(
        "cql_metrics",
        "Metrics specific to CQL prepared statement caching",
        "name text pk; value double",
    ),
    table(
        "batch_metrics",
        "Metrics specific to batch statements",
        "name text pk; max bigint; p50th double; p999th double; p99th double",
    ),
    table(
        "coordinator_read_latency",
        "",
        "keyspace_name text pk; table_name text pk; count bigint; max_ms double; p50th_ms double; \
         p99th_ms double; per_second double",
    ),
    table(
        "coordinator_write_latency",
        "",
        "keyspace_name text pk; table_name text pk; count bigint; max_ms double; p50th_ms double; \
         p99th_ms double; per_second double",
    ),
    table(
        "disk_usage",
        "",
        "keyspace_name text pk; table_name text pk; mebibytes bigint",
    ),
    table(
        "indexes",
        "secondary indexes, and how far they are built",
        "keyspace_name text pk; index_name text ck; build_bytes_done bigint; build_bytes_total bigint; class_name \
         text; column_name text; is_building boolean; is_queryable boolean; table_name text; target text",
    ),
    table(
        "local_read_latency",
        "",
        "keyspace_name text pk; table_name text pk; count bigint; max_ms double; p50th_ms double; \
         p99th_ms double; per_second double",
    ),
    table(
        "local_write_latency",
        "",
        "keyspace_name text pk; table_name text pk; count bigint; max_ms double; p50th_ms double; \
         p99th_ms double; per_second double",
    ),
    table(
        "max_partition_size",
        "",
        "keyspace_name text pk; table_name text pk; mebibytes bigint",
    ),
    table(
        "queries",
        "Lists currently running queries",
        "thread_id text pk; queued_micros bigint; running_micros bigint; task text",
    ),
    table(
        "sai_column_indexes",
        "storage-attached index metadata",
        "keyspace_name text pk; index_name text ck; analyzer text; column_name text; is_building boolean; \
         is_queryable boolean; is_string boolean; table_name text",
    ),
    table(
        "sai_sstable_index_segments",
        "SSTable index segment metadata",
        "keyspace_name text pk; index_name text ck; sstable_name text ck; segment_row_id_offset bigint ck; \
         cell_count bigint; column_name text; \
         component_metadata frozen<map<text, frozen<map<text, text>>>>; end_token text; \
         max_sstable_row_id bigint; max_term text; min_sstable_row_id bigint; min_term text; start_token text; \
         table_name text",
    ),
    table(
        "sai_sstable_indexes",
        "SSTable index metadata",
        "keyspace_name text pk; index_name text ck; sstable_name text ck; cell_count bigint; column_name text; \
         end_token text; format_version text; max_row_id bigint; min_row_id bigint; per_column_disk_size bigint; \
         per_table_disk_size bigint; start_token text; table_name text",
    ),
    table("settings", "current settings", "name text pk; value text"),
    table(
        "snapshots",
        "available snapshots",
        "name text pk; keyspace_name text ck; table_name text ck; created_at timestamp; ephemeral boolean; \
         expires_at timestamp; size_on_disk bigint; true_size bigint",
    ),
    table(
        "sstable_tasks",
        "current sstable tasks",
        "keyspace_name text pk; table_name text ck; task_id timeuuid ck; completion_ratio double; kind text; \
         progress bigint; sstables int; target_directory text; total bigint; total_compressed bigint; \
         unit text",
    ),
    // Cassandra does not have this table.
    table(
        "statements",
        "what statements cost, by what they have in common",
        "keyspace_name text pk; statement text ck; amplification_max double; amplification_p50 double; \
         amplification_p95 double; amplification_p99 double; bytes_returned_total bigint; \
         cached_bytes_total bigint; cached_chunks_total bigint; cached_keys_total bigint; \
         cached_partitions_total bigint; calls bigint; disk_bytes_max bigint; disk_bytes_p50 bigint; \
         disk_bytes_p95 bigint; disk_bytes_p99 bigint; disk_bytes_total bigint; disk_reads_total bigint; \
         disk_wait_ms_total double; errors bigint; latency_ms_max double; latency_ms_p50 double; \
         latency_ms_p95 double; latency_ms_p99 double; latency_ms_total double; lock_wait_ms_total \
         double; log_wait_ms_total double; memtables_total bigint; partitions_scanned_total bigint; \
         rows_returned_total bigint; rows_scanned_max bigint; rows_scanned_p50 bigint; rows_scanned_p95 \
         bigint; rows_scanned_p99 bigint; rows_scanned_total bigint; sstables_considered_total bigint; \
         sstables_skipped_by_clustering_total bigint; sstables_skipped_by_deletion_total bigint; \
         sstables_skipped_by_filter_total bigint; sstables_skipped_by_key_range_total bigint; \
         sstables_skipped_by_sorted_view_total bigint; sstables_skipped_by_timestamp_total bigint; \
         sstables_touched_total bigint; throttle_ms_total double; tombstones_scanned_max bigint; tombstones_scanned_p50 bigint; tombstones_scanned_p95 \
         bigint; tombstones_scanned_p99 bigint; tombstones_scanned_total bigint",
    ),
    table(
        "system_properties",
        "Cassandra relevant system properties",
        "name text pk; value text",
    ),
    table(
        "coordinator_scan_latency",
        "",
        "keyspace_name text pk; table_name text pk; count bigint; max_ms double; p50th_ms double; p99th_ms \
         double; per_second double",
    ),
    table(
        "local_scan_latency",
        "",
        "keyspace_name text pk; table_name text pk; count bigint; max_ms double; p50th_ms double; p99th_ms \
         double; per_second double",
    ),
    table(
        "max_sstable_duration",
        "",
        "keyspace_name text pk; table_name text pk; max_sstable_duration bigint",
    ),
    table(
        "max_sstable_size",
        "",
        "keyspace_name text pk; table_name text pk; mebibytes bigint",
    ),
    table(
        "rows_per_read",
        "",
        "keyspace_name text pk; table_name text pk; count bigint; max double; p50th double; p99th double",
    ),
    table(
        "system_logs",
        "Cassandra logs",
        "timestamp timestamp pk; order_in_millisecond int ck; level text; logger text; message text",
    ),
    table(
        "thread_pools",
        "",
        "name text pk; active_tasks int; active_tasks_limit int; blocked_tasks bigint; \
         blocked_tasks_all_time bigint; completed_tasks bigint; pending_tasks int",
    ),
    table(
        "tombstones_per_read",
        "",
        "keyspace_name text pk; table_name text pk; count bigint; max double; p50th double; p99th double",
    ),
];

const VIRTUAL_SCHEMA: [Definition; 3] = [
    table(
        "keyspaces",
        "virtual keyspace definitions",
        "keyspace_name text pk",
    ),
    table(
        "tables",
        "virtual table definitions",
        "keyspace_name text pk; table_name text ck; comment text",
    ),
    table(
        "columns",
        "virtual column definitions",
        "keyspace_name text pk; table_name text ck; column_name text ck; clustering_order text; \
         column_name_bytes blob; kind text; position int; type text",
    ),
];

pub(super) fn views() -> Keyspace {
    keyspace(
        Release::default(),
        "system_views",
        Replication::local(),
        &[&VIEWS[..], &CLUSTER_VIEWS[..]].concat(),
        virtual_kind,
    )
}

pub(super) fn virtual_schema() -> Keyspace {
    keyspace(
        Release::default(),
        "system_virtual_schema",
        Replication::local(),
        &VIRTUAL_SCHEMA,
        virtual_kind,
    )
}
