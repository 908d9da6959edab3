//! Settings of Cassandra that Ilion knows and has no use for: what is said when they are met.
//!
//! A setting that cannot change what clients see is passed over with a warning. One that asks for something that Ilion does
//! not do (safety, security, another cluster) is refused, so that nobody believes to have it.

/// What happens to a foreign setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Warned about.
    PassedOver,
    /// The server does not start, unless the value is one of these.
    RefusedUnless(&'static [&'static str]),
}

/// Some settings of Cassandra with the same fate and reason.
pub struct Foreign {
    /// Their names.
    pub names: &'static [&'static str],
    /// What happens.
    pub fate: Fate,
    /// Why, as half a sentence after "Ilion has no use for it: ".
    pub reason: &'static str,
}

const OFF: &[&str] = &["false", "none", "0", "0s", "0ms", "-1", ""];

const BIG: &[&str] = &["big"];

/// The list.
pub const FOREIGN: &[Foreign] = &[
    Foreign {
        names: &[
            "key_cache_migrate_during_compaction",
            "key_cache_invalidate_after_sstable_deletion",
            "row_cache_class_name",
            "column_index_size",
            "auto_snapshot",
        ],
        fate: Fate::PassedOver,
        reason: "it is not built yet",
    },
    Foreign {
        names: &["sstable_selected_format"],
        fate: Fate::RefusedUnless(BIG),
        reason: "sstable_format says which format is written",
    },
    Foreign {
        names: &[
            "seed_provider",
            "storage_port",
            "ssl_storage_port",
            "broadcast_address",
            "listen_interface",
            "listen_interface_prefer_ipv6",
            "listen_on_broadcast_address",
            "internode_authenticator",
            "internode_compression",
            "internode_timeout",
            "internode_tcp_connect_timeout",
            "internode_tcp_user_timeout",
            "endpoint_snitch",
            "dynamic_snitch",
            "dynamic_snitch_update_interval",
            "dynamic_snitch_reset_interval",
            "dynamic_snitch_badness_threshold",
            "phi_convict_threshold",
            "auto_bootstrap",
            "num_tokens",
            "allocate_tokens_for_local_replication_factor",
            "hinted_handoff_enabled",
            "max_hint_window",
            "hinted_handoff_throttle",
            "max_hints_delivery_threads",
            "max_hints_file_size",
            "max_hints_size_per_host",
            "hints_directory",
            "hints_flush_period",
            "auto_hints_cleanup_enabled",
            "transfer_hints_on_decommission",
            "stream_throughput_outbound",
            "inter_dc_stream_throughput_outbound",
            "inter_dc_tcp_nodelay",
            "streaming_connections_per_host",
            "streaming_keep_alive_period",
            "stream_entire_sstables",
            "repair_session_space",
            "repair_request_timeout",
            "reject_repair_compaction_threshold",
            "ideal_consistency_level",
            "batchlog_replay_throttle",
            "batchlog_endpoint_strategy",
            "replica_filtering_protection",
        ],
        fate: Fate::PassedOver,
        reason: "it is about other nodes, and Ilion is one node",
    },
    Foreign {
        names: &[
            "memtable",
            "memtable_offheap_space",
            "memtable_allocation_type",
            "memtable_cleanup_threshold",
            "memtable_flush_writers",
            "buffer_pool_use_heap_if_exhausted",
            "networking_cache_size",
            "gc_log_threshold",
            "gc_warn_threshold",
            "disk_access_mode",
            "disk_optimization_strategy",
            "file_cache_enabled",
            "file_cache_round_up",
            "column_index_cache_size",
            "commitlog_disk_access_mode",
            "commitlog_max_compression_buffers_in_pool",
            "concurrent_reads",
            "concurrent_writes",
            "concurrent_counter_writes",
            "concurrent_materialized_view_writes",
            "concurrent_materialized_view_builders",
            "concurrent_validations",
            "sstable_preemptive_open_interval",
            "trickle_fsync",
            "trickle_fsync_interval",
            "prepared_statements_cache_size",
            "uuid_sstable_identifiers_enabled",
            "available_processors",
            "native_transport_flush_in_batches_legacy",
            "native_transport_allow_older_protocols",
            "native_transport_max_auth_threads",
            "native_transport_max_request_data_in_flight",
            "native_transport_max_request_data_in_flight_per_ip",
            "native_transport_receive_queue_capacity_per_ip",
            "rpc_keepalive",
            "rpc_interface",
            "rpc_interface_prefer_ipv6",
            "flush_compression",
        ],
        fate: Fate::PassedOver,
        reason: "memory, threads and files are managed otherwise here",
    },
    Foreign {
        names: &[
            "role_manager",
            "network_authorizer",
            "cidr_authorizer",
            "crypto_provider",
            "permissions_validity",
            "permissions_update_interval",
            "permissions_cache_max_entries",
            "roles_validity",
            "roles_update_interval",
            "roles_cache_max_entries",
            "credentials_validity",
            "credentials_update_interval",
            "credentials_cache_max_entries",
            "traverse_auth_from_root",
        ],
        fate: Fate::PassedOver,
        reason: "there are no logins yet",
    },
    Foreign {
        names: &[
            "request_timeout",
            "read_request_timeout",
            "range_request_timeout",
            "write_request_timeout",
            "counter_write_request_timeout",
            "cas_contention_timeout",
            "truncate_request_timeout",
            "trace_type_repair_ttl",
            "snapshot_links_per_second",
            "sstables_per_read_log_threshold",
            "read_thresholds_enabled",
            "unlogged_batch_across_partitions_warn_threshold",
            "paxos_variant",
            "commit_failure_policy",
            "disk_failure_policy",
            "corrupted_tombstone_strategy",
            "automatic_sstable_upgrade",
            "jmx_server_options",
            "full_query_logging_options",
            "diagnostic_events_enabled",
            "periodic_commitlog_sync_lag_block",
            "max_value_size",
            "user_defined_functions_warn_timeout",
            "user_function_timeout_policy",
            "scripted_user_defined_functions_enabled",
        ],
        fate: Fate::PassedOver,
        reason: "Ilion has no such limit or report",
    },
    Foreign {
        names: &[
            "start_native_transport",
            "client_encryption_options",
            "server_encryption_options",
            "transparent_data_encryption_options",
            "audit_logging_options",
            "cdc_enabled",
            "incremental_backups",
            "snapshot_before_compaction",
            "commitlog_compression",
            "commitlog_archiving",
            "transient_replication_enabled",
            "dynamic_data_masking_enabled",
            "native_transport_rate_limiting_enabled",
            "native_transport_port_ssl",
            "local_system_data_file_directory",
            "auto_snapshot_ttl",
        ],
        fate: Fate::RefusedUnless(OFF),
        reason: "it asks for something that Ilion does not do",
    },
];

/// What is known of a name of Cassandra's.
pub(super) fn find(name: &str) -> Option<&'static Foreign> {
    FOREIGN.iter().find(|foreign| foreign.names.contains(&name))
}
