//! Tables of `system_views` about other nodes, logins and repairs, with Cassandra's columns. On a single node they have few or no
//! rows.

use super::definition::{Definition, table};

pub(super) const CLUSTER_VIEWS: [Definition; 17] = [
    table(
        "cidr_filtering_metrics_counts",
        "Count metrics specific to CIDR filtering",
        "name text pk; value bigint",
    ),
    table(
        "cidr_filtering_metrics_latencies",
        "Latency metrics specific to CIDR filtering",
        "name text pk; max double; p50th double; p95th double; p999th double; p99th double",
    ),
    table(
        "credentials_cache_keys",
        "keys in the credentials cache",
        "role text pk",
    ),
    table(
        "gossip_info",
        "lists the gossip information for the cluster",
        "address inet pk; port int ck; dc text; dc_version int; disk_usage text; disk_usage_version int; \
         generation int; heartbeat int; host_id text; host_id_version int; hostname text; index_status \
         text; index_status_version int; internal_address_and_port text; internal_address_and_port_version \
         int; internal_ip text; internal_ip_version int; load text; load_version int; \
         native_address_and_port text; native_address_and_port_version int; net_version text; \
         net_version_version int; rack text; rack_version int; release_version text; \
         release_version_version int; removal_coordinator text; removal_coordinator_version int; \
         rpc_address text; rpc_address_version int; rpc_ready text; rpc_ready_version int; schema text; \
         schema_version int; severity text; severity_version int; sstable_versions text; \
         sstable_versions_version int; status text; status_version int; status_with_port text; \
         status_with_port_version int; tokens_version int; x1 text; x10 text; x10_version int; x1_version \
         int; x2 text; x2_version int; x3 text; x3_version int; x4 text; x4_version int; x5 text; \
         x5_version int; x6 text; x6_version int; x7 text; x7_version int; x8 text; x8_version int; x9 \
         text; x9_version int; x_11_padding text; x_11_padding_version int",
    ),
    table(
        "internode_inbound",
        "",
        "address inet pk; port int pk; dc text ck; rack text ck; corrupt_frames_recovered bigint; \
         corrupt_frames_unrecovered bigint; error_bytes bigint; error_count bigint; expired_bytes bigint; \
         expired_count bigint; processed_bytes bigint; processed_count bigint; received_bytes bigint; \
         received_count bigint; scheduled_bytes bigint; scheduled_count bigint; throttled_count bigint; \
         throttled_nanos bigint; using_bytes bigint; using_reserve_bytes bigint",
    ),
    table(
        "internode_outbound",
        "",
        "address inet pk; port int pk; dc text ck; rack text ck; active_connections bigint; \
         connection_attempts bigint; error_bytes bigint; error_count bigint; expired_bytes bigint; \
         expired_count bigint; overload_bytes bigint; overload_count bigint; pending_bytes bigint; \
         pending_count bigint; sent_bytes bigint; sent_count bigint; successful_connection_attempts \
         bigint; using_bytes bigint; using_reserve_bytes bigint",
    ),
    table(
        "jmx_permissions_cache_keys",
        "keys in the JMX permissions cache",
        "role text pk",
    ),
    table(
        "network_permissions_cache_keys",
        "keys in the network permissions cache",
        "role text pk",
    ),
    table(
        "pending_hints",
        "Pending hints that this node has for other nodes",
        "host_id uuid pk; address inet; dc text; files int; newest timestamp; oldest timestamp; port int; \
         rack text; status text",
    ),
    table(
        "permissions_cache_keys",
        "keys in the permissions cache",
        "role text pk; resource text pk",
    ),
    table(
        "repair_jobs",
        "Repair job",
        "id uuid pk; completed boolean; duration_millis bigint; failure_cause text; keyspace_name text; \
         last_updated_at timestamp; participants frozen<list<text>>; ranges frozen<list<text>>; repair_id \
         timeuuid; session_id timeuuid; state_failure_timestamp timestamp; state_init_timestamp timestamp; \
         state_skipped_timestamp timestamp; state_snapshot_complete_timestamp timestamp; \
         state_snapshot_start_timestamp timestamp; state_start_timestamp timestamp; \
         state_stream_start_timestamp timestamp; state_success_timestamp timestamp; \
         state_validation_complete_timestamp timestamp; state_validation_start_timestamp timestamp; status \
         text; success_message text; table_name text",
    ),
    table(
        "repair_participates",
        "Repair participate summary",
        "id timeuuid pk; completed boolean; duration_millis bigint; failure_cause text; global boolean; \
         incremental boolean; initiator text; last_updated_at timestamp; preview_kind text; ranges \
         frozen<list<text>>; repaired_at timestamp; state_failure_timestamp timestamp; \
         state_init_timestamp timestamp; state_skipped_timestamp timestamp; state_success_timestamp \
         timestamp; success_message text; tables frozen<set<text>>; validations frozen<set<uuid>>",
    ),
    table(
        "repair_sessions",
        "Repair session",
        "id timeuuid pk; completed boolean; duration_millis bigint; failure_cause text; jobs \
         frozen<set<uuid>>; keyspace_name text; last_updated_at timestamp; participants \
         frozen<list<text>>; ranges frozen<list<text>>; repair_id timeuuid; state_failure_timestamp \
         timestamp; state_init_timestamp timestamp; state_jobs_start_timestamp timestamp; \
         state_skipped_timestamp timestamp; state_start_timestamp timestamp; state_success_timestamp \
         timestamp; status text; success_message text; table_names frozen<list<text>>",
    ),
    table(
        "repair_validations",
        "Repair validation",
        "id uuid pk; bytes_read bigint; completed boolean; duration_millis bigint; estimated_partitions \
         bigint; estimated_total_bytes bigint; failure_cause text; initiator text; keyspace_name text; \
         last_updated_at timestamp; partitions_processed bigint; progress_percentage float; ranges \
         frozen<list<text>>; repair_id timeuuid; session_id timeuuid; state_accept_timestamp timestamp; \
         state_failure_timestamp timestamp; state_init_timestamp timestamp; state_sending_trees_timestamp \
         timestamp; state_skipped_timestamp timestamp; state_start_timestamp timestamp; \
         state_success_timestamp timestamp; status text; success_message text; table_name text",
    ),
    table(
        "repairs",
        "Repair summary",
        "id timeuuid pk; command_id int; completed boolean; duration_millis bigint; failure_cause text; \
         keyspace_name text; last_updated_at timestamp; options_column_families frozen<set<text>>; \
         options_data_centers frozen<set<text>>; options_force_repair boolean; options_hosts \
         frozen<set<text>>; options_ignore_unreplicated_keyspaces boolean; options_incremental boolean; \
         options_job_threads int; options_optimise_streams boolean; options_parallelism text; \
         options_preview_kind text; options_primary_range boolean; options_pull_repair boolean; \
         options_ranges frozen<set<text>>; options_subrange_repair boolean; options_trace boolean; \
         participants frozen<list<text>>; ranges frozen<list<frozen<list<text>>>>; sessions \
         frozen<set<timeuuid>>; state_failure_timestamp timestamp; state_init_timestamp timestamp; \
         state_prepare_complete_timestamp timestamp; state_prepare_start_timestamp timestamp; \
         state_repair_complete_timestamp timestamp; state_repair_start_timestamp timestamp; \
         state_setup_timestamp timestamp; state_skipped_timestamp timestamp; state_start_timestamp \
         timestamp; state_success_timestamp timestamp; status text; success_message text; table_names \
         frozen<list<text>>; type text; unfiltered_ranges frozen<list<frozen<list<text>>>>",
    ),
    table("roles_cache_keys", "keys in the roles cache", "role text pk"),
    table(
        "streaming",
        "",
        "id timeuuid pk; bytes_received bigint; bytes_sent bigint; bytes_to_receive bigint; bytes_to_send \
         bigint; duration_millis bigint; failure_cause text; files_received bigint; files_sent bigint; \
         files_to_receive bigint; files_to_send bigint; follower boolean; last_updated_at timestamp; \
         operation text; peers frozen<list<text>>; progress_percentage float; status text; \
         status_failure_timestamp timestamp; status_init_timestamp timestamp; status_start_timestamp \
         timestamp; status_success_timestamp timestamp; success_message text",
    ),
];
