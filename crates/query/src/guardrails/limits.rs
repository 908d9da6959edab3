//! The settings of guardrails.

/// Thresholds for a warning and for a refusal; `None` means never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Threshold {
    /// Above this the client is warned.
    pub warn: Option<u64>,
    /// Above this the statement is refused.
    pub fail: Option<u64>,
}

/// Values of an option that lead to a warning or a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueLists {
    /// The client gets a warning.
    pub warned: Vec<String>,
    /// The values are removed from the statement, and the client gets a warning.
    pub ignored: Vec<String>,
    /// The statement is refused.
    pub disallowed: Vec<String>,
}

/// Whether a feature may be used: freely, with a warning, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The client gets a warning.
    pub warned: bool,
    /// If false, the statement is refused.
    pub enabled: bool,
}

impl Flag {
    /// Allowed without a warning.
    pub(crate) const FREE: Self = Self {
        warned: false,
        enabled: true,
    };
}

impl ValueLists {
    pub(super) fn is_empty(&self) -> bool {
        self.warned.is_empty() && self.ignored.is_empty() && self.disallowed.is_empty()
    }
}

/// All guardrails. The defaults are Cassandra's.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "each is called as the setting that it comes from, which documents it"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct Guardrails {
    pub keyspaces: Threshold,
    pub tables: Threshold,
    pub columns_per_table: Threshold,
    pub materialized_views_per_table: Threshold,
    pub secondary_indexes_per_table: Threshold,
    /// Files of an index that one query may read.
    pub sai_sstable_indexes_per_query: Threshold,
    pub sai_string_term_size: Threshold,
    pub sai_frozen_term_size: Threshold,
    pub sai_vector_term_size: Threshold,
    pub fields_per_udt: Threshold,
    pub vector_dimensions: Threshold,
    pub page_size: Threshold,
    pub partition_keys_in_select: Threshold,
    pub in_select_cartesian_product: Threshold,
    pub collection_size: Threshold,
    pub items_per_collection: Threshold,
    pub column_value_size: Threshold,
    /// Unlike all other thresholds, warns and refuses below its values.
    pub minimum_replication_factor: Threshold,
    pub maximum_replication_factor: Threshold,
    /// How many microseconds a statement's timestamp may be ahead of the clock.
    pub maximum_timestamp: Threshold,
    /// How many microseconds a statement's timestamp may be behind the clock.
    pub minimum_timestamp: Threshold,
    /// Partitions of an unlogged batch; never refuses, only warns.
    pub unlogged_batch_across_partitions: Threshold,
    pub table_properties: ValueLists,
    pub read_consistency_levels: ValueLists,
    pub write_consistency_levels: ValueLists,
    /// Filtering by several mutable columns, at levels that need several nodes.
    pub intersect_filtering_query: Flag,
    /// Tables of TimeWindowCompactionStrategy without a default TTL.
    pub zero_ttl_on_twcs: Flag,
    pub vector_type_enabled: bool,
    pub use_statements_enabled: bool,
    pub drop_compact_storage_enabled: bool,
    pub secondary_indexes_enabled: bool,
    pub non_partition_restricted_index_query_enabled: bool,
    pub group_by_enabled: bool,
    pub drop_truncate_table_enabled: bool,
    pub drop_keyspace_enabled: bool,
    pub alter_table_enabled: bool,
    pub user_timestamps_enabled: bool,
    pub uncompressed_tables_enabled: bool,
    pub compact_tables_enabled: bool,
    pub read_before_write_list_operations_enabled: bool,
    pub simplestrategy_enabled: bool,
}

impl Guardrails {
    /// The limits for superusers: no guardrails, but the settings that Cassandra does not count among its guardrails.
    #[must_use]
    pub(crate) fn of_superusers(&self) -> Self {
        Self {
            sai_sstable_indexes_per_query: Threshold::default(),
            unlogged_batch_across_partitions: self.unlogged_batch_across_partitions,
            use_statements_enabled: self.use_statements_enabled,
            drop_compact_storage_enabled: self.drop_compact_storage_enabled,
            ..Self::default()
        }
    }
}

/// Cassandra's defaults.
impl Default for Guardrails {
    fn default() -> Self {
        Self {
            keyspaces: Threshold::default(),
            tables: Threshold::default(),
            columns_per_table: Threshold::default(),
            materialized_views_per_table: Threshold::default(),
            secondary_indexes_per_table: Threshold::default(),
            sai_sstable_indexes_per_query: Threshold {
                warn: Some(32),
                fail: None,
            },
            sai_string_term_size: Threshold::default(),
            sai_frozen_term_size: Threshold::default(),
            sai_vector_term_size: Threshold::default(),
            fields_per_udt: Threshold::default(),
            vector_dimensions: Threshold::default(),
            page_size: Threshold::default(),
            partition_keys_in_select: Threshold::default(),
            in_select_cartesian_product: Threshold::default(),
            collection_size: Threshold::default(),
            items_per_collection: Threshold::default(),
            column_value_size: Threshold::default(),
            minimum_replication_factor: Threshold::default(),
            maximum_replication_factor: Threshold::default(),
            maximum_timestamp: Threshold::default(),
            minimum_timestamp: Threshold::default(),
            unlogged_batch_across_partitions: Threshold {
                warn: Some(10),
                fail: None,
            },
            table_properties: ValueLists::default(),
            read_consistency_levels: ValueLists::default(),
            write_consistency_levels: ValueLists::default(),
            intersect_filtering_query: Flag::FREE,
            zero_ttl_on_twcs: Flag::FREE,
            vector_type_enabled: true,
            use_statements_enabled: true,
            drop_compact_storage_enabled: false,
            secondary_indexes_enabled: true,
            non_partition_restricted_index_query_enabled: true,
            group_by_enabled: true,
            drop_truncate_table_enabled: true,
            drop_keyspace_enabled: true,
            alter_table_enabled: true,
            user_timestamps_enabled: true,
            uncompressed_tables_enabled: true,
            compact_tables_enabled: true,
            read_before_write_list_operations_enabled: true,
            simplestrategy_enabled: true,
        }
    }
}
